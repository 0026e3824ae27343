//! The list of an experiment's steps, for programs that decide where they run.

use schemars::JsonSchema;
use serde::Serialize;

use super::ExperimentError;
use super::earlier::Earlier;
use super::executor::Executor;
use super::plan::{PlanStep, PlannedEqualSpeed, PlannedStart};
use super::result_store::ResultKey;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, PassPurpose, RunnerOptions, Share};
use super::spec::Experiment;
use crate::record::{Results, machine};
use crate::train::DeviceChoice;
use crate::units::SortedMap;

/// A step of an experiment, for programs that decide where it runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedStep {
    /// What `fsbench run EXPERIMENT --step` takes. It changes with whatever the step's result depends on.
    pub key: String,
    /// `updates`, `train`, `validation`, `activity`, `error`, `speed`, `equal speed`, `match cost`, `match shard` or
    /// `match`.
    pub kind: &'static str,
    /// The step in words.
    pub name: String,
    /// Keys of the steps that must be done before.
    pub needs: Vec<String>,
    /// Whether its result is stored.
    pub done: bool,
    /// The mean time of the finished steps of this kind; `None` before the first.
    pub estimated_seconds: Option<f64>,
    /// Threads that it uses.
    pub threads: usize,
    /// Whether it measures time, and must be alone on its machine.
    pub alone: bool,
    /// Whether it trains on a GPU (`device = "cuda"`). With `auto`, a training takes the GPU that it finds.
    pub gpu: bool,
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

    /// Writes the results of all finished steps, and returns them; does none.
    ///
    /// # Errors
    /// As [`Runner::list_steps`], or when the results cannot be written.
    pub fn collect(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Results, ExperimentError> {
        let options = RunnerOptions { share: Share::Free, ..options.clone() };
        let mut earlier = Earlier::default();
        let mut collected = None;
        Runner::passes(experiment, &mut |experiment, purpose| {
            let (mut runner, _lock) = Runner::prepared(experiment, purpose, &mut *executor, &options)?;
            let pending = runner.load_finished(&mut *monitor, &mut earlier)?;
            runner.save()?;
            if purpose == PassPurpose::Results {
                collected = Some(runner.results.clone());
            }
            Ok(pending.is_empty().then_some(runner.results))
        })?;
        collected.ok_or(ExperimentError::Interrupted)
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
                gpu: self.needs_gpu(step),
            });
        }
        let mut known = SortedMap::<&str, (u32, f64)>::new();
        for &step in &self.plan.steps {
            if let Some((_, seconds)) = self.seconds.get(&self.key(step).to_string()) {
                let (count, sum) = known.get_or_default(step.kind());
                *count += 1;
                *sum += seconds;
            }
        }
        for step in &mut steps {
            step.estimated_seconds = known.get(step.kind).map(|(count, sum)| sum / f64::from(*count));
        }
        Ok(steps)
    }

    /// The step's identity before the steps that it needs are done. The key of a match's result is not known then.
    pub(super) fn step_key(&self, step: PlanStep) -> ResultKey {
        match step {
            PlanStep::Match(index) => self.match_step_key(index),
            PlanStep::MatchCost(index) => self.match_cost_step_key(index),
            PlanStep::MatchShard(index) => self.shard_step_key(index),
            _ => self.key(step),
        }
    }

    /// The steps of the plan whose results a step needs.
    pub(super) fn needs(&self, step: PlanStep) -> Vec<PlanStep> {
        let run = |run: usize| vec![PlanStep::Train(run)];
        match step {
            PlanStep::Updates(_) => vec![],
            PlanStep::Train(run) => match self.plan.runs[run].start {
                Some(PlannedStart::Run(other)) => vec![PlanStep::Train(other)],
                _ => vec![],
            },
            PlanStep::Validation(of) | PlanStep::Activity(of) | PlanStep::Error(of) | PlanStep::Speed(of) => run(of),
            PlanStep::EqualSpeed(index) => {
                let PlannedEqualSpeed { run, reference, .. } = self.plan.equal_speeds[index];
                vec![PlanStep::Train(run), PlanStep::Train(reference)]
            }
            PlanStep::MatchCost(index) => self.match_trainings(index).to_vec(),
            PlanStep::MatchShard(index) => {
                let trainings = self.match_trainings(self.plan.shards[index].of);
                trainings.into_iter().chain(self.shard_needs(index)).collect()
            }
            PlanStep::Match(index) => {
                let shards = self.plan.shards_of(index).map(|(shard, _)| PlanStep::MatchShard(shard));
                self.match_trainings(index).into_iter().chain(shards).collect()
            }
        }
    }

    fn threads(&self, step: PlanStep) -> usize {
        match step {
            PlanStep::Train(run) => self.plan.runs[run].settings.threads(),
            PlanStep::Speed(_) | PlanStep::EqualSpeed(_) | PlanStep::MatchCost(_) => 1,
            _ => machine::cores(),
        }
    }

    fn needs_gpu(&self, step: PlanStep) -> bool {
        match step {
            PlanStep::Train(run) => self.plan.runs[run].settings.device == DeviceChoice::Cuda,
            _ => false,
        }
    }

    /// Whether other work on the machine would falsify the step.
    pub(super) fn must_be_alone(&self, step: PlanStep) -> bool {
        match step {
            PlanStep::Speed(_) | PlanStep::EqualSpeed(_) | PlanStep::MatchCost(_) => true,
            // In shards, its cost is measured before.
            PlanStep::Match(index) => {
                self.plan.matches[index].measures_cost() && self.plan.shards_of(index).next().is_none()
            }
            _ => false,
        }
    }
}
