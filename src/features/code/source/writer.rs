//! Walks through a program and writes its lines.

use std::collections::HashMap;

use super::liveness::{Registers, live_after, live_after_run, writes_within, written};
use super::{BitLoop, Dialect, Function, Parameter};
use crate::features::code::form::{
    Binary, BoardField, BoardTime, Body, Instruction, Memory, Operand, Program, Register, Table, Unary,
};

/// What a register stands for.
#[derive(Clone, Debug)]
enum Meaning {
    Literal(u64),
    /// A variable by its number in [`Writer::variables`], and how deep the body is that declared it.
    Variable(usize, usize),
}

struct VariableText {
    name: String,
    is_changed: bool,
}

enum SourceLine {
    Text(String),
    Declaration {
        depth: usize,
        variable: usize,
        value: String,
    },
    /// A line that depends on whether a variable is read after it.
    Conditional {
        name: String,
        read: String,
        unread: Option<String>,
    },
}

pub(super) struct Writer<'a> {
    dialect: &'a dyn Dialect,
    program: &'a Program,
    repeats: bool,
    tables: &'a [String],
    lines: Vec<SourceLine>,
    variables: Vec<VariableText>,
    numbers: HashMap<&'static str, usize>,
    meanings: Vec<Option<Meaning>>,
    depth: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        dialect: &'a dyn Dialect,
        program: &'a Program,
        repeats: bool,
        tables: &'a [String],
    ) -> Writer<'a> {
        Writer {
            dialect,
            program,
            repeats,
            tables,
            lines: Vec::new(),
            variables: Vec::new(),
            numbers: HashMap::new(),
            meanings: vec![None; program.registers as usize],
            depth: 0,
        }
    }

    pub(super) fn function(mut self, name: &str) -> Function {
        let program = self.program;
        if self.repeats {
            let text = self.dialect.begin_repeats(Parameter::list(program, Program::ACTIVE).name());
            let read = self.indented(&text);
            self.lines.push(SourceLine::Conditional { name: "old_len".to_owned(), read, unread: None });
        }
        self.body(&program.body, &Registers::none(program));
        // From the end, since what is read later decides on a line.
        let mut texts: Vec<String> = Vec::new();
        for line in self.lines.iter().rev() {
            texts.extend(match line {
                SourceLine::Text(line) => Some(line.clone()),
                SourceLine::Declaration { depth, variable, value } => {
                    let VariableText { name, is_changed } = &self.variables[*variable];
                    Some(format!("{}{}", "    ".repeat(depth + 1), self.dialect.declare(name, value, *is_changed)))
                }
                SourceLine::Conditional { name, read, unread } => {
                    if texts.iter().any(|text| mentions(text, name)) {
                        Some(read.clone())
                    } else {
                        unread.clone()
                    }
                }
            });
        }
        let text: String = texts.iter().rev().map(|text| format!("{text}\n")).collect();
        let mut parameters = Parameter::of(program);
        parameters.retain(|parameter| match parameter {
            Parameter::Perspective => mentions(&text, "pov") || mentions(&text, "POV"),
            _ => mentions(&text, parameter.name()),
        });
        Function { text: format!("{}{text}}}\n", self.dialect.head(name, &parameters)), parameters }
    }

    fn line(&mut self, text: &str) {
        let text = self.indented(text);
        self.lines.push(SourceLine::Text(text));
    }

    fn indented(&self, text: &str) -> String {
        format!("{}{text}", "    ".repeat(self.depth + 1))
    }

    fn fresh(&mut self, base: &'static str) -> usize {
        let number = self.numbers.entry(base).or_default();
        *number += 1;
        let name = if *number == 1 { base.to_owned() } else { format!("{base}_{number}") };
        self.variables.push(VariableText { name, is_changed: false });
        self.variables.len() - 1
    }

    fn read(&self, register: Register) -> String {
        match &self.meanings[register.0 as usize] {
            Some(Meaning::Literal(value)) => self.dialect.literal(*value),
            Some(Meaning::Variable(variable, _)) => self.variables[*variable].name.clone(),
            None => self.dialect.literal(0),
        }
    }

    fn resolved(&self, operand: Operand) -> Operand {
        if let Operand::Register(register) = operand
            && let Some(Meaning::Literal(value)) = self.meanings[register.0 as usize]
        {
            return Operand::Constant(value);
        }
        operand
    }

    fn value(&self, operand: Operand) -> String {
        match operand {
            Operand::Register(register) => self.read(register),
            Operand::Constant(value) => self.dialect.literal(value),
        }
    }

    fn declare(&mut self, register: Register, base: &'static str, value: String) {
        let variable = self.fresh(base);
        self.lines.push(SourceLine::Declaration { depth: self.depth, variable, value });
        self.meanings[register.0 as usize] = Some(Meaning::Variable(variable, self.depth));
    }

    /// Writes a body. `escaping`: what is read after it.
    fn body(&mut self, body: &Body, escaping: &Registers) {
        let outer = self.meanings.clone();
        let live = live_after(body, escaping);
        for (at, instruction) in body.iter().enumerate() {
            match written(instruction) {
                // Nothing reads it.
                Some(to) if !live[at].contains(to) => {}
                Some(to) => {
                    let value = self.expression(instruction);
                    self.write(to, instruction, value, &body[at + 1..], escaping);
                }
                None => self.statement(instruction, &live[at]),
            }
        }
        self.meanings = outer;
    }

    fn write(
        &mut self,
        to: Register,
        instruction: &Instruction,
        value: String,
        rest: &[Instruction],
        escaping: &Registers,
    ) {
        let known = &self.meanings[to.0 as usize];
        if let Some(Meaning::Variable(variable, depth)) = known
            && *depth < self.depth
            && escaping.contains(to)
        {
            self.variables[*variable].is_changed = true;
            let text = self.dialect.assign(&self.variables[*variable].name, &value);
            self.line(&text);
            return;
        }
        if let Instruction::Unary { operator: Unary::Move, of, .. } = instruction
            && let Operand::Constant(value) = self.resolved(*of)
        {
            let next = rest.iter().position(|other| written(other) == Some(to)).unwrap_or(rest.len());
            if !escaping.contains(to) && !rest[..next].iter().any(|other| writes_within(other, to)) {
                self.meanings[to.0 as usize] = Some(Meaning::Literal(value));
                return;
            }
        }
        self.declare(to, base_name(instruction, self.program), value);
    }

    fn expression(&mut self, instruction: &Instruction) -> String {
        match instruction {
            Instruction::Binary { operator, left, right, .. } => {
                let right = self.resolved(*right);
                self.dialect.binary(*operator, &self.read(*left), right, &self.value(right))
            }
            Instruction::Unary { operator, of, .. } => self.dialect.unary(*operator, &self.value(*of)),
            Instruction::Load { memory, index, .. } => {
                match memory {
                    Memory::Board(time, BoardField::Occupied) => {
                        return self.dialect.field(board_name(*time), "occupied");
                    }
                    Memory::Board(time, BoardField::Squares) => {
                        return self.dialect.code_on(board_name(*time), &self.value(*index));
                    }
                    _ => {}
                }
                let width = memory.width(self.program).bytes();
                self.dialect.element(&self.array(*memory), &self.value(*index), width)
            }
            Instruction::Slide { slider, square, occupied, .. } => {
                self.dialect.slide(*slider, &self.read(*square), &self.read(*occupied))
            }
            Instruction::Select { condition, yes, no, .. } => {
                self.dialect.select(&self.read(*condition), &self.value(*yes), &self.value(*no))
            }
            _ => String::new(),
        }
    }

    fn array(&self, memory: Memory) -> String {
        match memory {
            Memory::Board(time, field) => {
                let field = match field {
                    BoardField::ByCode => "by_code",
                    BoardField::ByColor => "by_color",
                    BoardField::Squares | BoardField::Occupied => "occupied",
                };
                self.dialect.field(board_name(time), field)
            }
            Memory::Change => Parameter::Change.name().to_owned(),
            Memory::Table(id) => self.tables[id.0 as usize].clone(),
            Memory::Scratch => Parameter::Scratch.name().to_owned(),
            Memory::StateBefore => Parameter::StateBefore.name().to_owned(),
            Memory::StateAfter => Parameter::StateAfter.name().to_owned(),
        }
    }

    /// `live`: what is read after it.
    fn statement(&mut self, instruction: &Instruction, live: &Registers) {
        self.declare_results(instruction, live);
        match instruction {
            Instruction::Store { memory, index, value } => {
                let width = memory.width(self.program).bytes();
                let text = self.dialect.store(&self.array(*memory), &self.value(*index), &self.read(*value), width);
                self.line(&text);
            }
            Instruction::ForBits { square, bits, body } => {
                let bits = self.read(*bits);
                let left = self.fresh("left");
                let variable = self.fresh("square");
                let [left, name] = [left, variable].map(|variable| self.variables[variable].name.clone());
                let BitLoop { heads, square: read, advance } = self.dialect.for_bits(&left, &bits, &name);
                heads.iter().for_each(|head| self.line(head));
                self.depth += 1;
                let read = self.indented(&read);
                self.lines.push(SourceLine::Conditional { name, read, unread: None });
                advance.iter().for_each(|advance| self.line(advance));
                self.depth -= 1;
                self.loop_body(*square, variable, body, live);
            }
            Instruction::ForRange { number, count, body } => {
                let count = self.read(*count);
                let variable = self.fresh("number");
                let name = self.variables[variable].name.clone();
                let [read, unread] = [self.dialect.for_range(&name, &count), self.dialect.repeat(&name, &count)];
                let [read, unread] = [read, unread].map(|line| self.indented(&line));
                self.lines.push(SourceLine::Conditional { name, read, unread: Some(unread) });
                self.loop_body(*number, variable, body, live);
            }
            Instruction::If { condition, body, otherwise } => {
                let head = self.dialect.if_(&self.read(*condition));
                self.line(&head);
                self.inner(body, live);
                if !otherwise.is_empty() {
                    let head = self.dialect.otherwise();
                    self.line(&head);
                    self.inner(otherwise, live);
                }
                self.line("}");
            }
            Instruction::Emit { list, rows, condition } => {
                let condition = condition.map(|condition| self.read(condition));
                let rows = rows.map(|row| row.map(|row| self.read(row)));
                self.emit(*list, rows, condition.as_deref());
            }
            _ => {}
        }
    }

    fn emit(&mut self, kind: u8, rows: [Option<String>; 2], condition: Option<&str>) {
        let list = Parameter::list(self.program, kind).name();
        let append = |row: &str| self.dialect.append(list, row, condition, self.repeats);
        let lines = match rows {
            [Some(white), Some(black)] if white == black => vec![append(&white)],
            [Some(white), Some(black)] => vec![append(&self.dialect.by_perspective(&[white, black]))],
            [white, black] => {
                let pov = usize::from(white.is_none());
                let row = white.or(black).unwrap_or_default();
                vec![self.dialect.if_perspective(pov), format!("    {}", append(&row)), "}".to_owned()]
            }
        };
        for line in lines {
            self.line(&line);
        }
    }

    fn loop_body(&mut self, counter: Register, variable: usize, body: &Body, live: &Registers) {
        let outer = self.meanings[counter.0 as usize].clone();
        self.meanings[counter.0 as usize] = Some(Meaning::Variable(variable, self.depth + 1));
        self.inner(body, &live_after_run(body, live));
        self.meanings[counter.0 as usize] = outer;
        self.line("}");
    }

    fn inner(&mut self, body: &Body, escaping: &Registers) {
        self.depth += 1;
        self.body(body, escaping);
        self.depth -= 1;
    }

    /// Declares what is read after an instruction and written first in its bodies.
    fn declare_results(&mut self, instruction: &Instruction, live: &Registers) {
        for register in live.iter().collect::<Vec<_>>() {
            if !writes_within(instruction, register) {
                continue;
            }
            if self.meanings[register.0 as usize].is_none() {
                self.declare(register, "value", self.dialect.literal(0));
            }
        }
    }
}

const fn board_name(time: BoardTime) -> &'static str {
    match time {
        BoardTime::Before => Parameter::Before.name(),
        BoardTime::After => Parameter::After.name(),
    }
}

/// What the value of an instruction is called.
fn base_name(instruction: &Instruction, program: &Program) -> &'static str {
    match instruction {
        Instruction::Binary { operator, .. } => match operator {
            Binary::Equal | Binary::NotEqual | Binary::Less | Binary::LessSigned => "holds",
            Binary::And | Binary::Or | Binary::Xor | Binary::AndNot => "bits",
            Binary::ShiftLeft | Binary::ShiftRight => "shifted",
            Binary::Add | Binary::Subtract | Binary::Multiply => "sum",
        },
        Instruction::Unary { operator, .. } => match operator {
            Unary::Move => "value",
            Unary::Not => "others",
            Unary::CountOnes => "count",
            Unary::TrailingZeros => "lowest",
            Unary::LeadingZeros => "zeros",
        },
        Instruction::Load { memory, .. } => match memory {
            Memory::Board(_, BoardField::Squares) => "piece",
            Memory::Board(_, BoardField::ByCode | BoardField::ByColor) => "pieces",
            Memory::Board(_, BoardField::Occupied) => "occupied",
            Memory::Change => "change_state",
            Memory::Table(id) => match program.tables[id.0 as usize] {
                Table::Bytes(_) => "entry",
                Table::Words(_) => "row",
                Table::Bitboards(_) => "mask",
            },
            Memory::Scratch => "byte",
            Memory::StateBefore | Memory::StateAfter => "kept",
        },
        Instruction::Slide { .. } => "attacked",
        Instruction::Select { .. } => "chosen",
        _ => "value",
    }
}

/// Whether a name occurs in a text as a whole word.
#[must_use]
pub fn mentions(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}
