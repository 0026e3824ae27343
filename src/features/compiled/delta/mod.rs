//! The change of a block's rows by a move. Blocks of one piece variable look at the pieces that move; blocks of pairs
//! also at the pieces whose reach contains a changed square; counts ask whether such a piece is counted. All other
//! blocks, and blocks whose context changes, are encoded before and after the move and compared.

mod counted;
mod pairs;
mod piece_table;
mod row_changes;

use std::cell::Cell;

use crate::chess::{Board, BoardChange, Color, Mirror, Orientation, Perspective, Role, Square};
use crate::features::spec::SourceSpec;

use super::binding_plan;
use super::encode::{Bindings, Kings};
use super::oriented_board::{Binding, OrientedBoard, Placement, orient, squares};
use super::tables::{NONE, TableTerm};
use super::{BindingForm, CompiledBlock};
use pairs::PairDelta;
pub use row_changes::{RowChanges, dedup_from};

/// A move as one perspective sees it.
#[derive(Copy, Clone)]
pub struct Transition<'a> {
    before: &'a Board,
    after: &'a Board,
    /// Not oriented.
    change: &'a BoardChange,
    pov: Perspective,
    /// Squares of own and enemy king before and after, not oriented.
    kings: Option<[[u32; 2]; 2]>,
    kings_stay: bool,
}

/// Both boards of a transition, oriented by one mask. Made when a block first needs them.
pub struct OrientedPair {
    mask: u32,
    before: OrientedBoard<'static>,
    after: OrientedBoard<'static>,
    /// Squares whose occupant changes.
    changed: u64,
    /// Caches: pieces that attack a changed square before the move, and pieces whose moves it affects.
    attackers: Cell<Option<u64>>,
    movers: Cell<Option<u64>>,
}

/// The role of a king in a piece code.
const KING: u16 = 5;

/// Squares of White's king and of Black's.
#[inline(always)]
fn kings_of(board: &Board) -> Option<[u32; 2]> {
    Some([u32::from(board.king_of(Color::White)?), u32::from(board.king_of(Color::Black)?)])
}

impl<'a> Transition<'a> {
    /// As White sees it.
    #[inline(always)]
    pub fn new(before: &'a Board, change: &'a BoardChange, after: &'a Board) -> Transition<'a> {
        let start = kings_of(before);
        let has_king = |states: [u16; 2]| states[0] >> 6 & 7 == KING || states[1] >> 6 & 7 == KING;
        let [removed, added] = change.states();
        let end = if has_king(removed) | has_king(added) { kings_of(after) } else { start };
        let kings = start.zip(end).map(<[_; 2]>::from);
        let kings_stay = kings.is_some_and(|[before, after]| before == after);
        Transition { before, after, change, pov: Perspective::White, kings, kings_stay }
    }

    /// White's transition as `pov` sees it.
    #[inline(always)]
    #[must_use]
    pub fn seen_by(self, pov: Perspective) -> Transition<'a> {
        match pov {
            Perspective::White => self,
            Perspective::Black => {
                Transition { kings: self.kings.map(|[[a, b], [c, d]]| [[b, a], [d, c]]), pov, ..self }
            }
        }
    }

    /// The boards before and after.
    pub const fn boards(&self) -> [&'a Board; 2] {
        [self.before, self.after]
    }

    pub const fn perspective(&self) -> Perspective {
        self.pov
    }

    pub const fn change(&self) -> &'a BoardChange {
        self.change
    }

    /// Squares of White's and Black's king, if both stay.
    #[inline(always)]
    pub fn kings_staying(&self) -> Option<[u32; 2]> {
        self.kings.filter(|_| self.kings_stay).map(|[before, _]| before)
    }

    /// States of the pieces taken off the board: relative code · 64 + square, not oriented.
    fn removed(&self) -> impl Iterator<Item = u16> + use<> {
        self.relative(self.change.states()[0])
    }

    /// States of the pieces put on the board.
    fn added(&self) -> impl Iterator<Item = u16> + use<> {
        self.relative(self.change.states()[1])
    }

    fn relative(&self, states: [u16; 2]) -> impl Iterator<Item = u16> + use<> {
        let xor = (self.pov.index() << 9) as u16;
        states.into_iter().filter(|state| *state != BoardChange::NO_PIECE).map(move |state| state ^ xor)
    }

    /// The boards oriented by a mask; `known` caches them from block to block.
    fn oriented<'b>(&self, mask: u32, known: &'b mut Option<OrientedPair>) -> &'b OrientedPair {
        if known.as_ref().is_some_and(|boards| boards.mask != mask) {
            *known = None;
        }
        known.get_or_insert_with(|| {
            let states = self.removed().chain(self.added());
            let changed = states.fold(0, |changed, state| changed | 1u64 << (u32::from(state & 63) ^ mask));
            OrientedPair {
                mask,
                before: OrientedBoard::of(self.before, self.pov, mask),
                after: OrientedBoard::of(self.after, self.pov, mask),
                changed,
                attackers: Cell::new(None),
                movers: Cell::new(None),
            }
        })
    }
}

impl OrientedPair {
    /// The pieces before the move whose reach by a source the move may change.
    fn affected(&self, source: SourceSpec) -> u64 {
        let attackers = || {
            self.attackers.get().unwrap_or_else(|| {
                let found = squares(self.changed).fold(0, |found, square| found | self.before.attackers(square));
                self.attackers.set(Some(found));
                found
            })
        };
        match source {
            SourceSpec::Pieces => !0,
            SourceSpec::Attacks(_) | SourceSpec::Targets(_) => attackers(),
            SourceSpec::Moves(_) => self.movers.get().unwrap_or_else(|| {
                let pushers = squares(self.changed).fold(0, |found, square| found | self.before.pushers(square));
                let found = attackers() | pushers;
                self.movers.set(Some(found));
                found
            }),
            SourceSpec::Next(_, direction) => {
                squares(self.changed).fold(0, |found, square| found | self.before.previous(square, direction))
            }
        }
    }
}

impl CompiledBlock {
    /// Whether the block's context changes.
    #[inline(always)]
    pub fn refreshes(&self, mv: &Transition<'_>) -> bool {
        !mv.kings_stay && self.changes_context(mv)
    }

    #[inline(never)]
    fn changes_context(&self, mv: &Transition<'_>) -> bool {
        match mv.kings {
            Some([before, after]) => self.context(before, mv.pov) != self.context(after, mv.pov),
            None => {
                let has_kings =
                    |board: &Board| board.king_of(Color::White).is_some() && board.king_of(Color::Black).is_some();
                has_kings(mv.before) != has_kings(mv.after)
            }
        }
    }

    /// The context for squares of own and enemy king, not oriented.
    pub fn context(&self, [own, enemy]: [u32; 2], pov: Perspective) -> u32 {
        let mask = Orientation { mirror: Mirror::None, ..self.orientation }.mask(Square::new(own), pov);
        self.contexts().id(own ^ mask, enemy ^ mask)
    }

    /// Appends the rows that a move removes and adds, shifted by `offset`.
    #[inline]
    pub fn delta(&self, mv: &Transition<'_>, boards: &mut Option<OrientedPair>, rows: &mut RowChanges<'_>) {
        if let (Some(table), Some([kings, _])) = (&self.piece_table, mv.kings)
            && (mv.kings_stay || table.king_independent)
        {
            return self.piece_table_delta(mv.change, mv.pov, kings, rows);
        }
        self.delta_by_form(mv, boards, rows);
    }

    #[inline(never)]
    fn delta_by_form(&self, mv: &Transition<'_>, boards: &mut Option<OrientedPair>, rows: &mut RowChanges<'_>) {
        let Some([before, after]) = mv.kings else { return self.reencode(mv, rows) };
        let kings = self.kings(before[0], before[1], mv.pov);
        if before != after {
            let moved = self.kings(after[0], after[1], mv.pov);
            match (self.same_rows_for(&kings, &moved), &self.piece_table) {
                (true, Some(_)) => return self.piece_table_delta(mv.change, mv.pov, before, rows),
                (true, None) => {}
                (false, Some(table)) if table.small => return self.reencode_small_table(mv, [kings, moved], rows),
                (false, _) => return self.reencode(mv, rows),
            }
        }
        match self.form {
            BindingForm::Piece => self.piece_delta(mv, &kings, rows),
            BindingForm::Pair if self.square_independent => {
                self.delta_by_code(mv.oriented(kings.mask, boards), &kings, rows);
            }
            BindingForm::Pair if !self.shares_rows() || self.terms.iter().all(|term| term.separable) => {
                self.pair_delta(mv.oriented(kings.mask, boards), &kings, rows);
            }
            BindingForm::Counts if !self.counts_may_change(mv.oriented(kings.mask, boards)) => {}
            BindingForm::Counted if !self.shares_rows() => {
                self.counted_delta(mv.oriented(kings.mask, boards), &kings, rows);
            }
            BindingForm::Pair | BindingForm::Counts | BindingForm::Counted | BindingForm::Other => {
                self.search_both(mv.oriented(kings.mask, boards), &kings, rows);
            }
        }
    }

    /// Whether both placements of the kings give every binding the same row.
    fn same_rows_for(&self, before: &Kings, after: &Kings) -> bool {
        let same_for_king = |king: usize, from: u32, to: u32| {
            let mut counts = self.terms.iter().flat_map(|term| &term.counts);
            from == to
                || binding_plan::same_for_king(&self.binders, king, from, to)
                    && counts.all(|count| count.same_for_king(king, from, to))
                    && !self.guards.iter().any(|guard| guard.reads(king))
        };
        before.mask == after.mask
            && self.terms.iter().all(|term| self.base(term, before) == self.base(term, after))
            && same_for_king(0, before.own, after.own)
            && same_for_king(1, before.enemy, after.enemy)
    }

    /// Encodes both boards and cancels the common rows.
    fn reencode(&self, mv: &Transition<'_>, rows: &mut RowChanges<'_>) {
        let from = rows.lengths();
        let kings = mv.kings.map_or([None; 2], |kings| kings.map(Some));
        let sides = [(mv.before, kings[0], &mut *rows.removed), (mv.after, kings[1], &mut *rows.added)];
        for (board, kings, out) in sides {
            match (self.form, kings) {
                (BindingForm::Piece, _) | (_, None) => {
                    self.encode(&Placement::of(board, self.needs()), mv.pov, rows.offset, out);
                }
                (_, Some([own, enemy])) => {
                    let kings = self.kings(own, enemy, mv.pov);
                    self.search(&OrientedBoard::of(board, mv.pov, kings.mask), &kings, rows.offset, out);
                }
            }
        }
        self.dedup_and_cancel(from, rows);
    }

    /// [`CompiledBlock::reencode`] for boards that are oriented already, with the same kings.
    fn search_both(&self, boards: &OrientedPair, kings: &Kings, rows: &mut RowChanges<'_>) {
        let from = rows.lengths();
        self.search(&boards.before, kings, rows.offset, rows.removed);
        self.search(&boards.after, kings, rows.offset, rows.added);
        self.dedup_and_cancel(from, rows);
    }

    /// Sorts the rows behind the lengths `from`, drops repeats unless they count, and cancels the common rows.
    fn dedup_and_cancel(&self, from: [usize; 2], rows: &mut RowChanges<'_>) {
        if self.shares_rows() {
            for (rows, start) in [(&mut *rows.removed, from[0]), (&mut *rows.added, from[1])] {
                rows[start..].sort_unstable();
                dedup_from(rows, start);
            }
        }
        rows.cancel(from);
    }

    /// Blocks of one piece variable: the rows of the pieces that move.
    fn piece_delta(&self, mv: &Transition<'_>, kings: &Kings, rows: &mut RowChanges<'_>) {
        let from = rows.lengths();
        let binder = &self.binders[0];
        let shares_rows = self.shares_rows();
        let mut bindings = None;
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let table = &term.tables[binder.slot];
            let mut push_row = |state: u16, other: &Board, out: &mut Vec<u32>| {
                let piece = Binding { code: usize::from(state >> 6), square: u32::from(state & 63) ^ kings.mask };
                let entry = table[piece.code << 6 | piece.square as usize];
                let mut admits = || self.admits(piece, bindings.get_or_insert_with(|| self.bindings(kings)));
                if entry == NONE || !(binder.is_unconditional() || admits()) {
                    return;
                }
                if !(shares_rows && self.piece_yields(term, piece, other, mv.pov, kings)) {
                    out.push(base + entry + rows.offset);
                }
            };
            mv.removed().for_each(|state| push_row(state, mv.after, rows.removed));
            mv.added().for_each(|state| push_row(state, mv.before, rows.added));
        }
        self.dedup_and_cancel(from, rows);
    }

    /// Whether the first binder's conditions hold for a piece.
    fn admits(&self, piece: Binding, bindings: &mut Bindings) -> bool {
        let binder = &self.binders[0];
        let mut buffer = None;
        let allowed = binder.allowed_by_pairs(bindings, &mut buffer);
        let allowed = allowed.is_none_or(|allowed| allowed[piece.code] >> piece.square & 1 != 0);
        bindings[binder.slot] = piece;
        allowed && binder.residual_holds(bindings)
    }

    /// Blocks of one piece variable: whether some piece of `board` yields the same row as `piece`.
    fn piece_yields(&self, term: &TableTerm, piece: Binding, board: &Board, pov: Perspective, kings: &Kings) -> bool {
        let binder = &self.binders[0];
        let equivalents = term.classes[binder.slot].equivalents(piece.code << 6 | piece.square as usize);
        // Not oriented, like the board.
        let present = |code: usize, allowed: u64| {
            let color = Color::from_white(code ^ (pov.index() << 3) < 8);
            board.by_color(color).0 & board.by_role(Role::ALL[code & 7]).0 & orient(allowed, kings.mask)
        };
        if binder.is_unconditional() {
            return equivalents.iter().any(|(code, allowed)| present(*code, *allowed) != 0);
        }
        let mut bindings = self.bindings(kings);
        equivalents.iter().any(|(code, allowed)| {
            squares(present(*code, *allowed))
                .any(|square| self.admits(Binding { code: *code, square: square ^ kings.mask }, &mut bindings))
        })
    }

    /// Blocks of pairs: the pairs of pieces that move or whose reach contains a changed square.
    fn pair_delta(&self, boards: &OrientedPair, kings: &Kings, rows: &mut RowChanges<'_>) {
        let from = rows.lengths();
        let mut bindings = self.bindings(kings);
        for term in &self.terms {
            let base = self.base(term, kings);
            if base != NONE {
                let starts = rows.lengths();
                let pairs = PairDelta { block: self, term, base: base + rows.offset, shares_rows: self.shares_rows() };
                pairs.append(boards, &mut bindings, [&mut *rows.removed, &mut *rows.added], starts);
            }
        }
        self.dedup_and_cancel(from, rows);
    }

    /// Square-independent blocks: compares the union of the reaches of a code's pieces, for every code with an affected
    /// piece.
    fn delta_by_code(&self, boards: &OrientedPair, kings: &Kings, rows: &mut RowChanges<'_>) {
        let from = rows.lengths();
        let [first, second] = &self.binders[..] else { return };
        let affected = boards.affected(second.source) | boards.changed;
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let bare_squares = term.masks[second.slot].first().map_or(0, |(_, allowed)| *allowed);
            let entries = term.entry_by_code.iter().flatten();
            for ((code, allowed), (_, entry)) in term.masks[first.slot].iter().zip(entries) {
                let reached = |board: &OrientedBoard| {
                    let pieces = squares(board.by_code(*code) & allowed).map(|square| Binding { code: *code, square });
                    pieces.fold(0, |all, piece| all | board.reach(second.source, piece)) & bare_squares
                };
                if (boards.before.by_code(*code) | boards.after.by_code(*code)) & allowed & affected != 0 {
                    let [before, after] = [reached(&boards.before), reached(&boards.after)];
                    let row = |square: u32| base + rows.offset + entry + term.tables[second.slot][square as usize];
                    rows.removed.extend(squares(before & !after).map(row));
                    rows.added.extend(squares(after & !before).map(row));
                }
            }
        }
        rows.cancel(from);
    }

    /// Whether some count counts a piece that moves or whose reach may change.
    fn counts_may_change(&self, boards: &OrientedPair) -> bool {
        self.terms.iter().flat_map(|term| &term.counts).any(|count| {
            let affected = count.binders().get(1).map_or(0, |second| boards.affected(second.source));
            let counts_any = |board: &OrientedBoard, among: u64| {
                count.first_mask().iter().any(|(code, allowed)| board.by_code(*code) & allowed & among != 0)
            };
            counts_any(&boards.before, affected | boards.changed) || counts_any(&boards.after, boards.changed)
        })
    }
}
