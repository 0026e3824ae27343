//! One method of a run: its stream of training samples and its validation.

use std::path::Path;

use super::activity::Activity;
use super::baseline::{eval_baseline, pqr_baseline};
use super::batch::Labels;
use super::config::MethodTask;
use super::kept_losses::{KeptLosses, MOST_SAMPLES};
use super::stream::{BatchStream, ServedSet, StopCheck};
use super::trainer::{SampleLosses, Sums, Trainer};
use super::validation_cache::ValidationCache;
use super::{NeuronActivity, TrainConfig, TrainError};
use crate::data::Method;

/// A method of a run.
pub struct Objective<'a> {
    pub task: MethodTask<'a>,
    pub training: BatchStream,
    config: &'a TrainConfig,
    validation: ValidationCache,
    /// The numbers of the validation samples in the data, up to [`MOST_SAMPLES`].
    numbers: Vec<u32>,
}

/// The result of a validation.
pub struct ValidationResult {
    pub sums: Sums,
    pub neurons: Option<NeuronActivity>,
    /// Loss of the best constant output, if it was asked for.
    pub baseline: Option<f64>,
    /// Of each sample; `None` for more than [`MOST_SAMPLES`].
    pub each: Option<KeptLosses>,
}

impl ValidationResult {
    /// pqr: the share of samples whose chosen move is preferred.
    #[must_use]
    pub fn accuracy(&self, method: Method) -> Option<f64> {
        (method == Method::Pqr).then(|| self.sums.preferred as f64 / self.sums.samples as f64)
    }
}

impl<'a> Objective<'a> {
    /// Starts the training samples with batch `start` of the run.
    ///
    /// # Errors
    /// If the service does not start, or the training split is empty.
    pub fn open(
        program: &Path,
        config: &'a TrainConfig,
        task: MethodTask<'a>,
        served: &ServedSet,
        start: u64,
        stop: StopCheck<'_>,
    ) -> Result<Objective<'a>, TrainError> {
        let training = BatchStream::training(program, config, task, served, start, stop)?;
        if training.description().batches_per_epoch == 0 {
            let hint = "it needs more games";
            return Err(TrainError::Empty { data: task.data.clone(), split: "training", hint });
        }
        Ok(Objective { task, training, config, validation: ValidationCache::default(), numbers: Vec::new() })
    }

    /// The network's loss over the validation split. With `baseline`, also the loss of the best constant output.
    ///
    /// # Errors
    /// If a service failed, the split is empty, or `stop` returns true.
    pub fn validate(
        &mut self,
        trainer: &dyn Trainer,
        (program, served): (&Path, &ServedSet),
        baseline: bool,
        stop: StopCheck<'_>,
    ) -> Result<ValidationResult, TrainError> {
        let Objective { task, config, validation, numbers: known_numbers, .. } = self;
        let mut sums = Sums::default();
        let mut activity = Activity::default();
        let mut targets = Vec::new();
        let mut each = SampleLosses::default();
        let mut numbers = Vec::new();
        let open = || BatchStream::validation(program, config, *task, served, stop);
        validation.for_each(open, stop, &mut |batch, batch_numbers| {
            if let (Labels::Eval(batch_targets), true) = (batch.labels, baseline) {
                targets.extend_from_slice(batch_targets);
            }
            let (batch_sums, batch_each) = trainer.evaluate(batch, &mut activity)?;
            sums.add(batch_sums);
            if each.losses.len() <= MOST_SAMPLES {
                each.append(batch_each);
                numbers.extend_from_slice(batch_numbers);
            }
            Ok(())
        })?;
        if !numbers.is_empty() {
            *known_numbers = numbers;
        }
        let is_complete = each.losses.len() as u64 == sums.samples && each.losses.len() == known_numbers.len();
        let each = is_complete.then(|| KeptLosses { numbers: known_numbers.clone(), each });
        if sums.samples == 0 {
            let hint = "give a larger share for validation, or more games";
            return Err(TrainError::Empty { data: task.data.clone(), split: "validation", hint });
        }
        let baseline = baseline.then(|| match task.method {
            Method::Eval => eval_baseline(&targets, &config.settings.eval_loss),
            Method::Pqr => pqr_baseline(&config.settings.pqr_loss),
        });
        Ok(ValidationResult { sums, neurons: activity.shares(), baseline, each })
    }
}
