//! Which registers are read later on: so that source text gives each value a variable of its own.

use crate::features::code::form::{Body, Instruction, Operand, Program, Register};

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registers(Vec<u64>);

impl Registers {
    pub(super) fn none(program: &Program) -> Registers {
        Registers(vec![0; (program.registers as usize).div_ceil(64)])
    }

    pub(super) fn contains(&self, register: Register) -> bool {
        self.0[(register.0 / 64) as usize] >> (register.0 % 64) & 1 != 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Register> + '_ {
        (0..self.0.len() as u32 * 64).map(Register).filter(|register| self.contains(*register))
    }

    fn insert(&mut self, register: Register) {
        self.0[(register.0 / 64) as usize] |= 1 << (register.0 % 64);
    }

    fn remove(&mut self, register: Register) {
        self.0[(register.0 / 64) as usize] &= !(1 << (register.0 % 64));
    }

    fn extend(&mut self, other: &Registers) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own |= other;
        }
    }
}

/// For each instruction of a body, what is read after it before it is written again, given what is read after the body.
pub(super) fn live_after(body: &Body, after: &Registers) -> Vec<Registers> {
    let mut live = after.clone();
    let mut all = Vec::with_capacity(body.len());
    for instruction in body.iter().rev() {
        all.push(live.clone());
        step_back(instruction, &mut live);
    }
    all.reverse();
    all
}

/// What is read after a run of a loop's body, given what is read after the loop: that, and what the next run reads.
pub(super) fn live_after_run(body: &Body, after: &Registers) -> Registers {
    let mut live = after.clone();
    loop {
        let mut begin = live.clone();
        for instruction in body.iter().rev() {
            step_back(instruction, &mut begin);
        }
        begin.extend(&live);
        if begin == live {
            return live;
        }
        live = begin;
    }
}

/// From what is read after an instruction to what is read from it on.
fn step_back(instruction: &Instruction, live: &mut Registers) {
    let through = |body: &Body, from: &Registers| {
        let mut live = from.clone();
        for instruction in body.iter().rev() {
            step_back(instruction, &mut live);
        }
        live
    };
    match instruction {
        Instruction::ForBits { square: counter, bits: bound, body }
        | Instruction::ForRange { number: counter, count: bound, body } => {
            let run = live_after_run(body, live);
            let mut begin = through(body, &run);
            begin.remove(*counter);
            live.extend(&begin);
            live.insert(*bound);
        }
        Instruction::If { condition, body, otherwise } => {
            let mut begin = through(body, live);
            begin.extend(&through(otherwise, live));
            *live = begin;
            live.insert(*condition);
        }
        _ => {
            if let Some(to) = written(instruction) {
                // What nothing reads is left out, with what it reads.
                if !live.contains(to) {
                    return;
                }
                live.remove(to);
            }
            for register in read(instruction) {
                live.insert(register);
            }
        }
    }
}

/// The register that an instruction without a body writes.
pub(super) fn written(instruction: &Instruction) -> Option<Register> {
    match instruction {
        Instruction::Binary { to, .. }
        | Instruction::Unary { to, .. }
        | Instruction::Load { to, .. }
        | Instruction::Slide { to, .. }
        | Instruction::Select { to, .. } => Some(*to),
        _ => None,
    }
}

/// Whether an instruction's bodies write a register.
pub(super) fn writes_within(instruction: &Instruction, register: Register) -> bool {
    let any = |body: &Body| body.iter().any(|inner| written(inner) == Some(register) || writes_within(inner, register));
    match instruction {
        Instruction::ForBits { square: counter, body, .. } | Instruction::ForRange { number: counter, body, .. } => {
            *counter == register || any(body)
        }
        Instruction::If { body, otherwise, .. } => any(body) || any(otherwise),
        _ => false,
    }
}

/// The registers that an instruction without a body reads.
fn read(instruction: &Instruction) -> Vec<Register> {
    let mut registers = Vec::new();
    let mut operands = Vec::new();
    match instruction {
        Instruction::Binary { left, right, .. } => {
            registers.push(*left);
            operands.push(*right);
        }
        Instruction::Unary { of, .. } => operands.push(*of),
        Instruction::Load { index, .. } => operands.push(*index),
        Instruction::Store { index, value, .. } => {
            registers.push(*value);
            operands.push(*index);
        }
        Instruction::Slide { square, occupied, .. } => registers.extend([*square, *occupied]),
        Instruction::Select { condition, yes, no, .. } => {
            registers.push(*condition);
            operands.extend([*yes, *no]);
        }
        Instruction::Emit { rows, condition, .. } => {
            registers.extend(rows.iter().flatten());
            registers.extend(condition);
        }
        Instruction::ForBits { .. } | Instruction::ForRange { .. } | Instruction::If { .. } => {}
    }
    for operand in operands {
        if let Operand::Register(register) = operand {
            registers.push(register);
        }
    }
    registers
}
