//! Plays games in parallel; each worker has engines of its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use super::book::Book;
use super::finished_game::FinishedGame;
use super::play::{PlayError, Players, play_game};
use super::{GenerateError, GenerateJob, GenerateSettings};
use crate::pipeline::uci::{Engine, UciError, Workers};

/// A game as a worker returns it.
struct WorkerResult {
    game: Result<FinishedGame, PlayError>,
    /// Whether an engine failed and the game was played again.
    replayed: bool,
}

/// Plays the games `numbers` with `job.workers`; `first` are engines that are already running. `keep` receives each
/// game when it ends, in no fixed order, and whether it was played again. `engine_error` makes the error of a failed
/// engine.
pub fn play_all(
    settings: &GenerateSettings,
    job: &GenerateJob,
    book: Option<&Book>,
    first: Vec<Engine>,
    numbers: &[u32],
    keep: &mut dyn FnMut(FinishedGame, bool) -> Result<(), GenerateError>,
    engine_error: &dyn Fn(UciError) -> GenerateError,
) -> Result<(), GenerateError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let play = |mut players: Players, sender: &Sender<WorkerResult>| {
        while !stop.load(Ordering::Relaxed)
            && let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let result = play_with_retry(&mut players, settings, book, *number);
            let failed = result.game.is_err();
            if sender.send(result).is_err() || failed {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let (sender, results) = channel();
        let mut first = Some(first);
        for _ in 0..job.workers.concurrency.clamp(1, numbers.len().clamp(1, Workers::MOST)) {
            let mut engines: Vec<Option<Engine>> = first.take().into_iter().flatten().map(Some).collect();
            engines.resize_with(job.engines.len(), || None);
            let players = Players { specs: &job.engines, answer_timeout: job.workers.answer_timeout, engines };
            let (sender, play) = (sender.clone(), &play);
            scope.spawn(move || play(players, &sender));
        }
        drop(sender);
        let mut outcome = Ok(());
        for WorkerResult { game, replayed } in results {
            let kept = match game {
                Ok(game) => keep(game, replayed),
                Err(PlayError::Engine(error)) => Err(engine_error(error)),
                Err(PlayError::Other(error)) => Err(error),
            };
            // Games in progress are still finished and kept; the first error is the one returned.
            if kept.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        outcome
    })
}

/// Plays a game; when an engine fails, plays it once more from its start with new engines.
fn play_with_retry(
    players: &mut Players,
    settings: &GenerateSettings,
    book: Option<&Book>,
    number: u32,
) -> WorkerResult {
    match play_game(players, settings, book, number) {
        Err(PlayError::Engine(error)) if !error.is_request() => {
            players.stop_engines();
            WorkerResult { game: play_game(players, settings, book, number), replayed: true }
        }
        game => WorkerResult { game, replayed: false },
    }
}
