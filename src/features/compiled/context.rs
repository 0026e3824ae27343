//! Contexts: the placements of the kings that a block distinguishes.
//!
//! Two placements are one context when every assignment of the block's other variables, including its counts'
//! variables, gives the same rows. [`diagram`] numbers the rows of all assignments, [`expression`] simplifies
//! conditions as variables are bound. A variable bound from a king is restricted to the squares that the king reaches
//! on an empty board; other sources restrict nothing.

mod diagram;
mod expression;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use crate::chess::{Mirror, Perspective, Square, too_close};
use crate::features::source::Direction;
use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, OWN_KING, SourceSpec,
};

use super::CompiledBlock;
use super::kings::Kings;
use super::tables::{NONE, states};
use diagram::{
    Assignments, BoundVariable, CountAssignments, DEAD, Diagrams, GuardAssignments, KingPlacement, TermAssignments,
};
use expression::ExpressionId;

/// A context number for every placement of the kings.
#[derive(Debug, Default)]
pub struct ContextTable {
    /// By own king, then by enemy king if `enemy` is set, for White or on Black's turned board. Empty where there is
    /// one context.
    ids: Vec<u32>,
    enemy: bool,
    distinct: u32,
    bound: bool,
}

impl ContextTable {
    pub(super) fn of(spec: &BlockSpec, block: &CompiledBlock) -> ContextTable {
        let mut signatures = KingSignatures::of(spec, block);
        let own = signatures.reads(OWN_KING) || signatures.mirrored;
        let enemy = signatures.reads(ENEMY_KING);
        if !own && !enemy {
            return ContextTable { ids: Vec::new(), enemy: false, distinct: 1, bound: false };
        }
        let enemies = if enemy { 64 } else { 1 };
        let kings = |placement: u32| {
            let own = placement / enemies;
            let other = placement % enemies;
            let mask = spec.orientation.mask(Square::new(own), Perspective::White);
            Kings { own: own ^ mask, enemy: other ^ mask, mask }
        };
        // Adjacent kings are illegal, but callers may ask about them: they are numbered last and not counted.
        let adjacent = |placement: &u32| enemy && too_close(placement / enemies, placement % enemies);
        let (adjacent, apart): (Vec<u32>, Vec<u32>) = (0..64 * enemies).partition(adjacent);
        let number = |signatures: &mut KingSignatures<'_>, exact: bool| {
            let mut known: HashMap<Vec<i64>, u32> = HashMap::new();
            let mut ids = vec![0; 64 * enemies as usize];
            let mut distinct = 0;
            for (at, placement) in apart.iter().chain(&adjacent).enumerate() {
                let fresh = known.len() as u32;
                let id = *known.entry(signatures.signature(&kings(*placement), exact)?).or_insert(fresh);
                ids[*placement as usize] = id;
                distinct = if at < apart.len() { distinct.max(id + 1) } else { distinct };
            }
            Some((ids, distinct))
        };
        let exact = number(&mut signatures, true);
        let bound = exact.is_none();
        let (ids, distinct) = exact.or_else(|| number(&mut signatures, false)).unwrap_or_default();
        ContextTable { ids, enemy, distinct, bound }.shrunk()
    }

    /// Drops the dimensions that make no difference.
    fn shrunk(mut self) -> ContextTable {
        if self.ids.iter().all(|id| *id == self.ids[0]) {
            self.ids = Vec::new();
            self.enemy = false;
        } else if self.enemy && self.ids.chunks(64).all(|enemies| enemies.iter().all(|id| *id == enemies[0])) {
            self.ids = self.ids.iter().step_by(64).copied().collect();
            self.enemy = false;
        }
        self
    }

    /// Number of contexts; with the enemy king, over pairs of squares that are not adjacent.
    pub fn count(&self) -> u32 {
        self.distinct
    }

    /// Whether [`ContextTable::count`] is an upper bound: there were too many assignments to try, so the values that
    /// the block reads of the kings decided.
    pub fn is_bound(&self) -> bool {
        self.bound
    }

    /// Whether all placements of the kings are one context, those included that no position has.
    pub fn is_constant(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether placements of one context have the own king on one square.
    pub fn fix_own_king(&self) -> bool {
        let enemies = if self.enemy { 64 } else { 1 };
        let mut squares = HashMap::new();
        let mut by_own = self.ids.chunks(enemies).enumerate();
        !self.ids.is_empty() && by_own.all(|(own, ids)| ids.iter().all(|id| *squares.entry(*id).or_insert(own) == own))
    }

    pub fn reads_enemy(&self) -> bool {
        self.enemy
    }

    /// The context of two king squares on the perspective's board (turned for Black, not mirrored).
    #[inline]
    pub fn id(&self, own: u32, enemy: u32) -> u32 {
        match (self.ids.is_empty(), self.enemy) {
            (true, _) => 0,
            (false, false) => self.ids[own as usize],
            (false, true) => self.ids[(own << 6 | enemy) as usize],
        }
    }
}

/// Signatures of king placements for one block: equal where the rows of all assignments are equal.
struct KingSignatures<'a> {
    spec: &'a BlockSpec,
    block: &'a CompiledBlock,
    mirrored: bool,
    terms: Vec<TermAssignments<'a>>,
    /// By term: the expressions of its condition, its guards and its counts, with no variable bound.
    expressions: Vec<Vec<ExpressionId>>,
    diagrams: Diagrams<'a>,
    /// Placement numbers by mask and the squares of the kings that are sources.
    placements: HashMap<[u32; 3], u32>,
    known: HashMap<SignatureKey, (i64, u32)>,
    /// How many [`Assignments`] have a number.
    numbered: u32,
}

/// Term, placement number, the kings' part of the rows (under a selection, else 0), expressions.
type SignatureKey = (usize, u32, u32, Vec<ExpressionId>);

impl<'a> KingSignatures<'a> {
    fn of(spec: &'a BlockSpec, block: &'a CompiledBlock) -> KingSignatures<'a> {
        let mirrored = spec.orientation.mirror != Mirror::None;
        let mut signatures = KingSignatures {
            spec,
            block,
            mirrored,
            terms: Vec::new(),
            expressions: Vec::new(),
            diagrams: Diagrams::new(spec.renumbering.as_deref()),
            placements: HashMap::new(),
            known: HashMap::new(),
            numbered: 0,
        };
        for (number, term) in block.terms.iter().enumerate() {
            signatures.expressions.push(Vec::new());
            let condition = spec.condition.as_ref();
            let mut assignments = signatures.assignments(number, &spec.binders, condition, &spec.guards);
            let mut counts: Vec<CountAssignments> =
                term.counts.iter().map(|count| signatures.count(number, &count.spec, count.stride)).collect();
            // The classes of states depend on all expressions.
            signatures.fill_states(number, &mut assignments);
            counts.iter_mut().for_each(|count| signatures.fill_states(number, &mut count.assignments));
            signatures.terms.push(TermAssignments { assignments, counts, tables: &term.tables });
        }
        signatures
    }

    /// Assignments without their variables' states. Adds their expressions to the term's.
    fn assignments(
        &mut self,
        term: usize,
        binders: &[BinderSpec],
        condition: Option<&ConditionSpec>,
        guards: &[GuardSpec],
    ) -> Assignments {
        let from_king = |source: &SourceSpec| source.of().is_some_and(|of| of <= ENEMY_KING);
        let variable = |binder: &BinderSpec| {
            let origin = if from_king(&binder.source) { Some(binder.source) } else { None };
            BoundVariable { slot: binder.slot, states: Vec::new(), origin }
        };
        let is_sideways = |source: SourceSpec| {
            !from_king(&source) && source.direction().is_some_and(|direction| direction != Direction::North)
        };
        let number = self.numbered;
        self.numbered += 1;
        let condition = self.add_expression(term, condition, &[]);
        let guards = guards.iter().map(|guard| {
            let maxima: Vec<u32> = guard.counts.iter().map(|count| count.max).collect();
            let condition = self.add_expression(term, Some(&guard.condition), &maxima);
            let counts = guard.counts.iter().map(|count| self.count(term, count, 1)).collect();
            GuardAssignments { condition, counts }
        });
        Assignments {
            number,
            condition,
            guards: guards.collect(),
            end: self.expressions[term].len(),
            variables: binders.iter().map(variable).collect(),
            sideways: binders.iter().any(|binder| is_sideways(binder.source)),
        }
    }

    fn count(&mut self, term: usize, count: &CountSpec, stride: u32) -> CountAssignments {
        let assignments = self.assignments(term, &count.binders, count.condition.as_ref(), &count.guards);
        CountAssignments { assignments, stride, max: count.max }
    }

    /// Adds a condition to a term's expressions and returns its index there. `maxima`: the maxima of the counts it
    /// reads.
    fn add_expression(&mut self, term: usize, condition: Option<&ConditionSpec>, maxima: &[u32]) -> usize {
        let id = self.diagrams.expressions.of(condition, maxima);
        self.expressions[term].push(id);
        self.expressions[term].len() - 1
    }

    fn fill_states(&self, term: usize, assignments: &mut Assignments) {
        for variable in &mut assignments.variables {
            variable.states = self.classes(term, variable.slot, variable.origin.is_some());
        }
        let counts = assignments.guards.iter_mut().flat_map(|guard| &mut guard.counts);
        counts.for_each(|count| self.fill_states(term, &mut count.assignments));
    }

    /// Whether a king's square makes a difference to a table, a condition or a source.
    fn reads(&self, slot: usize) -> bool {
        let varies = |table: &Vec<u32>| table.windows(2).any(|pair| pair[0] != pair[1]);
        let mut sources = self.terms.iter().flat_map(TermAssignments::variables).filter_map(|variable| variable.origin);
        self.block.terms.iter().any(|term| varies(&term.tables[slot]))
            || self.expressions.iter().flatten().any(|id| self.diagrams.expressions.reads(*id, slot))
            || sources.any(|source| source.of() == Some(slot))
    }

    /// One state and its number per class of states that the term's table and conditions treat alike, mirrored or not.
    fn classes(&self, term: usize, slot: usize, from_king: bool) -> Vec<(usize, Entity)> {
        let properties = self.diagrams.expressions.properties(&self.expressions[term], slot);
        let table = &self.block.terms[term].tables[slot];
        let masks: &[u32] = if self.mirrored { &[0, 7] } else { &[0] };
        let mut known: HashSet<Vec<i64>> = HashSet::new();
        let mut classes = Vec::new();
        for (state, entity) in states(slot, self.spec.variables[slot]).enumerate() {
            let Some(entity) = entity else { continue };
            let mut key = Vec::with_capacity(8);
            for mask in masks {
                let seen = Entity { square: entity.square ^ mask, ..entity };
                key.extend(properties.iter().map(|property| i64::from(property.of(seen))));
                if !table.is_empty() {
                    key.push(self.diagrams.contribution(table, state, *mask).unwrap_or(i64::MIN));
                }
            }
            if from_king {
                key.push(i64::from(entity.square));
            }
            if known.insert(key) {
                classes.push((state, entity));
            }
        }
        classes
    }

    /// A description of the rows, term by term; the same for all placements in which no term has a row. `None` when the
    /// diagrams take too long. Unless `exact`, it describes the values that the block reads of the kings.
    fn signature(&mut self, kings: &Kings, exact: bool) -> Option<Vec<i64>> {
        const NO_ROW: i64 = -1;
        let placement = self.placement(kings);
        let mut signature = Vec::new();
        let [own, enemy] = kings.bindings();
        for number in 0..self.terms.len() {
            let base = self.block.base(&self.block.terms[number], kings);
            let mut remaining = self.expressions[number].clone();
            for (slot, king) in [(OWN_KING, own), (ENEMY_KING, enemy)] {
                remaining.iter_mut().for_each(|id| *id = self.diagrams.expressions.bind(*id, slot, king.entity()));
            }
            let can_be_bound = |variable: &BoundVariable| variable.reach(kings) != 0;
            let variables = &self.terms[number].assignments.variables;
            if base == NONE || remaining[0] == ExpressionId::FALSE || !variables.iter().all(can_be_bound) {
                signature.push(NO_ROW);
                continue;
            }
            if !exact {
                signature.extend([i64::from(base), i64::from(placement.number)]);
                signature.extend(remaining.iter().map(|id| i64::from(id.number())));
                continue;
            }
            // Under a selection the diagram holds complete rows, otherwise rows without the kings' part.
            let selected = self.spec.renumbering.is_some();
            let key = (number, placement.number, if selected { base } else { 0 }, remaining);
            let (value, diagram) = match self.known.get(&key) {
                Some(known) => *known,
                None => {
                    let found = self.diagrams.term(&self.terms[number], placement, &key.3, key.2);
                    if self.diagrams.exhausted() {
                        return None;
                    }
                    *self.known.entry(key).or_insert(found)
                }
            };
            match diagram {
                DEAD => signature.push(NO_ROW),
                _ => signature.extend([i64::from(diagram), value + if selected { 0 } else { i64::from(base) }]),
            }
        }
        Some(signature)
    }

    fn placement(&mut self, kings: &Kings) -> KingPlacement {
        let mut sources = [64; 2];
        let variables = self.terms.iter().flat_map(TermAssignments::variables);
        for of in variables.filter_map(|variable| variable.origin?.of()) {
            sources[of] = kings.bindings()[of].square;
        }
        let fresh = self.placements.len() as u32;
        let number = *self.placements.entry([kings.mask, sources[0], sources[1]]).or_insert(fresh);
        KingPlacement { kings: *kings, number }
    }
}
