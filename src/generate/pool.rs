//! Plays games in parallel; each worker has engines of its own. A game that an engine spoils is played once more, then
//! dropped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use super::finished_game::FinishedGame;
use super::play::{PlayError, Players, play_game};
use super::{GenerateError, GenerateJob};
use crate::pipeline::generation::GenerateSettings;
use crate::pipeline::uci::{Engine, FaultLog, UciError, Useless, Workers};
use crate::play::Book;

/// A game as a worker returns it.
struct WorkerResult {
    number: u32,
    game: Result<FinishedGame, PlayError>,
    /// Whether an engine failed and the game was played again.
    replayed: bool,
}

/// A game that an engine spoiled twice.
pub struct DroppedGame {
    pub number: u32,
    pub error: UciError,
}

/// Receives games as they end, in no fixed order.
pub trait GameKeeper {
    /// `replayed`: the game was played again, since an engine failed in it.
    fn finished(&mut self, game: FinishedGame, replayed: bool) -> Result<(), GenerateError>;
    fn dropped(&mut self, game: DroppedGame) -> Result<(), GenerateError>;
    /// The error of an engine that cannot be started, or that spoiled so many games in a row.
    fn engine_error(&self, error: UciError, failures: u64) -> GenerateError;
}

/// Plays the games `numbers` with `job.workers`; `first` are engines that are already running. `has_worked`: by engine,
/// whether it has finished a game of an interrupted run.
pub fn play_all(
    settings: &GenerateSettings,
    job: &GenerateJob,
    book: Option<&Book>,
    first: Vec<Engine>,
    numbers: &[u32],
    has_worked: &[bool],
    keeper: &mut dyn GameKeeper,
) -> Result<(), GenerateError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let play = |mut players: Players, sender: &Sender<WorkerResult>| {
        while !stop.load(Ordering::Relaxed)
            && let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let result = play_with_retry(&mut players, settings, book, *number);
            let goes_on = matches!(result.game, Ok(_) | Err(PlayError::Fault { .. }));
            if sender.send(result).is_err() || !goes_on {
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
        let (mut outcome, mut faults) = (Ok(()), FaultLog::new(has_worked));
        for result in results {
            let kept = receive(result, &mut faults, keeper);
            // Games in progress are still finished and kept; the first error is the one returned.
            if kept.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        let (dropped, useless) = faults.finish();
        for game in dropped {
            outcome = outcome.and(keeper.dropped(game));
        }
        match useless {
            Some(Useless { failures, last }) => outcome.and(Err(keeper.engine_error(last.error, failures))),
            None => outcome,
        }
    })
}

/// Keeps a game, or notes that an engine spoiled it.
fn receive(
    result: WorkerResult,
    faults: &mut FaultLog<DroppedGame>,
    keeper: &mut dyn GameKeeper,
) -> Result<(), GenerateError> {
    let WorkerResult { number, game, replayed } = result;
    match game {
        Ok(game) => {
            for engine in [game.white, game.black] {
                faults.worked(engine).into_iter().try_for_each(|game| keeper.dropped(game))?;
            }
            keeper.finished(game, replayed)
        }
        Err(PlayError::Fault { engine, error }) => {
            let noted = faults.failed(engine, false, DroppedGame { number, error });
            noted.map_err(|Useless { failures, last }| keeper.engine_error(last.error, failures))
        }
        Err(PlayError::Start(error)) => Err(keeper.engine_error(error, 1)),
        Err(PlayError::Other(error)) => Err(error),
    }
}

/// Plays a game; when an engine fails, plays it once more from its start with new engines.
fn play_with_retry(
    players: &mut Players,
    settings: &GenerateSettings,
    book: Option<&Book>,
    number: u32,
) -> WorkerResult {
    let first = play_game(players, settings, book, number);
    let replayed = match &first {
        Ok(_) | Err(PlayError::Other(_)) => false,
        Err(PlayError::Fault { .. }) => true,
        Err(PlayError::Start(error)) => !error.is_request(),
    };
    if !replayed {
        return WorkerResult { number, game: first, replayed };
    }
    players.stop_engines();
    let game = play_game(players, settings, book, number);
    if game.is_err() {
        players.stop_engines();
    }
    WorkerResult { number, game, replayed }
}
