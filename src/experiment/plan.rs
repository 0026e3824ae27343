//! Expands an experiment into its runs and steps, in the order of execution.

use std::path::PathBuf;

use super::ExperimentError;
use super::checks::NetworkChoice;
use super::executor::{Executor, ResolvedSet};
use super::own_figures::{figures_of_pair, own_speeds};
use super::scaling::PlannedShare;
use super::spec::{ComparisonRow, Experiment, RowSecond, RowStart};
use super::steps::{
    EqualSpeed, KingBuckets, Match, MeasureNetwork, NETWORK_MEASURES, PlanStep, PlannedScreens, PlannedShard,
    RowImportance, SelfPlaySteps, Speed, Step, Train, Updates, Validation,
};
use crate::data::content_hash;
use crate::features::FeatureSet;
use crate::json::to_value;
use crate::measure::OwnSpeeds;
use crate::pipeline::BuildOptions;
use crate::record::{MatchKind, OwnFigures, PlannedRow, RowAtEqualSpeed, RunKey, Study};
use crate::train::{SecondMethod, TrainConfig, TrainSettings};
use crate::units::Seed;

/// A feature set of the experiment under a row's label.
#[derive(Clone, Debug)]
pub struct PlannedSet {
    /// The set's name in the results.
    pub label: String,
    /// The label without the swept settings.
    pub name: String,
    /// The set as written in the experiment.
    pub written: String,
    /// The set as the command line takes it.
    pub request: String,
    pub resolved: ResolvedSet,
}

/// A training of the experiment.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    pub key: RunKey,
    /// Index into [`Plan::sets`].
    pub set: usize,
    /// Index into [`Plan::datasets`], as `second_data`.
    pub data: usize,
    pub second_data: Option<usize>,
    pub start: Option<PlannedStart>,
    pub second: Option<RowSecond>,
    pub settings: TrainSettings,
    /// `None`: all training games.
    pub share: Option<PlannedShare>,
    /// As of its row.
    pub may_fail: bool,
}

/// The network that a run begins with.
#[derive(Clone, Debug)]
pub enum PlannedStart {
    /// A file, with the hash of its contents.
    Network { path: PathBuf, hash: String },
    /// The best network of an earlier run: an index into [`Plan::runs`].
    Run(usize),
}

/// A match of the experiment: a run's network against the reference set's network of the same method and seed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PlannedMatch {
    /// Index into [`Plan::runs`], as `reference`.
    pub run: usize,
    pub reference: usize,
    pub kind: MatchKind,
    /// The user's figures of both, which equal cost goes by.
    pub own: [OwnFigures; 2],
}

impl PlannedMatch {
    /// Whether the cost of a node is measured.
    pub(super) const fn measures_cost(&self) -> bool {
        matches!(self.kind, MatchKind::EqualCost) && self.own[0].node_cost.is_none()
    }
}

/// A row's network and the reference whose speed it is to have, of the first seed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PlannedEqualSpeed {
    /// Index into [`Plan::runs`], as `reference`.
    pub run: usize,
    pub reference: usize,
    /// Whether the width is to be found; else the network is timed as it is.
    pub is_search: bool,
    /// The user's figures that the speeds go by.
    pub own: OwnSpeeds,
}

/// Everything an experiment will do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub sets: Vec<PlannedSet>,
    /// The samples of all runs, samples of second methods last.
    pub datasets: Vec<BuildOptions>,
    pub runs: Vec<PlannedRun>,
    pub matches: Vec<PlannedMatch>,
    pub shards: Vec<PlannedShard>,
    pub equal_speeds: Vec<PlannedEqualSpeed>,
    /// Definitions that a search considers.
    pub screens: Option<PlannedScreens>,
    /// What a loop does beside its trainings.
    pub self_play: SelfPlaySteps,
    pub steps: Vec<PlanStep>,
}

impl Plan {
    /// Resolves every set and orders the steps: first the measures of sets, then seed by seed every training with the
    /// measures of its network, and the seed's matches, so that an interrupted experiment has complete seeds.
    ///
    /// # Errors
    /// When a set cannot be resolved or `[measure]` names a set without runs.
    pub fn new(experiment: &Experiment, executor: &dyn Executor) -> Result<Plan, ExperimentError> {
        let sets = resolve_sets(experiment, executor)?;
        check_bucket_rules(experiment, &sets)?;
        let datasets = datasets(experiment);
        let matches = Vec::new();
        let equal_speeds = Vec::new();
        let screens = experiment.screens.clone();
        let self_play = experiment.self_play.clone();
        let runs = Vec::new();
        let shards = Vec::new();
        let steps = Vec::new();
        let mut plan = Plan { sets, datasets, runs, matches, shards, equal_speeds, screens, self_play, steps };
        plan.steps.extend(plan.self_play.steps());
        plan.steps.extend(plan.screens.iter().flat_map(PlannedScreens::steps).collect::<Vec<_>>());
        plan.add_updates(experiment);
        for &seed in &experiment.seeds {
            for row in &experiment.rows {
                let key = RunKey { set: row.label.clone(), method: row.method, seed };
                let set = plan.sets.iter().position(|set| set.label == key.set).unwrap_or_default();
                let samples = |method| {
                    let options = experiment.dataset_options(row, method);
                    plan.datasets.iter().position(|other| *other == options)
                };
                let data = samples(row.method).unwrap_or_default();
                let second_data = row.second.and_then(|second| samples(second.method));
                let start = plan.start(experiment, row, &|label| RunKey { set: label.to_owned(), ..key.clone() })?;
                let settings = row.settings.clone();
                let (second, may_fail) = (row.second, row.may_fail);
                let share = None;
                let run = PlannedRun { key, set, data, second_data, start, second, settings, share, may_fail };
                plan.runs.push(run);
                plan.add_run_steps(experiment, plan.runs.len() - 1);
            }
            plan.add_equal_speeds(experiment, seed);
            plan.add_matches(experiment, seed);
            plan.add_shares(experiment, seed)?;
        }
        Ok(plan)
    }

    fn add_updates(&mut self, experiment: &Experiment) {
        let Some(measure) = &experiment.measure.updates else { return };
        let is_covered = |set: &PlannedSet| set.is_among(measure.sets.as_ref());
        let steps = (0..self.sets.len()).filter(|&index| is_covered(&self.sets[index])).map(|set| Updates(set).step());
        self.steps.extend(steps.collect::<Vec<_>>());
    }

    fn add_run_steps(&mut self, experiment: &Experiment, run: usize) {
        let PlannedRun { key, set, .. } = &self.runs[run];
        let measure = &experiment.measure;
        let covers = |choice: &NetworkChoice| {
            self.sets[*set].is_among(choice.sets.as_ref())
                && choice.covers_method(key.method)
                && choice.covers_seed(key.seed)
        };
        let mut steps = vec![Train(run).step(), Validation(run).step()];
        for known in &NETWORK_MEASURES {
            if measure.networks.get(known.name).is_some_and(|measure| covers(&measure.choice)) {
                steps.push(MeasureNetwork { measure: known, run }.step());
            }
        }
        if measure.rows {
            steps.push(RowImportance(run).step());
        }
        if measure.king_buckets.as_ref().is_some_and(|(label, _)| *label == key.set) {
            steps.push(KingBuckets(run).step());
        }
        // The others are timed beside the first row's network.
        let is_base = self.timed_beside(run).is_none();
        let is_timed = |choice: &NetworkChoice| covers(choice) || (is_base && choice.covers_seed(key.seed));
        if measure.speed.as_ref().is_some_and(|measure| is_timed(&measure.choice)) {
            steps.push(Speed(run).step());
        }
        self.steps.extend(steps);
    }

    /// The run beside whose network a run's network is timed: the first of its seed. `None` for that run itself.
    pub(super) fn timed_beside(&self, run: usize) -> Option<usize> {
        let seed = self.runs[run].key.seed;
        self.runs[..run].iter().position(|first| first.key.seed == seed)
    }

    /// The run of a row with a seed, if the plan has it already.
    pub(super) fn run_of_row(&self, row: &ComparisonRow, seed: Seed) -> Option<usize> {
        self.run_with(&RunKey { set: row.label.clone(), method: row.method, seed })
    }

    fn run_with(&self, key: &RunKey) -> Option<usize> {
        self.runs.iter().position(|run| run.key == *key)
    }

    /// The start of a row's run. The runs of the rows before it are in the plan already; `run_of` has the key of a
    /// row's, but for its method.
    pub(super) fn start(
        &self,
        experiment: &Experiment,
        row: &ComparisonRow,
        run_of: &dyn Fn(&str) -> RunKey,
    ) -> Result<Option<PlannedStart>, ExperimentError> {
        match &row.start {
            None => Ok(None),
            Some(RowStart::Row { label, method, .. }) => {
                Ok(self.run_with(&RunKey { method: *method, ..run_of(label) }).map(PlannedStart::Run))
            }
            Some(RowStart::Network(written)) => {
                let path = experiment.start_path(written)?;
                let at = || experiment.location_of(written);
                let failed =
                    |error: crate::data::DataError| ExperimentError::Spec { at: at(), message: error.to_string() };
                let hash = content_hash(&path).map_err(failed)?;
                Ok(Some(PlannedStart::Network { path, hash }))
            }
        }
    }

    /// Adds the speeds relative to the reference, of the first seed's networks, whose runs are in the plan already.
    fn add_equal_speeds(&mut self, experiment: &Experiment, seed: Seed) {
        let is_first = experiment.seeds.first() == Some(&seed);
        let Some(measure) = experiment.equal_speed.as_ref().filter(|_| is_first) else { return };
        for row in &experiment.rows {
            let Some(reference_row) = measure.reference_row(&experiment.rows, row) else { continue };
            if reference_row.label == row.label {
                continue;
            }
            let runs = [row, reference_row].map(|row| self.run_of_row(row, seed));
            let [Some(run), Some(reference)] = runs else { continue };
            self.steps.push(EqualSpeed(self.equal_speeds.len()).step());
            let is_search = measure.covers(&experiment.rows, row);
            let own = own_speeds(row, reference_row, &experiment.rows);
            self.equal_speeds.push(PlannedEqualSpeed { run, reference, is_search, own });
        }
    }

    /// Adds the matches of a seed, whose runs are in the plan already.
    fn add_matches(&mut self, experiment: &Experiment, seed: Seed) {
        let Some(measure) = experiment.matches.as_ref().filter(|measure| measure.choice.covers_seed(seed)) else {
            return;
        };
        let kinds = [(measure.terms.nodes, MatchKind::EqualNodes), (measure.terms.equal_cost, MatchKind::EqualCost)];
        for row in &experiment.rows {
            let Some(opponent) = measure.opponent(row, &experiment.rows) else { continue };
            let runs = [row, opponent].map(|row| self.run_of_row(row, seed));
            let [Some(run), Some(reference)] = runs else { continue };
            for (_, kind) in kinds.iter().filter(|(nodes, _)| nodes.is_some()) {
                self.steps.push(Match(self.matches.len()).step());
                let own = match kind {
                    MatchKind::EqualNodes => Default::default(),
                    MatchKind::EqualCost => figures_of_pair([row, opponent], &experiment.rows),
                };
                self.matches.push(PlannedMatch { run, reference, kind: *kind, own });
            }
        }
    }

    /// Checks that some run uses a set.
    ///
    /// # Errors
    /// When no run uses it.
    pub fn require_set(&self, label: &str) -> Result<(), ExperimentError> {
        if self.sets.iter().any(|set| set.is_called(label)) {
            return Ok(());
        }
        let known = self.sets.iter().map(|set| set.label.as_str()).collect::<Vec<_>>().join(", ");
        Err(ExperimentError::NoSuchSet { set: label.to_owned(), known })
    }
}

impl PlannedSet {
    /// Whether `name` means this set: it may be the label, with or without the swept settings, or the set as written.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.label == name || self.name == name || self.written == name
    }

    /// Whether a measure covers the set; `None` covers all.
    fn is_among(&self, names: Option<&Vec<String>>) -> bool {
        names.is_none_or(|names| names.iter().any(|name| self.is_called(name)))
    }
}

fn resolve_sets(experiment: &Experiment, executor: &dyn Executor) -> Result<Vec<PlannedSet>, ExperimentError> {
    let mut sets: Vec<PlannedSet> = Vec::new();
    for row in &experiment.rows {
        if sets.iter().any(|set| set.label == row.label) {
            continue;
        }
        let label = row.label.clone();
        let written = row.set.get_ref().clone();
        let known = sets.iter().find(|set| set.written == written);
        let (request, resolved) = match known {
            Some(known) => (known.request.clone(), known.resolved.clone()),
            None => {
                let error = |message: String| {
                    let at = experiment.location_of(&row.set);
                    ExperimentError::Set { at, set: written.clone(), message }
                };
                let request = experiment.set_request(&written).map_err(|mistake| error(mistake.to_string()))?;
                let resolved = executor.resolve_set(&request).map_err(|failure| error(failure.to_string()))?;
                (request, resolved)
            }
        };
        sets.push(PlannedSet { label, name: row.name.clone(), written, request, resolved });
    }
    Ok(sets)
}

/// Refuses rules of output buckets that a row's set has not, before anything is trained.
fn check_bucket_rules(experiment: &Experiment, sets: &[PlannedSet]) -> Result<(), ExperimentError> {
    for row in experiment.rows.iter().filter(|row| row.settings.shape_options.bucket_rule.expression().is_some()) {
        let Some(set) = sets.iter().find(|set| set.label == row.label) else { continue };
        let checked = FeatureSet::resolve(&set.request).map_err(|error| error.to_string());
        let checked = checked.and_then(|set| {
            let TrainSettings { shape_options, l1, hidden, .. } = &row.settings;
            let shape = shape_options.for_set(&set).and_then(|of| of.shape(set.num_features(), *l1, hidden));
            shape.map(|_| ()).map_err(|error| error.to_string())
        });
        checked.map_err(|message| {
            let at = experiment.location_of(&row.set);
            ExperimentError::Set { at, set: set.written.clone(), message }
        })?;
    }
    Ok(())
}

impl PlannedRun {
    /// The trainer's configuration of this run, with the data of its method and of a second one. The start of the run
    /// is left to the caller.
    pub(super) fn config(&self, set: &PlannedSet, data: PathBuf, second_data: PathBuf) -> TrainConfig {
        let config = TrainConfig::new(set.request.clone(), data, self.key.method, self.settings.clone());
        // Without shared settings that have no effect on this run: changing one must not train it again.
        let second = self.second.map(|RowSecond { method, weight }| SecondMethod {
            method,
            data: second_data.into(),
            reading: config.reading,
            weight,
        });
        let mut config = TrainConfig { seed: self.key.seed, second, ..config }.effective();
        self.share.into_iter().for_each(|share| share.limit(&mut config));
        config
    }
}

/// The samples of all rows, in the order of the rows; samples of second methods last.
fn datasets(experiment: &Experiment) -> Vec<BuildOptions> {
    let mut datasets = Vec::new();
    let firsts = experiment.rows.iter().map(|row| (row, row.method));
    let seconds = experiment.rows.iter().filter_map(|row| Some((row, row.second?.method)));
    for (row, method) in firsts.chain(seconds) {
        let options = experiment.dataset_options(row, method);
        if !datasets.contains(&options) {
            datasets.push(options);
        }
    }
    datasets
}

/// The settings that a row overrides, its samples, its second method and its start, as results record them.
fn recorded_overrides(row: &ComparisonRow) -> Option<serde_json::Value> {
    let written = to_value(&row.overrides).ok()?;
    let mut overrides = written.as_object().cloned().unwrap_or_default();
    if !row.dataset.is_empty() {
        overrides.insert(PlannedRow::DATASET.into(), to_value(&row.dataset).ok()?);
    }
    if let Some(second) = row.second {
        overrides.insert("second".into(), to_value(&second).ok()?);
    }
    if let Some(start) = &row.start {
        overrides.insert("start".into(), start.written().get_ref().clone().into());
    }
    (written.is_object() || !overrides.is_empty()).then_some(overrides.into())
}

/// The plan as results record it, for the report.
pub(super) fn study(experiment: &Experiment, plan: &Plan) -> Study {
    let about = |label: &str| plan.sets.iter().find(|set| set.label == label)?.resolved.about.clone();
    let row = |row: &ComparisonRow| PlannedRow {
        set: row.label.clone(),
        method: row.method,
        seeds: experiment.seeds.clone(),
        about: about(&row.label),
        definition: Some(row.set.get_ref().clone()).filter(|written| *written != row.name),
        group: Some(row.group.clone()).filter(|group| !group.is_empty()),
        train: recorded_overrides(row),
        own: row.own,
        name: Some(row.name.clone()).filter(|name| *name != row.label),
        equal_speed: row
            .repeats
            .as_ref()
            .map(|repeated| RowAtEqualSpeed { repeats: repeated.label.clone(), l1: row.settings.l1 }),
    };
    let mut train = to_value(&experiment.train).unwrap_or_default();
    train.as_object_mut().into_iter().for_each(|settings| settings.retain(|_, value| !value.is_null()));
    Study {
        name: experiment.name.clone(),
        about: experiment.about.clone(),
        data: match experiment.loop_record {
            Some(_) => "games of its own networks".into(),
            None => experiment.data.iter().map(|file| file.get_ref().as_str()).collect::<Vec<_>>().join(", "),
        },
        rows: experiment.rows.iter().map(row).collect(),
        train,
        published: experiment.published.clone(),
        scaling: experiment.scaling.clone(),
    }
}
