//! Contexts: which placements of the kings a block tells apart.
//!
//! Two placements are one context when every assignment of the block's other variables, those of its counts included,
//! gives the same rows. [`diagram`] works out what assignments give, [`expression`] what is left of conditions. A variable
//! bound from a king can only be on squares that the king reaches on an empty board; other sources restrict nothing.

mod diagram;
mod expression;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use crate::chess::{Mirror, Perspective, Square, too_close};
use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, OWN_KING, SourceSpec,
};
use crate::features::syntax::Direction;

use super::CompiledBlock;
use super::encode::Kings;
use super::tables::{NONE, states};
use diagram::{Counted, DEAD, Diagrams, Frame, Guard, Plan, TermPlan, Variable};
use expression::Id;

/// A number for every placement of the kings; equal numbers mean that every assignment of the block's other variables
/// gives the same rows.
#[derive(Debug, Default)]
pub struct ContextTable {
    /// By own king, then enemy king (when `enemy` is read), as White sees them or as Black's turned board shows them.
    /// Empty where all are one.
    ids: Vec<u32>,
    enemy: bool,
    distinct: u32,
    bound: bool,
}

impl ContextTable {
    pub(super) fn of(spec: &BlockSpec, block: &CompiledBlock) -> ContextTable {
        let mut reader = Reader::of(spec, block);
        let (own, enemy) = (reader.reads(OWN_KING) || reader.mirrored, reader.reads(ENEMY_KING));
        if !own && !enemy {
            return ContextTable { ids: Vec::new(), enemy: false, distinct: 1, bound: false };
        }
        let enemies = if enemy { 64 } else { 1 };
        let kings = |place: u32| {
            let (own, other) = (place / enemies, place % enemies);
            let mask = spec.orientation.mask(Square::new(own), Perspective::White);
            Kings { own: own ^ mask, enemy: other ^ mask, mask }
        };
        // Boards with kings side by side are not legal, but may be asked about; they are numbered last and not counted.
        let close = |place: &u32| enemy && too_close(place / enemies, place % enemies);
        let (close, apart): (Vec<u32>, Vec<u32>) = (0..64 * enemies).partition(close);
        let number = |reader: &mut Reader<'_>, exact: bool| {
            let mut known: HashMap<Vec<i64>, u32> = HashMap::new();
            let mut ids = vec![0; 64 * enemies as usize];
            let mut distinct = 0;
            for (at, place) in apart.iter().chain(&close).enumerate() {
                let fresh = known.len() as u32;
                let id = *known.entry(reader.signature(&kings(*place), exact)?).or_insert(fresh);
                ids[*place as usize] = id;
                distinct = if at < apart.len() { distinct.max(id + 1) } else { distinct };
            }
            Some((ids, distinct))
        };
        let exact = number(&mut reader, true);
        let bound = exact.is_none();
        let (ids, distinct) = exact.or_else(|| number(&mut reader, false)).unwrap_or_default();
        ContextTable { ids, enemy, distinct, bound }.shrunk()
    }

    /// Without what makes no difference: all placements, or the enemy king's squares.
    fn shrunk(mut self) -> ContextTable {
        if self.ids.iter().all(|id| *id == self.ids[0]) {
            (self.ids, self.enemy) = (Vec::new(), false);
        } else if self.enemy && self.ids.chunks(64).all(|row| row.iter().all(|id| *id == row[0])) {
            (self.ids, self.enemy) = (self.ids.iter().step_by(64).copied().collect(), false);
        }
        self
    }

    /// Number of contexts; with the enemy king, over pairs of squares that are not adjacent.
    pub fn count(&self) -> u32 {
        self.distinct
    }

    /// Whether there may be fewer: the assignments were too many to try, and what the block reads of the kings decided.
    pub fn is_bound(&self) -> bool {
        self.bound
    }

    pub fn reads_enemy(&self) -> bool {
        self.enemy
    }

    pub fn entries(&self) -> usize {
        self.ids.len()
    }

    /// The context of two king squares on the board turned for `pov` (ranks exchanged or rotated, not mirrored).
    pub fn id(&self, own: u32, enemy: u32) -> u32 {
        match (self.ids.is_empty(), self.enemy) {
            (true, _) => 0,
            (false, false) => self.ids[own as usize],
            (false, true) => self.ids[(own << 6 | enemy) as usize],
        }
    }
}

/// What a block reads, for one placement of its kings after another.
struct Reader<'a> {
    spec: &'a BlockSpec,
    block: &'a CompiledBlock,
    mirrored: bool,
    terms: Vec<TermPlan<'a>>,
    /// By term: its condition, its guards' and its counts' with no variable bound.
    expressions: Vec<Vec<Id>>,
    diagrams: Diagrams<'a>,
    /// By mask and the squares of the kings that are sources.
    frames: HashMap<[u32; 3], u32>,
    /// By term, frame, share of the kings (where rows are compared whole) and expressions.
    known: HashMap<TermKey, (i64, u32)>,
    /// How many plans have a number.
    plans: u32,
}

/// Term, frame, share, expressions.
type TermKey = (usize, u32, u32, Vec<Id>);

impl<'a> Reader<'a> {
    fn of(spec: &'a BlockSpec, block: &'a CompiledBlock) -> Reader<'a> {
        let mirrored = spec.orientation.mirror != Mirror::None;
        let mut reader = Reader {
            spec,
            block,
            mirrored,
            terms: Vec::new(),
            expressions: Vec::new(),
            diagrams: Diagrams::new(spec.renumbering.as_deref()),
            frames: HashMap::new(),
            known: HashMap::new(),
            plans: 0,
        };
        for (at, term) in block.terms.iter().enumerate() {
            reader.expressions.push(Vec::new());
            let mut plan = reader.plan(at, &spec.binders, spec.condition.as_ref(), &spec.guards);
            let mut counts: Vec<Counted> =
                term.counts.iter().map(|count| reader.count(at, &count.spec, count.stride)).collect();
            // Which states are told apart depends on all expressions.
            reader.fill(at, &mut plan);
            counts.iter_mut().for_each(|count| reader.fill(at, &mut count.plan));
            reader.terms.push(TermPlan { plan, counts, tables: &term.tables });
        }
        reader
    }

    /// A plan without its variables' states; its expressions are added to the term's.
    fn plan(
        &mut self,
        term: usize,
        binders: &[BinderSpec],
        condition: Option<&ConditionSpec>,
        guards: &[GuardSpec],
    ) -> Plan {
        let king = |source: &SourceSpec| source.of().is_some_and(|of| of <= ENEMY_KING);
        let variable = |binder: &BinderSpec| {
            let origin = Some(binder.source).filter(king);
            Variable { slot: binder.slot, states: Vec::new(), origin }
        };
        let sideways = |source: SourceSpec| {
            !king(&source) && matches!(source, SourceSpec::Next(_, direction) if direction != Direction::North)
        };
        let number = self.plans;
        self.plans += 1;
        let condition = self.read(term, condition, &[]);
        let guards = guards.iter().map(|guard| {
            let most: Vec<u32> = guard.counts.iter().map(|count| count.max).collect();
            let condition = self.read(term, Some(&guard.condition), &most);
            Guard { condition, counts: guard.counts.iter().map(|count| self.count(term, count, 1)).collect() }
        });
        Plan {
            number,
            condition,
            guards: guards.collect(),
            end: self.expressions[term].len(),
            variables: binders.iter().map(variable).collect(),
            sideways: binders.iter().any(|binder| sideways(binder.source)),
        }
    }

    fn count(&mut self, term: usize, count: &CountSpec, stride: u32) -> Counted {
        let plan = self.plan(term, &count.binders, count.condition.as_ref(), &count.guards);
        Counted { plan, stride, max: count.max }
    }

    fn read(&mut self, term: usize, condition: Option<&ConditionSpec>, most: &[u32]) -> usize {
        let id = self.diagrams.expressions.of(condition, most);
        self.expressions[term].push(id);
        self.expressions[term].len() - 1
    }

    /// Fills in the states of a plan's variables and its guards'.
    fn fill(&self, term: usize, plan: &mut Plan) {
        for variable in &mut plan.variables {
            variable.states = self.classes(term, variable.slot, variable.origin.is_some());
        }
        let counts = plan.guards.iter_mut().flat_map(|guard| &mut guard.counts);
        counts.for_each(|count| self.fill(term, &mut count.plan));
    }

    /// Whether a king's square makes a difference to a table, a condition or a source.
    fn reads(&self, slot: usize) -> bool {
        let varies = |table: &Vec<u32>| table.windows(2).any(|pair| pair[0] != pair[1]);
        let mut sources = self.terms.iter().flat_map(TermPlan::variables).filter_map(|variable| variable.origin);
        self.block.terms.iter().any(|term| varies(&term.tables[slot]))
            || self.expressions.iter().flatten().any(|id| self.diagrams.expressions.reads(*id, slot))
            || sources.any(|source| source.of() == Some(slot))
    }

    /// One state (and its number) for each class that a term's table and conditions do not tell apart, mirrored or not.
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
                    key.push(self.diagrams.added(table, state, *mask).unwrap_or(i64::MIN));
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

    /// What the rows depend on, term by term; the same for all placements in which no term has a row. None when the
    /// diagrams take too long. Not `exact`: all that the block reads of the kings.
    fn signature(&mut self, kings: &Kings, exact: bool) -> Option<Vec<i64>> {
        const NO_ROW: i64 = -1;
        let frame = self.frame(kings);
        let mut signature = Vec::new();
        let [own, enemy] = kings.men();
        for at in 0..self.terms.len() {
            let share = self.share(at, kings);
            let mut left = self.expressions[at].clone();
            for (slot, man) in [(OWN_KING, own), (ENEMY_KING, enemy)] {
                left.iter_mut().for_each(|id| *id = self.diagrams.expressions.bind(*id, slot, man.entity()));
            }
            let reached = |variable: &Variable| variable.reach(kings) != 0;
            if share == NONE || left[0] == Id::FALSE || !self.terms[at].plan.variables.iter().all(reached) {
                signature.push(NO_ROW);
                continue;
            }
            if !exact {
                signature.extend([i64::from(share), i64::from(frame.number)]);
                signature.extend(left.iter().map(|id| i64::from(id.number())));
                continue;
            }
            let whole = self.spec.renumbering.is_some();
            let key = (at, frame.number, if whole { share } else { 0 }, left);
            let (value, number) = match self.known.get(&key) {
                Some(known) => *known,
                None => {
                    let found = self.diagrams.term(&self.terms[at], &frame, &key.3, key.2);
                    if self.diagrams.exhausted() {
                        return None;
                    }
                    *self.known.entry(key).or_insert(found)
                }
            };
            match number {
                DEAD => signature.push(NO_ROW),
                _ => signature.extend([i64::from(number), value + if whole { 0 } else { i64::from(share) }]),
            }
        }
        Some(signature)
    }

    fn share(&self, term: usize, kings: &Kings) -> u32 {
        self.block.base(&self.block.terms[term], kings)
    }

    fn frame(&mut self, kings: &Kings) -> Frame {
        let mut sources = [64; 2];
        let variables = self.terms.iter().flat_map(TermPlan::variables);
        for of in variables.filter_map(|variable| variable.origin?.of()) {
            sources[of] = kings.men()[of].square;
        }
        let fresh = self.frames.len() as u32;
        let number = *self.frames.entry([kings.mask, sources[0], sources[1]]).or_insert(fresh);
        Frame { kings: *kings, number }
    }
}
