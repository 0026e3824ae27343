//! How steps are taken: the optimiser, the learning rate's course, and what keeps both in bounds.

use serde::{Deserialize, Serialize};

/// The rule that turns a gradient into a step.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Optimiser {
    /// Kingma and Ba 2015, arXiv:1412.6980.
    #[default]
    Adam,
    /// Weights shrink by themselves, apart from the gradient (Loshchilov and Hutter 2019, arXiv:1711.05101).
    Adamw,
    /// Rectified Adam (Liu et al. 2020, arXiv:1908.03265) under Lookahead (Zhang et al. 2019, arXiv:1907.08610), weights
    /// shrinking as with AdamW.
    Ranger,
}

/// The learning rate's course over a run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Times the decay after every epoch.
    #[default]
    Exponential,
    /// Times the decay after every so many epochs.
    Step,
    /// Half a cosine, down to the final share.
    Cosine,
    /// From a 25th up to the learning rate in three tenths of the run, then down to the final share, each along half a
    /// cosine (Smith and Topin 2018, arXiv:1708.07120).
    OneCycle,
}

/// Everything about steps but the learning rate itself and its decay.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields)]
pub struct Optimisation {
    /// The rule that turns a gradient into a step
    #[arg(long, value_enum, default_value_t)]
    pub optimiser: Optimiser,
    /// adamw, ranger: share of a weight lost a step, times the learning rate
    #[arg(long, value_name = "X", default_value_t = Optimisation::default().weight_decay)]
    pub weight_decay: f64,
    /// The learning rate's course: exponential and step by --decay, cosine and one-cycle down to --final-share
    #[arg(long, value_enum, default_value_t)]
    pub schedule: Schedule,
    /// step: epochs between two decays
    #[arg(long, value_name = "N", default_value_t = Optimisation::default().step_epochs)]
    pub step_epochs: u32,
    /// cosine, one-cycle: where the learning rate ends, as a share of where it began
    #[arg(long, value_name = "X", default_value_t = Optimisation::default().final_share)]
    pub final_share: f64,
    /// Steps over which the learning rate rises from nothing
    #[arg(long, value_name = "N", default_value_t = Optimisation::default().warm_up)]
    pub warm_up: u64,
    /// Longest gradient: longer ones are shortened to it [default: any]
    #[arg(long, value_name = "X")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient_clip: Option<f64>,
    /// Added to the loss in training: so many times the mean activation of the accumulators' neurons. More of them are then
    /// zero, and an engine multiplies less (Glorot, Bordes and Bengio 2011, Deep sparse rectifier neural networks)
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
            schedule: Schedule::Exponential,
            step_epochs: 1,
            final_share: 0.01,
            warm_up: 0,
            gradient_clip: None,
            sparsity: 0.0,
        }
    }
}

/// A run's length.
#[derive(Copy, Clone, Debug)]
pub struct Length {
    pub epochs: u32,
    pub steps_per_epoch: u64,
}

impl Optimisation {
    /// What is wrong with the numbers, if anything.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Optimisation { weight_decay, step_epochs, final_share, gradient_clip, sparsity, .. } = *self;
        if !(weight_decay.is_finite() && weight_decay >= 0.0) {
            return Some(format!("the weight decay is at least 0, not {weight_decay}"));
        }
        if step_epochs == 0 {
            return Some("the epochs between two decays are at least 1".into());
        }
        if !(final_share > 0.0 && final_share <= 1.0) {
            return Some(format!("the learning rate's final share lies above 0 and up to 1, not at {final_share}"));
        }
        if !(sparsity.is_finite() && sparsity >= 0.0) {
            return Some(format!("the weight of the mean activation (sparsity) is at least 0, not {sparsity}"));
        }
        let clip = gradient_clip.filter(|clip| !(clip.is_finite() && *clip > 0.0));
        clip.map(|clip| format!("the longest gradient is above 0, not {clip}"))
    }

    /// Whether steps depend on when the run will end.
    #[must_use]
    pub const fn knows_the_end(&self) -> bool {
        matches!(self.schedule, Schedule::Cosine | Schedule::OneCycle)
    }

    /// The learning rate of a step, counted from 0.
    #[must_use]
    pub fn rate(&self, learning_rate: f64, decay: f64, step: u64, length: Length) -> f64 {
        let epoch = (step / length.steps_per_epoch.max(1)) as i32;
        let total = (u64::from(length.epochs) * length.steps_per_epoch).max(1);
        let done = step as f64 / total as f64;
        // From `from` to `to` along half a cosine; `part` in 0 to 1.
        let along =
            |from: f64, to: f64, part: f64| to + (from - to) * (1.0 + (std::f64::consts::PI * part).cos()) / 2.0;
        let share = match self.schedule {
            Schedule::Exponential => decay.powi(epoch),
            Schedule::Step => decay.powi(epoch / self.step_epochs as i32),
            Schedule::Cosine => along(1.0, self.final_share, done),
            Schedule::OneCycle => {
                const TOP: f64 = 0.3;
                match done < TOP {
                    true => along(1.0 / 25.0, 1.0, done / TOP),
                    false => along(1.0, self.final_share, (done - TOP) / (1.0 - TOP)),
                }
            }
        };
        let warmth = if step < self.warm_up { (step + 1) as f64 / self.warm_up as f64 } else { 1.0 };
        learning_rate * share * warmth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_rates() {
        let length = Length { epochs: 10, steps_per_epoch: 10 };
        let check = |recipe: Optimisation, step, expected: f64| {
            let rate = recipe.rate(0.1, 0.5, step, length);
            assert!((rate - expected).abs() < 1e-9, "{recipe:?}, step {step}: {rate}");
        };
        let plain = Optimisation::default();
        check(plain, 9, 0.1);
        check(plain, 10, 0.05);
        check(plain, 25, 0.025);
        let step = Optimisation { schedule: Schedule::Step, step_epochs: 3, ..plain };
        check(step, 29, 0.1);
        check(step, 30, 0.05);
        check(step, 99, 0.0125);
        let cosine = Optimisation { schedule: Schedule::Cosine, final_share: 0.2, ..plain };
        check(cosine, 0, 0.1);
        check(cosine, 50, 0.06);
        check(cosine, 100, 0.02);
        let cycle = Optimisation { schedule: Schedule::OneCycle, final_share: 0.01, ..plain };
        check(cycle, 0, 0.004);
        check(cycle, 15, 0.052);
        check(cycle, 30, 0.1);
        check(cycle, 65, 0.0505);
        check(cycle, 100, 0.001);
        let warm = Optimisation { warm_up: 4, ..plain };
        check(warm, 0, 0.025);
        check(warm, 3, 0.1);
        check(warm, 10, 0.05);
    }

    #[test]
    fn impossible_numbers_are_told() {
        let plain = Optimisation::default();
        assert_eq!(plain.problem(), None);
        let check = |recipe: Optimisation, expected: &str| {
            let problem = recipe.problem().unwrap_or_default();
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
