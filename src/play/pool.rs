//! Plays many games in parallel; each worker has its own players. An engine that ends, hangs or answers with no legal
//! move spoils its game and is started again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::PlayError;
use super::game::PlayedGame;
use super::game_loop::{GameRules, GameStart, Played, play_game};
use super::player::{Player, PlayerSetup};
use super::seats::Seats;
use crate::pipeline::uci::{FaultLog, Useless, Workers};

/// The games of a job and how they are played. A game depends on the players, `rules` and `begin` alone.
pub struct GamePool<'a> {
    pub players: &'a [Player],
    pub setup: PlayerSetup,
    pub rules: GameRules,
    pub on_fault: OnFault,
    /// The players and the opening of a game, by its number.
    pub begin: &'a (dyn Fn(u64) -> Result<GameStart, PlayError> + Sync),
    /// Games at once.
    pub concurrency: usize,
    /// By player, whether it has finished games before.
    pub has_worked: &'a [bool],
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// The fate of a game in which an engine fails.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnFault {
    /// The engine loses it.
    Forfeit,
    /// It is played once more by new engines, and only then lost.
    Replay,
}

/// A game of the pool.
pub struct PooledGame {
    pub game: PlayedGame,
    /// Whether it was played again, since an engine failed in it.
    pub replayed: bool,
}

/// Receives games as they end, in no fixed order, and returns whether the remaining ones are not needed.
pub type KeepGame<'k> = &'k mut dyn FnMut(PooledGame) -> Result<bool, PlayError>;

/// A worker's result.
struct WorkerGame {
    played: Played,
    replayed: bool,
}

type WorkerResult = Result<WorkerGame, PlayError>;

/// Longest wait for the signal that has ended an engine to reach this process, too.
const INTERRUPT_WAIT: Duration = Duration::from_millis(300);

impl GamePool<'_> {
    /// Plays the games `numbers`, which may be without end if `keep` says when the rest is not needed.
    ///
    /// # Errors
    /// When an engine cannot be started or spoils too many games in a row, or `keep` fails.
    pub fn play(&self, numbers: impl Iterator<Item = u64> + Send, keep: KeepGame<'_>) -> Result<(), PlayError> {
        let count = numbers.size_hint().1.unwrap_or(usize::MAX);
        let numbers = Mutex::new(numbers);
        let next = || numbers.lock().unwrap_or_else(PoisonError::into_inner).next();
        let stop = Arc::new(AtomicBool::new(false));
        let worker = |games: &Sender<WorkerResult>| {
            let mut seats = Seats::new(self.players, self.setup, &stop);
            while !stop.load(Ordering::Relaxed)
                && let Some(number) = next()
            {
                let game = self.game(&mut seats, number, &stop);
                let failed = game.is_err();
                if games.send(game).is_err() || failed {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            let (sender, games) = channel();
            for _ in 0..self.concurrency.clamp(1, count.clamp(1, Workers::MOST)) {
                let sender = sender.clone();
                let worker = &worker;
                scope.spawn(move || worker(&sender));
            }
            drop(sender);
            let outcome = self.collect(&games, &stop, keep);
            stop.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn collect(&self, games: &Receiver<WorkerResult>, stop: &AtomicBool, keep: KeepGame<'_>) -> Result<(), PlayError> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let mut keep = |WorkerGame { played, replayed }: WorkerGame| {
            if keep(PooledGame { game: played.game, replayed })? {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(())
        };
        let mut outcome = Ok(());
        let mut faults = FaultLog::new(self.has_worked);
        loop {
            let kept = match games.recv_timeout(LOOK_EVERY) {
                Ok(Ok(game)) => self.receive(game, &mut faults, &mut keep),
                // A worker whose game was cut short.
                Ok(Err(PlayError::Stopped)) => Ok(()),
                Ok(Err(error)) => Err(error),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // The first failure is reported; games that end meanwhile are kept.
            if kept.is_err() || (self.interrupted)() {
                stop.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        let (spoiled, useless) = faults.finish();
        for game in spoiled {
            outcome = outcome.and(keep(game));
        }
        match useless {
            Some(useless) if !stop.load(Ordering::Relaxed) => outcome.and(Err(self.useless(useless))),
            _ => outcome,
        }
    }

    /// Keeps a game. One that an engine spoiled is kept once that engine is known to work at all.
    fn receive(
        &self,
        game: WorkerGame,
        faults: &mut FaultLog<WorkerGame>,
        keep: &mut dyn FnMut(WorkerGame) -> Result<(), PlayError>,
    ) -> Result<(), PlayError> {
        let played = &game.played;
        let PlayedGame { white, black, .. } = played.game;
        let loser = if played.fault.is_some() { played.game.defaulter() } else { None };
        for player in [white, black] {
            if Some(player) != loser && played.game.has_move_of(player) {
                for earlier in faults.worked(player) {
                    keep(earlier)?;
                }
            }
        }
        let Some(loser) = loser else { return keep(game) };
        // A game that is dropped is no work.
        let has_worked = self.on_fault == OnFault::Forfeit && played.game.has_move_of(loser);
        faults.failed(loser, has_worked, game).map_err(|useless| self.useless(useless))
    }

    /// The error of an engine that spoils game after game.
    fn useless(&self, useless: Useless<WorkerGame>) -> PlayError {
        let Useless { failures, last: WorkerGame { played: Played { game, fault }, .. } } = useless;
        match (game.defaulter(), fault) {
            (Some(player), Some(error)) => {
                PlayError::Engine { name: self.players[player].name.clone(), error: Box::new(error), failures }
            }
            _ => PlayError::Stopped,
        }
    }

    /// Plays game `number`, a second time if an engine fails in it and that is how faults are met.
    fn game(&self, seats: &mut Seats<'_>, number: u64, stop: &AtomicBool) -> WorkerResult {
        let first = self.attempt(seats, number);
        let has_fault = match &first {
            Ok(played) => played.fault.is_some(),
            // An engine that could not be started.
            Err(PlayError::Engine { error, .. }) => !error.is_request(),
            Err(_) => false,
        };
        if !has_fault {
            return Ok(WorkerGame { played: first?, replayed: false });
        }
        if self.is_ending(stop) {
            return Err(PlayError::Stopped);
        }
        match self.on_fault {
            OnFault::Forfeit => Ok(WorkerGame { played: first?, replayed: false }),
            OnFault::Replay => {
                seats.clear_all();
                Ok(WorkerGame { played: self.attempt(seats, number)?, replayed: true })
            }
        }
    }

    fn attempt(&self, seats: &mut Seats<'_>, number: u64) -> Result<Played, PlayError> {
        let start = (self.begin)(number)?;
        seats.ready(start.white)?;
        if start.black != start.white {
            seats.ready(start.black)?;
        }
        play_game(number, start, &self.rules, seats)
    }

    /// Whether the work is to end. An engine that has ended may have had the same signal as this process, which may
    /// still be on its way here.
    fn is_ending(&self, stop: &AtomicBool) -> bool {
        let deadline = Instant::now() + INTERRUPT_WAIT;
        loop {
            if stop.load(Ordering::Relaxed) || (self.interrupted)() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(INTERRUPT_WAIT / 30);
        }
    }
}
