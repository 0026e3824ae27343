//! Programs ready to run, whatever runs them.

use std::cell::RefCell;

use super::form::Program;
use super::interpreter::Interpreter;
use super::machine::{DirectCode, MachineCode};
use super::row_list::RowList;
use crate::chess::{BoardChange, PieceBoard};
use crate::features::delta::Delta;

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

/// The lists of a program, by perspective.
#[derive(Debug)]
pub enum Outputs<'a> {
    /// Of a program that writes state only.
    None,
    /// An encoder's, which appends to them.
    Active([&'a mut RowList; 2]),
    /// A delta's, which replaces their rows.
    Changed([&'a mut Delta; 2]),
}

impl Outputs<'_> {
    #[inline(always)]
    const fn kinds(&self) -> u8 {
        match self {
            Outputs::None => 0,
            Outputs::Active(_) => 1,
            Outputs::Changed(_) => 2,
        }
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

/// Machine code of a delta without state and scratch memory, for any boards: nothing is left to ask before it runs.
#[derive(Debug)]
pub struct DirectDelta {
    /// Owns the tables.
    program: Program,
    code: DirectCode,
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

    /// Lists what the program emits. `refresh` of a delta stays as it is.
    ///
    /// # Panics
    /// If there are more or fewer kinds of lists than the program's, or less state.
    #[inline(always)]
    pub fn run(&self, mut inputs: Inputs<'_>, mut outputs: Outputs<'_>) {
        assert!(outputs.kinds() == self.program.lists, "lists of another program");
        let state = self.program.state as usize;
        assert!(inputs.state_before.len() >= state && inputs.state_after.len() >= state, "state of another program");
        // What is given away is given by value, so that neither inputs nor outputs have to lie in memory before.
        match &self.machine_code {
            Ok(code) if self.program.scratch == 0 => {
                if !code.run(&mut inputs, &mut [], &mut outputs) {
                    self.interpret(inputs, outputs);
                }
            }
            Ok(code) => self.run_with_scratch(code, inputs, outputs),
            Err(_) => self.interpret(inputs, outputs),
        }
    }

    #[inline(never)]
    fn run_with_scratch(&self, code: &MachineCode, mut inputs: Inputs<'_>, mut outputs: Outputs<'_>) {
        let bytes = self.program.scratch as usize;
        let ran = MEMORY.with_borrow_mut(|memory| code.run(&mut inputs, memory.scratch(bytes), &mut outputs));
        if !ran {
            self.interpret(inputs, outputs);
        }
    }

    #[cold]
    #[inline(never)]
    fn interpret(&self, mut inputs: Inputs<'_>, mut outputs: Outputs<'_>) {
        let program = &self.program;
        if let Outputs::Changed(deltas) = &mut outputs {
            for delta in deltas {
                delta.added.clear();
                delta.removed.clear();
            }
        }
        // Taken away for the run: scratch that a panic leaves behind is not used again.
        let mut memory = MEMORY.take();
        let most = program.registers as usize;
        if memory.registers.len() < most {
            memory.registers.resize(most, 0);
        }
        let mut registers = std::mem::take(&mut memory.registers);
        let scratch = memory.scratch(program.scratch as usize);
        let outputs = &mut outputs;
        Interpreter { program, inputs: &mut inputs, scratch, registers: &mut registers, outputs }.run();
        debug_assert!(scratch.iter().all(|byte| *byte == 0), "a program left its scratch memory in use");
        memory.registers = registers;
        MEMORY.set(memory);
    }
}

impl DirectDelta {
    /// `Err` gives an executable back that is interpreted, is not a delta's, uses other memory or may refuse boards.
    #[allow(clippy::result_large_err, reason = "made once a set")]
    pub fn of(executable: Executable) -> Result<DirectDelta, Executable> {
        let Executable { program, machine_code } = executable;
        let machine_code = match machine_code.map(MachineCode::direct) {
            Ok(Ok(code)) => return Ok(DirectDelta { program, code }),
            Ok(Err(code)) => Ok(code),
            Err(obstacle) => Err(obstacle),
        };
        Err(Executable { program, machine_code })
    }

    #[must_use]
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// Replaces the rows of both perspectives; `refresh` stays as it is.
    #[inline(always)]
    pub fn run(&self, before: &PieceBoard, change: &BoardChange, after: &PieceBoard, deltas: [&mut Delta; 2]) {
        self.code.run(before, change, after, deltas);
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
