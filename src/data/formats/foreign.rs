//! Formats of other programs that are not read: they are recognised by their content, so that none is taken for another
//! format, and named with a way to go on.

use std::fmt;

use super::text_kind::{self, TextKind};

/// A format of another program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    /// FENs or EPD without scores or results.
    Positions,
    /// Training data of Leela Chess Zero.
    LeelaChunk,
    /// Games of Monty, with a value or with visits for each move.
    Montyformat,
}

impl fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ForeignFormat::Positions => {
                "a list of positions without scores (FEN or EPD), which fsbench does not read; write two commas behind \
                 every FEN to have its positions as samples without a score and a move"
            }
            ForeignFormat::LeelaChunk => {
                "a chunk of Leela Chess Zero's training data, which fsbench does not read; its rescorer writes .plain, \
                 which fsbench reads"
            }
            ForeignFormat::Montyformat => {
                "games of Monty (montyformat), which fsbench does not read: their scores are values of a tree search; \
                 the crate montyformat reads them, so write them as viriformat or as lines `FEN | score | result`"
            }
        })
    }
}

/// The foreign format of a file, by its decompressed beginning, which shows no other format.
pub fn of_beginning(beginning: &[u8]) -> Option<ForeignFormat> {
    if text_kind::of_text(beginning) == Some(TextKind::Positions) {
        return Some(ForeignFormat::Positions);
    }
    // A record begins with its version and its input format, both of 32 bits.
    let is_chunk = matches!(beginning, [5 | 6, 0, 0, 0, 1..=5 | 132 | 133, 0, 0, 0, ..]);
    if is_chunk {
        return Some(ForeignFormat::LeelaChunk);
    }
    begins_as_monty(beginning).then_some(ForeignFormat::Montyformat)
}

/// Whether bytes begin with a game of montyformat. Little-endian: four bitboards (Black; rooks, queens, kings; knights,
/// bishops, kings; pawns, bishops, queens), then a byte each for the side to move, the en passant square, the castling
/// rights and the halfmove clock, the move number (u16, absent from the values of some versions), the files of the four
/// rooks that castle, and the result (0, 1, 2).
fn begins_as_monty(bytes: &[u8]) -> bool {
    const BOARD: usize = 32;
    let (Some(boards), Some(state)) = (bytes.get(..BOARD), bytes.get(BOARD..)) else { return false };
    let board = |number: usize| boards.as_chunks::<8>().0.get(number).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let [black, heavy, minor, light] = [0, 1, 2, 3].map(board);
    let occupied = heavy | minor | light;
    let kings = heavy & minor;
    let is_board = black & !occupied == 0
        && kings & light == 0
        && occupied.count_ones() <= 32
        && [kings & black, kings & !black].iter().all(|king| king.count_ones() == 1);
    let are_files_and_result = |bytes: &[u8]| matches!(bytes, [0..=7, 0..=7, 0..=7, 0..=7, 0..=2, ..]);
    let is_state = match state {
        [0 | 1, 0..=63, 0..=15, _, rest @ ..] => {
            [0, 2].iter().filter_map(|at| rest.get(*at..)).any(are_files_and_result)
        }
        _ => false,
    };
    is_board && is_state
}
