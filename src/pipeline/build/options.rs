//! What becomes a sample.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::{Method, Needs, Speed, Split};
use crate::units::Seed;

/// How many samples a game gives.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PerGame {
    All,
    /// So many at most, drawn uniformly from those that pass the filters.
    #[serde(rename = "at")]
    AtMost(u32),
}

/// Which positions are left out for being too lively for a static evaluation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    None,
    /// Positions in check and those whose move captures or promotes.
    Quiet,
}

/// Which samples count as the same, so that only the first is kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Dedup {
    /// The same board, side to move, castling rights and en passant square.
    Position,
    /// The same position and the same move.
    Move,
}

/// What a target distribution is over.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BalanceBy {
    Ply,
    /// Pieces on the board, kings included.
    Pieces,
}

/// A distribution that the samples are thinned to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    pub by: BalanceBy,
    /// Relative frequencies; none: every value that occurs as often as every other.
    pub weights: Option<BTreeMap<u16, f64>>,
}

/// The part of the games that is read.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GameSplit {
    pub split: Split,
    /// Share of the games kept for validation.
    pub validation: f64,
    pub seed: Seed,
}

/// What becomes a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildOptions {
    pub method: Method,
    /// eval: what a sample must hold.
    #[serde(default, skip_serializing_if = "Needs::is_score")]
    pub needs: Needs,
    pub seed: Seed,
    pub per_game: PerGame,
    pub min_ply: u16,
    #[serde(default)]
    pub max_ply: Option<u16>,
    pub filter: Filter,
    /// Fewest legal moves of a position; 0 and 1 keep all.
    pub min_moves: u16,
    /// Leaves out, ply by ply, positions with fewer legal moves than this quantile of all positions at that ply: the
    /// thesis's M.
    #[serde(default)]
    pub min_moves_quantile: Option<f64>,
    /// Largest |score| in centipawns; mates are larger than any.
    #[serde(default)]
    pub max_score: Option<u16>,
    /// Lowest rating of both players.
    #[serde(default)]
    pub min_rating: Option<u16>,
    /// Speeds of the games that are read; empty = all.
    #[serde(default)]
    pub speeds: Vec<Speed>,
    /// Keeps a sample with the result_probability of its game's result, given score and ply.
    #[serde(default)]
    pub skip_unlikely: bool,
    #[serde(default)]
    pub dedup: Option<Dedup>,
    #[serde(default)]
    pub balance: Option<Balance>,
    /// At most so many samples, drawn from all.
    #[serde(default)]
    pub samples: Option<u64>,
    #[serde(default, rename = "part")]
    pub split: Option<GameSplit>,
    /// Puts the samples into random order.
    #[serde(default)]
    pub shuffle: bool,
}

impl BuildOptions {
    /// The defaults for a method: for `eval` scored positions from ply 20 on, for `pqr` positions from the first on with
    /// at least two legal moves (the one played and another).
    #[must_use]
    pub const fn new(method: Method) -> BuildOptions {
        let (min_ply, min_moves) = match method {
            Method::Eval => (20, 0),
            Method::Pqr => (0, 2),
        };
        BuildOptions {
            method,
            needs: Needs::Score,
            seed: Seed(0),
            per_game: PerGame::All,
            min_ply,
            max_ply: None,
            filter: Filter::None,
            min_moves,
            min_moves_quantile: None,
            max_score: None,
            min_rating: None,
            speeds: Vec::new(),
            skip_unlikely: false,
            dedup: None,
            balance: None,
            samples: None,
            split: None,
            shuffle: false,
        }
    }

    /// Without the filters by ply, for samples that tell none.
    #[must_use]
    pub(super) fn of_any_ply(&self) -> BuildOptions {
        BuildOptions { min_ply: 0, max_ply: None, ..self.clone() }
    }

    /// Whether the samples must all be known before the first can be written.
    #[must_use]
    pub(super) fn two_passes(&self) -> bool {
        let later = self.balance.is_some() || self.dedup.is_some() || self.samples.is_some();
        later || self.min_moves_quantile.is_some() || self.shuffle
    }
}
