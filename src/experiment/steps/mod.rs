//! The steps of an experiment, one file a kind. A step says what its result depends on ([`Step`]), and does its work
//! ([`StepWork`]); the rest is here: when it counts as done, and how its result is stored and shown.

mod activity;
mod equal_speed;
mod gate;
mod generate;
mod king_buckets;
mod network_measure;
mod play;
mod quantisation;
mod row_importance;
mod screen;
mod self_play;
mod shards;
mod speed;
mod start_network;
mod train;
mod updates;
mod validation;
mod wrong_sign;

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ExperimentError;
use super::estimate::{MEASURE_SECONDS, Rates};
use super::executor::StepError;
use super::plan::Plan;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, FinishedWhen, Stage};
use super::store::{ResultKey, StoredResult};
use crate::json::{from_value, to_value};
use crate::record::machine;
pub use equal_speed::EqualSpeed;
pub use gate::Gate;
pub use generate::Generate;
pub use king_buckets::KingBuckets;
pub use network_measure::{MeasureNetwork, NetworkMeasure};
pub use play::{Match, MatchCost, match_setup};
pub use row_importance::RowImportance;
pub use screen::{PlannedScreens, ScreenedFor, ScreenedSet};
pub use self_play::{HashedFile, PlannedGate, PlannedGeneration, PlannedStartNetwork, SelfPlayResults, SelfPlaySteps};
pub use shards::{MatchShard, PlannedShard, PlayedShards};
pub use speed::Speed;
pub use start_network::StartNetwork;
pub use train::Train;
pub use updates::Updates;
pub use validation::Validation;

/// The measures of networks, in the order in which they are taken.
pub static NETWORK_MEASURES: [NetworkMeasure; 3] =
    [activity::ACTIVITY, quantisation::QUANTISATION_ERROR, wrong_sign::WRONG_SIGN];

/// What the steps of a kind have in common.
#[derive(Clone, Copy, Debug)]
pub struct StepKind {
    /// Its name in lists, in the store and in keys.
    pub name: &'static str,
    /// Raised when the code would give another result from the same inputs.
    pub version: u32,
    pub stage: Stage,
    /// Whether they save their state when they are asked to stop.
    pub is_resumable: bool,
}

impl StepKind {
    pub const fn measure(name: &'static str, version: u32) -> StepKind {
        StepKind { name, version, stage: Stage::Measures, is_resumable: false }
    }
}

/// A step of an experiment. Its key is the hash of kind, version, inputs and the keys of the steps that it needs.
pub trait Step: KeptStep + Debug {
    fn kind(&self) -> StepKind;

    /// Tells it from others of its kind: an index into one of the plan's lists.
    fn index(&self) -> usize;

    /// The step in words.
    fn name(&self, plan: &Plan) -> String;

    /// Everything that its result depends on, but for the results of the steps that it needs.
    fn inputs(&self, runner: &Runner<'_>) -> Value;

    /// The steps whose results it uses; of a measure of one run's network, that run's training.
    fn needs(&self, _plan: &Plan) -> Vec<PlanStep> {
        vec![Train(self.index()).step()]
    }

    /// Steps that must be done before, but do not change its result.
    fn after(&self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    /// All steps that must be done before.
    fn follows(&self, plan: &Plan) -> Vec<PlanStep> {
        let mut before = self.needs(plan);
        before.extend(self.after(plan));
        before
    }

    /// The run, or the first of the runs, that it is about.
    fn run_of(&self, _plan: &Plan) -> usize {
        self.index()
    }

    /// Whether other work on the machine would falsify it.
    fn runs_alone(&self, _plan: &Plan) -> bool {
        false
    }

    fn needs_gpu(&self, _plan: &Plan) -> bool {
        false
    }

    fn threads(&self, _plan: &Plan) -> usize {
        machine::cores()
    }

    /// About how long it will take, in seconds.
    fn estimate(&self, _plan: &Plan, _rates: &Rates) -> f64 {
        MEASURE_SECONDS
    }

    /// Whether it need not be done any more, though it has no result.
    fn is_superfluous(&self, _runner: &mut Runner<'_>) -> bool {
        false
    }

    /// The key under which it is locked; `None` for its own.
    fn lock_key(&self, _runner: &Runner<'_>) -> Option<ResultKey> {
        None
    }

    /// Tells the monitor of its result.
    ///
    /// # Errors
    /// When a file of the result cannot be read.
    fn tell(
        &self,
        _runner: &Runner<'_>,
        _when: FinishedWhen,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        Ok(())
    }

    /// Deletes its files, if it has any beside its result.
    ///
    /// # Errors
    /// When they cannot be deleted.
    fn delete_files(&self, _runner: &Runner<'_>) -> Result<(), ExperimentError> {
        Ok(())
    }

    fn id(&self) -> (&'static str, usize) {
        (self.kind().name, self.index())
    }

    fn step(self) -> PlanStep
    where
        Self: Sized + 'static,
    {
        Rc::new(self)
    }
}

/// A step of any kind.
pub type PlanStep = Rc<dyn Step>;

impl PartialEq for dyn Step {
    fn eq(&self, other: &dyn Step) -> bool {
        self.id() == other.id()
    }
}

impl Eq for dyn Step {}

impl Hash for dyn Step {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

/// The work of a step, and what it makes.
pub trait StepWork: Step + Copy + 'static {
    type Record: Serialize + DeserializeOwned;

    /// Does the step; `None` if the monitor stopped it.
    ///
    /// # Errors
    /// When the work fails.
    fn run(
        self,
        runner: &mut Runner<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<Self::Record>, StepError>;

    /// Adds the result to the experiment's.
    fn show(self, record: Self::Record, runner: &mut Runner<'_>);

    /// The stored record, unless files that belong to it are missing or another's.
    fn checked(self, record: Self::Record, _runner: &Runner<'_>) -> Option<Self::Record> {
        Some(record)
    }

    /// The result of a step that was finished, but not stored.
    fn recover(self, _runner: &Runner<'_>) -> Option<Self::Record> {
        None
    }

    /// The time that it took in all, if it was interrupted and resumed.
    fn own_seconds(self, _runner: &Runner<'_>) -> Option<f64> {
        None
    }

    /// Hash of what it made, where doing it again might make something else. Results of the steps that need it count only
    /// as long as it is the same.
    fn made(self, _record: &Self::Record, _runner: &Runner<'_>) -> Option<String> {
        None
    }
}

/// A step and its stored result, whatever the result is.
pub trait KeptStep {
    /// Whether its result is stored.
    fn is_stored(&self, runner: &Runner<'_>) -> bool;

    /// Shows the stored result, and returns whether the step is done, or need not or cannot be.
    ///
    /// # Errors
    /// When a recovered result cannot be stored.
    fn load(&self, runner: &mut Runner<'_>) -> Result<bool, ExperimentError>;

    /// Does the step, and stores and shows its result.
    ///
    /// # Errors
    /// When the work fails, is interrupted, or its result cannot be stored.
    fn perform(&self, runner: &mut Runner<'_>, monitor: &mut dyn ExperimentMonitor) -> Result<(), ExperimentError>;
}

impl<S: StepWork> KeptStep for S {
    fn is_stored(&self, runner: &Runner<'_>) -> bool {
        stored(*self, runner).is_some()
    }

    fn load(&self, runner: &mut Runner<'_>) -> Result<bool, ExperimentError> {
        if let Some((stored, record)) = stored(*self, runner) {
            show(*self, runner, stored, record);
        } else if let Some(record) = self.recover(runner) {
            let seconds = self.own_seconds(runner).unwrap_or_default();
            keep(*self, runner, seconds, record)?;
        } else {
            return Ok(self.is_superfluous(runner) || runner.is_without_network(self));
        }
        Ok(true)
    }

    fn perform(&self, runner: &mut Runner<'_>, monitor: &mut dyn ExperimentMonitor) -> Result<(), ExperimentError> {
        let begun = Instant::now();
        if self.kind().is_resumable {
            monitor.resumable_begins();
        }
        let done = self.run(runner, monitor);
        if self.kind().is_resumable {
            monitor.resumable_ended();
        }
        let failed = |source| ExperimentError::Step { step: self.name(&runner.plan), source };
        let Some(record) = done.map_err(failed)? else { return Err(ExperimentError::Interrupted) };
        let seconds = self.own_seconds(runner).unwrap_or_else(|| begun.elapsed().as_secs_f64());
        keep(*self, runner, seconds, record)?;
        self.tell(runner, FinishedWhen::Now, monitor)
    }
}

/// A step's stored result, if it was made of what the steps that it needs have made.
fn stored<S: StepWork>(step: S, runner: &Runner<'_>) -> Option<(StoredResult, S::Record)> {
    let stored = runner.store.get(step.kind().name, &runner.key(&step.step()))?;
    if stored.made_of != runner.made_by(&step.needs(&runner.plan)) {
        return None;
    }
    let record = step.checked(from_value(&stored.record, "").ok()?, runner)?;
    Some((stored, record))
}

/// Stores a result, and shows it.
fn keep<S: StepWork>(step: S, runner: &mut Runner<'_>, seconds: f64, record: S::Record) -> Result<(), ExperimentError> {
    let value = to_value(&record)
        .map_err(|error| ExperimentError::Step { step: step.name(&runner.plan), source: error.into() })?;
    let made = step.made(&record, runner);
    let made_of = runner.made_by(&step.needs(&runner.plan));
    let stored = StoredResult { made, made_of, ..StoredResult::new(seconds, value) };
    runner.store.put(step.kind().name, &runner.key(&step.step()), &stored)?;
    show(step, runner, stored, record);
    Ok(())
}

fn show<S: StepWork>(step: S, runner: &mut Runner<'_>, stored: StoredResult, record: S::Record) {
    let key = runner.key(&step.step());
    runner.note(&key, step.kind().stage, &stored);
    runner.made.insert(key, stored.made);
    step.show(record, runner);
}
