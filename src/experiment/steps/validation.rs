//! The losses of a trained network by game. They stand in the run's folder; the record describes them.

use serde_json::Value;

use super::{Step, StepKind, StepWork};
use crate::experiment::estimate::Rates;
use crate::experiment::executor::{StepError, TrainRequest};
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::record::{NetResult, ValidationRecord};
use crate::train::run_dir::VALIDATION;

/// The index is into [`Plan::runs`].
#[derive(Clone, Copy, Debug)]
pub struct Validation(pub usize);

impl Step for Validation {
    /// Its version is raised when the file's classes change, too.
    fn kind(&self) -> StepKind {
        StepKind::measure("validation", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("validation of {} by game", plan.runs[self.0].key)
    }

    fn inputs(&self, _runner: &Runner<'_>) -> Value {
        Value::Null
    }

    fn estimate(&self, _plan: &Plan, rates: &Rates) -> f64 {
        rates.validations[self.0]
    }
}

impl StepWork for Validation {
    type Record = ValidationRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<ValidationRecord>, StepError> {
        let config = runner.config(self.0);
        let request = TrainRequest { config: &config, folder: runner.run_folder(self.0) };
        let record = runner.executor.validation(&request)?;
        // The losses come first: a record without them is not finished.
        record.losses.write(&request.folder.join(VALIDATION))?;
        Ok(Some(record))
    }

    fn checked(self, record: ValidationRecord, runner: &Runner<'_>) -> Option<ValidationRecord> {
        record.with_losses_of(&runner.run_folder(self.0).join(VALIDATION)).ok()
    }

    fn show(self, record: ValidationRecord, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.0].key.clone();
        runner.results.validation.push(NetResult { key, record });
    }
}
