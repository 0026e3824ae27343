//! Share of active neurons, by network.

use serde_json::{Value, json};

use super::{Step, StepKind, StepWork};
use crate::experiment::executor::StepError;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::record::{ActivityRecord, NetResult};

/// The index is into [`Plan::runs`].
#[derive(Clone, Copy, Debug)]
pub struct Activity(pub usize);

impl Activity {
    fn games(runner: &Runner<'_>) -> Option<u64> {
        runner.experiment.measure.activity.as_ref()?.limit.games
    }
}

impl Step for Activity {
    fn kind(&self) -> StepKind {
        StepKind::measure("activity", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("activity of {}", plan.runs[self.0].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!(Activity::games(runner))
    }
}

impl StepWork for Activity {
    type Record = ActivityRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<ActivityRecord>, StepError> {
        let request = runner.net_request(self.0, Activity::games(runner))?;
        runner.executor.activity(&request).map(Some)
    }

    fn show(self, record: ActivityRecord, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.0].key.clone();
        runner.results.activity.push(NetResult { key, record });
    }
}
