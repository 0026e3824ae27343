//! The list of an experiment's steps, for programs that decide where they run.

use schemars::JsonSchema;
use serde::Serialize;

use super::ExperimentError;
use super::earlier::Earlier;
use super::executor::Executor;
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, PassPurpose, RunnerOptions, Share};
use super::spec::Experiment;
use crate::record::Results;
use crate::units::SortedMap;

/// A step of an experiment, for programs that decide where it runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedStep {
    /// What `fsbench run EXPERIMENT --step` takes. It changes with whatever the step's result depends on.
    pub key: String,
    /// `train`, `validation`, `equal speed`, `match cost`, `match shard`, `match`, or the measure that a table of
    /// `[measure]` asks for.
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
    /// found. Other processes may work meanwhile.
    ///
    /// # Errors
    /// When the experiment is wrong or its data cannot be built.
    pub fn list_steps(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
    ) -> Result<Vec<ListedStep>, ExperimentError> {
        let options = RunnerOptions { share: Share::Nothing, ..options.clone() };
        let mut listed: Vec<ListedStep> = Vec::new();
        Runner::passes(experiment, &mut |experiment, purpose| {
            let (mut runner, _lock) = Runner::prepared(experiment, purpose, &mut *executor, &options)?;
            let steps = runner.listed()?;
            let complete = steps.iter().all(|step| step.done);
            let new = steps.into_iter().filter(|step| listed.iter().all(|other| other.key != step.key));
            listed.extend(new.collect::<Vec<_>>());
            Ok(complete.then(|| runner.pass_results()))
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
            Ok(pending.is_empty().then(|| runner.pass_results()))
        })?;
        collected.ok_or(ExperimentError::Interrupted)
    }

    fn listed(&mut self) -> Result<Vec<ListedStep>, ExperimentError> {
        let mut steps = Vec::with_capacity(self.plan.steps.len());
        let mut known = SortedMap::<&str, (u32, f64)>::new();
        for step in self.plan.steps.clone() {
            let done = step.load(self)?;
            let key = self.key(&step);
            if let Some((_, seconds)) = self.seconds.get(&key) {
                let (count, sum) = known.get_or_default(step.kind().name);
                *count += 1;
                *sum += seconds;
            }
            steps.push(ListedStep {
                key: key.to_string(),
                kind: step.kind().name,
                name: step.name(&self.plan),
                needs: step.follows(&self.plan).iter().map(|need| self.key(need).to_string()).collect(),
                done,
                estimated_seconds: None,
                threads: step.threads(&self.plan),
                alone: step.runs_alone(&self.plan),
                gpu: step.needs_gpu(&self.plan),
            });
        }
        for step in &mut steps {
            step.estimated_seconds = known.get(step.kind).map(|(count, sum)| sum / f64::from(*count));
        }
        Ok(steps)
    }
}
