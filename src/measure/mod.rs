//! What a feature set or network does on real games: rows a move, neuron activity, quantisation error, loss,
//! speed.
//!
//! Counts over games run in parallel and are sums of integers, so that thread numbers change nothing.

mod activity;
mod error;
mod frequency;
mod ft_permute;
mod lines;
mod loss;
mod speed;
mod updates;

pub use activity::activity;
pub use error::{ErrorOptions, error};
pub use frequency::{Frequencies, frequencies};
pub use ft_permute::ft_permute;
pub use lines::{Line, ReadSummary};
pub use loss::{LossOptions, LossProgress, Network, loss};
pub use speed::{SpeedOptions, SpeedProgress, speed};
pub use updates::updates;

use thiserror::Error;

use crate::data::{DataError, RecordError};
use crate::engine::EngineError;
use crate::features::Identity;
use crate::net::NetError;

#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("record {number} of {path}: {reason}")]
    Record { path: std::path::PathBuf, number: u64, reason: RecordError },
    #[error("{path} holds no position to measure{}", if *skipped > 0 { format!("; {skipped} broken games were passed over") } else { String::new() })]
    Nothing { path: std::path::PathBuf, skipped: u64 },
    #[error("{path} holds positions, but no move: rows per move are counted over games, or samples with moves")]
    NoMoves { path: std::path::PathBuf },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the network is of `{net}` ({net_identity}), the checkpoint of `{checkpoint}` ({checkpoint_identity})")]
    Partners { net: String, net_identity: Identity, checkpoint: String, checkpoint_identity: Identity },
    #[error("network and checkpoint differ in shape: {net} against {checkpoint}")]
    Shapes { net: String, checkpoint: String },
    #[error(
        "{path}: none of its {samples} samples has what the loss is held against (λ = {lambda}: at 1 a score, at 0 a game \
         result, between either); choose another --lambda or other data"
    )]
    NoTarget { path: std::path::PathBuf, samples: u64, lambda: f64 },
    #[error("{strategy} on {back_end} gives other scores than the first run: a defect of fsbench, please report it")]
    Disagreement { strategy: &'static str, back_end: &'static str },
}
