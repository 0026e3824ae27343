//! Machine code of programs, by Cranelift: everything that names it is in this folder.
//!
//! Code is written into fresh memory that becomes executable, and read only, when it is complete. It reads the tables
//! where the program has them.
#![allow(unsafe_code, reason = "calls code made at run time, and takes over the lists that it has filled")]

mod translation;

use std::sync::Mutex;

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use super::executable::{Inputs, Obstacle};
use super::form::Program;
use crate::chess::{BoardChange, PieceBoard};
use translation::Translation;

/// Kinds of lists that a program may have.
const MOST_KINDS: usize = 2;

/// Pieces on a board up to which [`Program::capacity`] holds.
const MOST_PIECES: i64 = 32;

/// What a call reads and writes besides boards and their change.
#[repr(C)]
struct Call {
    state_before: *const u64,
    state_after: *mut u64,
    scratch: *mut u8,
    /// Where the first row of each list goes, by kind and perspective.
    lists: [[*mut u32; 2]; MOST_KINDS],
}

/// Gives how many rows it appended to each list, by kind and perspective, [`length_bits`] bits each from the lowest on;
/// [`REFUSED`], before anything was written, where a board has too many pieces.
type Function = unsafe extern "C" fn(*const PieceBoard, *const PieceBoard, *const BoardChange, *const Call) -> u64;

const REFUSED: u64 = u64::MAX;

/// Bits of a list's length in what the function of a program with so many kinds of lists gives.
const fn length_bits(kinds: usize) -> u32 {
    if kinds <= 1 { 32 } else { 16 }
}

pub(super) struct MachineCode {
    function: Function,
    bytes: usize,
    /// Owns the memory that `function` points into; taken when it is freed.
    module: Mutex<Option<JITModule>>,
}

impl MachineCode {
    /// Instructions of a program beyond which it is left to the interpreter: 1,400 take about 25 ms to compile, 13,000
    /// about 0.7 s.
    pub(super) const MOST_INSTRUCTIONS: usize = 30_000;

    /// [`Program::capacity`] beyond which it is interpreted: 4 MB of a list that is rarely filled, and what
    /// [`length_bits`] hold besides [`REFUSED`].
    const fn most_rows(kinds: usize) -> u32 {
        if kinds <= 1 { 1 << 20 } else { (1 << length_bits(kinds)) - 2 }
    }

    pub(super) fn compile(program: &Program) -> Result<MachineCode, Obstacle> {
        let most = MachineCode::most_rows(usize::from(program.lists));
        if program.capacity > most {
            return Err(Obstacle::Capacity { rows: program.capacity, most });
        }
        let instructions = program.instructions();
        if instructions > MachineCode::MOST_INSTRUCTIONS {
            return Err(Obstacle::Length { instructions, most: MachineCode::MOST_INSTRUCTIONS });
        }
        if usize::from(program.lists) > MOST_KINDS {
            return Err(Obstacle::Compiler(format!("{} kinds of lists", program.lists)));
        }
        let mut module = new_module()?;
        let made = define(&mut module, program);
        // Made before an error is given on, so that the memory is freed in any case.
        let mut code = MachineCode { function: unmade, bytes: 0, module: Mutex::new(Some(module)) };
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
    /// have at least [`Program::state`] elements, `scratch` [`Program::scratch`] bytes, all zero.
    #[inline(always)]
    pub(super) fn run<const KINDS: usize>(
        &self,
        program: &Program,
        inputs: &mut Inputs<'_>,
        scratch: &mut [u8],
        lists: &mut [[&mut Vec<u32>; 2]; KINDS],
    ) -> bool {
        const { assert!(KINDS <= MOST_KINDS) };
        // A row that is not emitted after all may be written behind a full list.
        let room = program.capacity as usize + 1;
        let mut ends = [[std::ptr::null_mut(); 2]; MOST_KINDS];
        for (kind, ends) in lists.iter_mut().zip(&mut ends) {
            for (list, end) in kind.iter_mut().zip(ends) {
                list.reserve(room);
                *end = list.spare_capacity_mut().as_mut_ptr().cast::<u32>();
            }
        }
        let call = Call {
            state_before: inputs.state_before.as_ptr(),
            state_after: inputs.state_after.as_mut_ptr(),
            scratch: scratch.as_mut_ptr(),
            lists: ends,
        };
        // SAFETY: the boards, the change and the call live through it. The code reads and writes what the program says:
        // programs are written by the lowering, which keeps their indices inside of tables, boards, states and scratch
        // and emits at most `capacity` rows for boards of at most 32 pieces; others, the code refuses.
        let lengths = unsafe { (self.function)(inputs.before, inputs.after, inputs.change, &call) };
        if lengths == REFUSED {
            return false;
        }
        let bits = const { length_bits(KINDS) };
        // Not over all lists as one sequence, for which there would be a loop.
        for (kind, lists) in lists.iter_mut().enumerate() {
            for (perspective, list) in lists.iter_mut().enumerate() {
                let rows = (lengths >> (bits * (2 * kind + perspective) as u32)) & ((1 << bits) - 1);
                // SAFETY: the code wrote that many rows behind the list's end, in what was reserved.
                unsafe { list.set_len(list.len() + rows as usize) };
            }
        }
        true
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
extern "C" fn unmade(_: *const PieceBoard, _: *const PieceBoard, _: *const BoardChange, _: *const Call) -> u64 {
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
    for _ in 0..4 {
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
