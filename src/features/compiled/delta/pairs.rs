//! Blocks of pairs: from a piece, or a king, to its partners.

use crate::features::spec::VariableKind;

use super::super::CompiledBlock;
use super::super::levels::Level;
use super::super::tables::{Mask, Term};
use super::super::view::{Man, View, squares};
use super::Boards;

/// The bindings of a block of pairs in one term: from a piece (or king) to its partners.
pub struct Pairs<'a> {
    pub block: &'a CompiledBlock,
    pub term: &'a Term,
    /// With the set's offset.
    pub base: u32,
    /// Whether a row another pair yields has not changed.
    pub shared: bool,
}

impl Pairs<'_> {
    fn second(&self) -> &Level {
        &self.block.levels[self.block.levels.len() - 1]
    }

    /// The level of the first variable; none when that is a king.
    fn first(&self) -> Option<&Level> {
        self.block.levels.split_last().and_then(|(_, first)| first.first())
    }

    /// Appends rows of pairs that are gone to `out[0]`, of new ones to `out[1]`; this term's begin at `starts`.
    pub fn changes(&self, boards: &Boards, men: &mut [Man], out: [&mut Vec<u32>; 2], starts: [usize; 2]) {
        let [removed, added] = out;
        let second = self.second();
        let mask = &self.term.masks[second.slot];
        // A bare square is the same square whatever stands there.
        let replaced = if second.kind == VariableKind::Piece { boards.changed } else { 0 };
        let stays = boards.touched(second.source) & !boards.changed;
        let (before, after) = (&boards.before, &boards.after);
        self.each_first(before, stays, men, &mut |men| {
            let partners = [before, after].map(|view| self.partners(view, men, mask));
            let common = partners[0] & partners[1] & !replaced;
            self.emit([before, after], men, partners[0] & !common, removed, starts[0]);
            self.emit([after, before], men, partners[1] & !common, added, starts[1]);
        });
        if self.first().is_some() {
            self.each_first(before, boards.changed, men, &mut |men| {
                let partners = self.partners(before, men, mask);
                self.emit([before, after], men, partners, removed, starts[0]);
            });
            self.each_first(after, boards.changed, men, &mut |men| {
                let partners = self.partners(after, men, mask);
                self.emit([after, before], men, partners, added, starts[1]);
            });
        }
    }

    /// Binds the first variable to each piece on the squares `among`; a first variable that is a king is bound already.
    fn each_first(&self, view: &View, among: u64, men: &mut [Man], visit: &mut dyn FnMut(&mut [Man])) {
        let Some(first) = self.first() else { return visit(men) };
        self.each(first, view, &self.term.masks[first.slot], among, men, visit);
    }

    fn each(
        &self,
        level: &Level,
        view: &View,
        mask: &Mask,
        among: u64,
        men: &mut [Man],
        visit: &mut dyn FnMut(&mut [Man]),
    ) {
        let mut room = None;
        for (code, bits) in level.candidates(view, men, mask, &mut room) {
            for square in squares(bits & among) {
                men[level.slot] = Man { code, square };
                if level.admits(men) {
                    visit(men);
                }
            }
        }
    }

    /// Squares of what the second variable can be.
    fn partners(&self, view: &View, men: &mut [Man], mask: &Mask) -> u64 {
        let level = self.second();
        let mut partners = 0;
        let mut room = None;
        for (code, bits) in level.candidates(view, men, mask, &mut room) {
            let admitted = |square: &u32| {
                men[level.slot] = Man { code, square: *square };
                level.admits(men)
            };
            partners |= match level.conditional() {
                false => bits,
                true => squares(bits).filter(admitted).fold(0, |found, square| found | 1 << square),
            };
        }
        partners
    }

    /// Appends the rows of the bound first variable with its partners on the first board, less those that some pair
    /// yields on the second.
    fn emit(&self, [view, other]: [&View; 2], men: &mut [Man], partners: u64, out: &mut Vec<u32>, start: usize) {
        let level = self.second();
        let tables = &self.term.tables;
        let first = self.first().map(|first| (first, men[first.slot]));
        let sum = self.base + first.map_or(0, |(first, man)| tables[first.slot][man.state(first.kind)]);
        for square in squares(partners) {
            let code = if level.kind == VariableKind::Piece { view.code_at(square) } else { 0 };
            let man = Man { code, square };
            let row = sum + tables[level.slot][man.state(level.kind)];
            let known = || out[start..].contains(&row);
            if self.shared && (known() || self.yields(other, men, first, man)) {
                continue;
            }
            out.push(row);
        }
    }

    /// Whether some pair of a board yields the row of `first` (bound in `men`) and `second`.
    fn yields(&self, view: &View, men: &mut [Man], first: Option<(&Level, Man)>, second: Man) -> bool {
        let level = self.second();
        let groups = &self.term.groups;
        let seconds = groups[level.slot].fellows(second.state(level.kind));
        let Some((first, man)) = first else { return self.partners(view, men, seconds) != 0 };
        let firsts = groups[first.slot].fellows(man.state(first.kind));
        if first.plain() && level.plain() {
            let reaching =
                |square| firsts.iter().any(|(code, allowed)| view.reaching(level.source, *code, square) & allowed != 0);
            return level.reached(view, !0, seconds, None).any(|(_, bits)| squares(bits).any(reaching));
        }
        let mut found = false;
        self.each(first, view, firsts, !0, men, &mut |men| found = found || self.partners(view, men, seconds) != 0);
        men[first.slot] = man;
        found
    }
}
