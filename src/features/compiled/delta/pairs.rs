//! Deltas of pairs: a piece or king, and its partners.

use crate::features::compiled::CompiledBlock;
use crate::features::compiled::binding_plan::BinderPlan;
use crate::features::compiled::oriented_board::{Binding, OrientedBoard, squares};
use crate::features::compiled::tables::{Mask, TableTerm};
use crate::features::spec::VariableKind;

use super::OrientedPair;

/// Called with every binding found.
type Visit<'a> = &'a mut dyn FnMut(&mut [Binding]);

/// The delta of one term of a block of pairs.
pub struct PairDelta<'a> {
    pub block: &'a CompiledBlock,
    pub term: &'a TableTerm,
    /// Includes the set's offset.
    pub base: u32,
    /// Whether several pairs may yield one row, which changes only if all of them come or go.
    pub shares_rows: bool,
}

impl PairDelta<'_> {
    fn second(&self) -> &BinderPlan {
        &self.block.binders[self.block.binders.len() - 1]
    }

    /// The binder of the first variable; `None` when that is a king.
    fn first(&self) -> Option<&BinderPlan> {
        self.block.binders.split_last().and_then(|(_, first)| first.first())
    }

    /// Appends the rows of pairs that vanish to `out[0]`, of new ones to `out[1]`. This term's rows begin at `starts`.
    pub fn append(&self, boards: &OrientedPair, bindings: &mut [Binding], out: [&mut Vec<u32>; 2], starts: [usize; 2]) {
        let [removed, added] = out;
        let second = self.second();
        let mask = &self.term.masks[second.slot];
        // A bare square is the same square whatever stands there.
        let replaced = if second.kind == VariableKind::Piece { boards.changed } else { 0 };
        let staying = boards.affected(second.source) & !boards.changed;
        let before = &boards.before;
        let after = &boards.after;
        self.each_first(before, staying, bindings, &mut |bindings| {
            let partners = [before, after].map(|board| self.partners(board, bindings, mask));
            let common = partners[0] & partners[1] & !replaced;
            self.emit([before, after], bindings, partners[0] & !common, removed, starts[0]);
            self.emit([after, before], bindings, partners[1] & !common, added, starts[1]);
        });
        if self.first().is_some() {
            self.each_first(before, boards.changed, bindings, &mut |bindings| {
                let partners = self.partners(before, bindings, mask);
                self.emit([before, after], bindings, partners, removed, starts[0]);
            });
            self.each_first(after, boards.changed, bindings, &mut |bindings| {
                let partners = self.partners(after, bindings, mask);
                self.emit([after, before], bindings, partners, added, starts[1]);
            });
        }
    }

    /// Binds the first variable to each piece on the squares `among`. A first variable that is a king is bound already.
    fn each_first(&self, board: &OrientedBoard, among: u64, bindings: &mut [Binding], visit: Visit<'_>) {
        let Some(first) = self.first() else { return visit(bindings) };
        self.each(first, board, &self.term.masks[first.slot], among, bindings, visit);
    }

    fn each(
        &self,
        binder: &BinderPlan,
        board: &OrientedBoard,
        mask: &Mask,
        among: u64,
        bindings: &mut [Binding],
        visit: Visit<'_>,
    ) {
        let mut buffer = None;
        for (code, bits) in binder.candidates(board, bindings, mask, &mut buffer) {
            for square in squares(bits & among) {
                bindings[binder.slot] = Binding { code, square };
                if binder.residual_holds(bindings) {
                    visit(bindings);
                }
            }
        }
    }

    /// The squares that the second variable can take.
    fn partners(&self, board: &OrientedBoard, bindings: &mut [Binding], mask: &Mask) -> u64 {
        let binder = self.second();
        let mut partners = 0;
        let mut buffer = None;
        for (code, bits) in binder.candidates(board, bindings, mask, &mut buffer) {
            let admitted = |square: &u32| {
                bindings[binder.slot] = Binding { code, square: *square };
                binder.residual_holds(bindings)
            };
            partners |= if binder.has_residual() {
                squares(bits).filter(admitted).fold(0, |found, square| found | 1 << square)
            } else {
                bits
            };
        }
        partners
    }

    /// Appends the rows of the bound first variable with `partners` on `board`, except those that some pair yields on
    /// the other board.
    fn emit(
        &self,
        [board, other]: [&OrientedBoard; 2],
        bindings: &mut [Binding],
        partners: u64,
        out: &mut Vec<u32>,
        start: usize,
    ) {
        let binder = self.second();
        let tables = &self.term.tables;
        let first = self.first().map(|first| (first, bindings[first.slot]));
        let sum = self.base + first.map_or(0, |(first, piece)| tables[first.slot][piece.state(first.kind)]);
        for square in squares(partners) {
            let code = if binder.kind == VariableKind::Piece { board.code_at(square) } else { 0 };
            let partner = Binding { code, square };
            let row = sum + tables[binder.slot][partner.state(binder.kind)];
            let is_listed = || out[start..].contains(&row);
            if self.shares_rows && (is_listed() || self.is_yielded(other, bindings, first, partner)) {
                continue;
            }
            out.push(row);
        }
    }

    /// Whether some pair on `board` yields the row of `first` (bound in `bindings`) and `second`.
    fn is_yielded(
        &self,
        board: &OrientedBoard,
        bindings: &mut [Binding],
        first: Option<(&BinderPlan, Binding)>,
        second: Binding,
    ) -> bool {
        let binder = self.second();
        let classes = &self.term.classes;
        let seconds = classes[binder.slot].equivalents(second.state(binder.kind));
        let Some((first, piece)) = first else { return self.partners(board, bindings, seconds) != 0 };
        let firsts = classes[first.slot].equivalents(piece.state(first.kind));
        if first.is_unconditional() && binder.is_unconditional() {
            let is_reached = |square| {
                let mut firsts = firsts.iter();
                firsts.any(|(code, allowed)| board.reaching(binder.source, *code, square) & allowed != 0)
            };
            let mut candidates = binder.candidates_within(board, !0, seconds, None);
            return candidates.any(|(_, bits)| squares(bits).any(is_reached));
        }
        let mut found = false;
        self.each(first, board, firsts, !0, bindings, &mut |bindings| {
            found = found || self.partners(board, bindings, seconds) != 0;
        });
        bindings[first.slot] = piece;
        found
    }
}
