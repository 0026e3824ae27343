//! Steps that several processes share: a process does the step that it is asked for, or the free steps.

use std::collections::HashSet;

use serde_json::json;

use super::ExperimentError;
use super::earlier::Earlier;
use super::executor::DataRequest;
use super::lock::{StepLocks, Tried, Waiting};
use super::plan::PlanStep;
use super::result_store::ResultKey;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, FinishedWhen, Share};
use crate::output::file_lock::{FileLock, LockError};
use crate::units::sort_by_key;

impl Runner<'_> {
    /// Waits until no other process builds these samples.
    pub(super) fn lock_data(&self, request: &DataRequest) -> Result<Option<FileLock>, ExperimentError> {
        if self.options.share == Share::All {
            return Ok(None);
        }
        let inputs: Vec<String> =
            request.inputs.iter().map(|input| input.origin.path().display().to_string()).collect();
        let key = ResultKey::of("samples", &json!([inputs, request.options])).to_string();
        let locks = StepLocks::open(&self.options.work)?;
        let mut waiting = None;
        loop {
            match locks.step(&key)? {
                Tried::Taken(lock) => return Ok(Some(lock)),
                Tried::Held(holder) => Waiting::look(&mut waiting, &holder),
            };
        }
    }

    /// Does the requested step, or the free ones among `pending` until all are done. Returns whether all are.
    pub(super) fn do_shared(
        &mut self,
        pending: Vec<PlanStep>,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<bool, ExperimentError> {
        let complete = match self.options.share.clone() {
            Share::One(key) => self.do_one(&key, pending, monitor, earlier)?,
            _ => self.do_free(pending, monitor, earlier)?,
        };
        if complete {
            self.save()?;
        }
        Ok(complete)
    }

    fn do_one(
        &mut self,
        key: &str,
        mut pending: Vec<PlanStep>,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<bool, ExperimentError> {
        let Some(step) = self.plan.steps.iter().copied().find(|step| self.step_key(*step).to_string() == key) else {
            return Ok(pending.is_empty());
        };
        earlier.found = true;
        if let Some(missing) = self.needs(step).into_iter().find(|need| pending.contains(need)) {
            let [step, missing] = [step, missing].map(|step| self.plan.describe(step));
            return Err(ExperimentError::NotReady { step, missing });
        }
        let locks = StepLocks::open(&self.options.work)?;
        let mut waiting = None;
        while pending.contains(&step) {
            match self.try_step(step, &locks, (1, 1), monitor)? {
                None => break,
                Some(holder) => wait(&mut waiting, &holder, monitor)?,
            }
        }
        pending.retain(|other| *other != step);
        Ok(pending.is_empty())
    }

    /// Does the free steps until all are done; or, unless the options say to wait, until other processes do those that
    /// are left. Returns whether all are done.
    fn do_free(
        &mut self,
        pending: Vec<PlanStep>,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<bool, ExperimentError> {
        let locks = StepLocks::open(&self.options.work)?;
        let mut waiting = None;
        let total = self.plan.steps.len();
        let mut left: HashSet<PlanStep> = pending.iter().copied().collect();
        let mut order = pending;
        monitor.skipped(total - left.len());
        // Times are measured last, when less is running.
        sort_by_key(&mut order, &|step| self.must_be_alone(*step));
        while !left.is_empty() {
            let mut next = None;
            let mut others = None;
            for &step in order.iter().filter(|step| left.contains(*step)) {
                let is_ready = self.needs(step).iter().all(|need| !left.contains(need));
                let key = self.step_key(step);
                if !is_ready || earlier.failed.iter().any(|(other, _)| *other == key) {
                    continue;
                }
                match self.try_step(step, &locks, (total - left.len() + 1, total), monitor) {
                    Ok(None) => next = Some(step),
                    Ok(Some(holder)) => others = Some(holder),
                    Err(ExperimentError::Interrupted) => return Err(ExperimentError::Interrupted),
                    Err(error) => {
                        monitor.failed(&error);
                        earlier.failed.push((key, error));
                    }
                }
                if next.is_some() {
                    break;
                }
            }
            match (next, others) {
                (Some(done), _) => {
                    left.remove(&done);
                }
                (None, Some(_)) if self.options.share == Share::Unclaimed => return Ok(false),
                (None, Some(holder)) => wait(&mut waiting, &holder, monitor)?,
                (None, None) => break,
            }
        }
        // Not the steps of other passes, nor steps that failed here and another process has done since.
        let keys: HashSet<ResultKey> = left.iter().map(|step| self.step_key(*step)).collect();
        let failed: Vec<_> = earlier.failed.extract_if(.., |(key, _)| keys.contains(key)).collect();
        let blocked = left.len() - failed.len();
        let failures = failed.len();
        match failed.into_iter().next() {
            Some((_, first)) if failures == 1 && blocked == 0 => Err(first),
            Some((_, first)) => Err(ExperimentError::Failed { failed: failures, blocked, first: Box::new(first) }),
            None => Ok(true),
        }
    }

    /// Does a step, or loads what another process has done; `None` then. Otherwise, who does it now, or keeps this
    /// machine from it.
    fn try_step(
        &mut self,
        step: PlanStep,
        locks: &StepLocks,
        (number, total): (usize, usize),
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<LockError>, ExperimentError> {
        if monitor.stop_requested() {
            return Err(ExperimentError::Interrupted);
        }
        if self.load_finished_step(step, monitor)? {
            return Ok(None);
        }
        let _machine = match locks.machine(self.must_be_alone(step))? {
            Tried::Taken(lock) => lock,
            Tried::Held(holder) => return Ok(Some(holder)),
        };
        let _step = match locks.step(&self.lock_key(step).to_string())? {
            Tried::Taken(lock) => lock,
            Tried::Held(holder) => return Ok(Some(holder)),
        };
        // Another process may have done it since.
        if !self.load_finished_step(step, monitor)? {
            monitor.step(number, total, &self.plan.describe(step), None);
            self.do_step(step, monitor)?;
        }
        Ok(None)
    }

    /// The key of the lock on a step. A longer match continues the journal of a shorter one, so that one process at a
    /// time plays either.
    fn lock_key(&self, step: PlanStep) -> ResultKey {
        match step {
            PlanStep::Match(index) => self.match_lock_key(index),
            _ => self.step_key(step),
        }
    }

    fn load_finished_step(
        &mut self,
        step: PlanStep,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<bool, ExperimentError> {
        let loaded = self.load_step(step)?;
        if let (true, PlanStep::Train(run)) = (loaded, step) {
            self.tell_trained(run, FinishedWhen::Before, monitor)?;
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
