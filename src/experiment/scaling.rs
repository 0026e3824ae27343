//! `[scaling]`: trainings of every row on shares of its training games. They need no measure but the losses by game.

use super::ExperimentError;
use super::checks::check_named_seeds;
use super::plan::{Plan, PlannedRun};
use super::spec::Experiment;
use super::steps::{Step, Train, Validation};
use crate::record::{RunKey, Scaling, ScalingBy};
use crate::settings::SettingError;
use crate::statistics::ScalingCurves;
use crate::train::TrainConfig;
use crate::units::Seed;

/// A share of the training games that a run learns from.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PlannedShare {
    pub share: f64,
    pub by: ScalingBy,
}

impl PlannedShare {
    /// The configuration of a run on this share.
    pub(super) fn limit(self, config: &mut TrainConfig) {
        config.reading.training_share = Some(self.share);
        config.repeat_share = self.by == ScalingBy::Steps;
        if let Some(second) = &mut config.second {
            second.reading.training_share = Some(self.share);
        }
    }
}

/// Checks the shares and that the seeds are the experiment's.
pub(super) fn check_scaling(scaling: &Scaling, all_seeds: &[Seed]) -> Result<(), SettingError> {
    if let Some(seeds) = &scaling.seeds {
        check_named_seeds(seeds, all_seeds)?;
        if seeds.is_empty() {
            return Err(SettingError::new("seeds", "no training learns from shares; leave the table out".to_owned()));
        }
    }
    let shares = &scaling.shares;
    let problem = |message: String| Err(SettingError::new("shares", message));
    if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && **share <= 1.0)) {
        return problem(format!("the share {share} must be above 0 and at most 1"));
    }
    if !shares.is_sorted_by(|a, b| a < b) {
        return problem("the shares must ascend, as in [0.0625, 0.125, 0.25, 0.5, 1]".into());
    }
    if shares.len() < ScalingCurves::LEAST_SHARES || shares.last() != Some(&1.0) {
        let least = ScalingCurves::LEAST_SHARES;
        return problem(format!("a curve needs at least {least} shares, the last of them 1, as in [0.25, 0.5, 1]"));
    }
    Ok(())
}

impl Experiment {
    /// Trainings of a row: one of each seed, and of the seeds that learn from shares one of each share.
    pub(super) fn trainings_of_row(&self) -> usize {
        let of_shares = |scaling: &Scaling| {
            let seeds = scaling.seeds.as_ref().map_or(self.seeds.len(), Vec::len);
            (scaling.shares.len() - 1) * seeds
        };
        self.seeds.len() + self.scaling.as_ref().map_or(0, of_shares)
    }
}

impl Plan {
    /// Adds the trainings on shares with a seed, whose runs on the whole are in the plan already.
    pub(super) fn add_shares(&mut self, experiment: &Experiment, seed: Seed) -> Result<(), ExperimentError> {
        let Some(Scaling { shares, by, seeds }) = &experiment.scaling else { return Ok(()) };
        if seeds.as_ref().is_some_and(|seeds| !seeds.contains(&seed)) {
            return Ok(());
        }
        for row in &experiment.rows {
            let Some(whole) = self.run_of_row(row, seed) else { continue };
            for &share in shares.iter().filter(|share| **share < 1.0) {
                let key = RunKey { set: Scaling::label(&row.label, share), ..self.runs[whole].key.clone() };
                let start =
                    self.start(experiment, row, &|label| RunKey { set: Scaling::label(label, share), ..key.clone() })?;
                let share = Some(PlannedShare { share, by: *by });
                self.runs.push(PlannedRun { key, start, share, ..self.runs[whole].clone() });
                let run = self.runs.len() - 1;
                self.steps.extend([Train(run).step(), Validation(run).step()]);
            }
        }
        Ok(())
    }
}
