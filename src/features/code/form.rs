//! The lowered form: structured code over 64-bit registers, without calls and without jumps.
//!
//! A [`Program`] reads boards in the layout of [`PieceBoard`](crate::chess::PieceBoard) and emits rows into lists, one
//! list of each kind for White's and one for Black's perspective. An encoder has one kind of list, the active rows of
//! [`BoardTime::Before`]; a delta has two, [`Program::ADDED`] and [`Program::REMOVED`], between the boards before and
//! after a change.

use std::collections::BTreeSet;
use std::sync::Arc;

/// A register of 64 bits. Only a register that was written may be read.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

/// A register or a constant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    Register(Register),
    Constant(u64),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Binary {
    And,
    Or,
    Xor,
    /// left & !right
    AndNot,
    /// Wraps around, like `Subtract` and `Multiply`.
    Add,
    Subtract,
    Multiply,
    /// By right modulo 64, as `ShiftRight`, which shifts zeros in.
    ShiftLeft,
    ShiftRight,
    /// 1 or 0, like all comparisons.
    Equal,
    NotEqual,
    /// Of unsigned numbers.
    Less,
    /// Of numbers in two's complement.
    LessSigned,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unary {
    Move,
    Not,
    CountOnes,
    /// 64 for 0, as `LeadingZeros`.
    TrailingZeros,
    LeadingZeros,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Slider {
    Bishop,
    Rook,
}

/// Bytes of an element in memory. Loads extend it by zeros, stores cut it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Width {
    One,
    Two,
    Four,
    Eight,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoardTime {
    Before,
    After,
}

/// A field of a [`PieceBoard`](crate::chess::PieceBoard).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoardField {
    /// 64 codes of one byte, by square; 7 where no piece stands.
    Squares,
    /// 16 bitboards.
    ByCode,
    /// 2 bitboards: White's pieces and Black's.
    ByColor,
    /// One bitboard, at index 0.
    Occupied,
}

/// What a load or store refers to: an array, whose index counts elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    Board(BoardTime, BoardField),
    /// Four elements of two bytes, code · 64 + square or [`BoardChange::NO_PIECE`](crate::chess::BoardChange::NO_PIECE):
    /// two pieces removed, then two added.
    Change,
    Table(TableId),
    /// [`Program::scratch`]: bytes that are zero at the start; the program leaves them zero.
    Scratch,
    /// [`Program::state`] elements of eight bytes that belong to a board: what a program keeps from move to move.
    StateBefore,
    /// May be written only.
    StateAfter,
}

/// Position in [`Program::tables`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A constant array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Bytes(Arc<[u8]>),
    /// Elements of four bytes.
    Words(Arc<[u32]>),
    /// Elements of eight bytes.
    Bitboards(Arc<[u64]>),
}

pub type Body = Vec<Instruction>;

#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    Binary {
        operator: Binary,
        to: Register,
        left: Register,
        right: Operand,
    },
    Unary {
        operator: Unary,
        to: Register,
        of: Operand,
    },
    Load {
        to: Register,
        memory: Memory,
        index: Operand,
    },
    /// Into `Scratch` or `StateAfter`.
    Store {
        memory: Memory,
        index: Operand,
        value: Register,
    },
    /// The squares that a slider on `square` attacks among occupied squares.
    Slide {
        slider: Slider,
        to: Register,
        square: Register,
        occupied: Register,
    },
    /// `yes` if the condition is not 0.
    Select {
        to: Register,
        condition: Register,
        yes: Operand,
        no: Operand,
    },
    /// For each bit of `bits`, from the lowest. The bits are copied when the loop begins.
    ForBits {
        square: Register,
        bits: Register,
        body: Body,
    },
    /// For each number from 0 below `count`, which the body must not write.
    ForRange {
        number: Register,
        count: Register,
        body: Body,
    },
    /// `body` if the condition is not 0, else `otherwise`.
    If {
        condition: Register,
        body: Body,
        otherwise: Body,
    },
    /// Appends a row to White's list of a kind, a row to Black's, or one to each. With a condition, which is 1 or 0,
    /// only if it is 1.
    Emit {
        list: u8,
        rows: [Option<Register>; 2],
        condition: Option<Register>,
    },
}

/// Whether White's list and Black's of a kind grow together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Paired {
    /// Some rows are emitted into one of them alone.
    Separate,
    /// No loop emits rows.
    Straight,
    InLoops,
}

/// Code with all it refers to.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub body: Body,
    /// Registers have numbers below this.
    pub registers: u32,
    pub tables: Vec<Table>,
    /// Bytes of scratch memory.
    pub scratch: u32,
    /// Elements of state.
    pub state: u32,
    /// Kinds of lists: 1 of an encoder, 2 of a delta.
    pub lists: u8,
    /// Most rows that a list can get, in any position of at most 32 pieces.
    pub capacity: u32,
}

impl Program {
    /// Bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        self.tables.iter().map(|table| table.len() * table.width().bytes()).sum()
    }

    pub const ACTIVE: u8 = 0;
    pub const ADDED: u8 = 0;
    pub const REMOVED: u8 = 1;

    /// The number of instructions, those in bodies included.
    #[must_use]
    pub fn instructions(&self) -> usize {
        fn count(body: &Body) -> usize {
            let mut sum = body.len();
            for instruction in body {
                match instruction {
                    Instruction::ForBits { body, .. } | Instruction::ForRange { body, .. } => sum += count(body),
                    Instruction::If { body, otherwise, .. } => sum += count(body) + count(otherwise),
                    _ => {}
                }
            }
            sum
        }
        count(&self.body)
    }

    /// Most rows that a list can get whatever the board: `None` where these are more than 128, or where a
    /// [`Instruction::ForRange`] emits.
    #[must_use]
    pub fn rows_on_any_board(&self) -> Option<u32> {
        const MOST: u32 = 128;
        /// `times`: how often the body runs at most. `rows`: by kind and perspective.
        fn count(body: &Body, times: u32, rows: &mut [[u32; 2]]) -> Option<()> {
            for instruction in body {
                match instruction {
                    Instruction::Emit { list, rows: emitted, .. } => {
                        let of_kind = &mut rows[usize::from(*list)];
                        for (rows, _) in of_kind.iter_mut().zip(emitted).filter(|(_, emitted)| emitted.is_some()) {
                            *rows = rows.checked_add(times).filter(|rows| *rows <= MOST)?;
                        }
                    }
                    Instruction::If { body, otherwise, .. } => {
                        count(body, times, rows)?;
                        count(otherwise, times, rows)?;
                    }
                    Instruction::ForBits { body, .. } => count(body, times.saturating_mul(64), rows)?,
                    Instruction::ForRange { body, .. } => count(body, u32::MAX, rows)?,
                    _ => {}
                }
            }
            Some(())
        }
        let mut rows = vec![[0; 2]; usize::from(self.lists)];
        count(&self.body, 1, &mut rows)?;
        Some(rows.into_iter().flatten().max().unwrap_or(0))
    }

    /// The memories that are read or written.
    #[must_use]
    pub fn memories(&self) -> BTreeSet<Memory> {
        fn visit(body: &Body, found: &mut BTreeSet<Memory>) {
            for instruction in body {
                match instruction {
                    Instruction::Load { memory, .. } | Instruction::Store { memory, .. } => {
                        found.insert(*memory);
                    }
                    Instruction::ForBits { body, .. } | Instruction::ForRange { body, .. } => visit(body, found),
                    Instruction::If { body, otherwise, .. } => {
                        visit(body, found);
                        visit(otherwise, found);
                    }
                    _ => {}
                }
            }
        }
        let mut found = BTreeSet::new();
        visit(&self.body, &mut found);
        found
    }

    /// By kind of list: which instruction of the body is the last that emits into it, itself or in its bodies.
    #[must_use]
    pub fn last_emits(&self) -> Vec<Option<usize>> {
        fn emits(instruction: &Instruction, kind: usize) -> bool {
            let any = |body: &Body| body.iter().any(|instruction| emits(instruction, kind));
            match instruction {
                Instruction::ForBits { body, .. } | Instruction::ForRange { body, .. } => any(body),
                Instruction::If { body, otherwise, .. } => any(body) || any(otherwise),
                Instruction::Emit { list, .. } => usize::from(*list) == kind,
                _ => false,
            }
        }
        let last = |kind| self.body.iter().rposition(|instruction| emits(instruction, kind));
        (0..usize::from(self.lists)).map(last).collect()
    }

    /// By kind: whether every row of a list of White's comes with a row of Black's, and whether loops emit them.
    #[must_use]
    pub fn paired(&self) -> Vec<Paired> {
        fn visit(body: &Body, is_loop: bool, paired: &mut [Paired]) {
            for instruction in body {
                match instruction {
                    Instruction::ForBits { body, .. } | Instruction::ForRange { body, .. } => visit(body, true, paired),
                    Instruction::If { body, otherwise, .. } => {
                        visit(body, is_loop, paired);
                        visit(otherwise, is_loop, paired);
                    }
                    Instruction::Emit { list, rows, .. } => {
                        let of = &mut paired[usize::from(*list)];
                        *of = match (*of, rows) {
                            (Paired::Separate, _) | (_, [None, _] | [_, None]) => Paired::Separate,
                            (Paired::InLoops, _) => Paired::InLoops,
                            (Paired::Straight, _) if is_loop => Paired::InLoops,
                            (Paired::Straight, _) => Paired::Straight,
                        };
                    }
                    _ => {}
                }
            }
        }
        let mut paired = vec![Paired::Straight; usize::from(self.lists)];
        visit(&self.body, false, &mut paired);
        paired
    }
}

impl From<Register> for Operand {
    fn from(register: Register) -> Operand {
        Operand::Register(register)
    }
}

impl From<u64> for Operand {
    fn from(value: u64) -> Operand {
        Operand::Constant(value)
    }
}

impl Memory {
    pub fn width(self, program: &Program) -> Width {
        match self {
            Memory::Board(_, BoardField::Squares) | Memory::Scratch => Width::One,
            Memory::Change => Width::Two,
            Memory::Table(id) => program.tables[id.0 as usize].width(),
            Memory::Board(..) | Memory::StateBefore | Memory::StateAfter => Width::Eight,
        }
    }
}

impl Table {
    pub const fn width(&self) -> Width {
        match self {
            Table::Bytes(_) => Width::One,
            Table::Words(_) => Width::Four,
            Table::Bitboards(_) => Width::Eight,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Table::Bytes(values) => values.len(),
            Table::Words(values) => values.len(),
            Table::Bitboards(values) => values.len(),
        }
    }
}

impl Width {
    pub const fn bytes(self) -> usize {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }
}
