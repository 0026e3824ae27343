//! The width at which a row's network is as fast as its reference, or its speed beside the reference, of the first seed.

use serde_json::{Value, json};

use super::{PlanStep, Step, StepKind, StepWork, Train};
use crate::experiment::equal_speed::EqualSpeedRequest;
use crate::experiment::estimate::Rates;
use crate::experiment::executor::StepError;
use crate::experiment::plan::{Plan, PlannedEqualSpeed};
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::record::{EqualSpeedRecord, NetResult};

/// The index is into [`Plan::equal_speeds`].
#[derive(Clone, Copy, Debug)]
pub struct EqualSpeed(pub usize);

impl Step for EqualSpeed {
    fn kind(&self) -> StepKind {
        StepKind::measure("equal speed", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        let PlannedEqualSpeed { run, reference, is_search, .. } = plan.equal_speeds[self.0];
        let run = &plan.runs[run].key;
        let reference = &plan.runs[reference].key.set;
        if is_search {
            format!("the width of {run} at the speed of {reference}")
        } else {
            format!("speed of {run} beside {reference}")
        }
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let PlannedEqualSpeed { run, reference, is_search, own } = runner.plan.equal_speeds[self.0];
        let options = runner.experiment.equal_speed.as_ref().map(|measure| measure.options);
        json!([is_search, options, runner.timed_on(&[run, reference]), runner.data_hash(), own])
    }

    fn needs(&self, plan: &Plan) -> Vec<PlanStep> {
        let PlannedEqualSpeed { run, reference, .. } = plan.equal_speeds[self.0];
        vec![Train(run).step(), Train(reference).step()]
    }

    fn run_of(&self, plan: &Plan) -> usize {
        plan.equal_speeds[self.0].run
    }

    fn runs_alone(&self, _plan: &Plan) -> bool {
        true
    }

    fn threads(&self, _plan: &Plan) -> usize {
        1
    }

    fn estimate(&self, _plan: &Plan, rates: &Rates) -> f64 {
        rates.width
    }
}

impl StepWork for EqualSpeed {
    type Record = EqualSpeedRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<EqualSpeedRecord>, StepError> {
        let PlannedEqualSpeed { run, reference, is_search, own } = runner.plan.equal_speeds[self.0];
        let request = EqualSpeedRequest {
            network: &runner.network(run)?,
            reference: &runner.network(reference)?,
            data: &runner.source(),
            is_search,
            own,
            options: runner.experiment.equal_speed.as_ref().map(|measure| measure.options).unwrap_or_default(),
        };
        runner.executor.equal_speed(&request).map(Some)
    }

    fn show(self, record: EqualSpeedRecord, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[runner.plan.equal_speeds[self.0].run].key.clone();
        runner.results.equal_speed.push(NetResult { key, record });
    }
}
