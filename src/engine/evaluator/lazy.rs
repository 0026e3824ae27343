//! Lazy strategies: accumulators are computed when a score is asked for, from the nearest earlier position that has
//! them.

use super::{Computed, Evaluator, PlyState};
use crate::chess::{BoardChange, ByPerspective, Perspective};
use crate::features::DeltaState;

impl Evaluator<'_> {
    pub(super) fn push_ply(&mut self, change: &BoardChange) {
        self.top += 1;
        if self.plies.len() == self.top {
            self.plies.push(PlyState::empty(self.model, self.partial.is_some()));
        }
        let (earlier, rest) = self.plies.split_at_mut(self.top);
        let ply = &mut rest[0];
        ply.board.clone_from(&earlier[self.top - 1].board);
        ply.board.apply(change);
        ply.states.iter_mut().for_each(DeltaState::clear);
        ply.change = Some(*change);
        ply.computed = ByPerspective::default();
    }

    /// Computes the present accumulator of a perspective, unless it is computed already.
    pub(super) fn ensure_computed(&mut self, pov: Perspective) {
        if self.plies[self.top].computed[pov] == Computed::All {
            return;
        }
        // Search back for the last computed ply. Before a change of context its sum over the stable blocks is enough.
        let needed = |context: Option<usize>| if context.is_some() { Computed::Stable } else { Computed::All };
        let mut first = self.top;
        let mut context = None;
        while self.plies[first].change.is_some() {
            let before = &self.plies[first - 1].board;
            let after = &self.plies[first].board;
            if self.set.encoder().refreshes(before, after, pov) {
                if self.partial.as_ref().is_none_or(|partial| partial.stable().refreshes(before, after, pov)) {
                    break;
                }
                context = context.or(Some(first));
            }
            first -= 1;
            if self.plies[first].computed[pov] >= needed(context) {
                return self.roll_forward(first, context, pov);
            }
        }
        // None is: begin at the first ply of the present context. What a search evaluates next is mostly below it, too.
        self.updates += 1;
        self.refresh_of(first, pov);
        self.roll_forward(first, context, pov);
    }

    /// Computes both present accumulators from those of the last ply that has both, or of the line's start, where no
    /// context changes meanwhile: the changed features of both perspectives are found at once. Returns whether it did.
    pub(super) fn steps_forward(&mut self) -> bool {
        let is = |ply: &PlyState, computed| Perspective::ALL.into_iter().all(|pov| ply.computed[pov] == computed);
        let mut first = self.top;
        while !is(&self.plies[first], Computed::All) {
            let ply = &self.plies[first];
            if !is(ply, Computed::Nothing) {
                return false;
            }
            if ply.change.is_none() {
                self.updates += 2;
                Perspective::ALL.into_iter().for_each(|pov| self.refresh_of(first, pov));
                break;
            }
            let before = &self.plies[first - 1].board;
            let refreshes = |pov| self.set.encoder().refreshes(before, &ply.board, pov);
            if Perspective::ALL.into_iter().any(refreshes) {
                return false;
            }
            first -= 1;
        }
        (first + 1..=self.top).for_each(|at| self.step_to(at));
        true
    }

    /// Computes both accumulators of a ply from those of the ply before, whose contexts are the same.
    fn step_to(&mut self, at: usize) {
        let (earlier, rest) = self.plies.split_at_mut(at);
        let before = &mut earlier[at - 1];
        let ply = &mut rest[0];
        let Some(change) = ply.change else { return };
        let model = self.model;
        let encoder = self.set.encoder();
        let back_end = self.back_end;
        if let Some(partial) = &self.partial {
            let prefetch = |features: &[u32]| model.prefetch(features);
            let states = [&mut before.states, &mut ply.states];
            partial.diff([&before.board, &ply.board], &change, states, &mut self.parts, prefetch);
            // In the order in which their rows were asked for.
            for pov in Perspective::ALL {
                let delta = &self.parts[1][pov];
                let from = &before.accumulators[pov];
                model.update_from(back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
                self.rows += delta.rows();
            }
            for pov in Perspective::ALL {
                let delta = &self.parts[0][pov];
                let from = &before.stable[pov];
                model.update_from(back_end, from, &mut ply.stable[pov], &delta.added, &delta.removed);
                self.rows += delta.rows();
            }
        } else {
            let states = [&mut before.states[0], &mut ply.states[0]];
            encoder.diff_both([&before.board, &ply.board], &change, states, &mut self.deltas);
            model.prefetch_deltas(&self.deltas);
            for pov in Perspective::ALL {
                let delta = &self.deltas[pov];
                let from = &before.accumulators[pov];
                model.update_from(back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
                self.rows += delta.rows();
            }
        }
        ply.computed = ByPerspective { white: Computed::All, black: Computed::All };
        self.updates += 2;
    }

    /// Rolls accumulators forward from ply `first`; before ply `context` only the sums over the stable blocks.
    fn roll_forward(&mut self, first: usize, context: Option<usize>, pov: Perspective) {
        self.updates += (self.top - first) as u64;
        for at in first + 1..=self.top {
            let (earlier, rest) = self.plies.split_at_mut(at);
            let before = &mut earlier[at - 1];
            let ply = &mut rest[0];
            let Some(change) = &ply.change else { continue };
            let model = self.model;
            let delta = if let Some(partial) = &self.partial {
                let prefetch = |features: &[u32]| model.prefetch(features);
                let states = [&mut before.states, &mut ply.states];
                partial.diff([&before.board, &ply.board], change, states, &mut self.parts, prefetch);
                let [stable, dependent] = self.parts.each_ref().map(|part| &part[pov]);
                let from = &before.stable[pov];
                let to = &mut ply.stable[pov];
                model.update_from(self.back_end, from, to, &stable.added, &stable.removed);
                self.rows += stable.rows();
                dependent
            } else {
                let states = [&mut before.states[0], &mut ply.states[0]];
                self.set.encoder().diff_both([&before.board, &ply.board], change, states, &mut self.deltas);
                &self.deltas[pov]
            };
            if context.is_some_and(|context| at < context) {
                ply.computed[pov] = Computed::Stable;
                continue;
            }
            if context == Some(at) {
                self.refresh_dependent_of(at, pov);
                continue;
            }
            let from = &before.accumulators[pov];
            model.update_from(self.back_end, from, &mut ply.accumulators[pov], &delta.added, &delta.removed);
            ply.computed[pov] = Computed::All;
            self.rows += delta.rows();
        }
    }
}
