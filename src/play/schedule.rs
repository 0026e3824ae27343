//! The schedule of a match: who meets whom, with which colours and from which opening.

use serde::{Deserialize, Serialize};

use super::pairing::Pairing;

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

/// One game's place in a match.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixture {
    pub(super) white: usize,
    pub(super) black: usize,
    /// Number of the opening: the two games of a pair have the same, and so have the pairs of one round.
    pub(super) opening: u64,
}

impl TournamentType {
    /// The pairings of so many players (at least two), as their numbers: the first has White in a pair's first game.
    #[must_use]
    pub fn pairings(self, players: usize) -> Vec<(usize, usize)> {
        match self {
            TournamentType::RoundRobin => Pairing::round_robin(players),
            TournamentType::Gauntlet => (1..players).map(|second| (0, second)).collect(),
        }
    }
}

/// Game `number` of a match: games 2p and 2p + 1 are pair p, and pairs go through the pairings round by round.
pub(super) fn fixture(number: u64, pairings: &[(usize, usize)]) -> Fixture {
    let Pairing { white, black, encounter } = Pairing::among(number, pairings);
    Fixture { white, black, opening: encounter / pairings.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_swap_colours_and_share_an_opening() {
        let check = |schedule: TournamentType, players: usize, expected: &[(usize, usize, u64)]| {
            let pairings = schedule.pairings(players);
            let found = (0..expected.len() as u64).map(|number| fixture(number, &pairings));
            let found: Vec<_> = found.map(|Fixture { white, black, opening }| (white, black, opening)).collect();
            assert_eq!(found, expected);
        };
        check(TournamentType::RoundRobin, 2, &[(0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1)]);
        check(
            TournamentType::RoundRobin,
            3,
            &[(0, 1, 0), (1, 0, 0), (0, 2, 0), (2, 0, 0), (1, 2, 0), (2, 1, 0), (0, 1, 1), (1, 0, 1)],
        );
        check(TournamentType::Gauntlet, 3, &[(0, 1, 0), (1, 0, 0), (0, 2, 0), (2, 0, 0), (0, 1, 1), (1, 0, 1)]);
    }
}
