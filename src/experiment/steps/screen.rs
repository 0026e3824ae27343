//! The size and cost of the definitions that a search considers, before any training. Sizes need no clock: many
//! definitions are looked at by all cores at once, and those of which the size excludes cost nothing more.

use std::ops::Range;

use serde_json::{Value, json};

use super::{PlanStep, Step, StepKind, StepWork};
use crate::experiment::executor::StepError;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::measure::ScreenOptions;
use crate::record::{ScreenRecord, ScreenedCosts, SetResult};

/// Definitions to look at.
#[derive(Clone, Debug)]
pub struct PlannedScreens {
    pub sets: Vec<ScreenedSet>,
    pub what: ScreenedFor,
}

/// A definition to look at.
#[derive(Clone, Debug)]
pub struct ScreenedSet {
    /// Names it in the results.
    pub label: String,
    /// The set as the command line takes it, self-contained.
    pub request: String,
}

/// What definitions are looked at for.
#[derive(Copy, Clone, Debug)]
pub enum ScreenedFor {
    /// Their sizes, with networks of this width.
    Size { limits: ScreenOptions, l1: usize },
    /// Proofs, and the time to follow a move.
    Cost,
}

/// Definitions of one step.
const CHUNK: usize = 32;

impl PlannedScreens {
    /// The steps that look at all definitions.
    pub fn steps(&self) -> impl Iterator<Item = PlanStep> {
        let step = |chunk| match self.what {
            ScreenedFor::Size { .. } => Screen(chunk).step(),
            ScreenedFor::Cost => ScreenCost(chunk).step(),
        };
        (0..self.sets.len().div_ceil(CHUNK)).map(step)
    }
}

/// The sizes of some definitions. The index counts chunks of [`Plan::screens`].
#[derive(Clone, Copy, Debug)]
struct Screen(usize);

/// The costs of some definitions. The index counts chunks of [`Plan::screens`].
#[derive(Clone, Copy, Debug)]
struct ScreenCost(usize);

fn chunk(number: usize, plan: &Plan) -> &[ScreenedSet] {
    let sets = plan.screens.as_ref().map_or(&[][..], |screens| &screens.sets);
    let Range { start, end } = number * CHUNK..(number + 1) * CHUNK;
    &sets[start.min(sets.len())..end.min(sets.len())]
}

fn requests(number: usize, plan: &Plan) -> Vec<&str> {
    chunk(number, plan).iter().map(|set| set.request.as_str()).collect()
}

fn labelled<T>(number: usize, plan: &Plan, records: Vec<T>) -> Vec<SetResult<T>> {
    let labels = chunk(number, plan).iter().map(|set| set.label.clone());
    labels.zip(records).map(|(set, record)| SetResult { set, record }).collect()
}

fn sets_of(number: usize, plan: &Plan) -> String {
    match chunk(number, plan) {
        [only] => only.label.clone(),
        [first, others @ ..] => format!("{} and {} more", first.label, others.len()),
        [] => String::new(),
    }
}

impl Screen {
    fn terms(runner: &Runner<'_>) -> (ScreenOptions, usize) {
        match runner.plan.screens.as_ref().map(|screens| screens.what) {
            Some(ScreenedFor::Size { limits, l1 }) => (limits, l1),
            _ => Default::default(),
        }
    }
}

impl Step for Screen {
    fn kind(&self) -> StepKind {
        StepKind::measure("screen", 2)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("size of {}", sets_of(self.0, plan))
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!([requests(self.0, &runner.plan), runner.data_hash(), Screen::terms(runner)])
    }

    fn needs(&self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    fn run_of(&self, _plan: &Plan) -> usize {
        0
    }
}

impl StepWork for Screen {
    type Record = Vec<ScreenRecord>;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<Vec<ScreenRecord>>, StepError> {
        let (limits, l1) = Screen::terms(runner);
        let source = runner.source();
        runner.executor.screen(&requests(self.0, &runner.plan), &source, limits, l1).map(Some)
    }

    fn show(self, record: Vec<ScreenRecord>, runner: &mut Runner<'_>) {
        runner.results.screens.extend(labelled(self.0, &runner.plan, record));
    }
}

impl Step for ScreenCost {
    fn kind(&self) -> StepKind {
        StepKind::measure("screened cost", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("cost of {}", sets_of(self.0, plan))
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!([requests(self.0, &runner.plan), runner.data_hash(), runner.timed_on(&[])])
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
}

impl StepWork for ScreenCost {
    type Record = Vec<ScreenedCosts>;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<Vec<ScreenedCosts>>, StepError> {
        let source = runner.source();
        runner.executor.screened_costs(&requests(self.0, &runner.plan), &source).map(Some)
    }

    fn show(self, record: Vec<ScreenedCosts>, runner: &mut Runner<'_>) {
        runner.results.screened_costs.extend(labelled(self.0, &runner.plan, record));
    }
}
