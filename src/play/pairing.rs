//! Which engines play a game, with which colours and from which opening.

use serde::Serialize;

/// The players of a game, by engine number, and its encounter. All games of an encounter begin with the same opening.
///
/// A single engine plays itself, and every game is an encounter of its own. With several engines each pair meets in
/// turn (first and second, first and third, …, second and third, …) and plays two consecutive games with the colours
/// reversed: encounter e consists of games 2e and 2e + 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pairing {
    pub white: usize,
    pub black: usize,
    pub encounter: u64,
}

impl Pairing {
    /// The pairing of a game among `engines` engines; at least one.
    #[must_use]
    pub fn of(game: u32, engines: usize) -> Pairing {
        if engines < 2 {
            return Pairing { white: 0, black: 0, encounter: u64::from(game) };
        }
        Pairing::among(u64::from(game), &Pairing::round_robin(engines))
    }

    /// The pairing of a game when the `pairs` of players, at least one, meet in turn: the first of a pair has White in
    /// the first of their two games.
    #[must_use]
    pub fn among(game: u64, pairs: &[(usize, usize)]) -> Pairing {
        let encounter = game / 2;
        let (first, second) = pairs[(encounter % pairs.len() as u64) as usize];
        let (white, black) = if game.is_multiple_of(2) { (first, second) } else { (second, first) };
        Pairing { white, black, encounter }
    }

    /// Every pair of players.
    #[must_use]
    pub fn round_robin(players: usize) -> Vec<(usize, usize)> {
        (0..players).flat_map(|first| (first + 1..players).map(move |second| (first, second))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_plays_with_both_colours() {
        let check = |engines: usize, expected: &[(usize, usize, u64)]| {
            let games = (0..expected.len() as u32).map(|game| Pairing::of(game, engines));
            let games: Vec<_> = games.map(|game| (game.white, game.black, game.encounter)).collect();
            assert_eq!(games, expected);
        };
        check(1, &[(0, 0, 0), (0, 0, 1), (0, 0, 2)]);
        check(2, &[(0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1)]);
        check(3, &[(0, 1, 0), (1, 0, 0), (0, 2, 1), (2, 0, 1), (1, 2, 2), (2, 1, 2), (0, 1, 3)]);
    }
}
