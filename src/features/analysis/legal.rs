//! Material of legal positions, and the colours of the oriented board.

use crate::chess::{Color, Piece, Role, Square};
use crate::features::spec::Entity;

/// Most pawns and promoted pieces of a side.
pub const FLEXIBLE: u32 = 8;
/// Most unpromoted pieces by role. The two bishops stand on squares of different colours.
pub const UNPROMOTED: [u32; 5] = [0, 2, 2, 2, 1];

/// The ranks without pawns.
pub const END_RANKS: u64 = 0xff00_0000_0000_00ff;
const LIGHT: u64 = 0x55aa_55aa_55aa_55aa;

/// Whether a side may have these pieces (squares by role).
pub fn standard_material(squares: &[u64; 6]) -> bool {
    let promoted = |squares: u64, unpromoted: u32| squares.count_ones().saturating_sub(unpromoted);
    let [pawns, knights, bishops, rooks, queens, _] = *squares;
    let all_promoted = promoted(knights, 2)
        + promoted(bishops & LIGHT, 1)
        + promoted(bishops & !LIGHT, 1)
        + promoted(rooks, 2)
        + promoted(queens, 1);
    pawns.count_ones() + all_promoted <= FLEXIBLE
}

/// The colour of own (0) and their (1) pieces, from White's perspective.
pub fn color(color: u32) -> Color {
    Color::from_white(color == 0)
}

/// The piece on the board from White's perspective.
///
/// The analysis only uses White's perspective, with the own king on the half that `mirror` chooses: oriented squares
/// are then board squares. This loses no generality, because turning or mirroring the board with its colours keeps
/// legality.
pub fn piece(entity: Entity) -> Piece {
    Piece { color: color(entity.color), role: Role::ALL[entity.role as usize] }
}

/// The inverse of [`piece`].
pub fn entity(square: Square, piece: Piece) -> Entity {
    Entity { square: square.into(), role: piece.role as u32 - 1, color: u32::from(piece.color.is_black()) }
}
