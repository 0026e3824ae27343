//! Finding bindings and summing their rows.

use crate::chess::{Perspective, PieceCode, Square};
use crate::features::spec::{
    BinderSpec, ConditionSpec, ENEMY_KING, Entity, Multiplicity, OWN_KING, SourceSpec, VariableKind,
};

use super::tables::{NONE, Term, plus};
use super::view::{Bitboards, Man, View, squares};
use super::{CompiledBlock, relative};

impl CompiledBlock {
    /// Appends the block's active features, shifted by `offset`. A board without both kings has none.
    pub fn active(&self, boards: &Bitboards, pov: Perspective, offset: u32, out: &mut Vec<u32>) {
        let Some(kings) = self.kings(boards, pov) else { return };
        let start = out.len();
        if self.tabular {
            self.tabulated(boards, pov, &kings, offset, out);
        } else {
            self.enumerated(boards, pov, &kings, offset, out);
        }
        if self.multiplicity == Multiplicity::Set && !self.injective {
            sort_dedup_from(out, start);
        }
    }

    /// Appends the rows one piece contributes: only for [`CompiledBlock::tabular`] blocks.
    pub fn piece_rows(
        &self,
        kings: &Kings,
        piece: (Square, PieceCode),
        pov: Perspective,
        offset: u32,
        out: &mut Vec<u32>,
    ) {
        let at = relative(piece.1, pov) << 6 | (u32::from(piece.0) ^ kings.mask) as usize;
        for (term, base) in self.terms.iter().zip(self.bases(kings)) {
            let row = plus(base, term.tables[self.binders[0].slot][at]);
            if row != NONE {
                out.push(row + offset);
            }
        }
    }

    /// Where the kings stand for `pov`, none when one is missing.
    pub fn kings(&self, boards: &Bitboards, pov: Perspective) -> Option<Kings> {
        let own = boards.king(pov)?;
        let enemy = boards.king(pov.other())?;
        let mask = self.orientation.mask(own, pov);
        Some(Kings { own: u32::from(own) ^ mask, enemy: u32::from(enemy) ^ mask, mask })
    }

    /// Whether a piece has the same rows under both placements of the kings.
    pub fn same_rows(&self, before: &Kings, after: &Kings) -> bool {
        before.mask == after.mask && self.bases(before).eq(self.bases(after))
    }

    /// What each term sums to before its variables: the base and the kings' share.
    fn bases(&self, kings: &Kings) -> impl Iterator<Item = u32> + '_ {
        let kings = *kings;
        let holds = self.king_conditions.is_empty() || self.kings_hold(kings.own, kings.enemy);
        self.terms.iter().map(move |term| if holds { term.king_sum(kings.own, kings.enemy) } else { NONE })
    }

    /// Whether the conditions over both kings hold.
    pub(super) fn kings_hold(&self, own: u32, enemy: u32) -> bool {
        let entity = |slot| Entity { square: if slot == OWN_KING { own } else { enemy }, role: 5, color: slot as u32 };
        self.king_conditions.iter().all(|condition| condition.holds(&entity))
    }

    fn tabulated(&self, boards: &Bitboards, pov: Perspective, kings: &Kings, offset: u32, out: &mut Vec<u32>) {
        let slot = self.binders[0].slot;
        for (term, base) in self.terms.iter().zip(self.bases(kings)) {
            if base == NONE {
                continue;
            }
            let table = &term.tables[slot];
            for (code, board) in boards.relative(pov) {
                for square in squares(board) {
                    let entry = table[code << 6 | (square ^ kings.mask) as usize];
                    if entry != NONE {
                        out.push(base + entry + offset);
                    }
                }
            }
        }
    }

    fn enumerated(&self, boards: &Bitboards, pov: Perspective, kings: &Kings, offset: u32, out: &mut Vec<u32>) {
        let bases: Vec<u32> = self.bases(kings).collect();
        if bases.iter().all(|base| *base == NONE) {
            return;
        }
        let mut men = vec![Man { code: 0, square: 0 }; self.variables.len()];
        men[OWN_KING] = Man { code: 5, square: kings.own };
        men[ENEMY_KING] = Man { code: 13, square: kings.enemy };
        let view = boards.view(pov, kings.mask);
        let mut search = Search { block: self, view: &view, men, offset, out };
        search.bind(&self.binders, &bases);
    }
}

/// The kings on the oriented board, and the mask that oriented it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kings {
    pub own: u32,
    pub enemy: u32,
    pub mask: u32,
}

impl Term {
    /// Base plus both kings' entries.
    pub fn king_sum(&self, own: u32, enemy: u32) -> u32 {
        let entries = plus(self.tables[OWN_KING][own as usize], self.tables[ENEMY_KING][enemy as usize]);
        plus(self.base, entries)
    }
}

struct Search<'a> {
    block: &'a CompiledBlock,
    view: &'a View,
    men: Vec<Man>,
    offset: u32,
    out: &'a mut Vec<u32>,
}

impl Search<'_> {
    /// Binds the remaining variables in every way; `sums` are the terms' partial sums.
    fn bind(&mut self, binders: &[BinderSpec], sums: &[u32]) {
        let Some((binder, rest)) = binders.split_first() else { return self.emit(sums) };
        let mut next = Vec::with_capacity(sums.len());
        each(self.view, binder.source, &self.men.clone(), &mut |man| {
            let at = match self.block.variables[binder.slot] {
                VariableKind::Piece => man.code << 6 | man.square as usize,
                VariableKind::Square => man.square as usize,
            };
            next.clear();
            next.extend(self.block.terms.iter().zip(sums).map(|(term, sum)| plus(*sum, term.tables[binder.slot][at])));
            if next.iter().any(|sum| *sum != NONE) {
                self.men[binder.slot] = man;
                self.bind(rest, &next);
            }
        });
    }

    fn emit(&mut self, sums: &[u32]) {
        if !holds(&self.block.residual, &self.men) {
            return;
        }
        for (term, sum) in self.block.terms.iter().zip(sums) {
            if *sum != NONE {
                let counts: u32 = term
                    .counts
                    .iter()
                    .map(|(stride, count)| {
                        let condition = count.condition.as_slice();
                        stride * tally(self.view, &count.binders, condition, &mut self.men.clone()).min(count.max)
                    })
                    .sum();
                self.out.push(sum + counts + self.offset);
            }
        }
    }
}

/// Number of bindings that satisfy the conditions.
fn tally(view: &View, binders: &[BinderSpec], conditions: &[ConditionSpec], men: &mut Vec<Man>) -> u32 {
    let Some((binder, rest)) = binders.split_first() else { return u32::from(holds(conditions, men)) };
    let mut number = 0;
    each(view, binder.source, &men.clone(), &mut |man| {
        men[binder.slot] = man;
        number += tally(view, rest, conditions, men);
    });
    number
}

fn holds(conditions: &[ConditionSpec], men: &[Man]) -> bool {
    let entity = |slot: usize| {
        let Man { code, square } = men[slot];
        Entity { square, role: code as u32 & 7, color: code as u32 >> 3 }
    };
    conditions.iter().all(|condition| condition.holds(&entity))
}

/// What a source yields, in turn. Bare squares have code 0.
fn each(view: &View, source: SourceSpec, men: &[Man], visit: &mut dyn FnMut(Man)) {
    match source {
        SourceSpec::Pieces => view.men().for_each(visit),
        SourceSpec::Moves(of) => squares(view.moves(men[of])).for_each(|square| visit(Man { code: 0, square })),
        SourceSpec::Attacks(of) => squares(view.attacks(men[of])).for_each(|square| visit(Man { code: 0, square })),
        SourceSpec::Targets(of) => {
            squares(view.attacks(men[of]) & view.occupied()).filter_map(|square| view.man_at(square)).for_each(visit);
        }
        SourceSpec::Next(of, direction) => view.next(men[of].square, direction).into_iter().for_each(visit),
    }
}

fn sort_dedup_from(out: &mut Vec<u32>, start: usize) {
    out[start..].sort_unstable();
    let mut kept = start;
    for at in start..out.len() {
        if at == start || out[at] != out[kept - 1] {
            out[kept] = out[at];
            kept += 1;
        }
    }
    out.truncate(kept);
}
