//! Encoding: a walk over the pieces for blocks of one piece, a search over bitboards for the others.

use crate::chess::{Perspective, Square};
use crate::features::spec::{ENEMY_KING, Multiplicity, OWN_KING, VariableKind};

use super::delta::dedup_from;
use super::levels::guarded;
use super::tables::{NONE, Term, plus};
use super::view::{Man, Placement, View, squares};
use super::{CompiledBlock, Shape};

/// The kings on the oriented board, and the mask that oriented it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kings {
    pub own: u32,
    pub enemy: u32,
    pub mask: u32,
}

impl CompiledBlock {
    /// Appends the block's active features, shifted by `offset`. A board without both kings has none.
    pub fn active(&self, placement: &Placement, pov: Perspective, offset: u32, out: &mut Vec<u32>) {
        let (Some(own), Some(enemy)) = (placement.king(pov), placement.king(pov.other())) else { return };
        let kings = self.kings(own, enemy, pov);
        let start = out.len();
        match self.shape {
            Shape::Piece => self.walk(placement.men(), pov, &kings, offset, out),
            _ => self.search(&placement.view(pov, kings.mask), &kings, offset, out),
        }
        if self.shares_rows() && !self.united {
            self.drop_repeats(start, offset, out);
        }
    }

    /// The kings of a perspective, given their squares.
    #[inline(always)]
    pub fn kings(&self, own: u32, enemy: u32, pov: Perspective) -> Kings {
        let mask = self.orientation.mask(Square::new(own), pov);
        Kings { own: own ^ mask, enemy: enemy ^ mask, mask }
    }

    /// What a term sums to before its bound variables: the base and the kings' share. [`NONE`] where conditions over
    /// the kings fail.
    #[inline(always)]
    pub(super) fn base(&self, term: &Term, kings: &Kings) -> u32 {
        match term.fixed {
            Some(base) => base,
            None => self.sum_of_kings(term, kings),
        }
    }

    #[inline(always)]
    fn sum_of_kings(&self, term: &Term, kings: &Kings) -> u32 {
        match self.gate.is_empty() || self.kings_hold(kings.own, kings.enemy) {
            true => term.king_sum(kings.own, kings.enemy),
            false => NONE,
        }
    }

    /// Whether the conditions over both kings hold.
    pub(super) fn kings_hold(&self, own: u32, enemy: u32) -> bool {
        let kings = Kings { own, enemy, mask: 0 }.men();
        self.gate.iter().all(|condition| condition.holds(&|slot: usize| kings[slot].entity()))
    }

    /// Blocks of one piece: every piece's table entry. `men`: code · 64 + square.
    fn walk(&self, men: &[u16], pov: Perspective, kings: &Kings, offset: u32, out: &mut Vec<u32>) {
        let level = &self.levels[0];
        // Both the relative code and the oriented square come by exclusive or.
        let turn = (pov.index() << 9) as u16 | kings.mask as u16;
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let table = Table::of(&term.tables[level.slot]);
            let first = base.wrapping_add(offset);
            if level.plain() && term.whole[level.slot] {
                out.extend(men.iter().map(|man| first.wrapping_add(table.entry(man ^ turn))));
                continue;
            }
            let mut rows = [0u32; 64];
            let mut count = 0;
            if level.plain() {
                for man in men {
                    let entry = table.entry(man ^ turn);
                    rows[count & 63] = first.wrapping_add(entry);
                    count += usize::from(entry != NONE);
                }
            } else {
                let mut bound = self.men(kings);
                let mut room = None;
                let left = level.left(&bound, &mut room).unwrap_or(&[!0; 16]);
                for man in men {
                    let (code, square) = (usize::from((man ^ turn) >> 6 & 15), u32::from((man ^ turn) & 63));
                    let entry = table.entry(man ^ turn);
                    if entry != NONE && left[code] >> square & 1 != 0 {
                        bound[level.slot] = Man { code, square };
                        rows[count & 63] = first.wrapping_add(entry);
                        count += usize::from(level.admits(&bound));
                    }
                }
            }
            out.extend_from_slice(&rows[..count.min(64)]);
        }
    }

    /// A place for every variable, the kings in theirs.
    pub(super) fn men(&self, kings: &Kings) -> Men {
        let mut men = Men { few: [Man::default(); FEW], many: Vec::new(), used: self.variables };
        if self.variables > FEW {
            men.many.resize(self.variables, Man::default());
        }
        men[..2].copy_from_slice(&kings.men());
        men
    }

    /// Appends the rows of every binding found on the oriented board; repeats stay.
    pub(super) fn search(&self, view: &View, kings: &Kings, offset: u32, out: &mut Vec<u32>) {
        let mut men = self.men(kings);
        for term in &self.terms {
            let base = self.base(term, kings);
            if base != NONE {
                let mut search = Search { block: self, term, view, men: &mut men, out };
                search.bind(0, base + offset);
            }
        }
    }

    /// Removes repeats from `out[start..]`; the order may change.
    fn drop_repeats(&self, start: usize, offset: u32, out: &mut Vec<u32>) {
        /// Up to here a bitset beats sorting.
        const BITS: usize = 4096;
        if self.size as usize > BITS {
            out[start..].sort_unstable();
            dedup_from(out, start);
            return;
        }
        let mut seen = [0u64; BITS / 64];
        let mut kept = start;
        for at in start..out.len() {
            let row = out[at];
            let local = row.wrapping_sub(offset) as usize;
            let word = &mut seen[local / 64 % (BITS / 64)];
            let fresh = *word >> (local % 64) & 1 == 0;
            *word |= 1 << (local % 64);
            out[kept] = row;
            kept += usize::from(fresh);
        }
        out.truncate(kept);
    }

    /// Whether several bindings may yield one row that counts once.
    pub(super) fn shares_rows(&self) -> bool {
        self.multiplicity == Multiplicity::Set && !self.injective
    }
}

impl Kings {
    /// As the first two variables.
    pub fn men(&self) -> [Man; 2] {
        [Man { code: 5, square: self.own }, Man { code: 13, square: self.enemy }]
    }
}

/// Variables that need no heap.
const FEW: usize = 8;

/// What each variable is bound to.
pub struct Men {
    few: [Man; FEW],
    many: Vec<Man>,
    used: usize,
}

impl std::ops::Deref for Men {
    type Target = [Man];

    fn deref(&self) -> &[Man] {
        if self.many.is_empty() { &self.few[..self.used.min(FEW)] } else { &self.many }
    }
}

impl std::ops::DerefMut for Men {
    fn deref_mut(&mut self) -> &mut [Man] {
        if self.many.is_empty() { &mut self.few[..self.used.min(FEW)] } else { &mut self.many }
    }
}

/// A piece variable's table: 16 codes of 64 squares.
struct Table<'a>(&'a [u32; 1024]);

impl Table<'_> {
    fn of(table: &[u32]) -> Table<'_> {
        Table(table.try_into().expect("piece variables have 1,024 states"))
    }

    fn entry(&self, state: u16) -> u32 {
        self.0[usize::from(state & 1023)]
    }
}

impl Term {
    /// Base plus both kings' entries.
    #[inline(always)]
    pub fn king_sum(&self, own: u32, enemy: u32) -> u32 {
        let entries = plus(self.tables[OWN_KING][own as usize], self.tables[ENEMY_KING][enemy as usize]);
        plus(self.base, entries)
    }

    /// The sum of the counts' values, each times its stride.
    pub fn counted(&self, view: &View, men: &mut [Man]) -> u32 {
        self.counts.iter().map(|count| count.value(view, men)).sum()
    }
}

struct Search<'a> {
    block: &'a CompiledBlock,
    term: &'a Term,
    view: &'a View<'a>,
    men: &'a mut [Man],
    out: &'a mut Vec<u32>,
}

impl Search<'_> {
    /// Binds the levels from `depth` in every way; `sum` is the row so far.
    fn bind(&mut self, depth: usize, sum: u32) {
        let Some(level) = self.block.levels.get(depth) else {
            if !guarded(&self.block.guards, self.view, self.men) {
                return;
            }
            let row = sum + self.term.counted(self.view, self.men);
            return self.out.push(row);
        };
        let table = &self.term.tables[level.slot][..];
        if depth == 0 && self.pairs(sum) {
            return;
        }
        let mut room = None;
        let free = self.term.counts.is_empty() && self.block.guards.is_empty();
        let last = depth + 1 == self.block.levels.len() && free && !level.conditional();
        for (code, bits) in level.candidates(self.view, self.men, &self.term.masks[level.slot], &mut room) {
            let entries = &table[code << 6..][..64];
            if last {
                self.out.extend(squares(bits).map(|square| sum + entries[square as usize & 63]));
                continue;
            }
            for square in squares(bits) {
                self.men[level.slot] = Man { code, square };
                if level.admits(self.men) {
                    self.bind(depth + 1, sum + entries[square as usize & 63]);
                }
            }
        }
    }

    /// Pairs of a piece and what it reaches; false when the block is something else.
    fn pairs(&mut self, sum: u32) -> bool {
        let [first, second] = &self.block.levels[..] else { return false };
        let Some(source) = second.beyond(first).filter(|_| first.plain() && !second.conditional()) else {
            return false;
        };
        if !self.term.counts.is_empty() || !self.block.guards.is_empty() {
            return false;
        }
        let Term { tables, masks, by_code, .. } = self.term;
        let (view, men, out) = (self.view, &mut *self.men, &mut *self.out);
        let (entries, mask) = (&tables[second.slot][..], &masks[second.slot]);
        let only = mask.first().map_or(0, |(_, allowed)| *allowed);
        let mut emit = |sum: u32, code: usize, bits: u64| {
            let entries = &entries[code << 6..][..64];
            for square in squares(bits) {
                out.push(sum + entries[square as usize & 63]);
            }
        };
        if let Some(by_code) = by_code {
            let mut reaches = [0u64; 16];
            view.each_reach(source, &masks[first.slot], |code, _, reach| reaches[code] |= reach);
            for (code, entry) in by_code {
                emit(sum + entry, 0, reaches[*code] & only);
            }
            return true;
        }
        let plain = second.plain();
        let bare = second.kind == VariableKind::Square;
        view.each_reach(source, &masks[first.slot], |code, square, reach| {
            let sum = sum + tables[first.slot][code << 6 | square as usize];
            if bare && plain {
                return emit(sum, 0, reach & only);
            }
            let mut room = None;
            men[first.slot] = Man { code, square };
            for (code, bits) in second.reached(view, reach, mask, second.left(men, &mut room)) {
                emit(sum, code, bits);
            }
        });
        true
    }
}
