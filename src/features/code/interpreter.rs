//! Runs programs as they stand. It checks every index: the oracle for machine code, and what runs where there is none.

use super::executable::{Inputs, Outputs};
use super::form::{
    Binary, BoardField, BoardTime, Body, Instruction, Memory, Operand, Program, Register, Slider, Table, Unary,
};
use shakmaty::{Bitboard, Square, attacks};

/// One run of a program.
pub(super) struct Interpreter<'a, 'b, 'c> {
    pub(super) program: &'a Program,
    pub(super) inputs: &'a mut Inputs<'b>,
    /// [`Program::scratch`] bytes, all zero.
    pub(super) scratch: &'a mut [u8],
    /// [`Program::registers`] values, which need not be zero.
    pub(super) registers: &'a mut [u64],
    pub(super) outputs: &'a mut Outputs<'c>,
}

impl Interpreter<'_, '_, '_> {
    pub(super) fn run(&mut self) {
        self.body(&self.program.body);
    }

    fn body(&mut self, body: &Body) {
        for instruction in body {
            self.instruction(instruction);
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        match instruction {
            Instruction::Binary { operator, to, left, right } => {
                self.write(*to, operator.apply(self.read(*left), self.value(*right)));
            }
            Instruction::Unary { operator, to, of } => self.write(*to, operator.apply(self.value(*of))),
            Instruction::Load { to, memory, index } => self.write(*to, self.load(*memory, self.value(*index))),
            Instruction::Store { memory, index, value } => {
                self.store(*memory, self.value(*index), self.read(*value));
            }
            Instruction::Slide { slider, to, square, occupied } => {
                let square = Square::new(self.read(*square) as u32);
                self.write(*to, attacked(*slider, square, Bitboard(self.read(*occupied))).0);
            }
            Instruction::Select { to, condition, yes, no } => {
                let chosen = if self.read(*condition) != 0 { yes } else { no };
                self.write(*to, self.value(*chosen));
            }
            Instruction::ForBits { square, bits, body } => {
                for bit in Bitboard(self.read(*bits)) {
                    self.write(*square, bit as u64);
                    self.body(body);
                }
            }
            Instruction::ForRange { number, count, body } => {
                for value in 0..self.read(*count) {
                    self.write(*number, value);
                    self.body(body);
                }
            }
            Instruction::If { condition, body, otherwise } => {
                self.body(if self.read(*condition) != 0 { body } else { otherwise });
            }
            Instruction::Emit { list, rows, condition } => self.emit(*list, rows, *condition),
        }
    }

    fn emit(&mut self, list: u8, rows: &[Option<Register>; 2], condition: Option<Register>) {
        if condition.is_some_and(|condition| self.read(condition) == 0) {
            return;
        }
        for (perspective, row) in rows.iter().enumerate() {
            if let Some(row) = row {
                let row = self.read(*row) as u32;
                let list = match self.outputs {
                    Outputs::Active(lists) => &mut *lists[perspective],
                    Outputs::Changed(deltas) if list == Program::ADDED => &mut deltas[perspective].added,
                    Outputs::Changed(deltas) => &mut deltas[perspective].removed,
                    Outputs::None => unreachable!("a program without lists emits nothing"),
                };
                list.vec().push(row);
            }
        }
    }

    fn read(&self, register: Register) -> u64 {
        self.registers[register.0 as usize]
    }

    fn write(&mut self, register: Register, value: u64) {
        self.registers[register.0 as usize] = value;
    }

    fn value(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Register(register) => self.read(register),
            Operand::Constant(value) => value,
        }
    }

    fn load(&self, memory: Memory, index: u64) -> u64 {
        let index = index as usize;
        match memory {
            Memory::Board(time, field) => {
                let board = match time {
                    BoardTime::Before => self.inputs.before,
                    BoardTime::After => self.inputs.after,
                };
                match field {
                    BoardField::Squares => u64::from(board.squares()[index]),
                    BoardField::ByCode => board.by_code()[index],
                    BoardField::ByColor => board.by_color()[index],
                    BoardField::Occupied => [board.occupied()][index],
                }
            }
            Memory::Change => u64::from(self.inputs.change.states()[index / 2][index % 2]),
            Memory::Table(id) => match &self.program.tables[id.0 as usize] {
                Table::Bytes(values) => u64::from(values[index]),
                Table::Words(values) => u64::from(values[index]),
                Table::Bitboards(values) => values[index],
            },
            Memory::Scratch => u64::from(self.scratch[index]),
            Memory::StateBefore => self.inputs.state_before[index],
            Memory::StateAfter => unreachable!("state after a change is written only"),
        }
    }

    fn store(&mut self, memory: Memory, index: u64, value: u64) {
        let index = index as usize;
        match memory {
            Memory::Scratch => self.scratch[index] = value as u8,
            Memory::StateAfter => self.inputs.state_after[index] = value,
            _ => unreachable!("{memory:?} is read only"),
        }
    }
}

impl Binary {
    pub(super) const fn apply(self, left: u64, right: u64) -> u64 {
        match self {
            Binary::And => left & right,
            Binary::Or => left | right,
            Binary::Xor => left ^ right,
            Binary::AndNot => left & !right,
            Binary::Add => left.wrapping_add(right),
            Binary::Subtract => left.wrapping_sub(right),
            Binary::Multiply => left.wrapping_mul(right),
            Binary::ShiftLeft => left << (right & 63),
            Binary::ShiftRight => left >> (right & 63),
            Binary::Equal => (left == right) as u64,
            Binary::NotEqual => (left != right) as u64,
            Binary::Less => (left < right) as u64,
            Binary::LessSigned => ((left as i64) < right as i64) as u64,
        }
    }
}

impl Unary {
    pub(super) const fn apply(self, of: u64) -> u64 {
        match self {
            Unary::Move => of,
            Unary::Not => !of,
            Unary::CountOnes => of.count_ones() as u64,
            Unary::TrailingZeros => of.trailing_zeros() as u64,
            Unary::LeadingZeros => of.leading_zeros() as u64,
        }
    }
}

/// What a slider attacks, without tables of ours.
pub(super) fn attacked(slider: Slider, square: Square, occupied: Bitboard) -> Bitboard {
    match slider {
        Slider::Bishop => attacks::bishop_attacks(square, occupied),
        Slider::Rook => attacks::rook_attacks(square, occupied),
    }
}
