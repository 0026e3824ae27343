//! Stockfish's compressed training format, `.binpack`: chunks of chains. A chain is a position (`stem.rs`) followed by
//! its movetext, the moves played from there and their scores in about 20 bits per ply (`move_code.rs`, `bits.rs`).
//!
//! | bytes | field |
//! |---|---|
//! | 0–3 | magic `BINP` |
//! | 4–7 | size n of the chunk, little-endian, at most 100 MiB |
//! | 8 … n+7 | chains: a stem of 32 bytes, the number of plies after it (16 bits, big-endian), movetext |
//!
//! The crate for this format is only the tests' oracle: its reader panics on malformed input without giving the
//! location; its writer panics on stems without a move and on long chains, and ignores write errors in `Drop`.

mod attacks;
mod bits;
mod bmi2;
mod chunks;
mod decoder;
mod encoder;
mod error;
mod move_code;
mod parallel_read;
mod position;
mod recovery;
mod scan;
mod segment_cache;
mod segments;
mod stem;
mod triplet;
#[cfg(target_arch = "x86_64")]
mod vbmi2;

pub(super) use bmi2::{BitInstructions, BitTask, dispatch};
pub use chunks::{Chunk, Chunks};
pub use decoder::{ChunkDecoder, RecordSink};
pub use encoder::{ChunkEncoder, InvalidSample, MAX_MOVETEXT_BYTES};
pub use error::{ChunkError, MovetextError, StemError};
pub use position::Position;
pub use recovery::{BrokenChain, ChainLog, ChainSpan};
#[cfg(test)]
pub(crate) use segments::tests::games as random_games;
pub use segments::{Segment, Segments, UsableSamples};
pub use stem::{MAX_PLY, NO_SCORE};
pub use triplet::{Triplet, TripletError};

use super::ScoreUnit;
use super::format_table::{FormatTable, GameRule, SampleEncoder};
use super::omissions::{OmissionCounter, OmittedField, OmittedSample};
use crate::data::Record;

pub(super) const FORMAT: FormatTable = FormatTable {
    name: "binpack",
    endings: &["binpack"],
    recognises: |beginning| beginning.starts_with(MAGIC),
    is_text: false,
    default_unit: ScoreUnit::STOCKFISH,
    games: GameRule::Inferred,
    needs_result: true,
    read: Some(parallel_read::read),
    adapt,
    encoder: Some(|| Box::new(ChunkEncoder::default())),
};

fn adapt(mut record: Record, counter: &mut OmissionCounter) -> Option<Record> {
    if record.ply().0 > MAX_PLY {
        return counter.omit_sample(OmittedSample::Ply);
    }
    record = clamp_no_score(record, counter);
    if record.has_chess960_rights() {
        // As Stockfish's tools do: the format has no rights of Chess960, and thus no castling moves either.
        if record.castles() {
            return counter.omit_sample(OmittedSample::Chess960Castling);
        }
        counter.omit_field(OmittedField::CastlingRights, true);
        record = record.without_castling();
    }
    Some(record)
}

/// Clamps the score that means no score in Stockfish's formats, and counts it.
pub(super) fn clamp_no_score(record: Record, counter: &mut OmissionCounter) -> Record {
    if record.score() != Some(NO_SCORE) {
        return record;
    }
    counter.clamp_score();
    record.with_score(Some(NO_SCORE - 1))
}

impl SampleEncoder for ChunkEncoder {
    fn push(&mut self, records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        ChunkEncoder::push(self, records, out)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        std::mem::take(self).finish(out)
    }
}

pub const MAGIC: &[u8; 4] = b"BINP";
const HEADER_BYTES: usize = 8;
/// The largest chunk that is read.
pub const MAX_CHUNK_BYTES: u64 = 100 << 20;
