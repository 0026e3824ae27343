//! The stem: the 32 bytes at the beginning of a chain, big-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | occupancy, bit = square (a1 = 0 … h8 = 63) |
//! | 8–23 | a nibble per occupied square, in square order, the lower nibble first |
//! | 24–25 | move: bits 14–15 kind, 8–13 from, 2–7 to, 0–1 promotion; 0 no move |
//! | 26–27 | score from the side to move's point of view, as `bits::signed_to_unsigned`; 32002 no score |
//! | 28–29 | bits 14–15 result −1, 0 or 1 for the side to move, as `bits::signed_to_unsigned`; bits 0–13 ply |
//! | 30–31 | rule-50 counter in plies |
//!
//! Kinds of moves: 0 normal, 1 promotion (0 knight … 3 queen), 2 castling (to: the rook), 3 en passant. Nibbles are
//! 2·role + colour (pawn 0 … king 5; Black 1). Beyond these: 12 a pawn that has just advanced two squares, 13 White's
//! and 14 Black's rook with castling rights, 15 Black's king when Black is to move.

use shakmaty::{CastlingMode, Chess, Color, FromSetup, Move, Piece, Position as _, Rank, Role, Setup, Square};

use super::bits::{signed_to_unsigned, unsigned_to_signed};
use super::error::StemError;
use super::position::{Position, square};
use crate::chess::{Bitboard, PackedMove};
use crate::data::record::Sample;
use crate::data::{GameResult, Record, RecordError};
use crate::units::Ply;

pub const STEM_BYTES: usize = 32;
/// The score of samples without one.
pub const NO_SCORE: i16 = 32_002;
/// The largest ply that a stem can hold.
pub const MAX_PLY: u16 = (1 << 14) - 1;

/// A chain's first sample without its position.
pub struct Stem {
    pub ply: Ply,
    pub mv: Option<PackedMove>,
    /// As stored: [`NO_SCORE`] for none.
    pub score: i16,
    pub result: GameResult,
}

impl Stem {
    /// Decodes and validates a stem.
    pub fn read(bytes: &[u8; STEM_BYTES]) -> Result<(Stem, Position), StemError> {
        let ply = Ply(word(bytes, 28) & MAX_PLY);
        let legal = Chess::from_setup(setup(bytes, word(bytes, 30), ply.0)?, CastlingMode::Standard)
            .map_err(|error| StemError::Position(RecordError::Illegal(error.to_string())))?;
        let position = Position::new(&legal, ply).map_err(|error| StemError::Position(error.into()))?;
        let mv = match word(bytes, 24) {
            0 => None,
            packed => Some(legal_move(&legal, packed).ok_or(StemError::Move(packed))?),
        };
        Ok((Stem::of(bytes, ply, mv)?, position))
    }

    /// Decodes a stem whose position and move are known to be legal.
    pub fn read_unchecked(bytes: &[u8; STEM_BYTES]) -> Result<(Stem, Position), StemError> {
        let ply = Ply(word(bytes, 28) & MAX_PLY);
        let occupied = bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        if occupied.count_ones() > 32 {
            return Err(StemError::Segments(occupied.count_ones()));
        }
        let nibbles = bytes[8..].first_chunk::<16>().map_or(0, |bytes| u128::from_le_bytes(*bytes));
        let position = Position::from_stem_nibbles(occupied, nibbles, word(bytes, 30), ply);
        let packed = word(bytes, 24);
        Ok((Stem::of(bytes, ply, (packed != 0).then(|| packed_move(packed)))?, position))
    }

    fn of(bytes: &[u8; STEM_BYTES], ply: Ply, mv: Option<PackedMove>) -> Result<Stem, StemError> {
        let result = match unsigned_to_signed(word(bytes, 28) >> 14) {
            -1 => GameResult::Loss,
            0 => GameResult::Draw,
            1 => GameResult::Win,
            other => return Err(StemError::Result(other)),
        };
        Ok(Stem { ply, mv, score: unsigned_to_signed(word(bytes, 26)), result })
    }
}

const fn word(bytes: &[u8; STEM_BYTES], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn setup(bytes: &[u8; STEM_BYTES], rule50: u16, ply: u16) -> Result<Setup, StemError> {
    let mut setup = Setup::empty();
    let occupied = bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    if occupied.count_ones() > 32 {
        return Err(StemError::Segments(occupied.count_ones()));
    }
    for (slot, at) in Bitboard(occupied).into_iter().enumerate() {
        let nibble = bytes[8 + slot / 2] >> (4 * (slot % 2)) & 15;
        let misplaced = StemError::Misplaced { nibble, square: at };
        let rook = |color: Color| {
            if at.rank() == color.backrank() && matches!(at.file() as u8, 0 | 7) {
                Ok(color.rook())
            } else {
                Err(misplaced.clone())
            }
        };
        let piece = match nibble {
            12 => {
                let color = match at.rank() {
                    Rank::Fourth => Color::White,
                    Rank::Fifth => Color::Black,
                    _ => return Err(misplaced),
                };
                if let Some(other) = setup.ep_square.replace(square(at as u32 ^ 8)) {
                    return Err(StemError::EnPassant(square(other as u32 ^ 8), at));
                }
                color.pawn()
            }
            13 => rook(Color::White)?,
            14 => rook(Color::Black)?,
            15 => {
                setup.turn = Color::Black;
                Color::Black.king()
            }
            _ => Piece { color: Color::from_black(nibble & 1 == 1), role: ROLES[usize::from(nibble >> 1)] },
        };
        if matches!(nibble, 13 | 14) {
            setup.castling_rights |= Bitboard::from(at);
        }
        setup.board.set_piece_at(at, piece);
    }
    setup.halfmoves = u32::from(rule50);
    setup.fullmoves = setup.fullmoves.saturating_add(u32::from(ply / 2));
    Ok(setup)
}

const ROLES: [Role; 6] = Role::ALL;

/// The move of bytes 24–25, if it is legal and its kind matches the position.
fn legal_move(position: &Chess, packed: u16) -> Option<PackedMove> {
    let kind = packed >> 14;
    let mv = packed_move(packed);
    (kind_of(mv.in_position(position)?) == kind && (kind == 1 || packed & 3 == 0)).then_some(mv)
}

fn packed_move(packed: u16) -> PackedMove {
    let promotion = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen][usize::from(packed & 3)];
    let promotion = (packed >> 14 == 1).then_some(promotion);
    PackedMove::new(square(u32::from(packed >> 8)), square(u32::from(packed >> 2)), promotion)
}

const fn kind_of(mv: Move) -> u16 {
    match mv {
        Move::Normal { promotion: Some(_), .. } => 1,
        Move::Castle { .. } => 2,
        Move::EnPassant { .. } => 3,
        Move::Normal { .. } | Move::Put { .. } => 0,
    }
}

/// The stem of a sample whose ply is at most [`MAX_PLY`].
pub fn write(sample: &Sample, record: &Record, score: i16, result: GameResult) -> [u8; STEM_BYTES] {
    let mut bytes = [0; STEM_BYTES];
    let board = record.board();
    bytes[..8].copy_from_slice(&board.occupancy().to_be_bytes());
    let pushed = record
        .ep_file()
        .map(|file| Square::from_coords(file, sample.position.turn().fold_wb(Rank::Fifth, Rank::Fourth)));
    let castling = sample.position.castles().castling_rights();
    for (slot, (at, code)) in board.pieces().enumerate() {
        let nibble = match code.index() {
            _ if pushed == Some(at) => 12,
            3 if castling.contains(at) => 13,
            11 if castling.contains(at) => 14,
            13 if sample.position.turn().is_black() => 15,
            index => (index & 7) << 1 | index >> 3,
        };
        bytes[8 + slot / 2] |= (nibble << (4 * (slot % 2))) as u8;
    }
    let mv = sample.mv.map_or(0, |mv| {
        let packed = PackedMove::of(mv);
        let promotion = packed.promotion().map_or(0, |role| role as u16 - Role::Knight as u16);
        kind_of(mv) << 14 | (packed.from() as u16) << 8 | (packed.to() as u16) << 2 | promotion
    });
    let result = signed_to_unsigned(result as i16 - 1) << 14;
    for (at, word) in
        [(24, mv), (26, signed_to_unsigned(score)), (28, result | sample.ply.0), (30, u16::from(record.rule50()))]
    {
        bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
    }
    bytes
}
