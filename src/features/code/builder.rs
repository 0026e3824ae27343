//! Writes programs down, register by register.

use std::collections::HashMap;

use super::form::{
    Binary, BoardField, BoardTime, Body, Instruction, Memory, Operand, Program, Register, Slider, Table, TableId, Unary,
};

/// A program in the making. Every method that gives a register has put an instruction at the end of the innermost body.
///
/// Bodies of loops and conditions are written by closures. Registers made in them are used again after them: what a body
/// leaves for later it writes with [`Builder::set`] into a register made before.
#[derive(Debug)]
pub struct Builder {
    bodies: Vec<Body>,
    next: u32,
    registers: u32,
    tables: Vec<Table>,
    known: HashMap<Table, TableId>,
    scratch: u32,
    state: u32,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            bodies: vec![Vec::new()],
            next: 0,
            registers: 0,
            tables: Vec::new(),
            known: HashMap::new(),
            scratch: 0,
            state: 0,
        }
    }
}

impl Builder {
    /// The program. `lists`: kinds of lists; `capacity`: most rows that one can get.
    #[must_use]
    pub fn finish(mut self, lists: u8, capacity: u32) -> Program {
        Program {
            body: self.bodies.pop().unwrap_or_default(),
            registers: self.registers,
            tables: self.tables,
            scratch: self.scratch,
            state: self.state,
            lists,
            capacity,
        }
    }

    /// A register without a value.
    pub fn register(&mut self) -> Register {
        let register = Register(self.next);
        self.next += 1;
        self.registers = self.registers.max(self.next);
        register
    }

    pub fn push(&mut self, instruction: Instruction) {
        if let Some(body) = self.bodies.last_mut() {
            body.push(instruction);
        }
    }

    /// A table of the program; equal ones are kept once.
    pub fn table(&mut self, table: Table) -> Memory {
        let next = TableId(self.tables.len() as u32);
        let id = *self.known.entry(table).or_insert_with_key(|table| {
            self.tables.push(table.clone());
            next
        });
        Memory::Table(id)
    }

    pub fn words(&mut self, values: Vec<u32>) -> Memory {
        self.table(Table::Words(values.into()))
    }

    pub fn bitboards(&mut self, values: Vec<u64>) -> Memory {
        self.table(Table::Bitboards(values.into()))
    }

    pub fn bytes(&mut self, values: Vec<u8>) -> Memory {
        self.table(Table::Bytes(values.into()))
    }

    /// More bytes of scratch memory; gives the index of the first, a multiple of 8.
    pub fn scratch(&mut self, bytes: u32) -> u32 {
        let first = self.scratch;
        self.scratch += bytes.next_multiple_of(8);
        first
    }

    /// More elements of state; gives the index of the first.
    pub fn state(&mut self, elements: u32) -> u32 {
        let first = self.state;
        self.state += elements;
        first
    }

    pub fn constant(&mut self, value: u64) -> Register {
        self.unary(Unary::Move, value)
    }

    /// A new register with this value.
    pub fn copy(&mut self, of: impl Into<Operand>) -> Register {
        self.unary(Unary::Move, of)
    }

    pub fn unary(&mut self, operator: Unary, of: impl Into<Operand>) -> Register {
        let to = self.register();
        self.push(Instruction::Unary { operator, to, of: of.into() });
        to
    }

    pub fn binary(&mut self, operator: Binary, left: Register, right: impl Into<Operand>) -> Register {
        let right = right.into();
        // Compilers of exported code warn of comparisons that never hold.
        let never = match operator {
            Binary::Less => [Operand::Constant(0), left.into()].contains(&right),
            Binary::LessSigned => right == left.into(),
            _ => false,
        };
        if never {
            return self.constant(0);
        }
        let to = self.register();
        self.push(Instruction::Binary { operator, to, left, right });
        to
    }

    /// Writes a register made earlier.
    pub fn set(&mut self, to: Register, of: impl Into<Operand>) {
        self.push(Instruction::Unary { operator: Unary::Move, to, of: of.into() });
    }

    /// `to` = `to` operator `right`.
    pub fn change(&mut self, to: Register, operator: Binary, right: impl Into<Operand>) {
        self.push(Instruction::Binary { operator, to, left: to, right: right.into() });
    }

    pub fn and(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::And, left, right)
    }

    pub fn and_not(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::AndNot, left, right)
    }

    pub fn or(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::Or, left, right)
    }

    pub fn xor(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::Xor, left, right)
    }

    pub fn add(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::Add, left, right)
    }

    pub fn equal(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::Equal, left, right)
    }

    pub fn not_equal(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::NotEqual, left, right)
    }

    pub fn shift_left(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::ShiftLeft, left, right)
    }

    pub fn shift_right(&mut self, left: Register, right: impl Into<Operand>) -> Register {
        self.binary(Binary::ShiftRight, left, right)
    }

    pub fn not(&mut self, of: Register) -> Register {
        self.unary(Unary::Not, of)
    }

    pub fn count_ones(&mut self, of: Register) -> Register {
        self.unary(Unary::CountOnes, of)
    }

    /// The lowest square of a bitboard; 64 if it is empty.
    pub fn lowest(&mut self, of: Register) -> Register {
        self.unary(Unary::TrailingZeros, of)
    }

    pub fn load(&mut self, memory: Memory, index: impl Into<Operand>) -> Register {
        let to = self.register();
        self.push(Instruction::Load { to, memory, index: index.into() });
        to
    }

    pub fn store(&mut self, memory: Memory, index: impl Into<Operand>, value: Register) {
        self.push(Instruction::Store { memory, index: index.into(), value });
    }

    /// The code of the piece on a square; 7 if there is none.
    pub fn code_on(&mut self, time: BoardTime, square: impl Into<Operand>) -> Register {
        self.load(Memory::Board(time, BoardField::Squares), square)
    }

    /// The bitboard of a code.
    pub fn by_code(&mut self, time: BoardTime, code: impl Into<Operand>) -> Register {
        self.load(Memory::Board(time, BoardField::ByCode), code)
    }

    /// The bitboard of a colour, 0 for White.
    pub fn by_color(&mut self, time: BoardTime, color: impl Into<Operand>) -> Register {
        self.load(Memory::Board(time, BoardField::ByColor), color)
    }

    pub fn occupied(&mut self, time: BoardTime) -> Register {
        self.load(Memory::Board(time, BoardField::Occupied), 0)
    }

    pub fn slide(&mut self, slider: Slider, square: Register, occupied: Register) -> Register {
        let to = self.register();
        self.push(Instruction::Slide { slider, to, square, occupied });
        to
    }

    pub fn select(&mut self, condition: Register, yes: impl Into<Operand>, no: impl Into<Operand>) -> Register {
        let to = self.register();
        self.push(Instruction::Select { to, condition, yes: yes.into(), no: no.into() });
        to
    }

    /// A loop over the squares of a bitboard.
    pub fn for_bits(&mut self, bits: Register, body: impl FnOnce(&mut Builder, Register)) {
        let mark = self.next;
        let square = self.register();
        let body = self.body(|builder| body(builder, square));
        self.push(Instruction::ForBits { square, bits, body });
        self.next = mark;
    }

    /// A loop over the numbers below `count`.
    pub fn for_range(&mut self, count: Register, body: impl FnOnce(&mut Builder, Register)) {
        let mark = self.next;
        let number = self.register();
        let body = self.body(|builder| body(builder, number));
        self.push(Instruction::ForRange { number, count, body });
        self.next = mark;
    }

    pub fn if_(&mut self, condition: Register, body: impl FnOnce(&mut Builder)) {
        let body = self.body(body);
        self.push(Instruction::If { condition, body, otherwise: Vec::new() });
    }

    /// `write` is told which of the two bodies it writes: whether the condition fails.
    pub fn if_else(&mut self, condition: Register, write: &mut dyn FnMut(&mut Builder, bool)) {
        let body = self.body(|builder| write(builder, false));
        let otherwise = self.body(|builder| write(builder, true));
        self.push(Instruction::If { condition, body, otherwise });
    }

    /// Instructions whose registers are used again afterwards.
    pub fn scope(&mut self, body: impl FnOnce(&mut Builder)) {
        let mark = self.next;
        body(self);
        self.next = mark;
    }

    /// Appends a row to each perspective's list of a kind.
    pub fn emit(&mut self, list: u8, rows: [Register; 2], condition: Option<Register>) {
        self.push(Instruction::Emit { list, rows: rows.map(Some), condition });
    }

    /// Appends a row to one perspective's list of a kind: 0 for White.
    pub fn emit_one(&mut self, list: u8, perspective: usize, row: Register, condition: Option<Register>) {
        let mut rows = [None; 2];
        rows[perspective] = Some(row);
        self.push(Instruction::Emit { list, rows, condition });
    }

    fn body(&mut self, body: impl FnOnce(&mut Builder)) -> Body {
        let mark = self.next;
        self.bodies.push(Vec::new());
        body(self);
        self.next = mark;
        self.bodies.pop().unwrap_or_default()
    }
}
