//! Decision diagrams of the rows that all assignments of a block's variables give: one level per variable, one branch
//! per state, equal subdiagrams shared. Two placements of the kings give the same rows when their diagrams have one
//! number.
//!
//! A subdiagram is memoised by the conditions that remain once the variables above it are bound. The work therefore
//! grows with the number of different remainders, not of assignments.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use shakmaty::attacks;

use crate::chess::Square;
use crate::features::compiled::binding::ray;
use crate::features::compiled::kings::Kings;
use crate::features::compiled::tables::NONE;
use crate::features::spec::{DROPPED, Entity, OWN_KING, SourceSpec};

use super::expression::{ExpressionId, Expressions};

/// Most steps for the diagrams of a block: some 50 ms.
const BUDGET: u64 = 1 << 23;
/// Steps charged for binding a variable in an expression.
const BINDING: u64 = 32;

/// The diagram in which no assignment has a row.
pub const DEAD: u32 = 0;
/// The diagram in which all assignments have the same row.
const LIVE: u32 = 1;

/// A bound variable.
#[derive(Debug)]
pub struct BoundVariable {
    pub slot: usize,
    /// For each class of states that the block treats alike: the number of a state, and the state on the unmirrored
    /// board.
    pub states: Vec<(usize, Entity)>,
    /// The source, if it starts from a king: only such sources restrict an assignment.
    pub origin: Option<SourceSpec>,
}

/// Variables, and the condition that decides which of their assignments count.
#[derive(Debug)]
pub struct Assignments {
    /// Unique within the block.
    pub number: u32,
    pub variables: Vec<BoundVariable>,
    /// Index of the condition in the term's expressions; the guards' conditions follow, up to `end`.
    pub condition: usize,
    pub end: usize,
    pub guards: Vec<GuardAssignments>,
    /// Whether a `next` from a piece runs east or west, so that it turns round on a mirrored board.
    pub sideways: bool,
}

/// A condition with counts in it.
#[derive(Debug)]
pub struct GuardAssignments {
    /// Index in the term's expressions.
    pub condition: usize,
    pub counts: Vec<CountAssignments>,
}

/// A count of a term or of a guard.
#[derive(Debug)]
pub struct CountAssignments {
    pub assignments: Assignments,
    pub stride: u32,
    pub max: u32,
}

/// A term of a block's product.
#[derive(Debug)]
pub struct TermAssignments<'a> {
    pub assignments: Assignments,
    pub counts: Vec<CountAssignments>,
    /// By slot.
    pub tables: &'a [Vec<u32>],
}

/// A placement of the kings.
#[derive(Copy, Clone, Debug, Default)]
pub struct KingPlacement {
    pub kings: Kings,
    /// Equal for equal mask and equal squares of the kings that are sources.
    pub number: u32,
}

impl TermAssignments<'_> {
    /// Every variable, including the variables of counts and guards.
    pub fn variables(&self) -> Vec<&BoundVariable> {
        let mut all = Vec::new();
        self.assignments.add_variables(&mut all);
        self.counts.iter().for_each(|count| count.assignments.add_variables(&mut all));
        all
    }
}

impl Assignments {
    fn add_variables<'a>(&'a self, all: &mut Vec<&'a BoundVariable>) {
        all.extend(&self.variables);
        self.guards.iter().flat_map(|guard| &guard.counts).for_each(|count| count.assignments.add_variables(all));
    }
}

impl BoundVariable {
    /// The oriented squares that it can take, given the kings.
    pub fn reach(&self, kings: &Kings) -> u64 {
        let square = |of: usize| if of == OWN_KING { kings.own } else { kings.enemy };
        let Some(source) = self.origin else { return !0 };
        match (source.of(), source.direction()) {
            (None, _) => !0,
            (Some(of), Some(direction)) => ray(square(of), direction),
            (Some(of), None) => attacks::king_attacks(Square::new(square(of))).0,
        }
    }
}

/// A term's diagram depends on the number of the assignments, depth, placement, sum so far and remaining expressions.
type TermKey = (u32, usize, u32, u32, Vec<ExpressionId>);
/// A count's diagram depends on the number of the assignments, depth, placement and remaining expressions.
type CountKey = (u32, usize, u32, Vec<ExpressionId>);

/// The diagrams of one block.
#[derive(Debug)]
pub struct Diagrams<'a> {
    pub expressions: Expressions,
    /// Under a selection: the index of every element of the product, or [`DROPPED`]. Rows are then these indices.
    selection: Option<&'a [u32]>,
    /// The placement that diagrams are made for.
    placement: KingPlacement,
    /// Steps that remain of the budget.
    budget: u64,
    terms: HashMap<TermKey, (i64, u32)>,
    counts: HashMap<CountKey, u32>,
    numbers: HashMap<[u8; 32], u32>,
}

impl<'a> Diagrams<'a> {
    pub fn new(selection: Option<&'a [u32]>) -> Diagrams<'a> {
        Diagrams {
            expressions: Expressions::new(),
            selection,
            placement: KingPlacement::default(),
            budget: BUDGET,
            terms: HashMap::new(),
            counts: HashMap::new(),
            numbers: HashMap::new(),
        }
    }

    /// Whether the budget is used up; results since then are wrong.
    pub fn exhausted(&self) -> bool {
        self.budget == 0
    }

    /// A term's diagram for a placement: a value common to all rows, and the diagram's number. `base`: the kings' part
    /// of the rows under a selection, else 0.
    pub fn term(
        &mut self,
        term: &TermAssignments,
        placement: KingPlacement,
        expressions: &[ExpressionId],
        base: u32,
    ) -> (i64, u32) {
        self.placement = placement;
        if expressions[term.assignments.condition] == ExpressionId::FALSE {
            return (0, DEAD);
        }
        let (value, number) = self.term_from(term, 0, expressions, base);
        (value, self.mark_direction(&term.assignments, number))
    }

    /// The contribution of a state on a board mirrored by `mask`, less its contribution on the unmirrored board. `None`
    /// where it has no entry. Under a selection it is the full contribution; where only the mirrored board has an
    /// entry, the full contribution outside the range of differences.
    pub fn contribution(&self, table: &[u32], state: usize, mask: u32) -> Option<i64> {
        match (table[state], table[state ^ mask as usize]) {
            (_, NONE) => None,
            (_, seen) if self.selection.is_some() => Some(i64::from(seen)),
            (NONE, seen) => Some((1 << 40) + i64::from(seen)),
            (unmirrored, seen) => Some(i64::from(seen) - i64::from(unmirrored)),
        }
    }

    /// The diagram of the variables from `depth` on, with a value common to its rows.
    fn term_from(
        &mut self,
        term: &TermAssignments,
        depth: usize,
        expressions: &[ExpressionId],
        sum: u32,
    ) -> (i64, u32) {
        let Some(variable) = term.assignments.variables.get(depth) else {
            return self.row(term, expressions, sum);
        };
        let key = (term.assignments.number, depth, self.placement.number, sum, expressions.to_vec());
        if let Some(known) = self.terms.get(&key) {
            return *known;
        }
        let reach = variable.reach(&self.placement.kings);
        let table = &term.tables[variable.slot];
        let mut first = None;
        let mut branches = Vec::new();
        for (branch, (state, entity)) in variable.states.iter().enumerate() {
            let entity = Entity { square: entity.square ^ self.placement.kings.mask, ..*entity };
            let Some(contribution) = self.contribution(table, *state, self.placement.kings.mask) else { continue };
            if reach >> entity.square & 1 == 0 {
                continue;
            }
            let bound = self.bind(expressions, 0..expressions.len(), variable.slot, entity);
            if self.exhausted() {
                return (0, DEAD);
            }
            if bound[term.assignments.condition] == ExpressionId::FALSE {
                continue;
            }
            let (sum, contribution) =
                if self.selection.is_some() { (sum + contribution as u32, 0) } else { (0, contribution) };
            let (value, number) = self.term_from(term, depth + 1, &bound, sum);
            if number != DEAD {
                let value = value + contribution;
                let relative = value - *first.get_or_insert(value);
                branches.extend_from_slice(&(branch as u32).to_le_bytes());
                branches.extend_from_slice(&number.to_le_bytes());
                branches.extend_from_slice(&relative.to_le_bytes());
            }
        }
        let found = first.map_or((0, DEAD), |first| (first, self.number(b'o', &branches)));
        self.terms.insert(key, found);
        found
    }

    /// The row of one assignment: the diagrams of its counts, and the features it can be.
    fn row(&mut self, term: &TermAssignments, expressions: &[ExpressionId], sum: u32) -> (i64, u32) {
        let mut counts = Vec::with_capacity(term.counts.len());
        for count in &term.counts {
            counts.push(self.count(count, expressions));
        }
        let guards = self.guards(&term.assignments, expressions);
        if guards == DEAD {
            return (0, DEAD);
        }
        let Some(selection) = self.selection else {
            let is_live = guards == LIVE && counts.iter().all(|count| *count == DEAD);
            return (0, if is_live { LIVE } else { self.list(b'r', &[&[guards], &counts[..]].concat()) });
        };
        let mut elements = vec![sum];
        for (count, _) in term.counts.iter().zip(&counts).filter(|(_, number)| **number != DEAD) {
            let values = |element: u32| (0..=count.max).map(move |value| element + value * count.stride);
            elements = elements.into_iter().flat_map(values).collect();
            self.spend(elements.len() as u64);
        }
        match elements[..] {
            [element] => match selection[element as usize] {
                DROPPED => (0, DEAD),
                index => (i64::from(index), guards),
            },
            _ => {
                let features: Vec<u32> = elements.into_iter().map(|element| selection[element as usize]).collect();
                if features.iter().all(|feature| *feature == DROPPED) {
                    return (0, DEAD);
                }
                let features = self.list(b'f', &features);
                (0, self.list(b'k', &[&[guards, features], &counts[..]].concat()))
            }
        }
    }

    /// The diagram of the assignments that a count counts.
    fn count(&mut self, count: &CountAssignments, expressions: &[ExpressionId]) -> u32 {
        if count.max == 0 || expressions[count.assignments.condition] == ExpressionId::FALSE {
            return DEAD;
        }
        let number = self.count_from(&count.assignments, 0, expressions);
        self.mark_direction(&count.assignments, number)
    }

    /// The diagram of a count's variables from `depth` on.
    fn count_from(&mut self, assignments: &Assignments, depth: usize, expressions: &[ExpressionId]) -> u32 {
        let Some(variable) = assignments.variables.get(depth) else {
            return self.guards(assignments, expressions);
        };
        let own_expressions = assignments.condition..assignments.end;
        let key = (assignments.number, depth, self.placement.number, expressions[own_expressions.clone()].to_vec());
        if let Some(known) = self.counts.get(&key) {
            return *known;
        }
        let reach = variable.reach(&self.placement.kings);
        let mut branches = Vec::new();
        for (branch, (_, entity)) in variable.states.iter().enumerate() {
            let entity = Entity { square: entity.square ^ self.placement.kings.mask, ..*entity };
            if reach >> entity.square & 1 == 0 {
                continue;
            }
            let bound = self.bind(expressions, own_expressions.clone(), variable.slot, entity);
            if self.exhausted() {
                return DEAD;
            }
            if bound[assignments.condition] == ExpressionId::FALSE {
                continue;
            }
            let number = self.count_from(assignments, depth + 1, &bound);
            if number != DEAD {
                branches.extend_from_slice(&(branch as u32).to_le_bytes());
                branches.extend_from_slice(&number.to_le_bytes());
            }
        }
        let found = if branches.is_empty() { DEAD } else { self.number(b'i', &branches) };
        self.counts.insert(key, found);
        found
    }

    /// The diagram of all guards, the variables being bound.
    fn guards(&mut self, assignments: &Assignments, expressions: &[ExpressionId]) -> u32 {
        let mut undecided = Vec::new();
        for guard in &assignments.guards {
            match self.guard(guard, expressions) {
                DEAD => return DEAD,
                LIVE => {}
                number => undecided.push(number),
            }
        }
        if undecided.is_empty() { LIVE } else { self.list(b'g', &undecided) }
    }

    /// A guard's diagram: the combinations of counts for which the condition holds, and the counts' diagrams.
    fn guard(&mut self, guard: &GuardAssignments, expressions: &[ExpressionId]) -> u32 {
        /// Most combinations of counts to try; beyond them, the condition stands for itself.
        const MAX_COMBINATIONS: usize = 1 << 12;
        let mut outcomes = vec![expressions[guard.condition]];
        let mut counts = Vec::new();
        for (number, count) in guard.counts.iter().enumerate() {
            if !outcomes.iter().any(|outcome| self.expressions.may_count(*outcome, number)) {
                continue;
            }
            let diagram = self.count(count, expressions);
            let max = if diagram == DEAD { 0 } else { count.max };
            if diagram != DEAD {
                counts.push(diagram);
            }
            if outcomes.len().saturating_mul(max as usize + 1) > MAX_COMBINATIONS {
                // Its values stay open; the values of the other counts are still tried.
                continue;
            }
            let mut bound = Vec::with_capacity(outcomes.len() * (max as usize + 1));
            for outcome in outcomes {
                bound.extend((0..=max).map(|value| self.expressions.bind_count(outcome, number, value)));
            }
            self.spend(BINDING * bound.len() as u64);
            outcomes = bound;
        }
        let decided = |outcome: ExpressionId| matches!(outcome, ExpressionId::FALSE | ExpressionId::TRUE);
        if outcomes.iter().all(|outcome| *outcome == outcomes[0] && decided(*outcome)) {
            return if outcomes[0] == ExpressionId::TRUE { LIVE } else { DEAD };
        }
        let outcomes = outcomes.into_iter().map(ExpressionId::number);
        let content: Vec<u32> = outcomes.chain([u32::MAX]).chain(counts).collect();
        self.list(b'c', &content)
    }

    /// Adds the mirrored half to a diagram where it changes the direction of a source.
    fn mark_direction(&mut self, assignments: &Assignments, number: u32) -> u32 {
        if number != DEAD && assignments.sideways {
            self.list(b't', &[number, self.placement.kings.mask])
        } else {
            number
        }
    }

    /// Expressions with a variable bound in the expressions of the range `which` that read it.
    fn bind<'b>(
        &mut self,
        all: &'b [ExpressionId],
        which: Range<usize>,
        slot: usize,
        entity: Entity,
    ) -> Cow<'b, [ExpressionId]> {
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
        self.budget = self.budget.saturating_sub(steps);
    }

    fn list(&mut self, kind: u8, numbers: &[u32]) -> u32 {
        self.number(kind, bytemuck::cast_slice(numbers))
    }

    /// The number of the diagram with this content.
    fn number(&mut self, kind: u8, content: &[u8]) -> u32 {
        let mut hash = blake3::Hasher::new();
        hash.update(&[kind]).update(content);
        let fresh = self.numbers.len() as u32 + LIVE + 1;
        *self.numbers.entry(*hash.finalize().as_bytes()).or_insert(fresh)
    }
}
