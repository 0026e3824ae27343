//! The refresh rule: an accumulator is recomputed when the context of one of its blocks changes, and then only the part
//! that depends on a king (partial refresh). If fewer rows change than are active, the accumulator is updated instead.

use std::sync::Arc;

use crate::chess::{BoardChange, ByPerspective, Perspective, PieceBoard};
use crate::features::{Block, Delta, DeltaState, Encoder, FeatureSet};

/// Whether recomputing the `active` rows costs no more than updating the `changed` ones. A delta that lists no row at a
/// refresh leaves no choice: the contexts of all blocks changed.
pub const fn recomputes(delta: &Delta, changed: usize, active: usize) -> bool {
    delta.refresh && (changed == 0 || changed >= active)
}

/// The blocks of a set, split into those whose context hardly ever changes (stable), and the others (king-dependent).
/// The sums over both are kept apart, so that a refresh recomputes the second only.
#[derive(Clone)]
pub struct PartialRefresh {
    /// Stable, king-dependent.
    parts: [Arc<Encoder>; 2],
}

/// Blocks of at most this many contexts are stable beside blocks of more: those that change when a king crosses the
/// middle.
const FEW_CONTEXTS: u32 = 2;

impl PartialRefresh {
    /// `None` when the set lacks either kind of block.
    pub fn new(set: &FeatureSet) -> Option<PartialRefresh> {
        let contexts: Vec<u32> = set.blocks().iter().map(Block::contexts).collect();
        let few = |most: u32| contexts.iter().any(|contexts| *contexts <= most);
        let most = [FEW_CONTEXTS, 1].into_iter().find(|most| few(*most) && contexts.iter().any(|all| all > most))?;
        let (stable, dependent) = (0..contexts.len()).partition(|block| contexts[*block] <= most);
        let parts: [Vec<usize>; 2] = [stable, dependent];
        Some(PartialRefresh { parts: parts.map(|blocks| set.encoder().part(&blocks)) })
    }

    /// The encoder of the stable blocks.
    pub fn stable(&self) -> &Arc<Encoder> {
        &self.parts[0]
    }

    /// The encoder of the king-dependent blocks.
    pub fn dependent(&self) -> &Arc<Encoder> {
        &self.parts[1]
    }

    /// The change of both parts (stable, king-dependent) between two boards, whose states are given by part. A part
    /// whose context changes may list anything. `found` is told of changed features as soon as they are known, so that
    /// their rows can be loaded while others are looked for.
    pub fn diff(
        &self,
        boards: [&PieceBoard; 2],
        change: &BoardChange,
        [before, after]: [&mut [DeltaState; 2]; 2],
        out: &mut [ByPerspective<Delta>; 2],
        found: impl Fn(&[u32]),
    ) {
        let states = before.iter_mut().zip(after);
        for ((part, out), (before, after)) in self.parts.iter().zip(out).zip(states) {
            part.diff_or_refresh(boards, change, [before, after], out);
            for pov in Perspective::ALL {
                found(&out[pov].removed);
                found(&out[pov].added);
            }
        }
    }
}
