//! Counts the results of a match in the order of its games, up to the pair that decides a sequential test.

use super::fixtures::{Fixture, fixture};
use super::game::GameSummary;
use super::pentanomial::Pairs;
use super::scoreboard::MatchProgress;
use super::sprt::{Sprt, SprtState};
use crate::data::GameResult;

/// The results of a match.
#[derive(Clone, Debug)]
pub(super) struct MatchTally {
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

impl MatchTally {
    /// Of so many pairs of games in all.
    pub(super) fn new(pairs: u64, pairings: &[(usize, usize)], sprt: Option<Sprt>) -> MatchTally {
        MatchTally {
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

    /// Notes the result of a game in a journal.
    pub(super) fn note(&mut self, summary: &GameSummary) -> Result<(), String> {
        let Fixture { white, black, .. } = fixture(summary.game, &self.pairings);
        if (summary.white, summary.black) != (white, black) {
            return Err(format!("game {} has other players than the schedule", summary.game));
        }
        self.add(summary.game, summary.result);
        Ok(())
    }

    /// Adds a game's result, unless it is known already, or no game of this match.
    pub(super) fn add(&mut self, number: u64, result: GameResult) {
        if let Some(place @ None) = self.results.get_mut(number as usize) {
            *place = Some(result);
            self.finished += 1;
        }
    }

    /// Games of the whole match.
    pub(super) fn total(&self) -> usize {
        self.results.len()
    }

    /// Counts the pairs that are finished without a gap, up to the pair that decides the test.
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

    /// By player, of so many: whether one of its games is finished.
    pub(super) fn players_seen(&self, players: usize) -> Vec<bool> {
        let mut seen = vec![false; players];
        for (_, number) in self.results.iter().zip(0..).filter(|(result, _)| result.is_some()) {
            let Fixture { white, black, .. } = fixture(number, &self.pairings);
            seen[white] = true;
            seen[black] = true;
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
