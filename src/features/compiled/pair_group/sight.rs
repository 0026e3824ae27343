//! Sight from a square: the first occupied squares along its eight directions.

use shakmaty::{Color, attacks};

use crate::chess::Square;
use crate::features::syntax::Direction;

/// The four directions towards higher squares, then their opposites in the same order: direction d is opposite to d ^
/// 4.
const DIRECTIONS: usize = 8;
const STEPS: [(i32, i32); DIRECTIONS / 2] =
    [Direction::East.step(), Direction::North.step(), Direction::Northeast.step(), Direction::Northwest.step()];

/// By square and direction: the squares from there to the edge of the board.
static RAYS: [[u64; DIRECTIONS]; 64] = rays();

const fn rays() -> [[u64; DIRECTIONS]; 64] {
    let mut rays = [[0; DIRECTIONS]; 64];
    let mut at = 0;
    while at < 64 * DIRECTIONS {
        let square = at / DIRECTIONS;
        let direction = at % DIRECTIONS;
        let (files, ranks) = STEPS[direction & 3];
        let sign = if direction < 4 { 1 } else { -1 };
        let mut file = square as i32 % 8 + sign * files;
        let mut rank = square as i32 / 8 + sign * ranks;
        while file >= 0 && file < 8 && rank >= 0 && rank < 8 {
            rays[square][direction] |= 1 << (file + 8 * rank);
            file += sign * files;
            rank += sign * ranks;
        }
        at += 1;
    }
    rays
}

/// The direction from one square to another on a line with it; 0 for others.
static DIRECTION_TO: [[u8; 64]; 64] = {
    let mut directions = [[0; 64]; 64];
    let mut at = 0;
    while at < 64 * DIRECTIONS {
        let from = at / DIRECTIONS;
        let direction = at % DIRECTIONS;
        let mut ray = RAYS[from][direction];
        while ray != 0 {
            directions[from][ray.trailing_zeros() as usize] = direction as u8;
            ray &= ray - 1;
        }
        at += 1;
    }
    directions
};

/// By code and square: the squares that a pawn, a knight or a king attacks; none for other codes.
static LEAPS: [[u64; 64]; 16] = {
    let mut leaps = [[0; 64]; 16];
    let mut at = 0;
    while at < 64 {
        let square = Square::new(at as u32);
        leaps[0][at] = attacks::pawn_attacks(Color::White, square).0;
        leaps[8][at] = attacks::pawn_attacks(Color::Black, square).0;
        leaps[1][at] = attacks::knight_attacks(square).0;
        leaps[9][at] = leaps[1][at];
        leaps[5][at] = attacks::king_attacks(square).0;
        leaps[13][at] = leaps[5][at];
        at += 1;
    }
    leaps
};

/// Roles that slide along ranks and files, and along diagonals: bit by role.
const STRAIGHT: u32 = 1 << 3 | 1 << 4;
const DIAGONAL: u32 = 1 << 2 | 1 << 4;

/// The squares that a pawn, a knight or a king of this code attacks.
#[inline(always)]
pub fn leaps(code: u32, square: u32) -> u64 {
    LEAPS[code as usize & 15][square as usize & 63]
}

/// The direction from a square to another that is seen from there.
#[inline(always)]
pub fn direction_to(from: u32, to: u32) -> usize {
    usize::from(DIRECTION_TO[from as usize & 63][to as usize & 63]) & 7
}

/// The squares between two, in this direction from the first, and the second itself.
#[inline(always)]
pub fn up_to(from: u32, to: u32, direction: usize) -> u64 {
    RAYS[from as usize & 63][direction & 7] & !RAYS[to as usize & 63][direction & 7]
}

/// The first occupied squares seen from a square.
#[derive(Copy, Clone)]
pub struct Sight {
    /// By direction; 0 where there is none.
    firsts: [u64; DIRECTIONS],
}

impl Sight {
    /// Without branches: whether there is anything in a direction cannot be predicted.
    #[inline(always)]
    pub fn from(square: u32, occupied: u64) -> Sight {
        let mut firsts = RAYS[square as usize & 63];
        for first in &mut firsts[..4] {
            *first &= occupied;
            *first &= first.wrapping_neg();
        }
        for first in &mut firsts[4..] {
            *first &= occupied;
            *first &= 1 << 63 >> (*first | 1).leading_zeros();
        }
        Sight { firsts }
    }

    /// The squares that rooks see.
    #[inline(always)]
    pub const fn straight(&self) -> u64 {
        let [east, north, _, _, west, south, _, _] = self.firsts;
        east | north | west | south
    }

    /// The squares that bishops see.
    #[inline(always)]
    pub const fn diagonal(&self) -> u64 {
        let [_, _, a, b, _, _, c, d] = self.firsts;
        a | b | c | d
    }

    /// The square that a slider in this direction sees through this one.
    #[inline(always)]
    pub const fn opposite(&self, direction: usize) -> u64 {
        self.firsts[direction & 7 ^ 4]
    }

    /// The squares that a piece of this code attacks; of a slider's, the occupied ones only.
    #[inline(always)]
    pub fn attacks(&self, code: u32, square: u32) -> u64 {
        let all_if = |roles: u32| u64::from(roles >> (code & 7) & 1).wrapping_neg();
        leaps(code, square) | self.straight() & all_if(STRAIGHT) | self.diagonal() & all_if(DIAGONAL)
    }
}
