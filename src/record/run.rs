//! A finished training run, without anything that depends on the clock: the same run gives the same bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::Method;
use crate::features::Identity;
use crate::train::TrainOutcome;
use crate::units::Seed;

/// Which run of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// The set's name in the experiment.
    pub set: String,
    pub method: Method,
    pub seed: Seed,
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
    /// Samples seen since the run began.
    pub samples: u64,
    pub learning_rate: f64,
    pub train_loss: f64,
    pub validation_loss: f64,
    /// pqr: share of validation samples whose chosen move is preferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_accuracy: Option<f64>,
}

/// What one training gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    #[serde(flatten)]
    pub key: RunKey,
    pub identity: Identity,
    pub num_features: u32,
    /// Trainable parameters.
    pub parameters: u64,
    pub training_samples: u64,
    pub validation_samples: u64,
    /// The epoch whose network was measured, the best one; none in records of versions that took the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_epoch: Option<u32>,
    /// Of that epoch.
    pub validation_loss: f64,
    /// Validation loss of the best constant output.
    pub baseline_loss: f64,
    pub epochs: Vec<EpochRecord>,
}

impl RunRecord {
    /// The lasting part of a training's outcome.
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
            num_features: outcome.num_features,
            parameters: outcome.parameters,
            training_samples: outcome.training_samples,
            validation_samples: outcome.validation_samples,
            best_epoch: outcome.best_epoch,
            validation_loss: outcome.validation_loss,
            baseline_loss: outcome.baseline_loss,
            epochs: epochs.collect(),
        }
    }

    /// The epoch whose network was measured.
    #[must_use]
    pub fn best(&self) -> Option<&EpochRecord> {
        match self.best_epoch {
            Some(best) => self.epochs.iter().find(|epoch| epoch.epoch == best),
            None => self.epochs.last(),
        }
    }
}
