//! From games to training samples: PGN and other formats in, `.fsd` files out.

mod record;

pub use record::{GameResult, Record, RecordError, Sample};

use serde::{Deserialize, Serialize};

/// What a network learns from: scores, or which of two positions a player chose.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The target is a score (and the game's result).
    Eval,
    /// Triplets: a position P, Q after the move played, R after a random other legal move.
    Pqr,
}

/// Which games of a data set are read: the split is by game, so that no game's positions stand on both sides.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Train,
    Validation,
    All,
}
