//! Playing strength's inner loop: accumulators kept up to date move by move, and the integer forward pass.
//!
//! [`Model`] is a [`crate::net::QuantNet`] laid out for vector instructions, [`Evaluator`] walks it through positions.
//! All back ends in [`simd`] give the same integers as [`crate::net::forward_integer`].

mod aligned;
mod evaluator;
mod model;
pub mod simd;

pub use aligned::Aligned;
pub use evaluator::{BucketScore, EngineError, Evaluation, Evaluator, Strategy};
pub use model::{Model, Scratch};
pub use simd::BackEnd;
