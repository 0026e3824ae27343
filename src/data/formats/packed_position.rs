//! The 32 bytes of a position in viriformat and marlinformat, little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | occupancy, bit = square (a1 = 0 … h8 = 63) |
//! | 8–23 | a nibble per occupied square, in square order: bit 3 Black, bits 0–2 the role, 6: a rook that may castle |
//! | 24 | en passant square or 64; bit 7 for Black to move |
//! | 25 | rule-50 counter |
//! | 26–27 | move number |
//! | 28–29 | score, White's view |
//! | 30 | result: 0 Black won, 1 draw, 2 White won |
//! | 31 | unused |

use std::num::NonZeroU32;

use shakmaty::{CastlingMode, Chess, Color, FromSetup, PositionError, Setup, Square};

use crate::chess::{Bitboard, PackedBoard};
use crate::data::{GameResult, Record};
use crate::units::Ply;

pub const BYTES: usize = 32;
const ROOK: u128 = 3;
/// A rook that may castle.
const CASTLING_ROOK: u128 = 6;

/// Which half of a byte holds the first of two pieces: in the format the lower one; some writers swap them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NibbleOrder {
    LowFirst,
    HighFirst,
}

/// The fields of a position, not validated.
#[derive(Clone, Debug)]
pub struct PackedPosition {
    board: PackedBoard,
    castling_rooks: u64,
    turn: Color,
    ep_square: Option<Square>,
    rule50: u8,
    pub ply: Ply,
    /// White's view.
    pub score: i16,
    /// White's view.
    pub result: GameResult,
}

/// Why 32 bytes are not a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackedPositionError {
    Malformed(String),
    Illegal(String),
}

impl PackedPosition {
    /// # Errors
    /// When a field has an impossible value.
    pub fn read(bytes: &[u8; BYTES], order: NibbleOrder) -> Result<PackedPosition, PackedPositionError> {
        let malformed = |message: String| Err(PackedPositionError::Malformed(message));
        let occupied = bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let pieces = occupied.count_ones();
        if !(2..=32).contains(&pieces) {
            return malformed(format!("{pieces} pieces on the board"));
        }
        let result = match bytes[30] {
            0 => GameResult::Loss,
            1 => GameResult::Draw,
            2 => GameResult::Win,
            other => return malformed(format!("result {other}, expected 0, 1 or 2")),
        };
        let ep_square = bytes[24] & 127;
        if ep_square > 64 {
            return malformed(format!("en passant square {ep_square}, expected 0 to 64"));
        }
        let mut codes = 0u128;
        let mut castling_rooks = 0u64;
        let mut left = occupied;
        for place in 0..pieces as usize {
            let byte = bytes[8 + place / 2];
            let high = (place % 2 == 1) == (order == NibbleOrder::LowFirst);
            let mut code = u128::from(if high { byte >> 4 } else { byte & 15 });
            if code & 7 == CASTLING_ROOK {
                castling_rooks |= left & left.wrapping_neg();
                code = code & 8 | ROOK;
            }
            codes |= code << (4 * place);
            left &= left - 1;
        }
        let turn = Color::from_black(bytes[24] >= 128);
        // Some writers count moves from 0.
        let moves = u32::from(u16::from_le_bytes([bytes[26], bytes[27]])).saturating_sub(1);
        let Ok(ply) = u16::try_from(2 * moves + u32::from(turn.is_black())) else {
            return malformed(format!("move number {}", moves + 1));
        };
        Ok(PackedPosition {
            board: PackedBoard::from_bits(occupied, codes),
            castling_rooks,
            turn,
            ep_square: Square::try_from(ep_square).ok(),
            rule50: bytes[25],
            ply: Ply(ply),
            score: i16::from_le_bytes([bytes[28], bytes[29]]),
            result,
        })
    }

    /// The position, validated, without an en passant square that no pawn can take.
    ///
    /// # Errors
    /// When it is illegal both in standard chess and in Chess960.
    pub fn position(&self) -> Result<Chess, PackedPositionError> {
        let illegal = |message: String| PackedPositionError::Illegal(message);
        let mut setup = Setup::empty();
        setup.board = self.board.unpack().map_err(|error| illegal(error.to_string()))?;
        setup.turn = self.turn;
        setup.castling_rights = Bitboard(self.castling_rooks);
        setup.ep_square = self.ep_square;
        setup.halfmoves = u32::from(self.rule50);
        setup.fullmoves = NonZeroU32::MIN.saturating_add(u32::from(self.ply.0 / 2));
        let legal = |setup, mode| {
            Chess::from_setup(setup, mode).or_else(PositionError::ignore_invalid_ep_square).map_err(Box::new)
        };
        legal(setup.clone(), CastlingMode::Standard)
            .or_else(|error| legal(setup, CastlingMode::Chess960).map_err(|_| illegal(error.to_string())))
    }
}

/// The 32 bytes of a record's position; `score` is White's view.
pub fn write(record: &Record, score: i16, result: GameResult) -> [u8; BYTES] {
    let occupied = record.board().occupancy();
    let mut codes = record.board().codes();
    for (right, rook) in record.castling_rooks().into_iter().enumerate() {
        if record.castling() >> right & 1 != 0 {
            let place = (occupied & ((1 << rook as u32) - 1)).count_ones();
            codes += (CASTLING_ROOK - ROOK) << (4 * place);
        }
    }
    let ep_square = record.ep_file().map_or(64, |file| file as u8 + record.turn().fold_wb(40, 16));
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&occupied.to_le_bytes());
    bytes[8..24].copy_from_slice(&codes.to_le_bytes());
    bytes[24] = ep_square | u8::from(record.turn().is_black()) << 7;
    bytes[25] = record.rule50();
    bytes[26..28].copy_from_slice(&(record.ply().0 / 2 + 1).to_le_bytes());
    bytes[28..30].copy_from_slice(&score.to_le_bytes());
    bytes[30] = result as u8;
    bytes
}

/// A record's score from White's view; 0 without a score.
pub fn white_score(record: &Record) -> i16 {
    let score = record.score().unwrap_or(0);
    record.turn().fold_wb(score, score.wrapping_neg())
}

/// A record's result from White's view; a draw if it is unknown.
pub fn white_result(record: &Record) -> GameResult {
    let result = record.result().unwrap_or(GameResult::Draw);
    record.turn().fold_wb(result, result.reversed())
}

/// A score of White's view from the mover's. Records have no −32768.
pub fn score_for(turn: Color, white: i16) -> i16 {
    let white = white.max(-i16::MAX);
    turn.fold_wb(white, -white)
}

/// A result of White's view from the mover's.
pub const fn result_for(turn: Color, white: GameResult) -> GameResult {
    if turn.is_white() { white } else { white.reversed() }
}
