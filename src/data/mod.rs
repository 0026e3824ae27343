//! The store of games and samples: reads PGN and all sample formats, reads and writes `.fsd` files.
//!
//! [`games`] reads games; [`Fsd`] maps a `.fsd` file into memory; [`formats`] reads and writes the other formats.
//! Building, labelling and generating are in [`pipeline`](crate::pipeline).

mod content;
mod error;
mod files;
pub mod formats;
mod fsd;
mod input;
mod pgn;
mod record;
mod sample_class;
mod truncation;

pub use content::content_hash;
pub use error::DataError;
pub use files::DataFiles;
pub use formats::ScoreUnit;
pub use fsd::{Fsd, FsdHeader, FsdWriter, Provenance};
pub use input::{Compression, InputPath};
pub use pgn::{
    Eval, EvalOptions, EvalUnit, EvalView, Games, PgnGame, PgnNotes, PlayedMove, SkipReason, SkippedGame, SkippedGames,
    Speed, WholeNumbers, games,
};
pub use record::{GameResult, Record, RecordError, Sample};
pub use sample_class::{BREAKDOWNS, Breakdown, SampleContext};
pub use truncation::install_truncation_handler;

pub(crate) use fsd::{GameSet, VERSION as FSD_VERSION};
pub(crate) use input::{Input, hash_file, other_file};
#[cfg(feature = "report")]
pub(crate) use pgn::PgnWriter;
pub(crate) use pgn::{GameHeader, GameReader, GameVisitor, first_ply};
pub(crate) use record::CompactRecord;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Draws, Seed};

/// The training method: learn from scores, or from the moves that players chose.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The target is a score, a game's result, or a mixture of both.
    Eval,
    /// Learns from triplets: a position P, Q after the move played, R after another random legal move.
    Pqr,
}

impl Method {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Method::Eval => "eval",
            Method::Pqr => "pqr",
        }
    }
}

/// Which labels a sample must have for the method `eval`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Needs {
    /// A score.
    #[default]
    Score,
    /// The game's result, from which λ = 0 learns.
    Result,
    /// Both.
    Both,
    /// At least one of both.
    Any,
}

impl Needs {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Needs::Score => "score",
            Needs::Result => "result",
            Needs::Both => "both",
            Needs::Any => "any",
        }
    }

    /// The labels in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Needs::Score => "a score",
            Needs::Result => "a game result",
            Needs::Both => "a score and a game result",
            Needs::Any => "a score or a game result",
        }
    }

    /// Whether a record has the labels.
    #[inline]
    #[must_use]
    pub const fn met_by(self, record: &Record) -> bool {
        let score = record.score().is_some();
        let result = record.result().is_some();
        match self {
            Needs::Score => score,
            Needs::Result => result,
            Needs::Both => score && result,
            Needs::Any => score || result,
        }
    }

    pub(crate) const fn is_score(&self) -> bool {
        matches!(self, Needs::Score)
    }
}

/// The method for which the samples of a `.fsd` file were selected.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    Eval,
    Pqr,
    /// No method: the samples are unselected.
    Any,
}

impl Purpose {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Purpose::Eval => Method::Eval.name(),
            Purpose::Pqr => Method::Pqr.name(),
            Purpose::Any => "any",
        }
    }
}

impl From<Method> for Purpose {
    fn from(method: Method) -> Purpose {
        match method {
            Method::Eval => Purpose::Eval,
            Method::Pqr => Purpose::Pqr,
        }
    }
}

/// Which games of a data set are read. The split is by game, so no game's positions are on both sides.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Train,
    Validation,
    All,
}

impl Split {
    /// The share of games that are kept for validation by default.
    pub const VALIDATION_SHARE: f64 = 0.1;
}

/// Assigns each game to training or validation, by a hash of its number.
#[derive(Copy, Clone, Debug)]
pub struct SplitRule {
    draws: Draws,
    /// A game is for validation when its 64-bit draw lies below this.
    threshold: u128,
    /// Draws and threshold of the training games that are read; `None` = all.
    training: Option<(Draws, u128)>,
}

impl SplitRule {
    /// `validation` is the share of games kept for validation, in [0, 1].
    #[must_use]
    pub fn new(seed: Seed, validation: f64) -> SplitRule {
        SplitRule { draws: seed.draws("split"), threshold: threshold(validation), training: None }
    }

    /// The rule without the training games beyond this share of them, which are drawn by `seed`. A game of a share is in
    /// every larger share.
    #[must_use]
    pub fn with_training_share(self, seed: Seed, share: f64) -> SplitRule {
        let training = (share < 1.0).then(|| (seed.draws("training share"), threshold(share)));
        SplitRule { training, ..self }
    }

    #[must_use]
    pub fn contains(self, game: u32, split: Split) -> bool {
        let is_below = |(draws, threshold): (Draws, u128)| u128::from(draws.at(u64::from(game))) < threshold;
        let is_read = || self.training.is_none_or(is_below);
        match (split, is_below((self.draws, self.threshold))) {
            (Split::Train, true) | (Split::Validation, false) => false,
            (Split::Validation | Split::All, true) => true,
            (Split::Train | Split::All, false) => is_read(),
        }
    }
}

/// The 64-bit draws below it are this share of all.
fn threshold(share: f64) -> u128 {
    (share.clamp(0.0, 1.0) * 2f64.powi(64)) as u128
}

/// Whether `game` belongs to `split`, when the share `validation` of all games, drawn by `seed`, is kept for
/// validation. Use one [`SplitRule`] for many games.
#[must_use]
pub fn in_split(seed: Seed, validation: f64, game: u32, split: Split) -> bool {
    SplitRule::new(seed, validation).contains(game, split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_shares_are_nested_and_leave_validation_as_it_is() {
        let whole = SplitRule::new(Seed(1), 0.1);
        let of = |share: f64, split: Split| -> Vec<u32> {
            let rule = whole.with_training_share(Seed(1), share);
            (0..20_000).filter(|&game| rule.contains(game, split)).collect()
        };
        let in_split = |split| (0..20_000).filter(|&game| whole.contains(game, split)).collect::<Vec<u32>>();
        let shares = [0.03, 0.25, 0.5, 1.0].map(|share| of(share, Split::Train));
        for (share, larger) in shares.iter().zip(&shares[1..]) {
            assert!(share.iter().all(|game| larger.binary_search(game).is_ok()));
        }
        assert!((4_300..4_700).contains(&shares[1].len()), "{}", shares[1].len());
        assert_eq!(shares[3], in_split(Split::Train));
        assert_eq!(of(0.25, Split::Validation), in_split(Split::Validation));
        assert_eq!(of(0.25, Split::All).len(), shares[1].len() + in_split(Split::Validation).len());
    }

    #[test]
    fn the_split_is_a_partition_with_the_given_share() {
        let count = |validation, split| (0..20_000).filter(|&g| in_split(Seed(1), validation, g, split)).count();
        assert_eq!(count(0.1, Split::All), 20_000);
        assert_eq!(count(0.1, Split::Train) + count(0.1, Split::Validation), 20_000);
        assert!((1_850..2_150).contains(&count(0.1, Split::Validation)));
        assert_eq!(count(0.0, Split::Validation), 0);
        assert_eq!(count(1.0, Split::Train), 0);
        assert_ne!(
            (0..64).map(|g| in_split(Seed(1), 0.5, g, Split::Train)).collect::<Vec<_>>(),
            (0..64).map(|g| in_split(Seed(2), 0.5, g, Split::Train)).collect::<Vec<_>>()
        );
    }
}
