//! Counts the games of a match from its journal, in the order of their numbers.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shakmaty::Position;

use super::MatchError;
use super::game::{GameSummary, MatchGame, Termination};
use super::pentanomial::Pairs;
use super::schedule::{Fixture, fixture};
use super::sprt::{Sprt, SprtState};
use crate::data::GameResult;
use crate::output::OutputFile;
use crate::pipeline::Journal;

/// The progress of a match.
#[derive(Clone, Debug)]
pub struct MatchProgress {
    /// Finished games, counted or not.
    pub games: u64,
    /// Games of the whole match.
    pub total: u64,
    /// Results of the first pairing.
    pub first: Pairs,
}

/// A player's work over the counted games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerWork {
    pub moves: u64,
    pub nodes: u64,
    pub seconds: f64,
    /// Games lost by exceeding the time.
    pub lost_on_time: u64,
}

/// Sums over the counted games.
pub(super) struct Totals {
    /// By player.
    pub(super) work: Vec<PlayerWork>,
    pub(super) terminations: Vec<(Termination, u64)>,
}

/// The journal, and what has been counted of it.
pub(super) struct Scoreboard {
    journal: Journal,
    /// Where each game's line begins, by number.
    offsets: Vec<Option<u64>>,
    /// White's result of each finished game, by number.
    results: Vec<Option<GameResult>>,
    pub(super) finished: u64,
    pairings: Vec<(usize, usize)>,
    sprt: Option<Sprt>,
    /// Pairs counted, in the order of their numbers.
    counted: u64,
    /// By pairing.
    pub(super) pairs: Vec<Pairs>,
    /// Wins, draws and losses of each pairing's first player.
    pub(super) games: Vec<[u64; 3]>,
    decided: bool,
}

impl Scoreboard {
    pub(super) fn open(
        path: &Path,
        head: &Value,
        total: u64,
        pairings: &[(usize, usize)],
        sprt: Option<Sprt>,
    ) -> Result<Scoreboard, MatchError> {
        let (mut offsets, mut results) = (vec![None; total as usize], vec![None; total as usize]);
        let journal = Journal::open(path, "games", head, &mut |offset, line| {
            let summary = GameSummary::parse(line)?;
            let Fixture { white, black, .. } = fixture(summary.game, pairings);
            if (summary.white, summary.black) != (white, black) {
                return Err(format!("game {} has other players than the schedule", summary.game));
            }
            // Games beyond the number asked for stay in the journal.
            if let Some(place) = offsets.get_mut(summary.game as usize) {
                *place = Some(offset);
                results[summary.game as usize] = Some(summary.result);
            }
            Ok(())
        })?;
        let finished = results.iter().flatten().count() as u64;
        let (pairs, games) = (vec![Pairs::default(); pairings.len()], vec![[0; 3]; pairings.len()]);
        let pairings = pairings.to_vec();
        let mut score = Scoreboard {
            journal,
            offsets,
            results,
            finished,
            pairings,
            sprt,
            counted: 0,
            pairs,
            games,
            decided: false,
        };
        score.count();
        Ok(score)
    }

    pub(super) fn missing(&self) -> Vec<u64> {
        self.results.iter().zip(0..).filter(|(result, _)| result.is_none()).map(|(_, number)| number).collect()
    }

    pub(super) fn add(&mut self, game: &MatchGame) -> Result<(), MatchError> {
        let line = game.to_journal();
        let line = line.map_err(|error| MatchError::Damaged { game: game.number, reason: error.to_string() })?;
        let place = game.number as usize;
        self.offsets[place] = Some(self.journal.append(&line)?);
        self.results[place] = Some(game.result);
        self.finished += 1;
        self.count();
        Ok(())
    }

    /// Counts the pairs that are finished without a gap, up to the one that decides the test.
    fn count(&mut self) {
        while !self.decided
            && let Some([Some(first), Some(second)]) =
                self.results.get(2 * self.counted as usize..2 * self.counted as usize + 2)
        {
            // The pairing's first player is White in the first game, Black in the second.
            let results = [*first, second.reversed()];
            let pairing = (self.counted % self.pairings.len() as u64) as usize;
            let points = results.iter().map(|result| half_points(*result)).sum();
            if self.pairs[pairing].add(points).is_err() {
                return;
            }
            for result in results {
                self.games[pairing][2 - usize::from(half_points(result))] += 1;
            }
            self.counted += 1;
            self.decided = self.sprt.is_some_and(|test| test.outcome(self.pairs[0]).state != SprtState::Continue);
        }
    }

    pub(super) fn is_decided(&self) -> bool {
        self.decided || 2 * self.counted == self.results.len() as u64
    }

    pub(super) fn progress(&self) -> MatchProgress {
        MatchProgress { games: self.finished, total: self.results.len() as u64, first: self.pairs[0] }
    }

    /// Writes the counted games in order; each player's work, and how the games ended.
    pub(super) fn write_pgn(&self, folder: &Path, names: &[String]) -> Result<Totals, MatchError> {
        let mut file = OutputFile::create(&folder.join("games.pgn"))?;
        let mut work = vec![PlayerWork { moves: 0, nodes: 0, seconds: 0.0, lost_on_time: 0 }; names.len()];
        let kinds = [Termination::Rules, Termination::Adjudication, Termination::Time];
        let mut terminations = kinds.map(|kind| (kind, 0));
        for (number, offset) in (0..2 * self.counted).zip(self.offsets.iter().flatten()) {
            let damaged = |reason| MatchError::Damaged { game: number, reason };
            let game = MatchGame::from_journal(&self.journal.line_at(*offset)?).map_err(damaged)?;
            file.put(game.pgn(names).as_bytes())?;
            let mut turn = game.start.turn();
            for played in &game.moves {
                if let Some(info) = played.search {
                    let work = &mut work[turn.fold_wb(game.white, game.black)];
                    work.moves += 1;
                    work.nodes += info.nodes;
                    work.seconds += info.time.as_secs_f64();
                }
                turn = turn.other();
            }
            if game.termination == Termination::Time {
                let loser = if game.result == GameResult::Loss { game.white } else { game.black };
                work[loser].lost_on_time += 1;
            }
            terminations.iter_mut().filter(|(kind, _)| *kind == game.termination).for_each(|(_, count)| *count += 1);
        }
        file.finish()?;
        Ok(Totals { work, terminations: terminations.to_vec() })
    }
}

/// Half points of a game's result: 2 for a win.
const fn half_points(result: GameResult) -> u8 {
    match result {
        GameResult::Win => 2,
        GameResult::Draw => 1,
        GameResult::Loss => 0,
    }
}
