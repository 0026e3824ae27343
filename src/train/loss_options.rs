//! Settings of the losses `eval` and `pqr`, the target that `eval` learns and the loss of a single output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_checks::positive;
use crate::data::Needs;
use crate::settings::SettingError;
use crate::units::{Draws, Wdl};

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

/// The course of λ from its first to its last value.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LambdaSchedule {
    /// In even steps.
    #[default]
    Linear,
    /// Along half a cosine: slow at both ends.
    Cosine,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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
    /// eval: weight of the score in the last epoch, reached along the λ schedule [default: as in the first]
    // Validation uses it from the first epoch on.
    #[arg(long, value_name = "LAMBDA")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda_end: Option<f64>,
    /// eval: how λ goes from its first to its last value
    #[arg(long, value_enum, default_value_t)]
    #[serde(skip_serializing_if = "is_default")]
    pub lambda_schedule: LambdaSchedule,
    /// eval: standard deviation of a normal deviate that is added to each training sample's λ, the same whenever the
    /// sample comes; the sum is cut to 0 to 1
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    #[serde(skip_serializing_if = "is_zero")]
    pub lambda_jitter: f64,
    /// eval: offset in centipawns of a win-rate model that maps scores to expected results:
    /// (1 + σ((score − offset)/scale) − σ((−score − offset)/scale))/2
    #[arg(long, value_name = "CP", default_value_t = 0.0)]
    #[serde(skip_serializing_if = "is_zero")]
    pub score_offset: f64,
    /// eval: such an offset, for the network's output
    #[arg(long, value_name = "CP", default_value_t = 0.0)]
    #[serde(skip_serializing_if = "is_zero")]
    pub output_offset: f64,
    /// eval: the loss of outputs above their target is multiplied by 1 + this
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    #[serde(skip_serializing_if = "is_zero")]
    pub qp_asymmetry: f64,
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
            LossForm::Power => {
                let moves = self.lambda_end.is_some();
                let lambda_schedule = if moves { self.lambda_schedule } else { default.lambda_schedule };
                EvalLoss { epsilon: default.epsilon, lambda_schedule, ..self }
            }
            LossForm::Epsilon => EvalLoss { form: self.form, epsilon: self.epsilon, ..default },
        }
    }

    /// The first number that is out of range.
    #[must_use]
    pub fn problem(&self) -> Option<SettingError> {
        let problem = |key, message| Some(SettingError::new(key, message));
        let EvalLoss { power, score_scale, output_scale, lambda, lambda_end, epsilon, .. } = *self;
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
        if !(self.lambda_jitter.is_finite() && self.lambda_jitter >= 0.0) {
            return problem("lambda_jitter", format!("λ's jitter must be at least 0, not {}", self.lambda_jitter));
        }
        for (key, offset) in [("score_offset", self.score_offset), ("output_offset", self.output_offset)] {
            if !(offset.is_finite() && offset >= 0.0) {
                return problem(key, format!("the offset of a win-rate model must be at least 0, not {offset}"));
            }
        }
        if !(self.qp_asymmetry.is_finite() && self.qp_asymmetry > -1.0) {
            let message = format!("the asymmetry of the loss must be above -1, not {}", self.qp_asymmetry);
            return problem("qp_asymmetry", message);
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
        let wdl = score.map(|score| self.expected_by_score(score));
        let lambda = self.lambda as f32;
        match (wdl, result) {
            (Some(wdl), Some(result)) => Some(lambda * wdl + (1.0 - lambda) * result),
            (Some(wdl), None) if lambda > 0.0 => Some(wdl),
            (None, Some(result)) if lambda < 1.0 => Some(result),
            _ => None,
        }
    }

    /// The expected result by a score in centipawns.
    fn expected_by_score(&self, score: f32) -> f32 {
        if self.score_offset == 0.0 {
            return Wdl::from_score(score, self.score_scale as f32).0;
        }
        let sigmoid = |score: f64| 1.0 / (1.0 + libm::exp((self.score_offset - score) / self.score_scale));
        let score = f64::from(score);
        (0.5 * (1.0 + sigmoid(score) - sigmoid(-score))) as f32
    }

    /// The loss with a sample's λ, whose jitter is drawn by the sample's number in the data.
    #[must_use]
    pub fn with_jitter(self, draws: Draws, sample: u32) -> EvalLoss {
        // Box and Muller 1958, from uniform numbers in (0, 1].
        let uniform = |half: u64| ((draws.at(2 * u64::from(sample) + half) >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let normal = libm::sqrt(-2.0 * libm::log(uniform(0))) * libm::cos(std::f64::consts::TAU * uniform(1));
        EvalLoss { lambda: (self.lambda + self.lambda_jitter * normal).clamp(0.0, 1.0), ..self }
    }

    /// The loss of an output, in centipawns, against a target.
    #[must_use]
    pub fn of(&self, out: f64, target: f64) -> f64 {
        match self.form {
            LossForm::Power => {
                let sigmoid = |out: f64| 1.0 / (1.0 + libm::exp((self.output_offset - out) / self.output_scale));
                let expected =
                    if self.output_offset == 0.0 { sigmoid(out) } else { 0.5 * (1.0 + sigmoid(out) - sigmoid(-out)) };
                self.side_factor(expected, target) * libm::pow((expected - target).abs(), self.power)
            }
            LossForm::Epsilon => ((out - target).abs() - self.epsilon).max(0.0),
        }
    }

    /// The factor on the loss of an expected result above or below its target.
    #[must_use]
    pub fn side_factor(&self, expected: f64, target: f64) -> f64 {
        if expected > target { 1.0 + self.qp_asymmetry } else { 1.0 }
    }

    /// The loss of an epoch, counted from 0: λ is interpolated between `lambda` and `lambda_end`.
    #[must_use]
    pub fn at(self, epoch: u32, epochs: u32) -> EvalLoss {
        let last = epochs.saturating_sub(1);
        let progress = if last == 0 { 1.0 } else { f64::from(epoch.min(last)) / f64::from(last) };
        let progress = match self.lambda_schedule {
            LambdaSchedule::Linear => progress,
            LambdaSchedule::Cosine => (1.0 - libm::cos(std::f64::consts::PI * progress)) / 2.0,
        };
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
            lambda_schedule: LambdaSchedule::Linear,
            lambda_jitter: 0.0,
            score_offset: 0.0,
            output_offset: 0.0,
            qp_asymmetry: 0.0,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn lambda_goes_along_half_a_cosine() {
        let loss = EvalLoss {
            lambda: 1.0,
            lambda_end: Some(0.2),
            lambda_schedule: LambdaSchedule::Cosine,
            ..EvalLoss::default()
        };
        for (epoch, expected) in [(0, 1.0), (1, 0.882_842_7), (2, 0.6), (3, 0.317_157_3), (4, 0.2), (9, 0.2)] {
            let lambda = loss.at(epoch, 5).lambda;
            assert!((lambda - expected).abs() < 1e-6, "{epoch}: {lambda}");
        }
        assert_eq!(EvalLoss { lambda_schedule: LambdaSchedule::Linear, ..loss }.at(1, 5).lambda, 0.8);
    }

    #[test]
    fn jitter_is_normal_and_belongs_to_the_sample() {
        let loss = EvalLoss { lambda: 0.5, lambda_jitter: 0.1, ..EvalLoss::default() };
        let draws = Seed(3).draws("test");
        let lambdas: Vec<f64> = (0..20_000).map(|sample| loss.with_jitter(draws, sample).lambda).collect();
        let mean = lambdas.iter().sum::<f64>() / 20_000.0;
        let deviation = (lambdas.iter().map(|lambda| (lambda - mean).powi(2)).sum::<f64>() / 20_000.0).sqrt();
        assert!((mean - 0.5).abs() < 0.004 && (deviation - 0.1).abs() < 0.003, "{mean} {deviation}");
        assert_eq!(loss.with_jitter(draws, 7).lambda, lambdas[7]);
        let wide = EvalLoss { lambda: 0.9, lambda_jitter: 1.0, ..EvalLoss::default() };
        let cut = (0..100).map(|sample| wide.with_jitter(draws, sample).lambda);
        assert!(cut.clone().all(|lambda| (0.0..=1.0).contains(&lambda)) && cut.filter(|&l| l == 1.0).count() > 20);
    }

    /// Targets and losses by the formulas of nnue-pytorch, written out.
    #[test]
    fn win_rate_models_by_hand() {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let loss = EvalLoss {
            score_scale: 380.0,
            score_offset: 270.0,
            output_scale: 340.0,
            output_offset: 250.0,
            power: 2.5,
            lambda: 0.7,
            qp_asymmetry: 0.3,
            ..EvalLoss::default()
        };
        for (score, result, out) in [(0.0, 0.5, 12.0), (310.0, 1.0, 900.0), (-120.0, 0.0, 40.0f64)] {
            let p = 0.5 * (1.0 + sigmoid((score - 270.0) / 380.0) - sigmoid((-score - 270.0) / 380.0));
            let p = 0.7 * p + 0.3 * result;
            let target = f64::from(loss.target(Some(score as f32), Some(result as f32)).expect("both are known"));
            assert!((target - p).abs() < 1e-6, "{score}: {target} {p}");
            let q = 0.5 * (1.0 + sigmoid((out - 250.0) / 340.0) - sigmoid((-out - 250.0) / 340.0));
            let expected = (if q > p { 1.3 } else { 1.0 }) * (p - q).abs().powf(2.5);
            assert!((loss.of(out, p) - expected).abs() < 1e-12, "{out}: {expected}");
        }
        let flat = EvalLoss { score_offset: 0.0, ..loss };
        let near = EvalLoss { score_offset: 1e-9, ..loss };
        let [flat, near] = [flat, near].map(|loss| loss.target(Some(200.0), None).expect("a score"));
        assert!((flat - near).abs() < 1e-6);
    }
}
