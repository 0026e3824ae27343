//! Plays the games of a match in parallel; each worker has its own players. An engine that ends, hangs or answers with no
//! legal move loses that game by forfeit and is started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use shakmaty::Position;

use super::adjudication::Adjudicator;
use super::book::Book;
use super::game::{Forfeit, MatchGame, MatchMove, Termination};
use super::game_line::GameLine;
use super::limit::{GameClock, MoveLimit};
use super::player::{Player, Seat};
use super::schedule::{Fixture, fixture};
use super::{MatchError, MatchSettings};
use crate::data::GameResult;
use crate::pipeline::generation::BookOrder;
use crate::pipeline::uci::{FaultLog, UciError, Useless};

/// What the workers share.
pub(super) struct PlayingTable<'a> {
    pub(super) players: &'a [Player],
    pub(super) settings: &'a MatchSettings,
    pub(super) book: &'a Book,
    pub(super) pairings: &'a [(usize, usize)],
    /// By player, whether games of it are finished.
    pub(super) has_worked: &'a [bool],
    pub(super) interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// A game that was played to its end, or to a forfeit.
struct PlayedGame {
    game: MatchGame,
    /// The engine's error that the loser forfeits it by.
    fault: Option<UciError>,
}

/// Longest wait for the signal that has ended an engine to reach this process, too.
const INTERRUPT_WAIT: Duration = Duration::from_millis(300);

impl PlayingTable<'_> {
    /// Plays the games `numbers`; `keep` gets each as it ends and returns whether the match is decided.
    pub(super) fn play(
        &self,
        numbers: &[u64],
        keep: &mut dyn FnMut(MatchGame) -> Result<bool, MatchError>,
    ) -> Result<(), MatchError> {
        let (next, stop) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
        let worker = |games: &Sender<Result<PlayedGame, MatchError>>| {
            let mut seats: Vec<Option<Seat>> = self.players.iter().map(|_| None).collect();
            while !stop.load(Ordering::Relaxed)
                && let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let game = match self.game(&mut seats, *number, &stop) {
                    // An engine that could not be started.
                    Err(MatchError::Engine { .. }) if self.is_ending(&stop) => Err(MatchError::Stopped),
                    game => game,
                };
                let failed = game.is_err();
                if games.send(game).is_err() || failed {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            let (sender, games) = channel();
            for _ in 0..self.settings.concurrency.clamp(1, numbers.len().max(1)) {
                let (sender, worker) = (sender.clone(), &worker);
                scope.spawn(move || worker(&sender));
            }
            drop(sender);
            let outcome = self.collect(&games, &stop, keep);
            stop.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn collect(
        &self,
        games: &Receiver<Result<PlayedGame, MatchError>>,
        stop: &AtomicBool,
        keep: &mut dyn FnMut(MatchGame) -> Result<bool, MatchError>,
    ) -> Result<(), MatchError> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let mut keep = |game: MatchGame| {
            if keep(game)? {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(())
        };
        let (mut outcome, mut faults) = (Ok(()), FaultLog::new(self.has_worked));
        loop {
            let kept = match games.recv_timeout(LOOK_EVERY) {
                Ok(Ok(played)) => self.receive(played, &mut faults, &mut keep),
                // A worker whose game was cut short.
                Ok(Err(MatchError::Stopped)) => Ok(()),
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
        let (forfeited, useless) = faults.finish();
        for PlayedGame { game, .. } in forfeited {
            outcome = outcome.and(keep(game));
        }
        match useless {
            Some(useless) if !stop.load(Ordering::Relaxed) => outcome.and(Err(self.useless(useless))),
            _ => outcome,
        }
    }

    /// Keeps a game. One that was forfeited is kept once the loser is known to work at all.
    fn receive(
        &self,
        played: PlayedGame,
        faults: &mut FaultLog<PlayedGame>,
        keep: &mut dyn FnMut(MatchGame) -> Result<(), MatchError>,
    ) -> Result<(), MatchError> {
        let MatchGame { white, black, .. } = played.game;
        let loser = played.game.defaulter().filter(|_| played.fault.is_some());
        for player in [white, black] {
            if Some(player) != loser && played.game.has_move_of(player) {
                faults.worked(player).into_iter().try_for_each(|earlier| keep(earlier.game))?;
            }
        }
        match loser {
            Some(loser) => {
                let has_moved = played.game.has_move_of(loser);
                faults.failed(loser, has_moved, played).map_err(|useless| self.useless(useless))
            }
            None => keep(played.game),
        }
    }

    /// The error of an engine that forfeits game after game.
    fn useless(&self, useless: Useless<PlayedGame>) -> MatchError {
        let Useless { failures: forfeits, last: PlayedGame { game, fault } } = useless;
        match (game.defaulter(), fault) {
            (Some(player), Some(error)) => {
                MatchError::Engine { name: self.players[player].name.clone(), error: Box::new(error), forfeits }
            }
            _ => MatchError::Stopped,
        }
    }

    /// Whether the match is to end. An engine that has ended may have had the same signal as this process, which may still
    /// be on its way here.
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

    /// Readies a player's seat for a new game; a player that has not been started or that ended after its last game is
    /// started.
    fn be_seated<'a>(
        &'a self,
        seats: &mut [Option<Seat<'a>>],
        player: usize,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), MatchError> {
        if let Some(seat) = &mut seats[player]
            && seat.new_game().is_ok()
        {
            return Ok(());
        }
        seats[player] = None;
        let mut seat = Seat::new(&self.players[player], &self.settings.setup, stop)?;
        seat.new_game()?;
        seats[player] = Some(seat);
        Ok(())
    }

    /// Plays game `number`.
    fn game<'a>(
        &'a self,
        seats: &mut [Option<Seat<'a>>],
        number: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<PlayedGame, MatchError> {
        let MatchSettings { seed, setup, limit, .. } = self.settings;
        let Fixture { white, black, opening } = fixture(number, self.pairings);
        for player in [white, black] {
            self.be_seated(seats, player, stop)?;
        }
        let (start, opening) = self.book.opening(opening, BookOrder::Random, *seed)?;
        let mut line: GameLine<MatchMove> = GameLine::new(start);
        opening.into_iter().for_each(|mv| line.play(mv, MatchMove { mv, search: None }));
        let mut clock = GameClock::new(*limit);
        let mut adjudicator = self.settings.adjudication.map(Adjudicator::new);
        let mut fault = None;
        let (result, termination) = loop {
            if let Some(result) = line.result_by_rule() {
                break (result, Termination::Rules);
            }
            let position = line.position();
            let (turn, fullmove) = (position.turn(), position.fullmoves().get());
            let player = turn.fold_wb(white, black);
            let limit = self.players[player].nodes.map_or(*limit, MoveLimit::Nodes);
            let Some(seat) = &mut seats[player] else { return Err(MatchError::Stopped) };
            let (mv, search) = match seat.choose(&line, limit, clock.clocks(), setup) {
                Ok(chosen) => chosen,
                Err(MatchError::Engine { error, .. }) if error.fault().is_some() => {
                    seats[player] = None;
                    if self.is_ending(stop) {
                        return Err(MatchError::Stopped);
                    }
                    fault = Some(*error);
                    break (turn.fold_wb(GameResult::Loss, GameResult::Win), Termination::Forfeit);
                }
                Err(error) => return Err(error),
            };
            if stop.load(Ordering::Relaxed) {
                return Err(MatchError::Stopped);
            }
            if clock.is_exceeded(turn.fold_wb(0, 1), search.time) {
                break (turn.fold_wb(GameResult::Loss, GameResult::Win), Termination::Time);
            }
            let zeroing = mv.is_zeroing();
            line.play(mv, MatchMove { mv, search: Some(search) });
            let adjudicated =
                adjudicator.as_mut().and_then(|rules| rules.observe(turn, search.eval, fullmove, zeroing));
            // Mate and stalemate on the board count before what the players think.
            if let Some(result) = adjudicated.filter(|_| line.result_by_rule().is_none()) {
                break (result, Termination::Adjudication);
            }
        };
        let GameLine { start, plies: moves, .. } = line;
        let forfeit = fault.as_ref().and_then(Forfeit::of);
        Ok(PlayedGame { game: MatchGame { number, white, black, start, moves, result, termination, forfeit }, fault })
    }
}
