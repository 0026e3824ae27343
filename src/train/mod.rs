//! Training: the configuration, the run and its outcome. Everything that calls libtorch is compiled only with the
//! feature `train`; without it a run ends with [`TrainError::NoTrainer`].

mod config;
mod error;
mod loss_options;
mod metrics;
mod observer;
mod optimiser;
pub mod run_dir;
mod schedule;
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
mod kept_losses;
#[cfg(feature = "train")]
mod lanes;
#[cfg(feature = "train")]
mod lookahead;
#[cfg(feature = "train")]
mod loss;
#[cfg(feature = "train")]
mod matmul;
#[cfg(feature = "train")]
mod memory;
#[cfg(feature = "train")]
mod model;
#[cfg(feature = "train")]
mod objective;
#[cfg(feature = "train")]
mod order;
#[cfg(feature = "train")]
mod row_limits;
#[cfg(feature = "train")]
mod rows;
#[cfg(feature = "train")]
mod run;
#[cfg(feature = "train")]
mod sample_loss;
#[cfg(feature = "train")]
mod shard;
#[cfg(feature = "train")]
mod sparse;
#[cfg(feature = "train")]
mod stack;
#[cfg(feature = "train")]
mod start;
#[cfg(feature = "train")]
mod stream;
#[cfg(feature = "train")]
mod threads;
#[cfg(feature = "train")]
mod validation_cache;
#[cfg(feature = "train")]
mod validation_pass;

pub use config::{DeviceChoice, LayerWidths, SecondMethod, TrainConfig, TrainSettings};
pub use error::TrainError;
pub use loss_options::{EvalLoss, LossForm, PqrLoss};
pub use metrics::{EpochMetrics, NeuronActivity, SecondMetrics, TrainOutcome, WeightHistogram};
pub use observer::{RunObserver, RunOverview, Silent, StepMetrics};
pub use optimiser::{Optimisation, Optimiser};
pub use schedule::LearningRateSchedule;
pub use shape_options::ShapeOptions;

use std::path::Path;
use std::time::Duration;

/// A training run to be done.
#[derive(Copy, Clone, Debug)]
pub struct TrainingRun<'a> {
    pub config: &'a TrainConfig,
    /// The run's directory; [`run_dir`] lists its files.
    pub folder: &'a Path,
    /// Continue the run in the directory, or begin one if there is none.
    pub resume: bool,
    /// Replace the run in the directory.
    pub force: bool,
    /// The program that serves samples; `None`: this one.
    pub service: Option<&'a Path>,
    /// Time between two checkpoints within an epoch; there is one at each epoch's end in any case.
    pub checkpoint_every: Duration,
}

impl<'a> TrainingRun<'a> {
    /// The default of [`TrainingRun::checkpoint_every`]: a crash costs at most this much, and saving takes at most a
    /// hundredth of it.
    pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(300);

    /// A new run, served by this program.
    #[must_use]
    pub fn new(config: &'a TrainConfig, folder: &'a Path) -> TrainingRun<'a> {
        let checkpoint_every = TrainingRun::CHECKPOINT_EVERY;
        TrainingRun { config, folder, resume: false, force: false, service: None, checkpoint_every }
    }
}

/// The losses of some validation samples, by a run's network.
#[derive(Copy, Clone, Debug)]
pub struct ValidatedSamples<'a> {
    /// The number of each sample in the data.
    pub numbers: &'a [u32],
    pub losses: &'a [f32],
    /// pqr: whether the network prefers the move played; else empty.
    pub preferred: &'a [bool],
}

/// Receives the losses of a validation, batch after batch.
pub type ValidationVisitor<'a> = dyn FnMut(&ValidatedSamples<'_>) -> Result<(), TrainError> + 'a;

#[cfg(not(feature = "train"))]
impl TrainingRun<'_> {
    /// # Errors
    /// Always: this build cannot evaluate float networks as training does.
    pub fn validate_each(
        &self,
        _stop: &dyn Fn() -> bool,
        _visit: &mut ValidationVisitor<'_>,
    ) -> Result<(), TrainError> {
        Err(TrainError::NoTrainer)
    }

    /// # Errors
    /// Always: this build cannot train.
    pub fn train(&self, _observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        Err(TrainError::NoTrainer)
    }
}
