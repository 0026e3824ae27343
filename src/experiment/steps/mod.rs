//! The steps of an experiment, one file a kind. A step says what its result depends on; the rest is here: its key, when it
//! counts as done, and how its result is stored and shown.

mod activity;
mod equal_speed;
mod play;
mod quantisation;
mod shards;
mod speed;
mod train;
mod updates;
mod validation;

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ExperimentError;
use super::estimate::{MEASURE_SECONDS, Rates};
use super::executor::StepError;
use super::plan::Plan;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, FinishedWhen, Stage};
use super::store::{ResultKey, StoredResult};
use crate::record::machine;
pub use activity::Activity;
pub use equal_speed::EqualSpeed;
pub use play::{Match, MatchCost, match_setup};
pub use quantisation::QuantisationError;
pub use shards::{MatchShard, PlannedShard, PlayedShards};
pub use speed::Speed;
pub use train::Train;
pub use updates::Updates;
pub use validation::Validation;

/// A kind of step. Its key is the hash of kind, version, inputs and the keys of the steps that it needs.
pub trait Step: Copy + Debug + 'static {
    type Record: Serialize + DeserializeOwned;
    /// Its name in lists, in the store and in keys.
    const KIND: &'static str;
    /// Raised when the code would give another result from the same inputs.
    const VERSION: u32;
    const STAGE: Stage = Stage::Measures;
    /// Whether it saves its state when it is asked to stop.
    const RESUMABLE: bool = false;

    /// Tells it from others of its kind: an index into one of the plan's lists.
    fn index(self) -> usize;

    /// The step in words.
    fn name(self, plan: &Plan) -> String;

    /// Everything that its result depends on, but for the results of the steps that it needs.
    fn inputs(self, runner: &Runner<'_>) -> Value;

    /// The steps whose results it uses; of a measure of one run's network, that run's training.
    fn needs(self, _plan: &Plan) -> Vec<PlanStep> {
        vec![Train(self.index()).step()]
    }

    /// Steps that must be done before, but do not change its result.
    fn after(self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    /// The run, or the first of the runs, that it is about.
    fn run_of(self, _plan: &Plan) -> usize {
        self.index()
    }

    /// Whether other work on the machine would falsify it.
    fn runs_alone(self, _plan: &Plan) -> bool {
        false
    }

    fn needs_gpu(self, _plan: &Plan) -> bool {
        false
    }

    fn threads(self, _plan: &Plan) -> usize {
        machine::cores()
    }

    /// About how long it will take, in seconds.
    fn estimate(self, _plan: &Plan, _rates: &Rates) -> f64 {
        MEASURE_SECONDS
    }

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

    /// Whether it need not be done any more, though it has no result.
    fn is_superfluous(self, _runner: &mut Runner<'_>) -> bool {
        false
    }

    /// The key under which it is locked.
    fn lock_key(self, runner: &Runner<'_>) -> ResultKey {
        runner.key(&self.step())
    }

    /// Tells the monitor of its result.
    ///
    /// # Errors
    /// When a file of the result cannot be read.
    fn tell(
        self,
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
    fn delete_files(self, _runner: &Runner<'_>) -> Result<(), ExperimentError> {
        Ok(())
    }

    fn step(self) -> PlanStep {
        Rc::new(self)
    }
}

/// A step of any kind.
pub type PlanStep = Rc<dyn AnyStep>;

/// What the plan, the loop and the lists know of a step: see [`Step`].
pub trait AnyStep: Debug {
    fn id(&self) -> (&'static str, usize);
    fn kind(&self) -> &'static str;
    fn stage(&self) -> Stage;
    fn name(&self, plan: &Plan) -> String;
    fn needs(&self, plan: &Plan) -> Vec<PlanStep>;
    /// All steps that must be done before.
    fn follows(&self, plan: &Plan) -> Vec<PlanStep>;
    fn run_of(&self, plan: &Plan) -> usize;
    fn runs_alone(&self, plan: &Plan) -> bool;
    fn needs_gpu(&self, plan: &Plan) -> bool;
    fn threads(&self, plan: &Plan) -> usize;
    fn estimate(&self, plan: &Plan, rates: &Rates) -> f64;
    /// What its key is the hash of, but for the keys of the steps that it needs.
    fn determinants(&self, runner: &Runner<'_>) -> Value;
    fn lock_key(&self, runner: &Runner<'_>) -> ResultKey;
    /// Whether its result is stored.
    fn is_stored(&self, runner: &Runner<'_>) -> bool;
    /// Shows the stored result, and returns whether the step is done.
    ///
    /// # Errors
    /// When a recovered result cannot be stored.
    fn load(&self, runner: &mut Runner<'_>) -> Result<bool, ExperimentError>;
    /// Does the step, and stores and shows its result.
    ///
    /// # Errors
    /// When the work fails, is interrupted, or its result cannot be stored.
    fn perform(&self, runner: &mut Runner<'_>, monitor: &mut dyn ExperimentMonitor) -> Result<(), ExperimentError>;
    /// As [`Step::tell`].
    ///
    /// # Errors
    /// As [`Step::tell`].
    fn tell(
        &self,
        runner: &Runner<'_>,
        when: FinishedWhen,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError>;
    /// Deletes the result.
    ///
    /// # Errors
    /// When a file cannot be deleted.
    fn delete(&self, runner: &Runner<'_>) -> Result<(), ExperimentError>;
}

impl PartialEq for dyn AnyStep {
    fn eq(&self, other: &dyn AnyStep) -> bool {
        self.id() == other.id()
    }
}

impl Eq for dyn AnyStep {}

impl Hash for dyn AnyStep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl<S: Step> AnyStep for S {
    fn id(&self) -> (&'static str, usize) {
        (S::KIND, self.index())
    }

    fn kind(&self) -> &'static str {
        S::KIND
    }

    fn stage(&self) -> Stage {
        S::STAGE
    }

    fn name(&self, plan: &Plan) -> String {
        Step::name(*self, plan)
    }

    fn needs(&self, plan: &Plan) -> Vec<PlanStep> {
        Step::needs(*self, plan)
    }

    fn follows(&self, plan: &Plan) -> Vec<PlanStep> {
        let mut before = Step::needs(*self, plan);
        before.extend(self.after(plan));
        before
    }

    fn run_of(&self, plan: &Plan) -> usize {
        Step::run_of(*self, plan)
    }

    fn runs_alone(&self, plan: &Plan) -> bool {
        Step::runs_alone(*self, plan)
    }

    fn needs_gpu(&self, plan: &Plan) -> bool {
        Step::needs_gpu(*self, plan)
    }

    fn threads(&self, plan: &Plan) -> usize {
        Step::threads(*self, plan)
    }

    fn estimate(&self, plan: &Plan, rates: &Rates) -> f64 {
        Step::estimate(*self, plan, rates)
    }

    fn determinants(&self, runner: &Runner<'_>) -> Value {
        json!([S::KIND, S::VERSION, self.inputs(runner)])
    }

    fn lock_key(&self, runner: &Runner<'_>) -> ResultKey {
        Step::lock_key(*self, runner)
    }

    fn is_stored(&self, runner: &Runner<'_>) -> bool {
        stored(*self, runner).is_some()
    }

    fn load(&self, runner: &mut Runner<'_>) -> Result<bool, ExperimentError> {
        let mut found = stored(*self, runner);
        if found.is_none()
            && let Some(record) = self.recover(runner)
        {
            let seconds = self.own_seconds(runner).unwrap_or_default();
            found = Some(keep(*self, runner, seconds, record)?);
        }
        match found {
            Some(stored) => show(*self, runner, stored),
            None => return Ok(self.is_superfluous(runner)),
        }
        Ok(true)
    }

    fn perform(&self, runner: &mut Runner<'_>, monitor: &mut dyn ExperimentMonitor) -> Result<(), ExperimentError> {
        let begun = Instant::now();
        if S::RESUMABLE {
            monitor.resumable_begins();
        }
        let done = self.run(runner, monitor);
        if S::RESUMABLE {
            monitor.resumable_ended();
        }
        let failed = |source| ExperimentError::Step { step: Step::name(*self, &runner.plan), source };
        let Some(record) = done.map_err(failed)? else { return Err(ExperimentError::Interrupted) };
        let seconds = self.own_seconds(runner).unwrap_or_else(|| begun.elapsed().as_secs_f64());
        let stored = keep(*self, runner, seconds, record)?;
        show(*self, runner, stored);
        Step::tell(*self, runner, FinishedWhen::Now, monitor)
    }

    fn tell(
        &self,
        runner: &Runner<'_>,
        when: FinishedWhen,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        Step::tell(*self, runner, when, monitor)
    }

    fn delete(&self, runner: &Runner<'_>) -> Result<(), ExperimentError> {
        self.delete_files(runner)?;
        Ok(runner.store.remove(S::KIND, &runner.key(&self.step()))?)
    }
}

/// A step's stored result, if it was made of what the steps that it needs have made.
fn stored<S: Step>(step: S, runner: &Runner<'_>) -> Option<StoredResult<S::Record>> {
    let stored: StoredResult<S::Record> = runner.store.get(S::KIND, &runner.key(&step.step()))?;
    if stored.made_of != runner.made_by(&Step::needs(step, &runner.plan)) {
        return None;
    }
    let record = step.checked(stored.record, runner)?;
    Some(StoredResult { record, ..stored })
}

fn keep<S: Step>(
    step: S,
    runner: &Runner<'_>,
    seconds: f64,
    record: S::Record,
) -> Result<StoredResult<S::Record>, ExperimentError> {
    let made = step.made(&record, runner);
    let made_of = runner.made_by(&Step::needs(step, &runner.plan));
    let stored = StoredResult::new(seconds, made, made_of, record);
    runner.store.put(S::KIND, &runner.key(&step.step()), &stored)?;
    Ok(stored)
}

fn show<S: Step>(step: S, runner: &mut Runner<'_>, stored: StoredResult<S::Record>) {
    let key = runner.key(&step.step());
    runner.note(&key, S::STAGE, &stored);
    runner.made.insert(key, stored.made);
    step.show(stored.record, runner);
}
