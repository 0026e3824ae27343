//! Who plays whom, with which colour, from which opening.

use serde::Serialize;

/// The players of a game, by number, and its encounter: games of one encounter begin with the same opening.
///
/// One engine plays itself, and every game is an encounter. Of several, each pair meets in turn (the first with the
/// second, the third and so on, then the second with the third …), twice in a row with the colours changed: game 2e is
/// encounter e's first, game 2e + 1 its second.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pairing {
    pub white: usize,
    pub black: usize,
    pub encounter: u64,
}

impl Pairing {
    /// Of a game among so many engines, at least one.
    #[must_use]
    pub fn of(game: u32, engines: usize) -> Pairing {
        if engines < 2 {
            return Pairing { white: 0, black: 0, encounter: u64::from(game) };
        }
        let encounter = u64::from(game / 2);
        let pairs = (0..engines).flat_map(|first| (first + 1..engines).map(move |second| (first, second)));
        let turn = encounter % (engines as u64 * (engines as u64 - 1) / 2);
        let (first, second) = pairs.clone().nth(turn as usize).unwrap_or((0, 1));
        let (white, black) = if game.is_multiple_of(2) { (first, second) } else { (second, first) };
        Pairing { white, black, encounter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_meets_with_both_colours() {
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
