//! Measures of trained networks over games. Each stands in a file of its own, as a [`NetworkMeasure`].

use serde_json::{Value, json};

use super::{Step, StepKind, StepWork};
use crate::experiment::executor::{NetRequest, StepError};
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;

/// A measure of trained networks.
#[derive(Debug)]
pub struct NetworkMeasure {
    /// Its name in files: of its table `[measure.NAME]`, its steps and its records.
    pub name: &'static str,
    /// Raised when it would give another result from the same network and games.
    pub version: u32,
    /// What it measures, as the help on its table says it.
    pub about: &'static str,
    /// Its name in words: "WORDS of eval piece, seed 1".
    pub words: &'static str,
    /// Measures a network, and returns the record as JSON.
    pub measure: fn(&NetRequest) -> Result<Value, StepError>,
}

/// A measure of one run's network.
#[derive(Clone, Copy, Debug)]
pub struct MeasureNetwork {
    pub measure: &'static NetworkMeasure,
    /// Index into [`Plan::runs`].
    pub run: usize,
}

impl MeasureNetwork {
    fn games(self, runner: &Runner<'_>) -> Option<u64> {
        runner.experiment.measure.networks.get(self.measure.name)?.limit.games
    }
}

impl Step for MeasureNetwork {
    fn kind(&self) -> StepKind {
        StepKind::measure(self.measure.name, self.measure.version)
    }

    fn index(&self) -> usize {
        self.run
    }

    fn name(&self, plan: &Plan) -> String {
        format!("{} of {}", self.measure.words, plan.runs[self.run].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!(self.games(runner))
    }
}

impl StepWork for MeasureNetwork {
    type Record = Value;

    fn run(self, runner: &mut Runner<'_>, _monitor: &mut dyn ExperimentMonitor) -> Result<Option<Value>, StepError> {
        let request = runner.net_request(self.run, self.games(runner))?;
        runner.executor.measure_network(self.measure, &request).map(Some)
    }

    fn show(self, record: Value, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.run].key.clone();
        runner.results.networks.push(self.measure.name, key, record);
    }
}
