//! Conditions as arithmetic on the properties of bound variables.

use crate::features::code::{Binary, Builder, Operand, Register, Unary};
use crate::features::spec::{ConditionSpec, ENEMY_KING, OWN_KING, Property, TermSpec, VariableKind};
use crate::features::syntax::Comparison;

use super::conditions::Conditions;
use super::context::Context;
use super::rows::Bound;

/// The values of bound variables' properties, for each perspective.
#[derive(Clone, Debug, Default)]
pub struct Values {
    known: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Value {
    pov: usize,
    slot: usize,
    property: Property,
    value: Operand,
}

/// Whether a condition holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    Known(bool),
    /// A register that is 1 or 0.
    Depends(Register),
}

impl Values {
    /// Computes what `conditions` read of both kings.
    pub fn bind_kings(&mut self, builder: &mut Builder, context: &Context<'_>, conditions: &[&ConditionSpec]) {
        let Some(kings) = context.kings else { return };
        let orientation = context.orientation_of(builder, VariableKind::Square);
        for slot in [OWN_KING, ENEMY_KING] {
            let properties = read_of(slot, conditions);
            for pov in 0..2 {
                let square = kings[if slot == OWN_KING { pov } else { 1 - pov }];
                let square = builder.xor(square, orientation[pov]);
                for property in &properties {
                    let value = match property {
                        Property::Role => Operand::Constant(5),
                        Property::Color => Operand::Constant(u64::from(slot == ENEMY_KING)),
                        _ => of_square(builder, property, square),
                    };
                    self.set(pov, slot, property, value);
                }
            }
        }
    }

    /// Computes what `conditions` read of a variable.
    pub fn bind(
        &mut self,
        builder: &mut Builder,
        context: &Context<'_>,
        variable: &Bound,
        conditions: &[&ConditionSpec],
    ) {
        self.known.retain(|value| value.slot != variable.slot);
        let kind = context.spec.variables[variable.slot];
        let properties = read_of(variable.slot, conditions);
        if properties.is_empty() {
            return;
        }
        let orientation = context.orientation_of(builder, kind);
        for pov in 0..2 {
            let Some(state) = variable.states[pov] else { continue };
            let oriented = builder.xor(state, orientation[pov]);
            let square = if kind == VariableKind::Square { oriented } else { builder.and(oriented, 63) };
            for property in &properties {
                let value = match property {
                    Property::Role | Property::Color if kind == VariableKind::Square => Operand::Constant(0),
                    Property::Role => {
                        let code = builder.shift_right(state, 6);
                        builder.and(code, 7).into()
                    }
                    Property::Color => {
                        let color = builder.shift_right(oriented, 9);
                        builder.and(color, 1).into()
                    }
                    _ => of_square(builder, property, square),
                };
                self.set(pov, variable.slot, property, value);
            }
        }
    }

    fn set(&mut self, pov: usize, slot: usize, property: &Property, value: Operand) {
        self.known.retain(|known| known.pov != pov || known.slot != slot || known.property != *property);
        self.known.push(Value { pov, slot, property: property.clone(), value });
    }

    fn get(&self, pov: usize, slot: usize, property: &Property) -> Operand {
        let is_it = |known: &&Value| known.pov == pov && known.slot == slot && known.property == *property;
        self.known.iter().find(is_it).map_or(Operand::Constant(0), |known| known.value)
    }

    /// Conditions on bound variables for the perspectives `povs`; `is_same` says that all variables are bound to one
    /// state for both.
    pub fn conditions(
        &self,
        builder: &mut Builder,
        of: &[&ConditionSpec],
        povs: [bool; 2],
        is_same: bool,
    ) -> Conditions {
        let mut all = Conditions::ALWAYS;
        for condition in of {
            let mut each = Conditions::ALWAYS;
            for pov in 0..2 {
                if pov == 1 && povs == [true; 2] && is_same && looks_equal(condition) {
                    each.0[1] = each.0[0];
                } else if povs[pov] {
                    each.0[pov] = match self.truth(builder, condition, pov, &[]) {
                        Truth::Known(true) => None,
                        Truth::Known(false) => Some(builder.constant(0)),
                        Truth::Depends(register) => Some(register),
                    };
                }
            }
            all = all.and(builder, each);
        }
        all
    }

    /// Whether a condition holds for a perspective, given its counts.
    pub fn truth(&self, builder: &mut Builder, condition: &ConditionSpec, pov: usize, counts: &[Operand]) -> Truth {
        let mut each =
            |of: &[ConditionSpec]| of.iter().map(|of| self.truth(builder, of, pov, counts)).collect::<Vec<Truth>>();
        match condition {
            ConditionSpec::All(of) => {
                let each = each(of);
                joined(builder, &each, Binary::And, true)
            }
            ConditionSpec::Any(of) => {
                let each = each(of);
                joined(builder, &each, Binary::Or, false)
            }
            ConditionSpec::Not(of) => match self.truth(builder, of, pov, counts) {
                Truth::Known(holds) => Truth::Known(!holds),
                Truth::Depends(register) => Truth::Depends(builder.xor(register, 1)),
            },
            ConditionSpec::Compare(left, comparison, right) => {
                let left = self.term(builder, left, pov, counts);
                let right = self.term(builder, right, pov, counts);
                compared(builder, left, *comparison, right)
            }
        }
    }

    fn term(&self, builder: &mut Builder, term: &TermSpec, pov: usize, counts: &[Operand]) -> Operand {
        match term {
            TermSpec::Number(value) => Operand::Constant(*value as u64),
            TermSpec::Axis(property, slot) => self.get(pov, *slot, property),
            TermSpec::Count(number) => counts.get(*number).copied().unwrap_or(Operand::Constant(0)),
            TermSpec::Negative(of) => {
                let of = self.term(builder, of, pov, counts);
                calculated(builder, Operand::Constant(0), Binary::Subtract, of)
            }
            TermSpec::Absolute(of) => match self.term(builder, of, pov, counts) {
                Operand::Constant(value) => Operand::Constant((value as i64).unsigned_abs()),
                Operand::Register(value) => {
                    let zero = builder.constant(0);
                    let negative = builder.binary(Binary::Subtract, zero, value);
                    let is_negative = builder.binary(Binary::LessSigned, value, 0);
                    builder.select(is_negative, negative, value).into()
                }
            },
            TermSpec::Sum(left, right) | TermSpec::Difference(left, right) => {
                let operator = if matches!(term, TermSpec::Sum(..)) { Binary::Add } else { Binary::Subtract };
                let left = self.term(builder, left, pov, counts);
                let right = self.term(builder, right, pov, counts);
                calculated(builder, left, operator, right)
            }
        }
    }
}

/// Whether a condition on pieces holds for one perspective exactly if it does for the other, by its form.
fn looks_equal(condition: &ConditionSpec) -> bool {
    match condition {
        ConditionSpec::Any(of) | ConditionSpec::All(of) => of.iter().all(looks_equal),
        ConditionSpec::Not(of) => looks_equal(of),
        ConditionSpec::Compare(
            TermSpec::Axis(Property::Color, left),
            Comparison::Equal | Comparison::Unequal,
            TermSpec::Axis(Property::Color, right),
        ) => left.min(right) > &ENEMY_KING,
        ConditionSpec::Compare(..) => {
            condition.axes().iter().all(|(property, slot)| **property == Property::Role && *slot > ENEMY_KING)
        }
    }
}

/// The properties of a variable that conditions read.
fn read_of(slot: usize, conditions: &[&ConditionSpec]) -> Vec<Property> {
    let mut properties: Vec<Property> = Vec::new();
    for condition in conditions {
        for (property, of) in condition.axes() {
            if of == slot && !properties.contains(property) {
                properties.push(property.clone());
            }
        }
    }
    properties
}

/// A property of an oriented square.
fn of_square(builder: &mut Builder, property: &Property, square: Register) -> Operand {
    let value = match property {
        Property::File => builder.and(square, 7),
        Property::Rank => builder.shift_right(square, 3),
        Property::Diagonal | Property::Antidiagonal => {
            let file = builder.and(square, 7);
            let rank = builder.shift_right(square, 3);
            if matches!(property, Property::Diagonal) {
                builder.add(file, rank)
            } else {
                let up = builder.add(file, 7);
                builder.binary(Binary::Subtract, up, rank)
            }
        }
        Property::Bucket(bucket) => {
            let numbers = bucket.table.iter().map(|number| i64::from(*number) as u64).collect();
            let memory = builder.bitboards(numbers);
            builder.load(memory, square)
        }
        Property::Square | Property::Role | Property::Color => square,
    };
    value.into()
}

/// The conjunction or disjunction. `neutral`: the value without any operand.
fn joined(builder: &mut Builder, of: &[Truth], operator: Binary, neutral: bool) -> Truth {
    let mut all: Option<Register> = None;
    for truth in of {
        match truth {
            Truth::Known(holds) if *holds == neutral => {}
            Truth::Known(holds) => return Truth::Known(*holds),
            Truth::Depends(register) => {
                all = Some(match all {
                    None => *register,
                    Some(other) => builder.binary(operator, other, *register),
                });
            }
        }
    }
    all.map_or(Truth::Known(neutral), Truth::Depends)
}

fn calculated(builder: &mut Builder, left: Operand, operator: Binary, right: Operand) -> Operand {
    match (left, right) {
        (Operand::Constant(left), Operand::Constant(right)) => Operand::Constant(match operator {
            Binary::Add => left.wrapping_add(right),
            _ => left.wrapping_sub(right),
        }),
        (Operand::Register(left), right) => builder.binary(operator, left, right).into(),
        (Operand::Constant(left), right) => {
            let left = builder.constant(left);
            builder.binary(operator, left, right).into()
        }
    }
}

fn compared(builder: &mut Builder, left: Operand, comparison: Comparison, right: Operand) -> Truth {
    if let (Operand::Constant(left), Operand::Constant(right)) = (left, right) {
        return Truth::Known(comparison.holds(left as i64, right as i64));
    }
    let [left_register, right_register] = [left, right].map(|operand| match operand {
        Operand::Register(register) => register,
        Operand::Constant(value) => builder.unary(Unary::Move, value),
    });
    let holds = match comparison {
        Comparison::Equal => builder.equal(left_register, right),
        Comparison::Unequal => builder.not_equal(left_register, right),
        Comparison::Less => builder.binary(Binary::LessSigned, left_register, right),
        Comparison::Greater => builder.binary(Binary::LessSigned, right_register, left),
        // Not the opposite.
        Comparison::LessEqual => {
            let greater = builder.binary(Binary::LessSigned, right_register, left);
            builder.xor(greater, 1)
        }
        Comparison::GreaterEqual => {
            let less = builder.binary(Binary::LessSigned, left_register, right);
            builder.xor(less, 1)
        }
    };
    Truth::Depends(holds)
}
