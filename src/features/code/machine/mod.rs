//! Machine code of programs, by Cranelift: everything that names it is in this folder.
//!
//! Code is written into fresh memory that becomes executable, and read only, when it is complete. It reads the tables
//! where the program has them.
#![allow(unsafe_code, reason = "calls code made at run time")]

mod translation;

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use super::executable::{Inputs, Obstacle, Outputs};
use super::form::Program;
use super::row_list::RowList;
use crate::chess::{BoardChange, PieceBoard};
use crate::features::delta::Delta;
use translation::Translation;

/// Pieces on a board up to which [`Program::capacity`] holds.
const MOST_PIECES: i64 = 32;

/// What a call reads and writes besides boards, their change and lists.
#[repr(C)]
struct CallMemory {
    state_before: *const u64,
    state_after: *mut u64,
    scratch: *mut u8,
}

/// Both boards, the change, White's and Black's lists: a [`RowList`] of an encoder, a [`Delta`] of a delta.
type Function =
    unsafe extern "C" fn(*const PieceBoard, *const PieceBoard, *const BoardChange, *mut c_void, *mut c_void);

/// Of programs that use state or scratch memory, or have no bound for the rows on any board. Gives [`REFUSED`], before
/// anything was written, where there is no such bound and a board has more than 32 pieces; else 0.
type RefusingFunction = unsafe extern "C" fn(
    *const PieceBoard,
    *const PieceBoard,
    *const BoardChange,
    *mut c_void,
    *mut c_void,
    *const CallMemory,
) -> u64;

const REFUSED: u64 = 1;

#[derive(Debug)]
pub(super) struct MachineCode {
    function: AnyFunction,
    /// Whether it is a delta's.
    is_delta: bool,
    room: Room,
    memory: CodeMemory,
}

#[derive(Copy, Clone, Debug)]
enum AnyFunction {
    Simple(Function),
    Refusing(RefusingFunction),
}

/// The rows for which each list has room when a function is called. One that is not emitted after all may be written
/// behind a full list.
#[derive(Copy, Clone, Debug)]
struct Room(usize);

/// Code of a delta that refuses no board.
#[derive(Debug)]
pub(super) struct DirectCode {
    function: Function,
    room: Room,
    _memory: CodeMemory,
}

/// Owns the memory that functions point into.
struct CodeMemory(Mutex<ManuallyDrop<JITModule>>);

impl MachineCode {
    /// Instructions of a program beyond which it is left to the interpreter: 1,400 take about 25 ms to compile, 13,000
    /// about 0.7 s.
    pub(super) const MOST_INSTRUCTIONS: usize = 30_000;

    /// [`Program::capacity`] beyond which it is interpreted: 4 MB of a list that is rarely filled.
    const MOST_ROWS: u32 = 1 << 20;

    pub(super) fn compile(program: &Program) -> Result<MachineCode, Obstacle> {
        let rows = program.rows_on_any_board().unwrap_or(program.capacity);
        if rows > MachineCode::MOST_ROWS {
            return Err(Obstacle::Capacity { rows, most: MachineCode::MOST_ROWS });
        }
        let instructions = program.instructions();
        if instructions > MachineCode::MOST_INSTRUCTIONS {
            return Err(Obstacle::Length { instructions, most: MachineCode::MOST_INSTRUCTIONS });
        }
        let mut memory = CodeMemory(Mutex::new(ManuallyDrop::new(new_module()?)));
        let module = memory.module();
        let id = define(module, program)?;
        module.finalize_definitions().map_err(|error| Obstacle::Memory(format!("{error:?}")))?;
        let address = module.get_finalized_function(id);
        // SAFETY: the function was defined with this signature, in the platform's calling convention.
        let function = unsafe {
            if is_simple(program) {
                AnyFunction::Simple(std::mem::transmute::<*const u8, Function>(address))
            } else {
                AnyFunction::Refusing(std::mem::transmute::<*const u8, RefusingFunction>(address))
            }
        };
        Ok(MachineCode { function, is_delta: program.lists == 2, room: Room(rows as usize + 1), memory })
    }

    /// Runs the program that it was made of; `false`, with nothing done, if it refuses the boards. The states have at least [`Program::state`] elements, `scratch` [`Program::scratch`] bytes, all zero, and the lists are those
    /// of the program.
    #[inline(always)]
    pub(super) fn run(&self, inputs: &mut Inputs<'_>, scratch: &mut [u8], outputs: &mut Outputs<'_>) -> bool {
        let [white, black] = match outputs {
            Outputs::None => [std::ptr::null_mut(); 2],
            Outputs::Active([white, black]) => self.room.in_lists([&mut **white, &mut **black]),
            Outputs::Changed([white, black]) => self.room.in_deltas([&mut **white, &mut **black]),
        };
        let Inputs { before, after, change, .. } = *inputs;
        // SAFETY: all arguments live through the call. The code reads and writes what the program says: programs are
        // written by the lowering, which keeps their indices inside of tables, boards, states and scratch and emits at
        // most `capacity` rows for boards of at most 32 pieces; where more pieces might give more rows, the code refuses
        // others. It moves each list's end behind rows that it has written.
        unsafe {
            match self.function {
                AnyFunction::Simple(function) => {
                    function(before, after, change, white, black);
                    true
                }
                AnyFunction::Refusing(function) => {
                    let memory = CallMemory {
                        state_before: inputs.state_before.as_ptr(),
                        state_after: inputs.state_after.as_mut_ptr(),
                        scratch: scratch.as_mut_ptr(),
                    };
                    function(before, after, change, white, black, &raw const memory) != REFUSED
                }
            }
        }
    }

    /// `Err` where the code is not a delta's, or uses other memory, or may refuse boards.
    #[allow(clippy::result_large_err, reason = "made once a set")]
    pub(super) fn direct(self) -> Result<DirectCode, MachineCode> {
        match self.function {
            AnyFunction::Simple(function) if self.is_delta => {
                Ok(DirectCode { function, room: self.room, _memory: self.memory })
            }
            _ => Err(self),
        }
    }
}

impl DirectCode {
    /// Replaces the rows of both perspectives.
    #[inline(always)]
    pub(super) fn run(&self, before: &PieceBoard, change: &BoardChange, after: &PieceBoard, deltas: [&mut Delta; 2]) {
        let [white, black] = self.room.in_deltas(deltas);
        // SAFETY: as for all code.
        unsafe { (self.function)(before, after, change, white, black) };
    }
}

impl Room {
    /// Makes room behind the rows of lists.
    #[inline(always)]
    fn in_lists(self, lists: [&mut RowList; 2]) -> [*mut c_void; 2] {
        lists.map(|list| {
            list.make_room(list.len() + self.0);
            std::ptr::from_mut(list).cast()
        })
    }

    /// Makes room in lists whose rows are replaced.
    #[inline(always)]
    fn in_deltas(self, [white, black]: [&mut Delta; 2]) -> [*mut c_void; 2] {
        let lists = [&mut white.added, &mut white.removed, &mut black.added, &mut black.removed];
        if lists.iter().any(|list| !list.has_room(self.0)) {
            self.grow(lists);
        }
        [std::ptr::from_mut(white).cast(), std::ptr::from_mut(black).cast()]
    }

    #[cold]
    #[inline(never)]
    fn grow(self, lists: [&mut RowList; 4]) {
        lists.into_iter().for_each(|list| list.make_room(self.0));
    }
}

/// Whether a program's function is a [`Function`].
fn is_simple(program: &Program) -> bool {
    program.state == 0 && program.scratch == 0 && program.rows_on_any_board().is_some()
}

impl CodeMemory {
    fn module(&mut self) -> &mut JITModule {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for CodeMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeMemory").finish_non_exhaustive()
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: nobody runs the code any more, since that borrows its owner, and nobody else has its address.
        unsafe { ManuallyDrop::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner)).free_memory() };
    }
}

fn new_module() -> Result<JITModule, Obstacle> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("unwind_info", "false"),
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        flags.set(name, value).map_err(|error| Obstacle::Compiler(error.to_string()))?;
    }
    let isa = cranelift_native::builder().map_err(|reason| Obstacle::Processor(reason.to_owned()))?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(|error| Obstacle::Compiler(error.to_string()))?;
    if isa.pointer_bits() != 64 {
        return Err(Obstacle::Processor("pointers of 64 bits are needed".to_owned()));
    }
    Ok(JITModule::new(JITBuilder::with_isa(isa, default_libcall_names())))
}

/// Writes the program's function; gives its number.
fn define(module: &mut JITModule, program: &Program) -> Result<FuncId, Obstacle> {
    let mut context = module.make_context();
    let mut builder_context = FunctionBuilderContext::new();
    let signature = &mut context.func.signature;
    let parameters = if is_simple(program) { 5 } else { 6 };
    signature.params.resize(parameters, AbiParam::new(I64));
    if !is_simple(program) {
        signature.returns.push(AbiParam::new(I64));
    }
    let id = module
        .declare_function("program", Linkage::Local, &context.func.signature)
        .map_err(|error| Obstacle::Compiler(error.to_string()))?;
    context.func.name = UserFuncName::user(0, id.as_u32());
    let mut builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
    Translation::begin(&mut builder, program).function();
    builder.finalize(module.target_config());
    module.define_function(id, &mut context).map_err(|error| Obstacle::Compiler(format!("{error:?}")))?;
    Ok(id)
}
