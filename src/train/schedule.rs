//! The learning-rate schedule: warm-up, decay by epochs, cosine and one-cycle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Optimisation, TrainSettings};

/// The course of the learning rate over a run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LearningRateSchedule {
    /// Multiplied by the decay after every epoch.
    #[default]
    Exponential,
    /// Multiplied by the decay after every `step_epochs` epochs.
    Step,
    /// Half a cosine, down to the final share.
    Cosine,
    /// From a 25th up to the learning rate in three tenths of the run, then down to the final share, each along half a
    /// cosine (Smith and Topin 2018, arXiv:1708.07120).
    OneCycle,
}

impl LearningRateSchedule {
    /// Whether steps depend on when the run will end.
    #[must_use]
    pub const fn depends_on_length(self) -> bool {
        matches!(self, LearningRateSchedule::Cosine | LearningRateSchedule::OneCycle)
    }
}

impl TrainSettings {
    /// The learning rate of a step, counted from 0.
    #[must_use]
    pub fn learning_rate_at(&self, step: u64, steps_per_epoch: u64) -> f64 {
        let Optimisation { schedule, step_epochs, final_share, warm_up, .. } = self.optimisation;
        let epoch = (step / steps_per_epoch.max(1)) as i32;
        let total = (u64::from(self.epochs) * steps_per_epoch).max(1);
        let progress = step as f64 / total as f64;
        let share = match schedule {
            LearningRateSchedule::Exponential => self.decay.powi(epoch),
            LearningRateSchedule::Step => self.decay.powi(epoch / step_epochs as i32),
            LearningRateSchedule::Cosine => half_cosine(1.0, final_share, progress),
            LearningRateSchedule::OneCycle => {
                const PEAK: f64 = 0.3;
                if progress < PEAK {
                    half_cosine(1.0 / 25.0, 1.0, progress / PEAK)
                } else {
                    half_cosine(1.0, final_share, (progress - PEAK) / (1.0 - PEAK))
                }
            }
        };
        let warm_up = if step < warm_up { (step + 1) as f64 / warm_up as f64 } else { 1.0 };
        self.learning_rate * share * warm_up
    }
}

/// The value between `from` and `to` along half a cosine; `progress` lies in 0 to 1.
fn half_cosine(from: f64, to: f64, progress: f64) -> f64 {
    // By a library of our own: each system's rounds differently.
    to + (from - to) * (1.0 + libm::cos(std::f64::consts::PI * progress)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_rates() {
        let check = |optimisation: Optimisation, rates: &[(u64, f64)]| {
            let settings =
                TrainSettings { epochs: 10, learning_rate: 0.1, decay: 0.5, optimisation, ..TrainSettings::default() };
            for (step, expected) in rates {
                let rate = settings.learning_rate_at(*step, 10);
                assert!((rate - expected).abs() < 1e-9, "{optimisation:?}, step {step}: {rate}");
            }
        };
        let plain = Optimisation::default();
        check(plain, &[(9, 0.1), (10, 0.05), (25, 0.025)]);
        let step = Optimisation { schedule: LearningRateSchedule::Step, step_epochs: 3, ..plain };
        check(step, &[(29, 0.1), (30, 0.05), (99, 0.0125)]);
        let cosine = Optimisation { schedule: LearningRateSchedule::Cosine, final_share: 0.2, ..plain };
        check(cosine, &[(0, 0.1), (50, 0.06), (100, 0.02)]);
        let cycle = Optimisation { schedule: LearningRateSchedule::OneCycle, final_share: 0.01, ..plain };
        check(cycle, &[(0, 0.004), (15, 0.052), (30, 0.1), (65, 0.0505), (100, 0.001)]);
        let warm = Optimisation { warm_up: 4, ..plain };
        check(warm, &[(0, 0.025), (3, 0.1), (10, 0.05)]);
    }
}
