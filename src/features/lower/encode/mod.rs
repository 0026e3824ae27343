//! Encoders: loops over the bindings of any block.
//!
//! A [`Nest`] binds the variables of a block or a count one inside the other. Conditions are decided as soon as all
//! that they read is bound; so are counts. Blocks that see the same pieces from both perspectives are encoded for both
//! at once.

mod allowed_states;
mod counts;

use crate::features::code::{BoardTime, Builder, Operand, Program, Register};
use crate::features::compiled::NONE;
use crate::features::source::Direction;
use crate::features::spec::{BinderSpec, ConditionSpec, CountSpec, ENEMY_KING, GuardSpec, OWN_KING, VariableKind};

use allowed_states::AllowedStates;
use counts::with_nested;

use super::conditions::Conditions;
use super::context::Context;
use super::rows::{Bound, Rows};
use super::sources::{self, BoardRegisters, SeenDirections};
use super::values::Values;

/// What has been bound and computed on the way into the loops.
#[derive(Clone)]
struct Scope {
    bound: Vec<Bound>,
    values: Values,
    /// By number of the count.
    counts: Vec<Option<[Operand; 2]>>,
}

/// Loops over the bindings of a block, for some perspectives.
struct Nest<'a, 'b> {
    context: &'b Context<'a>,
    board: BoardRegisters,
    povs: [bool; 2],
    /// All conditions of the block and its counts.
    all_conditions: Vec<&'a ConditionSpec>,
    /// All counts, those in others included.
    counts: Vec<&'a CountSpec>,
}

/// What is done for every binding.
type Visit<'v> = &'v mut dyn FnMut(&mut Builder, &mut Scope, Binding);

/// One binding of all variables, or several that need no loop.
struct Binding {
    conditions: Conditions,
    /// How many there are, if there may be several.
    number: Option<Register>,
}

/// The variables of a block or of a count, with what restricts them.
struct Level<'a> {
    binders: &'a [BinderSpec],
    conditions: Vec<&'a ConditionSpec>,
    guards: &'a [GuardSpec],
    /// By binder: the states that conditions or tables allow, by code, and whether no perspective allows fewer.
    allowed: Vec<AllowedStates>,
    /// Counts that the innermost part reads.
    counts: Vec<&'a CountSpec>,
    /// Whether it is enough to know how many bindings there are.
    is_counted: bool,
}

/// Whether both perspectives find the same bindings, and so can be encoded at once.
fn are_joint(context: &Context<'_>, binders: &[&BinderSpec]) -> bool {
    binders.iter().all(|binder| {
        let Some(of) = binder.source.of() else { return true };
        let is_same = match binder.source.direction() {
            None => true,
            Some(direction) => {
                let seen = [0, 1].map(|pov| directions(context, pov, direction));
                seen[0][0] == seen[0][1] && seen[0] == seen[1]
            }
        };
        of > ENEMY_KING && is_same
    })
}

/// A direction as it lies on the board, by the lowest bit of the orientation.
pub fn directions(context: &Context<'_>, pov: usize, direction: Direction) -> SeenDirections {
    let turns = context.turns(pov, VariableKind::Piece);
    [0, 1].map(|half| {
        let turn = turns.iter().find(|turn| **turn & 1 == half).unwrap_or(&turns[0]);
        super::next::seen(direction, *turn)
    })
}

/// Writes the encoder of a block.
pub fn encode(builder: &mut Builder, context: &Context<'_>) {
    let spec = context.spec;
    let board = BoardRegisters::of(builder, BoardTime::Before);
    let mut counts = Vec::new();
    for term in context.block.terms() {
        term.counts.iter().for_each(|count| with_nested(&count.spec, &mut counts));
    }
    spec.guards.iter().flat_map(|guard| &guard.counts).for_each(|count| with_nested(count, &mut counts));
    let mut all_conditions = context.joint_conditions();
    all_conditions.extend(spec.guards.iter().map(|guard| &guard.condition));
    for count in &counts {
        all_conditions.extend(count.condition.iter().flat_map(ConditionSpec::conjuncts));
        all_conditions.extend(count.guards.iter().map(|guard| &guard.condition));
    }
    let binders: Vec<&BinderSpec> = spec.binders.iter().chain(counts.iter().flat_map(|count| &count.binders)).collect();
    let passes: &[[bool; 2]] =
        if are_joint(context, &binders) { &[[true; 2]] } else { &[[true, false], [false, true]] };
    for povs in passes {
        let nest = Nest { context, board, povs: *povs, all_conditions: all_conditions.clone(), counts: counts.clone() };
        builder.scope(|builder| nest.encode(builder));
    }
}

impl<'a> Nest<'a, '_> {
    fn encode(&self, builder: &mut Builder) {
        let spec = self.context.spec;
        let terms = self.context.block.terms();
        let allowed = |binder: &BinderSpec| {
            let is_allowed = |state: usize| terms.iter().any(|term| term.tables[binder.slot][state] != NONE);
            AllowedStates::of(self.context, binder.slot, self.povs, &is_allowed)
        };
        let level = Level {
            binders: &spec.binders,
            conditions: self.context.joint_conditions(),
            guards: &spec.guards,
            allowed: spec.binders.iter().map(allowed).collect(),
            counts: terms.iter().flat_map(|term| &term.counts).map(|count| &count.spec).collect(),
            is_counted: false,
        };
        let mut scope = Scope { bound: Vec::new(), values: Values::default(), counts: vec![None; self.counts.len()] };
        scope.values.bind_kings(builder, self.context, &self.all_conditions);
        self.enter(builder, &level, &mut scope, &mut |builder, scope, binding| {
            if terms.len() > super::MOST_TERMS {
                let terms = builder.constant(terms.len() as u64);
                builder.for_range(terms, |builder, number| {
                    let counted = self.counted_in_any(builder, number, scope);
                    let rows = self.context.rows_of_any(
                        builder,
                        number,
                        &scope.bound,
                        counted,
                        (self.povs, binding.conditions),
                    );
                    self.emit(builder, rows);
                });
                return;
            }
            for (number, term) in terms.iter().enumerate() {
                let counted = self.counted(builder, term, scope);
                let rows = self.context.rows(builder, number, &scope.bound, counted, binding.conditions);
                self.emit(builder, rows);
            }
        });
    }

    fn emit(&self, builder: &mut Builder, (rows, conditions): (Rows, Conditions)) {
        rows.only(builder, self.povs).emit(builder, Program::ACTIVE, conditions);
    }

    /// Binds the variables of a level in all ways.
    fn enter(&self, builder: &mut Builder, level: &Level<'a>, scope: &mut Scope, visit: Visit<'_>) {
        let candidates: Vec<Option<Register>> = level
            .binders
            .iter()
            .zip(&level.allowed)
            .map(|(binder, allowed)| {
                allowed.candidates(builder, self.board.time, self.context.spec.variables[binder.slot])
            })
            .collect();
        self.decide(builder, level, &candidates, 0, scope, Conditions::ALWAYS, visit);
    }

    /// Whether all that a slot list names is bound once `depth` binders of a level are, and was not before.
    fn is_due(&self, level: &Level<'_>, slots: &[usize], depth: usize) -> bool {
        let last = slots.iter().filter_map(|slot| level.binders.iter().position(|binder| binder.slot == *slot));
        last.max().map_or(0, |position| position + 1) == depth
    }

    /// Computes counts and tests conditions that are due, then binds the next variable.
    #[allow(clippy::too_many_arguments, reason = "a step of a recursion")]
    fn decide(
        &self,
        builder: &mut Builder,
        level: &Level<'a>,
        candidates: &[Option<Register>],
        depth: usize,
        scope: &mut Scope,
        conditions: Conditions,
        visit: Visit<'_>,
    ) {
        let due: Vec<&ConditionSpec> = level
            .conditions
            .iter()
            .copied()
            .filter(|condition| self.is_due(level, &condition.slots(), depth))
            .collect();
        let is_same = scope.bound.iter().all(|variable| variable.states[0] == variable.states[1]);
        let hold = scope.values.conditions(builder, &due, self.povs, is_same);
        let conditions = conditions.and(builder, hold);
        let guards: Vec<&GuardSpec> =
            level.guards.iter().filter(|guard| self.is_due(level, &guard.slots(), depth)).collect();
        let of_guards = level.guards.iter().flat_map(|guard| &guard.counts);
        let counts: Vec<&CountSpec> = of_guards
            .chain(level.counts.iter().copied())
            .filter(|count| self.is_due(level, &count.outer_slots(), depth))
            .collect();
        let is_work = !guards.is_empty() || !counts.is_empty() || depth < level.binders.len();
        let test = if is_work && !due.is_empty() { self.any(builder, conditions) } else { None };
        let mut rest = |builder: &mut Builder| {
            for count in &counts {
                let number = self.number_of(count);
                if scope.counts[number].is_some() {
                    continue;
                }
                let value = self.count(builder, count, scope);
                scope.counts[number] = Some(value);
            }
            let mut conditions = conditions;
            for guard in &guards {
                let hold = self.guard(builder, guard, scope);
                conditions = conditions.and(builder, hold);
            }
            self.bind(builder, level, candidates, depth, scope, conditions, visit);
        };
        match test {
            Some(test) => builder.if_(test, |builder| rest(builder)),
            None => rest(builder),
        }
    }

    /// Whether some perspective's condition holds; `None` if one has no condition.
    fn any(&self, builder: &mut Builder, conditions: Conditions) -> Option<Register> {
        let each: Vec<Option<Register>> = (0..2).filter(|pov| self.povs[*pov]).map(|pov| conditions.0[pov]).collect();
        match each[..] {
            [Some(one)] => Some(one),
            [Some(one), Some(other)] if one == other => Some(one),
            [Some(one), Some(other)] => Some(builder.or(one, other)),
            _ => None,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a step of a recursion")]
    fn bind(
        &self,
        builder: &mut Builder,
        level: &Level<'a>,
        candidates: &[Option<Register>],
        depth: usize,
        scope: &mut Scope,
        conditions: Conditions,
        visit: Visit<'_>,
    ) {
        let Some(binder) = level.binders.get(depth) else {
            return visit(builder, scope, Binding { conditions, number: None });
        };
        let kind = self.context.spec.variables[binder.slot];
        let mut bits = self.reached(builder, level, binder, scope);
        if let Some(candidates) = candidates[depth] {
            bits = builder.and(bits, candidates);
        }
        let is_last = depth + 1 == level.binders.len();
        let is_tested = level.conditions.iter().any(|of| self.is_due(level, &of.slots(), depth + 1))
            || level.guards.iter().any(|of| self.is_due(level, &of.slots(), depth + 1));
        if level.is_counted && is_last && !is_tested {
            let number = Some(builder.count_ones(bits));
            return visit(builder, scope, Binding { conditions, number });
        }
        builder.for_bits(bits, |builder, square| {
            let state = match kind {
                VariableKind::Square => square,
                VariableKind::Piece => {
                    let code = builder.code_on(self.board.time, square);
                    let code = builder.shift_left(code, 6);
                    builder.or(code, square)
                }
            };
            let variable = Bound { slot: binder.slot, states: self.povs.map(|looks| looks.then_some(state)) };
            let mut inner = scope.clone();
            inner.bound.push(variable);
            inner.values.bind(builder, self.context, &variable, &self.all_conditions);
            self.decide(builder, level, candidates, depth + 1, &mut inner, conditions, visit);
        });
    }

    /// The squares that a binder's source reaches; occupied ones for pieces.
    fn reached(&self, builder: &mut Builder, level: &Level<'a>, binder: &BinderSpec, scope: &Scope) -> Register {
        let Some(of) = binder.source.of() else { return self.board.occupied };
        let pov = usize::from(!self.povs[0]);
        let (state, codes) = self.origin(builder, level, of, pov, scope);
        let seen = binder.source.direction().map(|direction| directions(self.context, pov, direction));
        let orientation = self.context.orientation[pov];
        sources::reached(builder, self.board, binder.source, (state, codes), orientation, seen)
    }

    /// The state that a source starts from, and the codes that it may have.
    fn origin(
        &self,
        builder: &mut Builder,
        level: &Level<'a>,
        of: usize,
        pov: usize,
        scope: &Scope,
    ) -> (Register, u16) {
        if of <= ENEMY_KING {
            let color = if of == OWN_KING { pov } else { 1 - pov };
            let code = 5 | color << 3;
            let square = self.context.kings.map_or_else(|| builder.constant(0), |kings| kings[color]);
            return (builder.or(square, (code << 6) as u64), 1 << code);
        }
        let state = scope.bound.iter().find(|variable| variable.slot == of).and_then(|variable| variable.states[pov]);
        let codes =
            level.binders.iter().position(|binder| binder.slot == of).map_or(!0, |at| level.allowed[at].codes());
        (state.unwrap_or_else(|| builder.constant(0)), codes)
    }
}

/// Most rows that a block has in any position of 32 pieces.
pub fn capacity(context: &Context<'_>) -> usize {
    let bindings: usize = context.spec.binders.iter().map(|binder| binder.source.most_values()).product();
    bindings * context.block.terms().len()
}
