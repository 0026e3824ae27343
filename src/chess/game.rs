//! A game in play: a position, and the Zobrist keys of the positions before it, which detect repetitions.

use shakmaty::zobrist::{Zobrist64, ZobristValue};
use shakmaty::{CastlingSide, Chess, Color, EnPassantMode, Move, Position};
use thiserror::Error;

use super::BoardChange;
use super::notation::{fen_of, legal_move};

/// Why a move cannot be added to a game.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GameError {
    #[error("move {number}, {text}: not a legal move in {fen}")]
    Move { number: usize, text: String, fen: String },
}

/// A position with the keys of all earlier positions of its game, to detect repetitions.
#[derive(Clone, Debug)]
pub struct Game {
    position: Chess,
    /// Keys of all positions since the game's start; the current position's is last.
    keys: Vec<u64>,
}

impl Game {
    /// A game that starts from `position`.
    #[must_use]
    pub fn new(position: Chess) -> Game {
        let keys = vec![key_of(&position)];
        Game { position, keys }
    }

    #[must_use]
    pub fn position(&self) -> &Chess {
        &self.position
    }

    /// Plays a legal move.
    pub fn play(&mut self, mv: Move) {
        self.position.play_unchecked(mv);
        self.keys.push(key_of(&self.position));
    }

    /// Plays moves in UCI notation, as [`legal_move`] reads it.
    ///
    /// # Errors
    /// At the first illegal move; the moves before it have been played.
    pub fn play_uci<'a>(&mut self, moves: impl IntoIterator<Item = &'a str>) -> Result<(), GameError> {
        for (number, text) in moves.into_iter().enumerate() {
            let Some(mv) = self.parse_uci(text) else {
                let fen = fen_of(&self.position);
                return Err(GameError::Move { number: number + 1, text: text.into(), fen });
            };
            self.play(mv);
        }
        Ok(())
    }

    /// Parses a legal move in UCI notation.
    pub(crate) fn parse_uci(&self, text: &str) -> Option<Move> {
        legal_move(text, &self.position)
    }

    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// How many times the current position has occurred, including now.
    #[must_use]
    pub fn repetitions(&self) -> usize {
        let Some((current, earlier)) = self.keys.split_last() else { return 0 };
        // No position before the last capture or pawn move can recur.
        let reversible = self.position.halfmoves() as usize;
        1 + earlier.iter().rev().take(reversible).filter(|key| *key == current).count()
    }

    /// Whether the game is a draw by stalemate, insufficient material, threefold repetition or the fifty-move rule.
    #[must_use]
    pub fn is_draw(&self) -> bool {
        self.repetitions() >= 3
            || self.position.is_insufficient_material()
            || self.position.is_stalemate()
            || (self.position.halfmoves() >= 100 && !self.position.is_checkmate())
    }
}

/// The Zobrist key of a position: pieces, side to move, castling rights, and the en passant file if a capture is legal.
pub(crate) fn key_of(position: &Chess) -> u64 {
    position.zobrist_hash::<Zobrist64>(EnPassantMode::Legal).0
}

/// Updates a key by the pieces of a move and the side to move: the key after the move, unless castling rights or an en
/// passant square change.
#[inline]
pub(crate) fn key_after_pieces(key: u64, change: &BoardChange) -> u64 {
    let pieces = change.removed().chain(change.added());
    let piece_key = |(square, piece)| Zobrist64::zobrist_for_piece(square, piece).0;
    pieces.map(piece_key).fold(key ^ Zobrist64::zobrist_for_white_turn().0, |key, piece| key ^ piece)
}

/// Updates a key by a move.
pub(crate) fn key_after(key: u64, before: &Chess, change: &BoardChange, after: &Chess) -> u64 {
    let key = key_after_pieces(key, change);
    key ^ castling_key(before) ^ castling_key(after) ^ en_passant_key(before) ^ en_passant_key(after)
}

/// Updates a key by a null move, which also ends the right to capture en passant.
pub(crate) fn key_after_null(key: u64, before: &Chess) -> u64 {
    key ^ Zobrist64::zobrist_for_white_turn().0 ^ en_passant_key(before)
}

fn castling_key(position: &Chess) -> u64 {
    let castles = position.castles();
    if castles.is_empty() {
        return 0;
    }
    let mut key = 0;
    for color in Color::ALL {
        for side in CastlingSide::ALL {
            if castles.has(color, side) {
                key ^= Zobrist64::zobrist_for_castling_right(color, side).0;
            }
        }
    }
    key
}

fn en_passant_key(position: &Chess) -> u64 {
    if position.maybe_ep_square().is_none() {
        return 0;
    }
    let square = position.legal_ep_square();
    square.map_or(0, |square| Zobrist64::zobrist_for_en_passant_file(square.file()).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{random_game_from, start_of_each_kind};
    use crate::units::Seed;

    /// Over random games, updated keys equal keys computed from scratch.
    #[test]
    fn updated_keys_equal_computed_keys() {
        for game in 0..200 {
            let mut rng = Seed(3).stream("keys", game);
            let start = start_of_each_kind(game, &mut rng);
            let mut key = key_of(&start);
            for (before, mv) in random_game_from(start, &mut rng, 150) {
                let change = BoardChange::of(mv, before.turn());
                let mut position = before.clone();
                position.play_unchecked(mv);
                key = key_after(key, &before, &change, &position);
                assert_eq!(key, key_of(&position), "{mv:?}");
                if let Ok(passed) = position.clone().swap_turn() {
                    assert_eq!(key_after_null(key, &position), key_of(&passed));
                }
            }
        }
    }

    #[test]
    fn repetitions_are_counted() {
        let mut game = Game::new(Chess::default());
        let round = ["g1f3", "g8f6", "f3g1", "f6g8"];
        game.play_uci(round).expect("legal");
        assert_eq!((game.repetitions(), game.is_draw()), (2, false));
        game.play_uci(round).expect("legal");
        assert_eq!((game.repetitions(), game.is_draw()), (3, true));
        game.play_uci(["e2e4"]).expect("legal");
        assert_eq!((game.repetitions(), game.is_draw()), (1, false));
    }

    #[test]
    fn errors_name_the_illegal_move() {
        let error = Game::new(Chess::default()).play_uci(["e2e4", "e2e4"]).expect_err("the pawn is gone");
        assert!(error.to_string().starts_with("move 2, e2e4: not a legal move in rnbqkbnr/"), "{error}");
    }
}
