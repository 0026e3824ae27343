//! The options of a build: which positions become samples.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{Method, Needs, Speed, Split};
use crate::units::Seed;

/// How many samples each game gives.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PerGame {
    All,
    /// At most this many, drawn uniformly from the positions that pass the filters.
    #[serde(rename = "at")]
    AtMost(u32),
}

/// Which positions are left out because a static evaluation cannot judge them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    None,
    /// Positions in check and those whose move captures or promotes.
    Quiet,
}

/// Which samples count as equal, so that only the first is kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dedup {
    /// Board, side to move, castling rights and en passant square are equal.
    Position,
    /// Position and move are equal.
    Move,
}

/// The property of a position whose distribution is balanced.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BalanceBy {
    Ply,
    /// Pieces on the board, kings included.
    Pieces,
}

/// A target distribution that the samples are thinned to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Balance {
    pub by: BalanceBy,
    /// Relative frequencies by value; without them all values that occur are equally frequent.
    pub weights: Option<BTreeMap<u16, f64>>,
}

/// The side of the split into training and validation games that is read.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GameSplit {
    pub split: Split,
    /// Share of the games kept for validation.
    pub validation: f64,
    pub seed: Seed,
}

impl GameSplit {
    /// Whether a file of this side's games has none of `other`.
    #[must_use]
    pub fn excludes(&self, other: &GameSplit) -> bool {
        let same_draw = self.seed == other.seed;
        match (self.split, other.split) {
            (Split::Train, Split::Validation) => same_draw && other.validation <= self.validation,
            (Split::Validation, Split::Train) => same_draw && other.validation >= self.validation,
            _ => false,
        }
    }
}

/// Which positions become samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildOptions {
    pub method: Method,
    /// What a sample for the method `eval` must hold.
    #[serde(default, skip_serializing_if = "Needs::is_score")]
    pub needs: Needs,
    pub seed: Seed,
    pub per_game: PerGame,
    /// Leaves out positions before this ply.
    pub min_ply: u16,
    pub max_ply: Option<u16>,
    pub filter: Filter,
    /// Fewest legal moves of a position; 0 and 1 keep all.
    pub min_moves: u16,
    /// Leaves out positions with fewer legal moves than this quantile of all positions at the same ply.
    pub min_moves_quantile: Option<f64>,
    /// Largest |score| in centipawns; mate scores always exceed it.
    pub max_score: Option<u16>,
    /// Lowest rating of both players.
    pub min_rating: Option<u16>,
    /// Speeds of the games that are read; empty = all.
    pub speeds: Vec<Speed>,
    /// Keeps a sample with the probability of its game's result, given the score and the ply.
    pub skip_unlikely: bool,
    pub dedup: Option<Dedup>,
    pub balance: Option<Balance>,
    /// At most this many samples, drawn from all.
    pub samples: Option<u64>,
    #[serde(rename = "part")]
    pub split: Option<GameSplit>,
    /// Puts the samples into random order.
    pub shuffle: bool,
}

impl BuildOptions {
    /// The defaults for a method leave out only what cannot be a sample of it, whatever the source: for `eval` positions
    /// without a score; for `pqr` those with fewer than two legal moves (the one played and another).
    #[must_use]
    pub const fn new(method: Method) -> BuildOptions {
        let min_moves = match method {
            Method::Eval => 0,
            Method::Pqr => 2,
        };
        BuildOptions {
            method,
            needs: Needs::Score,
            seed: Seed(0),
            per_game: PerGame::All,
            min_ply: 0,
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

    /// Whether the samples are all that the method can use, in their order: no option leaves out or changes any.
    #[must_use]
    pub(in crate::pipeline) fn keeps_all(&self) -> bool {
        let all = BuildOptions { needs: self.needs, seed: self.seed, ..BuildOptions::new(self.method) };
        *self == all
    }

    /// The options without the filters by ply, for formats that do not record it.
    #[must_use]
    pub(super) fn without_ply_filters(&self) -> BuildOptions {
        BuildOptions { min_ply: 0, max_ply: None, ..self.clone() }
    }

    /// The option that needs the ply of every sample, if one is set.
    #[must_use]
    pub(super) fn needs_plies(&self) -> Option<&'static str> {
        let balances_plies = self.balance.as_ref().is_some_and(|balance| balance.by == BalanceBy::Ply);
        let options = [(self.skip_unlikely, "--skip-unlikely"), (balances_plies, "--balance ply")];
        options.into_iter().find_map(|(is_set, name)| is_set.then_some(name))
    }

    /// Whether samples are drawn to a number or a distribution.
    #[must_use]
    pub(super) const fn thins(&self) -> bool {
        self.balance.is_some() || self.samples.is_some()
    }

    /// Whether a sample may be dropped for its score, beside one that has none.
    #[must_use]
    pub(super) const fn drops_by_score(&self) -> bool {
        self.max_score.is_some() || self.skip_unlikely
    }

    /// Whether all samples must be read before the first can be written.
    #[must_use]
    pub(super) fn needs_all_samples(&self) -> bool {
        self.thins() || self.dedup.is_some() || self.min_moves_quantile.is_some() || self.shuffle
    }
}
