//! Blocks that are one table over pieces, encoded for both perspectives from a packed board: what training streams, so
//! every instruction counts. Pieces go by eights, so that the loops' lengths are easy to foresee.

use crate::chess::{PackedBoard, Perspective};

use super::CompiledBlock;
use super::tables::NONE;
use crate::features::spec::ENEMY_KING;

/// Pieces a board has at most.
const MOST: usize = 32;

/// The pieces of a packed board in a row.
#[derive(Clone, Debug)]
pub struct PieceList {
    /// Code · 64 + square of each piece; what follows the last one means nothing.
    men: [u16; MOST],
    count: usize,
    /// Where a piece of each code was seen last; 64 where none was. Of codes other than the kings' it may be wrong.
    last: [u8; 16],
}

/// Rows of one position after the other, as they are appended.
#[derive(Clone, Debug, Default)]
pub struct RowBuffer {
    rows: Vec<u32>,
    used: usize,
    ends: Vec<u32>,
}

impl RowBuffer {
    pub fn clear(&mut self) {
        self.used = 0;
        self.ends.clear();
    }

    /// Marks the end of a position's rows.
    #[inline]
    pub fn end(&mut self) {
        self.ends.push(self.used as u32);
    }

    /// The ends marked, in rows.
    #[must_use]
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    #[must_use]
    pub fn rows(&self) -> &[u32] {
        &self.rows[..self.used]
    }

    #[must_use]
    pub const fn len(&self) -> usize {
        self.used
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub fn extend(&mut self, rows: &[u32]) {
        self.rows.truncate(self.used);
        self.rows.extend_from_slice(rows);
        self.used = self.rows.len();
    }

    /// Room behind what is used. The caller says with [`RowBuffer::take`] how much of it is.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u32; MOST] {
        if self.rows.len() < self.used + MOST {
            self.rows.resize(2 * (self.used + MOST), 0);
        }
        self.rows[self.used..].first_chunk_mut().expect("it was just made")
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        self.used += count;
    }
}

impl Default for PieceList {
    fn default() -> Self {
        PieceList { men: [0; MOST], count: 0, last: [64; 16] }
    }
}

impl PieceList {
    /// Takes another board. In place: a list just written and copied whole makes the CPU wait for its own stores.
    #[inline]
    pub fn fill(&mut self, board: &PackedBoard) {
        self.count = board.count().min(32) as usize;
        self.last = [64; 16];
        let (mut left, mut codes) = (board.occupancy(), board.codes());
        for men in self.men.chunks_exact_mut(8).take(self.count.div_ceil(8)) {
            let mut nibbles = codes as u32;
            codes >>= 32;
            for man in men {
                let (square, code) = (left.trailing_zeros() & 63, nibbles & 15);
                *man = (code << 6 | square) as u16;
                self.last[code as usize] = square as u8;
                left &= left.wrapping_sub(1);
                nibbles >>= 4;
            }
        }
    }

    fn king(&self, pov: Perspective) -> Option<u32> {
        Some(u32::from(self.last[5 | pov.index() << 3])).filter(|square| *square < 64)
    }
}

/// A block's table as each of the perspectives and mirrored halves sees it: entries by the piece as it stands.
#[derive(Debug)]
pub struct Turned {
    tables: [Box<[u32; 1024]>; 4],
}

impl Turned {
    /// `table`: entries by relative code and oriented square.
    pub fn of(table: &[u32; 1024]) -> Turned {
        let turned = |number: usize| {
            let mut turned = Box::new([0; 1024]);
            for (state, entry) in turned.iter_mut().enumerate() {
                *entry = table[state ^ usize::from(exchange(number))];
            }
            turned
        };
        Turned { tables: [0, 1, 2, 3].map(turned) }
    }
}

/// By perspective and square of the own king: what [`CompiledBlock::turned`] gives, the table's number one byte.
pub type OwnKings = [[(u32, u8); 64]; 2];

/// The exclusive or of table number n: bit 0 mirrors files, bit 1 exchanges ranks and colours, as Black's view does.
pub(super) const fn exchange(number: usize) -> u16 {
    (if number & 1 != 0 { 7 } else { 0 }) | (if number & 2 != 0 { 56 | 8 << 6 } else { 0 })
}

impl CompiledBlock {
    /// Whether [`CompiledBlock::walk_both`] encodes it.
    pub fn walks(&self) -> bool {
        self.walk.is_some()
    }

    /// What the kings add to a block of one table, and which of the [`Turned`] tables they ask for; none where it has no
    /// rows.
    #[inline(always)]
    pub(super) fn turned(&self, own: u32, enemy: u32, pov: Perspective) -> Option<(u32, usize)> {
        let known = self.walk.as_ref().and_then(|walk| walk.own_kings.as_ref());
        let (base, number) = match known {
            Some(known) => known[pov.index() & 1][own as usize & 63],
            None => self.asked(own, enemy, pov),
        };
        (base != NONE).then_some((base, usize::from(number & 3)))
    }

    /// Base and number of the table.
    fn asked(&self, own: u32, enemy: u32, pov: Perspective) -> (u32, u8) {
        let kings = self.kings(own, enemy, pov);
        let base = self.terms.first().map_or(NONE, |term| self.base(term, &kings));
        (base, (kings.mask & 1 | kings.mask >> 2 & 2) as u8 & 3)
    }

    /// What [`CompiledBlock::turned`] looks up, where the enemy's king makes no difference.
    pub(super) fn own_kings(&self) -> Option<Box<OwnKings>> {
        let [term] = &self.terms[..] else { return None };
        let alone = self.gate.is_empty() && term.tables[ENEMY_KING].iter().all(|entry| *entry == 0);
        let by_square = |pov| std::array::from_fn(|own| self.asked(own as u32, 0, pov));
        alone.then(|| Box::new(Perspective::ALL.map(by_square)))
    }

    /// Appends the active features, shifted by `offset`, as the side to move sees them and as the other does.
    #[inline]
    pub fn walk_both(&self, pieces: &PieceList, stm: Perspective, offset: u32, sides: &mut [RowBuffer; 2]) {
        let Some(walk) = &self.walk else { return };
        for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
            let (Some(own), Some(enemy)) = (pieces.king(pov), pieces.king(pov.other())) else { return };
            let Some((base, number)) = self.turned(own, enemy, pov) else { continue };
            let table = &walk.turned.tables[number];
            let first = base.wrapping_add(offset);
            let room = side.room();
            let entry = |man: u16| table[usize::from(man & 1023)];
            if walk.whole {
                let men = pieces.men.as_chunks::<8>().0.iter().zip(room.as_chunks_mut::<8>().0);
                for (men, rows) in men.take(pieces.count.div_ceil(8)) {
                    for (man, row) in men.iter().zip(rows) {
                        *row = first.wrapping_add(entry(*man));
                    }
                }
                side.take(pieces.count);
                continue;
            }
            let mut count = 0;
            for man in &pieces.men[..pieces.count] {
                let entry = entry(*man);
                room[count & (MOST - 1)] = first.wrapping_add(entry);
                count += usize::from(entry != NONE);
            }
            side.take(count.min(MOST));
        }
    }
}
