//! What every assignment of a block's variables gives, as a decision diagram: a level a variable, a branch a state, equal
//! parts met once. Two placements of the kings give the same rows when their diagrams have one number.
//!
//! A diagram is worked out from what is left of the conditions when the variables above are bound, and remembered by it, so
//! it takes as many steps as there are different leftovers, not as there are assignments.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use shakmaty::attacks;

use crate::chess::Square;
use crate::features::compiled::encode::Kings;
use crate::features::compiled::tables::NONE;
use crate::features::compiled::view::ray;
use crate::features::spec::{DROPPED, Entity, OWN_KING, SourceSpec};

use super::expression::{Expressions, Id};

/// Steps a block's diagrams may take together: some 50 ms.
const BUDGET: u64 = 1 << 23;
/// Steps that binding a variable in an expression counts as.
const BINDING: u64 = 32;

/// A diagram in which no assignment has a row.
pub const DEAD: u32 = 0;
/// One in which all have, and nothing distinguishes them.
const LIVE: u32 = 1;

/// A bound variable.
#[derive(Debug)]
pub struct Variable {
    pub slot: usize,
    /// A state of the unmirrored board, and its number, for each class that the block can tell apart.
    pub states: Vec<(usize, Entity)>,
    /// The source, if it starts from a king: all that restricts an assignment.
    pub origin: Option<SourceSpec>,
}

/// Variables and the condition that decides about their assignments.
#[derive(Debug)]
pub struct Plan {
    /// Unlike that of the block's other plans.
    pub number: u32,
    pub variables: Vec<Variable>,
    /// Which of the term's expressions is the condition; those of the guards follow, up to `end`.
    pub condition: usize,
    pub end: usize,
    pub guards: Vec<Guard>,
    /// Whether `next` runs east or west from a piece: the other way on a mirrored board.
    pub sideways: bool,
}

/// A condition with counts in it.
#[derive(Debug)]
pub struct Guard {
    /// Which of the term's expressions it is.
    pub condition: usize,
    pub counts: Vec<Counted>,
}

/// A count of a term or of a guard.
#[derive(Debug)]
pub struct Counted {
    pub plan: Plan,
    pub stride: u32,
    pub max: u32,
}

/// A term of a block's product.
#[derive(Debug)]
pub struct TermPlan<'a> {
    pub plan: Plan,
    pub counts: Vec<Counted>,
    /// By slot.
    pub tables: &'a [Vec<u32>],
}

/// A placement of the kings as diagrams see it.
#[derive(Copy, Clone, Debug)]
pub struct Frame {
    pub kings: Kings,
    /// Equal where the mask is, and the squares of the kings that are sources.
    pub number: u32,
}

impl TermPlan<'_> {
    /// Every variable, those of counts and guards included.
    pub fn variables(&self) -> Vec<&Variable> {
        let mut all = Vec::new();
        self.plan.variables(&mut all);
        self.counts.iter().for_each(|count| count.plan.variables(&mut all));
        all
    }
}

impl Plan {
    fn variables<'a>(&'a self, all: &mut Vec<&'a Variable>) {
        all.extend(&self.variables);
        self.guards.iter().flat_map(|guard| &guard.counts).for_each(|count| count.plan.variables(all));
    }
}

impl Variable {
    /// Oriented squares it may be on, given the kings.
    pub fn reach(&self, kings: &Kings) -> u64 {
        let square = |of: usize| if of == OWN_KING { kings.own } else { kings.enemy };
        match self.origin {
            None | Some(SourceSpec::Pieces) => !0,
            Some(SourceSpec::Next(of, direction)) => ray(square(of), direction),
            Some(SourceSpec::Moves(of) | SourceSpec::Attacks(of) | SourceSpec::Targets(of)) => {
                attacks::king_attacks(Square::new(square(of))).0
            }
        }
    }
}

/// What an outer diagram depends on: plan, depth, frame, the sum so far, the expressions left.
type OuterKey = (u32, usize, u32, u32, Vec<Id>);
/// Plan, depth, frame, the expressions left.
type InnerKey = (u32, usize, u32, Vec<Id>);

/// The diagrams of one block.
#[derive(Debug)]
pub struct Diagrams<'a> {
    pub expressions: Expressions,
    /// By element of the product, where only some elements are features: rows are then those features.
    kept: Option<&'a [u32]>,
    left: u64,
    outer: HashMap<OuterKey, (i64, u32)>,
    inner: HashMap<InnerKey, u32>,
    numbers: HashMap<[u8; 32], u32>,
}

impl<'a> Diagrams<'a> {
    pub fn new(kept: Option<&'a [u32]>) -> Diagrams<'a> {
        Diagrams {
            expressions: Expressions::new(),
            kept,
            left: BUDGET,
            outer: HashMap::new(),
            inner: HashMap::new(),
            numbers: HashMap::new(),
        }
    }

    /// Whether the budget is used up: what was worked out since means nothing.
    pub fn exhausted(&self) -> bool {
        self.left == 0
    }

    /// A term's diagram: what every row has in common, and the diagram's number. `share`: what the kings contribute, where
    /// rows are compared whole; else 0.
    pub fn term(&mut self, term: &TermPlan, frame: &Frame, expressions: &[Id], share: u32) -> (i64, u32) {
        if expressions[term.plan.condition] == Id::FALSE {
            return (0, DEAD);
        }
        let (value, number) = self.outer(term, 0, frame, expressions, share);
        (value, self.turned(&term.plan, frame, number))
    }

    /// What a state adds on a mirrored board beyond what it adds on the unmirrored one; none where it has no entry. A
    /// state with an entry on the mirrored board alone adds it all, out of the way of differences, and so does every
    /// state when rows are compared whole.
    pub fn added(&self, table: &[u32], state: usize, mask: u32) -> Option<i64> {
        match (table[state], table[state ^ mask as usize]) {
            (_, NONE) => None,
            (_, seen) if self.kept.is_some() => Some(i64::from(seen)),
            (NONE, seen) => Some((1 << 40) + i64::from(seen)),
            (plain, seen) => Some(i64::from(seen) - i64::from(plain)),
        }
    }

    /// The diagram of the variables from `depth` on. What all rows have in common stands apart from it.
    fn outer(&mut self, term: &TermPlan, depth: usize, frame: &Frame, expressions: &[Id], sum: u32) -> (i64, u32) {
        let Some(variable) = term.plan.variables.get(depth) else {
            return self.row(term, frame, expressions, sum);
        };
        let key = (term.plan.number, depth, frame.number, sum, expressions.to_vec());
        if let Some(known) = self.outer.get(&key) {
            return *known;
        }
        let reach = variable.reach(&frame.kings);
        let table = &term.tables[variable.slot];
        let mut first = None;
        let mut branches = Vec::new();
        for (place, (state, entity)) in variable.states.iter().enumerate() {
            let entity = Entity { square: entity.square ^ frame.kings.mask, ..*entity };
            let Some(more) = self.added(table, *state, frame.kings.mask) else { continue };
            if reach >> entity.square & 1 == 0 {
                continue;
            }
            let bound = self.bound(expressions, 0..expressions.len(), variable.slot, entity);
            if self.exhausted() {
                return (0, DEAD);
            }
            if bound[term.plan.condition] == Id::FALSE {
                continue;
            }
            let (below, more) = if self.kept.is_some() { (sum + more as u32, 0) } else { (0, more) };
            let (value, number) = self.outer(term, depth + 1, frame, &bound, below);
            if number != DEAD {
                let value = value + more;
                let beyond = value - *first.get_or_insert(value);
                branches.extend_from_slice(&(place as u32).to_le_bytes());
                branches.extend_from_slice(&number.to_le_bytes());
                branches.extend_from_slice(&beyond.to_le_bytes());
            }
        }
        let found = first.map_or((0, DEAD), |first| (first, self.number(b'o', &branches)));
        self.outer.insert(key, found);
        found
    }

    /// An assignment's row: what its counts count, and the features it may be.
    fn row(&mut self, term: &TermPlan, frame: &Frame, expressions: &[Id], sum: u32) -> (i64, u32) {
        let mut counts = Vec::with_capacity(term.counts.len());
        for count in &term.counts {
            counts.push(self.count(count, frame, expressions));
        }
        let guards = self.guards(&term.plan, frame, expressions);
        if guards == DEAD {
            return (0, DEAD);
        }
        let Some(kept) = self.kept else {
            let plain = guards == LIVE && counts.iter().all(|count| *count == DEAD);
            return (0, if plain { LIVE } else { self.list(b'r', &[&[guards], &counts[..]].concat()) });
        };
        let mut elements = vec![sum];
        for (count, _) in term.counts.iter().zip(&counts).filter(|(_, number)| **number != DEAD) {
            let values = |element: u32| (0..=count.max).map(move |value| element + value * count.stride);
            elements = elements.into_iter().flat_map(values).collect();
            self.spend(elements.len() as u64);
        }
        match elements[..] {
            [element] => match kept[element as usize] {
                DROPPED => (0, DEAD),
                index => (i64::from(index), guards),
            },
            _ => {
                let features: Vec<u32> = elements.into_iter().map(|element| kept[element as usize]).collect();
                if features.iter().all(|feature| *feature == DROPPED) {
                    return (0, DEAD);
                }
                let features = self.list(b'f', &features);
                (0, self.list(b'k', &[&[guards, features], &counts[..]].concat()))
            }
        }
    }

    /// Which assignments a count counts.
    fn count(&mut self, count: &Counted, frame: &Frame, expressions: &[Id]) -> u32 {
        if count.max == 0 || expressions[count.plan.condition] == Id::FALSE {
            return DEAD;
        }
        let number = self.inner(&count.plan, 0, frame, expressions);
        self.turned(&count.plan, frame, number)
    }

    fn inner(&mut self, plan: &Plan, depth: usize, frame: &Frame, expressions: &[Id]) -> u32 {
        let Some(variable) = plan.variables.get(depth) else { return self.guards(plan, frame, expressions) };
        let key = (plan.number, depth, frame.number, expressions[plan.condition..plan.end].to_vec());
        if let Some(known) = self.inner.get(&key) {
            return *known;
        }
        let reach = variable.reach(&frame.kings);
        let mut branches = Vec::new();
        for (place, (_, entity)) in variable.states.iter().enumerate() {
            let entity = Entity { square: entity.square ^ frame.kings.mask, ..*entity };
            if reach >> entity.square & 1 == 0 {
                continue;
            }
            let bound = self.bound(expressions, plan.condition..plan.end, variable.slot, entity);
            if self.exhausted() {
                return DEAD;
            }
            if bound[plan.condition] == Id::FALSE {
                continue;
            }
            let number = self.inner(plan, depth + 1, frame, &bound);
            if number != DEAD {
                branches.extend_from_slice(&(place as u32).to_le_bytes());
                branches.extend_from_slice(&number.to_le_bytes());
            }
        }
        let found = if branches.is_empty() { DEAD } else { self.number(b'i', &branches) };
        self.inner.insert(key, found);
        found
    }

    /// What a plan's guards, its variables bound, depend on.
    fn guards(&mut self, plan: &Plan, frame: &Frame, expressions: &[Id]) -> u32 {
        let mut open = Vec::new();
        for guard in &plan.guards {
            match self.guard(guard, frame, expressions) {
                DEAD => return DEAD,
                LIVE => {}
                number => open.push(number),
            }
        }
        if open.is_empty() { LIVE } else { self.list(b'g', &open) }
    }

    /// For which counts a guard holds, and what these count.
    fn guard(&mut self, guard: &Guard, frame: &Frame, expressions: &[Id]) -> u32 {
        /// Combinations of counts that are tried; beyond, the condition stands for itself.
        const TRIED: usize = 1 << 12;
        let mut outcomes = vec![expressions[guard.condition]];
        let mut counts = Vec::new();
        for (number, count) in guard.counts.iter().enumerate() {
            if !outcomes.iter().any(|outcome| self.expressions.may_count(*outcome, number)) {
                continue;
            }
            let counted = self.count(count, frame, expressions);
            let most = if counted == DEAD { 0 } else { count.max };
            if counted != DEAD {
                counts.push(counted);
            }
            if outcomes.len().saturating_mul(most as usize + 1) > TRIED {
                // Not tried: other counts of it are met as they are.
                continue;
            }
            let mut known = Vec::with_capacity(outcomes.len() * (most as usize + 1));
            for outcome in outcomes {
                known.extend((0..=most).map(|value| self.expressions.count(outcome, number, value)));
            }
            self.spend(BINDING * known.len() as u64);
            outcomes = known;
        }
        if outcomes.iter().all(|outcome| *outcome == outcomes[0] && matches!(*outcome, Id::FALSE | Id::TRUE)) {
            return if outcomes[0] == Id::TRUE { LIVE } else { DEAD };
        }
        let outcomes = outcomes.into_iter().map(Id::number);
        let content: Vec<u32> = outcomes.chain([u32::MAX]).chain(counts).collect();
        self.list(b'c', &content)
    }

    /// A plan's diagram, told apart by the mirrored half where that turns a source's way.
    fn turned(&mut self, plan: &Plan, frame: &Frame, number: u32) -> u32 {
        match number != DEAD && plan.sideways {
            true => self.list(b't', &[number, frame.kings.mask]),
            false => number,
        }
    }

    /// Expressions, of which some read a variable, with that bound.
    fn bound<'b>(&mut self, all: &'b [Id], which: Range<usize>, slot: usize, entity: Entity) -> Cow<'b, [Id]> {
        self.spend(1);
        let mut bound = Cow::Borrowed(all);
        for at in which {
            if self.expressions.may_read(all[at], slot) {
                self.spend(BINDING);
                bound.to_mut()[at] = self.expressions.bind(all[at], slot, entity);
            }
        }
        bound
    }

    fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    fn list(&mut self, kind: u8, numbers: &[u32]) -> u32 {
        self.number(kind, bytemuck::cast_slice(numbers))
    }

    /// The number of a diagram with this content.
    fn number(&mut self, kind: u8, content: &[u8]) -> u32 {
        let mut hash = blake3::Hasher::new();
        hash.update(&[kind]).update(content);
        let fresh = self.numbers.len() as u32 + LIVE + 1;
        *self.numbers.entry(*hash.finalize().as_bytes()).or_insert(fresh)
    }
}
