//! Random moves at a game's start, so that games differ.

use rand_chacha::ChaCha8Rng;

use super::finished_game::PlayedPly;
use crate::chess::random_move;
use crate::play::GameLine;

/// Attempts at a number of random moves before one move fewer is tried.
const ATTEMPTS: usize = 100;

/// Plays `plies` random moves that do not end the game, or fewer where that is impossible.
pub fn play_random_moves(game: &mut GameLine<PlayedPly>, plies: u16, rng: &mut ChaCha8Rng) {
    for plies in (1..=plies).rev() {
        for _ in 0..ATTEMPTS {
            let mut attempt = game.clone();
            let goal = attempt.plies.len() + usize::from(plies);
            while attempt.plies.len() < goal
                && let Some(mv) = random_move(attempt.position(), rng)
            {
                attempt.play(mv, PlayedPly { mv: Some(mv), search: None });
            }
            if attempt.plies.len() == goal && attempt.result_by_rule().is_none() {
                *game = attempt;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::parse_fen;
    use crate::units::Seed;

    #[test]
    fn random_moves_stop_before_the_game_ends() {
        let mut game = GameLine::new(parse_fen("7k/8/6K1/8/8/8/8/R7 b - - 98 80").unwrap());
        play_random_moves(&mut game, 5, &mut Seed(1).stream("test", 0));
        assert_eq!(game.plies.len(), 1);
    }
}
