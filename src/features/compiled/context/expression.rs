//! Conditions as expressions that simplify while their variables are bound one after another: an expression that is
//! always true or always false becomes a constant, a sum of bound variables one number. Equal expressions have equal
//! numbers.

use std::collections::HashMap;
use std::rc::Rc;

use crate::features::spec::{ConditionSpec, Entity, Property, TermSpec};
use crate::features::syntax::Comparison;

/// The number of an expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpressionId(u32);

impl ExpressionId {
    pub const FALSE: ExpressionId = ExpressionId(0);
    pub const TRUE: ExpressionId = ExpressionId(1);

    pub fn number(self) -> u32 {
        self.0
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Expression {
    Constant(bool),
    Any(Vec<ExpressionId>),
    All(Vec<ExpressionId>),
    Not(ExpressionId),
    IsZero(Sum),
    AtMostZero(Sum),
}

/// A constant plus non-zero multiples of summands; the summands ascend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Sum {
    constant: i64,
    summands: Vec<(Summand, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Summand {
    /// A numbered property of the variable in a slot.
    Axis {
        property: usize,
        slot: usize,
    },
    Absolute(Box<Sum>),
    /// A guard's count, by its number, and its maximum.
    Count {
        number: usize,
        max: u32,
    },
}

/// All expressions so far, each stored once.
#[derive(Debug)]
pub struct Expressions {
    properties: Vec<Property>,
    ids: HashMap<Rc<Expression>, ExpressionId>,
    /// By number, each with bits for the variables and counts it reads.
    all: Vec<(Rc<Expression>, u64)>,
}

/// The value of a summand, if it is known.
type SummandValue = dyn Fn(&[Property], &Summand) -> Option<i64>;

/// Variables use bits from the lowest up.
fn variable_bit(slot: usize) -> u64 {
    1 << (slot % 64)
}

/// Counts use bits from the highest down.
fn count_bit(number: usize) -> u64 {
    1 << (63 - number % 64)
}

impl Expressions {
    pub fn new() -> Expressions {
        let mut new = Expressions { properties: Vec::new(), ids: HashMap::new(), all: Vec::new() };
        for constant in [ExpressionId::FALSE, ExpressionId::TRUE] {
            let number = new.intern(Expression::Constant(constant == ExpressionId::TRUE));
            debug_assert_eq!(number, constant);
        }
        new
    }

    /// The expression of a condition with no variable bound; `None` is always true. `maxima`: the maxima of the counts
    /// it reads.
    pub fn of(&mut self, condition: Option<&ConditionSpec>, maxima: &[u32]) -> ExpressionId {
        condition.map_or(ExpressionId::TRUE, |condition| self.condition(condition, maxima))
    }

    /// Whether an expression reads the variable in a slot.
    pub fn reads(&self, id: ExpressionId, slot: usize) -> bool {
        let mut axes = Vec::new();
        self.axes(id, &mut axes);
        axes.iter().any(|(_, of)| *of == slot)
    }

    /// The properties that expressions read of the variable in a slot, each once.
    pub fn properties(&self, ids: &[ExpressionId], slot: usize) -> Vec<&Property> {
        let mut axes = Vec::new();
        ids.iter().for_each(|id| self.axes(*id, &mut axes));
        axes.sort_unstable();
        axes.dedup();
        axes.into_iter().filter(|(_, of)| *of == slot).map(|(property, _)| &self.properties[property]).collect()
    }

    /// Whether an expression may read the variable in a slot; faster than [`Expressions::reads`].
    pub fn may_read(&self, id: ExpressionId, slot: usize) -> bool {
        self.all[id.0 as usize].1 & variable_bit(slot) != 0
    }

    /// Whether an expression may read a count.
    pub fn may_count(&self, id: ExpressionId, number: usize) -> bool {
        self.all[id.0 as usize].1 & count_bit(number) != 0
    }

    /// The expression that remains when a variable is bound.
    pub fn bind(&mut self, id: ExpressionId, slot: usize, entity: Entity) -> ExpressionId {
        self.replace(id, variable_bit(slot), &move |properties, summand| match summand {
            Summand::Axis { property, slot: of } if *of == slot => Some(i64::from(properties[*property].of(entity))),
            _ => None,
        })
    }

    /// The expression that remains when a count is known.
    pub fn bind_count(&mut self, id: ExpressionId, number: usize, value: u32) -> ExpressionId {
        self.replace(id, count_bit(number), &move |_, summand| match summand {
            Summand::Count { number: of, .. } if *of == number => Some(i64::from(value)),
            _ => None,
        })
    }

    /// An expression with some summands replaced by their values; `bits` are the bits of these summands.
    fn replace(&mut self, id: ExpressionId, bits: u64, value: &SummandValue) -> ExpressionId {
        if self.all[id.0 as usize].1 & bits == 0 {
            return id;
        }
        let expression = Rc::clone(&self.all[id.0 as usize].0);
        match &*expression {
            Expression::Constant(_) => id,
            Expression::Any(of) => {
                let of = of.iter().map(|of| self.replace(*of, bits, value)).collect();
                self.any(of)
            }
            Expression::All(of) => {
                let of = of.iter().map(|of| self.replace(*of, bits, value)).collect();
                self.all(of)
            }
            Expression::Not(of) => {
                let of = self.replace(*of, bits, value);
                self.not(of)
            }
            Expression::IsZero(sum) => {
                let sum = self.replace_in_sum(sum, bits, value);
                self.is_zero(sum)
            }
            Expression::AtMostZero(sum) => {
                let sum = self.replace_in_sum(sum, bits, value);
                self.at_most_zero(sum)
            }
        }
    }

    fn intern(&mut self, expression: Expression) -> ExpressionId {
        if let Some(id) = self.ids.get(&expression) {
            return *id;
        }
        let of = |ids: &[ExpressionId]| ids.iter().fold(0, |bits, id| bits | self.all[id.0 as usize].1);
        let bits = match &expression {
            Expression::Constant(_) => 0,
            Expression::Any(ids) | Expression::All(ids) => of(ids),
            Expression::Not(id) => of(&[*id]),
            Expression::IsZero(sum) | Expression::AtMostZero(sum) => sum.bits(),
        };
        let id = ExpressionId(self.all.len() as u32);
        let expression = Rc::new(expression);
        self.all.push((Rc::clone(&expression), bits));
        self.ids.insert(expression, id);
        id
    }

    fn condition(&mut self, condition: &ConditionSpec, maxima: &[u32]) -> ExpressionId {
        match condition {
            ConditionSpec::Any(of) => {
                let of = of.iter().map(|of| self.condition(of, maxima)).collect();
                self.any(of)
            }
            ConditionSpec::All(of) => {
                let of = of.iter().map(|of| self.condition(of, maxima)).collect();
                self.all(of)
            }
            ConditionSpec::Not(of) => {
                let of = self.condition(of, maxima);
                self.not(of)
            }
            ConditionSpec::Compare(left, comparison, right) => {
                let left = self.term(left, maxima);
                let right = self.term(right, maxima);
                self.compare(left, *comparison, &right)
            }
        }
    }

    fn compare(&mut self, left: Sum, comparison: Comparison, right: &Sum) -> ExpressionId {
        let difference = left.plus(right, -1);
        match comparison {
            Comparison::Equal => self.is_zero(difference),
            Comparison::Unequal => {
                let equal = self.is_zero(difference);
                self.not(equal)
            }
            Comparison::LessEqual => self.at_most_zero(difference),
            Comparison::Less => self.at_most_zero(difference.shifted(1)),
            Comparison::GreaterEqual => self.at_most_zero(difference.times(-1)),
            Comparison::Greater => self.at_most_zero(difference.times(-1).shifted(1)),
        }
    }

    fn any(&mut self, of: Vec<ExpressionId>) -> ExpressionId {
        let mut flat = Vec::with_capacity(of.len());
        for id in of {
            match &*self.all[id.0 as usize].0 {
                Expression::Any(inner) => flat.extend_from_slice(inner),
                _ => flat.push(id),
            }
        }
        flat.retain(|id| *id != ExpressionId::FALSE);
        flat.sort_unstable();
        flat.dedup();
        match flat[..] {
            [] => ExpressionId::FALSE,
            [only] => only,
            _ if flat.contains(&ExpressionId::TRUE) => ExpressionId::TRUE,
            _ => self.intern(Expression::Any(flat)),
        }
    }

    fn all(&mut self, of: Vec<ExpressionId>) -> ExpressionId {
        let mut flat = Vec::with_capacity(of.len());
        for id in of {
            match &*self.all[id.0 as usize].0 {
                Expression::All(inner) => flat.extend_from_slice(inner),
                _ => flat.push(id),
            }
        }
        flat.retain(|id| *id != ExpressionId::TRUE);
        flat.sort_unstable();
        flat.dedup();
        match flat[..] {
            [] => ExpressionId::TRUE,
            [only] => only,
            _ if flat.contains(&ExpressionId::FALSE) => ExpressionId::FALSE,
            _ => self.intern(Expression::All(flat)),
        }
    }

    fn not(&mut self, of: ExpressionId) -> ExpressionId {
        match *self.all[of.0 as usize].0 {
            Expression::Constant(value) => {
                if value {
                    ExpressionId::FALSE
                } else {
                    ExpressionId::TRUE
                }
            }
            Expression::Not(inner) => inner,
            _ => self.intern(Expression::Not(of)),
        }
    }

    fn is_zero(&mut self, sum: Sum) -> ExpressionId {
        match self.range(&sum) {
            (0, 0) => ExpressionId::TRUE,
            (least, most) if least > 0 || most < 0 => ExpressionId::FALSE,
            // A sum and its negative are zero together.
            _ if sum.summands.first().is_some_and(|(_, times)| *times < 0) => {
                let sum = sum.times(-1);
                self.intern(Expression::IsZero(sum))
            }
            _ => self.intern(Expression::IsZero(sum)),
        }
    }

    fn at_most_zero(&mut self, sum: Sum) -> ExpressionId {
        match self.range(&sum) {
            (_, most) if most <= 0 => ExpressionId::TRUE,
            (least, _) if least > 0 => ExpressionId::FALSE,
            _ => self.intern(Expression::AtMostZero(sum)),
        }
    }

    fn term(&mut self, term: &TermSpec, maxima: &[u32]) -> Sum {
        match term {
            TermSpec::Number(value) => Sum { constant: *value, summands: Vec::new() },
            TermSpec::Axis(property, slot) => {
                let known = self.properties.iter().position(|other| other == property);
                let property = known.unwrap_or_else(|| {
                    self.properties.push(property.clone());
                    self.properties.len() - 1
                });
                Sum { constant: 0, summands: vec![(Summand::Axis { property, slot: *slot }, 1)] }
            }
            TermSpec::Count(number) => {
                let max = maxima.get(*number).copied().unwrap_or(0);
                Sum { constant: 0, summands: vec![(Summand::Count { number: *number, max }, 1)] }
            }
            TermSpec::Negative(of) => self.term(of, maxima).times(-1),
            TermSpec::Absolute(of) => {
                let of = self.term(of, maxima);
                self.absolute(of)
            }
            TermSpec::Sum(left, right) => self.term(left, maxima).plus(&self.term(right, maxima), 1),
            TermSpec::Difference(left, right) => self.term(left, maxima).plus(&self.term(right, maxima), -1),
        }
    }

    fn absolute(&self, of: Sum) -> Sum {
        match self.range(&of) {
            (least, _) if least >= 0 => of,
            (_, most) if most <= 0 => of.times(-1),
            _ => {
                let negative = of.summands.first().is_some_and(|(_, times)| *times < 0);
                let of = if negative { of.times(-1) } else { of };
                Sum { constant: 0, summands: vec![(Summand::Absolute(Box::new(of)), 1)] }
            }
        }
    }

    fn replace_in_sum(&self, sum: &Sum, bits: u64, value: &SummandValue) -> Sum {
        let mut out = Sum { constant: sum.constant, summands: Vec::new() };
        for (summand, times) in &sum.summands {
            let value = match (value(&self.properties, summand), summand) {
                (Some(value), _) => Sum { constant: value, summands: Vec::new() },
                (None, Summand::Absolute(of)) if of.bits() & bits != 0 => {
                    self.absolute(self.replace_in_sum(of, bits, value))
                }
                (None, summand) => Sum { constant: 0, summands: vec![(summand.clone(), 1)] },
            };
            out = out.plus(&value, *times);
        }
        out
    }

    /// Least and greatest value over all values of the variables.
    fn range(&self, sum: &Sum) -> (i64, i64) {
        sum.summands.iter().fold((sum.constant, sum.constant), |(least, most), (summand, times)| {
            let (low, high) = match summand {
                Summand::Axis { property, .. } => value_range(&self.properties[*property]),
                Summand::Count { max, .. } => (0, i64::from(*max)),
                Summand::Absolute(of) => {
                    let (low, high) = self.range(of);
                    (0, high.max(-low))
                }
            };
            let (low, high) = if *times < 0 { (high, low) } else { (low, high) };
            (least + low * times, most + high * times)
        })
    }

    fn axes(&self, id: ExpressionId, out: &mut Vec<(usize, usize)>) {
        match &*self.all[id.0 as usize].0 {
            Expression::Constant(_) => {}
            Expression::Any(of) | Expression::All(of) => of.iter().for_each(|of| self.axes(*of, out)),
            Expression::Not(of) => self.axes(*of, out),
            Expression::IsZero(sum) | Expression::AtMostZero(sum) => sum.axes(out),
        }
    }
}

/// Least and greatest plain value.
fn value_range(property: &Property) -> (i64, i64) {
    match property {
        Property::Bucket(bucket) => {
            let least = bucket.table.iter().copied().min().unwrap_or(-1);
            (i64::from(least), i64::from(bucket.size) - 1)
        }
        other => (0, i64::from(other.values()) - 1),
    }
}

impl Sum {
    /// self + times · other
    fn plus(mut self, other: &Sum, times: i64) -> Sum {
        self.constant += other.constant * times;
        for (summand, more) in &other.summands {
            match self.summands.binary_search_by(|(known, _)| known.cmp(summand)) {
                Ok(at) => self.summands[at].1 += more * times,
                Err(at) => self.summands.insert(at, (summand.clone(), more * times)),
            }
        }
        self.summands.retain(|(_, times)| *times != 0);
        self
    }

    fn times(mut self, times: i64) -> Sum {
        self.constant *= times;
        self.summands.iter_mut().for_each(|(_, of)| *of *= times);
        self
    }

    fn shifted(self, by: i64) -> Sum {
        Sum { constant: self.constant + by, ..self }
    }

    fn bits(&self) -> u64 {
        self.summands.iter().fold(0, |bits, (summand, _)| match summand {
            Summand::Axis { slot, .. } => bits | variable_bit(*slot),
            Summand::Count { number, .. } => bits | count_bit(*number),
            Summand::Absolute(of) => bits | of.bits(),
        })
    }

    fn axes(&self, out: &mut Vec<(usize, usize)>) {
        for (summand, _) in &self.summands {
            match summand {
                Summand::Axis { property, slot } => out.push((*property, *slot)),
                Summand::Absolute(of) => of.axes(out),
                Summand::Count { .. } => {}
            }
        }
    }
}
