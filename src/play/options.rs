//! The settings of a match that `fsbench match` and the `[match]` of an experiment have in common.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adjudication::Adjudication;
use super::fixtures::TournamentType;
use super::limit::MoveLimit;
use super::player::PlayerSetup;
use super::settings::MatchSettings;
use crate::alpha_beta::TranspositionTable;
use crate::pipeline::generation::BookSource;
use crate::settings::{SettingError, check_all};
use crate::units::Seed;

/// What is played, and how, whoever the players are and however long they think.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[command(next_help_heading = "Games")]
#[serde(default, deny_unknown_fields)]
pub struct MatchOptions {
    /// Openings: a file of EPD or FEN lines, or of PGN games, plain or compressed [default: the 2,000 balanced openings
    /// that come with fsbench]
    #[arg(long, value_name = "FILE")]
    pub openings: Option<PathBuf>,
    /// Moves taken from each game of a PGN file [default: all]
    #[arg(long, value_name = "N")]
    pub opening_plies: Option<u16>,
    /// Game pairs for every two players; the most that are played where a test or an interval's width ends the match
    /// earlier [default: 100]
    #[arg(long, value_name = "N")]
    pub pairs: Option<u64>,
    /// End games that both players call decided or level; else the rules end every game
    #[arg(long = "no-adjudication", action = clap::ArgAction::SetFalse,
        help = "Play every game until the rules end it, whatever the scores")]
    pub adjudication: bool,
    /// Seed of the order of openings; an experiment adds the seed of the training
    #[arg(long, value_name = "S", default_value_t)]
    pub seed: Seed,
    /// Games played at the same time, which changes none of them [default: the number of cores]
    #[arg(long, value_name = "K")]
    pub concurrency: Option<u16>,
    /// Size of each player's hash table in MiB
    #[arg(long, value_name = "MIB", default_value_t = MatchOptions::default().hash)]
    pub hash: u32,
}

impl Default for MatchOptions {
    fn default() -> MatchOptions {
        MatchOptions {
            openings: None,
            opening_plies: None,
            pairs: None,
            adjudication: true,
            seed: Seed::default(),
            concurrency: None,
            hash: TranspositionTable::DEFAULT_MEGABYTES as u32,
        }
    }
}

impl MatchOptions {
    /// Game pairs of a match that nothing ends earlier.
    pub const DEFAULT_PAIRS: u64 = 100;
    /// Largest number of pairs that can be asked for.
    pub const MOST_PAIRS: u64 = 10_000_000;
    const MOST_GAMES_AT_ONCE: u16 = 1024;

    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.pairs.unwrap_or(MatchOptions::DEFAULT_PAIRS)
    }

    /// # Errors
    /// If a number is out of range, or the moves of an opening are limited without a book of games.
    pub fn check(&self) -> Result<(), SettingError> {
        let most_pairs = MatchOptions::MOST_PAIRS;
        let most_games = MatchOptions::MOST_GAMES_AT_ONCE;
        let most_hash = TranspositionTable::MAX_MEGABYTES as u32;
        check_all(&[
            (
                "pairs",
                (1..=most_pairs).contains(&self.pairs()),
                &format!("pairs must lie between 1 and {most_pairs}, not at {}", self.pairs()),
            ),
            (
                "opening_plies",
                self.openings.is_some() || self.opening_plies.is_none(),
                "the moves of an opening are those of a book of games: the openings that come with fsbench are \
                 positions; name a book as `openings`",
            ),
            (
                "hash",
                (1..=most_hash).contains(&self.hash),
                &format!("hash must lie between 1 and {most_hash} MiB, not at {}", self.hash),
            ),
            (
                "concurrency",
                self.concurrency.is_none_or(|games| (1..=most_games).contains(&games)),
                &format!("concurrency must lie between 1 and {most_games}"),
            ),
        ])
    }

    /// The settings of a match between everyone and everyone, with this book.
    #[must_use]
    pub fn settings(&self, limit: MoveLimit, openings: BookSource) -> MatchSettings {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        MatchSettings {
            limit,
            tournament: TournamentType::RoundRobin,
            pairs: self.pairs(),
            openings,
            opening_plies: self.opening_plies,
            book_part: None,
            seed: self.seed,
            adjudication: self.adjudication.then(Adjudication::default),
            sprt: None,
            setup: PlayerSetup { hash: self.hash, patience: Duration::ZERO, overhead: Duration::ZERO },
            concurrency: self.concurrency.map_or(cores, usize::from),
        }
    }
}
