//! Castling rights in a record: which there are, and for those of Chess960 the rooks' files.

use shakmaty::{CastlingSide, Chess, Color, File, Position, Square};

use crate::chess::castling_mode;

const RIGHTS: [(Color, CastlingSide); 4] = [
    (Color::White, CastlingSide::KingSide),
    (Color::White, CastlingSide::QueenSide),
    (Color::Black, CastlingSide::KingSide),
    (Color::Black, CastlingSide::QueenSide),
];

/// Castling rights as bits 0–3: K, Q, k, q.
pub(super) fn rights(position: &Chess) -> u8 {
    let castles = position.castles();
    if castles.is_empty() {
        return 0;
    }
    RIGHTS.iter().rev().fold(0, |bits, (color, side)| bits << 1 | u8::from(castles.has(*color, *side)))
}

/// Bytes 38–39 of a position's record.
pub(in crate::data) fn chess960_rights(position: &Chess) -> u16 {
    if castling_mode(position).is_standard() {
        return 0;
    }
    let castles = position.castles();
    let right = |color, side| castles.rook(color, side).map_or(0, |rook| 8 | rook.file() as u16);
    RIGHTS.iter().rev().fold(0, |bits, (color, side)| bits << 4 | right(*color, *side))
}

/// The rooks of castling rights in the order K, Q, k, q, given bytes 38–39 of a record.
pub(in crate::data) fn castling_rooks(chess960_rights: u16) -> [Square; 4] {
    std::array::from_fn(|right| {
        let (color, side) = RIGHTS[right];
        let file = match (chess960_rights >> (4 * right) & 15, side) {
            (found @ 8.., _) => File::new(u32::from(found & 7)),
            (_, CastlingSide::KingSide) => File::H,
            (_, CastlingSide::QueenSide) => File::A,
        };
        Square::from_coords(file, color.backrank())
    })
}
