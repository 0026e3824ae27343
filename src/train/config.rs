//! What a training run is asked to do.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Optimisation, ShapeOptions, TrainError};
use crate::data::formats::{FileUnit, SaidBy, score_unit};
use crate::data::{DataError, Method, Needs, ScoreUnit};
use crate::net::Scheme;
use crate::service::ReadMode;
use crate::units::{Seed, Wdl};

/// One training run, complete: the same configuration, data and CPU give the same network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// A name, a path or an expression, as on the command line.
    pub set: String,
    pub data: PathBuf,
    /// Unit of the scores, where the data do not say it. What a run records is the unit that held: none means that the
    /// data said it or, of runs before there was a choice, centipawns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_unit: Option<ScoreUnit>,
    /// Whether binpacks are filtered by the method first.
    #[serde(default = "built")]
    pub source: ReadMode,
    /// Whether the set's factors are trained beside its features.
    #[serde(default)]
    pub factor: bool,
    pub method: Method,
    /// First ply of a game that makes samples, where the data are built; none = each method's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ply: Option<u16>,
    pub seed: Seed,
    /// Accumulator width a perspective.
    pub l1: usize,
    /// Hidden layers' widths, first to last.
    pub hidden: Vec<usize>,
    #[serde(default)]
    pub design: ShapeOptions,
    /// Name of the quantisation scheme.
    #[serde(default = "stockfish")]
    pub scheme: String,
    /// Internal score units a pawn of the network, which is trained in centipawns whatever they are.
    #[serde(default = "hundred", skip_serializing_if = "is_hundred")]
    pub pawn: i32,
    /// Samples a step (a pqr sample holds three positions).
    pub batch_size: usize,
    pub epochs: u32,
    /// Samples an epoch; none = all of the training split.
    pub epoch_samples: Option<u64>,
    pub learning_rate: f64,
    /// Factor on the learning rate after every epoch.
    pub decay: f64,
    #[serde(default)]
    pub recipe: Optimisation,
    /// A second method, learned from in the same steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondMethod>,
    /// A network of this set and shape to begin with instead of seeded numbers, whatever it learned from: a checkpoint, or
    /// a quantised network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
    /// Share of games kept for validation.
    pub validation: f64,
    /// Root of the choice of those games.
    #[serde(default, skip_serializing_if = "is_default")]
    pub split_seed: Seed,
    pub eval_loss: EvalLoss,
    pub pqr_loss: PqrLoss,
    /// Leave out the rows of features that are proved dead: no score changes, the network is smaller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact_dead: bool,
    /// Threads of the trainer; the service has as many of its own.
    pub threads: usize,
    #[serde(default)]
    pub device: DeviceChoice,
}

fn is_default(seed: &Seed) -> bool {
    *seed == Seed::default()
}

/// Where to train.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// On a GPU where there is one.
    #[default]
    Auto,
    Cpu,
    Cuda,
}

const fn hundred() -> i32 {
    100
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_hundred(pawn: &i32) -> bool {
    *pawn == 100
}

/// The scheme of runs before there was a choice.
fn stockfish() -> String {
    Scheme::stockfish().name
}

/// A method beside the first: each step takes a batch of either and minimises first + weight · second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondMethod {
    pub method: Method,
    pub data: PathBuf,
    /// As [`TrainConfig::from_unit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_unit: Option<ScoreUnit>,
    pub source: ReadMode,
    pub weight: f64,
}

/// One of a run's methods.
#[derive(Copy, Clone, Debug)]
pub struct Task<'a> {
    pub method: Method,
    pub data: &'a Path,
    pub from_unit: Option<ScoreUnit>,
    pub source: ReadMode,
    pub weight: f64,
    /// The first method's samples make the epochs; the second's come round and round.
    pub first: bool,
}

/// What runs before there was a choice had.
const fn built() -> ReadMode {
    ReadMode::Built
}

impl TrainConfig {
    /// # Errors
    /// When there is no scheme of that name.
    pub fn scheme(&self) -> Result<Scheme, TrainError> {
        let scheme = Scheme::named(&self.scheme).map(|scheme| Scheme { pawn_value: self.pawn, ..scheme });
        scheme.ok_or_else(|| {
            let names = Scheme::all().map(|scheme| scheme.name).join(", ");
            TrainError::Config(format!("there is no quantisation scheme `{}`; there are {names}", self.scheme))
        })
    }

    /// The methods, the first one first.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task<'_>> {
        let TrainConfig { method, data, from_unit, source, .. } = self;
        let first = Task { method: *method, data, from_unit: *from_unit, source: *source, weight: 1.0, first: true };
        let second = self.second.as_ref().map(|second| {
            let SecondMethod { method, data, from_unit, source, weight } = second;
            Task { method: *method, data, from_unit: *from_unit, source: *source, weight: *weight, first: false }
        });
        std::iter::once(first).chain(second).collect()
    }

    /// The same run with the unit of its scores settled ([`TrainConfig::from_unit`]).
    ///
    /// # Errors
    /// When the data cannot be read, or say another unit than the one asked for.
    pub fn settled(&self) -> Result<TrainConfig, DataError> {
        let settle = |method, data: &Path, from_unit: &mut Option<ScoreUnit>| {
            if method == Method::Eval {
                let FileUnit { unit, said_by } = score_unit(data, None, *from_unit)?;
                *from_unit = (said_by != SaidBy::File).then_some(unit);
            }
            Ok::<(), DataError>(())
        };
        let mut settled = self.clone();
        settle(settled.method, &settled.data, &mut settled.from_unit)?;
        if let Some(second) = &mut settled.second {
            settle(second.method, &second.data, &mut second.from_unit)?;
        }
        Ok(settled)
    }
}

pub(super) fn positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
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
    /// What a sample must hold to be learned from: a score unless λ is 0 throughout, a result where it is 0 at some time.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let ends = [self.lambda, self.lambda_end.unwrap_or(self.lambda)];
        match self.form {
            LossForm::Epsilon => Needs::Score,
            LossForm::Power if ends == [0.0; 2] => Needs::Result,
            LossForm::Power if ends.contains(&0.0) => Needs::Both,
            LossForm::Power => Needs::Score,
        }
    }

    /// What is wrong with the numbers, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let EvalLoss { power, score_scale, output_scale, lambda, lambda_end, epsilon, form: _ } = *self;
        if !(power.is_finite() && power >= 1.0) {
            return Some(format!("the loss's power is at least 1, not {power}"));
        }
        if let Some(lambda) = [lambda, lambda_end.unwrap_or(lambda)].into_iter().find(|l| !(0.0..=1.0).contains(l)) {
            return Some(format!("λ lies in 0 to 1, not at {lambda}"));
        }
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return Some(format!("ε is at least 0, not {epsilon}"));
        }
        (![score_scale, output_scale].into_iter().all(positive)).then(|| "the loss's scales are above 0".into())
    }

    /// What an output is held against; `score`: centipawns, `result`: 0, 0.5 or 1, both side to move's view. Form epsilon:
    /// the score. Form power: t = λ·σ(score/score_scale) + (1−λ)·result; with only one of the two known, that one. None
    /// when neither is, or when λ leaves no weight to the one that is.
    #[must_use]
    pub fn target(&self, score: Option<f32>, result: Option<f32>) -> Option<f32> {
        if self.form == LossForm::Epsilon {
            return score;
        }
        let wdl = score.map(|score| Wdl::from_score(score, self.score_scale as f32).0);
        let lambda = self.lambda as f32;
        match (wdl, result) {
            (Some(wdl), Some(result)) => Some(lambda * wdl + (1.0 - lambda) * result),
            (Some(wdl), None) if lambda > 0.0 => Some(wdl),
            (None, Some(result)) if lambda < 1.0 => Some(result),
            _ => None,
        }
    }

    /// The loss of an output, in centipawns, against a target.
    #[must_use]
    pub fn of(&self, out: f64, target: f64) -> f64 {
        match self.form {
            LossForm::Power => (1.0 / (1.0 + (-out / self.output_scale).exp()) - target).abs().powf(self.power),
            LossForm::Epsilon => ((out - target).abs() - self.epsilon).max(0.0),
        }
    }

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

impl PqrLoss {
    /// What is wrong with the numbers, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if !positive(self.output_scale) {
            return Some("the loss's scales are above 0".into());
        }
        let good = self.kappa >= 0.0 && self.kappa.is_finite();
        (!good).then(|| format!("κ is at least 0, not {}", self.kappa))
    }
}

impl Default for PqrLoss {
    fn default() -> Self {
        PqrLoss { kappa: 1.0, output_scale: 361.0 }
    }
}
