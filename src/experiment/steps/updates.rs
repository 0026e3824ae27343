//! Rows updated per move, by feature set.

use serde_json::{Value, json};

use super::{PlanStep, Step, StepKind, StepWork};
use crate::experiment::executor::StepError;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::record::{SetResult, UpdatesRecord};

/// The index is into [`Plan::sets`].
#[derive(Clone, Copy, Debug)]
pub struct Updates(pub usize);

impl Updates {
    fn games(runner: &Runner<'_>) -> Option<u64> {
        runner.experiment.measure.updates.as_ref()?.games
    }
}

impl Step for Updates {
    fn kind(&self) -> StepKind {
        StepKind::measure("updates", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("updates of {}", plan.sets[self.0].label)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let set = &runner.plan.sets[self.0].resolved;
        json!([set.identity, set.name, runner.data_hash(), Updates::games(runner)])
    }

    fn needs(&self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    fn run_of(&self, plan: &Plan) -> usize {
        plan.runs.iter().position(|run| run.set == self.0).unwrap_or_default()
    }
}

impl StepWork for Updates {
    type Record = UpdatesRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<UpdatesRecord>, StepError> {
        let games = Updates::games(runner);
        let source = runner.source();
        runner.executor.updates(&runner.plan.sets[self.0].request, &source, games).map(Some)
    }

    fn show(self, record: UpdatesRecord, runner: &mut Runner<'_>) {
        let set = runner.plan.sets[self.0].label.clone();
        runner.results.updates.push(SetResult { set, record });
    }
}
