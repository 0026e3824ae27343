//! From a few lines of TOML to encoders: language → specification → [`FeatureSet`].
//! (skeleton: the published interface, over the piece set)

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chess::{Board, BoardChange, Orientation, Perspective};

/// Hash of a set's canonical expansion; 64 hex digits when printed or serialised.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identity(String);

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Error)]
#[error("{0}")]
pub struct FeatureError(pub String);

/// What one move changes for one perspective.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Features active after and not before, ascending.
    pub added: Vec<u32>,
    /// Features active before and not after, ascending.
    pub removed: Vec<u32>,
    /// Whether some block's context changed.
    pub refresh: bool,
}

/// The part of a set whose indices stand together and whose context is tracked on its own.
pub struct Block {
    pub name: String,
    pub offset: u32,
    pub size: u32,
}

/// A compiled definition.
pub struct FeatureSet {
    name: String,
    blocks: Vec<Block>,
}

impl FeatureSet {
    /// A path to a TOML file, a bare name (`piece`, `piece.toml`: beside the caller or in `feature_sets/`), or an
    /// inline expression.
    pub fn resolve(request: &str) -> Result<FeatureSet, FeatureError> {
        let _ = Path::new(request);
        Ok(FeatureSet { name: "piece".into(), blocks: vec![Block { name: "piece".into(), offset: 0, size: 768 }] })
    }

    /// From the self-contained text `definition()` gives (as stored in checkpoints and network files).
    pub fn from_definition(text: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::resolve(text)
    }

    /// A self-contained TOML definition (named sets expanded, selection inlined).
    pub fn definition(&self) -> String {
        "features = \"square(P) * role(P) * color(P) for P in pieces\"\n".into()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn identity(&self) -> Identity {
        Identity("0".repeat(64))
    }

    pub fn num_features(&self) -> u32 {
        768
    }

    /// No position has more active features than this (a bound, not the maximum).
    pub fn max_active(&self) -> usize {
        32
    }

    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The active features of a board seen by `pov`, in no particular order; `out` is cleared first.
    pub fn active(&self, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        out.clear();
        self.active_block(0, board, pov, out);
    }

    /// One block's active features, appended to `out` (indices are those of the whole set).
    pub fn active_block(&self, _block: usize, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        let own = pov.own();
        let Some(king) = board.king_of(own) else { return };
        let mask = Orientation::default().mask(king, pov);
        for (square, piece) in board.clone() {
            out.push((square as u32 ^ mask) * 12 + (piece.role as u32 - 1) * 2 + u32::from(piece.color != own));
        }
    }

    /// Key of a block's context: two boards with the same key need no refresh between them.
    pub fn context(&self, _block: usize, _board: &Board, _pov: Perspective) -> u64 {
        0
    }

    /// The exact change a move makes; `out`'s vectors are cleared first.
    pub fn delta(&self, before: &Board, _change: &BoardChange, after: &Board, pov: Perspective, out: &mut Delta) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.active(before, pov, &mut a);
        self.active(after, pov, &mut b);
        a.sort_unstable();
        b.sort_unstable();
        out.added = b.iter().filter(|i| !a.contains(i)).copied().collect();
        out.removed = a.iter().filter(|i| !b.contains(i)).copied().collect();
        out.refresh = false;
    }
}
