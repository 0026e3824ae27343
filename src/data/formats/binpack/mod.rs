//! Stockfish's compressed training format, `.binpack`: chunks of chains; a chain is a position (`stem.rs`) and the moves
//! played from there with their scores, some 20 bits a ply (`moves.rs`, `bits.rs`).
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | magic `BINP` |
//! | 4–7 | size n of the chunk, little-endian, at most 100 MiB |
//! | 8 … n+7 | chains: a stem of 32 bytes, the number of plies that follow it (big-endian, 16 bits), their text; then the next chunk |
//!
//! An own codec, because the crate for this format panics on malformed input without telling the place, and its writer
//! on stems without a move and on long chains, swallowing write errors in `Drop`. It is the tests' oracle.

mod attacks;
mod bits;
mod choice;
mod cpu;
mod error;
mod index;
mod moves;
mod pieces;
mod position;
mod read;
mod source;
mod stem;
mod write;

pub use choice::{NoTriplet, Triplet};
pub use error::{ChunkError, StemError, TextError};
#[cfg(test)]
pub(crate) use pieces::tests::games as random_games;
pub use pieces::{Piece, Pieces, Usable};
pub use position::Position;
pub use read::{Broken, Chunk, Chunks, Decoder};
pub(super) use source::run;
pub use stem::{MAX_PLY, NO_SCORE};
pub use write::{Encoder, MAX_TEXT_BYTES, Unfit};

pub const MAGIC: &[u8; 4] = b"BINP";
const HEADER_BYTES: usize = 8;
/// Largest chunk that is read.
pub const MAX_CHUNK_BYTES: u64 = 100 << 20;
