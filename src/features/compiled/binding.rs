//! Values of variables, and squares on lines of the board.

use crate::chess::Bitboard;
use crate::features::source::Direction;
use crate::features::spec::{Entity, VariableKind};

/// The value of a variable: relative code and oriented square. Bare squares have code 0.
#[derive(Copy, Clone, Debug, Default)]
pub struct Binding {
    pub code: usize,
    pub square: u32,
}

impl Binding {
    /// Its position in the tables of its kind.
    pub fn state(self, kind: VariableKind) -> usize {
        match kind {
            VariableKind::Piece => self.code << 6 | self.square as usize,
            VariableKind::Square => self.square as usize,
        }
    }

    pub fn entity(self) -> Entity {
        Entity { square: self.square, role: self.code as u32 & 7, color: self.code as u32 >> 3 }
    }
}

/// The squares from a square to the edge, by direction.
static RAYS: [[u64; 64]; 4] = rays();
const fn rays() -> [[u64; 64]; 4] {
    let directions = [Direction::East, Direction::North, Direction::Northeast, Direction::Northwest];
    let mut rays = [[0; 64]; 4];
    let mut direction = 0;
    while direction < 4 {
        let (files, ranks) = directions[direction].step();
        let mut from = 0;
        while from < 64 {
            let mut file = from % 8;
            let mut rank = from / 8;
            loop {
                file += files;
                rank += ranks;
                if file < 0 || file > 7 || rank < 0 || rank > 7 {
                    break;
                }
                rays[direction][from as usize] |= 1 << (file + 8 * rank);
            }
            from += 1;
        }
        direction += 1;
    }
    rays
}

/// The squares from a square to the edge of the board.
pub fn ray(from: u32, direction: Direction) -> u64 {
    RAYS[direction as usize][from as usize]
}

/// The squares of a bitboard, ascending.
#[inline]
pub fn squares(bitboard: u64) -> impl Iterator<Item = u32> {
    Bitboard(bitboard).into_iter().map(u32::from)
}
