//! Settings of the losses `eval` and `pqr`, the target that `eval` learns and the loss of a single output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_checks::positive;
use crate::data::Needs;
use crate::settings::SettingError;
use crate::units::Wdl;

/// How the distance between output and target is measured.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LossForm {
    /// |σ(out/output_scale) − t|^power with t = λ·σ(score/score_scale) + (1−λ)·result.
    #[default]
    Power,
    /// max(0, |score − out| − ε), in centipawns.
    Epsilon,
}

/// The loss of the method eval
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EvalLoss {
    /// eval: power of the error
    #[arg(long, default_value_t = EvalLoss::default().power)]
    pub power: f64,
    /// eval: centipawns per unit of the logistic that maps scores to expected results
    #[arg(long, default_value_t = EvalLoss::default().score_scale)]
    pub score_scale: f64,
    /// Centipawns per unit of the logistic that maps the network's output to expected results
    #[arg(long, default_value_t = EvalLoss::default().output_scale)]
    pub output_scale: f64,
    /// eval: weight of the score in the target; the rest is the game's result
    #[arg(long, default_value_t = EvalLoss::default().lambda)]
    pub lambda: f64,
    /// eval: weight of the score in the last epoch, reached in even steps [default: as in the first]
    // Validation uses it from the first epoch on.
    #[arg(long, value_name = "LAMBDA")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda_end: Option<f64>,
    /// eval: power: of the difference of expected results; epsilon: centipawns beyond a tolerance
    #[arg(long = "loss", value_enum, default_value_t)]
    pub form: LossForm,
    /// eval, loss epsilon: the tolerance in centipawns
    #[arg(long, default_value_t = EvalLoss::default().epsilon)]
    pub epsilon: f64,
}

impl EvalLoss {
    /// The labels that a sample must have: a score unless λ is always 0, a result if λ is 0 in some epoch.
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

    /// The same loss with the numbers that its form does not use at their defaults.
    #[must_use]
    pub fn effective(self) -> EvalLoss {
        let default = EvalLoss::default();
        match self.form {
            LossForm::Power => EvalLoss { epsilon: default.epsilon, ..self },
            LossForm::Epsilon => EvalLoss { form: self.form, epsilon: self.epsilon, ..default },
        }
    }

    /// The first number that is out of range.
    #[must_use]
    pub fn problem(&self) -> Option<SettingError> {
        let problem = |key, message| Some(SettingError::new(key, message));
        let EvalLoss { power, score_scale, output_scale, lambda, lambda_end, epsilon, form: _ } = *self;
        if !(power.is_finite() && power >= 1.0) {
            return problem("power", format!("the loss's power must be at least 1, not {power}"));
        }
        for (key, lambda) in [("lambda", lambda), ("lambda_end", lambda_end.unwrap_or(lambda))] {
            if !(0.0..=1.0).contains(&lambda) {
                return problem(key, format!("λ must lie between 0 and 1, not at {lambda}"));
            }
        }
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return problem("epsilon", format!("ε must be at least 0, not {epsilon}"));
        }
        for (key, scale) in [("score_scale", score_scale), ("output_scale", output_scale)] {
            if !positive(scale) {
                return problem(key, "the loss's scales must be above 0".into());
            }
        }
        None
    }

    /// The target of a sample. `score` is in centipawns and `result` is 0, 0.5 or 1, both from the side to move. Form
    /// epsilon: the score. Form power: t = λ·σ(score/score_scale) + (1−λ)·result; with only one of the two known, that
    /// one. `None` if neither is known, or if λ gives no weight to the known one.
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

    /// The loss of an epoch, counted from 0: λ is interpolated between `lambda` and `lambda_end`.
    #[must_use]
    pub fn at(self, epoch: u32, epochs: u32) -> EvalLoss {
        let last = epochs.saturating_sub(1);
        let progress = if last == 0 { 1.0 } else { f64::from(epoch.min(last)) / f64::from(last) };
        let end = self.lambda_end.unwrap_or(self.lambda);
        EvalLoss { lambda: self.lambda + (end - self.lambda) * progress, lambda_end: None, ..self }
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

/// The loss of the method pqr
///
/// −log σ(r−q) − κ·log σ(p+q) − κ·log σ(−p−q) over f = 2σ(out/output_scale) − 1.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PqrLoss {
    /// pqr: weight of the terms that make a position and the one after the chosen move equal
    #[arg(long, default_value_t = PqrLoss::default().kappa)]
    pub kappa: f64,
    /// Centipawns per unit of the logistic that maps the network's output to expected results
    // On the command line one option serves both losses: `EvalLoss::output_scale`.
    #[arg(skip = PqrLoss::default().output_scale)]
    pub output_scale: f64,
}

impl PqrLoss {
    /// The first number that is out of range.
    #[must_use]
    pub fn problem(&self) -> Option<SettingError> {
        if !positive(self.output_scale) {
            return Some(SettingError::new("output_scale", "the loss's scales must be above 0"));
        }
        if self.kappa >= 0.0 && self.kappa.is_finite() {
            return None;
        }
        Some(SettingError::new("kappa", format!("κ must be at least 0, not {}", self.kappa)))
    }
}

impl Default for PqrLoss {
    fn default() -> Self {
        PqrLoss { kappa: 1.0, output_scale: 361.0 }
    }
}
