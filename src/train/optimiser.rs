//! Settings of the optimiser: its update rule, weight decay, gradient clipping, sparsity and the learning-rate
//! schedule. The update rules themselves are in `adam.rs` and `lookahead.rs`, the schedule in `schedule.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LearningRateSchedule;
use crate::settings::SettingError;

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

/// A heading of `fsbench train --help`.
const AVERAGE: &str = "Averaged weights";

/// How steps are taken: everything except the learning rate itself and its decay
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
    /// Share of the run after which weights are averaged, as 0.75; the average is the run's network if no epoch's has a
    /// lower validation loss (stochastic weight averaging, Izmailov et al. 2018, arXiv:1803.05407) [default: no average]
    #[arg(long, value_name = "SHARE", help_heading = AVERAGE)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_from: Option<f64>,
    /// Steps between two networks that are averaged
    #[arg(long, value_name = "N", help_heading = AVERAGE, default_value_t = default_average_every())]
    #[serde(skip_serializing_if = "is_default_average_every")]
    pub average_every: u64,
    /// An exponential moving average: the share that the average keeps when a network is added, as 0.9 [default: equal
    /// shares]
    #[arg(long, value_name = "SHARE", help_heading = AVERAGE)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_decay: Option<f64>,
}

const fn default_average_every() -> u64 {
    100
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_default_average_every(steps: &u64) -> bool {
    *steps == default_average_every()
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
            average_from: None,
            average_every: default_average_every(),
            average_decay: None,
        }
    }
}

impl Optimisation {
    /// The first number that makes no sense.
    #[must_use]
    pub fn problem(&self) -> Option<SettingError> {
        let problem = |key, message| Some(SettingError::new(key, message));
        let Optimisation { weight_decay, step_epochs, final_share, gradient_clip, sparsity, .. } = *self;
        if !(weight_decay.is_finite() && weight_decay >= 0.0) {
            return problem("weight_decay", format!("the weight decay must be at least 0, not {weight_decay}"));
        }
        if step_epochs == 0 {
            return problem("step_epochs", "the epochs between two decays must be at least 1".into());
        }
        if !(final_share > 0.0 && final_share <= 1.0) {
            let message = format!("the learning rate's final share must be above 0 and at most 1, not {final_share}");
            return problem("final_share", message);
        }
        if !(sparsity.is_finite() && sparsity >= 0.0) {
            let message = format!("the weight of the mean activation (sparsity) must be at least 0, not {sparsity}");
            return problem("sparsity", message);
        }
        if let Some(from) = self.average_from.filter(|from| !(0.0..1.0).contains(from)) {
            let message = format!("the share after which weights are averaged must be from 0 to below 1, not {from}");
            return problem("average_from", message);
        }
        if self.average_every == 0 {
            return problem("average_every", "the steps between two averaged networks must be at least 1".into());
        }
        if let Some(decay) = self.average_decay.filter(|decay| !(*decay > 0.0 && *decay < 1.0)) {
            let message = format!("the average's decay must lie between 0 and 1, not at {decay}");
            return problem("average_decay", message);
        }
        match gradient_clip {
            Some(clip) if !(clip.is_finite() && clip > 0.0) => {
                problem("gradient_clip", format!("the longest gradient must be above 0, not {clip}"))
            }
            _ => None,
        }
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
            let problem = optimisation.problem().expect(expected).message;
            assert!(problem.contains(expected), "{problem}");
        };
        check(Optimisation { weight_decay: -1.0, ..plain }, "weight decay");
        check(Optimisation { step_epochs: 0, ..plain }, "between two decays");
        check(Optimisation { final_share: 0.0, ..plain }, "final share");
        check(Optimisation { gradient_clip: Some(0.0), ..plain }, "longest gradient");
        check(Optimisation { gradient_clip: Some(f64::NAN), ..plain }, "longest gradient");
        check(Optimisation { sparsity: -0.1, ..plain }, "sparsity");
        check(Optimisation { average_from: Some(1.0), ..plain }, "averaged");
        check(Optimisation { average_every: 0, ..plain }, "averaged networks");
        check(Optimisation { average_decay: Some(1.0), ..plain }, "average's decay");
    }
}
