//! Programs ready to run, whatever runs them.

use std::cell::RefCell;

use super::form::Program;
use super::interpreter::Interpreter;
use crate::chess::{BoardChange, PieceBoard};

/// What a program reads and writes besides its lists.
#[derive(Debug)]
pub struct Inputs<'a> {
    pub before: &'a PieceBoard,
    pub after: &'a PieceBoard,
    pub change: &'a BoardChange,
    /// [`Program::state`] elements, as `state_after`.
    pub state_before: &'a [u64],
    pub state_after: &'a mut [u64],
}

impl<'a> Inputs<'a> {
    /// The inputs of an encoder, which reads one board and keeps no state.
    #[must_use]
    pub fn of(board: &'a PieceBoard) -> Inputs<'a> {
        Inputs { before: board, after: board, change: &BoardChange::EMPTY, state_before: &[], state_after: &mut [] }
    }
}

/// What runs a program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    MachineCode,
    Interpreter,
}

/// A program that any number of threads may run at once.
#[derive(Debug)]
pub struct Executable {
    program: Program,
}

/// Memory that a thread uses again from run to run.
#[derive(Default)]
struct ThreadMemory {
    /// All zero between runs.
    scratch: Vec<u8>,
    registers: Vec<u64>,
}

thread_local! {
    static MEMORY: RefCell<ThreadMemory> =
        const { RefCell::new(ThreadMemory { scratch: Vec::new(), registers: Vec::new() }) };
}

impl Executable {
    /// Machine code where that is possible, else the interpreter.
    #[must_use]
    pub fn compile(program: Program) -> Executable {
        Executable::interpreted(program)
    }

    /// The interpreter, whatever is possible.
    #[must_use]
    pub fn interpreted(program: Program) -> Executable {
        Executable { program }
    }

    #[must_use]
    pub fn execution(&self) -> Execution {
        Execution::Interpreter
    }

    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Appends to the lists, which are given by kind and perspective, what the program emits.
    ///
    /// # Panics
    /// If there are more or fewer kinds of lists than the program's, or less state.
    pub fn run<const KINDS: usize>(&self, mut inputs: Inputs<'_>, mut lists: [[&mut Vec<u32>; 2]; KINDS]) {
        let program = &self.program;
        let state = program.state as usize;
        assert_eq!(KINDS, usize::from(program.lists), "kinds of lists");
        assert!(
            inputs.state_before.len() >= state && inputs.state_after.len() >= state,
            "a state has {state} elements"
        );
        // Taken away for the run: scratch that a panic leaves behind is not used again.
        let mut memory = MEMORY.take();
        let scratch = program.scratch as usize;
        memory.scratch.resize(memory.scratch.len().max(scratch), 0);
        memory.registers.resize(memory.registers.len().max(usize::from(program.registers)), 0);
        Interpreter {
            program,
            inputs: &mut inputs,
            scratch: &mut memory.scratch[..scratch],
            registers: &mut memory.registers,
            lists: &mut lists,
        }
        .run();
        debug_assert!(memory.scratch.iter().all(|byte| *byte == 0), "a program left its scratch memory in use");
        MEMORY.set(memory);
    }
}
