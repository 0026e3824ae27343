//! Blocks of any form: nested loops over the bindings, as the language defines them.

use std::ops::Range;

use super::count::popcount_of;
use super::dialect::{FunctionParameter, NumberType, is_used};
use super::expression::{Logic, Step};
use super::scope::{GeneratedVariable, SourceScope};
use super::{Generator, Repeats};
use crate::export::Language;
use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, Entity, FactorKind, GuardSpec, ProductSpec, SourceSpec, VariableKind,
};

/// Conditions, each with the number of binders after which its variables are bound.
type PlacedConditions = Vec<(usize, Logic)>;

/// Binders, and the restrictions of their variables.
pub(super) struct RestrictedBinders<'a> {
    pub binders: &'a [BinderSpec],
    pub condition: Option<&'a ConditionSpec>,
    pub guards: &'a [GuardSpec],
    pub product: Option<&'a ProductSpec>,
}

impl Generator<'_> {
    /// The function `name(view, out)`, which appends the block's indices.
    pub(super) fn generic_block(&mut self, name: &str, spec: &BlockSpec) -> Vec<String> {
        let language = self.language;
        self.begin_function();
        let mut scope = SourceScope::with_kings(spec.variables.len());
        let wide = spec.product.size >= 1 << 31;
        let repeats = self.repeats(spec);
        let select = spec.renumbering.as_ref().map(|table| self.selection(table));
        let bindings = RestrictedBinders {
            binders: &spec.binders,
            condition: spec.condition.as_ref(),
            guards: &spec.guards,
            product: Some(&spec.product),
        };
        let body = self.bindings(&mut scope, &bindings, &mut |generator, scope| {
            let alternatives = generator.product(scope, &spec.product);
            let mut lines = Vec::new();
            for alternative in &alternatives {
                let element = generator.element(alternative, wide);
                let element = if wide { element } else { language.cast(&element, NumberType::U32) };
                let push = generator.push(&element, spec.offset, select.as_deref(), repeats);
                lines.extend(generator.after_steps(&alternative.steps, push, alternatives.len() > 1));
            }
            lines
        });
        let mut lines = language.doc(&spec.as_written);
        lines.push(language.head(name, &[FunctionParameter::View, FunctionParameter::Out("out")], None));
        lines.extend(self.kings_used(&body, true));
        match (repeats, language) {
            (Repeats::Kept, _) => {}
            (Repeats::Seen(words), Language::Rust) => lines.push(format!("let mut seen = [0u64; {words}];")),
            (Repeats::Seen(words), Language::C) => lines.push(format!("uint64_t seen[{words}] = {{0}};")),
            (Repeats::Sorted, _) => lines.push(language.constant("from", NumberType::U32, &language.len("out"))),
        }
        lines.extend(body);
        if repeats == Repeats::Sorted {
            lines.push(format!("{};", language.call("drop_repeats", &["out", "from"])));
        }
        lines.push("}".to_owned());
        lines
    }

    /// How often an index may come up, and how repeats are dropped.
    fn repeats(&self, spec: &BlockSpec) -> Repeats {
        const MOST_WORDS: u32 = 1024;
        let words = spec.product.size.div_ceil(64);
        match (self.may_repeat(spec), words) {
            (false, _) => Repeats::Kept,
            (true, ..=MOST_WORDS) => Repeats::Seen(words.max(1)),
            (true, _) => Repeats::Sorted,
        }
    }

    fn push(&self, element: &str, offset: u32, select: Option<&str>, repeats: Repeats) -> Vec<String> {
        let language = self.language;
        let index = |of: &str| match (offset, of.bytes().all(|byte| byte.is_ascii_digit() || byte == b'u')) {
            (0, _) => of.to_owned(),
            _ => format!("{} + {of}", language.unsigned(u64::from(offset))),
        };
        let seen = if language == Language::Rust { "&mut seen" } else { "seen" };
        let pushed = |index: &str| match repeats {
            Repeats::Kept => format!("{};", language.call("push", &["out", index])),
            Repeats::Seen(_) => format!("{};", language.call("push_once", &["out", seen, "element", index])),
            Repeats::Sorted => format!("{};", language.call("push_rare", &["out", "from", index])),
        };
        match select {
            None if matches!(repeats, Repeats::Seen(_)) => {
                vec![language.constant("element", NumberType::U32, element), pushed(&index("element"))]
            }
            None => vec![pushed(&index(element))],
            Some(select) => {
                let none = language.table("NONE");
                vec![
                    language.constant("element", NumberType::U32, element),
                    language.constant("selected", NumberType::U32, &language.call(select, &["element"])),
                    language.when(&format!("selected != {none}")),
                    pushed(&index("selected")),
                    "}".to_owned(),
                ]
            }
        }
    }

    /// The lines under an alternative's steps, in a scope of their own where other alternatives may use their names.
    fn after_steps(&self, steps: &[Step], inner: Vec<String>, has_others: bool) -> Vec<String> {
        let mut head = Vec::new();
        let mut closed = 0;
        let mut named = false;
        for step in steps {
            match step {
                Step::When(Logic::Known(true)) => {}
                Step::When(Logic::Known(false)) => return Vec::new(),
                Step::When(Logic::Text { text, .. }) => {
                    head.push(self.language.when(text));
                    closed += 1;
                }
                Step::Let(name, text) => {
                    named |= closed == 0;
                    head.push(self.language.constant(name, NumberType::I32, text));
                }
            }
        }
        let names_inside = inner.len() > 1;
        let opens = has_others && (named || (names_inside && closed == 0));
        let mut lines = if opens { vec!["{".to_owned()] } else { Vec::new() };
        lines.extend(head);
        lines.extend(inner);
        lines.extend((0..closed + usize::from(opens)).map(|_| "}".to_owned()));
        lines
    }

    /// `let k_square = …;` for the kings that the lines read.
    pub(super) fn kings_used(&self, body: &[String], has_out: bool) -> Vec<String> {
        let language = self.language;
        let mut lines = Vec::new();
        for (name, king) in [("k_square", "0"), ("e_square", "1")] {
            if is_used(name, body) {
                let square = language.entry(&language.view("kings"), &[king]);
                lines.push(language.constant(name, NumberType::I32, &square));
            }
        }
        if lines.is_empty() && !is_used("view", body) {
            lines.push(if language == Language::Rust { "let _ = view;" } else { "(void)view;" }.to_owned());
        }
        if has_out && !is_used("out", body) {
            lines.push(if language == Language::Rust { "let _ = &out;" } else { "(void)out;" }.to_owned());
        }
        lines
    }

    /// Loops over all bindings that satisfy the conditions, with the lines of `leaf` inside.
    pub(super) fn bindings(
        &mut self,
        scope: &mut SourceScope,
        bindings: &RestrictedBinders<'_>,
        leaf: &mut dyn FnMut(&mut Self, &SourceScope) -> Vec<String>,
    ) -> Vec<String> {
        self.bind(scope, bindings, 0, leaf)
    }

    fn bind(
        &mut self,
        scope: &mut SourceScope,
        bindings: &RestrictedBinders<'_>,
        depth: usize,
        leaf: &mut dyn FnMut(&mut Self, &SourceScope) -> Vec<String>,
    ) -> Vec<String> {
        let placed = self.conditions_at(scope, bindings, depth);
        if placed.iter().any(|(_, logic)| *logic == Logic::Known(false)) {
            return Vec::new();
        }
        let inner = match bindings.binders.get(depth) {
            None => leaf(self, scope),
            Some(binder) => self.bind_one(scope, bindings, depth, binder, leaf),
        };
        if inner.is_empty() {
            return inner;
        }
        let Logic::Text { text, .. } = Logic::all(placed.into_iter().map(|(_, logic)| logic).collect()) else {
            return inner;
        };
        let mut lines = vec![self.language.when(&text)];
        lines.extend(inner);
        lines.push("}".to_owned());
        lines
    }

    fn bind_one(
        &mut self,
        scope: &mut SourceScope,
        bindings: &RestrictedBinders<'_>,
        depth: usize,
        binder: &BinderSpec,
        leaf: &mut dyn FnMut(&mut Self, &SourceScope) -> Vec<String>,
    ) -> Vec<String> {
        let language = self.language;
        let letter = binder.letter.to_lowercase().to_string();
        let is_square = matches!(binder.source, SourceSpec::Moves(_) | SourceSpec::Attacks(_));
        let kind = if is_square { VariableKind::Square } else { VariableKind::Piece };
        let Some((colors, roles)) = possible_kinds(bindings, binder.slot, kind) else { return Vec::new() };
        let variable = GeneratedVariable { letter: letter.clone(), roles: roles.clone(), colors: colors.clone() };
        scope.bind(binder.slot, variable);
        let mut body = self.bind(scope, bindings, depth + 1, leaf);
        if body.is_empty() {
            return body;
        }
        let [square, role, color] = ["square", "role", "color"].map(|part| format!("{letter}_{part}"));
        let origin = |of: usize| [scope.color(of), scope.role(of), scope.square(of)];
        let call = |name: &str, of: usize| {
            let [color, role, square] = origin(of);
            language.call(name, &["view", &color, &role, &square])
        };
        let bits = match binder.source {
            SourceSpec::Pieces => {
                return self.each_piece(&square, [(&color, colors), (&role, roles)], body);
            }
            SourceSpec::Moves(of) => call("moves", of),
            SourceSpec::Attacks(of) => call("attacks", of),
            SourceSpec::Targets(of) => {
                let victims = match (colors.len(), roles.len()) {
                    (1, 1) => {
                        language.entry(&language.view("pieces"), &[&colors.start.to_string(), &roles.start.to_string()])
                    }
                    (1, _) => language.entry(&language.view("sides"), &[&colors.start.to_string()]),
                    _ => language.view("occupied"),
                };
                format!("{} & {victims}", call("attacks", of))
            }
            SourceSpec::Next(of, direction) => {
                language.call("first", &["view", &(direction as u32).to_string(), &scope.square(of)])
            }
        };
        if kind == VariableKind::Piece {
            let mut head = Vec::new();
            let met: Vec<Logic> = [(&role, &roles, 6), (&color, &colors, 2)]
                .into_iter()
                .filter_map(|(name, range, all)| self.met(name, range, all, &binder.source, &square, &body, &mut head))
                .collect();
            if let Logic::Text { text, .. } = Logic::all(met) {
                body.insert(0, language.when(&text));
                body.push("}".to_owned());
            }
            head.extend(body);
            body = head;
        }
        if let Some(counted) = popcount_of(language, &bits, &body) {
            return vec![counted];
        }
        language.each_square(&square, &bits, body)
    }

    /// Reads the role or colour of a piece met on a square, where the lines need it; its condition where the range says
    /// more than the source.
    #[allow(clippy::too_many_arguments, reason = "one step of `bind_one`")]
    fn met(
        &self,
        name: &str,
        range: &Range<u32>,
        all: u32,
        source: &SourceSpec,
        square: &str,
        body: &[String],
        head: &mut Vec<String>,
    ) -> Option<Logic> {
        let function = if all == 6 { "role_at" } else { "color_at" };
        // `Targets` has chosen these already.
        let chosen = matches!(source, SourceSpec::Targets(_)) && range.len() == 1 && (all == 2 || body.is_empty());
        let restricts = range.len() < all as usize && !chosen;
        if is_used(name, body) || restricts {
            let call = self.language.call(function, &["view", square]);
            head.push(self.language.constant(name, NumberType::I32, &call));
        }
        restricts.then(|| {
            let text = match (range.start, range.end) {
                (start, end) if end == start + 1 => format!("{name} == {start}"),
                (0, end) => format!("{name} < {end}"),
                (start, end) if end == all => format!("{name} >= {start}"),
                (start, end) => format!("{name} >= {start} && {name} < {end}"),
            };
            Logic::comparison(text)
        })
    }

    fn each_piece(
        &self,
        square: &str,
        [(color, colors), (role, roles)]: [(&String, Range<u32>); 2],
        body: Vec<String>,
    ) -> Vec<String> {
        let language = self.language;
        let index = |name: &String, range: &Range<u32>| match range.len() {
            1 => range.start.to_string(),
            _ => name.clone(),
        };
        let bits = language.entry(&language.view("pieces"), &[&index(color, &colors), &index(role, &roles)]);
        let mut lines = match popcount_of(language, &bits, &body) {
            Some(counted) => vec![counted],
            None => language.each_square(square, &bits, body),
        };
        for (name, range) in [(role, roles), (color, colors)] {
            if range.len() > 1 {
                lines = language.each_number(name, range.start, range.end, lines);
            }
        }
        lines
    }

    /// The conditions whose last variable is bound by binder `depth − 1`; before all binders the conditions of outer
    /// variables.
    fn conditions_at(
        &mut self,
        scope: &SourceScope,
        bindings: &RestrictedBinders<'_>,
        depth: usize,
    ) -> PlacedConditions {
        let after = |slots: &[usize]| {
            let bound = |slot: &usize| bindings.binders.iter().position(|binder| binder.slot == *slot);
            slots.iter().filter_map(bound).map(|at| at + 1).max().unwrap_or(0)
        };
        let mut placed = Vec::new();
        for conjunct in bindings.condition.iter().flat_map(|condition| condition.conjuncts()) {
            let slots = conjunct.slots();
            if after(&slots) != depth || self.is_implied(scope, conjunct, &slots) {
                continue;
            }
            let logic = self.condition(scope, conjunct, &[]);
            placed.push((depth, logic));
        }
        for guard in bindings.guards.iter().filter(|guard| after(&guard.slots()) == depth) {
            let counts: Vec<(String, u32)> =
                guard.counts.iter().map(|count| (self.count(scope, count), count.max)).collect();
            let logic = self.condition(scope, &guard.condition, &counts);
            placed.push((depth, logic));
        }
        placed
    }

    /// Whether the loops of the only variable that a condition reads see to it.
    fn is_implied(&self, scope: &SourceScope, condition: &ConditionSpec, slots: &[usize]) -> bool {
        let [slot] = slots else { return false };
        scope.entities(*slot).all(|entity| condition.holds(&|_| entity))
    }
}

/// The ranges of colours and roles with which a variable can satisfy the conditions on it alone and yield an element;
/// `None` if there are none.
fn possible_kinds(
    bindings: &RestrictedBinders<'_>,
    slot: usize,
    kind: VariableKind,
) -> Option<(Range<u32>, Range<u32>)> {
    let conjuncts: Vec<&ConditionSpec> = bindings
        .condition
        .iter()
        .flat_map(|condition| condition.conjuncts())
        .filter(|conjunct| conjunct.slots() == [slot])
        .collect();
    let is_possible = |entity: Entity| {
        conjuncts.iter().all(|conjunct| conjunct.holds(&|_| entity))
            && bindings.product.is_none_or(|product| may_yield(product, slot, entity))
    };
    let kinds = match kind {
        VariableKind::Square => 0..1,
        VariableKind::Piece => 0..12,
    };
    let possible: Vec<(u32, u32)> = kinds
        .map(|kind| (kind / 6, kind % 6))
        .filter(|(color, role)| (0..64).any(|square| is_possible(Entity { square, role: *role, color: *color })))
        .collect();
    let range = |of: fn(&(u32, u32)) -> u32| {
        let values = possible.iter().map(of);
        Some(values.clone().min()?..values.max()? + 1)
    };
    Some((range(|kind| kind.0)?, range(|kind| kind.1)?))
}

/// Whether the product may have an element with this entity in the slot; never says no wrongly.
fn may_yield(product: &ProductSpec, slot: usize, entity: Entity) -> bool {
    product.factors.iter().all(|factor| match &factor.kind {
        FactorKind::Axis(axis) => axis.slot != slot || axis.index(entity).is_some(),
        FactorKind::Sum(products) => products.iter().any(|product| may_yield(product, slot, entity)),
        FactorKind::Reach(reach) => reach.attacker != slot || reach.role == entity.role,
        FactorKind::Reserved => false,
        FactorKind::Difference(..) | FactorKind::Count(_) | FactorKind::Pair(_) => true,
    })
}
