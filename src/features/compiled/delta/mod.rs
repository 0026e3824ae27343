//! What a move changes. Blocks of one piece look at the pieces that moved; blocks of pairs at the pieces whose reach
//! touches a changed square as well; counts ask whether any such piece is counted. Everything else, and a block whose
//! kings have changed, is encoded before and after the move and compared.

mod between;
mod counted;
mod pairs;
mod rows;

use std::cell::Cell;

use crate::chess::{Board, BoardChange, Color, Mirror, Orientation, Perspective, Role, Square};
use crate::features::spec::SourceSpec;

use super::encode::{Kings, Men};
use super::levels;
use super::pieces::exchange;
use super::tables::{NONE, Term};
pub use rows::{Rows, dedup_from};

use pairs::Pairs;

use super::view::{Man, Needs, Placement, View, squares, turn};
use super::{CompiledBlock, Shape, Walk};

/// A move as one perspective sees it.
#[derive(Copy, Clone)]
pub struct Move<'a> {
    before: &'a Board,
    after: &'a Board,
    /// As White sees it.
    change: &'a BoardChange,
    pov: Perspective,
    /// Own and enemy king on the board's own squares, before and after.
    kings: Option<[[u32; 2]; 2]>,
    /// Whether both kings stand where they stood.
    kings_stay: bool,
}

/// Both boards turned by one mask, made when a block first asks for them.
pub struct Boards {
    mask: u32,
    before: View<'static>,
    after: View<'static>,
    /// Squares on which something else stands.
    changed: u64,
    /// Pieces that attack a changed square before the move, and those whose moves it touches.
    attackers: Cell<Option<u64>>,
    movers: Cell<Option<u64>>,
}

/// The entries of a table, ascending, those there are first.
#[inline(always)]
fn entries(states: [u16; 2], table: &[u32; 1024], exchange: u16) -> [u32; 2] {
    // No table has an entry for NO_PIECE, whatever is exchanged.
    let [a, b] = states.map(|state| table[usize::from(state ^ exchange) & 1023]);
    // "No entry" is the greatest number.
    [a.min(b), a.max(b)]
}

/// The role of a king in a piece's code.
const KING: u16 = 5;

/// Squares of White's king and of Black's.
#[inline(always)]
fn kings_of(board: &Board) -> Option<[u32; 2]> {
    Some([u32::from(board.king_of(Color::White)?), u32::from(board.king_of(Color::Black)?)])
}

impl<'a> Move<'a> {
    /// As White sees it.
    #[inline(always)]
    pub fn new(before: &'a Board, change: &'a BoardChange, after: &'a Board) -> Move<'a> {
        let start = kings_of(before);
        let king = |states: [u16; 2]| states[0] >> 6 & 7 == KING || states[1] >> 6 & 7 == KING;
        let [removed, added] = change.states();
        let end = if king(removed) | king(added) { kings_of(after) } else { start };
        let kings = start.zip(end).map(<[_; 2]>::from);
        let kings_stay = kings.is_some_and(|[before, after]| before == after);
        Move { before, after, change, pov: Perspective::White, kings, kings_stay }
    }

    /// White's move as a perspective sees it.
    #[inline(always)]
    #[must_use]
    pub fn seen_by(self, pov: Perspective) -> Move<'a> {
        match pov {
            Perspective::White => self,
            Perspective::Black => Move { kings: self.kings.map(|[[a, b], [c, d]]| [[b, a], [d, c]]), pov, ..self },
        }
    }

    /// White's and Black's king, where they stay.
    #[inline(always)]
    pub fn kings_staying(&self) -> Option<[u32; 2]> {
        self.kings.filter(|_| self.kings_stay).map(|[before, _]| before)
    }

    /// Pieces taken off the board, as the perspective sees them: relative code · 64 + square.
    fn removed(&self) -> impl Iterator<Item = u16> + use<> {
        self.seen(self.change.states()[0])
    }

    fn added(&self) -> impl Iterator<Item = u16> + use<> {
        self.seen(self.change.states()[1])
    }

    fn seen(&self, states: [u16; 2]) -> impl Iterator<Item = u16> + use<> {
        let exchange = (self.pov.index() << 9) as u16;
        states.into_iter().filter(|state| *state != BoardChange::NO_PIECE).map(move |state| state ^ exchange)
    }

    fn boards<'b>(&self, mask: u32, known: &'b mut Option<Boards>) -> &'b Boards {
        if known.as_ref().is_some_and(|boards| boards.mask != mask) {
            *known = None;
        }
        known.get_or_insert_with(|| {
            let states = self.removed().chain(self.added());
            let changed = states.fold(0, |changed, state| changed | 1u64 << (u32::from(state & 63) ^ mask));
            Boards {
                mask,
                before: View::of(self.before, self.pov, mask),
                after: View::of(self.after, self.pov, mask),
                changed,
                attackers: Cell::new(None),
                movers: Cell::new(None),
            }
        })
    }
}

impl Boards {
    /// Pieces, as they stand before the move, for which a source gives something else after it.
    fn touched(&self, source: SourceSpec) -> u64 {
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
                squares(self.changed).fold(0, |found, square| found | self.before.met_from(square, direction))
            }
        }
    }
}

impl CompiledBlock {
    /// Whether the block's context changes.
    #[inline(always)]
    pub fn refreshes(&self, mv: &Move<'_>) -> bool {
        !mv.kings_stay && self.changes_context(mv)
    }

    #[inline(never)]
    fn changes_context(&self, mv: &Move<'_>) -> bool {
        match mv.kings {
            Some([before, after]) => self.context(before, mv.pov) != self.context(after, mv.pov),
            None => {
                let kings =
                    |board: &Board| board.king_of(Color::White).is_some() && board.king_of(Color::Black).is_some();
                kings(mv.before) != kings(mv.after)
            }
        }
    }

    /// The context of the squares of own and enemy king.
    pub fn context(&self, [own, enemy]: [u32; 2], pov: Perspective) -> u32 {
        let turned = Orientation { mirror: Mirror::None, ..self.orientation }.mask(Square::new(own), pov);
        self.contexts().id(own ^ turned, enemy ^ turned)
    }

    /// Appends what the move removes and adds, shifted by `offset`.
    #[inline]
    pub fn delta(&self, mv: &Move<'_>, boards: &mut Option<Boards>, offset: u32, rows: &mut Rows<'_>) {
        if let (Some(walk), Some([kings, _])) = (&self.walk, mv.kings)
            && (mv.kings_stay || walk.blind)
        {
            return self.moved_plainly(walk, mv.change, (mv.pov, kings), offset, rows);
        }
        self.delta_of_shape(mv, boards, offset, rows);
    }

    #[inline(never)]
    fn delta_of_shape(&self, mv: &Move<'_>, boards: &mut Option<Boards>, offset: u32, rows: &mut Rows<'_>) {
        let Some([before, after]) = mv.kings else { return self.anew(mv, offset, rows) };
        let kings = self.kings(before[0], before[1], mv.pov);
        if before != after {
            let moved = self.kings(after[0], after[1], mv.pov);
            match (self.same_under(&kings, &moved), &self.walk) {
                (true, Some(walk)) => return self.moved_plainly(walk, mv.change, (mv.pov, before), offset, rows),
                (true, None) => {}
                (false, Some(walk)) if walk.small => return self.walked_anew(walk, mv, [&kings, &moved], offset, rows),
                (false, _) => return self.anew(mv, offset, rows),
            }
        }
        match self.shape {
            Shape::Piece => self.moved_pieces(mv, &kings, offset, rows),
            Shape::Pair if self.united => self.touched_codes(mv.boards(kings.mask, boards), &kings, offset, rows),
            Shape::Pair if !self.shares_rows() || self.terms.iter().all(|term| term.separable) => {
                self.touched_pairs(mv.boards(kings.mask, boards), &kings, offset, rows);
            }
            Shape::Counts if !self.counts_touched(mv.boards(kings.mask, boards)) => {}
            Shape::Counted if !self.shares_rows() => {
                self.recounted(mv.boards(kings.mask, boards), &kings, offset, rows);
            }
            Shape::Pair | Shape::Counts | Shape::Counted | Shape::Other => {
                self.search_both(mv.boards(kings.mask, boards), &kings, offset, rows);
            }
        }
    }

    /// Whether both placements of the kings give every binding the same row.
    fn same_under(&self, before: &Kings, after: &Kings) -> bool {
        let king = |slot: usize, from: u32, to: u32| {
            let counts = || self.terms.iter().flat_map(|term| &term.counts);
            let guarded = || self.guards.iter().any(|guard| guard.reads(slot));
            let same = || levels::same(&self.levels, slot, from, to);
            from == to || same() && counts().all(|count| count.same(slot, from, to)) && !guarded()
        };
        before.mask == after.mask
            && self.terms.iter().all(|term| self.base(term, before) == self.base(term, after))
            && king(0, before.own, after.own)
            && king(1, before.enemy, after.enemy)
    }

    /// Both encodings, less what they share.
    fn anew(&self, mv: &Move<'_>, offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        let kings = mv.kings.map_or([None; 2], |kings| kings.map(Some));
        let sides = [(mv.before, kings[0], &mut *rows.removed), (mv.after, kings[1], &mut *rows.added)];
        for (board, kings, out) in sides {
            match (self.shape, kings) {
                (Shape::Piece, _) | (_, None) => {
                    self.active(&Placement::of(board, self.needs()), mv.pov, offset, out);
                }
                (_, Some([own, enemy])) => {
                    let kings = self.kings(own, enemy, mv.pov);
                    self.search(&View::of(board, mv.pov, kings.mask), &kings, offset, out);
                }
            }
        }
        self.settle(from, rows);
    }

    /// The same for a small table: entries fall into place by themselves, and mostly the kings set the rows apart.
    fn walked_anew(&self, walk: &Walk, mv: &Move<'_>, kings: [&Kings; 2], offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        let term = &self.terms[0];
        let bases = kings.map(|kings| self.base(term, kings));
        let sides = [(mv.before, &mut *rows.removed), (mv.after, &mut *rows.added)];
        for ((board, out), (kings, base)) in sides.into_iter().zip(kings.into_iter().zip(bases)) {
            if base == NONE {
                continue;
            }
            let turn = (mv.pov.index() << 9) as u16 | kings.mask as u16;
            let mut entries = [0u64; 16];
            for man in Placement::of(board, Needs::default()).men() {
                let entry = walk.table[usize::from(man ^ turn) & 1023];
                if entry != NONE {
                    entries[(entry / 64) as usize & 15] |= 1 << (entry & 63);
                }
            }
            for (word, bits) in (0u32..).zip(entries) {
                out.extend(squares(bits).map(|bit| base + offset + word * 64 + bit));
            }
        }
        let apart = bases[0].abs_diff(bases[1]) >= 1024;
        if !apart {
            rows.settle(from);
        }
    }

    /// The same where the kings have not changed and the boards are at hand.
    fn search_both(&self, boards: &Boards, kings: &Kings, offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        self.search(&boards.before, kings, offset, rows.removed);
        self.search(&boards.after, kings, offset, rows.added);
        self.settle(from, rows);
    }

    /// Sorts what came after `from`, drops repeats that do not count and what stands on both sides.
    fn settle(&self, from: [usize; 2], rows: &mut Rows<'_>) {
        if self.shares_rows() {
            for (rows, start) in [(&mut *rows.removed, from[0]), (&mut *rows.added, from[1])] {
                rows[start..].sort_unstable();
                dedup_from(rows, start);
            }
        }
        rows.settle(from);
    }

    /// What a move changes in a block that is one table ([`CompiledBlock::walks`]) while both kings stay; `kings`: the own
    /// and the enemy's, on the board's own squares.
    #[inline(always)]
    pub fn moved(&self, change: &BoardChange, pov: Perspective, kings: [u32; 2], offset: u32, rows: &mut Rows<'_>) {
        if let Some(walk) = &self.walk {
            self.moved_plainly(walk, change, (pov, kings), offset, rows);
        }
    }

    /// Blocks that are one table: the entries of the pieces that moved.
    #[inline(always)]
    fn moved_plainly(
        &self,
        walk: &Walk,
        change: &BoardChange,
        (pov, [own, enemy]): (Perspective, [u32; 2]),
        offset: u32,
        rows: &mut Rows<'_>,
    ) {
        let Some((base, number)) = self.turned(own, enemy, pov) else { return };
        let first = base.wrapping_add(offset);
        let from = [rows.removed.len(), rows.added.len()];
        let [old, new] = change.states().map(|states| entries(states, &walk.table, exchange(number)));
        for (entries, out) in [(old, &mut *rows.removed), (new, &mut *rows.added)] {
            let count = entries.iter().filter(|entry| **entry != NONE).count();
            // Both, then less those there are not, which stand last: no branch.
            let end = out.len() + count;
            out.extend_from_slice(&entries.map(|entry| first.wrapping_add(entry)));
            out.truncate(end);
        }
        let crosses = |entry: u32| entry != NONE && new.contains(&entry);
        if crosses(old[0]) | crosses(old[1]) {
            rows.settle(from);
        }
    }

    /// Blocks of one piece: the rows of the pieces that moved.
    fn moved_pieces(&self, mv: &Move<'_>, kings: &Kings, offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        let level = &self.levels[0];
        let shared = self.shares_rows();
        let mut men = None;
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let table = &term.tables[level.slot];
            let mut row = |state: u16, other: &Board, out: &mut Vec<u32>| {
                let man = Man { code: usize::from(state >> 6), square: u32::from(state & 63) ^ kings.mask };
                let entry = table[man.code << 6 | man.square as usize];
                if entry == NONE || !(level.plain() || self.admitted(man, men.get_or_insert_with(|| self.men(kings)))) {
                    return;
                }
                if !(shared && self.yields_piece(term, man, other, mv.pov, kings)) {
                    out.push(base + entry + offset);
                }
            };
            mv.removed().for_each(|state| row(state, mv.after, rows.removed));
            mv.added().for_each(|state| row(state, mv.before, rows.added));
        }
        self.settle(from, rows);
    }

    /// Whether the conditions of the first level hold for a piece.
    fn admitted(&self, man: Man, men: &mut Men) -> bool {
        let level = &self.levels[0];
        let mut room = None;
        let left = level.left(men, &mut room).is_none_or(|left| left[man.code] >> man.square & 1 != 0);
        men[level.slot] = man;
        left && level.admits(men)
    }

    /// Blocks of one piece: whether some piece of a board yields the row that `man` yields.
    fn yields_piece(&self, term: &Term, man: Man, board: &Board, pov: Perspective, kings: &Kings) -> bool {
        let level = &self.levels[0];
        let fellows = term.groups[level.slot].fellows(man.code << 6 | man.square as usize);
        let present = |code: usize, allowed: u64| {
            let color = Color::from_white(code ^ (pov.index() << 3) < 8);
            board.by_color(color).0 & board.by_role(Role::ALL[code & 7]).0 & turn(allowed, kings.mask)
        };
        if level.plain() {
            return fellows.iter().any(|(code, allowed)| present(*code, *allowed) != 0);
        }
        let mut men = self.men(kings);
        fellows.iter().any(|(code, allowed)| {
            squares(present(*code, *allowed))
                .any(|square| self.admitted(Man { code: *code, square: square ^ kings.mask }, &mut men))
        })
    }

    /// Blocks of pairs: the pairs of pieces that moved or whose reach holds a changed square.
    fn touched_pairs(&self, boards: &Boards, kings: &Kings, offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        let mut men = self.men(kings);
        for term in &self.terms {
            let base = self.base(term, kings);
            if base != NONE {
                let starts = [rows.removed.len(), rows.added.len()];
                let pairs = Pairs { block: self, term, base: base + offset, shared: self.shares_rows() };
                pairs.changes(boards, &mut men, [&mut *rows.removed, &mut *rows.added], starts);
            }
        }
        self.settle(from, rows);
    }

    /// Blocks whose rows are those of a code's pieces together: the codes of touched pieces, before against after.
    fn touched_codes(&self, boards: &Boards, kings: &Kings, offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        let [first, second] = &self.levels[..] else { return };
        let touched = boards.touched(second.source) | boards.changed;
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let only = term.masks[second.slot].first().map_or(0, |(_, allowed)| *allowed);
            let entries = term.by_code.iter().flatten();
            for ((code, allowed), (_, entry)) in term.masks[first.slot].iter().zip(entries) {
                let reached = |view: &View| {
                    let men = squares(view.by_code(*code) & allowed).map(|square| Man { code: *code, square });
                    men.fold(0, |all, man| all | view.reach(second.source, man)) & only
                };
                let concerned = (boards.before.by_code(*code) | boards.after.by_code(*code)) & allowed & touched;
                if concerned != 0 {
                    let [before, after] = [reached(&boards.before), reached(&boards.after)];
                    let row = |square: u32| base + offset + entry + term.tables[second.slot][square as usize];
                    rows.removed.extend(squares(before & !after).map(row));
                    rows.added.extend(squares(after & !before).map(row));
                }
            }
        }
        rows.settle(from);
    }

    /// Whether a count may differ: some piece it counts moved, or was touched.
    fn counts_touched(&self, boards: &Boards) -> bool {
        self.terms.iter().flat_map(|term| &term.counts).any(|count| {
            let touched = count.levels().get(1).map_or(0, |second| boards.touched(second.source));
            let counted = |view: &View, which: u64| {
                count.first_mask().iter().any(|(code, allowed)| view.by_code(*code) & allowed & which != 0)
            };
            counted(&boards.before, touched | boards.changed) || counted(&boards.after, boards.changed)
        })
    }
}
