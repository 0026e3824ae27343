//! Axes, conditions and products as expressions of the generated language.

use super::Generator;
use super::dialect::NumberType;
use super::scope::SourceScope;
use crate::features::spec::{
    AxisSpec, ConditionSpec, FactorKind, FactorSpec, PairSpec, ProductSpec, Property, TermSpec,
};
use crate::features::syntax::Comparison;

/// A truth value: known, or an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logic {
    Known(bool),
    Text { text: String, form: LogicForm },
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogicForm {
    Comparison,
    All,
    Any,
    Not,
}

impl Logic {
    pub fn comparison(text: String) -> Logic {
        Logic::Text { text, form: LogicForm::Comparison }
    }

    pub fn all(of: Vec<Logic>) -> Logic {
        Logic::joined(of, true, " && ", LogicForm::All)
    }

    fn any(of: Vec<Logic>) -> Logic {
        Logic::joined(of, false, " || ", LogicForm::Any)
    }

    /// `neutral`: the value that makes no difference.
    fn joined(of: Vec<Logic>, neutral: bool, word: &str, form: LogicForm) -> Logic {
        if of.contains(&Logic::Known(!neutral)) {
            return Logic::Known(!neutral);
        }
        let mut of: Vec<Logic> = of.into_iter().filter(|logic| *logic != Logic::Known(neutral)).collect();
        match of.len() {
            0 => Logic::Known(neutral),
            1 => of.remove(0),
            _ => {
                let operand = |logic: &Logic| match logic {
                    Logic::Text { text, form: own } if *own == LogicForm::Comparison || *own == form => text.clone(),
                    Logic::Text { text, form: LogicForm::Not } => text.clone(),
                    Logic::Text { text, .. } => format!("({text})"),
                    Logic::Known(value) => value.to_string(),
                };
                let text = of.iter().map(operand).collect::<Vec<_>>().join(word);
                Logic::Text { text, form }
            }
        }
    }

    fn negated(self) -> Logic {
        match self {
            Logic::Known(value) => Logic::Known(!value),
            Logic::Text { text, .. } => Logic::Text { text: format!("!({text})"), form: LogicForm::Not },
        }
    }
}

/// A step before an element is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A constant of type `i32`.
    Let(String, String),
    When(Logic),
}

/// One way in which a product has an element: the sum of terms (factor times expression) after the steps.
#[derive(Clone, Debug, Default)]
pub struct Alternative {
    pub steps: Vec<Step>,
    terms: Vec<(u64, String)>,
    constant: u64,
}

impl Alternative {
    fn plus(&self, other: &Alternative, factor: u64) -> Alternative {
        let mut out = self.clone();
        for step in &other.steps {
            if !out.steps.contains(step) {
                out.steps.push(step.clone());
            }
        }
        out.terms.extend(other.terms.iter().map(|(own, text)| (own * factor, text.clone())));
        out.constant += other.constant * factor;
        out
    }

    fn value(steps: Vec<Step>, text: Option<String>) -> Alternative {
        Alternative { steps, terms: text.into_iter().map(|text| (1, text)).collect(), constant: 0 }
    }
}

/// Largest number with which comparisons are made in 32 bits: sums have at most 64 terms.
const MAX_NARROW: i64 = 1 << 24;

impl Generator<'_> {
    /// A plain value: a number from 0, or −1 for a square outside a bucket table.
    pub(super) fn property(&mut self, scope: &SourceScope, property: &Property, slot: usize) -> String {
        let language = self.language;
        let square = scope.square(slot);
        match property {
            Property::Square => square,
            Property::File => language.call("file", &[&square]),
            Property::Rank => language.call("rank", &[&square]),
            Property::Diagonal => language.call("diagonal", &[&square]),
            Property::Antidiagonal => language.call("antidiagonal", &[&square]),
            Property::Role => scope.role(slot),
            Property::Color => scope.color(slot),
            Property::Bucket(bucket) => {
                let entries: Vec<i64> = bucket.table.iter().map(|number| i64::from(*number)).collect();
                let about = format!("The bucket table `{}`, by oriented square.", bucket.name);
                let table = self.tables.signed(language, &format!("bucket_{}", bucket.name), &entries, &about);
                language.entry(&table, &[&square])
            }
        }
    }

    /// A condition; `counts`: the expressions of the counts that it reads.
    pub(super) fn condition(
        &mut self,
        scope: &SourceScope,
        condition: &ConditionSpec,
        counts: &[(String, u32)],
    ) -> Logic {
        match condition {
            ConditionSpec::Any(of) => Logic::any(of.iter().map(|of| self.condition(scope, of, counts)).collect()),
            ConditionSpec::All(of) => Logic::all(of.iter().map(|of| self.condition(scope, of, counts)).collect()),
            ConditionSpec::Not(of) => match &**of {
                ConditionSpec::Compare(left, comparison, right) => {
                    self.compare(scope, left, opposite(*comparison), right, counts)
                }
                other => self.condition(scope, other, counts).negated(),
            },
            ConditionSpec::Compare(left, comparison, right) => self.compare(scope, left, *comparison, right, counts),
        }
    }

    fn compare(
        &mut self,
        scope: &SourceScope,
        left: &TermSpec,
        comparison: Comparison,
        right: &TermSpec,
        counts: &[(String, u32)],
    ) -> Logic {
        if let (Some(left), Some(right)) = (known(scope, left), known(scope, right)) {
            return Logic::Known(comparison.holds(left, right));
        }
        let wide = greatest(left, counts).max(greatest(right, counts)) > MAX_NARROW;
        let left = self.term(scope, left, counts, wide);
        let right = self.term(scope, right, counts, wide);
        if left.text == right.text {
            return Logic::Known(comparison.holds(0, 0));
        }
        Logic::comparison(format!("{} {} {}", left.text, comparison.symbol(), right.text))
    }

    fn term(&mut self, scope: &SourceScope, term: &TermSpec, counts: &[(String, u32)], wide: bool) -> TermText {
        let widened = |text: String| if wide { self.language.widened(&text) } else { text };
        match term {
            _ if known(scope, term).is_some() => {
                let value = known(scope, term).unwrap_or_default();
                TermText { text: value.to_string(), is_sum: value < 0 }
            }
            TermSpec::Number(value) => TermText::simple(value.to_string()),
            TermSpec::Count(number) => TermText::simple(widened(counts[*number].0.clone())),
            TermSpec::Axis(property, slot) => {
                let text = self.property(scope, property, *slot);
                TermText::simple(if wide { self.language.widened(&text) } else { text })
            }
            TermSpec::Negative(of) => {
                let of = self.term(scope, of, counts, wide);
                TermText { text: format!("-{}", of.bracketed()), is_sum: true }
            }
            TermSpec::Absolute(of) => {
                let of = self.term(scope, of, counts, wide).text;
                TermText::simple(self.language.call(if wide { "abs64" } else { "abs" }, &[&of]))
            }
            TermSpec::Sum(left, right) => {
                let left = self.term(scope, left, counts, wide);
                let right = self.term(scope, right, counts, wide);
                TermText { text: format!("{} + {}", left.text, right.bracketed()), is_sum: true }
            }
            TermSpec::Difference(left, right) => {
                let left = self.term(scope, left, counts, wide);
                let right = self.term(scope, right, counts, wide);
                TermText { text: format!("{} - {}", left.text, right.bracketed()), is_sum: true }
            }
        }
    }

    /// The ways in which a product has an element.
    pub(super) fn product(&mut self, scope: &SourceScope, product: &ProductSpec) -> Vec<Alternative> {
        let mut alternatives = vec![Alternative::default()];
        for factor in &product.factors {
            let own = self.factor(scope, factor);
            let stride = u64::from(factor.stride);
            alternatives =
                alternatives.iter().flat_map(|left| own.iter().map(|right| left.plus(right, stride))).collect();
        }
        alternatives
    }

    fn factor(&mut self, scope: &SourceScope, factor: &FactorSpec) -> Vec<Alternative> {
        match &factor.kind {
            FactorKind::Axis(axis) => self.axis(scope, axis).into_iter().collect(),
            FactorKind::Difference(left, right) => {
                let a = self.property(scope, &left.property, left.slot);
                let b = self.property(scope, &right.property, right.slot);
                vec![Alternative::value(Vec::new(), Some(format!("({a} - {b} + {})", left.size() - 1)))]
            }
            FactorKind::Reserved => Vec::new(),
            FactorKind::Count(spec) => {
                let call = self.count(scope, spec);
                let name = self.fresh("number");
                vec![Alternative::value(vec![Step::Let(name.clone(), call)], Some(name))]
            }
            FactorKind::Reach(reach) => self.reach(scope, reach.attacker, reach.target, reach.role),
            FactorKind::Pair(pair) => self.pair(scope, pair),
            FactorKind::Sum(products) => {
                let mut alternatives = Vec::new();
                let mut offset = 0;
                for product in products {
                    let mut own = self.product(scope, product);
                    own.iter_mut().for_each(|alternative| alternative.constant += offset);
                    alternatives.extend(own);
                    offset += u64::from(product.size);
                }
                alternatives
            }
        }
    }

    /// `None` if the axis never has an element here.
    fn axis(&mut self, scope: &SourceScope, axis: &AxisSpec) -> Option<Alternative> {
        let value = self.property(scope, &axis.property, axis.slot);
        let mut plain: Vec<i64> = scope.entities(axis.slot).map(|entity| i64::from(axis.property.of(entity))).collect();
        plain.sort_unstable();
        plain.dedup();
        let element = |plain: i64| -> i64 {
            match &axis.domain {
                None => plain,
                Some(domain) => domain.iter().position(|own| i64::from(*own) == plain).map_or(-1, |at| at as i64),
            }
        };
        let inside: Vec<i64> = plain.iter().copied().filter(|plain| element(*plain) >= 0).collect();
        let first = *inside.first()?;
        let last = *inside.last()?;
        if let ([_], [_]) = (&plain[..], &inside[..]) {
            return Some(Alternative { constant: element(first) as u64, ..Alternative::default() });
        }
        let has_gaps = inside.len() as i64 != last - first + 1
            || inside.windows(2).any(|pair| element(pair[1]) != element(pair[0]) + 1);
        let known = &plain[..];
        if !matches!(axis.property, Property::Bucket(_)) && has_gaps {
            let entries: Vec<i64> = (0..i64::from(axis.property.values())).map(element).collect();
            let about = "Numbers within a restricted domain; -1 outside of it.";
            let table = self.tables.signed(self.language, "domain", &entries, about);
            let name = self.named(&self.language.entry(&table, &[&value]), "value");
            let steps =
                vec![Step::Let(name.0.clone(), name.1), Step::When(Logic::comparison(format!("{} >= 0", name.0)))];
            return Some(Alternative::value(steps, Some(name.0)));
        }
        let mut steps = Vec::new();
        let (name, steps_before) = if matches!(axis.property, Property::Bucket(_)) && first > known[0] {
            let (name, text) = self.named(&value, "bucket");
            (name.clone(), vec![Step::Let(name, text)])
        } else {
            (value, Vec::new())
        };
        steps.extend(steps_before);
        let mut bounds = Vec::new();
        if first == last {
            bounds.push(Logic::comparison(format!("{name} == {first}")));
        } else {
            if first > known[0] {
                bounds.push(Logic::comparison(format!("{name} >= {first}")));
            }
            if last < known[known.len() - 1] {
                bounds.push(Logic::comparison(format!("{name} <= {last}")));
            }
        }
        steps.extend(bounds.into_iter().map(Step::When));
        let text = match (first == last, element(first) - first) {
            (true, _) => return Some(Alternative { steps, terms: Vec::new(), constant: element(first) as u64 }),
            (_, 0) => name,
            (_, shift @ 1..) => format!("({name} + {shift})"),
            (_, shift) => format!("({name} - {})", -shift),
        };
        Some(Alternative::value(steps, Some(text)))
    }

    fn reach(&mut self, scope: &SourceScope, attacker: usize, target: usize, role: u32) -> Vec<Alternative> {
        let variable = scope.variable(attacker);
        if !variable.roles.contains(&role) {
            return Vec::new();
        }
        let mut steps = Vec::new();
        if variable.roles.len() > 1 {
            steps.push(Step::When(Logic::comparison(format!("{} == {role}", scope.role(attacker)))));
        }
        let kind = match (role, scope.known_color(attacker)) {
            (0, Some(color)) => (color * 6).to_string(),
            (0, None) => format!("{} * 6", scope.color(attacker)),
            _ => role.to_string(),
        };
        let call = self.language.call("reach", &[&kind, &scope.square(attacker), &scope.square(target)]);
        let (name, call) = self.named(&call, "reached");
        steps.push(Step::Let(name.clone(), call));
        steps.push(Step::When(Logic::comparison(format!("{name} >= 0"))));
        vec![Alternative::value(steps, Some(name))]
    }

    fn pair(&mut self, scope: &SourceScope, pair: &PairSpec) -> Vec<Alternative> {
        let [left, right] = pair.sides.each_ref().map(|side| self.product(scope, side));
        let mut out = Vec::new();
        for (left, right) in left.iter().flat_map(|left| right.iter().map(move |right| (left, right))) {
            let mut steps = Alternative { constant: 0, ..left.clone() }.plus(right, 0).steps;
            let names = [left, right].map(|side| self.named(&self.element(side, false), "side"));
            steps.extend(names.iter().map(|(name, text)| Step::Let(name.clone(), text.clone())));
            let [a, b] = [&names[0].0, &names[1].0];
            // The same variable on both sides gives one element twice.
            if a == b {
                continue;
            }
            steps.push(Step::When(Logic::comparison(format!("{a} != {b}"))));
            out.push(Alternative::value(steps, Some(self.language.call("pair", &[a, b]))));
        }
        out
    }

    /// The element of an alternative; `wide`: in `u32` instead of `i32`.
    pub(super) fn element(&self, alternative: &Alternative, wide: bool) -> String {
        let language = self.language;
        let literal = |value: u64| if wide { language.unsigned(value) } else { value.to_string() };
        let leaf = |text: &String| if wide { language.cast(text, NumberType::U32) } else { text.clone() };
        let mut parts: Vec<String> = Vec::new();
        for (factor, text) in alternative.terms.iter().filter(|(factor, _)| *factor != 0) {
            match (factor, text.bytes().all(|byte| byte.is_ascii_digit())) {
                (1, _) => parts.push(leaf(text)),
                _ => parts.push(format!("{} * {}", leaf(text), literal(*factor))),
            }
        }
        if alternative.constant > 0 || parts.is_empty() {
            parts.push(literal(alternative.constant));
        }
        parts.join(" + ")
    }
}

/// A sum needs brackets where it is subtracted.
struct TermText {
    text: String,
    is_sum: bool,
}

impl TermText {
    fn simple(text: String) -> TermText {
        TermText { text, is_sum: false }
    }

    fn bracketed(&self) -> String {
        if self.is_sum { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// The value of a term without variables.
fn known(scope: &SourceScope, term: &TermSpec) -> Option<i64> {
    match term {
        TermSpec::Number(value) => Some(*value),
        TermSpec::Axis(Property::Role, slot) => scope.known_role(*slot).map(i64::from),
        TermSpec::Axis(Property::Color, slot) => scope.known_color(*slot).map(i64::from),
        TermSpec::Axis(..) | TermSpec::Count(_) => None,
        TermSpec::Negative(of) => Some(-known(scope, of)?),
        TermSpec::Absolute(of) => Some(known(scope, of)?.abs()),
        TermSpec::Sum(left, right) => Some(known(scope, left)? + known(scope, right)?),
        TermSpec::Difference(left, right) => Some(known(scope, left)? - known(scope, right)?),
    }
}

/// The greatest number among a term's leaves.
fn greatest(term: &TermSpec, counts: &[(String, u32)]) -> i64 {
    match term {
        TermSpec::Number(value) => value.abs(),
        TermSpec::Axis(..) => 0,
        TermSpec::Count(number) => i64::from(counts[*number].1),
        TermSpec::Negative(of) | TermSpec::Absolute(of) => greatest(of, counts),
        TermSpec::Sum(left, right) | TermSpec::Difference(left, right) => {
            greatest(left, counts).max(greatest(right, counts))
        }
    }
}

const fn opposite(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::Unequal,
        Comparison::Unequal => Comparison::Equal,
        Comparison::Less => Comparison::GreaterEqual,
        Comparison::LessEqual => Comparison::Greater,
        Comparison::Greater => Comparison::LessEqual,
        Comparison::GreaterEqual => Comparison::Less,
    }
}
