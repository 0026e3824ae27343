//! The arguments of `fsbench dataset build` that choose which positions become samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::data::{Method, Needs, Speed, Split};
use crate::pipeline::BuildOptions;
use crate::pipeline::build::{Balance, BalanceBy, Dedup, Filter, GameSplit, PerGame};
use crate::units::Seed;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which positions")]
pub struct Filters {
    /// What a sample for eval must hold; games without scores can be used for training with --lambda 0, which needs
    /// results
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    needs: Needs,
    /// Samples per game: `all`, or a number of positions drawn at random
    #[arg(long, value_name = "N", default_value = "all", value_parser = per_game)]
    per_game: PerGame,
    /// Leave out positions before this ply
    #[arg(long, value_name = "PLY", default_value_t = 0)]
    min_ply: u16,
    /// Leave out positions after this ply
    #[arg(long, value_name = "PLY")]
    max_ply: Option<u16>,
    /// `quiet` leaves out positions in check and those whose move captures or promotes
    #[arg(long, value_enum, default_value = "none")]
    filter: Filter,
    /// Leave out positions with fewer legal moves than a number, or than a quantile such as 10% of all positions at the
    /// same ply [default: 0 for eval, 2 for pqr]
    #[arg(long, value_name = "N|Q%", value_parser = moves)]
    min_moves: Option<MinMoves>,
    /// Leave out positions with a larger score, in centipawns, and all mate scores
    #[arg(long, value_name = "CP")]
    max_score: Option<u16>,
    /// Leave out games with a player of a lower or unknown rating
    #[arg(long, value_name = "ELO")]
    min_rating: Option<u16>,
    /// Use only games of these speeds, according to their TimeControl tags
    #[arg(long, value_name = "SPEED,…", value_enum, value_delimiter = ',')]
    speed: Vec<Speed>,
    /// Keep each sample with the probability of its game's result, given its score and ply
    #[arg(long)]
    skip_unlikely: bool,
    /// Keep only the first of several samples with the same position, or the same position and move
    #[arg(long, value_enum, value_name = "WHAT")]
    dedup: Option<Dedup>,
    /// Thin the samples until all plies, or numbers of pieces, are equally frequent, or have the frequencies in FILE,
    /// whose lines are `VALUE WEIGHT`
    #[arg(long, value_name = "ply|pieces[:FILE]")]
    balance: Option<String>,
    /// At most N samples, drawn from all; with --balance, values too rare for their frequency keep all their samples. An
    /// engine scores only those drawn, unless --max-score or --skip-unlikely needs the scores of all
    #[arg(long, value_name = "N")]
    samples: Option<u64>,
    /// Use only the games of one side of the split, as the trainer makes it
    #[arg(long, value_enum)]
    split: Option<Split>,
    /// Share of the games kept for validation
    #[arg(long, value_name = "X", default_value_t = 0.1, requires = "split")]
    validation: f64,
    /// Seed of the choice of validation games
    #[arg(long, value_name = "S", default_value_t = 0, requires = "split")]
    split_seed: u64,
    /// Write the samples in random order
    #[arg(long)]
    shuffle: bool,
}

#[derive(Copy, Clone, Debug)]
enum MinMoves {
    AtLeast(u16),
    Quantile(f64),
}

fn per_game(text: &str) -> Result<PerGame, String> {
    match text {
        "all" => Ok(PerGame::All),
        _ => match text.parse() {
            Ok(count) if count > 0 => Ok(PerGame::AtMost(count)),
            _ => Err("give `all` or a number from 1 on".into()),
        },
    }
}

fn moves(text: &str) -> Result<MinMoves, String> {
    let found = match text.strip_suffix('%') {
        Some(share) => {
            share.parse().ok().filter(|share| (0.0..100.0).contains(share)).map(|q| MinMoves::Quantile(q / 100.0))
        }
        None => text.parse().ok().map(MinMoves::AtLeast),
    };
    found.ok_or_else(|| "give a number of moves, or a share from 0% to below 100%".into())
}

impl Filters {
    /// # Errors
    /// Settings that contradict each other, or a file of weights that cannot be read.
    pub fn options(&self, method: Method, seed: Seed) -> Result<BuildOptions> {
        let defaults = BuildOptions::new(method);
        let (min_moves, min_moves_quantile) = match self.min_moves {
            None => (defaults.min_moves, None),
            Some(MinMoves::AtLeast(moves)) => (moves, None),
            Some(MinMoves::Quantile(quantile)) => (defaults.min_moves, Some(quantile)),
        };
        if method == Method::Pqr && min_moves < 2 {
            bail!("--min-moves must be at least 2 for pqr: R needs a legal move beside the one played");
        }
        if method == Method::Pqr && self.needs != Needs::default() {
            bail!("--needs applies to --method eval only; pqr learns from moves");
        }
        if self.max_ply.is_some_and(|last| last < self.min_ply) {
            bail!("--max-ply is less than the first ply, {}", self.min_ply);
        }
        if !(0.0..=1.0).contains(&self.validation) {
            bail!("--validation must lie between 0 and 1");
        }
        let split =
            self.split.map(|split| GameSplit { split, validation: self.validation, seed: Seed(self.split_seed) });
        Ok(BuildOptions {
            method,
            needs: self.needs,
            seed,
            per_game: self.per_game,
            min_ply: self.min_ply,
            max_ply: self.max_ply,
            filter: self.filter,
            min_moves,
            min_moves_quantile,
            max_score: self.max_score,
            min_rating: self.min_rating,
            speeds: self.speed.clone(),
            skip_unlikely: self.skip_unlikely,
            dedup: self.dedup,
            balance: self.balance.as_deref().map(balance).transpose()?,
            samples: self.samples,
            split,
            shuffle: self.shuffle,
        })
    }
}

fn balance(text: &str) -> Result<Balance> {
    let (by, file) = text.split_once(':').map_or((text, None), |(by, file)| (by, Some(PathBuf::from(file))));
    let by = match by {
        "ply" => BalanceBy::Ply,
        "pieces" => BalanceBy::Pieces,
        _ => bail!("--balance {text}: give ply or pieces, optionally followed by a colon and a file of weights"),
    };
    Ok(Balance { by, weights: file.as_deref().map(weights).transpose()? })
}

/// Reads lines of a value and its weight; skips empty lines and `#` comments.
fn weights(path: &Path) -> Result<BTreeMap<u16, f64>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut weights = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let weight = match words[..] {
            [] => continue,
            [value, weight] => {
                value.parse().ok().zip(weight.parse::<f64>().ok().filter(|w| *w >= 0.0 && w.is_finite()))
            }
            _ => None,
        };
        let place = || format!("{}, line {}", path.display(), number + 1);
        let (value, weight) = weight.ok_or_else(|| anyhow!("{}: expected a number and its weight", place()))?;
        if weights.insert(value, weight).is_some() {
            bail!("{}: {value} has a weight already", place());
        }
    }
    if weights.values().any(|weight| *weight > 0.0) {
        Ok(weights)
    } else {
        bail!("{}: all weights are zero or missing", path.display())
    }
}
