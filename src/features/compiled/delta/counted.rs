//! Blocks of one piece with counts: the rows of the pieces whose counts a move may change.

use crate::features::spec::{SourceSpec, VariableKind};

use super::super::levels::{CountPlan, Trace};
use super::super::tables::NONE;
use super::super::view::{Man, View, squares};
use super::super::{CompiledBlock, encode::Kings, encode::Men};
use super::{Boards, Rows};

impl CompiledBlock {
    /// Every piece that moved or whose counts may differ: its row before and its row after.
    pub(super) fn recounted(&self, boards: &Boards, kings: &Kings, offset: u32, rows: &mut Rows<'_>) {
        let from = [rows.removed.len(), rows.added.len()];
        let level = &self.levels[0];
        let mut men = self.men(kings);
        for term in &self.terms {
            let base = self.base(term, kings);
            if base == NONE {
                continue;
            }
            let mask = &term.masks[level.slot];
            let concerned = boards.changed | self.concerned(&term.counts, boards, &mut men);
            for (view, out) in [(&boards.before, &mut *rows.removed), (&boards.after, &mut *rows.added)] {
                let mut room = None;
                for (code, bits) in level.candidates(view, &men, mask, &mut room) {
                    for square in squares(bits & concerned) {
                        men[level.slot] = Man { code, square };
                        if level.admits(&men) {
                            let entry = term.tables[level.slot][code << 6 | square as usize];
                            out.push(base + offset + entry + term.counted(view, &mut men));
                        }
                    }
                }
            }
        }
        rows.settle(from);
    }

    /// Squares of the pieces that stay and for which one of the counts may differ.
    fn concerned(&self, counts: &[CountPlan], boards: &Boards, men: &mut Men) -> u64 {
        let outer = self.levels[0].slot;
        let mut all = 0;
        for count in counts {
            // Where the last variable may come or go.
            let ends = match count.trace(outer) {
                None => return !0,
                Some(Trace::Own(source)) => {
                    all |= boards.touched(source);
                    0
                }
                Some(Trace::Pieces) => boards.changed,
                Some(Trace::Reached(source)) => self.ends(count, source, boards),
            };
            if ends == 0 {
                continue;
            }
            for (code, board) in (0..16).map(|code| (code, boards.before.by_code(code))) {
                for square in squares(board & !boards.changed & !all) {
                    men[outer] = Man { code, square };
                    all |= u64::from(count.concerns(men, ends)) << square;
                }
            }
        }
        all
    }
    /// Squares that some piece reaches on one board and not on the other, or that one which moved reaches; with those on
    /// which a reached piece is another.
    fn ends(&self, count: &CountPlan, source: SourceSpec, boards: &Boards) -> u64 {
        let pieces = count.levels().last().is_some_and(|last| last.kind == VariableKind::Piece);
        let mut ends = if pieces { boards.changed } else { 0 };
        for (code, allowed) in count.first_mask() {
            let [before, after] = [&boards.before, &boards.after].map(|view| view.by_code(*code) & allowed);
            let reach = |view: &View, square: u32| view.reach(source, Man { code: *code, square });
            for square in squares(before & boards.touched(source) & !boards.changed) {
                ends |= reach(&boards.before, square) ^ reach(&boards.after, square);
            }
            for square in squares(before & boards.changed) {
                ends |= reach(&boards.before, square);
            }
            for square in squares(after & boards.changed) {
                ends |= reach(&boards.after, square);
            }
        }
        ends
    }
}
