//! Random moves: for games that must differ, and for tests.

use rand::RngExt;
use shakmaty::{Chess, Move, Position};

/// A random legal move; `None` if there is no legal move.
pub(crate) fn random_move(position: &Chess, rng: &mut impl RngExt) -> Option<Move> {
    let moves = position.legal_moves();
    (!moves.is_empty()).then(|| moves[rng.random_range(0..moves.len())])
}

/// At most `plies` positions of a random game from the initial position, each with the move played in it. Castling is
/// preferred now and then.
#[cfg(test)]
pub(crate) fn random_game(rng: &mut impl RngExt, plies: usize) -> Vec<(Chess, Move)> {
    random_game_from(Chess::default(), rng, plies)
}

/// As [`random_game`], from any position.
#[cfg(test)]
pub(crate) fn random_game_from(start: Chess, rng: &mut impl RngExt, plies: usize) -> Vec<(Chess, Move)> {
    let mut position = start;
    let step = || {
        let castling = position.legal_moves().into_iter().find(|mv| mv.is_castle()).filter(|_| rng.random_bool(0.3));
        let mv = castling.or_else(|| random_move(&position, rng))?;
        let before = position.clone();
        position.play_unchecked(mv);
        Some((before, mv))
    };
    std::iter::from_fn(step).take(plies).collect()
}

/// A start position for test number `number`: of standard chess, of Chess960, of double Chess960.
#[cfg(test)]
pub(crate) fn start_of_each_kind(number: u64, rng: &mut impl RngExt) -> Chess {
    let mut draw = || rng.random_range(0..super::CHESS960_STARTS);
    let start = match number % 3 {
        0 => return Chess::default(),
        1 => {
            let both = draw();
            super::chess960_start(both, both)
        }
        _ => super::chess960_start(draw(), draw()),
    };
    start.unwrap_or_default()
}
