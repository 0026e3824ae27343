//! Counts the results of a match in the order of its games, up to the pair that decides a sequential test.

use super::game::GameSummary;
use super::pentanomial::Pairs;
use super::schedule::{Fixture, fixture};
use super::scoreboard::MatchProgress;
use super::sprt::{Sprt, SprtState};
use crate::data::GameResult;

/// The results of a match.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// White's result of each finished game, by number.
    results: Vec<Option<GameResult>>,
    pub(super) finished: u64,
    pairings: Vec<(usize, usize)>,
    sprt: Option<Sprt>,
    /// Pairs counted, in the order of their numbers.
    pub(super) counted: u64,
    /// By pairing.
    pub(super) pairs: Vec<Pairs>,
    /// Wins, draws and losses of each pairing's first player.
    pub(super) games: Vec<[u64; 3]>,
    decided: bool,
}

impl Tally {
    /// Of so many pairs of games in all.
    pub(super) fn new(pairs: u64, pairings: &[(usize, usize)], sprt: Option<Sprt>) -> Tally {
        Tally {
            results: vec![None; 2 * pairs as usize],
            finished: 0,
            pairings: pairings.to_vec(),
            sprt,
            counted: 0,
            pairs: vec![Pairs::default(); pairings.len()],
            games: vec![[0; 3]; pairings.len()],
            decided: false,
        }
    }

    /// Notes the result in a journal's line, and returns the game's number; `None` for a game that is known already, or
    /// beyond those of this match: it stays in the journal.
    pub(super) fn note(&mut self, line: &str) -> Result<Option<usize>, String> {
        let summary = GameSummary::parse(line)?;
        let Fixture { white, black, .. } = fixture(summary.game, &self.pairings);
        if (summary.white, summary.black) != (white, black) {
            return Err(format!("game {} has other players than the schedule", summary.game));
        }
        let number = summary.game as usize;
        Ok(self.add(number, summary.result).then_some(number))
    }

    /// Adds a game's result; false if it is known already, or no game of this match.
    pub(super) fn add(&mut self, number: usize, result: GameResult) -> bool {
        match self.results.get_mut(number) {
            Some(place @ None) => {
                *place = Some(result);
                self.finished += 1;
                true
            }
            _ => false,
        }
    }

    /// Games of the whole match.
    pub(super) fn total(&self) -> usize {
        self.results.len()
    }

    /// Counts the pairs that are finished without a gap, up to the one that decides the test.
    pub(super) fn count(&mut self) {
        while !self.decided
            && let Some(points) = self.points(self.counted)
        {
            let pairing = (self.counted % self.pairings.len() as u64) as usize;
            if self.pairs[pairing].add(points.iter().sum()).is_err() {
                return;
            }
            for points in points {
                self.games[pairing][2 - usize::from(points)] += 1;
            }
            self.counted += 1;
            self.decided = self.sprt.is_some_and(|test| test.outcome(self.pairs[0]).state != SprtState::Continue);
        }
    }

    /// Half points of the pairing's first player in the two games of a finished pair.
    pub(super) fn points(&self, pair: u64) -> Option<[u8; 2]> {
        let first = 2 * pair as usize;
        let Some([Some(one), Some(two)]) = self.results.get(first..first + 2) else { return None };
        // The pairing's first player is White in the first game, Black in the second.
        Some([half_points(*one), half_points(two.reversed())])
    }

    pub(super) fn is_decided(&self) -> bool {
        self.decided || 2 * self.counted == self.results.len() as u64
    }

    pub(super) fn missing(&self) -> Vec<u64> {
        self.results.iter().zip(0..).filter(|(result, _)| result.is_none()).map(|(_, number)| number).collect()
    }

    /// By player, of so many: whether one of its games is finished.
    pub(super) fn players_seen(&self, players: usize) -> Vec<bool> {
        let mut seen = vec![false; players];
        for (_, number) in self.results.iter().zip(0..).filter(|(result, _)| result.is_some()) {
            let Fixture { white, black, .. } = fixture(number, &self.pairings);
            (seen[white], seen[black]) = (true, true);
        }
        seen
    }

    pub(super) fn progress(&self) -> MatchProgress {
        MatchProgress { games: self.finished, total: self.results.len() as u64, first: self.pairs[0] }
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
