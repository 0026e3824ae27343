//! Every binding that could yield an index, as far as the bound pieces and squares tell: the proof that an index is
//! dead is that there is none.

use std::ops::ControlFlow;

use crate::chess::Mirror;
use crate::features::FeatureSet;
use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, OWN_KING, SourceSpec, VariableKind,
};

use super::budget::{Budget, Steps};
use super::count_bounds::CountBounds;
use super::decode::{Constraints, Decoder, Difference};
use super::domain::Domain;
use super::partial_board::{KING, PartialBoard};
use super::sources::steps;

const LEFT_HALF: u64 = 0x0f0f_0f0f_0f0f_0f0f;

/// What is the same for every index of a block.
pub struct BindingSearch<'a> {
    pub block: &'a BlockSpec,
    reader: Decoder<'a>,
    /// By slot, conditions over one variable alone applied.
    domains: Vec<Domain>,
    /// What may stand on the board while the block's conditions on the kings hold.
    pub pieces: Domain,
    /// Conditions over several variables, with the slots they read.
    conditions: Vec<(Vec<usize>, &'a ConditionSpec)>,
    /// Conditions over none: false kills the block.
    possible: bool,
    counts: Vec<CountBounds<'a>>,
    /// By slot: whether anything but the product's axes and differences reads it.
    read: Vec<bool>,
    budget: Budget,
}

/// What a block's counts may take to be looked at in advance.
const OUTLOOKS: Steps = 1 << 25;
/// What reading an index backwards takes, and what each difference in it adds.
const GOAL: Steps = 8;
const DIFFERENCE: Steps = 500;
/// Bindings between two looks at the clock.
const CLOCK: Steps = 1 << 10;

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// Every binding was seen.
    Exhausted,
    /// `visit` had enough.
    Stopped,
    /// Too many bindings.
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
        let number = counts.len().max(1) as Steps;
        let counts: Vec<CountBounds<'_>> = counts
            .iter()
            .map(|count| CountBounds::new(block, count, &domains, budget.steps(OUTLOOKS) / number))
            .collect();
        let followed = block.binders.iter().filter_map(|binder| binder.source.of());
        let named = conditions.iter().flat_map(|(slots, _)| slots).chain(counts.iter().flat_map(|count| &count.slots));
        let guarded = block.guards.iter().flat_map(GuardSpec::slots);
        let named: Vec<usize> = followed.chain(named.copied()).chain(guarded).collect();
        let limited = |slot: usize| domains[slot] != Domain::of_slot(slot, block.variables[slot], half);
        let anyhow = |slot: usize| named.contains(&slot) || limited(slot) || factor_reads(block, slot);
        let read = (0..block.variables.len()).map(anyhow).collect();
        let reader = Decoder::new(block, &domains);
        let anything = Domain::of_slot(ENEMY_KING + 1, VariableKind::Piece, !0);
        let king_allowed = |king: Entity| king.role != KING || domains[king.color as usize].contains(king);
        let pieces = anything.filtered(king_allowed);
        BindingSearch { block, reader, domains, pieces, conditions, possible, counts, read, budget }
    }

    /// Whether the time is over.
    pub fn expired(&self) -> bool {
        self.budget.expired()
    }

    /// What reading an index backwards takes at most.
    pub fn goal_steps(&self) -> Steps {
        GOAL + DIFFERENCE * self.block.product.differences() as Steps
    }

    /// What looking at the block's counts in advance has taken so far.
    pub fn outlook_steps(&self) -> Steps {
        self.counts.iter().map(CountBounds::spent).fold(0, Steps::saturating_add)
    }

    /// Whether the block looks at this king, in axes, conditions or sources.
    pub fn reads(&self, king: usize) -> bool {
        self.read[king] || self.block.product.reads(king)
    }

    /// What the index asks; none when the domains alone rule it out.
    pub fn goal(&self, index: u32) -> Option<Constraints<'a>> {
        self.weighed_goal(index).0
    }

    /// The same, with the steps it took.
    pub fn weighed_goal(&self, index: u32) -> (Option<Constraints<'a>>, Steps) {
        let mut goal = Constraints { domains: self.domains.clone(), differences: Vec::new(), counts: Vec::new() };
        if !(self.possible && self.reader.read(index, &mut goal)) {
            return (None, GOAL);
        }
        let steps = GOAL + DIFFERENCE * goal.differences.len() as Steps;
        let possible = goal.narrow() && !goal.domains.iter().any(Domain::is_empty);
        (possible.then_some(goal), steps)
    }

    /// What encoding a well filled board by the reference takes.
    pub fn encoding_steps(&self) -> Steps {
        block_steps(self.block, USUAL_PIECES)
    }

    /// The same for a board with so many pieces.
    pub fn encoding_steps_of(&self, pieces: Steps) -> Steps {
        block_steps(self.block, pieces)
    }

    /// Visits every binding that contradicts nothing, at most `budget` steps long; counts are left to the visitor.
    /// Kings that nothing reads stay unbound.
    pub fn bindings(
        &self,
        goal: &Constraints<'a>,
        budget: &mut Steps,
        visit: &mut dyn FnMut(&PartialBoard, &[Entity]) -> ControlFlow<()>,
    ) -> SearchEnd {
        let order = self.order(goal);
        let mut search = Search {
            frame: self,
            goal,
            checks: order.iter().enumerate().map(|(at, _)| self.ready(goal, &order[..=at])).collect(),
            order,
            entities: vec![Entity::bare(0); self.block.variables.len()],
            budget,
            visit,
        };
        let before = self.ready(goal, &[]);
        if !before.hold(self, &search.entities) {
            return SearchEnd::Exhausted;
        }
        match search.descend(0, &PartialBoard::default()) {
            ControlFlow::Continue(()) => SearchEnd::Exhausted,
            ControlFlow::Break(ended) => ended,
        }
    }

    /// Variables to bind, those with the fewest candidates first. Pieces that nothing reads are left out: some piece
    /// always stands somewhere.
    fn order(&self, goal: &Constraints<'a>) -> Vec<usize> {
        let source = |slot: usize| {
            let binder = self.block.binders.iter().find(|binder| binder.slot == slot);
            binder.map_or(SourceSpec::Pieces, |binder| binder.source)
        };
        let matters = |slot: &usize| {
            let in_difference = |d: &Difference<'_>| d.left.1 == *slot || d.right.1 == *slot;
            source(*slot) != SourceSpec::Pieces
                || self.read[*slot]
                || goal.domains[*slot] != self.domains[*slot]
                || goal.differences.iter().any(in_difference)
        };
        let slots = [OWN_KING, ENEMY_KING].into_iter().chain(self.block.binders.iter().map(|binder| binder.slot));
        let mut open: Vec<usize> = slots.filter(matters).collect();
        let mut order = Vec::with_capacity(open.len());
        while !open.is_empty() {
            let candidates = |slot: usize| match source(slot).of() {
                None => goal.domains[slot].len(),
                Some(of) if order.contains(&of) => goal.domains[slot].len().min(8),
                Some(_) => u32::MAX,
            };
            let next = (0..open.len()).min_by_key(|at| candidates(open[*at])).unwrap_or(0);
            order.push(open.remove(next));
        }
        order
    }

    /// What can be checked once the last of `bound` is.
    fn ready(&self, goal: &Constraints<'a>, bound: &[usize]) -> Checks<'_, 'a> {
        let new = |slots: &[usize]| {
            slots.iter().all(|slot| bound.contains(slot)) && bound.last().is_some_and(|last| slots.contains(last))
        };
        let conditions = self.conditions.iter().filter(|(slots, _)| new(slots)).map(|(_, condition)| *condition);
        let differences = goal.differences.iter().filter(|d| new(&[d.left.1, d.right.1])).copied();
        let ready = |(count, value): &(&'a CountSpec, u32)| {
            let outlook = self.counts.iter().find(|outlook| std::ptr::eq(outlook.count, *count))?;
            (outlook.slots.is_empty() && bound.is_empty() || new(&outlook.slots)).then_some((outlook, *value))
        };
        let counts = goal.counts.iter().filter_map(ready).collect();
        Checks { conditions: conditions.collect(), differences: differences.collect(), counts }
    }
}

struct Checks<'s, 'a> {
    conditions: Vec<&'a ConditionSpec>,
    differences: Vec<Difference<'a>>,
    counts: Vec<(&'s CountBounds<'a>, u32)>,
}

impl Checks<'_, '_> {
    fn hold(&self, frame: &BindingSearch<'_>, entities: &[Entity]) -> bool {
        self.differences.iter().all(|difference| difference.holds(entities))
            && self.conditions.iter().all(|condition| condition.holds(&|slot| entities[slot]))
            && self.counts.iter().all(|(outlook, value)| outlook.admits(frame.block, &frame.pieces, entities, *value))
    }
}

struct Search<'s, 'a> {
    frame: &'s BindingSearch<'a>,
    goal: &'s Constraints<'a>,
    order: Vec<usize>,
    checks: Vec<Checks<'s, 'a>>,
    entities: Vec<Entity>,
    budget: &'s mut Steps,
    visit: &'s mut dyn FnMut(&PartialBoard, &[Entity]) -> ControlFlow<()>,
}

impl Search<'_, '_> {
    fn descend(&mut self, depth: usize, partial: &PartialBoard) -> ControlFlow<SearchEnd> {
        let Some(slot) = self.order.get(depth).copied() else {
            if partial.impossible() {
                return ControlFlow::Continue(());
            }
            return (self.visit)(partial, &self.entities).map_break(|()| SearchEnd::Stopped);
        };
        let goal = self.goal;
        let domain = &goal.domains[slot];
        let binder = self.frame.block.binders.iter().find(|binder| binder.slot == slot);
        match binder.map(|binder| binder.source) {
            Some(source) if source != SourceSpec::Pieces => {
                let from = source.of().map_or(Entity::bare(0), |of| self.entities[of]);
                let piece = matches!(source, SourceSpec::Targets(_) | SourceSpec::Next(..));
                for step in steps(source, from) {
                    let mut stepped = *partial;
                    if step.apply(&mut stepped) {
                        for entity in domain.at(step.square) {
                            self.bind(depth, slot, entity, piece, &stepped)?;
                        }
                    }
                }
            }
            _ => {
                let fixed = (slot <= ENEMY_KING).then(|| partial.king(slot as u32)).flatten();
                for entity in domain.entities().filter(|entity| fixed.is_none_or(|square| entity.square == square)) {
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
        if (*self.budget).is_multiple_of(CLOCK) && self.frame.expired() {
            return ControlFlow::Break(SearchEnd::OutOfBudget);
        }
        self.entities[slot] = entity;
        if !self.checks[depth].hold(self.frame, &self.entities) {
            return ControlFlow::Continue(());
        }
        let mut after = *partial;
        if piece && !after.place(entity) {
            return ControlFlow::Continue(());
        }
        self.descend(depth + 1, &after)
    }
}

/// What encoding a well filled board takes, all blocks together.
pub fn encoding_steps(set: &FeatureSet) -> Steps {
    set.blocks().iter().map(|block| block_steps(block.spec(), USUAL_PIECES)).fold(0, Steps::saturating_add)
}

/// Pieces on a well filled board.
const USUAL_PIECES: Steps = 24;

/// What encoding a board with so many pieces by the reference takes.
fn block_steps(block: &BlockSpec, pieces: Steps) -> Steps {
    let counting = |count| counting_steps(count, pieces);
    let each = block.counts().into_iter().map(counting).fold(0, Steps::saturating_add);
    let each = each.saturating_mul(2).saturating_add(10);
    usual_bindings(&block.binders, pieces).saturating_mul(each).saturating_add(100).min(1 << 40)
}

/// What a count takes, counts inside it included.
fn counting_steps(count: &CountSpec, pieces: Steps) -> Steps {
    let inner = count.guards.iter().flat_map(|guard| &guard.counts).map(|count| counting_steps(count, pieces));
    usual_bindings(&count.binders, pieces).saturating_mul(inner.fold(1, Steps::saturating_add))
}

fn usual_bindings(binders: &[BinderSpec], pieces: Steps) -> Steps {
    binders.iter().map(|binder| usual(binder.source, pieces)).fold(1, Steps::saturating_mul)
}

/// What a source yields on a board with so many pieces, each with the work of finding it.
fn usual(source: SourceSpec, pieces: Steps) -> Steps {
    match source {
        SourceSpec::Pieces => pieces,
        SourceSpec::Moves(_) | SourceSpec::Attacks(_) => 6,
        SourceSpec::Targets(_) | SourceSpec::Next(..) => 3,
    }
}

/// Whether the block's factor reads this slot.
fn factor_reads(block: &BlockSpec, slot: usize) -> bool {
    block.factor.as_ref().is_some_and(|factor| factor.product.reads(slot))
}
