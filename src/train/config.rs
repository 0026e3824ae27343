//! What a training run is asked to do, and what it reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Design, Recipe, TrainError};
use crate::data::Method;
use crate::features::Identity;
use crate::service::Source;
use crate::units::Seed;

/// One training run, complete: the same configuration, data and CPU give the same network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// A name, a path or an expression, as on the command line.
    pub set: String,
    pub data: PathBuf,
    /// Whether binpacks are filtered by the method first.
    #[serde(default = "built")]
    pub source: Source,
    /// Whether the set's factors are trained beside its features.
    #[serde(default)]
    pub factor: bool,
    pub method: Method,
    pub seed: Seed,
    /// Accumulator width a perspective.
    pub l1: usize,
    /// Hidden layers' widths, first to last.
    pub hidden: Vec<usize>,
    #[serde(default)]
    pub design: Design,
    /// Samples a step (a pqr sample holds three positions).
    pub batch_size: usize,
    pub epochs: u32,
    /// Samples an epoch; none = all of the training split.
    pub epoch_samples: Option<u64>,
    pub learning_rate: f64,
    /// Factor on the learning rate after every epoch.
    pub decay: f64,
    #[serde(default)]
    pub recipe: Recipe,
    /// A float network to begin with instead of seeded numbers: a checkpoint of this set and shape, whatever it learned
    /// from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
    /// Share of games kept for validation.
    pub validation: f64,
    pub eval_loss: EvalLoss,
    pub pqr_loss: PqrLoss,
    /// Leave out the rows of features that are proved dead: no score changes, the network is smaller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact_dead: bool,
    /// Threads of the trainer; the service has as many of its own.
    pub threads: usize,
}

/// What runs before there was a choice had.
const fn built() -> Source {
    Source::Built
}

impl TrainConfig {
    /// # Errors
    /// When a number makes no sense.
    pub fn validate(&self) -> Result<(), TrainError> {
        let wrong = |why: String| Err(TrainError::Config(why));
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if self.batch_size == 0 || self.epochs == 0 || self.threads == 0 || self.epoch_samples == Some(0) {
            return wrong("batch size, epochs, samples an epoch and threads are at least 1".into());
        }
        if !positive(self.learning_rate) || !positive(self.decay) {
            let (rate, decay) = (self.learning_rate, self.decay);
            return wrong(format!("learning rate and decay are above 0, not {rate} and {decay}"));
        }
        if !(self.validation > 0.0 && self.validation < 1.0) {
            return wrong(format!("the validation share lies between 0 and 1, not at {}", self.validation));
        }
        if let Some(problem) = self.recipe.problem() {
            return wrong(problem);
        }
        let EvalLoss { power, score_scale, output_scale, lambda, lambda_end, epsilon, form: _ } = self.eval_loss;
        if !(power.is_finite() && power >= 1.0) {
            return wrong(format!("the loss's power is at least 1, not {power}"));
        }
        if let Some(lambda) = [lambda, lambda_end.unwrap_or(lambda)].into_iter().find(|l| !(0.0..=1.0).contains(l)) {
            return wrong(format!("λ lies in 0 to 1, not at {lambda}"));
        }
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return wrong(format!("ε is at least 0, not {epsilon}"));
        }
        if ![score_scale, output_scale, self.pqr_loss.output_scale].into_iter().all(positive) {
            return wrong("the loss's scales are above 0".into());
        }
        match self.pqr_loss.kappa >= 0.0 && self.pqr_loss.kappa.is_finite() {
            true => Ok(()),
            false => wrong(format!("κ is at least 0, not {}", self.pqr_loss.kappa)),
        }
    }
}

/// How far an output is from its target.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LossForm {
    /// |σ(out/output_scale) − t|^power with t = λ·σ(score/score_scale) + (1−λ)·result.
    #[default]
    Power,
    /// max(0, |score − out| − ε), in centipawns.
    Epsilon,
}

/// The loss of the method eval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalLoss {
    pub power: f64,
    pub score_scale: f64,
    pub output_scale: f64,
    pub lambda: f64,
    /// λ of the last epoch, reached in even steps; none = as in the first. Validation has it from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda_end: Option<f64>,
    pub form: LossForm,
    /// Centipawns.
    pub epsilon: f64,
}

impl EvalLoss {
    /// The loss of an epoch, counted from 0.
    #[must_use]
    pub fn at(self, epoch: u32, epochs: u32) -> EvalLoss {
        let last = epochs.saturating_sub(1);
        let part = if last == 0 { 1.0 } else { f64::from(epoch.min(last)) / f64::from(last) };
        let end = self.lambda_end.unwrap_or(self.lambda);
        EvalLoss { lambda: self.lambda + (end - self.lambda) * part, lambda_end: None, ..self }
    }
}

impl Default for EvalLoss {
    fn default() -> Self {
        EvalLoss {
            power: 2.6,
            score_scale: 410.0,
            output_scale: 361.0,
            lambda: 1.0,
            lambda_end: None,
            form: LossForm::Power,
            epsilon: 10.0,
        }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neurons: Option<Neurons>,
    pub samples_per_second: f64,
    pub seconds: f64,
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
pub struct Outcome {
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
    /// Of the last epoch.
    pub validation_loss: f64,
    /// Validation loss of the best constant output: what a network that sees nothing reaches.
    pub baseline_loss: f64,
    /// Spent on the epochs, validation included.
    pub seconds: f64,
    /// Relative to the run's folder.
    pub network: PathBuf,
    pub checkpoint: PathBuf,
}
