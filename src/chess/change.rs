//! What a move changes on the board, piece by piece.

use shakmaty::{Board, CastlingSide, Color, Move, Piece, Role, Square};

/// A piece standing on a square.
pub type Placed = (Square, Piece);

/// The pieces a move takes off the board and puts on it: at most two of each (castling moves king and rook).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardChange {
    removed: [Option<Placed>; 2],
    added: [Option<Placed>; 2],
}

impl BoardChange {
    /// The change made by a legal move of `turn`.
    #[must_use]
    pub fn of(mv: Move, turn: Color) -> BoardChange {
        let own = |role: Role| Piece { color: turn, role };
        let their = |role: Role| Piece { color: turn.other(), role };
        match mv {
            Move::Normal { role, from, capture, to, promotion } => BoardChange {
                removed: [Some((from, own(role))), capture.map(|taken| (to, their(taken)))],
                added: [Some((to, own(promotion.unwrap_or(role)))), None],
            },
            Move::EnPassant { from, to } => BoardChange {
                removed: [
                    Some((from, own(Role::Pawn))),
                    Some((Square::from_coords(to.file(), from.rank()), their(Role::Pawn))),
                ],
                added: [Some((to, own(Role::Pawn))), None],
            },
            Move::Castle { king, rook } => {
                let side = CastlingSide::from_king_side(king < rook);
                BoardChange {
                    removed: [Some((king, own(Role::King))), Some((rook, own(Role::Rook)))],
                    added: [Some((side.king_to(turn), own(Role::King))), Some((side.rook_to(turn), own(Role::Rook)))],
                }
            }
            Move::Put { role, to } => BoardChange { removed: [None, None], added: [Some((to, own(role))), None] },
        }
    }

    pub fn removed(&self) -> impl Iterator<Item = Placed> + '_ {
        self.removed.iter().flatten().copied()
    }

    pub fn added(&self) -> impl Iterator<Item = Placed> + '_ {
        self.added.iter().flatten().copied()
    }

    /// [`BoardChange::removed`] and [`BoardChange::added`] as they are kept, for loops that must not branch.
    pub fn slots(&self) -> [&[Option<Placed>; 2]; 2] {
        [&self.removed, &self.added]
    }

    /// The board after the change.
    #[must_use]
    pub fn applied_to(&self, board: &Board) -> Board {
        let mut after = board.clone();
        for (square, _) in self.removed() {
            after.discard_piece_at(square);
        }
        for (square, piece) in self.added() {
            after.set_piece_at(square, piece);
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;
    use shakmaty::{Chess, Position};

    /// Over random games, applying the change gives shakmaty's board after the move.
    #[test]
    fn equals_playing_the_move() {
        let mut kinds = [0u32; 4];
        for game in 0..300 {
            let mut rng = Seed(11).stream("change", game);
            let mut position = Chess::default();
            for _ in 0..200 {
                let moves = position.legal_moves();
                if moves.is_empty() {
                    break;
                }
                let mv = moves[rng.random_range(0..moves.len())];
                kinds[match mv {
                    Move::Castle { .. } => 0,
                    Move::EnPassant { .. } => 1,
                    _ if mv.is_promotion() => 2,
                    _ => 3,
                }] += 1;
                let expected = position.clone().play(mv).expect("legal").board().clone();
                let change = BoardChange::of(mv, position.turn());
                assert_eq!(change.applied_to(position.board()), expected, "{mv:?}");
                position.play_unchecked(mv);
            }
        }
        assert!(kinds.iter().all(|&n| n > 0), "{kinds:?}");
    }
}
