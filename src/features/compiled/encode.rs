//! Encoding one block: a loop over the pieces for blocks of one piece variable, a search for bindings on bitboards for
//! the others.

use crate::chess::{Perspective, Square};
use crate::features::spec::{ENEMY_KING, Multiplicity, OWN_KING, VariableKind};

use super::binding_plan::guards_hold;
use super::delta::dedup_from;
use super::oriented_board::{Binding, OrientedBoard, Placement, squares};
use super::tables::{NONE, TableTerm, plus};
use super::{BindingForm, CompiledBlock};

/// The squares of the kings on the oriented board, and the mask that oriented it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Kings {
    pub own: u32,
    pub enemy: u32,
    pub mask: u32,
}

impl CompiledBlock {
    /// Appends the block's active features, shifted by `offset`. A board without both kings has none.
    pub fn encode(&self, placement: &Placement, pov: Perspective, offset: u32, out: &mut Vec<u32>) {
        let (Some(own), Some(enemy)) = (placement.king(pov), placement.king(pov.other())) else { return };
        let kings = self.kings(own, enemy, pov);
        let start = out.len();
        match self.form {
            BindingForm::Piece => self.encode_pieces(placement.pieces(), pov, &kings, offset, out),
            _ => self.search(&placement.oriented(pov, kings.mask), &kings, offset, out),
        }
        if self.shares_rows() && !self.square_independent {
            self.drop_repeats(start, offset, out);
        }
    }

    /// The kings of a perspective, given their squares on the board as it stands.
    #[inline(always)]
    pub fn kings(&self, own: u32, enemy: u32, pov: Perspective) -> Kings {
        let mask = self.orientation.mask(Square::new(own), pov);
        Kings { own: own ^ mask, enemy: enemy ^ mask, mask }
    }

    /// The part of a term's rows that the kings determine, its base included. [`NONE`] where conditions over the kings
    /// fail.
    #[inline(always)]
    pub(super) fn base(&self, term: &TableTerm, kings: &Kings) -> u32 {
        match term.king_independent_base {
            Some(base) => base,
            None => self.base_from_kings(term, kings),
        }
    }

    #[inline(always)]
    fn base_from_kings(&self, term: &TableTerm, kings: &Kings) -> u32 {
        if self.king_conditions.is_empty() || self.king_conditions_hold(kings.own, kings.enemy) {
            term.king_sum(kings.own, kings.enemy)
        } else {
            NONE
        }
    }

    fn king_conditions_hold(&self, own: u32, enemy: u32) -> bool {
        let kings = Kings { own, enemy, mask: 0 }.bindings();
        self.king_conditions.iter().all(|condition| condition.holds(&|slot: usize| kings[slot].entity()))
    }

    /// Blocks of one piece variable: the table entry of every piece. `pieces`: code · 64 + square.
    fn encode_pieces(&self, pieces: &[u16], pov: Perspective, kings: &Kings, offset: u32, out: &mut Vec<u32>) {
        let binder = &self.binders[0];
        // One exclusive or gives both the relative code and the oriented square.
        let xor = (pov.index() << 9) as u16 | kings.mask as u16;
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let table = StateTable::of(&term.tables[binder.slot]);
            let first = base.wrapping_add(offset);
            if binder.is_unconditional() && term.complete[binder.slot] {
                out.extend(pieces.iter().map(|piece| first.wrapping_add(table.entry(piece ^ xor))));
                continue;
            }
            let mut rows = [0u32; 64];
            let mut count = 0;
            if binder.is_unconditional() {
                for piece in pieces {
                    let entry = table.entry(piece ^ xor);
                    rows[count & 63] = first.wrapping_add(entry);
                    count += usize::from(entry != NONE);
                }
            } else {
                let mut bindings = self.bindings(kings);
                let mut buffer = None;
                let allowed = binder.allowed_by_pairs(&bindings, &mut buffer).unwrap_or(&[!0; 16]);
                for piece in pieces {
                    let code = usize::from((piece ^ xor) >> 6 & 15);
                    let square = u32::from((piece ^ xor) & 63);
                    let entry = table.entry(piece ^ xor);
                    if entry != NONE && allowed[code] >> square & 1 != 0 {
                        bindings[binder.slot] = Binding { code, square };
                        rows[count & 63] = first.wrapping_add(entry);
                        count += usize::from(binder.residual_holds(&bindings));
                    }
                }
            }
            out.extend_from_slice(&rows[..count.min(64)]);
        }
    }

    /// Room for every variable's binding; the kings are bound.
    pub(super) fn bindings(&self, kings: &Kings) -> Bindings {
        let mut bindings =
            Bindings { inline: [Binding::default(); INLINE_BINDINGS], heap: Vec::new(), used: self.variables };
        if self.variables > INLINE_BINDINGS {
            bindings.heap.resize(self.variables, Binding::default());
        }
        bindings[..2].copy_from_slice(&kings.bindings());
        bindings
    }

    /// Appends the rows of every binding on an oriented board, repeats included.
    pub(super) fn search(&self, board: &OrientedBoard, kings: &Kings, offset: u32, out: &mut Vec<u32>) {
        let mut bindings = self.bindings(kings);
        for term in &self.terms {
            let base = self.base(term, kings);
            if base != NONE {
                let mut search = RowSearch { block: self, term, board, bindings: &mut bindings, out };
                search.bind(0, base + offset);
            }
        }
    }

    /// Removes repeats from `out[start..]`; the order may change.
    fn drop_repeats(&self, start: usize, offset: u32, out: &mut Vec<u32>) {
        /// Up to this size a bitset is faster than sorting.
        const BITS: usize = 4096;
        if self.size as usize > BITS {
            out[start..].sort_unstable();
            dedup_from(out, start);
            return;
        }
        let mut seen = [0u64; BITS / 64];
        let mut end = start;
        for at in start..out.len() {
            let row = out[at];
            let bit = row.wrapping_sub(offset) as usize;
            let word = &mut seen[bit / 64 % (BITS / 64)];
            let fresh = *word >> (bit % 64) & 1 == 0;
            *word |= 1 << (bit % 64);
            out[end] = row;
            end += usize::from(fresh);
        }
        out.truncate(end);
    }

    /// Whether several bindings may yield one row that counts once.
    pub fn shares_rows(&self) -> bool {
        self.multiplicity == Multiplicity::Set && !self.injective
    }
}

impl Kings {
    /// The bindings of the first two variables.
    pub fn bindings(&self) -> [Binding; 2] {
        [Binding { code: 5, square: self.own }, Binding { code: 13, square: self.enemy }]
    }
}

/// Up to this number of variables needs no heap.
const INLINE_BINDINGS: usize = 8;

/// The binding of each variable, by slot.
pub struct Bindings {
    inline: [Binding; INLINE_BINDINGS],
    heap: Vec<Binding>,
    used: usize,
}

impl std::ops::Deref for Bindings {
    type Target = [Binding];

    fn deref(&self) -> &[Binding] {
        if self.heap.is_empty() { &self.inline[..self.used.min(INLINE_BINDINGS)] } else { &self.heap }
    }
}

impl std::ops::DerefMut for Bindings {
    fn deref_mut(&mut self) -> &mut [Binding] {
        if self.heap.is_empty() { &mut self.inline[..self.used.min(INLINE_BINDINGS)] } else { &mut self.heap }
    }
}

/// A piece variable's table: 16 codes of 64 squares.
struct StateTable<'a>(&'a [u32; 1024]);

impl StateTable<'_> {
    fn of(table: &[u32]) -> StateTable<'_> {
        StateTable(table.try_into().expect("piece variables have 1,024 states"))
    }

    fn entry(&self, state: u16) -> u32 {
        self.0[usize::from(state & 1023)]
    }
}

impl TableTerm {
    /// Base plus both kings' entries.
    #[inline(always)]
    pub fn king_sum(&self, own: u32, enemy: u32) -> u32 {
        let entries = plus(self.tables[OWN_KING][own as usize], self.tables[ENEMY_KING][enemy as usize]);
        plus(self.base, entries)
    }

    /// The sum of the counts' values, each times its stride.
    pub fn count_sum(&self, board: &OrientedBoard, bindings: &mut [Binding]) -> u32 {
        self.counts.iter().map(|count| count.value(board, bindings)).sum()
    }
}

/// A search for the rows of all bindings of a term.
struct RowSearch<'a> {
    block: &'a CompiledBlock,
    term: &'a TableTerm,
    board: &'a OrientedBoard<'a>,
    bindings: &'a mut [Binding],
    out: &'a mut Vec<u32>,
}

impl RowSearch<'_> {
    /// Binds the variables from `depth` on in every way; `sum` is the row so far.
    fn bind(&mut self, depth: usize, sum: u32) {
        let Some(binder) = self.block.binders.get(depth) else {
            if !guards_hold(&self.block.guards, self.board, self.bindings) {
                return;
            }
            let row = sum + self.term.count_sum(self.board, self.bindings);
            return self.out.push(row);
        };
        let table = &self.term.tables[binder.slot][..];
        if depth == 0 && self.bind_pairs(sum) {
            return;
        }
        let mut buffer = None;
        let uncounted = self.term.counts.is_empty() && self.block.guards.is_empty();
        let emit_bits = depth + 1 == self.block.binders.len() && uncounted && !binder.has_residual();
        for (code, bits) in binder.candidates(self.board, self.bindings, &self.term.masks[binder.slot], &mut buffer) {
            let entries = &table[code << 6..][..64];
            if emit_bits {
                self.out.extend(squares(bits).map(|square| sum + entries[square as usize & 63]));
                continue;
            }
            for square in squares(bits) {
                self.bindings[binder.slot] = Binding { code, square };
                if binder.residual_holds(self.bindings) {
                    self.bind(depth + 1, sum + entries[square as usize & 63]);
                }
            }
        }
    }

    /// Binds pairs of a piece and a state it reaches; returns false where the block has another form.
    fn bind_pairs(&mut self, sum: u32) -> bool {
        let [first, second] = &self.block.binders[..] else { return false };
        let Some(source) = second.source_from(first).filter(|_| first.is_unconditional() && !second.has_residual())
        else {
            return false;
        };
        if !self.term.counts.is_empty() || !self.block.guards.is_empty() {
            return false;
        }
        let TableTerm { tables, masks, entry_by_code, .. } = self.term;
        let board = self.board;
        let bindings = &mut *self.bindings;
        let out = &mut *self.out;
        let entries = &tables[second.slot][..];
        let mask = &masks[second.slot];
        let bare_squares = mask.first().map_or(0, |(_, allowed)| *allowed);
        let mut emit = |sum: u32, code: usize, bits: u64| {
            let entries = &entries[code << 6..][..64];
            for square in squares(bits) {
                out.push(sum + entries[square as usize & 63]);
            }
        };
        if let Some(entry_by_code) = entry_by_code {
            let mut reaches = [0u64; 16];
            board.each_reach(source, &masks[first.slot], |code, _, reach| reaches[code] |= reach);
            for (code, entry) in entry_by_code {
                emit(sum + entry, 0, reaches[*code] & bare_squares);
            }
            return true;
        }
        let unconditional = second.is_unconditional();
        let bare = second.kind == VariableKind::Square;
        board.each_reach(source, &masks[first.slot], |code, square, reach| {
            let sum = sum + tables[first.slot][code << 6 | square as usize];
            if bare && unconditional {
                return emit(sum, 0, reach & bare_squares);
            }
            let mut buffer = None;
            bindings[first.slot] = Binding { code, square };
            let allowed = second.allowed_by_pairs(bindings, &mut buffer);
            for (code, bits) in second.candidates_within(board, reach, mask, allowed) {
                emit(sum, code, bits);
            }
        });
        true
    }
}
