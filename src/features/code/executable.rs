//! Programs ready to run, whatever runs them.

use std::cell::Cell;

use super::form::Program;
use super::interpreter::Interpreter;
use super::machine::MachineCode;
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

/// Why a program is interpreted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error("this build has no machine code (Cargo feature `jit`)")]
    Build,
    #[error("machine code is not written for this processor: {0}")]
    Processor(String),
    #[error("memory cannot be made executable: {0}")]
    Memory(String),
    #[error("it has {instructions} instructions, and machine code is made of at most {most}")]
    Length { instructions: usize, most: usize },
    #[error("a list may get {rows} rows, and machine code reserves room for at most {most}")]
    Capacity { rows: u32, most: u32 },
    #[error("the compiler gave up: {0}")]
    Compiler(String),
    #[cfg(test)]
    #[error("the interpreter was asked for")]
    Choice,
}

/// A program that any number of threads may run at once.
#[derive(Debug)]
pub struct Executable {
    program: Program,
    machine_code: Result<MachineCode, Obstacle>,
}

/// Memory that a thread uses again from run to run.
#[derive(Default)]
struct ThreadMemory {
    /// All zero between runs.
    scratch: Vec<u8>,
    registers: Vec<u64>,
}

thread_local! {
    static MEMORY: Cell<ThreadMemory> =
        const { Cell::new(ThreadMemory { scratch: Vec::new(), registers: Vec::new() }) };
}

impl Executable {
    /// Machine code where that is possible, else the interpreter.
    #[must_use]
    pub fn compile(program: Program) -> Executable {
        let machine_code = MachineCode::compile(&program);
        Executable { program, machine_code }
    }

    /// The interpreter, whatever is possible.
    #[cfg(test)]
    #[must_use]
    pub fn interpreted(program: Program) -> Executable {
        Executable { program, machine_code: Err(Obstacle::Choice) }
    }

    /// Why the interpreter runs the program; `None` if machine code does.
    #[must_use]
    pub fn obstacle(&self) -> Option<&Obstacle> {
        self.machine_code.as_ref().err()
    }

    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Appends to the lists, which are given by kind and perspective, what the program emits.
    ///
    /// # Panics
    /// If there are more or fewer kinds of lists than the program's, or less state.
    #[inline(always)]
    pub fn run<const KINDS: usize>(&self, mut inputs: Inputs<'_>, mut lists: [[&mut Vec<u32>; 2]; KINDS]) {
        let program = &self.program;
        let state = program.state as usize;
        assert!(KINDS == usize::from(program.lists), "lists of another program");
        assert!(inputs.state_before.len() >= state && inputs.state_after.len() >= state, "state of another program");
        if let Ok(code) = &self.machine_code {
            let ran = if program.scratch == 0 {
                code.run(program, &mut inputs, &mut [], &mut lists)
            } else {
                // Taken away for the run: no closure borrows inputs and lists, which so stay in registers.
                let mut memory = MEMORY.take();
                let ran = code.run(program, &mut inputs, memory.scratch(program.scratch as usize), &mut lists);
                MEMORY.set(memory);
                ran
            };
            if ran {
                return;
            }
        }
        // By value, so that neither has to lie in memory before.
        self.interpret(inputs, lists);
    }

    #[cold]
    #[inline(never)]
    fn interpret<const KINDS: usize>(&self, mut inputs: Inputs<'_>, mut lists: [[&mut Vec<u32>; 2]; KINDS]) {
        let program = &self.program;
        // Taken away for the run: scratch that a panic leaves behind is not used again.
        let mut memory = MEMORY.take();
        let most = usize::from(program.registers);
        if memory.registers.len() < most {
            memory.registers.resize(most, 0);
        }
        let mut registers = std::mem::take(&mut memory.registers);
        let scratch = memory.scratch(program.scratch as usize);
        let lists = &mut lists;
        Interpreter { program, inputs: &mut inputs, scratch, registers: &mut registers, lists }.run();
        debug_assert!(scratch.iter().all(|byte| *byte == 0), "a program left its scratch memory in use");
        memory.registers = registers;
        MEMORY.set(memory);
    }
}

impl ThreadMemory {
    fn scratch(&mut self, bytes: usize) -> &mut [u8] {
        if self.scratch.len() < bytes {
            self.scratch.resize(bytes, 0);
        }
        &mut self.scratch[..bytes]
    }
}
