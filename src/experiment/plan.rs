//! The experiment unrolled: every run and every step, in the order they are done.

use super::spec::{Experiment, NetMeasure, Row, TrainSettings};
use super::workbench::{SetFacts, Workbench};
use super::{ExperimentError, machine};
use crate::data::Method;
use crate::net::Scheme;
use crate::record::{PlannedRow, RunKey, Study};
use crate::service::Source;
use crate::train::TrainConfig;
use crate::units::Seed;

/// A feature set of the experiment.
#[derive(Clone, Debug)]
pub struct PlannedSet {
    /// As written in the experiment: the row's label.
    pub label: String,
    /// What resolves it.
    pub request: String,
    pub facts: SetFacts,
}

/// A training of the experiment.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    pub key: RunKey,
    /// Index among the plan's sets.
    pub set: usize,
    pub settings: TrainSettings,
}

/// A piece of work; the numbers index the plan's sets (updates) or runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Updates(usize),
    Train(usize),
    Activity(usize),
    Error(usize),
    Speed(usize),
}

/// Everything an experiment will do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub sets: Vec<PlannedSet>,
    pub runs: Vec<PlannedRun>,
    pub steps: Vec<Step>,
}

impl Plan {
    /// Resolves every set and lays out the steps: what sets cost, then seed by seed all trainings with the measures of
    /// each network, so that an interrupted experiment has complete seeds to show.
    ///
    /// # Errors
    /// When a set cannot be resolved or `[measure]` names a set without runs.
    pub fn of(experiment: &Experiment, workbench: &dyn Workbench) -> Result<Plan, ExperimentError> {
        let sets = resolve_sets(experiment, workbench)?;
        let mut plan = Plan { sets, runs: Vec::new(), steps: Vec::new() };
        plan.check_measures(experiment)?;
        plan.add_updates(experiment);
        for &seed in &experiment.seeds {
            for row in &experiment.rows {
                let key = RunKey { set: label(row), method: row.method, seed };
                let set = plan.sets.iter().position(|set| set.label == key.set).unwrap_or_default();
                plan.runs.push(PlannedRun { key, set, settings: row.settings.clone() });
                plan.add_run_steps(experiment, plan.runs.len() - 1);
            }
        }
        Ok(plan)
    }

    /// Methods in use, in the order of the rows.
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        let mut methods = Vec::new();
        for run in &self.runs {
            if !methods.contains(&run.key.method) {
                methods.push(run.key.method);
            }
        }
        methods
    }

    /// The set's label a step works on.
    #[must_use]
    pub fn set_of(&self, step: Step) -> &str {
        match step {
            Step::Updates(set) => &self.sets[set].label,
            Step::Train(run) | Step::Activity(run) | Step::Error(run) | Step::Speed(run) => &self.runs[run].key.set,
        }
    }

    /// The step in words.
    #[must_use]
    pub fn describe(&self, step: Step) -> String {
        match step {
            Step::Updates(set) => format!("updates of {}", self.sets[set].label),
            Step::Train(run) => format!("training {}", self.runs[run].key),
            Step::Activity(run) => format!("activity of {}", self.runs[run].key),
            Step::Error(run) => format!("quantisation error of {}", self.runs[run].key),
            Step::Speed(run) => format!("speed of {}", self.runs[run].key),
        }
    }

    fn add_updates(&mut self, experiment: &Experiment) {
        let Some(measure) = &experiment.measure.updates else { return };
        let wanted = |set: &PlannedSet| measure.sets.as_ref().is_none_or(|sets| sets.contains(&set.label));
        let steps = (0..self.sets.len()).filter(|&index| wanted(&self.sets[index])).map(Step::Updates);
        self.steps.extend(steps.collect::<Vec<_>>());
    }

    fn add_run_steps(&mut self, experiment: &Experiment, run: usize) {
        let key = &self.runs[run].key;
        let measure = &experiment.measure;
        let net = |measure: &Option<NetMeasure>| {
            measure.as_ref().is_some_and(|m| covers(key, m.sets.as_ref(), m.methods.as_ref(), m.seeds.as_ref()))
        };
        let speed =
            measure.speed.as_ref().is_some_and(|m| covers(key, m.sets.as_ref(), m.methods.as_ref(), m.seeds.as_ref()));
        let wanted = [
            (true, Step::Train(run)),
            (net(&measure.activity), Step::Activity(run)),
            (net(&measure.error), Step::Error(run)),
            (speed, Step::Speed(run)),
        ];
        self.steps.extend(wanted.into_iter().filter_map(|(wanted, step)| wanted.then_some(step)));
    }

    /// Every set `[measure]` names has runs.
    fn check_measures(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let measure = &experiment.measure;
        let named = [
            measure.updates.as_ref().and_then(|measure| measure.sets.as_ref()),
            measure.activity.as_ref().and_then(|measure| measure.sets.as_ref()),
            measure.error.as_ref().and_then(|measure| measure.sets.as_ref()),
            measure.speed.as_ref().and_then(|measure| measure.sets.as_ref()),
        ];
        for set in named.into_iter().flatten().flatten() {
            self.require_set(set)?;
        }
        Ok(())
    }

    /// # Errors
    /// When no run uses the set.
    pub fn require_set(&self, label: &str) -> Result<(), ExperimentError> {
        if self.sets.iter().any(|set| set.label == label) {
            return Ok(());
        }
        let known = self.sets.iter().map(|set| set.label.as_str()).collect::<Vec<_>>().join(", ");
        Err(ExperimentError::NoSuchSet { set: label.to_owned(), known })
    }
}

/// Whether a measure's selection takes in a run; what is absent takes in all.
fn covers(key: &RunKey, sets: Option<&Vec<String>>, methods: Option<&Vec<Method>>, seeds: Option<&Vec<Seed>>) -> bool {
    sets.is_none_or(|sets| sets.contains(&key.set))
        && methods.is_none_or(|methods| methods.contains(&key.method))
        && seeds.is_none_or(|seeds| seeds.contains(&key.seed))
}

fn label(row: &Row) -> String {
    row.set.get_ref().clone()
}

fn resolve_sets(experiment: &Experiment, workbench: &dyn Workbench) -> Result<Vec<PlannedSet>, ExperimentError> {
    let mut sets: Vec<PlannedSet> = Vec::new();
    for row in &experiment.rows {
        let label = label(row);
        if sets.iter().any(|set| set.label == label) {
            continue;
        }
        let request = experiment.set_request(&label);
        let facts = workbench.set(&request).map_err(|error| ExperimentError::Set {
            at: experiment.location_of(&row.set),
            set: label.clone(),
            message: error.to_string(),
        })?;
        sets.push(PlannedSet { label, request, facts });
    }
    Ok(sets)
}

impl PlannedRun {
    /// The trainer's configuration of this run.
    pub(super) fn config(&self, set: &PlannedSet, data: std::path::PathBuf) -> TrainConfig {
        let settings = &self.settings;
        TrainConfig {
            set: set.request.clone(),
            data,
            source: Source::Built,
            factor: settings.factor,
            method: self.key.method,
            // The data are built already.
            min_ply: None,
            seed: self.key.seed,
            l1: settings.l1,
            hidden: settings.hidden.clone(),
            design: settings.design,
            scheme: settings.scheme.clone().unwrap_or_else(|| Scheme::stockfish().name),
            batch_size: settings.batch_size,
            epochs: settings.epochs,
            epoch_samples: settings.epoch_samples,
            learning_rate: settings.learning_rate,
            decay: settings.decay,
            recipe: settings.recipe,
            start: None,
            second: None,
            validation: settings.validation,
            eval_loss: settings.eval_loss,
            pqr_loss: settings.pqr_loss,
            compact_dead: settings.compact_dead,
            threads: settings.threads.unwrap_or_else(machine::cores),
            device: settings.device,
        }
    }
}

/// The plan as the report needs it.
pub(super) fn study(experiment: &Experiment) -> Study {
    let row = |row: &Row| PlannedRow { set: label(row), method: row.method, seeds: experiment.seeds.clone() };
    Study {
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        data: experiment.data.get_ref().clone(),
        rows: experiment.rows.iter().map(row).collect(),
        train: serde_json::to_value(&experiment.train).unwrap_or_default(),
    }
}
