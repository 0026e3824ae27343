//! Piece tables: blocks of one piece variable whose rows are one table lookup per piece. Training streams these from
//! packed boards for both perspectives, so the loops count instructions: they take pieces by eights, whose trip counts
//! the CPU predicts well.

use crate::chess::{PackedBoard, Perspective};
use crate::features::spec::{BinderSpec, ENEMY_KING, SourceSpec};

use super::CompiledBlock;
use super::sum_tables::SumTables;
use super::tables::NONE;

/// Most pieces on a board.
const MAX_PIECES: usize = 32;

/// The table of a block with one piece variable, no conditions and no shared rows, whose product is one term.
#[derive(Debug)]
pub struct PieceTable {
    /// Whether every piece has an entry on every square.
    complete: bool,
    oriented: OrientedTables,
    /// The kings' part where only the own king matters.
    pub own_kings: Option<Box<OwnKings>>,
    pub sums: Option<SumTables>,
}

/// A piece table reordered for each perspective and mirrored half: entries by code and square of the board as it
/// stands.
#[derive(Debug)]
struct OrientedTables {
    tables: [Box<[u32; 1024]>; 4],
}

impl OrientedTables {
    fn of(entries: &[u32; 1024]) -> OrientedTables {
        let reorder = |number: usize| {
            let mut table = Box::new([0; 1024]);
            for (state, entry) in table.iter_mut().enumerate() {
                *entry = entries[state ^ usize::from(orientation_xor(number))];
            }
            table
        };
        OrientedTables { tables: [0, 1, 2, 3].map(reorder) }
    }
}

/// By perspective and square of the own king: base row and number of the oriented table.
pub type OwnKings = [[(u32, u8); 64]; 2];

/// The exclusive or that orients states (code · 64 + square) for oriented table `number`: bit 0 mirrors files, bit 1
/// exchanges ranks and colours as for Black.
pub const fn orientation_xor(number: usize) -> u16 {
    (if number & 1 != 0 { 7 } else { 0 }) | (if number & 2 != 0 { 56 | 8 << 6 } else { 0 })
}

/// The pieces of a packed board in a row.
#[derive(Clone, Debug)]
pub struct PieceList {
    /// Code · 64 + square of each piece; entries from `count` on are undefined.
    states: [u16; MAX_PIECES],
    count: usize,
    /// Last square with a piece of each code, 64 if none. Reliable for kings only.
    last: [u8; 16],
}

impl Default for PieceList {
    fn default() -> Self {
        PieceList { states: [0; MAX_PIECES], count: 0, last: [64; 16] }
    }
}

impl PieceList {
    /// Replaces the list by the pieces of a board. In place, because copying a list that was just written makes the CPU
    /// wait for its own stores.
    #[inline]
    pub fn fill(&mut self, board: &PackedBoard) {
        self.count = board.count().min(32) as usize;
        self.last = [64; 16];
        let mut occupied = board.occupancy();
        let mut codes = board.codes();
        for states in self.states.chunks_exact_mut(8).take(self.count.div_ceil(8)) {
            let mut nibbles = codes as u32;
            codes >>= 32;
            for state in states {
                let square = occupied.trailing_zeros() & 63;
                let code = nibbles & 15;
                *state = (code << 6 | square) as u16;
                self.last[code as usize] = square as u8;
                occupied &= occupied.wrapping_sub(1);
                nibbles >>= 4;
            }
        }
    }

    fn king(&self, pov: Perspective) -> Option<u32> {
        Some(u32::from(self.last[5 | pov.index() << 3])).filter(|square| *square < 64)
    }
}

/// A growing list of rows with the end of each position marked.
///
/// ```
/// let mut buffer = fsbench::features::RowBuffer::default();
/// buffer.extend(&[3, 5]);
/// buffer.end();
/// assert_eq!((buffer.rows(), buffer.ends()), (&[3, 5][..], &[2][..]));
/// ```
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

    /// Marks the end of a position.
    #[inline]
    pub fn end(&mut self) {
        self.ends.push(self.used as u32);
    }

    /// The number of rows up to each marked end.
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
        let end = self.used + rows.len();
        self.make_room(end);
        self.rows[self.used..end].copy_from_slice(rows);
        self.used = end;
    }

    #[inline]
    fn make_room(&mut self, rows: usize) {
        if self.rows.len() < rows {
            self.rows.resize(2 * rows, 0);
        }
    }

    /// Spare room behind the rows; [`RowBuffer::commit`] then says how many of it were written.
    #[inline]
    pub(super) fn spare(&mut self) -> &mut [u32; MAX_PIECES] {
        self.make_room(self.used + MAX_PIECES);
        self.rows[self.used..].first_chunk_mut().expect("resized above")
    }

    #[inline]
    pub(super) fn commit(&mut self, count: usize) {
        self.used += count;
    }
}

/// A king's part of the rows, if it leaves any, by its oriented square.
type KingRows = Vec<(usize, Option<u32>)>;

impl CompiledBlock {
    /// The block's piece table, if its shape allows one.
    pub(super) fn build_piece_table(&self) -> Option<PieceTable> {
        let ([binder], [term]) = (&self.binders[..], &self.terms[..]) else { return None };
        if !self.binds_one_piece() || self.shares_rows() || !binder.is_unconditional() {
            return None;
        }
        let table = &term.tables[binder.slot];
        let entries: Box<[u32; 1024]> = table.clone().into_boxed_slice().try_into().ok()?;
        Some(PieceTable {
            complete: term.complete[binder.slot],
            oriented: OrientedTables::of(&entries),
            own_kings: self.own_kings(),
            sums: SumTables::of(&entries),
        })
    }

    /// Whether a piece is the block's only variable, and there are no counts.
    fn binds_one_piece(&self) -> bool {
        let [BinderSpec { source: SourceSpec::Pieces, .. }] = self.spec.binders[..] else { return false };
        self.spec.counts().is_empty()
    }

    /// Whether the block is a piece table.
    pub fn is_piece_table(&self) -> bool {
        self.piece_table.is_some()
    }

    /// For a piece table in which the enemy king makes no difference: the own king's part of the rows, by its oriented
    /// square, and the piece's, by relative code and oriented square.
    pub fn king_and_piece_rows(&self) -> Option<(KingRows, &[u32])> {
        let [white, _] = self.piece_table.as_ref()?.own_kings.as_deref()?;
        let oriented = |(own, (base, number)): (usize, &(u32, u8))| {
            let mirror = if number & 1 != 0 { 7 } else { 0 };
            (own ^ mirror, (*base != NONE).then_some(*base))
        };
        let kings = white.iter().enumerate().map(oriented).collect();
        Some((kings, &self.terms.first()?.tables[self.binders.first()?.slot]))
    }

    /// For a piece table: the kings' part of the rows, and the number of the oriented table. `None` where the kings
    /// leave the block without rows.
    #[inline(always)]
    pub(super) fn base_and_table(&self, own: u32, enemy: u32, pov: Perspective) -> Option<(u32, usize)> {
        let known = self.piece_table.as_ref().and_then(|table| table.own_kings.as_ref());
        let (base, number) = match known {
            Some(known) => known[pov.index() & 1][own as usize & 63],
            None => self.compute_base_and_table(own, enemy, pov),
        };
        (base != NONE).then_some((base, usize::from(number & 3)))
    }

    fn compute_base_and_table(&self, own: u32, enemy: u32, pov: Perspective) -> (u32, u8) {
        let kings = self.kings(own, enemy, pov);
        let base = self.terms.first().map_or(NONE, |term| self.base(term, &kings));
        (base, (kings.mask & 1 | kings.mask >> 2 & 2) as u8 & 3)
    }

    /// Precomputes [`CompiledBlock::base_and_table`] where the enemy king makes no difference.
    fn own_kings(&self) -> Option<Box<OwnKings>> {
        let [term] = &self.terms[..] else { return None };
        let enemy_is_irrelevant =
            self.king_conditions.is_empty() && term.tables[ENEMY_KING].iter().all(|entry| *entry == 0);
        let by_square = |pov| std::array::from_fn(|own| self.compute_base_and_table(own as u32, 0, pov));
        enemy_is_irrelevant.then(|| Box::new(Perspective::ALL.map(by_square)))
    }

    /// For a piece table: appends the active features, shifted by `offset`, for the side to move and for the other
    /// side.
    #[inline]
    pub fn append_both(&self, pieces: &PieceList, stm: Perspective, offset: u32, sides: &mut [RowBuffer; 2]) {
        let Some(piece_table) = &self.piece_table else { return };
        for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
            let (Some(own), Some(enemy)) = (pieces.king(pov), pieces.king(pov.other())) else { return };
            let Some((base, number)) = self.base_and_table(own, enemy, pov) else { continue };
            let table = &piece_table.oriented.tables[number];
            let base = base.wrapping_add(offset);
            let spare = side.spare();
            let entry = |state: u16| table[usize::from(state & 1023)];
            if piece_table.complete {
                let eights = pieces.states.as_chunks::<8>().0.iter().zip(spare.as_chunks_mut::<8>().0);
                for (states, rows) in eights.take(pieces.count.div_ceil(8)) {
                    for (state, row) in states.iter().zip(rows) {
                        *row = base.wrapping_add(entry(*state));
                    }
                }
                side.commit(pieces.count);
                continue;
            }
            let mut count = 0;
            for state in &pieces.states[..pieces.count] {
                let entry = entry(*state);
                spare[count & (MAX_PIECES - 1)] = base.wrapping_add(entry);
                count += usize::from(entry != NONE);
            }
            side.commit(count.min(MAX_PIECES));
        }
    }
}
