//! The set `piece`, and sums of it with files, ranks and diagonals.

use fsbench::chess::PieceBoard;

use super::{
    ByState, Changes, FILE_A, HandEncoder, Joint, Lists, Played, RANK_1, Squares, is_piece, piece_rows, placed, plane,
};

/// Every piece on its square, file and rank of every piece, and both diagonals of every piece: those that are asked
/// for, in this order.
pub struct Axes<const PIECE: bool, const FILES_RANKS: bool, const DIAGONALS: bool> {
    piece: ByState,
    /// By file + rank.
    diagonals: [u64; 15],
    /// By file + 7 − rank.
    antidiagonals: [u64; 15],
}

impl<const PIECE: bool, const FILES_RANKS: bool, const DIAGONALS: bool> Axes<PIECE, FILES_RANKS, DIAGONALS> {
    const FILE: u32 = if PIECE { 768 } else { 0 };
    const RANK: u32 = Self::FILE + 96;
    const DIAGONAL: u32 = Self::FILE + if FILES_RANKS { 192 } else { 0 };
    const ANTIDIAGONAL: u32 = Self::DIAGONAL + 180;

    pub fn new() -> Self {
        let mut axes = Axes { piece: piece_rows(), diagonals: [0; 15], antidiagonals: [0; 15] };
        for square in 0..64 {
            axes.diagonals[(square & 7) + (square >> 3)] |= 1 << square;
            axes.antidiagonals[(square & 7) + 7 - (square >> 3)] |= 1 << square;
        }
        axes
    }

    /// Appends the rows of a piece of which no piece of its code is among `others`.
    #[inline(always)]
    fn push(&self, list: &mut Joint<'_>, state: u16, others: u64, is_there: bool) {
        let (code, square) = placed(state);
        let plane = plane(code);
        let file = square & 7;
        let rank = square >> 3;
        if PIECE {
            list.push(self.piece[code << 6 | square], is_there);
        }
        if FILES_RANKS {
            let row = Self::FILE + 12 * file as u32 + plane;
            list.push([row, row ^ 1], is_there & (others & FILE_A << file == 0));
            let row = Self::RANK + plane;
            let rows = [row + 12 * rank as u32, (row ^ 1) + 12 * (7 - rank as u32)];
            list.push(rows, is_there & (others & RANK_1 << (square & 56) == 0));
        }
        if DIAGONALS {
            // What is a diagonal to White is an antidiagonal to Black.
            let sum = file + rank;
            let row = 12 * sum as u32 + plane;
            let rows = [Self::DIAGONAL + row, Self::ANTIDIAGONAL + (row ^ 1)];
            list.push(rows, is_there & (others & self.diagonals[sum] == 0));
            let difference = file + 7 - rank;
            let row = 12 * difference as u32 + plane;
            let rows = [Self::ANTIDIAGONAL + row, Self::DIAGONAL + (row ^ 1)];
            list.push(rows, is_there & (others & self.antidiagonals[difference] == 0));
        }
    }
}

impl<const PIECE: bool, const FILES_RANKS: bool, const DIAGONALS: bool> HandEncoder
    for Axes<PIECE, FILES_RANKS, DIAGONALS>
{
    type State = ();

    #[inline(always)]
    fn delta(&self, played: Played<'_>, _: &(), _: &mut (), changes: &mut Changes) {
        let [removed, added] = played.change.states();
        let lists = [(&mut changes.removed, removed, played.after), (&mut changes.added, added, played.before)];
        for (list, [first, second], other) in lists {
            let mut list = Joint::of(list);
            self.push(&mut list, first, other.by_code()[usize::from(first >> 6) & 15], true);
            self.push(&mut list, second, other.by_code()[usize::from(second >> 6) & 15], is_piece(second));
            list.finish();
        }
    }

    #[inline(always)]
    fn encode(&self, board: &PieceBoard, active: &mut Lists) {
        let mut list = Joint::of(active);
        for square in Squares(board.occupied()) {
            let code = board.squares()[square];
            // The first piece of its code on a line stands for all.
            let before = board.by_code()[usize::from(code) & 15] & ((1 << square) - 1);
            self.push(&mut list, u16::from(code) << 6 | square as u16, before, true);
        }
        list.finish();
    }
}
