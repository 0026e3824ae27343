//! The lowered form of a definition, in which its encoders and deltas are written before anything runs them: structured
//! code over 64-bit registers ([`form`]), written down by a [`Builder`]. An [`Executable`] runs it; the
//! [`interpreter`] says what it means.
#![cfg_attr(not(feature = "jit"), allow(dead_code, unused_imports, reason = "machine code alone reads it"))]

mod builder;
mod executable;
mod form;
mod interpreter;
#[cfg(feature = "jit")]
mod machine;
#[cfg(not(feature = "jit"))]
#[path = "no_machine.rs"]
mod machine;
#[cfg(feature = "jit")]
mod magics;
mod row_list;
// The C and Rust of programs. The export has an analysis of its own still.
#[cfg(test)]
mod source;

pub use builder::Builder;
pub use executable::{Executable, Inputs, Obstacle, Outputs};
pub use form::{Binary, BoardTime, Memory, Operand, Program, Register, Slider, Unary};
#[cfg(test)]
pub use form::{BoardField, Instruction};
pub use row_list::{RowList, RowVec};
#[cfg(test)]
pub use source::{Function, Lists, Parameter, SourceLanguage};

#[cfg(test)]
mod tests;
