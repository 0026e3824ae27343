//! Training: configuration, outcome and the run's interface here for everyone; whatever touches libtorch only with the
//! feature `train`. Without it a run gives [`TrainError::NoTrainer`].

mod config;
mod error;
mod metrics;
mod observer;
mod optimiser;
pub mod run_dir;
mod shape_options;
mod validate;

#[cfg(feature = "train")]
mod accumulators;
#[cfg(feature = "train")]
mod activity;
#[cfg(feature = "train")]
mod adam;
#[cfg(feature = "train")]
mod batch;
#[cfg(feature = "train")]
mod checkpoint;
#[cfg(feature = "train")]
mod dense;
#[cfg(feature = "train")]
mod device;
#[cfg(feature = "train")]
mod divergence;
#[cfg(feature = "train")]
mod events;
#[cfg(feature = "train")]
mod factor;
#[cfg(feature = "train")]
mod gradient;
#[cfg(feature = "train")]
mod histogram;
#[cfg(feature = "train")]
mod init;
#[cfg(feature = "train")]
mod lookahead;
#[cfg(feature = "train")]
mod loss;
#[cfg(feature = "train")]
mod memory;
#[cfg(feature = "train")]
mod model;
#[cfg(feature = "train")]
mod objective;
#[cfg(feature = "train")]
mod run;
#[cfg(feature = "train")]
mod shard;
#[cfg(feature = "train")]
mod sparse;
#[cfg(feature = "train")]
mod start;
#[cfg(feature = "train")]
mod stream;
#[cfg(feature = "train")]
mod threads;
#[cfg(feature = "train")]
mod validator;

pub use config::{DeviceChoice, EvalLoss, LossForm, PqrLoss, SecondMethod, TrainConfig};
pub use error::TrainError;
pub use metrics::{EpochMetrics, Neurons, SecondMetrics, TrainOutcome, WeightHistogram};
pub use observer::{RunObserver, RunOverview, Silent, StepMetrics};
pub use optimiser::{Length, Optimisation, Optimiser, Schedule};
pub use shape_options::ShapeOptions;
pub use validate::IdleSetting;

use std::path::Path;
use std::time::Duration;

/// A training run to do.
#[derive(Copy, Clone, Debug)]
pub struct TrainingRun<'a> {
    pub config: &'a TrainConfig,
    /// See [`run_dir`] for what will stand there.
    pub folder: &'a Path,
    /// Go on with the run in the folder; from the beginning where none has begun.
    pub resume: bool,
    /// Replace the run in the folder.
    pub force: bool,
    /// The program that serves samples; none = this one.
    pub service: Option<&'a Path>,
    /// Between two checkpoints within an epoch; there is one at each epoch's end in any case.
    pub checkpoint_every: Duration,
}

impl<'a> TrainingRun<'a> {
    /// A checkpoint this often bounds what a crash costs, and saving takes a hundredth of it at most.
    pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(300);

    /// The run in a folder, served by this program.
    #[must_use]
    pub fn new(config: &'a TrainConfig, folder: &'a Path) -> TrainingRun<'a> {
        let checkpoint_every = TrainingRun::CHECKPOINT_EVERY;
        TrainingRun { config, folder, resume: false, force: false, service: None, checkpoint_every }
    }
}

#[cfg(not(feature = "train"))]
impl TrainingRun<'_> {
    /// # Errors
    /// Always: this build cannot train.
    pub fn train(&self, _observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        Err(TrainError::NoTrainer)
    }
}

/// Trains in `folder`, served by this program. A folder that holds a run already is refused unless `resume`.
///
/// # Errors
/// See [`TrainError`].
pub fn run(
    config: &TrainConfig,
    folder: &Path,
    resume: bool,
    observer: &mut dyn RunObserver,
) -> Result<TrainOutcome, TrainError> {
    TrainingRun { resume, ..TrainingRun::new(config, folder) }.train(observer)
}
