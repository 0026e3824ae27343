//! Every binding that could yield an index, as far as the bound pieces and squares tell: the proof that an index is
//! dead is that there is none.

use std::ops::ControlFlow;

use crate::chess::Mirror;
use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, ENEMY_KING, Entity, OWN_KING, SourceSpec, VariableKind,
};

use super::domain::Domain;
use super::index::{Difference, Goal, Reader};
use super::partial::{KING, Partial};
use super::reach::steps;

const LEFT_HALF: u64 = 0x0f0f_0f0f_0f0f_0f0f;

/// What is the same for every index of a block.
pub struct Frame<'a> {
    pub block: &'a BlockSpec,
    reader: Reader<'a>,
    /// By slot, conditions over one variable alone applied.
    domains: Vec<Domain>,
    /// What may stand on the board while the block's conditions on the kings hold.
    pub pieces: Domain,
    /// Conditions over several variables, with the slots they read.
    conditions: Vec<(Vec<usize>, &'a ConditionSpec)>,
    /// Conditions over none: false kills the block.
    possible: bool,
    /// Kings that binders follow, and kings that anything reads.
    followed: [bool; 2],
    read: [bool; 2],
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every binding was seen.
    Exhausted,
    /// `visit` had enough.
    Stopped,
    /// Too many bindings.
    OutOfBudget,
}

impl<'a> Frame<'a> {
    pub fn new(block: &'a BlockSpec) -> Frame<'a> {
        let half = match block.orientation.mirror {
            Mirror::None => !0,
            Mirror::KingLeft => LEFT_HALF,
            Mirror::KingRight => !LEFT_HALF,
        };
        let slots = block.variables.iter().enumerate();
        let mut domains: Vec<Domain> = slots.map(|(slot, kind)| Domain::of_slot(slot, *kind, half)).collect();
        let mut conditions = Vec::new();
        let mut possible = true;
        for condition in block.condition.iter().flat_map(conjuncts) {
            let slots = condition.slots();
            match slots[..] {
                [] => possible &= condition.holds(&|_| Entity::bare(0)),
                [slot] => domains[slot] = domains[slot].filtered(|entity| condition.holds(&|_| entity)),
                _ => conditions.push((slots, condition)),
            }
        }
        let unlimited = |king: usize| domains[king].len() == if king == OWN_KING { half.count_ones() } else { 64 };
        let follows = |king| block.binders.iter().any(|binder| origin(binder.source) == Some(king));
        let followed = [OWN_KING, ENEMY_KING].map(follows);
        let read = [OWN_KING, ENEMY_KING].map(|king| {
            let named = conditions.iter().any(|(slots, _)| slots.contains(&king));
            named || followed[king] || !unlimited(king) || counts_read(block, king) || factor_reads(block, king)
        });
        let reader = Reader::new(block, &domains);
        let anything = Domain::of_slot(ENEMY_KING + 1, VariableKind::Piece, !0);
        let king_allowed = |king: Entity| king.role != KING || domains[king.color as usize].contains(king);
        let pieces = anything.filtered(king_allowed);
        Frame { block, reader, domains, pieces, conditions, possible, followed, read }
    }

    /// Whether the block looks at this king, in axes, conditions or sources.
    pub fn reads(&self, king: usize) -> bool {
        self.read[king] || self.reader.reads(king)
    }

    /// What the index asks; none when the domains alone rule it out.
    pub fn goal(&self, index: u32) -> Option<Goal<'a>> {
        let mut goal = Goal { domains: self.domains.clone(), differences: Vec::new(), counts: Vec::new() };
        let readable = self.possible && self.reader.read(index, &mut goal);
        (readable && !goal.domains.iter().any(Domain::is_empty)).then_some(goal)
    }

    /// Visits every binding that contradicts nothing, at most `budget` steps long; counts are left to the visitor.
    /// Kings that nothing reads stay unbound.
    pub fn bindings(
        &self,
        goal: &Goal<'a>,
        budget: &mut u64,
        visit: &mut dyn FnMut(&Partial, &[Entity]) -> ControlFlow<()>,
    ) -> Ended {
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
        match search.descend(0, &Partial::default()) {
            ControlFlow::Continue(()) => Ended::Exhausted,
            ControlFlow::Break(ended) => ended,
        }
    }

    /// Kings first where they narrow the rest, last where they are only compared with.
    fn order(&self, goal: &Goal<'a>) -> Vec<usize> {
        let narrowed = |king: usize| goal.domains[king] != self.domains[king] || self.followed[king];
        let compared = |king: usize| {
            let in_difference = |d: &Difference<'_>| d.left.1 == king || d.right.1 == king;
            self.read[king] || goal.differences.iter().any(in_difference)
        };
        let kings = [OWN_KING, ENEMY_KING];
        let first = kings.into_iter().filter(|king| narrowed(*king));
        let last = kings.into_iter().filter(|king| !narrowed(*king) && compared(*king));
        first.chain(self.block.binders.iter().map(|binder| binder.slot)).chain(last).collect()
    }

    /// What can be checked once the last of `bound` is.
    fn ready(&self, goal: &Goal<'a>, bound: &[usize]) -> Checks<'a> {
        let new = |slots: &[usize]| {
            slots.iter().all(|slot| bound.contains(slot)) && bound.last().is_some_and(|last| slots.contains(last))
        };
        let conditions = self.conditions.iter().filter(|(slots, _)| new(slots)).map(|(_, condition)| *condition);
        let differences = goal.differences.iter().filter(|d| new(&[d.left.1, d.right.1])).copied();
        Checks { conditions: conditions.collect(), differences: differences.collect() }
    }
}

#[derive(Default)]
struct Checks<'a> {
    conditions: Vec<&'a ConditionSpec>,
    differences: Vec<Difference<'a>>,
}

struct Search<'s, 'a> {
    frame: &'s Frame<'a>,
    goal: &'s Goal<'a>,
    order: Vec<usize>,
    checks: Vec<Checks<'a>>,
    entities: Vec<Entity>,
    budget: &'s mut u64,
    visit: &'s mut dyn FnMut(&Partial, &[Entity]) -> ControlFlow<()>,
}

impl Search<'_, '_> {
    fn descend(&mut self, depth: usize, partial: &Partial) -> ControlFlow<Ended> {
        let Some(slot) = self.order.get(depth).copied() else {
            if partial.impossible() {
                return ControlFlow::Continue(());
            }
            return (self.visit)(partial, &self.entities).map_break(|()| Ended::Stopped);
        };
        let goal = self.goal;
        let domain = &goal.domains[slot];
        let binder = self.frame.block.binders.iter().find(|binder| binder.slot == slot);
        match binder.map(|binder| binder.source) {
            Some(source) if source != SourceSpec::Pieces => {
                let from = origin(source).map_or(Entity::bare(0), |of| self.entities[of]);
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
        partial: &Partial,
    ) -> ControlFlow<Ended> {
        match self.budget.checked_sub(1) {
            Some(left) => *self.budget = left,
            None => return ControlFlow::Break(Ended::OutOfBudget),
        }
        self.entities[slot] = entity;
        let entities = &self.entities;
        let checks = &self.checks[depth];
        if !checks.differences.iter().all(|difference| difference.holds(entities))
            || !checks.conditions.iter().all(|condition| condition.holds(&|slot| entities[slot]))
        {
            return ControlFlow::Continue(());
        }
        let mut after = *partial;
        if piece && !after.place(entity) {
            return ControlFlow::Continue(());
        }
        self.descend(depth + 1, &after)
    }
}

/// The variable a source starts from.
pub fn origin(source: SourceSpec) -> Option<usize> {
    match source {
        SourceSpec::Pieces => None,
        SourceSpec::Moves(of) | SourceSpec::Attacks(of) | SourceSpec::Targets(of) | SourceSpec::Next(of, _) => Some(of),
    }
}

fn conjuncts(condition: &ConditionSpec) -> Vec<&ConditionSpec> {
    match condition {
        ConditionSpec::All(of) => of.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// Whether the block's factor reads this slot.
fn factor_reads(block: &BlockSpec, slot: usize) -> bool {
    block.factor.as_ref().is_some_and(|factor| factor.product.reads(slot))
}

/// Whether some count of the block reads this slot.
fn counts_read(block: &BlockSpec, slot: usize) -> bool {
    let reads = |binders: &[BinderSpec], condition: Option<&ConditionSpec>| {
        binders.iter().any(|binder| origin(binder.source) == Some(slot))
            || condition.is_some_and(|condition| condition.slots().contains(&slot))
    };
    block.product.counts().iter().any(|count| reads(&count.binders, count.condition.as_ref()))
}
