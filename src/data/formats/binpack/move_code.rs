//! The code of a move in a chain's movetext: the number of the own piece, in square order, and the number of its
//! target.

use shakmaty::Role;

use super::bits::{BitWindow, width};
use super::bmi2::BitInstructions;
use super::error::MovetextError;
use super::position::{Moves, Position, below, square};
use crate::chess::PackedMove;

const PROMOTIONS: [Role; 4] = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen];

/// Decodes the move played in `position`. Whether it is legal shows when it is played.
#[inline(always)]
pub fn decode_move(
    position: &Position,
    text: &mut BitWindow,
    bits: impl BitInstructions,
) -> Result<PackedMove, MovetextError> {
    let own = position.own();
    let pieces = own.count_ones();
    let piece = text.take(width(pieces));
    if piece >= pieces {
        return Err(MovetextError::Segment { piece, pieces });
    }
    let moves = position.moves(bits.nth(own, piece));
    let targets = moves.targets.count_ones();
    let count = count_moves(&moves, targets);
    let choice = text.take(width(count));
    if choice >= count {
        return Err(MovetextError::Choice { from: square(moves.from), choice, count });
    }
    // A chain's position has no rights of Chess960.
    Ok(nth_of(&moves, targets, choice, Position::corner, bits))
}

/// Move number `choice` of a piece, which must have more moves than that.
#[inline(always)]
pub fn nth_move(position: &Position, moves: &Moves, choice: u32, bits: impl BitInstructions) -> PackedMove {
    nth_of(moves, moves.targets.count_ones(), choice, |from, king_side| position.castling_rook(from, king_side), bits)
}

#[inline(always)]
fn nth_of(
    moves: &Moves,
    targets: u32,
    choice: u32,
    castling_rook: impl FnOnce(u32, bool) -> u32,
    bits: impl BitInstructions,
) -> PackedMove {
    let from = square(moves.from);
    if moves.promotes {
        let role = PROMOTIONS[choice as usize & 3];
        return PackedMove::new(from, square(bits.nth(moves.targets, choice >> 2)), Some(role));
    }
    if choice < targets {
        return PackedMove::new(from, square(bits.nth(moves.targets, choice)), None);
    }
    // With both rights, the queen side comes first.
    let queen_side = moves.castles[0] && choice == targets;
    PackedMove::new(from, square(castling_rook(moves.from, !queen_side)), None)
}

/// The number of moves of a piece.
#[inline(always)]
pub fn count_moves(moves: &Moves, targets: u32) -> u32 {
    let castles = u32::from(moves.castles[0]) + u32::from(moves.castles[1]);
    if moves.promotes { 4 * targets } else { targets + castles }
}

/// A move's code: the piece's number, then the target's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MoveCode {
    pub value: u32,
    pub bits: u32,
}

/// The code of `mv`; `None` if no own piece moves that way.
#[inline(always)]
pub fn encode_move(position: &Position, mv: PackedMove) -> Option<MoveCode> {
    let own = position.own();
    let from = mv.from() as u32;
    let to = mv.to() as u32;
    if own >> from & 1 == 0 {
        return None;
    }
    let moves = position.moves(from);
    let promotion = mv.promotion().and_then(|role| PROMOTIONS.iter().position(|other| *other == role));
    if promotion.is_some() != moves.promotes {
        return None;
    }
    let index = below(moves.targets, to);
    let choice = if moves.targets >> to & 1 == 1 {
        promotion.map_or(index, |role| 4 * index + role as u32)
    } else {
        let side = moves
            .castles
            .iter()
            .zip([true, false])
            .position(|(right, queen_side)| *right && position.castling_rook(from, !queen_side) == to)?;
        moves.targets.count_ones() + u32::from(side == 1 && moves.castles[0])
    };
    let count = count_moves(&moves, moves.targets.count_ones());
    let piece_bits = width(own.count_ones());
    let choice_bits = width(count);
    Some(MoveCode { value: below(own, from) << choice_bits | choice, bits: piece_bits + choice_bits })
}
