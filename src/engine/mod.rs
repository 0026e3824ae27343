//! Playing strength's inner loop: accumulators kept up to date move by move, and the integer forward pass.
//!
//! [`Model`] is a [`crate::net::QuantNet`] laid out for vector instructions, [`Evaluator`] walks it through positions by a
//! [`Strategy`]. The loops are in `kernels`, each once over the vectors of [`simd`]; all back ends give the same integers
//! as [`crate::net::forward_integer`].

mod aligned;
mod arrange;
mod cache;
mod evaluator;
mod kernels;
mod model;
mod parts;
pub mod simd;
mod strategy;

pub use aligned::Aligned;
pub use arrange::arranged;
pub use evaluator::{BucketScore, EngineError, Evaluation, Evaluator};
pub use model::{Model, Scratch};
pub use simd::BackEnd;
pub use strategy::Strategy;
