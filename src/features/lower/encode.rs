//! Encoders: loops over the bindings of any block.
//!
//! A [`Nest`] binds the variables of a block or a count one inside the other. Conditions are decided as soon as all that
//! they read is bound; so are counts. Blocks that see the same pieces from both perspectives are encoded for both at once.

use crate::features::code::{Binary, BoardTime, Builder, Operand, Program, Register};
use crate::features::compiled::{NONE, TableTerm};
use crate::features::spec::{
    BinderSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, OWN_KING, SourceSpec, VariableKind,
};
use crate::features::syntax::Direction;

use super::conditions::Conditions;
use super::context::Context;
use super::rows::{Bound, Rows};
use super::sources::{self, BoardRegisters, SeenDirections};
use super::values::{Truth, Values};

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

/// States by code on the board as it stands.
struct AllowedStates {
    masks: [u64; 16],
    is_exact: bool,
}

impl AllowedStates {
    /// The states that any of the perspectives allows for any orientation. `is_allowed` says so for an oriented state.
    fn of(
        context: &Context<'_>,
        slot: usize,
        povs: [bool; 2],
        is_allowed: &dyn Fn(usize) -> bool,
    ) -> AllowedStates {
        let kind = context.spec.variables[slot];
        let states = if kind == VariableKind::Square { 64 } else { 1024 };
        let oriented: Vec<bool> = (0..states).map(is_allowed).collect();
        let mut seen: Vec<[u64; 16]> = Vec::new();
        for pov in (0..2).filter(|pov| povs[*pov]) {
            for turn in context.turns(pov, kind) {
                let mut masks = [0; 16];
                for state in (0..states).filter(|state| oriented[state ^ turn]) {
                    masks[state >> 6] |= 1 << (state & 63);
                }
                seen.push(masks);
            }
        }
        let mut masks = [0; 16];
        for one in &seen {
            masks.iter_mut().zip(one).for_each(|(mask, more)| *mask |= more);
        }
        AllowedStates { masks, is_exact: seen.iter().all(|one| *one == masks) }
    }

    /// Bit by code.
    fn codes(&self) -> u16 {
        (0..16).filter(|code| self.masks[*code] != 0).fold(0, |codes, code| codes | 1 << code)
    }

    /// The pieces of a board, or the squares, that are allowed; `None` if all are.
    fn candidates(&self, builder: &mut Builder, time: BoardTime, kind: VariableKind) -> Option<Register> {
        if kind == VariableKind::Square {
            return (self.masks[0] != !0).then(|| builder.constant(self.masks[0]));
        }
        if (0..16).all(|code| code & 7 > 5 || self.masks[code] == !0) {
            return None;
        }
        let mut all = builder.constant(0);
        for (code, mask) in self.masks.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            let mut pieces = builder.by_code(time, code as u64);
            if *mask != !0 {
                pieces = builder.and(pieces, *mask);
            }
            all = builder.or(all, pieces);
        }
        Some(all)
    }
}

/// Whether both perspectives find the same bindings, and so can be encoded at once.
fn are_joint(context: &Context<'_>, binders: &[&BinderSpec]) -> bool {
    binders.iter().all(|binder| match binder.source {
        SourceSpec::Pieces => true,
        SourceSpec::Next(of, direction) => {
            let seen = [0, 1].map(|pov| directions(context, pov, direction));
            of > ENEMY_KING && seen[0][0] == seen[0][1] && seen[0] == seen[1]
        }
        SourceSpec::Moves(of) | SourceSpec::Attacks(of) | SourceSpec::Targets(of) => of > ENEMY_KING,
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

/// Collects a count and those in its guards.
fn with_nested<'a>(count: &'a CountSpec, out: &mut Vec<&'a CountSpec>) {
    for guard in &count.guards {
        guard.counts.iter().for_each(|count| with_nested(count, out));
    }
    if !out.contains(&count) {
        out.push(count);
    }
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
    let binders: Vec<&BinderSpec> =
        spec.binders.iter().chain(counts.iter().flat_map(|count| &count.binders)).collect();
    let passes: &[[bool; 2]] =
        if are_joint(context, &binders) { &[[true; 2]] } else { &[[true, false], [false, true]] };
    for povs in passes {
        let nest = Nest {
            context,
            board,
            povs: *povs,
            all_conditions: all_conditions.clone(),
            counts: counts.clone(),
        };
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

    /// The counts' part of a term's rows.
    fn counted(&self, builder: &mut Builder, term: &TableTerm, scope: &Scope) -> Option<Rows> {
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
    fn counted_in_any(&self, builder: &mut Builder, number: Register, scope: &Scope) -> Option<Rows> {
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

    fn number_of(&self, count: &CountSpec) -> usize {
        self.counts.iter().position(|known| *known == count).unwrap_or(0)
    }

    fn count_of(&self, scope: &Scope, count: &CountSpec) -> [Operand; 2] {
        scope.counts[self.number_of(count)].unwrap_or([Operand::Constant(0); 2])
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
        match binder.source {
            SourceSpec::Pieces => self.board.occupied,
            SourceSpec::Moves(_) => sources::movable(builder, self.board, state, codes),
            SourceSpec::Attacks(_) => sources::attacked(builder, self.board, state, codes),
            SourceSpec::Targets(_) => {
                let squares = sources::attacked(builder, self.board, state, codes);
                builder.and(squares, self.board.occupied)
            }
            SourceSpec::Next(_, direction) => {
                let directions = directions(self.context, pov, direction);
                let square = builder.and(state, 63);
                sources::next(builder, self.board, square, self.context.orientation[pov], directions)
            }
        }
    }

    /// The state that a source starts from, and the codes that it may have.
    fn origin(&self, builder: &mut Builder, level: &Level<'a>, of: usize, pov: usize, scope: &Scope) -> (Register, u16) {
        if of <= ENEMY_KING {
            let color = if of == OWN_KING { pov } else { 1 - pov };
            let code = 5 | color << 3;
            let square = self.context.kings.map_or_else(|| builder.constant(0), |kings| kings[color]);
            return (builder.or(square, (code << 6) as u64), 1 << code);
        }
        let state = scope.bound.iter().find(|variable| variable.slot == of).and_then(|variable| variable.states[pov]);
        let codes = level.binders.iter().position(|binder| binder.slot == of).map_or(!0, |at| level.allowed[at].codes());
        (state.unwrap_or_else(|| builder.constant(0)), codes)
    }

    /// The value of a count for each perspective.
    fn count(&self, builder: &mut Builder, count: &'a CountSpec, scope: &Scope) -> [Operand; 2] {
        let conjuncts: Vec<&ConditionSpec> = count.condition.iter().flat_map(ConditionSpec::conjuncts).collect();
        let own = |binder: &BinderSpec| {
            conjuncts.iter().copied().filter(|condition| condition.slots() == [binder.slot]).collect::<Vec<_>>()
        };
        let mut conditions = conjuncts.clone();
        let mut allowed = Vec::new();
        for binder in &count.binders {
            let own = own(binder);
            let of_binder = AllowedStates::of(self.context, binder.slot, self.povs, &|state| {
                let entity = Entity { square: state as u32 & 63, role: state as u32 >> 6 & 7, color: state as u32 >> 9 };
                entity.role <= 5 && own.iter().all(|condition| condition.holds(&|_| entity))
            });
            if of_binder.is_exact {
                conditions.retain(|condition| condition.slots() != [binder.slot]);
            }
            allowed.push(of_binder);
        }
        let level = Level { binders: &count.binders, conditions, guards: &count.guards, allowed, counts: Vec::new(), is_counted: true };
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
    fn guard(&self, builder: &mut Builder, guard: &GuardSpec, scope: &Scope) -> Conditions {
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

/// Most rows that a block has in any position of 32 pieces.
pub fn capacity(context: &Context<'_>) -> usize {
    let mut bindings = 1;
    for binder in &context.spec.binders {
        bindings *= match binder.source {
            SourceSpec::Pieces => 32,
            SourceSpec::Moves(_) | SourceSpec::Attacks(_) => 27,
            SourceSpec::Targets(_) => 8,
            SourceSpec::Next(..) => 1,
        };
    }
    bindings * context.block.terms().len()
}
