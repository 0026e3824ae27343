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
    is_chunk.then_some(ForeignFormat::LeelaChunk)
}
