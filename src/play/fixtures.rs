//! Schedules: who meets whom, with which colours.

use serde::{Deserialize, Serialize};

/// Which players meet.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TournamentType {
    /// Every two players.
    #[default]
    RoundRobin,
    /// The first player meets each of the others.
    Gauntlet,
}

/// The players of a game, and its encounter: the two games of an encounter have the same opening and swapped colours.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Fixture {
    pub white: usize,
    pub black: usize,
    pub encounter: u64,
}

impl TournamentType {
    /// The pairings of so many players (at least two), as their numbers: the first has White in an encounter's first
    /// game.
    #[must_use]
    pub fn pairings(self, players: usize) -> Vec<(usize, usize)> {
        let most = match self {
            TournamentType::RoundRobin => players,
            TournamentType::Gauntlet => 1,
        };
        (0..most).flat_map(|first| (first + 1..players).map(move |second| (first, second))).collect()
    }
}

/// Game `number` among these pairings, at least one, which meet in turn: games 2e and 2e + 1 are encounter e.
#[must_use]
pub fn fixture(number: u64, pairings: &[(usize, usize)]) -> Fixture {
    let encounter = number / 2;
    let (first, second) = pairings[(encounter % pairings.len() as u64) as usize];
    let (white, black) = if number.is_multiple_of(2) { (first, second) } else { (second, first) };
    Fixture { white, black, encounter }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encounters_swap_colours() {
        let check = |schedule: TournamentType, players: usize, expected: &[(usize, usize, u64)]| {
            let pairings = schedule.pairings(players);
            let found = (0..expected.len() as u64).map(|number| fixture(number, &pairings));
            let found: Vec<_> = found.map(|Fixture { white, black, encounter }| (white, black, encounter)).collect();
            assert_eq!(found, expected);
        };
        check(TournamentType::RoundRobin, 2, &[(0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1)]);
        check(
            TournamentType::RoundRobin,
            3,
            &[(0, 1, 0), (1, 0, 0), (0, 2, 1), (2, 0, 1), (1, 2, 2), (2, 1, 2), (0, 1, 3), (1, 0, 3)],
        );
        check(TournamentType::Gauntlet, 3, &[(0, 1, 0), (1, 0, 0), (0, 2, 1), (2, 0, 1), (0, 1, 2), (1, 0, 2)]);
    }
}
