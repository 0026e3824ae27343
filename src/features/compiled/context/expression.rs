//! Conditions as expressions that are simplified while their variables are bound one after another: what is always true
//! or always false becomes a constant, sums of bound variables become one number. Equal expressions have equal numbers.

use std::collections::HashMap;
use std::rc::Rc;

use crate::features::spec::{ConditionSpec, Entity, Property, TermSpec};
use crate::features::syntax::Comparison;

/// The number of an expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

impl Id {
    pub const FALSE: Id = Id(0);
    pub const TRUE: Id = Id(1);

    pub fn number(self) -> u32 {
        self.0
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Expression {
    Constant(bool),
    Any(Vec<Id>),
    All(Vec<Id>),
    Not(Id),
    IsZero(Sum),
    AtMostZero(Sum),
}

/// A constant and multiples of parts, none of them zero times, the parts ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Sum {
    constant: i64,
    parts: Vec<(Part, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Part {
    /// A property, by its number, of the variable in a slot.
    Axis {
        property: usize,
        slot: usize,
    },
    Absolute(Box<Sum>),
    /// A guard's count, by its number, and the most it can be.
    Count {
        number: usize,
        most: u32,
    },
}

/// Every expression met so far.
#[derive(Debug)]
pub struct Expressions {
    properties: Vec<Property>,
    known: HashMap<Rc<Expression>, Id>,
    /// By number, each with bits for the variables and counts it reads.
    all: Vec<(Rc<Expression>, u64)>,
}

/// The number that takes a part's place.
type Value = dyn Fn(&[Property], &Part) -> Option<i64>;

/// Variables have the first bits.
fn bit(slot: usize) -> u64 {
    1 << (slot % 64)
}

/// Counts have the last bits.
fn count_bit(number: usize) -> u64 {
    1 << (63 - number % 64)
}

impl Expressions {
    pub fn new() -> Expressions {
        let mut new = Expressions { properties: Vec::new(), known: HashMap::new(), all: Vec::new() };
        for constant in [Id::FALSE, Id::TRUE] {
            let number = new.intern(Expression::Constant(constant == Id::TRUE));
            debug_assert_eq!(number, constant);
        }
        new
    }

    /// A condition with no variable bound; none is always true. `most`: what each of its counts can be.
    pub fn of(&mut self, condition: Option<&ConditionSpec>, most: &[u32]) -> Id {
        condition.map_or(Id::TRUE, |condition| self.condition(condition, most))
    }

    /// Whether an expression reads the variable in a slot.
    pub fn reads(&self, id: Id, slot: usize) -> bool {
        let mut axes = Vec::new();
        self.axes(id, &mut axes);
        axes.iter().any(|(_, of)| *of == slot)
    }

    /// What expressions read of the variable in a slot, each property once.
    pub fn properties(&self, ids: &[Id], slot: usize) -> Vec<&Property> {
        let mut axes = Vec::new();
        ids.iter().for_each(|id| self.axes(*id, &mut axes));
        axes.sort_unstable();
        axes.dedup();
        axes.into_iter().filter(|(_, of)| *of == slot).map(|(property, _)| &self.properties[property]).collect()
    }

    /// Whether an expression may read the variable in a slot; quick.
    pub fn may_read(&self, id: Id, slot: usize) -> bool {
        self.all[id.0 as usize].1 & bit(slot) != 0
    }

    /// Whether an expression may read a count; quick.
    pub fn may_count(&self, id: Id, number: usize) -> bool {
        self.all[id.0 as usize].1 & count_bit(number) != 0
    }

    /// What is left of an expression when a variable is bound.
    pub fn bind(&mut self, id: Id, slot: usize, entity: Entity) -> Id {
        self.replace(id, bit(slot), &move |properties, part| match part {
            Part::Axis { property, slot: of } if *of == slot => Some(i64::from(properties[*property].of(entity))),
            _ => None,
        })
    }

    /// What is left of an expression when a count is known.
    pub fn count(&mut self, id: Id, number: usize, value: u32) -> Id {
        self.replace(id, count_bit(number), &move |_, part| match part {
            Part::Count { number: of, .. } if *of == number => Some(i64::from(value)),
            _ => None,
        })
    }

    /// An expression with numbers in the place of some parts, all of whose bits are `bits`.
    fn replace(&mut self, id: Id, bits: u64, value: &Value) -> Id {
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
                let sum = self.replaced(sum, bits, value);
                self.is_zero(sum)
            }
            Expression::AtMostZero(sum) => {
                let sum = self.replaced(sum, bits, value);
                self.at_most_zero(sum)
            }
        }
    }

    fn intern(&mut self, expression: Expression) -> Id {
        if let Some(id) = self.known.get(&expression) {
            return *id;
        }
        let of = |ids: &[Id]| ids.iter().fold(0, |bits, id| bits | self.all[id.0 as usize].1);
        let bits = match &expression {
            Expression::Constant(_) => 0,
            Expression::Any(ids) | Expression::All(ids) => of(ids),
            Expression::Not(id) => of(&[*id]),
            Expression::IsZero(sum) | Expression::AtMostZero(sum) => sum.bits(),
        };
        let (id, expression) = (Id(self.all.len() as u32), Rc::new(expression));
        self.all.push((Rc::clone(&expression), bits));
        self.known.insert(expression, id);
        id
    }

    fn condition(&mut self, condition: &ConditionSpec, most: &[u32]) -> Id {
        match condition {
            ConditionSpec::Any(of) => {
                let of = of.iter().map(|of| self.condition(of, most)).collect();
                self.any(of)
            }
            ConditionSpec::All(of) => {
                let of = of.iter().map(|of| self.condition(of, most)).collect();
                self.all(of)
            }
            ConditionSpec::Not(of) => {
                let of = self.condition(of, most);
                self.not(of)
            }
            ConditionSpec::Compare(left, comparison, right) => {
                let (left, right) = (self.term(left, most), self.term(right, most));
                self.compare(left, *comparison, &right)
            }
        }
    }

    fn compare(&mut self, left: Sum, comparison: Comparison, right: &Sum) -> Id {
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

    fn any(&mut self, of: Vec<Id>) -> Id {
        let mut flat = Vec::with_capacity(of.len());
        for id in of {
            match &*self.all[id.0 as usize].0 {
                Expression::Any(inner) => flat.extend_from_slice(inner),
                _ => flat.push(id),
            }
        }
        flat.retain(|id| *id != Id::FALSE);
        flat.sort_unstable();
        flat.dedup();
        match flat[..] {
            [] => Id::FALSE,
            [only] => only,
            _ if flat.contains(&Id::TRUE) => Id::TRUE,
            _ => self.intern(Expression::Any(flat)),
        }
    }

    fn all(&mut self, of: Vec<Id>) -> Id {
        let mut flat = Vec::with_capacity(of.len());
        for id in of {
            match &*self.all[id.0 as usize].0 {
                Expression::All(inner) => flat.extend_from_slice(inner),
                _ => flat.push(id),
            }
        }
        flat.retain(|id| *id != Id::TRUE);
        flat.sort_unstable();
        flat.dedup();
        match flat[..] {
            [] => Id::TRUE,
            [only] => only,
            _ if flat.contains(&Id::FALSE) => Id::FALSE,
            _ => self.intern(Expression::All(flat)),
        }
    }

    fn not(&mut self, of: Id) -> Id {
        match *self.all[of.0 as usize].0 {
            Expression::Constant(value) => {
                if value {
                    Id::FALSE
                } else {
                    Id::TRUE
                }
            }
            Expression::Not(inner) => inner,
            _ => self.intern(Expression::Not(of)),
        }
    }

    fn is_zero(&mut self, sum: Sum) -> Id {
        match self.range(&sum) {
            (0, 0) => Id::TRUE,
            (least, most) if least > 0 || most < 0 => Id::FALSE,
            // A sum and its negative are zero together.
            _ if sum.parts.first().is_some_and(|(_, times)| *times < 0) => {
                let sum = sum.times(-1);
                self.intern(Expression::IsZero(sum))
            }
            _ => self.intern(Expression::IsZero(sum)),
        }
    }

    fn at_most_zero(&mut self, sum: Sum) -> Id {
        match self.range(&sum) {
            (_, most) if most <= 0 => Id::TRUE,
            (least, _) if least > 0 => Id::FALSE,
            _ => self.intern(Expression::AtMostZero(sum)),
        }
    }

    fn term(&mut self, term: &TermSpec, most: &[u32]) -> Sum {
        match term {
            TermSpec::Number(value) => Sum { constant: *value, parts: Vec::new() },
            TermSpec::Axis(property, slot) => {
                let known = self.properties.iter().position(|known| known == property);
                let property = known.unwrap_or_else(|| {
                    self.properties.push(property.clone());
                    self.properties.len() - 1
                });
                Sum { constant: 0, parts: vec![(Part::Axis { property, slot: *slot }, 1)] }
            }
            TermSpec::Count(number) => {
                let most = most.get(*number).copied().unwrap_or(0);
                Sum { constant: 0, parts: vec![(Part::Count { number: *number, most }, 1)] }
            }
            TermSpec::Negative(of) => self.term(of, most).times(-1),
            TermSpec::Absolute(of) => {
                let of = self.term(of, most);
                self.absolute(of)
            }
            TermSpec::Sum(left, right) => self.term(left, most).plus(&self.term(right, most), 1),
            TermSpec::Difference(left, right) => self.term(left, most).plus(&self.term(right, most), -1),
        }
    }

    fn absolute(&self, of: Sum) -> Sum {
        match self.range(&of) {
            (least, _) if least >= 0 => of,
            (_, most) if most <= 0 => of.times(-1),
            _ => {
                let negative = of.parts.first().is_some_and(|(_, times)| *times < 0);
                let of = if negative { of.times(-1) } else { of };
                Sum { constant: 0, parts: vec![(Part::Absolute(Box::new(of)), 1)] }
            }
        }
    }

    fn replaced(&self, sum: &Sum, bits: u64, value: &Value) -> Sum {
        let mut out = Sum { constant: sum.constant, parts: Vec::new() };
        for (part, times) in &sum.parts {
            let value = match (value(&self.properties, part), part) {
                (Some(value), _) => Sum { constant: value, parts: Vec::new() },
                (None, Part::Absolute(of)) if of.bits() & bits != 0 => self.absolute(self.replaced(of, bits, value)),
                (None, part) => Sum { constant: 0, parts: vec![(part.clone(), 1)] },
            };
            out = out.plus(&value, *times);
        }
        out
    }

    /// Least and greatest value over all that the variables can be.
    fn range(&self, sum: &Sum) -> (i64, i64) {
        sum.parts.iter().fold((sum.constant, sum.constant), |(least, most), (part, times)| {
            let (low, high) = match part {
                Part::Axis { property, .. } => values(&self.properties[*property]),
                Part::Count { most, .. } => (0, i64::from(*most)),
                Part::Absolute(of) => {
                    let (low, high) = self.range(of);
                    (0, high.max(-low))
                }
            };
            let (low, high) = if *times < 0 { (high, low) } else { (low, high) };
            (least + low * times, most + high * times)
        })
    }

    fn axes(&self, id: Id, out: &mut Vec<(usize, usize)>) {
        match &*self.all[id.0 as usize].0 {
            Expression::Constant(_) => {}
            Expression::Any(of) | Expression::All(of) => of.iter().for_each(|of| self.axes(*of, out)),
            Expression::Not(of) => self.axes(*of, out),
            Expression::IsZero(sum) | Expression::AtMostZero(sum) => sum.axes(out),
        }
    }
}

/// Least and greatest plain value.
fn values(property: &Property) -> (i64, i64) {
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
        for (part, more) in &other.parts {
            match self.parts.binary_search_by(|(known, _)| known.cmp(part)) {
                Ok(at) => self.parts[at].1 += more * times,
                Err(at) => self.parts.insert(at, (part.clone(), more * times)),
            }
        }
        self.parts.retain(|(_, times)| *times != 0);
        self
    }

    fn times(mut self, times: i64) -> Sum {
        self.constant *= times;
        self.parts.iter_mut().for_each(|(_, of)| *of *= times);
        self
    }

    fn shifted(self, by: i64) -> Sum {
        Sum { constant: self.constant + by, ..self }
    }

    fn bits(&self) -> u64 {
        self.parts.iter().fold(0, |bits, (part, _)| match part {
            Part::Axis { slot, .. } => bits | bit(*slot),
            Part::Count { number, .. } => bits | count_bit(*number),
            Part::Absolute(of) => bits | of.bits(),
        })
    }

    fn axes(&self, out: &mut Vec<(usize, usize)>) {
        for (part, _) in &self.parts {
            match part {
                Part::Axis { property, slot } => out.push((*property, *slot)),
                Part::Absolute(of) => of.axes(out),
                Part::Count { .. } => {}
            }
        }
    }
}
