//! Plays the games of a match in parallel; each worker has its own players.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use shakmaty::Position;

use super::adjudication::Adjudicator;
use super::game::{MatchGame, MatchMove, Termination};
use super::limit::{GameClock, MoveLimit};
use super::player::{Player, Seat};
use super::schedule::{Fixture, fixture};
use super::{MatchError, MatchSettings};
use crate::data::GameResult;
use crate::pipeline::GameLine;
use crate::pipeline::generate::{Book, BookOrder};

/// What the workers share.
pub(super) struct PlayingTable<'a> {
    pub(super) players: &'a [Player],
    pub(super) settings: &'a MatchSettings,
    pub(super) book: &'a Book,
    pub(super) pairings: &'a [(usize, usize)],
    pub(super) interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl PlayingTable<'_> {
    /// Plays the games `numbers`; `keep` gets each as it ends and returns whether the match is decided.
    pub(super) fn play(
        &self,
        numbers: &[u64],
        keep: &mut dyn FnMut(MatchGame) -> Result<bool, MatchError>,
    ) -> Result<(), MatchError> {
        let (next, stop) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
        let worker = |games: &Sender<Result<MatchGame, MatchError>>| {
            let mut seats: Vec<Option<Seat>> = self.players.iter().map(|_| None).collect();
            while !stop.load(Ordering::Relaxed)
                && let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let game = self.game(&mut seats, *number, &stop);
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
        games: &Receiver<Result<MatchGame, MatchError>>,
        stop: &AtomicBool,
        keep: &mut dyn FnMut(MatchGame) -> Result<bool, MatchError>,
    ) -> Result<(), MatchError> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let mut outcome = Ok(());
        loop {
            let kept = match games.recv_timeout(LOOK_EVERY) {
                Ok(Ok(game)) => keep(game).map(|decided| {
                    if decided {
                        stop.store(true, Ordering::Relaxed);
                    }
                }),
                // A worker whose game was cut short.
                Ok(Err(MatchError::Stopped)) => Ok(()),
                Ok(Err(error)) => Err(error),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => return outcome,
            };
            // The first failure is reported; games that end meanwhile are kept.
            if kept.is_err() || (self.interrupted)() {
                stop.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
    }

    /// Plays game `number`.
    fn game<'a>(
        &'a self,
        seats: &mut [Option<Seat<'a>>],
        number: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<MatchGame, MatchError> {
        let MatchSettings { seed, setup, limit, .. } = self.settings;
        let Fixture { white, black, opening } = fixture(number, self.pairings);
        for player in [white, black] {
            let seat = match &mut seats[player] {
                Some(seat) => seat,
                empty => empty.insert(Seat::new(&self.players[player], setup, stop)?),
            };
            seat.new_game()?;
        }
        let (start, opening) = self.book.opening(opening, BookOrder::Random, *seed)?;
        let mut line: GameLine<MatchMove> = GameLine::new(start);
        opening.into_iter().for_each(|mv| line.play(mv, MatchMove { mv, search: None }));
        let mut clock = GameClock::new(*limit);
        let mut adjudicator = self.settings.adjudication.map(Adjudicator::new);
        let (result, termination) = loop {
            if let Some(result) = line.result_by_rule() {
                break (result, Termination::Rules);
            }
            let position = line.position();
            let (turn, fullmove) = (position.turn(), position.fullmoves().get());
            let player = turn.fold_wb(white, black);
            let limit = self.players[player].nodes.map_or(*limit, MoveLimit::Nodes);
            let Some(seat) = &mut seats[player] else { return Err(MatchError::Stopped) };
            let (mv, search) = seat.choose(&line, limit, clock.clocks(), setup)?;
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
        Ok(MatchGame { number, white, black, start, moves, result, termination })
    }
}
