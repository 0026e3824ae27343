//! Measures a feature set or network on real games: rows per move, neuron activity, quantisation error, wrong signs,
//! loss, speed.
//!
//! Games are counted in parallel. All counts are sums of integers, so the number of threads does not change a result.
//!
//! ```no_run
//! use fsbench::{features::FeatureSet, measure};
//!
//! let set = FeatureSet::resolve("half-ka-v2-hm")?;
//! let (record, _) = measure::updates(&set, "games.pgn.zst".as_ref(), Some(1000), false)?;
//! println!("{:.2} rows per move and perspective", record.mean.rows_cache);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activity;
mod equal_speed;
mod frequency;
mod ft_permute;
mod importance;
mod king_buckets;
mod lines;
mod loss;
mod neuron;
mod quantisation;
mod screen;
mod speed;
mod speed_race;
mod tally;
mod updates;
mod validation;
mod wrong_sign;

pub use activity::activity;
pub use equal_speed::{EqualSpeedOptions, OwnSpeeds, WIDTH_STEP, corrected_width, equal_speed, relative_speed};
pub use frequency::{Frequencies, frequencies};
pub use ft_permute::ft_permute;
pub use importance::{DEFAULT_SAMPLES, Importance, ImportanceOptions, importance};
pub use king_buckets::{KingSquareRows, king_square_rows, merged_king_buckets};
pub use lines::{Line, ReadSummary};
pub use loss::{LossOptions, LossProgress, MeasuredNetwork, loss};
pub use neuron::{AxisChoice, contributions, most_influential, neuron_weights};
pub use quantisation::{QuantisationOptions, quantisation};
pub use screen::{ScreenGames, ScreenOptions};
pub use speed::{SpeedOptions, SpeedProgress, speed};
pub use updates::updates;
pub use validation::validation;
pub use wrong_sign::wrong_sign;

use thiserror::Error;

use crate::data::{DataError, RecordError};
use crate::engine::EngineError;
use crate::features::Identity;
use crate::net::NetError;
use crate::train::TrainError;

#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("record {number} of {path}: {reason}")]
    Record { path: std::path::PathBuf, number: u64, reason: RecordError },
    #[error(
        "{path} holds no position to measure{}",
        if *skipped > 0 { format!("; {skipped} broken games were skipped") } else { String::new() }
    )]
    NoPositions { path: std::path::PathBuf, skipped: u64 },
    #[error("{path} holds positions, but no moves; rows per move need games, or samples with moves")]
    NoMoves { path: std::path::PathBuf },
    #[error(
        "`{set}` has no block with the factor square(K), whose squares could be merged into king buckets; give a \
         network on one, such as `square(K) * color(P) * role(P) * square(P) for P in pieces`"
    )]
    NoKingSquares { set: String },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error("{path} has {samples} samples, but the run validates on sample {sample}: the file has changed")]
    OtherData { path: std::path::PathBuf, sample: u32, samples: usize },
    #[error(
        "the network has feature set `{net}` ({net_identity}), the checkpoint has `{checkpoint}` \
         ({checkpoint_identity})"
    )]
    FeatureSets { net: String, net_identity: Identity, checkpoint: String, checkpoint_identity: Identity },
    #[error("the network has shape {net}, the checkpoint has {checkpoint}")]
    Shapes { net: String, checkpoint: String },
    #[error(
        "{path}: none of its {samples} samples has a target (λ = {lambda}: 1 needs a score, 0 a game result, values \
         between need both); choose another λ or other data"
    )]
    NoTarget { path: std::path::PathBuf, samples: u64, lambda: f64 },
    #[error(
        "{strategy} on {back_end} gives different scores than the first strategy; this is a bug in fsbench, please \
         report it"
    )]
    Disagreement { strategy: &'static str, back_end: &'static str },
    #[error(
        "{set} at l1 {l1} has {low:.2} to {high:.2} times the reference's speed, also after repetitions: the timings \
         are too noisy to choose a width of equal speed by; end other programs on this machine and run the experiment \
         again (what is done is kept)"
    )]
    NoisyTimings { set: String, l1: usize, low: f64, high: f64 },
}
