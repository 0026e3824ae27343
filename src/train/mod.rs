//! Training: the configuration, the run and its outcome. The run loop is the same for every trainer ([`trainer`]): this
//! library's kernels on the CPU, and libtorch in the program `fsbench-tch`, which [`tch_program`] starts.

mod accumulators;
mod activity;
mod adam;
mod auto_device;
mod baseline;
mod batch;
mod checkpoint;
mod config;
mod config_checks;
mod cpu_trainer;
mod divergence;
mod error;
mod events;
mod factor;
mod gradient;
mod histogram;
mod init;
mod kept_losses;
mod lanes;
mod lookahead;
mod loss;
mod loss_options;
mod matmul;
mod metrics;
mod micro_batch;
mod objective;
mod observer;
mod optimiser;
mod order;
mod preset;
mod row_limits;
mod rows;
mod run;
pub mod run_dir;
mod schedule;
mod shape_options;
mod skipping;
mod sparse;
mod stack;
mod start;
mod starting_network;
mod stream;
pub mod tch_program;
pub mod trainer;
mod validation_cache;
mod validation_pass;
mod weight_average;

pub use config::{DeviceChoice, LayerWidths, SecondMethod, TrainConfig, TrainSettings, TrainerChoice};
pub use cpu_trainer::CpuTrainer;
pub use error::TrainError;
pub use loss_options::{EvalLoss, LambdaSchedule, LossForm, PqrLoss};
pub use metrics::{EpochMetrics, NeuronActivity, SecondMetrics, TrainOutcome, WeightHistogram};
pub use observer::{RunObserver, RunOverview, Silent, StepMetrics};
pub use optimiser::{Optimisation, Optimiser};
pub use preset::Preset;
pub use schedule::LearningRateSchedule;
pub use shape_options::ShapeOptions;
pub use skipping::{PieceCurve, SkipRules};
pub use weight_average::AveragedNetwork;

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
