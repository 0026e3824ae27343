//! The lowered form of a definition, in which its encoders and deltas are written before anything runs them: structured
//! code over 64-bit registers ([`form`]), written down by a [`Builder`].

mod builder;
mod form;

pub use builder::Builder;
pub use form::{
    Binary, BoardField, BoardTime, Body, Instruction, Memory, Operand, Program, Register, Slider, Table, TableId,
    Unary, Width,
};
