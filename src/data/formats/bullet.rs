//! bulletformat's `ChessBoard`: 32 bytes per position, no header. The board is turned to the side to move, whose pieces
//! are stored as White's and move up. The format holds neither the colour to move nor castling rights, en passant,
//! rule-50 counter, ply or move.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | occupancy, little-endian, bit = square (a1 = 0 … h8 = 63) |
//! | 8–23 | a nibble per occupied square, in square order, the lower first: bit 3 the opponent's, bits 0–2 the role |
//! | 24–25 | score in centipawns, little-endian |
//! | 26 | result: 0 loss, 1 draw, 2 win |
//! | 27 | own king's square |
//! | 28 | their king's square, as they see the board (square ^ 56) |
//! | 29–31 | unused |

use std::io::Read;
use std::path::Path;

use rayon::prelude::*;
use shakmaty::Color;

use super::binpack::InvalidSample;
use super::block_queue::BlockSender;
use super::entries::{self, Entry, EntryError};
use super::format_table::{FormatTable, GameRule, SampleEncoder};
use super::omissions::{OmissionCounter, OmittedField, OmittedSample};
use super::{ScoreUnit, writer::TASK_SAMPLES};
use crate::chess::PackedBoard;
use crate::data::record::PositionFields;
use crate::data::{DataError, GameResult, Record};
use crate::units::Ply;

pub const FORMAT: FormatTable = FormatTable {
    name: "bullet",
    endings: &["bullet", "bin", "data", "bf"],
    recognises: has_position,
    is_text: false,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::Unknown,
    needs_result: true,
    read: Some(read),
    adapt,
    encoder: Some(|| Box::new(BulletEntries)),
};

/// Sends the positions of a file; illegal ones are skipped and counted.
fn read(reader: Box<dyn Read + Send>, path: &Path, sender: &mut BlockSender) -> Result<(), DataError> {
    entries::read(reader, path, sender, &FORMAT, decode)
}

/// Whether some entry is a position.
fn has_position(bytes: &[u8]) -> bool {
    bytes.as_chunks().0.iter().any(|entry| decode(entry).is_ok())
}

fn decode(entry: &Entry) -> Result<Record, EntryError> {
    let failure = |reason, message: String| EntryError { reason, message };
    let malformed = |message: String| failure("malformed", message);
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
        other => return Err(malformed(format!("result {other}, expected 0, 1 or 2"))),
    };
    let score = i16::from_le_bytes([entry[24], entry[25]]);
    if score == i16::MIN {
        return Err(malformed(format!("score {score}")));
    }
    let situation = PositionFields {
        board: PackedBoard::from_bits(occupied, codes & used),
        turn: Color::White,
        castling: 0,
        chess960_rights: 0,
        ep_file: None,
        rule50: 0,
        ply: Ply(0),
    };
    let record = Record::from_fields(situation, 0, None, Some(score), Some(result));
    let position = record.position().map_err(|error| failure("illegal position", error.to_string()))?;
    let kings = king_squares(shakmaty::Position::board(&position));
    if kings != Some((entry[27], entry[28])) {
        return Err(malformed(format!(
            "kings' squares {} and {}, but the kings stand elsewhere",
            entry[27], entry[28]
        )));
    }
    Ok(record)
}

/// The kings' squares as bytes 27 and 28 store them.
fn king_squares(board: &shakmaty::Board) -> Option<(u8, u8)> {
    Some((board.king_of(Color::White)? as u8, board.king_of(Color::Black)? as u8 ^ 56))
}

fn adapt(record: Record, counter: &mut OmissionCounter) -> Option<Record> {
    if record.score().is_none() {
        return counter.omit_sample(OmittedSample::NoScore);
    }
    counter.omit_field(OmittedField::SideToMove, record.turn().is_black());
    counter.omit_field(OmittedField::CastlingRights, record.castling() != 0);
    counter.omit_field(OmittedField::EnPassant, record.ep_file().is_some());
    counter.omit_field(OmittedField::Rule50, record.rule50() != 0);
    counter.omit_field(OmittedField::Ply, record.ply().0 != 0);
    counter.omit_field(OmittedField::Move, record.has_move());
    Some(record)
}

/// Writes entries one after another.
struct BulletEntries;

impl SampleEncoder for BulletEntries {
    fn push(&mut self, records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        let entries: Vec<Entry> = records.par_iter().with_min_len(TASK_SAMPLES).filter_map(encode).collect();
        out.extend_from_slice(entries.as_flattened());
        Ok(())
    }
}

/// Encodes a sample; `None` without a score or a result.
fn encode(record: &Record) -> Option<Entry> {
    let score = record.score()?;
    let result = record.result()?;
    let mut occupied = record.board().occupancy();
    let mut codes = record.board().codes();
    if record.turn().is_black() {
        (occupied, codes) = flip_board(occupied, codes);
    }
    let mut entry = [0; entries::BYTES];
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
/// The colour bit of every nibble.
const COLOR_BITS: u128 = u128::MAX / 15 * 8;

/// The board as the other side sees it: ranks reversed, colours swapped.
fn flip_board(occupied: u64, codes: u128) -> (u64, u128) {
    let mut left = codes;
    let mut out = 0u128;
    let mut bits = 4 * occupied.count_ones();
    let used = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    for rank in occupied.to_le_bytes() {
        let width = 4 * rank.count_ones();
        bits -= width;
        out |= (left & ((1 << width) - 1)) << (bits & 127);
        left >>= width;
    }
    (occupied.swap_bytes(), out ^ (COLOR_BITS & used))
}
