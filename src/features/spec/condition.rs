//! Resolved conditions, their integer terms, and counts.

use super::{BinderSpec, Bucket, Entity, Property, SourceSpec};
use crate::features::syntax::Comparison;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountSpec {
    pub max: u32,
    pub binders: Vec<BinderSpec>,
    pub condition: Option<ConditionSpec>,
    /// As in a block.
    pub guards: Vec<GuardSpec>,
}

/// A condition over counts; [`TermSpec::Count`] is a position in `counts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardSpec {
    pub counts: Vec<CountSpec>,
    pub condition: ConditionSpec,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionSpec {
    Any(Vec<ConditionSpec>),
    All(Vec<ConditionSpec>),
    Not(Box<ConditionSpec>),
    Compare(TermSpec, Comparison, TermSpec),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermSpec {
    Number(i64),
    Axis(Property, usize),
    /// The guard's count at this position.
    Count(usize),
    Negative(Box<TermSpec>),
    Absolute(Box<TermSpec>),
    Sum(Box<TermSpec>, Box<TermSpec>),
    Difference(Box<TermSpec>, Box<TermSpec>),
}

impl CountSpec {
    /// Slots of outer variables that the sources, the condition and the guards read, ascending without repeats.
    pub fn outer_slots(&self) -> Vec<usize> {
        let origins = self.binders.iter().filter_map(|binder| binder.source.of());
        let conditions = self.condition.iter().flat_map(ConditionSpec::slots);
        let guards = self.guards.iter().flat_map(GuardSpec::slots);
        let mut slots: Vec<usize> = origins.chain(conditions).chain(guards).collect();
        slots.retain(|slot| self.binders.iter().all(|binder| binder.slot != *slot));
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    pub(super) fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        self.condition.iter().for_each(|condition| condition.buckets(out));
        self.guards.iter().for_each(|guard| guard.buckets(out));
    }
}

impl GuardSpec {
    /// Slots of outer variables that the condition or a count reads, ascending without repeats.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots = self.condition.slots();
        slots.extend(self.counts.iter().flat_map(CountSpec::outer_slots));
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The axes that the condition and the counts read, each with its slot.
    pub fn axes(&self) -> Vec<(&Property, usize)> {
        let mut axes = self.condition.axes();
        for count in &self.counts {
            axes.extend(count.condition.iter().flat_map(ConditionSpec::axes));
            axes.extend(count.guards.iter().flat_map(GuardSpec::axes));
        }
        axes
    }

    /// The sources of the counts' binders.
    pub fn sources(&self) -> Vec<SourceSpec> {
        let mut sources = Vec::new();
        for count in &self.counts {
            sources.extend(count.binders.iter().map(|binder| binder.source));
            sources.extend(count.guards.iter().flat_map(GuardSpec::sources));
        }
        sources
    }

    pub(super) fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        self.condition.buckets(out);
        self.counts.iter().for_each(|count| count.buckets(out));
    }
}

impl TermSpec {
    /// The value for these variables and counts.
    fn value(&self, entity: &impl Fn(usize) -> Entity, counts: &[u32]) -> i64 {
        match self {
            TermSpec::Number(value) => *value,
            TermSpec::Axis(property, slot) => i64::from(property.of(entity(*slot))),
            TermSpec::Count(number) => counts.get(*number).map_or(0, |count| i64::from(*count)),
            TermSpec::Negative(of) => -of.value(entity, counts),
            TermSpec::Absolute(of) => of.value(entity, counts).abs(),
            TermSpec::Sum(left, right) => left.value(entity, counts) + right.value(entity, counts),
            TermSpec::Difference(left, right) => left.value(entity, counts) - right.value(entity, counts),
        }
    }

    /// Least and greatest value when each count lies in its range.
    fn range(&self, entity: &impl Fn(usize) -> Entity, counts: &[(u32, u32)]) -> (i64, i64) {
        match self {
            TermSpec::Count(number) => {
                counts.get(*number).map_or((0, 0), |(least, most)| (i64::from(*least), i64::from(*most)))
            }
            TermSpec::Number(_) | TermSpec::Axis(..) => {
                let value = self.value(entity, &[]);
                (value, value)
            }
            TermSpec::Negative(of) => {
                let (least, most) = of.range(entity, counts);
                (-most, -least)
            }
            TermSpec::Absolute(of) => match of.range(entity, counts) {
                (least, most) if least >= 0 => (least, most),
                (least, most) if most <= 0 => (-most, -least),
                (least, most) => (0, most.max(-least)),
            },
            TermSpec::Sum(left, right) => {
                let left = left.range(entity, counts);
                let right = right.range(entity, counts);
                (left.0 + right.0, left.1 + right.1)
            }
            TermSpec::Difference(left, right) => {
                let left = left.range(entity, counts);
                let right = right.range(entity, counts);
                (left.0 - right.1, left.1 - right.0)
            }
        }
    }

    /// Collects the axes that the term reads.
    fn axes<'a>(&'a self, out: &mut Vec<(&'a Property, usize)>) {
        match self {
            TermSpec::Number(_) | TermSpec::Count(_) => {}
            TermSpec::Axis(property, slot) => out.push((property, *slot)),
            TermSpec::Negative(of) | TermSpec::Absolute(of) => of.axes(out),
            TermSpec::Sum(left, right) | TermSpec::Difference(left, right) => {
                left.axes(out);
                right.axes(out);
            }
        }
    }
}

impl ConditionSpec {
    /// Whether a condition without counts holds for these variables.
    pub fn holds(&self, entity: &impl Fn(usize) -> Entity) -> bool {
        self.holds_with(entity, &[])
    }

    /// Whether it holds for these variables and counts.
    pub fn holds_with(&self, entity: &impl Fn(usize) -> Entity, counts: &[u32]) -> bool {
        match self {
            ConditionSpec::Any(of) => of.iter().any(|condition| condition.holds_with(entity, counts)),
            ConditionSpec::All(of) => of.iter().all(|condition| condition.holds_with(entity, counts)),
            ConditionSpec::Not(of) => !of.holds_with(entity, counts),
            ConditionSpec::Compare(left, comparison, right) => {
                comparison.holds(left.value(entity, counts), right.value(entity, counts))
            }
        }
    }

    /// Whether it may hold, and whether it may fail, when each count lies in its range.
    pub fn outcomes(&self, entity: &impl Fn(usize) -> Entity, counts: &[(u32, u32)]) -> (bool, bool) {
        let each = |of: &[ConditionSpec]| of.iter().map(|of| of.outcomes(entity, counts)).collect::<Vec<_>>();
        match self {
            ConditionSpec::Any(of) => {
                let each = each(of);
                (each.iter().any(|(holds, _)| *holds), each.iter().all(|(_, fails)| *fails))
            }
            ConditionSpec::All(of) => {
                let each = each(of);
                (each.iter().all(|(holds, _)| *holds), each.iter().any(|(_, fails)| *fails))
            }
            ConditionSpec::Not(of) => {
                let (holds, fails) = of.outcomes(entity, counts);
                (fails, holds)
            }
            ConditionSpec::Compare(left, comparison, right) => {
                comparison.outcomes(left.range(entity, counts), right.range(entity, counts))
            }
        }
    }

    /// The operands of the outermost `and`s.
    pub fn conjuncts(&self) -> Vec<&ConditionSpec> {
        match self {
            ConditionSpec::All(of) => of.iter().flat_map(ConditionSpec::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// The slots that the condition reads, ascending without repeats.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.axes().into_iter().map(|(_, slot)| slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Whether it reads the role or colour of a slot.
    pub fn reads_piece(&self, slot: usize) -> bool {
        self.axes().into_iter().any(|(property, of)| of == slot && !property.of_square())
    }

    pub(super) fn buckets<'a>(&'a self, out: &mut Vec<&'a Bucket>) {
        self.axes().into_iter().for_each(|(property, _)| property.bucket(out));
    }

    /// The axes that the condition reads, each with its slot.
    pub fn axes(&self) -> Vec<(&Property, usize)> {
        match self {
            ConditionSpec::Any(of) | ConditionSpec::All(of) => of.iter().flat_map(ConditionSpec::axes).collect(),
            ConditionSpec::Not(of) => of.axes(),
            ConditionSpec::Compare(left, _, right) => {
                let mut axes = Vec::new();
                left.axes(&mut axes);
                right.axes(&mut axes);
                axes
            }
        }
    }
}
