//! A run's part in averaging weights: which networks are added, and whether the average is the run's network.

use super::Session;
use crate::train::objective::ValidationResult;
use crate::train::run_dir::BEST;
use crate::train::trainer::{Trainer, TrainingRules, TrainingState};
use crate::train::weight_average::{AveragedNetwork, WeightAverage};
use crate::train::{CpuTrainer, Optimiser, RunObserver, TrainError, checkpoint};

/// The average of a run's weights, with its losses.
pub(super) struct ValidatedAverage {
    trainer: CpuTrainer,
    /// How many networks it is the average of.
    networks: u64,
    validated: Vec<ValidationResult>,
}

impl Session<'_> {
    /// Validates the average of the weights, on the CPU; `None` if the run has none.
    pub(super) fn validate_average(
        &mut self,
        observer: &dyn RunObserver,
    ) -> Result<Option<ValidatedAverage>, TrainError> {
        let Some(WeightAverage { net, networks }) = self.average.clone() else { return Ok(None) };
        let settings = &self.config.settings;
        let state = TrainingState::new(net, None, Optimiser::Adam);
        let rules = TrainingRules::of(settings, self.scheme.clone());
        let trainer = CpuTrainer::new(state, rules, settings.threads())?;
        let validated = self.validate(Some(&trainer), observer)?;
        Ok(Some(ValidatedAverage { trainer, networks, validated }))
    }

    /// Saves the average if its loss is the lowest of the run.
    pub(super) fn keep_average(&mut self, average: ValidatedAverage) -> Result<(), TrainError> {
        let ValidatedAverage { mut trainer, networks, validated } = average;
        let weights = self.config.tasks().into_iter().map(|task| task.weight);
        let total: f64 = validated.iter().zip(weights).map(|(each, weight)| weight * each.sums.mean_loss()).sum();
        let (Some(first), Some(validation)) = (validated.first(), &mut self.progress.validation) else { return Ok(()) };
        let kept = total < validation.best;
        validation.best = validation.best.min(total);
        let validation_loss = first.sums.mean_loss();
        self.progress.averaged = Some(AveragedNetwork { networks, validation_loss, kept });
        if kept {
            self.write_losses(first)?;
            let net = &trainer.state()?.net;
            checkpoint::save_weights(&self.run_dir.path(BEST), &self.origin, net, &self.progress)?;
        }
        Ok(())
    }

    /// Adds the network to the average of the weights, if it is one of those.
    pub(super) fn average(&mut self, observer: &mut dyn RunObserver) -> Result<(), TrainError> {
        let optimisation = &self.config.settings.optimisation;
        let steps = u64::from(self.config.settings.epochs) * self.progress.steps_per_epoch;
        if optimisation.averages(self.trainer.step(), steps) {
            self.finish_steps(observer)?;
            WeightAverage::add(&mut self.average, &self.trainer.state()?.net, optimisation.average_decay);
            self.progress.averaging = self.average.as_ref().map(|average| average.networks);
        }
        Ok(())
    }
}
