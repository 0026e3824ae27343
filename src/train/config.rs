//! What a training run is asked to do, and what it reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::Method;
use crate::features::Identity;
use crate::units::Seed;

/// One training run, complete: the same configuration, data and CPU give the same network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// A name, a path or an expression, as on the command line.
    pub set: String,
    pub data: PathBuf,
    pub method: Method,
    pub seed: Seed,
    /// Accumulator width a perspective.
    pub l1: usize,
    /// Hidden layers' widths, first to last.
    pub hidden: Vec<usize>,
    /// Samples a step (a pqr sample holds three positions).
    pub batch_size: usize,
    pub epochs: u32,
    /// Samples an epoch; none = all of the training split.
    pub epoch_samples: Option<u64>,
    pub learning_rate: f64,
    /// Factor on the learning rate after every epoch.
    pub decay: f64,
    /// Share of games kept for validation.
    pub validation: f64,
    pub eval_loss: EvalLoss,
    pub pqr_loss: PqrLoss,
    /// Threads of the trainer; the service has as many of its own.
    pub threads: usize,
}

/// |σ(out/output_scale) − t|^power with t = λ·σ(score/score_scale) + (1−λ)·result.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalLoss {
    pub power: f64,
    pub score_scale: f64,
    pub output_scale: f64,
    pub lambda: f64,
}

impl Default for EvalLoss {
    fn default() -> Self {
        EvalLoss { power: 2.6, score_scale: 410.0, output_scale: 361.0, lambda: 1.0 }
    }
}

/// −log σ(r−q) − κ·log σ(p+q) − κ·log σ(−p−q) over f = 2σ(out/output_scale) − 1.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PqrLoss {
    pub kappa: f64,
    pub output_scale: f64,
}

impl Default for PqrLoss {
    fn default() -> Self {
        PqrLoss { kappa: 1.0, output_scale: 361.0 }
    }
}

/// One line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMetrics {
    /// From 1.
    pub epoch: u32,
    pub step: u64,
    /// Samples seen since the run began.
    pub samples: u64,
    pub learning_rate: f64,
    /// Mean over the epoch's samples.
    pub train_loss: f64,
    /// Mean over every sample of the validation split.
    pub validation_loss: f64,
    /// pqr: share of validation samples whose chosen move is preferred (r > q).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
    pub samples_per_second: f64,
    pub seconds: f64,
}

/// What a finished run leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub config: TrainConfig,
    pub name: String,
    pub identity: Identity,
    pub num_features: u32,
    /// Trainable parameters.
    pub parameters: u64,
    pub training_samples: u64,
    pub validation_samples: u64,
    pub epochs: Vec<EpochMetrics>,
    /// Of the last epoch.
    pub validation_loss: f64,
    /// Validation loss of the best constant output: what a network that sees nothing reaches.
    pub baseline_loss: f64,
    pub seconds: f64,
    /// Relative to the run's folder.
    pub network: PathBuf,
    pub checkpoint: PathBuf,
}
