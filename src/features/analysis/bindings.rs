//! The search for all bindings that could yield an index, over partial knowledge of the board.

use std::ops::ControlFlow;

use crate::chess::Mirror;
use crate::features::spec::{
    BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, OWN_KING, SourceSpec, VariableKind,
};

use super::budget::{self, AnalysisSteps, Budget};
use super::count_bounds::CountBounds;
use super::decode::{Constraints, DifferenceConstraint, ElementDecoder, Joint};
use super::domain::Domain;
use super::partial_board::{KING, PartialBoard};
use super::sources::source_squares;

const LEFT_HALF: u64 = 0x0f0f_0f0f_0f0f_0f0f;

/// Enumerates the bindings that could yield an index of a block; built once per block.
pub struct BindingSearch<'a> {
    pub block: &'a BlockSpec,
    decoder: ElementDecoder<'a>,
    /// By slot, after the conditions over one variable.
    domains: Vec<Domain>,
    /// Pieces that may stand on a board on which the block's conditions on the kings hold.
    pub pieces: Domain,
    /// Conditions over several variables, with the slots they read.
    conditions: Vec<(Vec<usize>, &'a ConditionSpec)>,
    /// Whether the conditions without variables hold.
    possible: bool,
    counts: Vec<CountBounds<'a>>,
    /// By slot: whether anything but the product's axes and differences reads it.
    read: Vec<bool>,
    budget: Budget,
}

/// Steps for the count bounds of a block.
const COUNT_BOUNDS: AnalysisSteps = 1 << 25;
/// Steps of decoding an index, and of each difference in it.
const DECODING: AnalysisSteps = 8;
const DIFFERENCE: AnalysisSteps = 500;
/// Bindings between two readings of the clock.
const CLOCK: AnalysisSteps = 1 << 10;

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// All bindings were visited.
    Exhausted,
    /// The visitor stopped the search.
    Stopped,
    /// The budget is spent.
    OutOfBudget,
}

impl<'a> BindingSearch<'a> {
    pub fn new(block: &'a BlockSpec, budget: Budget) -> BindingSearch<'a> {
        let half = match block.orientation.mirror {
            Mirror::None => !0,
            Mirror::KingLeft => LEFT_HALF,
            Mirror::KingRight => !LEFT_HALF,
        };
        let slots = block.variables.iter().enumerate();
        let mut domains: Vec<Domain> = slots.map(|(slot, kind)| Domain::of_slot(slot, *kind, half)).collect();
        let mut conditions = Vec::new();
        let mut possible = true;
        for condition in block.condition.iter().flat_map(ConditionSpec::conjuncts) {
            let slots = condition.slots();
            match slots[..] {
                [] => possible &= condition.holds(&|_| Entity::bare(0)),
                [slot] => domains[slot] = domains[slot].filtered(|entity| condition.holds(&|_| entity)),
                _ => conditions.push((slots, condition)),
            }
        }
        let counts = block.product.counts();
        let number = counts.len().max(1) as AnalysisSteps;
        let counts: Vec<CountBounds<'_>> = counts
            .iter()
            .map(|count| CountBounds::new(block, count, &domains, budget.steps(COUNT_BOUNDS) / number))
            .collect();
        let by_sources = block.binders.iter().filter_map(|binder| binder.source.of());
        let by_conditions = conditions.iter().flat_map(|(slots, _)| slots.iter().copied());
        let by_counts = counts.iter().flat_map(|count| count.slots.iter().copied());
        let by_guards = block.guards.iter().flat_map(GuardSpec::slots);
        let slots: Vec<usize> = by_sources.chain(by_conditions).chain(by_counts).chain(by_guards).collect();
        let restricted = |slot: usize| domains[slot] != Domain::of_slot(slot, block.variables[slot], half);
        let is_read = |slot: usize| slots.contains(&slot) || restricted(slot) || factor_reads(block, slot);
        let read = (0..block.variables.len()).map(is_read).collect();
        let decoder = ElementDecoder::new(block, &domains);
        let all_pieces = Domain::of_slot(ENEMY_KING + 1, VariableKind::Piece, !0);
        let allowed = |piece: Entity| piece.role != KING || domains[piece.color as usize].contains(piece);
        let pieces = all_pieces.filtered(allowed);
        BindingSearch { block, decoder, domains, pieces, conditions, possible, counts, read, budget }
    }

    /// Whether the time is up.
    pub fn expired(&self) -> bool {
        self.budget.expired()
    }

    /// Most steps that decoding an index takes.
    pub fn decoding_steps(&self) -> AnalysisSteps {
        DECODING + DIFFERENCE * self.block.product.differences() as AnalysisSteps
    }

    /// Steps taken so far for the bounds of the block's counts.
    pub fn count_bound_steps(&self) -> AnalysisSteps {
        self.counts.iter().map(CountBounds::spent).fold(0, AnalysisSteps::saturating_add)
    }

    /// Whether axes, conditions, sources or the factor read this variable.
    pub fn reads(&self, slot: usize) -> bool {
        self.read[slot] || self.block.product.reads(slot)
    }

    /// The constraints of an index on its bindings; `None` when the domains alone exclude it.
    pub fn constraints(&self, index: u32) -> Option<Constraints<'a>> {
        self.constraints_and_steps(index).0
    }

    /// [`BindingSearch::constraints`] with the steps taken.
    pub fn constraints_and_steps(&self, index: u32) -> (Option<Constraints<'a>>, AnalysisSteps) {
        let mut constraints = Constraints {
            domains: self.domains.clone(),
            differences: Vec::new(),
            joints: Vec::new(),
            counts: Vec::new(),
        };
        if !(self.possible && self.decoder.decode(index, &mut constraints)) {
            return (None, DECODING);
        }
        let pairs = constraints.differences.len() + constraints.joints.len();
        let steps = DECODING + DIFFERENCE * pairs as AnalysisSteps;
        let possible = constraints.narrow() && !constraints.domains.iter().any(Domain::is_empty);
        (possible.then_some(constraints), steps)
    }

    /// Steps of the reference encoder for a typical full board.
    pub fn encoding_steps(&self) -> AnalysisSteps {
        budget::block_steps(self.block)
    }

    /// Steps of the reference encoder for a board with this many pieces.
    pub fn encoding_steps_with(&self, pieces: AnalysisSteps) -> AnalysisSteps {
        budget::block_steps_with(self.block, pieces)
    }

    /// Visits every binding that no rule excludes; takes its steps from `budget`. The visitor checks the counts. Kings
    /// that nothing reads stay unbound.
    pub fn bindings(
        &self,
        constraints: &Constraints<'a>,
        budget: &mut AnalysisSteps,
        visit: &mut dyn FnMut(&PartialBoard, &[Entity]) -> ControlFlow<()>,
    ) -> SearchEnd {
        let order = self.order(constraints);
        let mut descent = Descent {
            search: self,
            constraints,
            checks: order.iter().enumerate().map(|(at, _)| self.ready(constraints, &order[..=at])).collect(),
            order,
            entities: vec![Entity::bare(0); self.block.variables.len()],
            budget,
            visit,
        };
        if !self.ready(constraints, &[]).hold(self, &descent.entities) {
            return SearchEnd::Exhausted;
        }
        match descent.descend(0, &PartialBoard::default()) {
            ControlFlow::Continue(()) => SearchEnd::Exhausted,
            ControlFlow::Break(ended) => ended,
        }
    }

    /// The variables to bind, fewest candidates first. A piece that nothing reads is left out, because every board has
    /// pieces.
    fn order(&self, constraints: &Constraints<'a>) -> Vec<usize> {
        let source = |slot: usize| {
            let binder = self.block.binders.iter().find(|binder| binder.slot == slot);
            binder.map_or(SourceSpec::Pieces, |binder| binder.source)
        };
        let is_relevant = |slot: &usize| {
            let in_difference = |d: &DifferenceConstraint<'_>| d.left.1 == *slot || d.right.1 == *slot;
            source(*slot) != SourceSpec::Pieces
                || self.read[*slot]
                || constraints.domains[*slot] != self.domains[*slot]
                || constraints.differences.iter().any(in_difference)
                || constraints.joints.iter().any(|joint| joint.slots().contains(slot))
        };
        let slots = [OWN_KING, ENEMY_KING].into_iter().chain(self.block.binders.iter().map(|binder| binder.slot));
        let mut open: Vec<usize> = slots.filter(is_relevant).collect();
        let mut order = Vec::with_capacity(open.len());
        while !open.is_empty() {
            let candidates = |slot: usize| match source(slot).of() {
                None => constraints.domains[slot].len(),
                Some(of) if order.contains(&of) => constraints.domains[slot].len().min(8),
                Some(_) => u32::MAX,
            };
            let next = (0..open.len()).min_by_key(|at| candidates(open[*at])).unwrap_or(0);
            order.push(open.remove(next));
        }
        order
    }

    /// The checks that become possible when the last slot of `bound` is bound.
    fn ready(&self, constraints: &Constraints<'a>, bound: &[usize]) -> Checks<'_, 'a> {
        let newly_bound = |slots: &[usize]| {
            slots.iter().all(|slot| bound.contains(slot)) && bound.last().is_some_and(|last| slots.contains(last))
        };
        let conditions =
            self.conditions.iter().filter(|(slots, _)| newly_bound(slots)).map(|(_, condition)| *condition);
        let differences = constraints.differences.iter().filter(|d| newly_bound(&[d.left.1, d.right.1])).copied();
        let ready = |(count, value): &(&'a CountSpec, u32)| {
            let bounds = self.counts.iter().find(|bounds| std::ptr::eq(bounds.count, *count))?;
            (bounds.slots.is_empty() && bound.is_empty() || newly_bound(&bounds.slots)).then_some((bounds, *value))
        };
        let counts = constraints.counts.iter().filter_map(ready).collect();
        let joints = constraints.joints.iter().filter(|joint| newly_bound(&joint.slots())).copied().collect();
        Checks { conditions: conditions.collect(), differences: differences.collect(), joints, counts }
    }
}

struct Checks<'s, 'a> {
    conditions: Vec<&'a ConditionSpec>,
    differences: Vec<DifferenceConstraint<'a>>,
    joints: Vec<Joint<'a>>,
    counts: Vec<(&'s CountBounds<'a>, u32)>,
}

impl Checks<'_, '_> {
    fn hold(&self, search: &BindingSearch<'_>, entities: &[Entity]) -> bool {
        self.differences.iter().all(|difference| difference.holds(entities))
            && self.joints.iter().all(|joint| joint.holds(entities))
            && self.conditions.iter().all(|condition| condition.holds(&|slot| entities[slot]))
            && self.counts.iter().all(|(bounds, value)| bounds.admits(search.block, &search.pieces, entities, *value))
    }
}

/// The state of a depth-first search.
struct Descent<'s, 'a> {
    search: &'s BindingSearch<'a>,
    constraints: &'s Constraints<'a>,
    order: Vec<usize>,
    checks: Vec<Checks<'s, 'a>>,
    entities: Vec<Entity>,
    budget: &'s mut AnalysisSteps,
    visit: &'s mut dyn FnMut(&PartialBoard, &[Entity]) -> ControlFlow<()>,
}

impl Descent<'_, '_> {
    fn descend(&mut self, depth: usize, partial: &PartialBoard) -> ControlFlow<SearchEnd> {
        let Some(slot) = self.order.get(depth).copied() else {
            if partial.impossible() {
                return ControlFlow::Continue(());
            }
            return (self.visit)(partial, &self.entities).map_break(|()| SearchEnd::Stopped);
        };
        let constraints = self.constraints;
        let domain = &constraints.domains[slot];
        let binder = self.search.block.binders.iter().find(|binder| binder.slot == slot);
        match binder.map(|binder| binder.source) {
            Some(source) if source != SourceSpec::Pieces => {
                let from = source.of().map_or(Entity::bare(0), |of| self.entities[of]);
                let piece = source.kind() == VariableKind::Piece;
                for target in source_squares(source, from) {
                    let mut after = *partial;
                    if target.apply(&mut after) {
                        for entity in domain.on_square(target.square) {
                            self.bind(depth, slot, entity, piece, &after)?;
                        }
                    }
                }
            }
            _ => {
                let known_king = if slot <= ENEMY_KING { partial.king(slot as u32) } else { None };
                for entity in domain.entities() {
                    if let Some(square) = known_king
                        && entity.square != square
                    {
                        continue;
                    }
                    self.bind(depth, slot, entity, true, partial)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn bind(
        &mut self,
        depth: usize,
        slot: usize,
        entity: Entity,
        piece: bool,
        partial: &PartialBoard,
    ) -> ControlFlow<SearchEnd> {
        match self.budget.checked_sub(1) {
            Some(left) => *self.budget = left,
            None => return ControlFlow::Break(SearchEnd::OutOfBudget),
        }
        if (*self.budget).is_multiple_of(CLOCK) && self.search.expired() {
            return ControlFlow::Break(SearchEnd::OutOfBudget);
        }
        self.entities[slot] = entity;
        if !self.checks[depth].hold(self.search, &self.entities) {
            return ControlFlow::Continue(());
        }
        let mut after = *partial;
        if piece && !after.place(entity) {
            return ControlFlow::Continue(());
        }
        self.descend(depth + 1, &after)
    }
}

/// Whether the block's factor reads this slot.
fn factor_reads(block: &BlockSpec, slot: usize) -> bool {
    block.factor.as_ref().is_some_and(|factor| factor.product.reads(slot))
}
