//! What a run reports: an epoch's numbers, and the outcome.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::TrainConfig;
use super::run_dir::CHECKPOINT;
use crate::data::Method;
use crate::features::Identity;

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
    /// Of the second method, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondMetrics>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neurons: Option<Neurons>,
    /// Of every kind of array at the epoch's end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<WeightHistogram>,
    /// In training; none where a continued run only had the validation left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_second: Option<f64>,
    pub seconds: f64,
}

/// What an epoch did for the second method.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondMetrics {
    pub method: Method,
    pub train_loss: f64,
    pub validation_loss: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
}

/// How the numbers of an array are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightHistogram {
    /// As in a checkpoint; the stacks of all buckets count as one.
    pub name: String,
    pub min: f64,
    pub max: f64,
    pub sum: f64,
    pub sum_of_squares: f64,
    /// In bins of one width from `min` to `max`.
    pub counts: Vec<u64>,
}

/// What the accumulators' neurons did over the validation split, after the activation.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neurons {
    /// Share of values above 0.
    pub positive: f64,
    /// Share of values at the upper end.
    pub saturated: f64,
    /// Share of neurons that were never above 0.
    pub dead: f64,
}

/// What a finished run leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainOutcome {
    pub config: TrainConfig,
    pub name: String,
    pub identity: Identity,
    pub num_features: u32,
    /// Trainable parameters.
    pub parameters: u64,
    /// Samples an epoch.
    pub training_samples: u64,
    /// Samples of the validation split.
    pub validation_samples: u64,
    pub epochs: Vec<EpochMetrics>,
    /// The epoch, from 1, that the network and its validation loss are of: the one with the lowest loss. None in outcomes of
    /// versions that took the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_epoch: Option<u32>,
    /// Of the network.
    pub validation_loss: f64,
    /// Validation loss of the best constant output: what a network that sees nothing reaches.
    pub baseline_loss: f64,
    /// Spent on the epochs, validation included.
    pub seconds: f64,
    /// Relative to the run's folder.
    pub network: PathBuf,
    /// The float network it was quantised from.
    #[serde(default = "of_earlier_versions")]
    pub weights: PathBuf,
    /// The last epoch's network, quantised; none in outcomes of versions where [`TrainOutcome::network`] was it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<PathBuf>,
    /// What the run goes on from.
    pub checkpoint: PathBuf,
}

/// Their network was the last epoch's.
fn of_earlier_versions() -> PathBuf {
    CHECKPOINT.into()
}

impl TrainOutcome {
    /// The metrics of the epoch the network is of.
    #[must_use]
    pub fn best(&self) -> Option<&EpochMetrics> {
        match self.best_epoch {
            Some(best) => self.epochs.iter().find(|epoch| epoch.epoch == best),
            None => self.epochs.last(),
        }
    }
}
