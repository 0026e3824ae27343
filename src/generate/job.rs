//! Which engines play how many games, and the checks of a request.

use super::GenerateError;
use crate::pipeline::generation::GenerateSettings;
use crate::pipeline::uci::{EngineSpec, Workers};

/// Which engines play how many games, and how. The games do not depend on `workers`.
#[derive(Clone, Debug)]
pub struct GenerateJob {
    /// The players: a single engine plays itself, several play each other (see [`Pairing`](crate::play::Pairing)).
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
