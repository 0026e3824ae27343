//! Evaluations per second, by network, and by turns with the first row's network of the same seed: speeds that are timed
//! one after another differ also because the machine's does.

use serde_json::{Value, json};

use super::{PlanStep, Step, StepKind, StepWork, Train};
use crate::experiment::estimate::Rates;
use crate::experiment::executor::StepError;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::measure::SpeedOptions;
use crate::record::{NetResult, SpeedRecord};

/// The index is into [`Plan::runs`].
#[derive(Clone, Copy, Debug)]
pub struct Speed(pub usize);

impl Speed {
    fn options(runner: &Runner<'_>) -> SpeedOptions {
        runner.experiment.measure.speed.as_ref().map(|measure| measure.options).unwrap_or_default()
    }
}

impl Step for Speed {
    fn kind(&self) -> StepKind {
        StepKind::measure("speed", 2)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("speed of {}", plan.runs[self.0].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let timed = [Some(self.0), runner.plan.timed_beside(self.0)];
        json!([Speed::options(runner), runner.timed_on(&timed.into_iter().flatten().collect::<Vec<_>>())])
    }

    fn needs(&self, plan: &Plan) -> Vec<PlanStep> {
        let mut needs = vec![Train(self.0).step()];
        needs.extend(plan.timed_beside(self.0).map(|first| Train(first).step()));
        needs
    }

    fn runs_alone(&self, _plan: &Plan) -> bool {
        true
    }

    fn threads(&self, _plan: &Plan) -> usize {
        1
    }

    fn estimate(&self, _plan: &Plan, rates: &Rates) -> f64 {
        rates.speed
    }
}

impl StepWork for Speed {
    type Record = SpeedRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<SpeedRecord>, StepError> {
        let request = runner.net_request(self.0, None)?;
        let beside = runner.plan.timed_beside(self.0).map(|first| runner.network(first)).transpose()?;
        let options = Speed::options(runner);
        runner.executor.speed(&request, beside.as_deref(), options).map(Some)
    }

    fn show(self, record: SpeedRecord, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.0].key.clone();
        runner.results.speed.push(NetResult { key, record });
    }
}
