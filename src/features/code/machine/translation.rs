//! From programs to Cranelift's intermediate form.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::{FunctionBuilder, Variable};

use super::{CallMemory, MOST_PIECES, REFUSED, is_simple};
use crate::chess::PieceBoard;
use crate::features::Delta;
use crate::features::code::form::{
    Binary, BoardField, BoardTime, Body, Instruction, Memory, Operand, Paired, Program, Register, Slider, Table, Unary,
    Width,
};
use crate::features::code::magics::{Magic, magics};
use crate::features::code::row_list::RowList;

/// Where the next rows go in White's and Black's lists of a kind.
#[derive(Copy, Clone)]
enum Lists {
    /// Each list's next row's address.
    Each([Variable; 2]),
    /// That of White's, and the distance from it to Black's: few registers.
    Distant(Variable, Value),
    /// Where the run's first rows go, and the number of rows in either since: few instructions.
    Counted([Value; 2], Variable),
}

pub(super) struct Translation<'a, 'b> {
    builder: &'a mut FunctionBuilder<'b>,
    program: &'a Program,
    registers: Vec<Variable>,
    boards: [Value; 2],
    change: Value,
    /// Where each perspective's lists are.
    outputs: [Value; 2],
    state_before: Value,
    state_after: Value,
    scratch: Value,
    lists: Vec<Lists>,
}

/// Memory that is written during a call.
const WRITTEN: MemFlagsData = MemFlagsData::trusted();
const READ_ONLY: MemFlagsData = MemFlagsData::trusted().with_readonly();

impl<'a, 'b> Translation<'a, 'b> {
    pub(super) fn begin(builder: &'a mut FunctionBuilder<'b>, program: &'a Program) -> Translation<'a, 'b> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let [before, after, change, white, black] = [0, 1, 2, 3, 4].map(|number| builder.block_params(entry)[number]);
        let memory = builder.block_params(entry).get(5).copied();
        let mut field = |offset: usize| match memory {
            Some(memory) => builder.ins().load(I64, READ_ONLY.with_can_move(), memory, offset as i32),
            None => builder.ins().iconst(I64, 0),
        };
        let state_before = field(offset_of!(CallMemory, state_before));
        let state_after = field(offset_of!(CallMemory, state_after));
        let scratch = field(offset_of!(CallMemory, scratch));
        let outputs = [white, black];
        let registers = (0..program.registers).map(|_| builder.declare_var(I64)).collect();
        let boards = [before, after];
        let lists = Vec::new();
        Translation { builder, program, registers, boards, change, outputs, state_before, state_after, scratch, lists }
    }

    pub(super) fn function(&mut self) {
        if self.program.rows_on_any_board().is_none() {
            self.refuse_crowded_boards();
        }
        // Where rows are appended, the end is moved later.
        let (field, flags) = match self.program.lists {
            1 => (RowList::END_OFFSET, WRITTEN),
            _ => (RowList::START_OFFSET, READ_ONLY.with_can_move()),
        };
        for (kind, paired) in self.program.paired().into_iter().enumerate() {
            let ends = self.outputs.map(|output| {
                let offset = self.list_offset(kind) + field;
                self.builder.ins().load(I64, flags, output, offset as i32)
            });
            let lists = match paired {
                Paired::Separate => Lists::Each(ends.map(|end| self.variable(end))),
                Paired::InLoops => Lists::Distant(self.variable(ends[0]), self.builder.ins().isub(ends[1], ends[0])),
                Paired::Straight => {
                    let none = self.builder.ins().iconst(I64, 0);
                    Lists::Counted(ends, self.variable(none))
                }
            };
            self.lists.push(lists);
        }
        // The end of a list is stored as soon as it is known, so that fewer values are kept at a time.
        let last = self.program.last_emits();
        let never = last.iter().enumerate().filter(|(_, last)| last.is_none());
        never.for_each(|(kind, _)| self.end_list(kind));
        for (number, instruction) in self.program.body.iter().enumerate() {
            self.instruction(instruction);
            let ended = last.iter().enumerate().filter(|(_, last)| **last == Some(number));
            ended.for_each(|(kind, _)| self.end_list(kind));
        }
        if is_simple(self.program) {
            self.builder.ins().return_(&[]);
        } else {
            let done = self.builder.ins().iconst(I64, 0);
            self.builder.ins().return_(&[done]);
        }
    }

    fn variable(&mut self, value: Value) -> Variable {
        let variable = self.builder.declare_var(I64);
        self.builder.def_var(variable, value);
        variable
    }

    /// The addresses of the next row of White's and Black's.
    fn ends(&mut self, lists: Lists) -> [Value; 2] {
        match lists {
            Lists::Each(next) => next.map(|next| self.builder.use_var(next)),
            Lists::Distant(white, distance) => {
                let white = self.builder.use_var(white);
                [white, self.builder.ins().iadd(white, distance)]
            }
            Lists::Counted(starts, rows) => {
                let rows = self.builder.use_var(rows);
                let bytes = self.builder.ins().ishl_imm_u(rows, 2);
                starts.map(|start| self.builder.ins().iadd(start, bytes))
            }
        }
    }

    fn end_list(&mut self, kind: usize) {
        let offset = self.list_offset(kind) + RowList::END_OFFSET;
        for (end, output) in self.ends(self.lists[kind]).into_iter().zip(self.outputs) {
            self.builder.ins().store(WRITTEN, end, output, offset as i32);
        }
    }

    /// Where a perspective's list of a kind is: an encoder has one, a delta those of a [`Delta`].
    const fn list_offset(&self, kind: usize) -> usize {
        match (self.program.lists, kind as u8) {
            (0 | 1, _) => 0,
            (_, Program::ADDED) => offset_of!(Delta, added),
            _ => offset_of!(Delta, removed),
        }
    }

    fn refuse_crowded_boards(&mut self) {
        let most = self.builder.ins().iconst(I64, MOST_PIECES);
        let [before, after] = self.boards.map(|board| {
            let occupied =
                self.builder.ins().load(I64, READ_ONLY.with_can_move(), board, PieceBoard::OCCUPIED_OFFSET as i32);
            self.builder.ins().popcnt(occupied)
        });
        // An encoder's program reads the board before only, and a change may add pieces.
        let pieces = self.builder.ins().umax(before, after);
        let crowded = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, pieces, most);
        let [refuse, run] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(refuse);
        self.builder.ins().brif(crowded, refuse, &[], run, &[]);
        self.begin_block(refuse);
        let refused = self.builder.ins().iconst(I64, REFUSED as i64);
        self.builder.ins().return_(&[refused]);
        self.begin_block(run);
    }

    fn begin_block(&mut self, block: Block) {
        self.builder.seal_block(block);
        self.builder.switch_to_block(block);
    }

    fn read(&mut self, register: Register) -> Value {
        self.builder.use_var(self.registers[register.0 as usize])
    }

    fn write(&mut self, register: Register, value: Value) {
        self.builder.def_var(self.registers[register.0 as usize], value);
    }

    fn value(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register) => self.read(register),
            Operand::Constant(value) => self.builder.ins().iconst(I64, value as i64),
        }
    }

    fn body(&mut self, body: &Body) {
        for instruction in body {
            self.instruction(instruction);
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        match *instruction {
            Instruction::Binary { operator, to, left, right } => {
                let left = self.read(left);
                let right = self.value(right);
                let value = self.binary(operator, left, right);
                self.write(to, value);
            }
            Instruction::Unary { operator, to, of } => {
                let of = self.value(of);
                let value = match operator {
                    Unary::Move => of,
                    Unary::Not => self.builder.ins().bnot(of),
                    Unary::CountOnes => self.builder.ins().popcnt(of),
                    Unary::TrailingZeros => self.builder.ins().ctz(of),
                    Unary::LeadingZeros => self.builder.ins().clz(of),
                };
                self.write(to, value);
            }
            Instruction::Load { to, memory, index } => {
                let value = self.load(memory, index);
                self.write(to, value);
            }
            Instruction::Store { memory, index, value } => self.store(memory, index, value),
            Instruction::Slide { slider, to, square, occupied } => {
                let square = self.read(square);
                let occupied = self.read(occupied);
                let value = self.slide(slider, square, occupied);
                self.write(to, value);
            }
            Instruction::Select { to, condition, yes, no } => {
                let condition = self.read(condition);
                let yes = self.value(yes);
                let no = self.value(no);
                let value = self.builder.ins().select(condition, yes, no);
                self.write(to, value);
            }
            Instruction::ForBits { square, bits, ref body } => self.for_bits(square, bits, body),
            Instruction::ForRange { number, count, ref body } => self.for_range(number, count, body),
            Instruction::If { condition, ref body, ref otherwise } => self.if_(condition, body, otherwise),
            Instruction::Emit { list, rows, condition } => self.emit(usize::from(list), rows, condition),
        }
    }

    fn binary(&mut self, operator: Binary, left: Value, right: Value) -> Value {
        let ins = self.builder.ins();
        let condition = match operator {
            Binary::And => return ins.band(left, right),
            Binary::Or => return ins.bor(left, right),
            Binary::Xor => return ins.bxor(left, right),
            Binary::AndNot => return ins.band_not(left, right),
            Binary::Add => return ins.iadd(left, right),
            Binary::Subtract => return ins.isub(left, right),
            Binary::Multiply => return ins.imul(left, right),
            Binary::ShiftLeft => return ins.ishl(left, right),
            Binary::ShiftRight => return ins.ushr(left, right),
            Binary::Equal => IntCC::Equal,
            Binary::NotEqual => IntCC::NotEqual,
            Binary::Less => IntCC::UnsignedLessThan,
            Binary::LessSigned => IntCC::SignedLessThan,
        };
        let holds = ins.icmp(condition, left, right);
        self.builder.ins().uextend(I64, holds)
    }

    /// Where a memory begins: a pointer and an offset from it in bytes.
    fn start(&mut self, memory: Memory) -> (Value, usize) {
        match memory {
            Memory::Board(time, field) => {
                let board = match time {
                    BoardTime::Before => self.boards[0],
                    BoardTime::After => self.boards[1],
                };
                let offset = match field {
                    BoardField::Squares => PieceBoard::SQUARES_OFFSET,
                    BoardField::ByCode => PieceBoard::BY_CODE_OFFSET,
                    BoardField::ByColor => PieceBoard::BY_COLOR_OFFSET,
                    BoardField::Occupied => PieceBoard::OCCUPIED_OFFSET,
                };
                (board, offset)
            }
            Memory::Change => (self.change, 0),
            Memory::Table(id) => {
                let address = match &self.program.tables[id.0 as usize] {
                    Table::Bytes(values) => values.as_ptr().expose_provenance(),
                    Table::Words(values) => values.as_ptr().expose_provenance(),
                    Table::Bitboards(values) => values.as_ptr().expose_provenance(),
                };
                (self.builder.ins().iconst(I64, address as i64), 0)
            }
            Memory::Scratch => (self.scratch, 0),
            Memory::StateBefore => (self.state_before, 0),
            Memory::StateAfter => (self.state_after, 0),
        }
    }

    fn address(&mut self, memory: Memory, index: Operand) -> (Value, i32) {
        let (start, offset) = self.start(memory);
        let bytes = memory.width(self.program).bytes();
        match index {
            Operand::Constant(index) => (start, (offset + index as usize * bytes) as i32),
            Operand::Register(index) => {
                let index = self.read(index);
                let distance = self.builder.ins().ishl_imm_u(index, i64::from(bytes.trailing_zeros()));
                (self.builder.ins().iadd(start, distance), offset as i32)
            }
        }
    }

    fn load(&mut self, memory: Memory, index: Operand) -> Value {
        let (pointer, offset) = self.address(memory, index);
        let flags = match (memory, index) {
            (Memory::Scratch, _) => WRITTEN,
            // Inside of its memory wherever it is read, so it may be read earlier.
            (_, Operand::Constant(_)) => READ_ONLY.with_can_move(),
            _ => READ_ONLY,
        };
        let ins = self.builder.ins();
        match memory.width(self.program) {
            Width::One => ins.uload8(I64, flags, pointer, offset),
            Width::Two => ins.uload16(I64, flags, pointer, offset),
            Width::Four => ins.uload32(flags, pointer, offset),
            Width::Eight => ins.load(I64, flags, pointer, offset),
        }
    }

    fn store(&mut self, memory: Memory, index: Operand, value: Register) {
        let (pointer, offset) = self.address(memory, index);
        let value = self.read(value);
        let ins = self.builder.ins();
        match memory.width(self.program) {
            Width::One => ins.istore8(WRITTEN, value, pointer, offset),
            Width::Two => ins.istore16(WRITTEN, value, pointer, offset),
            Width::Four => ins.istore32(WRITTEN, value, pointer, offset),
            Width::Eight => ins.store(WRITTEN, value, pointer, offset),
        };
    }

    fn slide(&mut self, slider: Slider, square: Value, occupied: Value) -> Value {
        let start = magics(slider).as_ptr().expose_provenance();
        let start = self.builder.ins().iconst(I64, start as i64);
        let distance = self.builder.ins().ishl_imm_u(square, i64::from(Magic::BYTES.trailing_zeros()));
        let magic = self.builder.ins().iadd(start, distance);
        let mut field = |offset: usize| self.builder.ins().load(I64, READ_ONLY, magic, offset as i32);
        let mask = field(Magic::MASK_OFFSET);
        let factor = field(Magic::FACTOR_OFFSET);
        let table = field(Magic::TABLE_OFFSET);
        let shift = field(Magic::SHIFT_OFFSET);
        let relevant = self.builder.ins().band(occupied, mask);
        let product = self.builder.ins().imul(relevant, factor);
        let index = self.builder.ins().ushr(product, shift);
        let distance = self.builder.ins().ishl_imm_u(index, i64::from(size_of::<u64>().trailing_zeros()));
        let element = self.builder.ins().iadd(table, distance);
        self.builder.ins().load(I64, READ_ONLY, element, 0)
    }

    fn for_bits(&mut self, square: Register, bits: Register, body: &Body) {
        let all = self.read(bits);
        let [head, exit] = [(); 2].map(|()| self.builder.create_block());
        // A parameter of the block: variables cost time in proportion to the blocks of the whole function.
        let now = self.builder.append_block_param(head, I64);
        self.builder.ins().brif(all, head, &[BlockArg::from(all)], exit, &[]);
        self.builder.switch_to_block(head);
        let lowest = self.builder.ins().ctz(now);
        self.write(square, lowest);
        let less = self.builder.ins().iadd_imm_s(now, -1);
        let others = self.builder.ins().band(now, less);
        self.body(body);
        self.builder.ins().brif(others, head, &[BlockArg::from(others)], exit, &[]);
        self.builder.seal_block(head);
        self.begin_block(exit);
    }

    fn for_range(&mut self, number: Register, count: Register, body: &Body) {
        let zero = self.builder.ins().iconst(I64, 0);
        self.write(number, zero);
        let count = self.read(count);
        let [head, exit] = [(); 2].map(|()| self.builder.create_block());
        self.builder.ins().brif(count, head, &[], exit, &[]);
        self.builder.switch_to_block(head);
        self.body(body);
        let now = self.read(number);
        let next = self.builder.ins().iadd_imm_s(now, 1);
        self.write(number, next);
        let again = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, count);
        self.builder.ins().brif(again, head, &[], exit, &[]);
        self.builder.seal_block(head);
        self.begin_block(exit);
    }

    fn if_(&mut self, condition: Register, body: &Body, otherwise: &Body) {
        let condition = self.read(condition);
        let none: &[BlockArg] = &[];
        let [then, exit] = [(); 2].map(|()| self.builder.create_block());
        let other = if otherwise.is_empty() { exit } else { self.builder.create_block() };
        self.builder.ins().brif(condition, then, none, other, none);
        self.begin_block(then);
        self.body(body);
        self.builder.ins().jump(exit, none);
        if !otherwise.is_empty() {
            self.begin_block(other);
            self.body(otherwise);
            self.builder.ins().jump(exit, none);
        }
        self.begin_block(exit);
    }

    fn emit(&mut self, kind: usize, rows: [Option<Register>; 2], condition: Option<Register>) {
        let lists = self.lists[kind];
        let ends = self.ends(lists);
        for (row, end) in rows.into_iter().zip(ends) {
            let Some(row) = row else { continue };
            let row = self.read(row);
            self.builder.ins().istore32(WRITTEN, row, end, 0);
        }
        let more = match condition {
            Some(condition) => self.read(condition),
            None => self.builder.ins().iconst(I64, 1),
        };
        let bytes = self.builder.ins().ishl_imm_u(more, 2);
        match lists {
            Lists::Each(next) => {
                for (perspective, next) in next.into_iter().enumerate() {
                    if rows[perspective].is_some() {
                        let end = self.builder.ins().iadd(ends[perspective], bytes);
                        self.builder.def_var(next, end);
                    }
                }
            }
            Lists::Distant(white, _) => {
                let end = self.builder.ins().iadd(ends[0], bytes);
                self.builder.def_var(white, end);
            }
            Lists::Counted(_, count) => {
                let before = self.builder.use_var(count);
                let after = self.builder.ins().iadd(before, more);
                self.builder.def_var(count, after);
            }
        }
    }
}
