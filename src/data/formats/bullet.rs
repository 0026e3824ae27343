//! bulletformat's `ChessBoard`, 32 bytes a position, no header. All from the side to move's view: its pieces are
//! White's and move up the board, so that which colour was to move is not told; nor are castling rights, en passant,
//! rule-50 counter, ply and move.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | occupancy, little-endian, bit = square (a1 = 0 … h8 = 63) |
//! | 8–23 | a nibble an occupied square, in square order, the lower first: bit 3 the opponent's, bits 0–2 the role |
//! | 24–25 | score in centipawns, little-endian |
//! | 26 | result: 0 loss, 1 draw, 2 win |
//! | 27 | own king's square |
//! | 28 | their king's square, the board turned to their view (square ^ 56) |
//! | 29–31 | free |

use std::io::Read;
use std::path::Path;

use rayon::prelude::*;
use shakmaty::Color;

use super::detect::named_compressed;
use super::sink::{BLOCK, Sink};
use super::skipped::SkippedSample;
use super::stream;
use crate::chess::PackedBoard;
use crate::data::record::Situation;
use crate::data::{DataError, GameResult, Record};
use crate::units::Ply;

pub const ENTRY_BYTES: usize = 32;
type Entry = [u8; ENTRY_BYTES];

/// A file that begins with so many entries and more, none of them a position, is of another format.
const SOME: usize = 16;

/// Delivers the positions of a file; those that are not legal are passed over and counted.
pub fn run(reader: impl Read + Send + 'static, path: &Path, sink: &mut Sink) -> Result<(), DataError> {
    // Positions may begin as compressed data do; only the name tells them apart.
    let mut reader: Box<dyn Read> = match named_compressed(path) {
        true => stream::unpacked(reader, &sink.shared).map_err(DataError::read(path))?.reader,
        false => Box::new(reader),
    };
    let mut bytes = Vec::new();
    let mut first = 0;
    loop {
        bytes.clear();
        reader.by_ref().take((BLOCK * ENTRY_BYTES) as u64).read_to_end(&mut bytes).map_err(DataError::read(path))?;
        let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        let read: Vec<Result<Record, Fault>> = sink.decoders.install(|| entries.par_iter().map(read).collect());
        let mut records = Vec::with_capacity(entries.len());
        for (entry, index) in read.into_iter().zip(first..) {
            match entry {
                Ok(record) => records.push(record),
                Err(fault) => {
                    let place = format!("position {index} (byte {})", index * ENTRY_BYTES as u64);
                    sink.skip(fault.reason, SkippedSample { place, why: fault.why });
                }
            }
        }
        if first == 0 && entries.len() >= SOME && records.is_empty() {
            return Err(DataError::NotBullet { path: path.into(), entries: entries.len() });
        }
        first += entries.len() as u64;
        if !sink.deliver(records)? {
            return Ok(());
        }
        if !rest.is_empty() {
            let bytes = first * ENTRY_BYTES as u64 + rest.len() as u64;
            return Err(DataError::Uneven { path: path.into(), bytes, each: ENTRY_BYTES as u64 });
        }
        if entries.len() < BLOCK {
            return Ok(());
        }
    }
}

/// Why 32 bytes are no position.
struct Fault {
    reason: &'static str,
    why: String,
}

fn read(entry: &Entry) -> Result<Record, Fault> {
    let fault = |reason, why: String| Fault { reason, why };
    let malformed = |why: String| fault("malformed", why);
    let occupied = entry.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let pieces = occupied.count_ones();
    if pieces > 32 {
        return Err(malformed(format!("{pieces} pieces on the board, more than 32")));
    }
    let codes = entry[8..24].iter().rev().fold(0u128, |codes, byte| codes << 8 | u128::from(*byte));
    let used = if pieces == 32 { u128::MAX } else { (1 << (4 * pieces)) - 1 };
    let result = match entry[26] {
        0 => GameResult::Loss,
        1 => GameResult::Draw,
        2 => GameResult::Win,
        other => return Err(malformed(format!("result {other}, where 0, 1 or 2 should stand"))),
    };
    let score = i16::from_le_bytes([entry[24], entry[25]]);
    if score == i16::MIN {
        return Err(malformed(format!("score {score}")));
    }
    let situation = Situation {
        board: PackedBoard::from_bits(occupied, codes & used),
        turn: Color::White,
        castling: 0,
        ep_file: None,
        rule50: 0,
        ply: Ply(0),
    };
    let record = Record::from_parts(situation, None, Some(score), Some(result));
    let position = record.position().map_err(|error| fault("illegal position", error.to_string()))?;
    let kings = kings(shakmaty::Position::board(&position));
    if kings != Some((entry[27], entry[28])) {
        return Err(malformed(format!("kings' squares {} and {} are not those on the board", entry[27], entry[28])));
    }
    Ok(record)
}

/// Bytes 27 and 28.
fn kings(board: &shakmaty::Board) -> Option<(u8, u8)> {
    Some((board.king_of(Color::White)? as u8, board.king_of(Color::Black)? as u8 ^ 56))
}

/// A sample as an entry; none without a score or result.
pub fn write(record: &Record) -> Option<Entry> {
    let (score, result) = (record.score()?, record.result()?);
    let (mut occupied, mut codes) = (record.board().occupancy(), record.board().codes());
    if record.turn().is_black() {
        (occupied, codes) = turned(occupied, codes);
    }
    let mut entry = [0; ENTRY_BYTES];
    entry[..8].copy_from_slice(&occupied.to_le_bytes());
    entry[8..24].copy_from_slice(&codes.to_le_bytes());
    entry[24..26].copy_from_slice(&score.to_le_bytes());
    entry[26] = result as u8;
    for (square, code) in PackedBoard::from_bits(occupied, codes).pieces() {
        match code.index() {
            OWN_KING => entry[27] = square as u8,
            THEIR_KING => entry[28] = square as u8 ^ 56,
            _ => {}
        }
    }
    Some(entry)
}

const OWN_KING: usize = 5;
const THEIR_KING: usize = 13;
/// The top bit of every nibble: the colour.
const TOPS: u128 = u128::MAX / 15 * 8;

/// The board from the other side: ranks in the other order, colours exchanged.
fn turned(occupied: u64, codes: u128) -> (u64, u128) {
    let (mut left, mut out, mut bits) = (codes, 0u128, 4 * occupied.count_ones());
    let used = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    for rank in occupied.to_le_bytes() {
        let width = 4 * rank.count_ones();
        bits -= width;
        out |= (left & ((1 << width) - 1)) << (bits & 127);
        left >>= width;
    }
    (occupied.swap_bytes(), out ^ (TOPS & used))
}
