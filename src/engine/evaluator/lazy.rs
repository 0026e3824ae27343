//! Lazy strategies: accumulators are computed when a score is asked for, from the nearest earlier position that has
//! them.

use super::{Computed, Evaluator, PlyState};
use crate::chess::{Board, BoardChange, ByPerspective, Perspective};
use crate::engine::refresh_rule::PartialRefresh;

impl Evaluator<'_> {
    pub(super) fn push_ply(&mut self, change: &BoardChange, after: &Board) {
        self.top += 1;
        if self.plies.len() == self.top {
            self.plies.push(PlyState::empty(self.model, self.partial.is_some()));
        }
        let ply = &mut self.plies[self.top];
        ply.board.clone_from(after);
        ply.change = Some(*change);
        ply.computed = ByPerspective::default();
    }

    /// Computes the present accumulator of a perspective, unless it is computed already.
    pub(super) fn ensure_computed(&mut self, pov: Perspective) {
        if !self.strategy.lazy() || self.plies[self.top].computed[pov] == Computed::All {
            return;
        }
        // Search back for the last computed ply. Before a change of context its sum over the stable blocks is enough.
        let needed = |context: Option<usize>| if context.is_some() { Computed::Stable } else { Computed::All };
        let mut first = self.top;
        let mut context = None;
        while let Some(change) = &self.plies[first].change {
            let before = &self.plies[first - 1].board;
            let after = &self.plies[first].board;
            if self.set.encoder().refreshes(before, change, after, pov) {
                let stays =
                    |partial: &PartialRefresh| !partial.refreshes_stable(self.set, [before, after], change, pov);
                if !self.partial.as_ref().is_some_and(stays) {
                    break;
                }
                context = context.or(Some(first));
            }
            first -= 1;
            if self.plies[first].computed[pov] >= needed(context) {
                return self.roll_forward(first, context, pov);
            }
        }
        let board = self.plies[self.top].board.clone();
        self.updates += 1;
        self.refresh(&board, pov);
    }

    /// Computes both present accumulators from the accumulators of the ply before, where these are computed and no
    /// context changes: the changed features of both perspectives are found at once. Returns whether it did.
    pub(super) fn steps_forward(&mut self) -> bool {
        let (earlier, rest) = self.plies.split_at_mut(self.top);
        let (Some(before), Some(ply)) = (earlier.last(), rest.first_mut()) else { return false };
        let is_next = |pov| before.computed[pov] == Computed::All && ply.computed[pov] == Computed::Nothing;
        let (Some(change), true) = (ply.change, self.strategy.lazy() && Perspective::ALL.into_iter().all(is_next))
        else {
            return false;
        };
        let model = self.model;
        let encoder = self.set.encoder();
        let back_end = self.back_end;
        let refreshes = |pov| encoder.refreshes(&before.board, &change, &ply.board, pov);
        if Perspective::ALL.into_iter().any(refreshes) {
            return false;
        }
        if let Some(partial) = &self.partial {
            let boards = [&before.board, &ply.board];
            let prefetch = |features: &[u32]| model.prefetch(features);
            encoder.diff_in_parts(boards, &change, partial.parts(), &Perspective::ALL, &mut self.parts, prefetch);
            // In the order in which their rows were asked for.
            for pov in Perspective::ALL {
                let delta = &self.parts[pov][1];
                let from = &before.accumulators[pov];
                model.update_from(back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
                self.rows += delta.rows();
            }
            for pov in Perspective::ALL {
                let delta = &self.parts[pov][0];
                let from = &before.stable[pov];
                model.update_from(back_end, from, &mut ply.stable[pov], &delta.added, &delta.removed);
                self.rows += delta.rows();
            }
        } else {
            encoder.diff_both(&before.board, &change, &ply.board, &mut self.deltas);
            for pov in Perspective::ALL {
                let delta = &self.deltas[pov];
                let from = &before.accumulators[pov];
                model.update_from(back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
                self.rows += delta.rows();
            }
        }
        ply.computed = ByPerspective { white: Computed::All, black: Computed::All };
        self.updates += 2;
        true
    }

    /// Rolls accumulators forward from ply `first`; before ply `context` only the sums over the stable blocks.
    fn roll_forward(&mut self, first: usize, context: Option<usize>, pov: Perspective) {
        self.updates += (self.top - first) as u64;
        for at in first + 1..=self.top {
            let (earlier, rest) = self.plies.split_at_mut(at);
            let before = &earlier[at - 1];
            let ply = &mut rest[0];
            let Some(change) = &ply.change else { continue };
            let model = self.model;
            let encoder = self.set.encoder();
            let delta = if let Some(partial) = &self.partial {
                let boards = [&before.board, &ply.board];
                let prefetch = |features: &[u32]| model.prefetch(features);
                encoder.diff_in_parts(boards, change, partial.parts(), &[pov], &mut self.parts, prefetch);
                let [stable, dependent] = &self.parts[pov];
                let from = &before.stable[pov];
                let to = &mut ply.stable[pov];
                model.update_from(self.back_end, from, to, &stable.added, &stable.removed);
                self.rows += stable.rows();
                dependent
            } else {
                encoder.diff(&before.board, change, &ply.board, pov, &mut self.deltas[pov]);
                &self.deltas[pov]
            };
            if context.is_some_and(|context| at < context) {
                ply.computed[pov] = Computed::Stable;
                continue;
            }
            if context == Some(at) {
                let board = ply.board.clone();
                self.refresh_dependent_of(at, &board, pov);
                continue;
            }
            let from = &before.accumulators[pov];
            model.update_from(self.back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
            ply.computed[pov] = Computed::All;
            self.rows += delta.rows();
        }
    }
}
