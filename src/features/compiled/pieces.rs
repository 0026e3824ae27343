//! Blocks that are one table over pieces, encoded for both perspectives from a packed board: what training streams, so
//! every instruction counts.

use crate::chess::{PackedBoard, Perspective};

use super::CompiledBlock;
use super::tables::NONE;

/// The pieces of a packed board in a row.
#[derive(Clone, Debug)]
pub struct PieceList {
    /// Code · 64 + square of each piece.
    men: [u16; 32],
    count: usize,
    /// Where a piece of each code was seen last; 64 where none was.
    last: [u8; 16],
}

impl PieceList {
    #[inline]
    #[must_use]
    pub fn of(board: &PackedBoard) -> PieceList {
        let mut list = PieceList { men: [0; 32], count: board.count().min(32) as usize, last: [64; 16] };
        let (mut left, codes) = (board.occupancy(), board.codes());
        let mut take = |men: &mut [u16], mut nibbles: u64| {
            for man in men {
                let (square, code) = (left.trailing_zeros() & 63, (nibbles & 15) as u16);
                *man = code << 6 | square as u16;
                list.last[usize::from(code)] = square as u8;
                left &= left.wrapping_sub(1);
                nibbles >>= 4;
            }
        };
        let (low, high) = list.men[..list.count].split_at_mut(list.count.min(16));
        take(low, codes as u64);
        take(high, (codes >> 64) as u64);
        list
    }

    fn king(&self, pov: Perspective) -> Option<u32> {
        Some(u32::from(self.last[5 | pov.index() << 3])).filter(|square| *square < 64)
    }
}

impl CompiledBlock {
    /// Whether [`CompiledBlock::walk_both`] encodes it.
    pub fn walks(&self) -> bool {
        self.walk.is_some()
    }

    /// Appends the active features, shifted by `offset`, as the side to move sees them and as the other does.
    #[inline]
    pub fn walk_both(&self, pieces: &PieceList, stm: Perspective, offset: u32, sides: &mut [Vec<u32>; 2]) {
        let (Some(walk), [term]) = (&self.walk, &self.terms[..]) else { return };
        let men = &pieces.men[..pieces.count];
        for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
            let (Some(own), Some(enemy)) = (pieces.king(pov), pieces.king(pov.other())) else { return };
            let kings = self.kings(own, enemy, pov);
            let base = self.base(term, &kings);
            if base == NONE {
                continue;
            }
            // Both the relative code and the oriented square come by exclusive or.
            let turn = (pov.index() << 9) as u16 | kings.mask as u16;
            let first = base.wrapping_add(offset);
            let entry = |man: &u16| walk.table[usize::from((man ^ turn) & 1023)];
            if walk.whole {
                side.extend(men.iter().map(|man| first.wrapping_add(entry(man))));
                continue;
            }
            let mut rows = [0u32; 32];
            let mut count = 0;
            for man in men {
                let entry = entry(man);
                rows[count & 31] = first.wrapping_add(entry);
                count += usize::from(entry != NONE);
            }
            side.extend_from_slice(&rows[..count.min(32)]);
        }
    }
}
