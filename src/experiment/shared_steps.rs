//! Steps that several processes share: a process does the step that it is asked for, or the free steps.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::time::Duration;

use serde_json::json;

use super::ExperimentError;
use super::earlier::Earlier;
use super::executor::DataRequest;
use super::plan::PlanStep;
use super::result_store::ResultKey;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, FinishedWhen, Share};
use super::step_locks::{Claim, Claims};
use crate::output::folder_lock::hostname;

/// Between two looks at steps that others do.
const POLL: Duration = Duration::from_millis(300);

impl Runner<'_> {
    /// Waits until no other process builds these samples.
    pub(super) fn claim_data(&self, request: &DataRequest) -> Result<Option<Claim>, ExperimentError> {
        if self.options.share == Share::All {
            return Ok(None);
        }
        let inputs: Vec<String> =
            request.inputs.iter().map(|input| input.origin.path().display().to_string()).collect();
        let key = ResultKey::of("samples", &json!([inputs, request.options])).to_string();
        let claims = self.claims()?;
        loop {
            if let Some(claim) = claims.try_claim(&key).map_err(|source| self.claim_failed(source))? {
                return Ok(Some(claim));
            }
            std::thread::sleep(POLL);
        }
    }

    fn claims(&self) -> Result<Claims, ExperimentError> {
        Claims::open(&self.options.work).map_err(|source| self.claim_failed(source))
    }

    fn claim_failed(&self, source: std::io::Error) -> ExperimentError {
        ExperimentError::WorkFolder { path: self.options.work.join("claims"), source }
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
        let claims = self.claims()?;
        while pending.contains(&step) && !self.try_step(step, &claims, (1, 1), monitor)? {
            self.wait(monitor)?;
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
        let claims = self.claims()?;
        let total = self.plan.steps.len();
        let mut left: HashSet<PlanStep> = pending.iter().copied().collect();
        let mut order = pending;
        monitor.skipped(total - left.len());
        // Times are measured last, when less is running.
        order.sort_by_key(|step| self.must_be_alone(*step));
        while !left.is_empty() {
            let mut next = None;
            let mut others_work = false;
            for &step in order.iter().filter(|step| left.contains(*step)) {
                let is_ready = self.needs(step).iter().all(|need| !left.contains(need));
                let key = self.step_key(step);
                if !is_ready || earlier.failed.iter().any(|(other, _)| *other == key) {
                    continue;
                }
                match self.try_step(step, &claims, (total - left.len() + 1, total), monitor) {
                    Ok(true) => next = Some(step),
                    Ok(false) => others_work = true,
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
            match next {
                Some(done) => {
                    left.remove(&done);
                }
                None if others_work && self.options.share == Share::Unclaimed => return Ok(false),
                None if others_work => self.wait(monitor)?,
                None => break,
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

    /// Does a step, or loads what another process has done. False if another process does it now, or it cannot be done
    /// beside the steps that run on this machine.
    fn try_step(
        &mut self,
        step: PlanStep,
        claims: &Claims,
        (number, total): (usize, usize),
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<bool, ExperimentError> {
        if monitor.stop_requested() {
            return Err(ExperimentError::Interrupted);
        }
        if self.load_finished_step(step, monitor)? {
            return Ok(true);
        }
        let Some(_machine) = self.machine_for(step)? else { return Ok(false) };
        let key = self.claim_key(step).to_string();
        let Some(claim) = claims.try_claim(&key).map_err(|source| self.claim_failed(source))? else {
            return Ok(false);
        };
        // Another process may have done it since.
        if self.load_finished_step(step, monitor)? {
            return Ok(true);
        }
        monitor.step(number, total, &self.plan.describe(step), None);
        self.claim = Some(claim.held());
        let done = self.do_step(step, monitor);
        self.claim = None;
        match done {
            Err(ExperimentError::Interrupted) => Err(ExperimentError::Interrupted),
            // What failed is what another process does by now.
            Err(_) if !claim.held().is_held() => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// The key of the claim on a step. A longer match continues the journal of a shorter one, so that one process at a
    /// time plays either.
    fn claim_key(&self, step: PlanStep) -> ResultKey {
        match step {
            PlanStep::Match(index) => self.match_claim_key(index),
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

    /// This machine, shared with the steps of other processes or, where times are measured, for this one alone; `None`
    /// if it cannot be had now.
    fn machine_for(&self, step: PlanStep) -> Result<Option<File>, ExperimentError> {
        let path = self.options.work.join("claims").join(format!("machine {}", hostname()));
        let failed = |source| ExperimentError::WorkFolder { path: path.clone(), source };
        // For reading, too: NFS refuses a shared lock without it.
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        let locked = if self.must_be_alone(step) { file.try_lock() } else { file.try_lock_shared() };
        match locked {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    fn wait(&self, monitor: &dyn ExperimentMonitor) -> Result<(), ExperimentError> {
        if monitor.stop_requested() {
            return Err(ExperimentError::Interrupted);
        }
        std::thread::sleep(POLL);
        Ok(())
    }
}
