//! What can be wrong with a binpack's chunk.

use shakmaty::Square;
use thiserror::Error;

use crate::data::RecordError;

/// Why a chunk cannot be read. Bytes count from the chunk's first byte behind its header.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ChunkError {
    #[error("{found:?} stands where a chunk's header `BINP` should; the file is damaged or no binpack")]
    Magic { found: String },
    #[error("its header is cut off after {bytes} of 8 bytes; fetch the file again")]
    Header { bytes: usize },
    #[error("its header claims {size} bytes, more than the {most} a chunk may have; the file is damaged")]
    TooLarge { size: u64, most: u64 },
    #[error("its header claims {size} bytes, the file has only {left} more; it was cut off, fetch it again")]
    CutOff { size: u64, left: u64 },
    #[error("the chain at byte {at} is cut off: {left} bytes are left of the chunk, a chain takes 34 or more")]
    Stem { at: usize, left: usize },
    #[error("the first position of the chain at byte {at} is broken: {problem}")]
    Position { at: usize, problem: StemError },
    #[error("move {ply} after the first position of the chain at byte {at} is broken: {problem}")]
    Text { at: usize, ply: u16, problem: TextError },
}

/// Why a stem's 32 bytes are no position with a move.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StemError {
    #[error("{0} pieces on the board, more than 32")]
    Pieces(u32),
    #[error(
        "nibble {nibble} on {square} (a rook that may castle, or a pawn to be captured en passant, stands elsewhere)"
    )]
    Misplaced { nibble: u8, square: Square },
    #[error("two pawns that can be captured en passant, on {0} and {1}")]
    EnPassant(Square, Square),
    #[error(transparent)]
    Position(RecordError),
    #[error("the move {0:#06x} is illegal in it")]
    Move(u16),
    #[error("result {0}, where −1, 0 or 1 should stand")]
    Result(i16),
}

/// Why a chain's text tells no further move.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TextError {
    #[error("the text runs past the chunk's end")]
    End,
    #[error("piece {piece} (from 0) of {pieces}")]
    Piece { piece: u32, pieces: u32 },
    #[error("choice {choice} (from 0) of {count} for the piece on {from}")]
    Choice { from: Square, choice: u32, count: u32 },
    #[error("it leaves the king in check or castles where that is hindered")]
    Illegal,
    #[error("no move was made in the first position")]
    NoMove,
    #[error("a score of more than 16 bits")]
    Score,
    #[error("its ply does not fit 16 bits")]
    Ply,
}
