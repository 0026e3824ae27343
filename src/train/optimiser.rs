//! Settings of the optimiser: its update rule, weight decay, gradient clipping, sparsity and the learning-rate
//! schedule. The update rules themselves are in `adam.rs` and `lookahead.rs`, the schedule in `schedule.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LearningRateSchedule;

/// The rule that turns a gradient into a step.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Optimiser {
    /// Kingma and Ba 2015, arXiv:1412.6980.
    #[default]
    Adam,
    /// Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).
    Adamw,
    /// Rectified Adam (Liu et al. 2020, arXiv:1908.03265) under Lookahead (Zhang et al. 2019, arXiv:1907.08610), with
    /// AdamW's weight decay.
    Ranger,
}

/// How steps are taken: everything except the learning rate itself and its decay.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Optimisation {
    /// The rule that turns a gradient into a step
    #[arg(long, value_enum, default_value_t)]
    pub optimiser: Optimiser,
    /// adamw, ranger: share of a weight that is lost per step, times the learning rate
    #[arg(long, value_name = "X", default_value_t = Optimisation::default().weight_decay)]
    pub weight_decay: f64,
    /// Course of the learning rate: exponential and step by the decay, cosine and one-cycle down to the final share
    #[arg(long, value_enum, default_value_t)]
    pub schedule: LearningRateSchedule,
    /// step: epochs between two decays
    #[arg(long, value_name = "N", default_value_t = Optimisation::default().step_epochs)]
    pub step_epochs: u32,
    /// cosine, one-cycle: where the learning rate ends, as a share of where it began
    #[arg(long, value_name = "X", default_value_t = Optimisation::default().final_share)]
    pub final_share: f64,
    /// Steps over which the learning rate rises from zero
    #[arg(long, value_name = "N", default_value_t = Optimisation::default().warm_up)]
    pub warm_up: u64,
    /// Longest gradient: longer ones are scaled down to it [default: no limit]
    #[arg(long, value_name = "X")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient_clip: Option<f64>,
    /// Weight in the training loss of the mean activation of the accumulators' neurons. More of them are then zero, and
    /// an engine multiplies less (Glorot, Bordes and Bengio 2011, Deep sparse rectifier neural networks)
    #[arg(long, value_name = "X", default_value_t = Optimisation::default().sparsity)]
    #[serde(skip_serializing_if = "is_zero")]
    pub sparsity: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Default for Optimisation {
    fn default() -> Optimisation {
        Optimisation {
            optimiser: Optimiser::Adam,
            weight_decay: 0.01,
            schedule: LearningRateSchedule::Exponential,
            step_epochs: 1,
            final_share: 0.01,
            warm_up: 0,
            gradient_clip: None,
            sparsity: 0.0,
        }
    }
}

impl Optimisation {
    /// The first number that makes no sense, as a message.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Optimisation { weight_decay, step_epochs, final_share, gradient_clip, sparsity, .. } = *self;
        if !(weight_decay.is_finite() && weight_decay >= 0.0) {
            return Some(format!("the weight decay must be at least 0, not {weight_decay}"));
        }
        if step_epochs == 0 {
            return Some("the epochs between two decays must be at least 1".into());
        }
        if !(final_share > 0.0 && final_share <= 1.0) {
            return Some(format!("the learning rate's final share must be above 0 and at most 1, not {final_share}"));
        }
        if !(sparsity.is_finite() && sparsity >= 0.0) {
            return Some(format!("the weight of the mean activation (sparsity) must be at least 0, not {sparsity}"));
        }
        let clip = gradient_clip.filter(|clip| !(clip.is_finite() && *clip > 0.0));
        clip.map(|clip| format!("the longest gradient must be above 0, not {clip}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_numbers_are_reported() {
        let plain = Optimisation::default();
        assert_eq!(plain.problem(), None);
        let check = |optimisation: Optimisation, expected: &str| {
            let problem = optimisation.problem().unwrap_or_default();
            assert!(problem.contains(expected), "{problem}");
        };
        check(Optimisation { weight_decay: -1.0, ..plain }, "weight decay");
        check(Optimisation { step_epochs: 0, ..plain }, "between two decays");
        check(Optimisation { final_share: 0.0, ..plain }, "final share");
        check(Optimisation { gradient_clip: Some(0.0), ..plain }, "longest gradient");
        check(Optimisation { gradient_clip: Some(f64::NAN), ..plain }, "longest gradient");
        check(Optimisation { sparsity: -0.1, ..plain }, "sparsity");
    }
}
