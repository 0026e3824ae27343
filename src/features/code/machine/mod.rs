//! Machine code of programs, by Cranelift: everything that names it is in this folder.
//!
//! Code is written into fresh memory that becomes executable, and read only, when it is complete. It reads the tables
//! where the program has them.
#![allow(unsafe_code, reason = "calls code made at run time")]

mod translation;

use std::ffi::c_void;
use std::sync::Mutex;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use super::executable::{Inputs, Obstacle, Outputs};
use super::form::Program;
use crate::chess::{BoardChange, PieceBoard};
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

/// Both perspectives' lists come last: each a [`RowList`] of an encoder, a [`Delta`] of a delta. Gives [`REFUSED`], before
/// anything was written, where a board has too many pieces; else 0.
type Function = unsafe extern "C" fn(
    *const PieceBoard,
    *const PieceBoard,
    *const BoardChange,
    *const CallMemory,
    *mut c_void,
    *mut c_void,
) -> u64;

const REFUSED: u64 = 1;

pub(super) struct MachineCode {
    function: Function,
    /// Rows for which each list has room when the function is called. One that is not emitted after all may be written
    /// behind a full list.
    room: usize,
    /// The kinds of lists of a program without state and scratch memory.
    bare_kinds: Option<u8>,
    bytes: usize,
    /// Owns the memory that `function` points into; taken when it is freed.
    module: Mutex<Option<JITModule>>,
}

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
        let mut module = new_module()?;
        let made = define(&mut module, program);
        // Made before an error is given on, so that the memory is freed in any case.
        let room = rows as usize + 1;
        let bare_kinds = (program.scratch == 0 && program.state == 0).then_some(program.lists);
        let mut code = MachineCode { function: unmade, room, bare_kinds, bytes: 0, module: Mutex::new(Some(module)) };
        let (id, bytes) = made?;
        if let Some(module) = code.module.get_mut().ok().and_then(Option::as_mut) {
            module.finalize_definitions().map_err(|error| Obstacle::Memory(format!("{error:?}")))?;
            let address = module.get_finalized_function(id);
            // SAFETY: the function was defined with this signature, in the platform's calling convention.
            code.function = unsafe { std::mem::transmute::<*const u8, Function>(address) };
            code.bytes = bytes;
        }
        Ok(code)
    }

    /// Runs the program that it was made of; `false`, with nothing done, if a board has more than 32 pieces. The states
    /// have at least [`Program::state`] elements, `scratch` [`Program::scratch`] bytes, all zero, and the lists are those
    /// of the program.
    #[inline]
    pub(super) fn run(&self, inputs: &mut Inputs<'_>, scratch: &mut [u8], outputs: &mut Outputs<'_>) -> bool {
        let memory = CallMemory {
            state_before: inputs.state_before.as_ptr(),
            state_after: inputs.state_after.as_mut_ptr(),
            scratch: scratch.as_mut_ptr(),
        };
        self.call(inputs, &memory, outputs)
    }

    /// Whether the program has these kinds of lists, no state and no scratch memory.
    #[inline(always)]
    pub(super) fn is_bare_with(&self, kinds: u8) -> bool {
        self.bare_kinds == Some(kinds)
    }

    /// [`MachineCode::run`] of a program without state and scratch memory.
    #[inline(always)]
    pub(super) fn run_bare(&self, inputs: &Inputs<'_>, outputs: &mut Outputs<'_>) -> bool {
        self.call(inputs, std::ptr::null(), outputs)
    }

    /// `memory` may be null for a program that uses none of it.
    #[inline(always)]
    fn call(&self, inputs: &Inputs<'_>, memory: *const CallMemory, outputs: &mut Outputs<'_>) -> bool {
        let [white, black]: [*mut c_void; 2] = match outputs {
            Outputs::None => [std::ptr::null_mut(); 2],
            Outputs::Active([white, black]) => {
                for list in [&mut **white, &mut **black] {
                    list.make_room(list.len() + self.room);
                }
                [std::ptr::from_mut(*white).cast(), std::ptr::from_mut(*black).cast()]
            }
            Outputs::Changed([white, black]) => {
                for list in [&mut white.added, &mut white.removed, &mut black.added, &mut black.removed] {
                    list.make_room(self.room);
                }
                [std::ptr::from_mut(*white).cast(), std::ptr::from_mut(*black).cast()]
            }
        };
        // SAFETY: all arguments live through the call. The code reads and writes what the program says: programs are
        // written by the lowering, which keeps their indices inside of tables, boards, states and scratch and emits at
        // most `capacity` rows for boards of at most 32 pieces; where more pieces might give more rows, the code refuses
        // others. It moves each list's end behind rows that it has written.
        let answer = unsafe { (self.function)(inputs.before, inputs.after, inputs.change, memory, white, black) };
        answer != REFUSED
    }
}

impl std::fmt::Debug for MachineCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineCode").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for MachineCode {
    fn drop(&mut self) {
        if let Some(module) = self.module.get_mut().ok().and_then(Option::take) {
            // SAFETY: nobody runs the code any more, since `run` borrows its owner, and nobody else has its address.
            unsafe { module.free_memory() };
        }
    }
}

/// Stands in while there is no code: refuses every board.
extern "C" fn unmade(
    _: *const PieceBoard,
    _: *const PieceBoard,
    _: *const BoardChange,
    _: *const CallMemory,
    _: *mut c_void,
    _: *mut c_void,
) -> u64 {
    REFUSED
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

/// Writes the program's function; gives its number and its length.
fn define(module: &mut JITModule, program: &Program) -> Result<(FuncId, usize), Obstacle> {
    let mut context = module.make_context();
    let mut builder_context = FunctionBuilderContext::new();
    for _ in 0..6 {
        context.func.signature.params.push(AbiParam::new(I64));
    }
    context.func.signature.returns.push(AbiParam::new(I64));
    let id = module
        .declare_function("program", Linkage::Local, &context.func.signature)
        .map_err(|error| Obstacle::Compiler(error.to_string()))?;
    context.func.name = UserFuncName::user(0, id.as_u32());
    let mut builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
    Translation::begin(&mut builder, program).function();
    builder.finalize(module.target_config());
    module.define_function(id, &mut context).map_err(|error| Obstacle::Compiler(format!("{error:?}")))?;
    let bytes = context.compiled_code().map_or(0, |code| code.code_buffer().len());
    Ok((id, bytes))
}
