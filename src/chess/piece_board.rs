//! Boards that say both where the pieces of each code are and which code stands on each square.

#[cfg(feature = "jit")]
use std::mem::offset_of;

use shakmaty::{Board, Color};

use super::{BoardChange, PackedBoard, PieceCode};

/// A board as bitboards by [`PieceCode`] and as a mailbox, in the layout that code generated from definitions reads.
///
/// ```
/// use fsbench::chess::{Board, PieceBoard};
///
/// let board = PieceBoard::of(&Board::default());
/// // A white pawn has code 0, a black king code 13.
/// assert_eq!((board.squares()[12], board.squares()[60], board.squares()[28]), (0, 13, PieceBoard::EMPTY_SQUARE));
/// assert_eq!(board.by_code()[0], 0xff00);
/// assert_eq!(board.occupied(), 0xffff_0000_0000_ffff);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PieceBoard {
    /// By square: the code of the piece there, or [`PieceBoard::EMPTY_SQUARE`].
    squares: [u8; 64],
    /// Squares of the pieces of each code; 0 for codes that belong to no piece.
    by_code: [u64; 16],
    /// White's pieces and Black's.
    by_color: [u64; 2],
    occupied: u64,
    /// As [`PieceBoard::king_squares`] gives them.
    kings: u32,
}

impl PieceBoard {
    /// Stands for the kings' squares of a board on which not each side has one king. No other board has this bit, so that
    /// it alone tells whether there are kings.
    pub(crate) const NO_KINGS: u32 = 1 << 30;

    /// The code in the mailbox where no piece stands. It belongs to no piece.
    pub const EMPTY_SQUARE: u8 = 7;

    /// Where code generated from definitions finds the fields.
    #[cfg(feature = "jit")]
    pub(crate) const SQUARES_OFFSET: usize = offset_of!(PieceBoard, squares);
    #[cfg(feature = "jit")]
    pub(crate) const BY_CODE_OFFSET: usize = offset_of!(PieceBoard, by_code);
    #[cfg(feature = "jit")]
    pub(crate) const BY_COLOR_OFFSET: usize = offset_of!(PieceBoard, by_color);
    #[cfg(feature = "jit")]
    pub(crate) const OCCUPIED_OFFSET: usize = offset_of!(PieceBoard, occupied);

    #[must_use]
    pub const fn empty() -> PieceBoard {
        PieceBoard {
            squares: [PieceBoard::EMPTY_SQUARE; 64],
            by_code: [0; 16],
            by_color: [0; 2],
            occupied: 0,
            kings: PieceBoard::NO_KINGS,
        }
    }

    #[must_use]
    pub fn of(board: &Board) -> PieceBoard {
        let mut out = PieceBoard::empty();
        for (square, piece) in board {
            out.put((PieceCode::of(piece).index() << 6) as u16 | square as u16);
        }
        out.find_kings();
        out
    }

    /// Of a packed board; codes that belong to no piece are left out.
    #[inline]
    #[must_use]
    pub fn unpacked(board: &PackedBoard) -> PieceBoard {
        let mut out = PieceBoard::empty();
        let mut left = board.occupancy();
        let codes = board.codes();
        for mut codes in [codes as u64, (codes >> 64) as u64] {
            for _ in 0..left.count_ones().min(16) {
                let code = codes as u8 & 15;
                if code & 7 <= 5 {
                    out.squares[(left.trailing_zeros() & 63) as usize] = code;
                    out.by_code[usize::from(code)] |= left & left.wrapping_neg();
                }
                left &= left - 1;
                codes >>= 4;
            }
        }
        for (of_color, by_code) in out.by_color.iter_mut().zip(out.by_code.as_chunks::<8>().0) {
            by_code.iter().for_each(|squares| *of_color |= squares);
        }
        out.occupied = out.by_color[0] | out.by_color[1];
        out.find_kings();
        out
    }

    #[inline]
    #[must_use]
    pub const fn squares(&self) -> &[u8; 64] {
        &self.squares
    }

    #[inline]
    #[must_use]
    pub const fn by_code(&self) -> &[u64; 16] {
        &self.by_code
    }

    #[inline]
    #[must_use]
    pub const fn by_color(&self) -> &[u64; 2] {
        &self.by_color
    }

    #[inline]
    #[must_use]
    pub const fn occupied(&self) -> u64 {
        self.occupied
    }

    /// The square of a colour's only king; `None` if it has none or several.
    #[inline(always)]
    #[must_use]
    pub const fn king_of(&self, color: Color) -> Option<u32> {
        let kings = self.by_code[if color.is_white() { 5 } else { 13 }];
        if kings.is_power_of_two() { Some(kings.trailing_zeros()) } else { None }
    }

    /// The squares of White's king and of Black's; `None` unless each has one.
    #[inline(always)]
    #[must_use]
    pub const fn kings(&self) -> Option<[u32; 2]> {
        if self.has_kings() { Some([self.kings & 63, self.kings >> 8]) } else { None }
    }

    /// Whether each side has one king.
    #[inline(always)]
    #[must_use]
    pub const fn has_kings(&self) -> bool {
        self.kings != PieceBoard::NO_KINGS
    }

    /// The square of White's king in the lowest byte, that of Black's in the next one; [`PieceBoard::NO_KINGS`] unless
    /// each side has one.
    #[inline(always)]
    pub(crate) const fn king_squares(&self) -> u32 {
        self.kings
    }

    /// Makes a change. A piece that it removes takes whatever stands on its square away, and one that it adds replaces
    /// what stands there, so that bitboards and mailbox always agree.
    #[inline(always)]
    pub fn apply(&mut self, change: &BoardChange) {
        let [removed, added] = change.states();
        for state in removed {
            if state != BoardChange::NO_PIECE {
                self.clear(state & 63);
            }
        }
        for state in added {
            if state != BoardChange::NO_PIECE {
                self.clear(state & 63);
                self.put(state);
            }
        }
        self.find_kings();
    }

    /// To be called when pieces were put or cleared.
    #[inline(always)]
    fn find_kings(&mut self) {
        self.kings = match (self.king_of(Color::White), self.king_of(Color::Black)) {
            (Some(white), Some(black)) => white | black << 8,
            _ => PieceBoard::NO_KINGS,
        };
    }

    /// Empties a square.
    #[inline(always)]
    fn clear(&mut self, square: u16) {
        let code = self.squares[usize::from(square & 63)];
        if code != PieceBoard::EMPTY_SQUARE {
            self.toggle(u16::from(code & 15) << 6 | square);
            self.squares[usize::from(square & 63)] = PieceBoard::EMPTY_SQUARE;
        }
    }

    /// Puts a piece on an empty square.
    #[inline(always)]
    fn put(&mut self, state: u16) {
        self.toggle(state);
        self.squares[usize::from(state & 63)] = (state >> 6) as u8;
    }

    #[inline(always)]
    fn toggle(&mut self, state: u16) {
        let bit = 1 << (state & 63);
        self.by_code[usize::from(state >> 6)] ^= bit;
        self.by_color[usize::from(state >> 9)] ^= bit;
        self.occupied ^= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::castlings::every_castling;
    use crate::chess::{random_game_from, start_of_each_kind};
    use crate::units::Seed;
    use shakmaty::{Position, Square};

    #[test]
    fn follows_games() {
        for game in 0..50 {
            let mut rng = Seed(12).stream("piece board", game);
            let mut followed: Option<PieceBoard> = None;
            let start = start_of_each_kind(game, &mut rng);
            for (position, mv) in random_game_from(start, &mut rng, 200) {
                let board = position.board();
                let now = PieceBoard::of(board);
                assert!(followed.is_none_or(|followed| followed == now));
                for square in Square::ALL {
                    let code = board.piece_at(square).map_or(PieceBoard::EMPTY_SQUARE, |piece| {
                        let code = PieceCode::of(piece).index();
                        assert_eq!(now.by_code()[code], board.by_piece(piece).0);
                        code as u8
                    });
                    assert_eq!(now.squares()[usize::from(square)], code);
                }
                assert_eq!(now.by_color()[0], board.white().0);
                let [white, black] = [Color::White, Color::Black].map(|color| board.king_of(color).map(u32::from));
                assert_eq!(now.king_of(Color::Black), black);
                assert_eq!(now.kings(), white.zip(black).map(<[u32; 2]>::from));
                assert_eq!(PieceBoard::unpacked(&PackedBoard::of(board)), now);
                let mut after = now;
                after.apply(&BoardChange::of(mv, position.turn()));
                followed = Some(after);
            }
        }
    }

    #[test]
    fn castles_in_chess960() {
        for (position, mv) in every_castling() {
            let mut board = PieceBoard::of(position.board());
            board.apply(&BoardChange::of(mv, position.turn()));
            let after = position.clone().play(mv).expect("legal");
            assert_eq!(board, PieceBoard::of(after.board()), "{mv:?}");
        }
    }

    #[test]
    fn changes_of_another_board_leave_it_sound() {
        let mut board = PieceBoard::of(&Board::default());
        // Removes a queen where a pawn stands and one from an empty square, then puts kings on two pawns.
        let e2 = 12;
        let change = BoardChange::between(
            &PieceBoard::of(&Board::from_ascii_board_fen(b"8/8/8/8/8/4Q3/4Q3/8").expect("a board")),
            &PieceBoard::of(&Board::from_ascii_board_fen(b"8/8/8/8/8/8/3K1K2/8").expect("a board")),
        );
        board.apply(&change.expect("two pieces of either"));
        assert_eq!((board.squares()[e2], board.squares()[11], board.squares()[13]), (PieceBoard::EMPTY_SQUARE, 5, 5));
        assert_eq!(board.kings(), None);
        let mut occupied = 0;
        for (square, code) in board.squares().iter().enumerate() {
            for of in 0..16 {
                let is_own = *code != PieceBoard::EMPTY_SQUARE && usize::from(*code) == of;
                assert_eq!(board.by_code()[of] >> square & 1 == 1, is_own, "{square} {of}");
            }
            occupied |= u64::from(*code != PieceBoard::EMPTY_SQUARE) << square;
        }
        assert_eq!((board.occupied(), board.by_color()[0] | board.by_color()[1]), (occupied, occupied));
    }
}
