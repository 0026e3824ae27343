//! The metrics of an epoch and the outcome of a run.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AveragedNetwork, TrainConfig};
use crate::data::Method;
use crate::features::Identity;

/// One line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EpochMetrics {
    /// From 1.
    pub epoch: u32,
    /// Steps taken so far.
    pub step: u64,
    /// Samples seen since the run began.
    pub samples: u64,
    /// Learning rate at the epoch's end.
    pub learning_rate: f64,
    /// Mean over the epoch's samples.
    pub train_loss: f64,
    /// Mean over the validation split.
    pub validation_loss: f64,
    /// pqr: share of validation samples whose chosen move is preferred (r > q).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
    /// Metrics of the second method, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondMetrics>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neurons: Option<NeuronActivity>,
    /// At the epoch's end, one per kind of array.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<WeightHistogram>,
    /// In training, without validation; absent if a resumed run had only the validation left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_second: Option<f64>,
    /// Duration of the epoch.
    pub seconds: f64,
}

/// An epoch's metrics for the second method.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondMetrics {
    pub method: Method,
    /// Mean training loss of the second method.
    pub train_loss: f64,
    /// Its validation loss.
    pub validation_loss: f64,
    /// Share of its validation samples in which the network prefers the move played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
}

/// Distribution of the weights of an array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WeightHistogram {
    /// As in a checkpoint; all buckets' layers are counted together.
    pub name: String,
    /// The smallest weight.
    pub min: f64,
    /// The largest weight.
    pub max: f64,
    /// Sum of the weights.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_of_squares: f64,
    /// Counts in bins of equal width from `min` to `max`.
    pub counts: Vec<u64>,
}

/// Activity of the accumulators' neurons over the validation split, after the activation.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeuronActivity {
    /// Share of values above 0.
    pub positive: f64,
    /// Share of values at the activation's upper end.
    pub saturated: f64,
    /// Share of neurons that were never above 0.
    pub dead: f64,
}

/// The outcome of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainOutcome {
    pub config: TrainConfig,
    /// The set's name.
    pub name: String,
    pub identity: Identity,
    /// The GPU that trained, or took the last steps of a resumed run; absent: the CPU did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Inputs per perspective.
    pub num_features: u32,
    /// Trainable parameters.
    pub parameters: u64,
    /// Of these, all but the rows of features that no training sample has.
    pub trained_parameters: u64,
    /// Samples per epoch.
    pub training_samples: u64,
    /// Different samples that the run has learned from, at most; absent: as many as `training_samples`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct_samples: Option<u64>,
    /// Samples of the validation split.
    pub validation_samples: u64,
    pub epochs: Vec<EpochMetrics>,
    /// The epoch, from 1, of the network and its validation loss: the epoch with the lowest loss, or the last one if the
    /// network is the weights' average.
    pub best_epoch: u32,
    /// Validation loss of the network.
    pub validation_loss: f64,
    /// The average of the weights over the last part of the run, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaged: Option<AveragedNetwork>,
    /// Validation loss of the best constant output, which a network without inputs reaches.
    pub baseline_loss: f64,
    /// Duration of the epochs, validation included.
    pub seconds: f64,
    /// The network's path, relative to the run's directory.
    pub network: PathBuf,
    /// The float network it was quantised from.
    pub weights: PathBuf,
    /// The last epoch's network, quantised.
    pub last: PathBuf,
    /// The checkpoint from which the run can be continued.
    pub checkpoint: PathBuf,
}

impl TrainOutcome {
    /// Different samples that the run has learned from, at most.
    #[must_use]
    pub fn distinct_samples(&self) -> u64 {
        self.distinct_samples.unwrap_or(self.training_samples)
    }

    /// The metrics of the network's epoch.
    #[must_use]
    pub fn best(&self) -> Option<&EpochMetrics> {
        self.epochs.iter().find(|epoch| epoch.epoch == self.best_epoch)
    }
}
