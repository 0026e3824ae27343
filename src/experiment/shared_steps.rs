//! Steps that several processes share: their list, the one that a process is asked for, or those that are free.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::ExperimentError;
use super::claims::{Claim, Claims, hostname};
use super::executor::{DataRequest, Executor};
use super::plan::{PlanStep, PlannedEqualSpeed, PlannedMatch, PlannedStart};
use super::result_store::ResultKey;
use super::runner::{Earlier, ExperimentMonitor, FinishedWhen, Runner, RunnerOptions, Share};
use super::spec::Experiment;
use crate::record::{MatchKind, machine};

/// Between two looks at steps that others do.
const POLL: Duration = Duration::from_millis(300);

/// A step of an experiment, for programs that decide where it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedStep {
    /// What `fsbench run EXPERIMENT --step` takes. It changes with whatever the step's result depends on.
    pub key: String,
    /// `updates`, `train`, `validation`, `activity`, `error`, `speed`, `equal speed` or `match`.
    pub kind: &'static str,
    pub name: String,
    /// Keys of the steps that must be done before.
    pub needs: Vec<String>,
    pub done: bool,
    /// The mean time of the finished steps of this kind; `None` before the first.
    pub estimated_seconds: Option<f64>,
    /// Threads that it uses.
    pub threads: usize,
    /// Whether it measures time, and must be alone on its machine.
    pub alone: bool,
}

impl Runner<'_> {
    /// The steps in the order in which `fsbench run` does them. Those at equal speed are listed once the widths are
    /// found.
    ///
    /// # Errors
    /// When the experiment is wrong or its data cannot be built.
    pub fn list_steps(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
    ) -> Result<Vec<ListedStep>, ExperimentError> {
        let options = RunnerOptions { share: Share::Free, ..options.clone() };
        let mut listed: Vec<ListedStep> = Vec::new();
        Runner::passes(experiment, &mut |experiment, purpose| {
            let (mut runner, _lock) = Runner::prepared(experiment, purpose, &mut *executor, &options)?;
            let steps = runner.listed()?;
            let complete = steps.iter().all(|step| step.done);
            let new = steps.into_iter().filter(|step| listed.iter().all(|other| other.key != step.key));
            listed.extend(new.collect::<Vec<_>>());
            Ok(complete.then_some(runner.results))
        })?;
        Ok(listed)
    }

    fn listed(&mut self) -> Result<Vec<ListedStep>, ExperimentError> {
        let mut steps = Vec::with_capacity(self.plan.steps.len());
        for step in self.plan.steps.clone() {
            let done = self.load_step(step)?;
            steps.push(ListedStep {
                key: self.step_key(step).to_string(),
                kind: step.kind(),
                name: self.plan.describe(step),
                needs: self.needs(step).into_iter().map(|need| self.step_key(need).to_string()).collect(),
                done,
                estimated_seconds: None,
                threads: self.threads(step),
                alone: self.must_be_alone(step),
            });
        }
        let mut known = BTreeMap::<&str, (u32, f64)>::new();
        for &step in &self.plan.steps {
            if let Some((_, seconds)) = self.seconds.get(&self.key(step).to_string()) {
                let (count, sum) = known.entry(step.kind()).or_default();
                *count += 1;
                *sum += seconds;
            }
        }
        for step in &mut steps {
            step.estimated_seconds = known.get(step.kind).map(|(count, sum)| sum / f64::from(*count));
        }
        Ok(steps)
    }

    /// What identifies a step before the steps that it needs are done. The key of a match's result is not known then.
    fn step_key(&self, step: PlanStep) -> ResultKey {
        match step {
            PlanStep::Match(index) => self.match_step_key(index),
            _ => self.key(step),
        }
    }

    /// The steps of the plan whose results a step needs.
    fn needs(&self, step: PlanStep) -> Vec<PlanStep> {
        let runs = match step {
            PlanStep::Updates(_) => vec![],
            PlanStep::Train(run) => match self.plan.runs[run].start {
                Some(PlannedStart::Run(other)) => vec![other],
                _ => vec![],
            },
            PlanStep::Validation(run) | PlanStep::Activity(run) | PlanStep::Error(run) | PlanStep::Speed(run) => {
                vec![run]
            }
            PlanStep::EqualSpeed(index) => {
                let PlannedEqualSpeed { run, reference, .. } = self.plan.equal_speeds[index];
                vec![run, reference]
            }
            PlanStep::Match(index) => {
                let PlannedMatch { run, reference, .. } = self.plan.matches[index];
                vec![run, reference]
            }
        };
        runs.into_iter().map(PlanStep::Train).collect()
    }

    fn threads(&self, step: PlanStep) -> usize {
        match step {
            PlanStep::Train(run) => self.plan.runs[run].settings.threads(),
            PlanStep::Speed(_) | PlanStep::EqualSpeed(_) => 1,
            _ => machine::cores(),
        }
    }

    /// Whether other work on the machine would falsify the step.
    fn must_be_alone(&self, step: PlanStep) -> bool {
        match step {
            PlanStep::Speed(_) | PlanStep::EqualSpeed(_) => true,
            PlanStep::Match(index) => self.plan.matches[index].kind == MatchKind::EqualCost,
            _ => false,
        }
    }

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
            _ => {
                self.do_free(pending, monitor)?;
                true
            }
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

    fn do_free(&mut self, mut left: Vec<PlanStep>, monitor: &mut dyn ExperimentMonitor) -> Result<(), ExperimentError> {
        let claims = self.claims()?;
        let total = self.plan.steps.len();
        monitor.skipped(total - left.len());
        // Times are measured last, when less is running.
        left.sort_by_key(|step| self.must_be_alone(*step));
        let mut failed: Vec<(PlanStep, ExperimentError)> = Vec::new();
        while !left.is_empty() {
            let mut next = None;
            let mut others_work = false;
            for &step in &left {
                let is_ready = self.needs(step).iter().all(|need| !left.contains(need));
                if !is_ready || failed.iter().any(|(other, _)| *other == step) {
                    continue;
                }
                match self.try_step(step, &claims, (total - left.len() + 1, total), monitor) {
                    Ok(true) => next = Some(step),
                    Ok(false) => others_work = true,
                    Err(ExperimentError::Interrupted) => return Err(ExperimentError::Interrupted),
                    Err(error) => failed.push((step, error)),
                }
                if next.is_some() {
                    break;
                }
            }
            match next {
                Some(done) => left.retain(|step| *step != done),
                None if others_work => self.wait(monitor)?,
                None => break,
            }
        }
        let blocked = left.len() - failed.len();
        let failures = failed.len();
        match failed.into_iter().next() {
            Some((_, first)) if failures == 1 && blocked == 0 => Err(first),
            Some((_, first)) => Err(ExperimentError::Failed { failed: failures, blocked, first: Box::new(first) }),
            None => Ok(()),
        }
    }

    /// Does a step, or loads what another process has done. False if another process does it now, or it cannot be done
    /// beside what runs on this machine.
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
        let key = self.step_key(step).to_string();
        let Some(_claim) = claims.try_claim(&key).map_err(|source| self.claim_failed(source))? else {
            return Ok(false);
        };
        // Another process may have done it since.
        if !self.load_finished_step(step, monitor)? {
            monitor.step(number, total, &self.plan.describe(step), None);
            self.do_step(step, monitor)?;
        }
        Ok(true)
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

    /// This machine, shared with the steps of other processes or, where times are measured, for this one alone; `None` if
    /// it cannot be had now.
    fn machine_for(&self, step: PlanStep) -> Result<Option<File>, ExperimentError> {
        let path = self.options.work.join("claims").join(format!("machine {}", hostname()));
        let failed = |source| ExperimentError::WorkFolder { path: path.clone(), source };
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
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
