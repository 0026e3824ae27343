//! Counts, as parts of rows and in conditions.

use crate::features::code::{Binary, Builder, Operand, Register};
use crate::features::compiled::TableTerm;
use crate::features::lower::conditions::Conditions;
use crate::features::lower::rows::Rows;
use crate::features::lower::values::Truth;
use crate::features::spec::{BinderSpec, ConditionSpec, CountSpec, Entity, GuardSpec};

use super::allowed_states::AllowedStates;
use super::{BinderLevel, Nest, Scope};

/// Collects a count and those in its guards.
pub(super) fn with_nested<'a>(count: &'a CountSpec, out: &mut Vec<&'a CountSpec>) {
    for guard in &count.guards {
        guard.counts.iter().for_each(|count| with_nested(count, out));
    }
    if !out.contains(&count) {
        out.push(count);
    }
}

impl<'a> Nest<'a, '_> {
    /// The counts' part of a term's rows.
    pub(super) fn counted(&self, builder: &mut Builder, term: &TableTerm, scope: &Scope) -> Option<Rows> {
        let mut sums = [None; 2];
        for count in &term.counts {
            let values = self.count_of(scope, &count.spec);
            for pov in (0..2).filter(|pov| self.povs[*pov]) {
                let value = match values[pov] {
                    Operand::Register(value) => builder.binary(Binary::Multiply, value, u64::from(count.stride)),
                    Operand::Constant(value) => builder.constant(value * u64::from(count.stride)),
                };
                sums[pov] = Some(match sums[pov] {
                    None => value,
                    Some(sum) => builder.add(sum, value),
                });
            }
        }
        (!term.counts.is_empty()).then_some(Rows::Each(sums))
    }

    /// The counts' part of the rows of a term whose number is known at run time only.
    pub(super) fn counted_in_any(&self, builder: &mut Builder, number: Register, scope: &Scope) -> Option<Rows> {
        let terms = self.context.block.terms();
        let mut sums = [None; 2];
        for (at, count) in self.counts.iter().enumerate() {
            let stride = |term: &TableTerm| {
                let own = term.counts.iter().filter(|own| own.spec == **count);
                own.map(|own| own.stride).sum::<u32>()
            };
            let strides: Vec<u32> = terms.iter().map(stride).collect();
            let Some(values) = scope.counts[at].filter(|_| strides.iter().any(|stride| *stride != 0)) else { continue };
            let memory = builder.words(strides);
            let stride = builder.load(memory, number);
            for pov in (0..2).filter(|pov| self.povs[*pov]) {
                let value = builder.binary(Binary::Multiply, stride, values[pov]);
                sums[pov] = Some(match sums[pov] {
                    None => value,
                    Some(sum) => builder.add(sum, value),
                });
            }
        }
        sums.iter().any(Option::is_some).then_some(Rows::Each(sums))
    }

    pub(super) fn number_of(&self, count: &CountSpec) -> usize {
        self.counts.iter().position(|known| *known == count).unwrap_or(0)
    }

    fn count_of(&self, scope: &Scope, count: &CountSpec) -> [Operand; 2] {
        scope.counts[self.number_of(count)].unwrap_or([Operand::Constant(0); 2])
    }

    /// The value of a count for each perspective.
    pub(super) fn count(&self, builder: &mut Builder, count: &'a CountSpec, scope: &Scope) -> [Operand; 2] {
        let conjuncts: Vec<&ConditionSpec> = count.condition.iter().flat_map(ConditionSpec::conjuncts).collect();
        let own = |binder: &BinderSpec| {
            conjuncts.iter().copied().filter(|condition| condition.slots() == [binder.slot]).collect::<Vec<_>>()
        };
        let mut conditions = conjuncts.clone();
        let mut allowed = Vec::new();
        for binder in &count.binders {
            let own = own(binder);
            let of_binder = AllowedStates::of(self.context, binder.slot, self.povs, &|state| {
                let entity =
                    Entity { square: state as u32 & 63, role: state as u32 >> 6 & 7, color: state as u32 >> 9 };
                entity.role <= 5 && own.iter().all(|condition| condition.holds(&|_| entity))
            });
            if of_binder.is_exact {
                conditions.retain(|condition| condition.slots() != [binder.slot]);
            }
            allowed.push(of_binder);
        }
        let level = BinderLevel {
            binders: &count.binders,
            conditions,
            guards: &count.guards,
            allowed,
            counts: Vec::new(),
            is_counted: true,
        };
        let numbers = [0, 1].map(|_| builder.constant(0));
        let mut inner = scope.clone();
        self.enter(builder, &level, &mut inner, &mut |builder, _, binding| {
            for pov in (0..2).filter(|pov| self.povs[*pov]) {
                let number: Operand = match (binding.number, binding.conditions.0[pov]) {
                    (None, None) => 1.into(),
                    (None, Some(condition)) => condition.into(),
                    (Some(number), None) => number.into(),
                    (Some(number), Some(condition)) => builder.binary(Binary::Multiply, number, condition).into(),
                };
                builder.change(numbers[pov], Binary::Add, number);
            }
        });
        numbers.map(|number| {
            let is_less = builder.binary(Binary::Less, number, u64::from(count.max));
            builder.select(is_less, number, u64::from(count.max)).into()
        })
    }

    /// Whether a guard holds.
    pub(super) fn guard(&self, builder: &mut Builder, guard: &GuardSpec, scope: &Scope) -> Conditions {
        let mut hold = Conditions::ALWAYS;
        for pov in (0..2).filter(|pov| self.povs[*pov]) {
            let counts: Vec<Operand> = guard.counts.iter().map(|count| self.count_of(scope, count)[pov]).collect();
            hold.0[pov] = match scope.values.truth(builder, &guard.condition, pov, &counts) {
                Truth::Known(true) => None,
                Truth::Known(false) => Some(builder.constant(0)),
                Truth::Depends(register) => Some(register),
            };
        }
        hold
    }
}
