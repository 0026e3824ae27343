//! Random valid programs, over all instructions and memories.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::features::code::{
    Binary, BoardField, BoardTime, Builder, Instruction, Memory, Operand, Program, Register, Slider, Unary,
};

const BINARY: [Binary; 13] = [
    Binary::And,
    Binary::Or,
    Binary::Xor,
    Binary::AndNot,
    Binary::Add,
    Binary::Subtract,
    Binary::Multiply,
    Binary::ShiftLeft,
    Binary::ShiftRight,
    Binary::Equal,
    Binary::NotEqual,
    Binary::Less,
    Binary::LessSigned,
];

const UNARY: [Unary; 5] = [Unary::Move, Unary::Not, Unary::CountOnes, Unary::TrailingZeros, Unary::LeadingZeros];

/// Bounds the work of loops in loops.
const MOST_RUNS: usize = 300;

const SCRATCH: u32 = 16;
const STATE: u32 = 4;

/// A memory and its number of elements, a power of two.
type Place = (Memory, u64);

struct Generator<'a> {
    rng: &'a mut ChaCha8Rng,
    readable: Vec<Register>,
    writable: Vec<Register>,
    sources: Vec<Place>,
    targets: Vec<Place>,
    lists: u8,
    /// By kind: only rows for both perspectives.
    paired: Vec<bool>,
    depth: usize,
    /// Runs of the innermost body, at most.
    runs: usize,
    /// Rows that a list may get so far.
    rows: usize,
}

/// A program of about this many instructions.
pub fn random_program(rng: &mut ChaCha8Rng, length: usize) -> Program {
    let mut builder = Builder::default();
    // Without memory of its own.
    let is_bare: bool = rng.random();
    if !is_bare {
        builder.scratch(SCRATCH);
        builder.state(STATE);
    }
    let mut sources = sources(&mut builder, rng);
    let mut targets = vec![(Memory::Scratch, u64::from(SCRATCH)), (Memory::StateAfter, u64::from(STATE))];
    if is_bare {
        sources.retain(|(memory, _)| ![Memory::Scratch, Memory::StateBefore].contains(memory));
        targets.clear();
    }
    let lists = rng.random_range(1..=2);
    let paired = (0..lists).map(|_| rng.random()).collect();
    let first = builder.constant(rng.random());
    let mut generator = Generator {
        rng,
        readable: vec![first],
        writable: vec![first],
        sources,
        targets,
        lists,
        paired,
        depth: 0,
        runs: 1,
        rows: 0,
    };
    generator.body(&mut builder, length);
    let rows = generator.rows as u32;
    if !is_bare {
        let bytes = builder.constant(u64::from(SCRATCH));
        let zero = builder.constant(0);
        builder.for_range(bytes, |builder, byte| builder.store(Memory::Scratch, byte, zero));
    }
    builder.finish(lists, rows)
}

fn sources(builder: &mut Builder, rng: &mut ChaCha8Rng) -> Vec<Place> {
    let mut sources = vec![
        (Memory::Change, 4),
        (Memory::Scratch, u64::from(SCRATCH)),
        (Memory::StateBefore, u64::from(STATE)),
        (builder.bytes((0..32).map(|_| rng.random()).collect()), 32),
        (builder.words((0..64).map(|_| rng.random()).collect()), 64),
        (builder.bitboards((0..8).map(|_| rng.random()).collect()), 8),
    ];
    for time in [BoardTime::Before, BoardTime::After] {
        let fields =
            [(BoardField::Squares, 64), (BoardField::ByCode, 16), (BoardField::ByColor, 2), (BoardField::Occupied, 1)];
        sources.extend(fields.map(|(field, elements)| (Memory::Board(time, field), elements)));
    }
    sources
}

impl Generator<'_> {
    fn body(&mut self, builder: &mut Builder, length: usize) {
        let readable = self.readable.len();
        let writable = self.writable.clone();
        let mut left = length;
        while left > 0 {
            let part = self.rng.random_range(1..=left);
            let is_nested = self.depth < 4 && part > 3 && self.rng.random_ratio(1, 3);
            if is_nested {
                self.nested(builder, part - 1);
                left -= part;
            } else {
                self.instruction(builder);
                left -= 1;
            }
        }
        self.readable.truncate(readable);
        self.writable = writable;
    }

    fn nested(&mut self, builder: &mut Builder, length: usize) {
        self.depth += 1;
        let runs = self.runs;
        match self.rng.random_range(0..4) {
            0 if runs * 8 <= MOST_RUNS => {
                // Few bits, wherever they are.
                let mask = (0..8).fold(0, |mask, _| mask | 1u64 << self.rng.random_range(0..64));
                let any = self.any();
                let bits = builder.and(any, mask);
                self.runs *= 8;
                builder.for_bits(bits, |builder, square| {
                    self.readable.push(square);
                    // The loop has a copy of its bits.
                    self.writable.push(bits);
                    self.body(builder, length);
                    self.readable.pop();
                    self.writable.pop();
                });
                self.readable.push(bits);
            }
            1 if runs * 4 <= MOST_RUNS => {
                let any = self.any();
                let count = builder.binary(Binary::ShiftRight, any, 62);
                let count = if self.rng.random() { count } else { builder.constant(3) };
                self.runs *= 4;
                builder.for_range(count, |builder, number| {
                    self.readable.push(number);
                    self.body(builder, length);
                    self.readable.pop();
                });
                self.readable.push(count);
            }
            2 => {
                let condition = self.any();
                builder.if_(condition, |builder| self.body(builder, length));
            }
            _ => {
                let condition = self.condition(builder);
                builder.if_else(condition, &mut |builder, is_other| {
                    self.body(builder, if is_other { length - length / 2 } else { length / 2 });
                });
            }
        }
        self.runs = runs;
        self.depth -= 1;
    }

    fn instruction(&mut self, builder: &mut Builder) {
        let made = match self.rng.random_range(0..12) {
            0..3 => {
                let operator = BINARY[self.rng.random_range(0..BINARY.len())];
                let left = self.any();
                let right = self.operand();
                if self.rng.random_ratio(1, 4) {
                    let to = self.writable[self.rng.random_range(0..self.writable.len())];
                    builder.push(Instruction::Binary { operator, to, left, right });
                    return;
                }
                builder.binary(operator, left, right)
            }
            3 => {
                let operator = UNARY[self.rng.random_range(0..UNARY.len())];
                let of = self.operand();
                builder.unary(operator, of)
            }
            4..6 => {
                let sources = self.sources.clone();
                let (memory, index) = self.element(builder, &sources);
                builder.load(memory, index)
            }
            6 if !self.targets.is_empty() => {
                let targets = self.targets.clone();
                let (memory, index) = self.element(builder, &targets);
                builder.store(memory, index, self.any());
                return;
            }
            7 => {
                let slider = if self.rng.random() { Slider::Bishop } else { Slider::Rook };
                let any = self.any();
                let square = builder.and(any, 63);
                builder.slide(slider, square, self.any())
            }
            8 => {
                let condition = self.any();
                let yes = self.operand();
                builder.select(condition, yes, self.operand())
            }
            9 => {
                let value = self.operand();
                builder.set(self.writable[self.rng.random_range(0..self.writable.len())], value);
                return;
            }
            _ => return self.emit(builder),
        };
        self.readable.push(made);
        self.writable.push(made);
    }

    fn emit(&mut self, builder: &mut Builder) {
        let list = self.rng.random_range(0..self.lists);
        let condition = if self.rng.random() { Some(self.condition(builder)) } else { None };
        if self.paired[usize::from(list)] || self.rng.random() {
            builder.emit(list, [self.any(), self.any()], condition);
        } else {
            builder.emit_one(list, self.rng.random_range(0..2), self.any(), condition);
        }
        self.rows += self.runs;
    }

    fn any(&mut self) -> Register {
        self.readable[self.rng.random_range(0..self.readable.len())]
    }

    fn operand(&mut self) -> Operand {
        match self.rng.random_range(0..6) {
            0 => self.rng.random::<u64>().into(),
            1 => self.rng.random_range(0..70u64).into(),
            _ => self.any().into(),
        }
    }

    /// 1 or 0.
    fn condition(&mut self, builder: &mut Builder) -> Register {
        let any = self.any();
        if self.rng.random() { builder.and(any, 1) } else { builder.binary(Binary::Less, any, self.operand()) }
    }

    fn element(&mut self, builder: &mut Builder, places: &[Place]) -> (Memory, Operand) {
        let (memory, elements) = places[self.rng.random_range(0..places.len())];
        if self.rng.random_ratio(1, 3) {
            return (memory, self.rng.random_range(0..elements).into());
        }
        let any = self.any();
        (memory, builder.and(any, elements - 1).into())
    }
}
