//! Programs as source text: one function, and the tables that it reads. `c` and `rust` know what the languages write
//! differently.
//!
//! Every value gets a variable of its own, named after what it is, unless it is changed where it goes on to be read.

mod c;
mod liveness;
mod rust;
mod writer;

use std::collections::BTreeSet;

use super::form::{Binary, BoardTime, Body, Instruction, Memory, Operand, Program, Slider, Table, Unary};
use c::CDialect;
use rust::RustDialect;
use writer::Writer;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SourceLanguage {
    C,
    Rust,
}

/// The text of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Constants, which stand before the function.
    pub tables: String,
    pub function: String,
}

impl SourceLanguage {
    /// What the functions of programs call.
    #[must_use]
    pub const fn prelude(self) -> &'static str {
        match self {
            SourceLanguage::C => include_str!("prelude.c.txt"),
            SourceLanguage::Rust => include_str!("prelude.rs.txt"),
        }
    }

    /// A program as a function of this name, with the parameters [`Parameter::of`] the program. It appends to the lists.
    #[must_use]
    pub fn source(self, program: &Program, name: &str, perspectives: Perspectives) -> Source {
        let dialect: &dyn Dialect = match self {
            SourceLanguage::C => &CDialect,
            SourceLanguage::Rust => &RustDialect,
        };
        Writer::new(dialect, program, name, perspectives).source()
    }
}

/// For whom a function lists rows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Perspectives {
    /// Both, in two lists of each kind.
    Both,
    /// That of the first parameter (of Rust: of the constant), in one list of each kind. A compiler that knows which
    /// leaves the other's rows out.
    One,
}

/// A program's parameters, in their order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// 0 for White; of a function for one.
    Perspective,
    Before,
    After,
    Change,
    StateBefore,
    StateAfter,
    Scratch,
    /// Lists: of a perspective where a function is for both.
    Active(Option<usize>),
    Added(Option<usize>),
    Removed(Option<usize>),
}

impl Parameter {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Parameter::Perspective => "pov",
            Parameter::Before => "before",
            Parameter::After => "after",
            Parameter::Change => "change",
            Parameter::StateBefore => "state_before",
            Parameter::StateAfter => "state_after",
            Parameter::Scratch => "scratch",
            Parameter::Active(None) => "active",
            Parameter::Active(Some(0)) => "active_white",
            Parameter::Active(Some(_)) => "active_black",
            Parameter::Added(None) => "added",
            Parameter::Added(Some(0)) => "added_white",
            Parameter::Added(Some(_)) => "added_black",
            Parameter::Removed(None) => "removed",
            Parameter::Removed(Some(0)) => "removed_white",
            Parameter::Removed(Some(_)) => "removed_black",
        }
    }

    /// The list of a kind.
    const fn list(program: &Program, kind: u8, perspective: Option<usize>) -> Parameter {
        match (program.lists, kind) {
            (1, _) => Parameter::Active(perspective),
            (_, Program::ADDED) => Parameter::Added(perspective),
            _ => Parameter::Removed(perspective),
        }
    }

    /// The parameters of a program's function.
    #[must_use]
    pub fn of(program: &Program, perspectives: Perspectives) -> Vec<Parameter> {
        fn visit(body: &Body, found: &mut BTreeSet<Parameter>) {
            for instruction in body {
                match instruction {
                    Instruction::Load { memory, .. } | Instruction::Store { memory, .. } => {
                        found.extend(match memory {
                            Memory::Board(BoardTime::Before, _) => Some(Parameter::Before),
                            Memory::Board(BoardTime::After, _) => Some(Parameter::After),
                            Memory::Change => Some(Parameter::Change),
                            Memory::StateBefore => Some(Parameter::StateBefore),
                            Memory::StateAfter => Some(Parameter::StateAfter),
                            Memory::Scratch => Some(Parameter::Scratch),
                            Memory::Table(_) => None,
                        });
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
        visit(&program.body, &mut found);
        for kind in 0..program.lists {
            match perspectives {
                Perspectives::Both => found.extend([0, 1].map(|pov| Parameter::list(program, kind, Some(pov)))),
                Perspectives::One => found.extend([Parameter::Perspective, Parameter::list(program, kind, None)]),
            }
        }
        found.into_iter().collect()
    }
}

/// How a language writes things. Expressions are of 64 bits.
trait Dialect {
    fn literal(&self, value: u64) -> String;
    fn binary(&self, operator: Binary, left: &str, right: Operand, right_text: &str) -> String;
    fn unary(&self, operator: Unary, of: &str) -> String;
    fn slide(&self, slider: Slider, square: &str, occupied: &str) -> String;
    fn select(&self, condition: &str, yes: &str, no: &str) -> String;
    /// An element of an array, extended to 64 bits.
    fn element(&self, array: &str, index: &str, width: usize) -> String;
    fn store(&self, array: &str, index: &str, value: &str, width: usize) -> String;
    fn field(&self, board: &str, field: &str) -> String;
    /// `is_changed`: the variable is written again.
    fn declare(&self, name: &str, value: &str, is_changed: bool) -> String;
    fn assign(&self, name: &str, value: &str) -> String;
    fn for_bits(&self, left: &str, bits: &str, square: &str) -> [String; 2];
    fn for_range(&self, number: &str, count: &str) -> String;
    fn if_(&self, condition: &str) -> String;
    fn otherwise(&self) -> String;
    /// Appends a row to a list; with a condition, which is 1 or 0, only if it is 1.
    fn push(&self, list: &str, row: &str, condition: Option<&str>) -> String;
    /// One of two values: White's or Black's.
    fn by_perspective(&self, values: &[String; 2]) -> String;
    /// Begins what is done for one perspective alone.
    fn if_perspective(&self, perspective: usize) -> String;
    fn table(&self, name: &str, table: &Table) -> String;
    fn head(&self, name: &str, parameters: &[Parameter]) -> String;
}
