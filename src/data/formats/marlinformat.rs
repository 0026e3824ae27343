//! marlinformat: positions of 32 bytes ([`packed_position`](super::packed_position)), each with a score and a result,
//! without a header.

use std::io::Read;
use std::path::Path;

use super::ScoreUnit;
use super::block_queue::BlockSender;
use super::entries::{self, Entry, EntryError};
use super::format_table::{FormatTable, GameRule, holds_all};
use super::packed_position::{NibbleOrder, PackedPosition, PackedPositionError, result_for, score_for};
use crate::data::{DataError, Record};

pub const FORMAT: FormatTable = FormatTable {
    name: "marlinformat",
    endings: &["marlin", "marlinformat"],
    recognises: are_positions,
    is_text: false,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::Inferred,
    needs_result: true,
    read: Some(read),
    adapt: holds_all,
    encoder: None,
};

/// Whether a file's beginning, or all of it, consists of positions.
fn are_positions(beginning: &[u8]) -> bool {
    let (entries, rest) = beginning.as_chunks::<{ entries::BYTES }>();
    rest.is_empty() && !entries.is_empty() && entries.iter().all(|entry| decode(entry).is_ok())
}

/// Sends the positions of a file; illegal ones are skipped and counted.
fn read(reader: Box<dyn Read + Send>, path: &Path, sender: &mut BlockSender) -> Result<(), DataError> {
    entries::read(reader, path, sender, &FORMAT, decode)
}

fn decode(entry: &Entry) -> Result<Record, EntryError> {
    let failure = |error| match error {
        PackedPositionError::Malformed(message) => EntryError { reason: "malformed", message },
        PackedPositionError::Illegal(message) => EntryError { reason: "illegal position", message },
    };
    let packed = PackedPosition::read(entry, NibbleOrder::LowFirst).map_err(failure)?;
    let position = packed.position().map_err(failure)?;
    let turn = shakmaty::Position::turn(&position);
    let score = Some(score_for(turn, packed.score));
    let result = Some(result_for(turn, packed.result));
    let malformed = |error: crate::data::RecordError| EntryError { reason: "malformed", message: error.to_string() };
    Record::of(&position, 0, packed.ply, None, score, result).map_err(malformed)
}
