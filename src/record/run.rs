//! A finished training run. The record holds nothing that depends on the clock, so the same run gives the same bytes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::Method;
use crate::features::Identity;
use crate::train::TrainOutcome;
use crate::units::Seed;

/// Identifies a run of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct RunKey {
    /// The label of the run's row.
    pub set: String,
    pub method: Method,
    pub seed: Seed,
}

impl RunKey {
    /// The run's name in characters that every file system accepts. A hash keeps different runs apart.
    #[must_use]
    pub fn file_stem(&self) -> String {
        let RunKey { set, method, seed } = self;
        let plain: String = set.chars().map(to_file_name_char).take(60).collect();
        let hash =
            if plain == *set { String::new() } else { format!("-{}", &blake3::hash(set.as_bytes()).to_hex()[..6]) };
        format!("{}-{plain}{hash}-seed{}", method.name(), seed.0)
    }
}

/// Replaces characters that some file systems do not accept.
#[must_use]
pub fn to_file_name_char(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.method {
            Method::Eval => "eval",
            Method::Pqr => "pqr",
        };
        write!(f, "{} by {method}, seed {}", self.set, self.seed.0)
    }
}

/// One epoch of the learning curve.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// From 1.
    pub epoch: u32,
    /// Samples trained on since the start of the run.
    pub samples: u64,
    pub learning_rate: f64,
    pub train_loss: f64,
    pub validation_loss: f64,
    /// pqr: share of validation samples in which the network prefers the played move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
}

/// The result of one training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    #[serde(flatten)]
    pub key: RunKey,
    pub identity: Identity,
    /// The GPU that trained, or took the last steps of a resumed run; absent: the CPU did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    pub num_features: u32,
    /// Number of trainable parameters.
    pub parameters: u64,
    /// Of these, all but the rows of features that no training sample has; `None` where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained_parameters: Option<u64>,
    pub training_samples: u64,
    /// Different samples that it learned from, at most; `None`: as many as `training_samples`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct_samples: Option<u64>,
    pub validation_samples: u64,
    /// The best epoch, whose network was measured.
    pub best_epoch: u32,
    /// Validation loss of that epoch.
    pub validation_loss: f64,
    /// Validation loss of the best constant output.
    pub baseline_loss: f64,
    pub epochs: Vec<EpochRecord>,
}

impl RunRecord {
    /// Takes from a training's outcome all that does not depend on the clock.
    #[must_use]
    pub fn new(key: RunKey, outcome: &TrainOutcome) -> RunRecord {
        let epochs = outcome.epochs.iter().map(|epoch| EpochRecord {
            epoch: epoch.epoch,
            samples: epoch.samples,
            learning_rate: epoch.learning_rate,
            train_loss: epoch.train_loss,
            validation_loss: epoch.validation_loss,
            validation_accuracy: epoch.validation_accuracy,
        });
        RunRecord {
            key,
            identity: outcome.identity.clone(),
            gpu: outcome.gpu.clone(),
            num_features: outcome.num_features,
            parameters: outcome.parameters,
            trained_parameters: Some(outcome.trained_parameters),
            training_samples: outcome.training_samples,
            distinct_samples: outcome.distinct_samples,
            validation_samples: outcome.validation_samples,
            best_epoch: outcome.best_epoch,
            validation_loss: outcome.validation_loss,
            baseline_loss: outcome.baseline_loss,
            epochs: epochs.collect(),
        }
    }

    /// With fewer training samples per trained parameter, a network may learn its samples by heart, and the sets with
    /// the most parameters suffer first. Ten is the rule of thumb of regressions (Peduzzi et al. 1996: ten events per
    /// variable). In the results that come with fsbench, nearly all runs above it were best in their last epoch, and
    /// two of three below it before.
    pub const SAMPLES_PER_PARAMETER: f64 = 10.0;

    /// The epoch whose network was measured.
    #[must_use]
    pub fn measured_epoch(&self) -> Option<&EpochRecord> {
        self.epochs.iter().find(|epoch| epoch.epoch == self.best_epoch)
    }
}
