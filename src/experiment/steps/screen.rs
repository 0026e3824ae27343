//! The size and cost of a definition that a search considers, before any training.

use serde_json::{Value, json};

use super::{PlanStep, Step, StepKind, StepWork};
use crate::experiment::executor::{ScreenRequest, StepError};
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::measure::ScreenOptions;
use crate::record::{ScreenRecord, SetResult};

/// A definition to look at.
#[derive(Clone, Debug)]
pub struct PlannedScreen {
    /// Names it in the results.
    pub label: String,
    /// The set as the command line takes it, self-contained.
    pub request: String,
    pub limits: ScreenOptions,
    /// Width of the accumulator.
    pub l1: usize,
}

/// The index is into [`Plan::screens`].
#[derive(Clone, Copy, Debug)]
pub struct Screen(pub usize);

impl Step for Screen {
    fn kind(&self) -> StepKind {
        StepKind::measure("screen", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("size and cost of {}", plan.screens[self.0].label)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let PlannedScreen { request, limits, l1, .. } = &runner.plan.screens[self.0];
        json!([request, runner.data_hash(), limits, l1, runner.timed_on(&[])])
    }

    fn needs(&self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    fn run_of(&self, _plan: &Plan) -> usize {
        0
    }

    /// The time of a move is measured.
    fn runs_alone(&self, _plan: &Plan) -> bool {
        true
    }

    fn threads(&self, _plan: &Plan) -> usize {
        1
    }
}

impl StepWork for Screen {
    type Record = ScreenRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<ScreenRecord>, StepError> {
        let source = runner.source();
        let PlannedScreen { request, limits, l1, .. } = &runner.plan.screens[self.0];
        let request = ScreenRequest { set: request, data: &source, limits: *limits, l1: *l1 };
        runner.executor.screen(&request).map(Some)
    }

    fn show(self, record: ScreenRecord, runner: &mut Runner<'_>) {
        let set = runner.plan.screens[self.0].label.clone();
        runner.results.screens.push(SetResult { set, record });
    }
}
