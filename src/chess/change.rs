//! The change that a move makes on the board, piece by piece.

use shakmaty::{Board, CastlingSide, Color, Move, Piece, Role, Square};

use super::{PieceBoard, PieceCode};

/// A piece standing on a square.
pub type Placed = (Square, Piece);

/// The pieces that a move takes off the board and puts on it, at most two of each (castling moves king and rook). In
/// Chess960 castling may put one of them on the square that the other leaves.
///
/// ```
/// use fsbench::chess::{BoardChange, Chess, Move, Role, Square};
/// use shakmaty::Position;
///
/// let start = Chess::default();
/// let mv = Move::Normal { role: Role::Pawn, from: Square::E2, capture: None, to: Square::E4, promotion: None };
/// let change = BoardChange::of(mv, start.turn());
/// assert_eq!(change.counts(), [1, 1]);
/// assert!(change.applied_to(start.board()).piece_at(Square::E4).is_some());
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct BoardChange {
    /// [`PieceCode`] · 64 + square, or [`BoardChange::NO_PIECE`].
    removed: [u16; 2],
    added: [u16; 2],
}

impl BoardChange {
    /// The change from one board to another; `None` if more than two pieces of either differ.
    #[must_use]
    pub fn between(before: &PieceBoard, after: &PieceBoard) -> Option<BoardChange> {
        let mut changed = 0;
        for (before, after) in before.by_code().iter().zip(after.by_code()) {
            changed |= before ^ after;
        }
        if changed.count_ones() > 4 {
            return None;
        }
        // Without branches, since which square holds a piece cannot be predicted: the next state overwrites that of an
        // empty square.
        let mut states = [[BoardChange::NO_PIECE; 4]; 2];
        let mut counts = [0; 2];
        while changed != 0 {
            let square = changed.trailing_zeros() as u16 & 63;
            changed &= changed - 1;
            for ((board, states), count) in [before, after].into_iter().zip(&mut states).zip(&mut counts) {
                let code = board.squares()[usize::from(square)];
                states[*count & 3] = u16::from(code) << 6 | square;
                *count += usize::from(code != PieceBoard::EMPTY_SQUARE);
            }
        }
        if counts.into_iter().any(|count| count > 2) {
            return None;
        }
        for (states, count) in states.iter_mut().zip(counts) {
            states[count] = BoardChange::NO_PIECE;
        }
        let [removed, added] = states.map(|[first, second, ..]| [first, second]);
        Some(BoardChange { removed, added })
    }

    /// The state that stands for no piece: the greatest one, whose code belongs to no piece.
    pub const NO_PIECE: u16 = 1023;

    pub const EMPTY: BoardChange =
        BoardChange { removed: [BoardChange::NO_PIECE; 2], added: [BoardChange::NO_PIECE; 2] };

    /// The change made by a legal move of `turn`.
    #[must_use]
    pub fn of(mv: Move, turn: Color) -> BoardChange {
        let own = |role: Role, square: Square| state(Piece { color: turn, role }, square);
        let their = |role: Role, square: Square| state(Piece { color: turn.other(), role }, square);
        let no_piece = BoardChange::NO_PIECE;
        match mv {
            Move::Normal { role, from, capture, to, promotion } => BoardChange {
                removed: [own(role, from), capture.map_or(no_piece, |taken| their(taken, to))],
                added: [own(promotion.unwrap_or(role), to), no_piece],
            },
            Move::EnPassant { from, to } => BoardChange {
                removed: [own(Role::Pawn, from), their(Role::Pawn, Square::from_coords(to.file(), from.rank()))],
                added: [own(Role::Pawn, to), no_piece],
            },
            Move::Castle { king, rook } => {
                let side = CastlingSide::from_king_side(king < rook);
                let king_to = side.king_to(turn);
                let rook_to = side.rook_to(turn);
                // In Chess960 one of them may stand on its target already, and is then no part of the change.
                match (king == king_to, rook == rook_to) {
                    (true, _) => BoardChange::of_step(own(Role::Rook, rook), own(Role::Rook, rook_to)),
                    (_, true) => BoardChange::of_step(own(Role::King, king), own(Role::King, king_to)),
                    _ => BoardChange {
                        removed: [own(Role::King, king), own(Role::Rook, rook)],
                        added: [own(Role::King, king_to), own(Role::Rook, rook_to)],
                    },
                }
            }
            Move::Put { role, to } => BoardChange { added: [own(role, to), no_piece], ..BoardChange::EMPTY },
        }
    }

    /// One piece that goes from one state to another.
    const fn of_step(from: u16, to: u16) -> BoardChange {
        BoardChange { removed: [from, BoardChange::NO_PIECE], added: [to, BoardChange::NO_PIECE] }
    }

    pub fn removed(&self) -> impl Iterator<Item = Placed> + '_ {
        self.removed.iter().filter_map(|state| placed(*state))
    }

    pub fn added(&self) -> impl Iterator<Item = Placed> + '_ {
        self.added.iter().filter_map(|state| placed(*state))
    }

    /// The states removed and added, for loops that must not branch: each is [`PieceCode`] · 64 + square or
    /// [`BoardChange::NO_PIECE`].
    #[must_use]
    pub const fn states(&self) -> [[u16; 2]; 2] {
        [self.removed, self.added]
    }

    /// The numbers of pieces removed and added.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        self.states().map(|states| states.iter().filter(|state| **state != BoardChange::NO_PIECE).count())
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

const fn state(piece: Piece, square: Square) -> u16 {
    (PieceCode::of(piece).index() << 6) as u16 | square as u16
}

fn placed(state: u16) -> Option<Placed> {
    Some((Square::new(u32::from(state & 63)), PieceCode::new((state >> 6) as u8).piece()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{random_game_from, start_of_each_kind};
    use crate::units::Seed;
    use shakmaty::Position;

    #[test]
    fn boards_of_more_than_two_differing_pieces_have_no_change() {
        let start = Board::default();
        let mut after = start.clone();
        let between =
            |before: &Board, after: &Board| BoardChange::between(&PieceBoard::of(before), &PieceBoard::of(after));
        assert_eq!(between(&start, &after), Some(BoardChange::EMPTY));
        for (square, is_change) in [(Square::A2, true), (Square::H7, true), (Square::E1, false)] {
            after.discard_piece_at(square);
            assert_eq!(between(&start, &after).is_some(), is_change);
            assert_eq!(between(&after, &start).is_some(), is_change);
        }
    }

    /// All castlings of Chess960, also those in which king or rook does not move, or lands on the other's square.
    #[test]
    fn castles_as_shakmaty_does() {
        let mut kinds = [0; 3];
        for (position, mv) in crate::chess::castlings::every_castling() {
            let expected = position.clone().play(mv).expect("legal").board().clone();
            let change = BoardChange::of(mv, position.turn());
            assert_eq!(change.applied_to(position.board()), expected, "{mv:?}");
            let found = BoardChange::between(&PieceBoard::of(position.board()), &PieceBoard::of(&expected))
                .expect("at most two pieces differ");
            let sorted = |change: BoardChange| change.states().map(|[a, b]| [a.min(b), a.max(b)]);
            assert_eq!(sorted(found), sorted(change), "{mv:?}");
            let added: Vec<Square> = change.added().map(|(square, _)| square).collect();
            let lands_on_other = change.removed().any(|(square, _)| added.contains(&square));
            kinds[if added.len() == 1 { 0 } else { 1 + usize::from(lands_on_other) }] += 1;
        }
        assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
    }

    /// Over random games, applying the change gives shakmaty's board after the move.
    #[test]
    fn equals_playing_the_move() {
        let mut moves_by_kind = [0u32; 4];
        for game in 0..300 {
            let mut rng = Seed(11).stream("change", game);
            let start = start_of_each_kind(game, &mut rng);
            for (position, mv) in random_game_from(start, &mut rng, 200) {
                moves_by_kind[match mv {
                    Move::Castle { .. } => 0,
                    Move::EnPassant { .. } => 1,
                    _ if mv.is_promotion() => 2,
                    _ => 3,
                }] += 1;
                let expected = position.clone().play(mv).expect("legal").board().clone();
                let change = BoardChange::of(mv, position.turn());
                assert_eq!(change.applied_to(position.board()), expected, "{mv:?}");
                let found = BoardChange::between(&PieceBoard::of(position.board()), &PieceBoard::of(&expected))
                    .expect("at most two pieces differ");
                let sorted = |change: BoardChange| change.states().map(|[a, b]| [a.min(b), a.max(b)]);
                assert_eq!(sorted(found), sorted(change), "{mv:?}");
            }
        }
        assert!(moves_by_kind.iter().all(|&count| count > 0), "{moves_by_kind:?}");
    }
}
