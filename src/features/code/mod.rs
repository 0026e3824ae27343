//! The lowered form of a definition, in which its encoders and deltas are written before anything runs them: structured
//! code over 64-bit registers ([`form`]), written down by a [`Builder`]. An [`Executable`] runs it; the
//! [`interpreter`] says what it means; [`source`] writes it as C and Rust.
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
mod source;

pub use builder::Builder;
pub use executable::{DirectDelta, Executable, Inputs, Obstacle, Outputs};
pub use form::{Binary, BoardTime, Memory, Operand, Program, Register, Slider, Table, Unary};
#[cfg(test)]
pub use form::{BoardField, Instruction};
pub use row_list::{RowList, RowVec};
pub use source::{Function, Parameter, SourceLanguage, mentions};

#[cfg(test)]
mod tests;
