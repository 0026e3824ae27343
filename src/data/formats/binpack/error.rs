//! Errors in the chunks of a binpack.

use shakmaty::Square;
use thiserror::Error;

use crate::data::RecordError;

/// Why a chunk cannot be read. Offsets count from the chunk's first byte after its header.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ChunkError {
    #[error("found {found:?} in place of a chunk's header `BINP`; the file is damaged or not a binpack")]
    Magic { found: String },
    #[error("its header is cut off after {bytes} of 8 bytes; fetch the file again")]
    Header { bytes: usize },
    #[error("its header claims {size} bytes, more than the {most} a chunk may have; the file is damaged")]
    TooLarge { size: u64, most: u64 },
    #[error("its header claims {size} bytes, the file has only {left} more; it was cut off, fetch it again")]
    CutOff { size: u64, left: u64 },
    #[error("its header claims {size} bytes, but the next chunk's header follows after {found}; the file is damaged")]
    WrongSize { size: u64, found: u64 },
    #[error("the chain at byte {at} does not end where the next begins, at byte {next}: its moves are damaged")]
    Overrun { at: usize, next: usize },
    #[error("the chain at byte {at} is cut off: {left} bytes are left of the chunk, a chain takes 34 or more")]
    Stem { at: usize, left: usize },
    #[error("the first position of the chain at byte {at} is broken: {problem}")]
    Position { at: usize, problem: StemError },
    #[error("move {ply} after the first position of the chain at byte {at} is broken: {problem}")]
    Movetext { at: usize, ply: u16, problem: MovetextError },
}

impl ChunkError {
    /// The reason under which the damage is counted.
    #[must_use]
    pub const fn counted_as(&self) -> &'static str {
        match self {
            ChunkError::Magic { .. } | ChunkError::TooLarge { .. } | ChunkError::WrongSize { .. } => "broken chunk",
            ChunkError::Header { .. } | ChunkError::CutOff { .. } => "cut-off chunk",
            ChunkError::Overrun { .. }
            | ChunkError::Stem { .. }
            | ChunkError::Position { .. }
            | ChunkError::Movetext { .. } => "broken chain",
        }
    }
}

/// Why the 32 bytes of a stem are not a position with a move.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StemError {
    #[error("{0} pieces on the board, more than 32")]
    Segments(u32),
    #[error("nibble {nibble} on {square} (for a rook with castling rights, or a pawn that can be captured en passant)")]
    Misplaced { nibble: u8, square: Square },
    #[error("two pawns that can be captured en passant, on {0} and {1}")]
    EnPassant(Square, Square),
    #[error(transparent)]
    Position(RecordError),
    #[error("the move {0:#06x} is illegal in it")]
    Move(u16),
    #[error("result {0}, expected −1, 0 or 1")]
    Result(i16),
}

/// Why a movetext holds no further move.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MovetextError {
    #[error("the movetext runs past the end of the chunk")]
    End,
    #[error("piece {piece} (from 0) of {pieces}")]
    Segment { piece: u32, pieces: u32 },
    #[error("move {choice} (from 0) of {count} for the piece on {from}")]
    Choice { from: Square, choice: u32, count: u32 },
    #[error("it leaves the king in check, or castling is not possible")]
    Illegal,
    #[error("the first position has no move")]
    NoMove,
    #[error("its score takes more than 16 bits")]
    Score,
    #[error("its ply does not fit 16 bits")]
    Ply,
}
