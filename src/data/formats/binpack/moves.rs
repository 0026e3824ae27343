//! The numbers a chain's text gives a move: which of the own pieces moves, in square order, and to which of the squares
//! it can go to.

use shakmaty::{Role, Square};

use super::bits::{Window, width};
use super::cpu::Cpu;
use super::error::TextError;
use super::position::{Moves, Position, below, square};
use crate::data::record::PackedMove;

const PROMOTIONS: [Role; 4] = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen];

/// Reads the move played in `position`; whether it is legal is seen when it is played.
#[inline(always)]
pub fn read(position: &Position, text: &mut Window, cpu: impl Cpu) -> Result<PackedMove, TextError> {
    let own = position.own();
    let pieces = own.count_ones();
    let piece = text.take(width(pieces));
    if piece >= pieces {
        return Err(TextError::Piece { piece, pieces });
    }
    let moves = position.moves(cpu.nth(own, piece));
    let targets = moves.targets.count_ones();
    let count = choices(&moves, targets);
    let choice = text.take(width(count));
    if choice >= count {
        return Err(TextError::Choice { from: square(moves.from), choice, count });
    }
    Ok(chosen(&moves, targets, choice, cpu))
}

/// Move number `choice` of a piece; it must have more.
#[inline(always)]
pub fn nth(moves: &Moves, choice: u32, cpu: impl Cpu) -> PackedMove {
    chosen(moves, moves.targets.count_ones(), choice, cpu)
}

#[inline(always)]
fn chosen(moves: &Moves, targets: u32, choice: u32, cpu: impl Cpu) -> PackedMove {
    let from = square(moves.from);
    if moves.promotes {
        let role = PROMOTIONS[choice as usize & 3];
        return PackedMove::new(from, square(cpu.nth(moves.targets, choice >> 2)), Some(role));
    }
    if choice < targets {
        return PackedMove::new(from, square(cpu.nth(moves.targets, choice)), None);
    }
    // Queen side first, where both are there.
    let queen_side = moves.castles[0] && choice == targets;
    PackedMove::new(from, rook_home(from, queen_side), None)
}

/// How many moves the text can choose from.
#[inline(always)]
pub fn choices(moves: &Moves, targets: u32) -> u32 {
    let castles = u32::from(moves.castles[0]) + u32::from(moves.castles[1]);
    if moves.promotes { 4 * targets } else { targets + castles }
}

/// Where the rook stands that a king on `from` castles with.
fn rook_home(from: Square, queen_side: bool) -> Square {
    square(if queen_side { from as u32 & 56 } else { from as u32 | 7 })
}

/// A move as the text gives it: value and bits of the piece, then of its choice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub value: u32,
    pub bits: u32,
}

/// The numbers of `mv`; none where no piece can go that way.
#[inline(always)]
pub fn numbers(position: &Position, mv: PackedMove) -> Option<Numbers> {
    let own = position.own();
    let (from, to) = (mv.from() as u32, mv.to() as u32);
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
            .position(|(right, queen_side)| *right && rook_home(mv.from(), queen_side) == mv.to())?;
        moves.targets.count_ones() + u32::from(side == 1 && moves.castles[0])
    };
    let count = choices(&moves, moves.targets.count_ones());
    let (piece_bits, choice_bits) = (width(own.count_ones()), width(count));
    Some(Numbers { value: below(own, from) << choice_bits | choice, bits: piece_bits + choice_bits })
}
