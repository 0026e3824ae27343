//! Random moves: for games that must differ, and for tests.

use rand::RngExt;
use shakmaty::{Chess, Move, Position};

/// A random legal move; `None` if there is no legal move.
pub(crate) fn random_move(position: &Chess, rng: &mut impl RngExt) -> Option<Move> {
    let moves = position.legal_moves();
    (!moves.is_empty()).then(|| moves[rng.random_range(0..moves.len())])
}

/// At most `plies` positions of a random game from the initial position, each with the move played in it.
#[cfg(test)]
pub(crate) fn random_game(rng: &mut impl RngExt, plies: usize) -> Vec<(Chess, Move)> {
    let mut position = Chess::default();
    let step = || {
        let mv = random_move(&position, rng)?;
        let before = position.clone();
        position.play_unchecked(mv);
        Some((before, mv))
    };
    std::iter::from_fn(step).take(plies).collect()
}
