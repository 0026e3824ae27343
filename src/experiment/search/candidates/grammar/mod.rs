//! `[search.grammar]`: generated blocks. `families` enumerates them, one family for each source of variables.

mod families;

use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::SettingError;
use crate::units::{Seed, sort_by};

/// Bounds within which blocks are generated
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Grammar {
    /// Largest number of blocks; of more, as many are drawn from every source and order of magnitude; the smallest are
    /// tried first
    pub limit: usize,
    /// Largest number of features of a block
    pub max_features: u64,
    /// Largest number of pieces that a block names, besides the kings
    pub max_pieces: usize,
    /// Where blocks take their variables from
    pub sources: Vec<GrammarSource>,
    /// What blocks read of them
    pub axes: Vec<GrammarAxis>,
}

/// A source of variables.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrammarSource {
    /// Single pieces.
    Pieces,
    /// Two pieces, wherever they stand.
    Pairs,
    /// A piece and one that it attacks or protects.
    Targets,
    /// A piece and the next one in a direction.
    Next,
    /// A piece and a square to which it could move.
    Moves,
    /// A piece and a square that it attacks.
    Attacks,
    /// Numbers: of moves, of attackers, of pieces; passed, isolated, doubled and protected pawns.
    Counts,
}

/// What a block reads of a variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrammarAxis {
    /// Its square.
    Square,
    /// Its file.
    File,
    /// Its rank.
    Rank,
    /// Its diagonal.
    Diagonal,
    /// Its antidiagonal.
    Antidiagonal,
    /// The piece's role.
    Role,
    /// Whose piece it is.
    Color,
    /// The distance to a king, by file, by rank and by both.
    King,
}

impl Default for Grammar {
    fn default() -> Grammar {
        use GrammarAxis::{Antidiagonal, Color, Diagonal, File, King, Rank, Role, Square};
        use GrammarSource::{Attacks, Counts, Moves, Next, Pairs, Pieces, Targets};
        Grammar {
            limit: 100,
            max_features: 10_000,
            max_pieces: 3,
            sources: vec![Pieces, Pairs, Targets, Next, Moves, Attacks, Counts],
            axes: vec![Square, File, Rank, Diagonal, Antidiagonal, Role, Color, King],
        }
    }
}

/// A generated block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GeneratedBlock {
    text: String,
    /// Number of features.
    size: u64,
    /// Number of variables that are pieces.
    pieces: usize,
}

impl Grammar {
    /// The blocks as expressions, from small to large.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn blocks(&self, seed: Seed) -> Result<Vec<String>, SettingError> {
        let mut strata: Vec<Vec<GeneratedBlock>> =
            self.sources.iter().flat_map(|source| self.strata(*source)).collect();
        let mut rng = seed.stream("grammar", 0);
        strata.iter_mut().for_each(|blocks| blocks.shuffle(&mut rng));
        strata.shuffle(&mut rng);
        let mut drawn = Vec::new();
        while drawn.len() < self.limit && strata.iter().any(|blocks| !blocks.is_empty()) {
            let left = self.limit - drawn.len();
            drawn.extend(strata.iter_mut().filter_map(Vec::pop).take(left));
        }
        if drawn.is_empty() {
            return Err(self.yields_nothing());
        }
        sort_by(&mut drawn, &|a, b| (a.size, &a.text).cmp(&(b.size, &b.text)));
        drawn.dedup();
        Ok(drawn.into_iter().map(|block| block.text).collect())
    }

    /// The blocks of a source within the bounds; each list has sizes of one order of magnitude.
    fn strata(&self, source: GrammarSource) -> Vec<Vec<GeneratedBlock>> {
        let order = |block: &GeneratedBlock| block.size.ilog10();
        let mut blocks = families::blocks(source, &self.axes);
        blocks.retain(|block| (2..=self.max_features).contains(&block.size) && block.pieces <= self.max_pieces);
        sort_by(&mut blocks, &|a, b| (a.size, &a.text).cmp(&(b.size, &b.text)));
        blocks.dedup();
        blocks.chunk_by(|a, b| order(a) == order(b)).map(<[GeneratedBlock]>::to_vec).collect()
    }

    fn yields_nothing(&self) -> SettingError {
        let Grammar { limit, max_features, max_pieces, .. } = self;
        let message = format!(
            "the grammar yields no block: limit is {limit}, and a block has 2 to {max_features} features and at most \
             {max_pieces} pieces; raise these bounds, or add sources or axes"
        );
        SettingError::new("grammar", message)
    }
}
