//! The loop that does steps: take one whose needs are met, lock it, do it, until all are done. What a process does alone,
//! beside others, or for one step only are policies of this loop ([`Share`]).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::ExperimentError;
use super::earlier::Earlier;
use super::executor::DataRequest;
use super::lock::{StepLocks, Tried, Waiting};
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, FinishedWhen, Share, Stage};
use super::steps::PlanStep;
use super::store::ResultKey;
use crate::output::file_lock::{FileLock, LockError};
use crate::units::SortedMap;

/// A run alone writes the results folder so often, and once more when it ends.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// Where a step stands among the others.
struct Place {
    number: usize,
    total: usize,
    remaining: Option<Duration>,
}

impl Runner<'_> {
    /// Waits until no other process builds these samples.
    pub(super) fn lock_data(&self, request: &DataRequest) -> Result<FileLock, ExperimentError> {
        let inputs: Vec<String> =
            request.inputs.iter().map(|input| input.origin.path().display().to_string()).collect();
        let key = ResultKey::of(&json!(["samples", inputs, request.options])).to_string();
        let locks = StepLocks::open(&self.options.work)?;
        let mut waiting = None;
        loop {
            match locks.step(&key)? {
                Tried::Taken(lock) => return Ok(lock),
                Tried::Held(holder) => Waiting::look(&mut waiting, &holder),
            };
        }
    }

    /// Does the steps among `pending` that this process shall do. Returns whether all of `pending` are done.
    pub(super) fn do_steps(
        &mut self,
        pending: Vec<PlanStep>,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<bool, ExperimentError> {
        let is_alone = self.options.share == Share::All;
        // A worker does the steps that do not need one that failed.
        let goes_on = matches!(self.options.share, Share::Free | Share::Unclaimed);
        let total = if is_alone { pending.len() } else { self.plan.steps.len() };
        let mut left: HashSet<PlanStep> = pending.iter().cloned().collect();
        let Some(order) = self.order(pending, monitor, earlier)? else { return Ok(left.is_empty()) };
        let locks = StepLocks::open(&self.options.work)?;
        let mut times = StepTimes::default();
        let mut waiting = None;
        let mut saved = Instant::now();
        loop {
            let mut next = None;
            let mut others = None;
            for (index, step) in order.iter().enumerate().filter(|(_, step)| left.contains(*step)) {
                let key = self.key(step);
                let is_ready = step.follows(&self.plan).iter().all(|need| !left.contains(need));
                if !is_ready || earlier.failed.iter().any(|(other, _)| *other == key) {
                    continue;
                }
                let remaining = if is_alone { times.estimate(&order[index..]) } else { None };
                let place = Place { number: total - left.len() + 1, total, remaining };
                let begun = Instant::now();
                match self.try_step(step, &locks, &place, monitor) {
                    Ok(None) => {
                        times.add(step, begun.elapsed());
                        next = Some(step);
                        break;
                    }
                    Ok(Some(holder)) => others = Some(holder),
                    Err(error) if !goes_on || matches!(error, ExperimentError::Interrupted) => {
                        if is_alone {
                            self.save()?;
                        }
                        return Err(error);
                    }
                    Err(error) => {
                        monitor.failed(&error);
                        earlier.failed.push((key, error));
                    }
                }
            }
            match (next, others) {
                (Some(done), _) => {
                    left.remove(done);
                    if is_alone && saved.elapsed() >= SAVE_EVERY {
                        self.save()?;
                        saved = Instant::now();
                    }
                }
                (None, Some(_)) if self.options.share == Share::Unclaimed => return Ok(false),
                (None, Some(holder)) => wait(&mut waiting, &holder, monitor)?,
                (None, None) => break,
            }
        }
        self.failures(&left, &order, earlier)?;
        if left.is_empty() {
            self.save()?;
        }
        Ok(left.is_empty())
    }

    /// The steps that this process shall do, in the order in which it tries them; `None` if the one that was asked for
    /// is not in the plan.
    fn order(
        &self,
        mut pending: Vec<PlanStep>,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<Option<Vec<PlanStep>>, ExperimentError> {
        if let Share::One(key) = &self.options.share {
            let Some(step) = self.plan.steps.iter().find(|step| self.key(step).to_string() == *key) else {
                return Ok(None);
            };
            earlier.found = true;
            if let Some(missing) = step.follows(&self.plan).into_iter().find(|need| pending.contains(need)) {
                let [step, missing] = [step, &missing].map(|step| step.name(&self.plan));
                return Err(ExperimentError::NotReady { step, missing });
            }
            return Ok(Some(vec![step.clone()]));
        }
        monitor.skipped(self.plan.steps.len() - pending.len());
        if self.options.share != Share::All {
            // Times are measured last, when less is running.
            pending.sort_by_key(|step| step.runs_alone(&self.plan));
        }
        Ok(Some(pending))
    }

    /// The error of the steps that failed, unless other processes have done them since.
    fn failures(
        &self,
        left: &HashSet<PlanStep>,
        order: &[PlanStep],
        earlier: &mut Earlier,
    ) -> Result<(), ExperimentError> {
        // Not the steps of other passes.
        let mine = order.iter().filter(|step| left.contains(*step));
        let keys: HashSet<ResultKey> = mine.map(|step| self.key(step)).collect();
        let failed: Vec<_> = earlier.failed.extract_if(.., |(key, _)| keys.contains(key)).collect();
        let blocked = keys.len() - failed.len();
        let failures = failed.len();
        match failed.into_iter().next() {
            Some((_, first)) if failures == 1 && blocked == 0 => Err(first),
            Some((_, first)) => Err(ExperimentError::Failed { failed: failures, blocked, first: Box::new(first) }),
            None => Ok(()),
        }
    }

    /// Does a step, or loads what another process has done; `None` then. Otherwise, who does it now, or keeps this
    /// machine from it.
    fn try_step(
        &mut self,
        step: &PlanStep,
        locks: &StepLocks,
        place: &Place,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<LockError>, ExperimentError> {
        if monitor.stop_requested() {
            return Err(ExperimentError::Interrupted);
        }
        if self.load_finished_step(step, monitor)? {
            return Ok(None);
        }
        let _machine = match locks.machine(step.runs_alone(&self.plan))? {
            Tried::Taken(lock) => lock,
            Tried::Held(holder) => return Ok(Some(holder)),
        };
        let key = step.lock_key(self).unwrap_or_else(|| self.key(step));
        let _step = match locks.step(&key.to_string())? {
            Tried::Taken(lock) => lock,
            Tried::Held(holder) => return Ok(Some(holder)),
        };
        // Another process may have done it since.
        if !self.load_finished_step(step, monitor)? {
            monitor.step(place.number, place.total, &step.name(&self.plan), place.remaining);
            step.perform(self, monitor)?;
        }
        Ok(None)
    }

    fn load_finished_step(
        &mut self,
        step: &PlanStep,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<bool, ExperimentError> {
        let loaded = step.load(self)?;
        if loaded {
            step.tell(self, FinishedWhen::Before, monitor)?;
        }
        Ok(loaded)
    }
}

fn wait(
    waiting: &mut Option<Waiting>,
    holder: &LockError,
    monitor: &mut dyn ExperimentMonitor,
) -> Result<(), ExperimentError> {
    if monitor.stop_requested() {
        return Err(ExperimentError::Interrupted);
    }
    if let Some(text) = Waiting::look(waiting, holder) {
        monitor.waits(&text);
    }
    Ok(())
}

/// Number and total time of the steps done so far, by stage.
#[derive(Default)]
struct StepTimes(SortedMap<Stage, (u32, Duration)>);

impl StepTimes {
    fn add(&mut self, step: &PlanStep, time: Duration) {
        let (steps, total) = self.0.get_or_default(step.kind().stage);
        *steps += 1;
        *total += time;
    }

    /// Time that `steps` will take; `None` if no step of one of their stages is done yet.
    fn estimate(&self, steps: &[PlanStep]) -> Option<Duration> {
        let mut sum = Duration::ZERO;
        for step in steps {
            let (done, total) = *self.0.get(&step.kind().stage)?;
            sum += total / done;
        }
        Some(sum)
    }
}
