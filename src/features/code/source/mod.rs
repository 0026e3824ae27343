//! Programs as source text: one function, and the tables that it reads. `c` and `rust` know what the languages write
//! differently.
//!
//! Every value gets a variable of its own, named after what it is, unless it is changed where it goes on to be read.

mod c;
mod liveness;
mod rust;
mod writer;

use std::collections::BTreeSet;

use super::form::{Binary, BoardTime, Memory, Operand, Program, Slider, Table, Unary};
use c::CDialect;
use rust::RustDialect;
use writer::Writer;

pub use writer::mentions;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SourceLanguage {
    C,
    Rust,
}

impl SourceLanguage {
    /// What the functions of programs call, but for lists: the C type `fsb_list` with
    /// `fsb_append(list, row, by)`, the Rust type `List` with `append(row, by)`, which append a row if `by` is 1. Where
    /// rows may repeat, functions begin with their list's `len` and call `fsb_append_rare(list, len, row, by)` or
    /// `append_rare(len, row, by)`.
    ///
    /// Sections are headed by lines of `//#` and the names that they define.
    #[must_use]
    pub const fn prelude(self) -> &'static str {
        match self {
            SourceLanguage::C => include_str!("prelude.c.txt"),
            SourceLanguage::Rust => include_str!("prelude.rs.txt"),
        }
    }

    /// A constant array.
    #[must_use]
    pub fn table(self, name: &str, table: &Table) -> String {
        self.dialect().table(name, table)
    }

    /// A program as a function. Its lists are those of the perspective that is the first parameter (of Rust: the
    /// constant `POV`); a compiler that knows which leaves the other's rows out. `repeats`: a row may come several times
    /// though it counts once. `tables`: their names.
    #[must_use]
    pub fn function(self, program: &Program, name: &str, repeats: bool, tables: &[String]) -> Function {
        Writer::new(self.dialect(), program, repeats, tables).function(name)
    }

    fn dialect(self) -> &'static dyn Dialect {
        match self {
            SourceLanguage::C => &CDialect,
            SourceLanguage::Rust => &RustDialect,
        }
    }
}

/// A function's text, and the parameters that it has: those that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub text: String,
    pub parameters: Vec<Parameter>,
}

/// A program's parameters, in their order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameter {
    /// 0 for White.
    Perspective,
    Before,
    After,
    Change,
    StateBefore,
    StateAfter,
    Scratch,
    Active,
    Added,
    Removed,
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
            Parameter::Active => "active",
            Parameter::Added => "added",
            Parameter::Removed => "removed",
        }
    }

    /// The list of a kind.
    const fn list(program: &Program, kind: u8) -> Parameter {
        match (program.lists, kind) {
            (1, _) => Parameter::Active,
            (_, Program::ADDED) => Parameter::Added,
            _ => Parameter::Removed,
        }
    }

    /// The parameters that a program's function may need.
    fn of(program: &Program) -> Vec<Parameter> {
        let lists = (0..program.lists).map(|kind| Parameter::list(program, kind));
        let mut found: BTreeSet<Parameter> = lists.chain([Parameter::Perspective]).collect();
        for memory in program.memories() {
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
        found.into_iter().collect()
    }
}

/// The lines of a loop over bits.
struct BitLoop {
    heads: Vec<String>,
    /// Stands in the body if it reads the square.
    square: String,
    advance: Option<String>,
}

/// How a language writes things. Expressions are of 64 bits.
trait Dialect {
    fn literal(&self, value: u64) -> String;
    fn binary(&self, operator: Binary, left: &str, right: Operand, right_text: &str) -> String;
    fn unary(&self, operator: Unary, of: &str) -> String;
    fn slide(&self, slider: Slider, square: &str, occupied: &str) -> String;
    fn select(&self, condition: &str, yes: &str, no: &str) -> String;
    /// The code on a square of a board.
    fn code_on(&self, board: &str, square: &str) -> String;
    /// An element of an array, extended to 64 bits.
    fn element(&self, array: &str, index: &str, width: usize) -> String;
    fn store(&self, array: &str, index: &str, value: &str, width: usize) -> String;
    fn field(&self, board: &str, field: &str) -> String;
    /// `is_changed`: the variable is written again.
    fn declare(&self, name: &str, value: &str, is_changed: bool) -> String;
    fn assign(&self, name: &str, value: &str) -> String;
    fn for_bits(&self, left: &str, bits: &str, square: &str) -> BitLoop;
    fn for_range(&self, number: &str, count: &str) -> String;
    /// The same where nothing reads the number.
    fn repeat(&self, number: &str, count: &str) -> String;
    fn if_(&self, condition: &str) -> String;
    fn otherwise(&self) -> String;
    /// Appends a row to a list; with a condition, which is 1 or 0, only if it is 1.
    fn append(&self, list: &str, row: &str, condition: Option<&str>, repeats: bool) -> String;
    /// Keeps a list's length as `old_len`.
    fn begin_repeats(&self, list: &str) -> String;
    /// One of two values: White's or Black's.
    fn by_perspective(&self, values: &[String; 2]) -> String;
    /// Begins what is done for one perspective alone.
    fn if_perspective(&self, perspective: usize) -> String;
    fn table(&self, name: &str, table: &Table) -> String;
    fn head(&self, name: &str, parameters: &[Parameter]) -> String;
}
