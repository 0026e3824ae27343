//! The options of a build: which positions become samples.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{Method, Needs, Speed, Split};
use crate::settings::{SettingError, check_all};
use crate::units::{Seed, SortedMap};

/// How many samples each game gives. In files, a number; left out or null for all.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub enum PerGame {
    #[default]
    All,
    /// At most this many, drawn uniformly from the positions that pass the filters.
    AtMost(u32),
}

impl From<Option<u32>> for PerGame {
    fn from(most: Option<u32>) -> PerGame {
        most.map_or(PerGame::All, PerGame::AtMost)
    }
}

impl From<PerGame> for Option<u32> {
    fn from(per_game: PerGame) -> Option<u32> {
        match per_game {
            PerGame::All => None,
            PerGame::AtMost(most) => Some(most),
        }
    }
}

impl Display for PerGame {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PerGame::All => f.write_str("all"),
            PerGame::AtMost(most) => most.fmt(f),
        }
    }
}

impl FromStr for PerGame {
    type Err = String;

    fn from_str(text: &str) -> Result<PerGame, String> {
        match text {
            "all" => Ok(PerGame::All),
            _ => text.parse().map(PerGame::AtMost).map_err(|_| "give `all` or a number from 1 on".into()),
        }
    }
}

/// Which positions are left out because a static evaluation cannot judge them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    #[default]
    None,
    /// Positions in check and positions whose move captures or promotes.
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

/// A distribution to which the samples are thinned
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// What is to be equally frequent
    pub by: BalanceBy,
    /// Relative frequencies by value [default: all values that occur are equally frequent]
    pub weights: Option<SortedMap<u16, f64>>,
}

impl Balance {
    /// Parses `ply` or `pieces`, optionally followed by a colon and a file of weights.
    ///
    /// # Errors
    /// When the text is neither, or the file cannot be read, as a sentence.
    pub fn parse(text: &str) -> Result<Balance, String> {
        let (by, file) = text.split_once(':').map_or((text, None), |(by, file)| (by, Some(file)));
        let by = match by {
            "ply" => BalanceBy::Ply,
            "pieces" => BalanceBy::Pieces,
            _ => return Err("give ply or pieces, optionally followed by a colon and a file of weights".into()),
        };
        let weights = file.map(|file| read_weights(Path::new(file))).transpose()?;
        Ok(Balance { by, weights })
    }
}

/// Reads lines of a value and its weight; skips empty lines and `#` comments.
fn read_weights(path: &Path) -> Result<SortedMap<u16, f64>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut weights = SortedMap::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{}, line {}", path.display(), index + 1);
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let (value, weight) = match words[..] {
            [] => continue,
            [value, weight] => (value.parse::<u16>().ok(), weight.parse::<f64>().ok()),
            _ => (None, None),
        };
        let (Some(value), Some(weight)) = (value, weight.filter(|weight| *weight >= 0.0 && weight.is_finite())) else {
            return Err(format!("{place}: expected a number and its weight"));
        };
        if weights.insert(value, weight).is_some() {
            return Err(format!("{place}: {value} has a weight already"));
        }
    }
    if weights.values().any(|weight| *weight > 0.0) {
        return Ok(weights);
    }
    Err(format!("{}: all weights are zero or missing", path.display()))
}

/// The side of the split into training and validation games that is used
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GameSplit {
    /// Use only the games of one side of the split, as the trainer makes it
    #[arg(long, value_enum, required = false)]
    pub split: Split,
    /// Share of the games kept for validation
    #[arg(long, value_name = "X", default_value_t = Split::VALIDATION_SHARE, requires = "split")]
    #[serde(default = "validation_share")]
    pub validation: f64,
    /// Seed of the choice of validation games
    #[arg(long = "split-seed", id = "split_seed", value_name = "S", default_value_t, requires = "split")]
    #[serde(default)]
    pub seed: Seed,
}

const fn validation_share() -> f64 {
    Split::VALIDATION_SHARE
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

/// Which positions of the games become samples
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[command(next_help_heading = "Which positions")]
#[serde(default, deny_unknown_fields)]
pub struct BuildOptions {
    /// What the samples are for: learning from scores (eval) or from chosen moves (pqr)
    #[arg(long, value_enum)]
    pub method: Method,
    /// What a sample for eval must hold; games without scores can be used for training with λ = 0, which needs results
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    #[serde(skip_serializing_if = "Needs::is_score")]
    pub needs: Needs,
    /// Seed of all random choices
    #[arg(long, value_name = "S", default_value_t)]
    pub seed: Seed,
    /// Largest number of samples per game, drawn at random [default: all]
    #[arg(long, value_name = "N|all", default_value_t, hide_default_value = true)]
    pub per_game: PerGame,
    /// Leave out positions before this ply
    #[arg(long, value_name = "PLY", default_value_t)]
    pub min_ply: u16,
    /// Leave out positions after this ply
    #[arg(long, value_name = "PLY")]
    pub max_ply: Option<u16>,
    /// Which positions to leave out; quiet: positions in check, and those whose move captures or promotes
    #[arg(long, value_enum, default_value_t)]
    pub filter: Filter,
    /// Leave out positions with fewer legal moves [default: 0 for eval, 2 for pqr]
    #[arg(long, value_name = "N")]
    pub min_moves: Option<u16>,
    /// Leave out positions with fewer legal moves than this quantile of all positions at the same ply, as 0.1
    #[arg(long, value_name = "Q")]
    pub min_moves_quantile: Option<f64>,
    /// Leave out positions with a larger score, in centipawns, and all mate scores
    #[arg(long, value_name = "CP")]
    pub max_score: Option<u16>,
    /// Leave out games with a player of a lower or unknown rating
    #[arg(long, value_name = "ELO")]
    pub min_rating: Option<u16>,
    /// Use only games of these speeds, according to their TimeControl tags [default: all]
    #[arg(long = "speed", value_name = "SPEED,…", value_enum, value_delimiter = ',')]
    pub speeds: Vec<Speed>,
    /// Keep each sample with the probability of its game's result, given its score and ply
    #[arg(long)]
    pub skip_unlikely: bool,
    /// Keep only the first of several samples with the same position, or the same position and move
    #[arg(long, value_enum, value_name = "WHAT")]
    pub dedup: Option<Dedup>,
    /// Thin the samples until all plies, or numbers of pieces, are equally frequent, or have given frequencies
    #[arg(long, value_name = "ply|pieces[:FILE]", value_parser = Balance::parse,
        help = "Thin the samples until all plies, or numbers of pieces, are equally frequent, or have the frequencies \
                in FILE, whose lines are `VALUE WEIGHT`")]
    pub balance: Option<Balance>,
    /// At most N samples, drawn from all; where samples are balanced, values too rare for their frequency keep all of
    /// theirs. An engine scores only those drawn, unless a largest score or the skipping of unlikely results needs the
    /// scores of all
    #[arg(long, value_name = "N")]
    pub samples: Option<u64>,
    #[command(flatten)]
    pub split: Option<GameSplit>,
    /// Write the samples in random order
    #[arg(long)]
    pub shuffle: bool,
}

impl Default for BuildOptions {
    fn default() -> BuildOptions {
        BuildOptions::new(Method::Eval)
    }
}

impl BuildOptions {
    /// The defaults for a method leave out only what cannot be a sample of it, whatever the source: for `eval`
    /// positions without a score; for `pqr` positions with fewer than two legal moves (the move played and another).
    #[must_use]
    pub const fn new(method: Method) -> BuildOptions {
        BuildOptions {
            method,
            needs: Needs::Score,
            seed: Seed(0),
            per_game: PerGame::All,
            min_ply: 0,
            max_ply: None,
            filter: Filter::None,
            min_moves: None,
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

    /// Fewest legal moves of a position; 0 keeps all, and 1 all that have a move.
    #[must_use]
    pub const fn min_moves(&self) -> u16 {
        match (self.min_moves, self.method) {
            (Some(moves), _) => moves,
            (None, Method::Eval) => 0,
            (None, Method::Pqr) => 2,
        }
    }

    /// # Errors
    /// If an option is out of range, or contradicts another.
    pub fn check(&self) -> Result<(), SettingError> {
        let split = self.split.map_or(0.0, |split| split.validation);
        check_all(&[
            (
                "per_game",
                self.per_game != PerGame::AtMost(0),
                "the number of samples per game must be at least 1; leave it out for all",
            ),
            (
                "min_moves",
                self.method != Method::Pqr || self.min_moves() >= 2,
                "the number of legal moves must be at least 2 for pqr: R needs a legal move beside the one played",
            ),
            (
                "min_moves_quantile",
                self.min_moves_quantile.is_none_or(|quantile| (0.0..1.0).contains(&quantile)),
                "the quantile of legal moves must lie between 0 and 1, 1 excluded",
            ),
            (
                "needs",
                self.method != Method::Pqr || self.needs == Needs::default(),
                "what a sample needs can be chosen for eval only; pqr learns from moves",
            ),
            (
                "max_ply",
                self.max_ply.is_none_or(|last| last >= self.min_ply),
                &format!("the last ply is less than the first, {}", self.min_ply),
            ),
            ("split.validation", (0.0..=1.0).contains(&split), "the validation share must lie between 0 and 1"),
        ])
    }

    /// Whether the samples are all that the method can use, in their order: no option leaves out or changes any.
    #[must_use]
    pub(in crate::pipeline) fn keeps_all(&self) -> bool {
        let default = BuildOptions::new(self.method);
        let all = BuildOptions { needs: self.needs, seed: self.seed, min_moves: self.min_moves, ..default.clone() };
        *self == all && self.min_moves() == default.min_moves()
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

    /// Whether a sample may be dropped for its score, beside samples without a score.
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
