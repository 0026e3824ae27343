//! Evaluations per second, by network.

use serde_json::{Value, json};

use super::{Step, StepKind, StepWork};
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
        StepKind::measure("speed", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("speed of {}", plan.runs[self.0].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!([Speed::options(runner), runner.timed_on(&[self.0])])
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
        let options = Speed::options(runner);
        runner.executor.speed(&request, options).map(Some)
    }

    fn show(self, record: SpeedRecord, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.0].key.clone();
        runner.results.speed.push(NetResult { key, record });
    }
}
