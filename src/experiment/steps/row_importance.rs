//! How much each row of a network's feature transformer matters, for the selections that a search tries.

use serde_json::{Value, json};

use super::{Step, StepKind, StepWork};
use crate::experiment::executor::StepError;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::record::NetResult;

/// The index is into [`Plan::runs`].
#[derive(Clone, Copy, Debug)]
pub struct RowImportance(pub usize);

impl Step for RowImportance {
    fn kind(&self) -> StepKind {
        StepKind::measure("row importance", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("importance of the rows of {}", plan.runs[self.0].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!(runner.data_hash())
    }
}

impl StepWork for RowImportance {
    type Record = Vec<f64>;

    fn run(self, runner: &mut Runner<'_>, _monitor: &mut dyn ExperimentMonitor) -> Result<Option<Vec<f64>>, StepError> {
        let request = runner.net_request(self.0, None)?;
        runner.executor.row_importance(&request).map(Some)
    }

    fn show(self, record: Vec<f64>, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.0].key.clone();
        runner.results.row_importance.push(NetResult { key, record });
    }
}
