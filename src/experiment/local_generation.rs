//! Plays the games of a loop in this process.

use super::executor::{GenerationRequest, StepError};
use super::runner_options::ExperimentMonitor;
use crate::data::content_hash;
use crate::generate::{GenerateError, GenerateJob, generate};
use crate::net::NetFile;
use crate::pipeline::uci::Workers;
use crate::play::{NetworkPlayer, PlayError, Player};
use crate::record::{GeneratedGames, machine};

/// Plays games of a network against itself, or goes on with them; `None` if the monitor stopped it.
pub(super) fn play_games(
    request: &GenerationRequest<'_>,
    monitor: &dyn ExperimentMonitor,
) -> Result<Option<GeneratedGames>, StepError> {
    let network = NetworkPlayer::of(&NetFile::load(request.network)?)?;
    let player = Player::network("network", network);
    let concurrency = request.concurrency.map_or_else(machine::cores, usize::from);
    let job = GenerateJob {
        workers: Workers { concurrency, ..Workers::default() },
        hash: request.hash,
        ..GenerateJob::new(vec![player], request.goal)
    };
    let interrupted = || monitor.stop_requested();
    let progress = &mut |progress: &_| monitor.generated(progress);
    let summary = match generate(request.settings, &job, request.out, &interrupted, progress) {
        Ok(summary) => summary,
        Err(GenerateError::Play(PlayError::Stopped)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(GeneratedGames {
        games: summary.games.into(),
        positions: summary.positions,
        plies: summary.plies,
        results: summary.results,
        hash: content_hash(request.out)?,
        seconds: 0.0,
    }))
}
