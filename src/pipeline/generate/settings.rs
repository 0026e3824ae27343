//! The settings that the games depend on, and the job: engines, number of games, workers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GenerateError;
use super::book::BookSpec;
use crate::pipeline::uci::{EngineSpec, SearchLimit, Workers};
use crate::units::Seed;

/// The settings that a game depends on, besides its number and the engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerateSettings {
    pub limit: SearchLimit,
    pub seed: Seed,
    /// The opening book; games begin at the initial position without one.
    pub book: Option<BookSpec>,
    /// Least and largest number of random moves after the opening.
    pub random_plies: (u16, u16),
    /// Probability that a later move is random too; its position is searched anyway.
    pub random_move_rate: f64,
    /// No move is random from this ply on, counted from the game's start position.
    pub random_move_until: Option<u16>,
    pub adjudication: Adjudication,
}

impl GenerateSettings {
    /// Games from the initial position with 4 to 10 random moves, and none after these.
    #[must_use]
    pub fn new(limit: SearchLimit, seed: Seed) -> GenerateSettings {
        GenerateSettings {
            limit,
            seed,
            book: None,
            random_plies: (4, 10),
            random_move_rate: 0.0,
            random_move_until: None,
            adjudication: Adjudication::default(),
        }
    }
}

/// When a game is adjudicated. Plies are counted from the game's start position.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Adjudication {
    /// Longer games are draws.
    pub max_plies: u16,
    /// A win after `win_plies` scores in a row of at least `win_score` centipawns for the same side.
    pub win_score: u16,
    pub win_plies: u16,
    /// A draw after `draw_plies` scores in a row of at most `draw_score` centipawns, from ply `draw_from` on.
    pub draw_score: u16,
    pub draw_plies: u16,
    pub draw_from: u16,
}

impl Default for Adjudication {
    fn default() -> Adjudication {
        Adjudication { max_plies: 300, win_score: 1000, win_plies: 5, draw_score: 10, draw_plies: 10, draw_from: 70 }
    }
}

/// Which engines play how many games, and how. The games do not depend on `workers`.
#[derive(Clone, Debug)]
pub struct GenerateJob {
    /// The players: a single engine plays itself, several play each other (see [`Pairing`](super::Pairing)).
    pub engines: Vec<EngineSpec>,
    pub games: u32,
    /// Games played at once; each has its own engine processes.
    pub workers: Workers,
    /// The command line, for the manifest of a `.fsd` file.
    pub command: Vec<String>,
}

impl GenerateJob {
    /// A job with one worker and no command line.
    #[must_use]
    pub fn new(engines: Vec<EngineSpec>, games: u32) -> GenerateJob {
        GenerateJob { engines, games, workers: Workers::default(), command: Vec::new() }
    }
}

/// The moves of longer games would not fit a pipe's buffer, and writing them to an engine that hangs would block.
const LONGEST_GAME: u16 = 10_000;

/// Checks the settings and the job.
pub fn check(settings: &GenerateSettings, job: &GenerateJob) -> Result<(), GenerateError> {
    let request = |text: String| Err(GenerateError::Request(text));
    let GenerateSettings { limit, random_plies, random_move_rate, adjudication, .. } = settings;
    if !limit.reproducible() {
        return request("games must be reproducible: limit the searches by nodes or depth, not by time".into());
    }
    if limit.is_empty() {
        return request("a search needs at least one node or ply".into());
    }
    if !(0.0..=1.0).contains(random_move_rate) {
        return request("--random-move-rate must lie between 0 and 1".into());
    }
    if random_plies.0 > random_plies.1 {
        return request("--random-plies A..B needs A at most B".into());
    }
    if random_plies.1 > adjudication.max_plies {
        return request("--random-plies must not exceed --max-plies".into());
    }
    if adjudication.max_plies > LONGEST_GAME {
        return request(format!("--max-plies must be at most {LONGEST_GAME}"));
    }
    if job.games == 0 {
        return request("--games must be at least 1".into());
    }
    if job.engines.is_empty() {
        return request("give an engine with --engine".into());
    }
    Ok(())
}
