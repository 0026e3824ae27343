//! The experiment unrolled: every run and every step, in the order they are done.

use super::ExperimentError;
use super::spec::{Experiment, NetMeasure, Row};
use super::workbench::{SetFacts, Workbench};
use crate::data::Method;
use crate::record::{PlannedRow, RunKey, Study};
use crate::train::{TrainConfig, TrainSettings};
use crate::units::Seed;

/// A feature set of the experiment, under one of its rows' labels.
#[derive(Clone, Debug)]
pub struct PlannedSet {
    /// What results call it.
    pub label: String,
    /// As written in the experiment.
    pub written: String,
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
        plan.add_updates(experiment);
        for &seed in &experiment.seeds {
            for row in &experiment.rows {
                let key = RunKey { set: row.label.clone(), method: row.method, seed };
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

    /// The set a step works on.
    #[must_use]
    pub fn set_of(&self, step: Step) -> &PlannedSet {
        match step {
            Step::Updates(set) => &self.sets[set],
            Step::Train(run) | Step::Activity(run) | Step::Error(run) | Step::Speed(run) => {
                &self.sets[self.runs[run].set]
            }
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
        let wanted = |set: &PlannedSet| set.is_among(measure.sets.as_ref());
        let steps = (0..self.sets.len()).filter(|&index| wanted(&self.sets[index])).map(Step::Updates);
        self.steps.extend(steps.collect::<Vec<_>>());
    }

    fn add_run_steps(&mut self, experiment: &Experiment, run: usize) {
        let PlannedRun { key, set, .. } = &self.runs[run];
        let measure = &experiment.measure;
        let covers = |sets: &Option<Vec<String>>, methods: &Option<Vec<Method>>, seeds: &Option<Vec<Seed>>| {
            self.sets[*set].is_among(sets.as_ref()) && covers(key, methods.as_ref(), seeds.as_ref())
        };
        let net =
            |measure: &Option<NetMeasure>| measure.as_ref().is_some_and(|m| covers(&m.sets, &m.methods, &m.seeds));
        let speed = measure.speed.as_ref().is_some_and(|m| covers(&m.sets, &m.methods, &m.seeds));
        let wanted = [
            (true, Step::Train(run)),
            (net(&measure.activity), Step::Activity(run)),
            (net(&measure.error), Step::Error(run)),
            (speed, Step::Speed(run)),
        ];
        self.steps.extend(wanted.into_iter().filter_map(|(wanted, step)| wanted.then_some(step)));
    }

    /// # Errors
    /// When no run uses the set.
    pub fn require_set(&self, label: &str) -> Result<(), ExperimentError> {
        if self.sets.iter().any(|set| set.is_called(label)) {
            return Ok(());
        }
        let known = self.sets.iter().map(|set| set.label.as_str()).collect::<Vec<_>>().join(", ");
        Err(ExperimentError::NoSuchSet { set: label.to_owned(), known })
    }
}

impl PlannedSet {
    /// Whether a selection by this name takes in the set.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.label == name || self.written == name
    }

    /// Whether a measure's selection takes in the set; none takes in all.
    fn is_among(&self, names: Option<&Vec<String>>) -> bool {
        names.is_none_or(|names| names.iter().any(|name| self.is_called(name)))
    }
}

/// Whether a measure's selection takes in a run; what is absent takes in all.
fn covers(key: &RunKey, methods: Option<&Vec<Method>>, seeds: Option<&Vec<Seed>>) -> bool {
    methods.is_none_or(|methods| methods.contains(&key.method)) && seeds.is_none_or(|seeds| seeds.contains(&key.seed))
}

fn resolve_sets(experiment: &Experiment, workbench: &dyn Workbench) -> Result<Vec<PlannedSet>, ExperimentError> {
    let mut sets: Vec<PlannedSet> = Vec::new();
    for row in &experiment.rows {
        if sets.iter().any(|set| set.label == row.label) {
            continue;
        }
        let (label, written) = (row.label.clone(), row.set.get_ref().clone());
        let known = sets.iter().find(|set| set.written == written).map(|set| (set.request.clone(), set.facts.clone()));
        let (request, facts) = match known {
            Some(known) => known,
            None => {
                let request = experiment.set_request(&written);
                let facts = workbench.set(&request).map_err(|error| ExperimentError::Set {
                    at: experiment.location_of(&row.set),
                    set: written.clone(),
                    message: error.to_string(),
                })?;
                (request, facts)
            }
        };
        sets.push(PlannedSet { label, written, request, facts });
    }
    Ok(sets)
}

impl PlannedRun {
    /// The trainer's configuration of this run.
    pub(super) fn config(&self, set: &PlannedSet, data: std::path::PathBuf) -> TrainConfig {
        let config = TrainConfig::new(set.request.clone(), data, self.key.method, self.settings.clone());
        // Settings without effect on this run are shared with others and no part of it.
        TrainConfig { seed: self.key.seed, ..config }.effective()
    }
}

/// The plan as the report needs it.
pub(super) fn study(experiment: &Experiment) -> Study {
    let row = |row: &Row| PlannedRow {
        set: row.label.clone(),
        method: row.method,
        seeds: experiment.seeds.clone(),
        definition: Some(row.set.get_ref().clone()).filter(|written| *written != row.label),
        train: row.own.as_ref().and_then(|own| serde_json::to_value(own).ok()),
    };
    let mut train = serde_json::to_value(&experiment.train).unwrap_or_default();
    train.as_object_mut().into_iter().for_each(|settings| settings.retain(|_, value| !value.is_null()));
    Study {
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        data: experiment.data.get_ref().clone(),
        rows: experiment.rows.iter().map(row).collect(),
        train,
    }
}
