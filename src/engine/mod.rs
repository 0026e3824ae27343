//! The inner loop of playing: accumulators that are updated move by move, and the integer forward pass.
//!
//! [`Model`] is a [`crate::net::QuantNet`] laid out for vector instructions. [`Evaluator`] follows a line of moves with
//! it, by a [`Strategy`]. Each loop is written once in `kernels`, over the vectors of [`simd`]. All back ends give the
//! same integers as the reference, [`crate::net::forward_integer`].

mod aligned;
mod dense_layer;
mod evaluation;
mod evaluator;
mod ft_permute;
mod ft_rows;
mod kernels;
mod line;
mod model;
mod position_list;
mod quantisation_error;
mod refresh_cache;
mod refresh_rule;
pub mod simd;
mod strategy;

pub use crate::cpu::BackEnd;
pub use aligned::{AlignedVec, HugePageTable};
pub use evaluation::{BucketScore, Evaluation};
pub use evaluator::{EngineError, Evaluator};
pub use ft_permute::ft_permute;
pub use line::{LineEvaluator, LinePosition, LineStep, PlayedPosition};
pub use model::{Model, Scratch};
pub use position_list::PositionList;
pub use quantisation_error::{Differences, NetworkPair};
pub use strategy::Strategy;
