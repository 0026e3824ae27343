//! One method's part in a run: the samples it learns from, those it is judged by, and its weight.

use std::path::Path;

use super::activity::Activity;
use super::batch::Labels;
use super::config::MethodTask;
use super::device::Learner;
use super::loss::{eval_baseline, pqr_baseline};
use super::model::Sums;
use super::stream::{Served, Stop, Stream};
use super::validator::Validator;
use super::{Neurons, TrainConfig, TrainError};
use crate::data::Method;

/// A method in training.
pub struct Objective<'a> {
    pub task: MethodTask<'a>,
    pub training: Stream,
    config: &'a TrainConfig,
    validator: Validator,
}

/// What a validation split showed.
pub struct Validated {
    pub sums: Sums,
    pub neurons: Option<Neurons>,
    /// Loss of the best constant output, where it was asked for.
    pub baseline: Option<f64>,
}

impl Validated {
    /// pqr: share of samples whose chosen move is preferred.
    #[must_use]
    pub fn accuracy(&self, method: Method) -> Option<f64> {
        (method == Method::Pqr).then(|| self.sums.preferred as f64 / self.sums.samples as f64)
    }
}

impl<'a> Objective<'a> {
    /// Begins with batch `start` of the run.
    ///
    /// # Errors
    /// When the service does not start, or its training split is empty.
    pub fn open(
        program: &Path,
        config: &'a TrainConfig,
        task: MethodTask<'a>,
        served: &Served,
        start: u64,
        stop: Stop<'_>,
    ) -> Result<Objective<'a>, TrainError> {
        let training = Stream::training(program, config, task, served, start, stop)?;
        if training.description().batches_per_epoch == 0 {
            let hint = "it needs more games";
            return Err(TrainError::Empty { data: task.data.into(), split: "training", hint });
        }
        Ok(Objective { task, training, config, validator: Validator::default() })
    }

    /// The network's loss over the whole validation split. `baseline`: whether to find that of the best constant output.
    ///
    /// # Errors
    /// When a service failed, the split is empty, or `stop` says so.
    pub fn validate(
        &mut self,
        learner: &Learner,
        (program, served): (&Path, &Served),
        baseline: bool,
        stop: Stop<'_>,
    ) -> Result<Validated, TrainError> {
        let Objective { task, config, validator, .. } = self;
        let (mut sums, mut activity, mut targets) = (Sums::default(), Activity::default(), Vec::new());
        let open = || Stream::validation(program, config, *task, served, stop);
        validator.each(open, stop, &mut |batch| {
            if let (Labels::Eval(batch_targets), true) = (batch.labels, baseline) {
                targets.extend_from_slice(batch_targets);
            }
            sums.add(learner.observe(batch, &mut activity)?);
            Ok(())
        })?;
        if sums.samples == 0 {
            let hint = "give a larger --validation or more games";
            return Err(TrainError::Empty { data: task.data.into(), split: "validation", hint });
        }
        let baseline = baseline.then(|| match task.method {
            Method::Eval => eval_baseline(&targets, &config.settings.eval_loss),
            Method::Pqr => pqr_baseline(&config.settings.pqr_loss),
        });
        Ok(Validated { sums, neurons: activity.shares(), baseline })
    }
}
