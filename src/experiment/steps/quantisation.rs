//! Quantisation error, by network.

use serde_json::{Value, json};

use super::{Step, StepKind, StepWork};
use crate::experiment::executor::StepError;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::record::{ErrorRecord, NetResult};

/// The index is into [`Plan::runs`].
#[derive(Clone, Copy, Debug)]
pub struct QuantisationError(pub usize);

impl QuantisationError {
    fn games(runner: &Runner<'_>) -> Option<u64> {
        runner.experiment.measure.error.as_ref()?.limit.games
    }
}

impl Step for QuantisationError {
    fn kind(&self) -> StepKind {
        StepKind::measure("error", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("quantisation error of {}", plan.runs[self.0].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!(QuantisationError::games(runner))
    }
}

impl StepWork for QuantisationError {
    type Record = ErrorRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<ErrorRecord>, StepError> {
        let request = runner.net_request(self.0, QuantisationError::games(runner))?;
        runner.executor.error(&request).map(Some)
    }

    fn show(self, record: ErrorRecord, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.0].key.clone();
        runner.results.error.push(NetResult { key, record });
    }
}
