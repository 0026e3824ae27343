//! Correction history: how far search results lay from the static evaluation, by pawn structure, by the pieces of each
//! colour and by the last two moves. The evaluation of similar positions is corrected by the mean difference.

use shakmaty::{Board, Color, Position};

use super::history::{PIECE_SQUARES, PieceTo, gravity};
use super::score::LARGEST_EVAL;

/// Largest absolute value of an entry.
const LARGEST_ENTRY: i32 = 1_024;
/// Entries per table and side to move.
const ENTRIES: usize = 1 << 14;

/// Tables of differences between search result and static evaluation, from the side to move's view.
pub(super) struct Corrections {
    pawns: Box<[i16]>,
    /// By the pieces other than pawns of one colour.
    pieces: [Box<[i16]>; 2],
    /// By piece and target of the last two moves.
    moves: Box<[i16]>,
}

/// Indices of a position's entries.
#[derive(Copy, Clone)]
pub(super) struct CorrectionKeys {
    pawns: usize,
    pieces: [usize; 2],
    moves: Option<usize>,
}

impl CorrectionKeys {
    /// `earlier`: the last two moves, the newest first.
    pub(super) fn of(position: &impl Position, earlier: [Option<PieceTo>; 2]) -> CorrectionKeys {
        let board = position.board();
        let turn = position.turn();
        let side = turn.fold_wb(0, ENTRIES);
        let moves = match earlier {
            [Some(last), Some(before)] => Some(before.index() * PIECE_SQUARES + last.index()),
            _ => None,
        };
        CorrectionKeys {
            pawns: side + pawn_key(board),
            pieces: [Color::White, Color::Black].map(|color| side + piece_key(board, color)),
            moves,
        }
    }
}

impl Corrections {
    pub(super) fn new() -> Corrections {
        let table = || vec![0; 2 * ENTRIES].into();
        Corrections { pawns: table(), pieces: [table(), table()], moves: vec![0; PIECE_SQUARES * PIECE_SQUARES].into() }
    }

    pub(super) fn clear(&mut self) {
        self.pawns.fill(0);
        self.pieces.iter_mut().for_each(|table| table.fill(0));
        self.moves.fill(0);
    }

    /// The static evaluation plus its expected error.
    pub(super) fn apply(&self, eval: i32, keys: &CorrectionKeys) -> i32 {
        let pieces = |at: usize| i32::from(self.pieces[at][keys.pieces[at]]);
        let moves = keys.moves.map_or(0, |at| i32::from(self.moves[at]));
        let sum = 7 * i32::from(self.pawns[keys.pawns]) + 5 * (pieces(0) + pieces(1)) + 5 * moves;
        (eval + sum / 64).clamp(-LARGEST_EVAL, LARGEST_EVAL)
    }

    /// Adds the difference between a search's value and the static evaluation.
    pub(super) fn update(&mut self, keys: &CorrectionKeys, difference: i32, depth: i32) {
        let bonus = (difference * depth / 6).clamp(-LARGEST_ENTRY / 4, LARGEST_ENTRY / 4);
        gravity(&mut self.pawns[keys.pawns], bonus, LARGEST_ENTRY);
        for (table, at) in self.pieces.iter_mut().zip(keys.pieces) {
            gravity(&mut table[at], bonus, LARGEST_ENTRY);
        }
        if let Some(at) = keys.moves {
            gravity(&mut self.moves[at], bonus, LARGEST_ENTRY);
        }
    }
}

fn pawn_key(board: &Board) -> usize {
    mix([Color::White, Color::Black].map(|color| (board.pawns() & board.by_color(color)).0))
}

fn piece_key(board: &Board, color: Color) -> usize {
    let roles = [board.knights(), board.bishops(), board.rooks(), board.queens(), board.kings()];
    mix(roles.map(|pieces| (pieces & board.by_color(color)).0))
}

/// Hashes bitboards to an index below [`ENTRIES`].
fn mix<const N: usize>(bitboards: [u64; N]) -> usize {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = bitboards.into_iter().fold(0u64, |key, bits| {
        let key = (key ^ bits).wrapping_mul(MULTIPLIER);
        key ^ (key >> 32)
    });
    (mixed.wrapping_mul(MULTIPLIER) >> 50) as usize
}
