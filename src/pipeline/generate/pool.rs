//! Games side by side, each worker with engines of its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use super::book::Book;
use super::finished_game::FinishedGame;
use super::play::{Failure, Players, game};
use super::{GenerateError, GenerateJob, GenerateSettings};
use crate::pipeline::uci::{Engine, UciError, Workers};

/// What came of a game.
pub struct Outcome {
    pub played: Result<FinishedGame, Failure>,
    /// Whether an engine failed in it and it was played again.
    pub again: bool,
}

/// Plays the games `numbers`, `job.workers.concurrency` at once; `first` are engines that run already. `keep` gets each game as
/// it ends, in no fixed order.
pub fn play_all(
    settings: &GenerateSettings,
    job: &GenerateJob,
    book: Option<&Book>,
    first: Vec<Engine>,
    numbers: &[u32],
    keep: &mut dyn FnMut(FinishedGame, bool) -> Result<(), GenerateError>,
    stopped: &dyn Fn(UciError) -> GenerateError,
) -> Result<(), GenerateError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let play = |mut players: Players, sender: &Sender<Outcome>| {
        while !stop.load(Ordering::Relaxed)
            && let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let outcome = play_twice(&mut players, settings, book, *number);
            let failed = outcome.played.is_err();
            if sender.send(outcome).is_err() || failed {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let (sender, games) = channel();
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
        for Outcome { played, again } in games {
            let kept = match played {
                Ok(game) => keep(game, again),
                Err(Failure::Engine(error)) => Err(stopped(error)),
                Err(Failure::Other(error)) => Err(error),
            };
            // Games under way are still finished and kept; the first failure is the one reported.
            if kept.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        outcome
    })
}

/// The game, from its start again with new engines where one failed.
fn play_twice(players: &mut Players, settings: &GenerateSettings, book: Option<&Book>, number: u32) -> Outcome {
    match game(players, settings, book, number) {
        Err(Failure::Engine(error)) if !error.is_request() => {
            players.dismiss();
            Outcome { played: game(players, settings, book, number), again: true }
        }
        played => Outcome { played, again: false },
    }
}
