//! Playing strength's inner loop: accumulators kept up to date move by move, and the integer forward pass.
//!
//! [`Model`] is a [`crate::net::QuantNet`] laid out for vector instructions, [`Evaluator`] walks it through positions by a
//! [`Strategy`]. The loops are in `kernels`, each once over the vectors of [`simd`]; all back ends give the same integers
//! as [`crate::net::forward_integer`].

mod aligned;
mod evaluator;
mod ft_permute;
mod kernels;
mod model;
mod partial_refresh;
mod refresh_cache;
pub mod simd;
mod strategy;

pub use aligned::AlignedVec;
pub use evaluator::{BucketScore, EngineError, Evaluation, Evaluator};
pub use ft_permute::ft_permute;
pub use model::{Model, Scratch};
pub use simd::BackEnd;
pub use strategy::Strategy;
