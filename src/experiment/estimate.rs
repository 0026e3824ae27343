//! The steps, time, memory and disk that an experiment will take, from short rehearsals of its trainings and matches.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::ExperimentError;
use super::executor::{Executor, MatchRequest, TrainRequest};
use super::kept_runs::folder_bytes;
use super::learning_loop::LoopEstimate;
use super::match_settings::{MatchMeasure, MatchTerms};
use super::network_links::TrainedRun;
use super::plan::{PlannedEqualSpeed, PlannedMatch};
use super::runner::Runner;
use super::runner_options::{ExperimentMonitor, FinishedWhen, PassPurpose, RunnerOptions, Stage};
use super::search::SearchEstimate;
use super::spec::{ComparisonRow, Experiment};
use super::steps::{EqualSpeed, Match, PlanStep, Step, Train};
use crate::engine::Strategy;
use crate::play::MatchOptions;
use crate::record::{EQUAL_SPEED, MatchKind, OwnFigures, RunRecord, ScalingBy};
use crate::statistics::{CONFIDENCE, SeedPlan, seed_plan, student_t_quantile};
use crate::system;
use crate::train::{EpochMetrics, TrainConfig, TrainOutcome, TrainSettings};

/// The cost of the steps that an experiment has not done yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunEstimate {
    /// Steps of the experiment.
    pub steps: usize,
    /// Steps whose results are not stored yet.
    pub to_do: usize,
    /// The steps to do, by stage.
    pub stages: Vec<StageEstimate>,
    /// Time of the steps to do.
    pub seconds: f64,
    /// The largest resident memory of this process in the rehearsals; `None` where the system does not tell. The
    /// process that serves samples takes some more.
    pub memory_bytes: Option<u64>,
    /// Of the runs' folders.
    pub disk_bytes: u64,
    pub rows: Vec<RowEstimate>,
    /// Rows whose cost goes by the user's figures.
    pub own_figures: Vec<RowFigures>,
    /// The first round of a search; absent in other experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchEstimate>,
    /// An iteration of a loop; absent in other experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_loop: Option<LoopEstimate>,
    /// What is likely to make the experiment say little.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StageEstimate {
    /// The stage.
    pub stage: &'static str,
    /// Its steps to do.
    pub steps: usize,
    /// Their time.
    pub seconds: f64,
}

/// A row whose training was rehearsed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RowEstimate {
    /// The row's label.
    pub set: String,
    /// The row's method.
    pub method: &'static str,
    /// Trainable weights and biases.
    pub parameters: u64,
    /// About as many are in the training split; an epoch may have fewer.
    pub training_samples: u64,
    /// Rate of the rehearsed training.
    pub samples_per_second: f64,
    /// Per training.
    pub seconds: f64,
}

/// The user's own figures of a row's cost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RowFigures {
    /// The row's label.
    pub set: String,
    /// The row's method.
    pub method: &'static str,
    #[serde(flatten)]
    pub own: OwnFigures,
}

/// Batches of a rehearsal's epoch.
const BATCHES: u64 = 24;
/// Pairs of a rehearsed match.
const PAIRS: u64 = 4;
/// A measure of updates, activity or error takes about this long.
pub(super) const MEASURE_SECONDS: f64 = 2.0;
/// Narrower networks say little about the order of sets in the widths that engines use.
const SMALL_WIDTH: usize = 64;

/// About how many seconds steps take, from the rehearsals and the settings.
pub struct Rates {
    /// A training and its validation, by run.
    pub(super) trainings: Vec<f64>,
    pub(super) validations: Vec<f64>,
    /// A measure of speed.
    pub(super) speed: f64,
    /// The search for a width of equal speed.
    pub(super) width: f64,
    /// A match.
    pub(super) game: f64,
}

/// A rehearsed training.
struct Rehearsal {
    run: usize,
    outcome: TrainOutcome,
    seconds: f64,
    validation_seconds: f64,
    disk_bytes: u64,
    network: PathBuf,
}

impl Runner<'_> {
    /// Rehearses each row's training for some batches and a match for some pairs, and extrapolates. Data that are not
    /// built yet are built, as in the run itself.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn estimate(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<RunEstimate, ExperimentError> {
        if let Some(learning_loop) = &experiment.learning_loop {
            return learning_loop.estimate(experiment, executor, options, monitor);
        }
        let at_equal_speed = Runner::found_rows(experiment, executor, options)?;
        let experiment = at_equal_speed.as_ref().unwrap_or(experiment);
        let (mut runner, _lock) = Runner::prepared(experiment, PassPurpose::Trial, executor, options)?;
        let mut pending = Vec::new();
        for step in runner.plan.steps.clone() {
            if options.fresh || !step.load(&mut runner)? {
                pending.push(step);
            }
        }
        pending.retain(|step| runner.is_requested(step));
        let failed = |source| ExperimentError::WorkFolder { path: options.work.clone(), source };
        let folder = tempfile::Builder::new().prefix("rehearsal-").tempdir_in(&options.work).map_err(failed)?;
        let rehearsals = runner.rehearse_trainings(&pending, folder.path(), monitor)?;
        let seconds_per_pair = runner.rehearse_match(&rehearsals, &pending, folder.path(), monitor)?;
        let estimate = runner.extrapolate(&pending, &rehearsals, seconds_per_pair);
        with_search(estimate, experiment)
    }

    /// The experiment with its rows at equal speed, if their widths are found already.
    fn found_rows(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
    ) -> Result<Option<Experiment>, ExperimentError> {
        if experiment.equal_speed.is_none() || options.fresh {
            return Ok(None);
        }
        let (mut runner, _lock) = Runner::prepared(experiment, PassPurpose::Trial, executor, options)?;
        for step in runner.plan.steps.clone() {
            step.load(&mut runner)?;
        }
        Ok(experiment.at_equal_speed(&runner.results.equal_speed, &[]))
    }

    /// The trainings at widths of equal speed that are not found yet, as if they took as long as trainings at the rows'
    /// own widths: one of each seed, and one for the second look.
    fn trainings_at_equal_speed(&self, pending: &[PlanStep], rates: &Rates) -> Option<StageEstimate> {
        let trainings = self.experiment.trainings_of_row() + 1;
        let mut seconds = Vec::new();
        for (index, planned) in self.plan.equal_speeds.iter().enumerate() {
            if planned.is_search && pending.contains(&EqualSpeed(index).step()) {
                seconds.push(rates.trainings[planned.run] * trainings as f64);
            }
        }
        (!seconds.is_empty()).then(|| StageEstimate {
            stage: "training at equal speed",
            steps: trainings * seconds.len(),
            seconds: seconds.iter().sum(),
        })
    }

    /// One rehearsal per row with a training to do.
    fn rehearse_trainings(
        &mut self,
        pending: &[PlanStep],
        folder: &Path,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Vec<Rehearsal>, ExperimentError> {
        let mut rehearsals: Vec<Rehearsal> = Vec::new();
        for run in 0..self.plan.runs.len() {
            let is_known = rehearsals.iter().any(|rehearsal| self.is_same_row(rehearsal.run, run));
            if is_known || !pending.contains(&Train(run).step()) {
                continue;
            }
            let name = format!("rehearsing the {}", Train(run).name(&self.plan));
            monitor.step(rehearsals.len() + 1, self.experiment.rows.len(), &name, None);
            let mut config: TrainConfig = self.config(run);
            let all = config.settings.epoch_samples.unwrap_or(u64::MAX);
            config.settings.epochs = 2;
            config.settings.epoch_samples = Some(all.min(BATCHES * config.settings.batch_size as u64));
            let request = TrainRequest { config: &config, folder: folder.join(run.to_string()) };
            let begun = Instant::now();
            let outcome = self.executor.train(&request, &mut NoMonitor(&*monitor));
            let outcome = outcome.map_err(|source| ExperimentError::Step { step: name, source })?;
            let Some(outcome) = outcome else { return Err(ExperimentError::Interrupted) };
            let rate = samples_per_second(&outcome);
            let of_epoch = config.settings.epoch_samples.unwrap_or_default().min(outcome.training_samples) as f64;
            let last = outcome.epochs.last().map_or(0.0, |epoch| epoch.seconds);
            rehearsals.push(Rehearsal {
                run,
                seconds: begun.elapsed().as_secs_f64(),
                validation_seconds: (last - of_epoch / rate).max(0.0),
                disk_bytes: folder_bytes(&request.folder),
                network: request.folder.join(&outcome.network),
                outcome,
            });
        }
        Ok(rehearsals)
    }

    /// Seconds per pair of a match between the rehearsed networks, or finished ones; `None` without matches to play.
    fn rehearse_match(
        &mut self,
        rehearsals: &[Rehearsal],
        pending: &[PlanStep],
        folder: &Path,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<f64>, ExperimentError> {
        let mut matches = self.plan.matches.iter().enumerate();
        let first = matches.find(|(index, _)| pending.contains(&Match(*index).step())).map(|(_, planned)| *planned);
        let (Some(PlannedMatch { run, reference, .. }), Some(measure)) = (first, &self.experiment.matches) else {
            return Ok(None);
        };
        let network = |run: usize| {
            let rehearsed = rehearsals.iter().find(|rehearsal| self.is_same_row(rehearsal.run, run));
            rehearsed.map_or_else(|| self.network(run), |rehearsal| Ok(rehearsal.network.clone()))
        };
        let nodes = measure.terms.nodes.or(measure.terms.equal_cost);
        let terms =
            MatchTerms { nodes, equal_cost: None, cost_weight: None, half_width: None, ..measure.terms.clone() };
        let options = MatchOptions { pairs: Some(PAIRS), ..measure.options.clone() };
        let settings = MatchMeasure { terms, options, ..measure.clone() };
        let request = MatchRequest {
            kind: MatchKind::EqualNodes,
            networks: [network(run)?, network(reference)?],
            names: ["a".to_owned(), "b".to_owned()],
            settings: &settings,
            openings: self.openings.clone(),
            pairs: PAIRS,
            book_part: self.experiment.book_part,
            sprt: None,
            seed: measure.options.seed,
            own: Default::default(),
            cost: None,
            folder: folder.join("match"),
        };
        let begun = Instant::now();
        let played = self.executor.play(&request, &NoMonitor(&*monitor));
        let failed = |source| ExperimentError::Step { step: "rehearsing a match".into(), source };
        match played.map_err(failed)? {
            None => Err(ExperimentError::Interrupted),
            Some(_) => Ok(Some(begun.elapsed().as_secs_f64() / PAIRS as f64)),
        }
    }

    fn extrapolate(
        &self,
        pending: &[PlanStep],
        rehearsals: &[Rehearsal],
        seconds_per_pair: Option<f64>,
    ) -> RunEstimate {
        let rates = self.rates(rehearsals, seconds_per_pair.unwrap_or_default());
        let stage = |(stage, name): (Stage, &'static str)| {
            let own: Vec<&PlanStep> = pending.iter().filter(|step| step.kind().stage == stage).collect();
            let seconds = own.iter().map(|step| step.estimate(&self.plan, &rates)).sum();
            StageEstimate { stage: name, steps: own.len(), seconds }
        };
        let stages = [(Stage::Training, "training"), (Stage::Measures, "measures"), (Stage::Matches, "matches")];
        let mut stages: Vec<StageEstimate> = stages.into_iter().map(stage).filter(|stage| stage.steps > 0).collect();
        stages.extend(self.trainings_at_equal_speed(pending, &rates));
        let trainings = |rehearsal: &Rehearsal| {
            let own = (0..self.plan.runs.len()).filter(|&run| self.is_same_row(run, rehearsal.run));
            own.filter(|&run| pending.contains(&Train(run).step())).count() as u64
        };
        let row = |rehearsal: &Rehearsal| RowEstimate {
            set: self.row_label(rehearsal.run).to_owned(),
            method: self.plan.runs[rehearsal.run].key.method.name(),
            parameters: rehearsal.outcome.parameters,
            training_samples: training_split(&self.plan.runs[rehearsal.run].settings, &rehearsal.outcome),
            samples_per_second: samples_per_second(&rehearsal.outcome),
            seconds: rates.trainings[rehearsal.run],
        };
        RunEstimate {
            steps: self.plan.steps.len(),
            to_do: pending.len(),
            seconds: stages.iter().map(|stage| stage.seconds).sum(),
            stages,
            memory_bytes: system::peak_memory(),
            disk_bytes: rehearsals.iter().map(|own| own.disk_bytes * trainings(own)).sum(),
            rows: rehearsals.iter().map(row).collect(),
            own_figures: self.own_figures(),
            search: None,
            learning_loop: None,
            warnings: self.warnings(rehearsals),
        }
    }

    fn rates(&self, rehearsals: &[Rehearsal], seconds_per_pair: f64) -> Rates {
        let mut trainings = Vec::with_capacity(self.plan.runs.len());
        let mut validations = Vec::with_capacity(self.plan.runs.len());
        for (run, planned) in self.plan.runs.iter().enumerate() {
            let Some(own) = rehearsals.iter().find(|rehearsal| self.is_same_row(rehearsal.run, run)) else {
                trainings.push(0.0);
                validations.push(MEASURE_SECONDS);
                continue;
            };
            let settings = &planned.settings;
            let most = settings.epoch_samples.unwrap_or(u64::MAX);
            let share = planned.share.filter(|share| share.by == ScalingBy::Epochs).map_or(1.0, |share| share.share);
            let samples = most.min((share * training_split(settings, &own.outcome) as f64) as u64) as f64;
            let epoch = samples / samples_per_second(&own.outcome) + own.validation_seconds;
            let rehearsed: f64 = own.outcome.epochs.iter().map(|epoch| epoch.seconds).sum();
            trainings.push(f64::from(settings.epochs) * epoch + (own.seconds - rehearsed).max(0.0));
            validations.push(own.validation_seconds);
        }
        let speed = self.experiment.measure.speed.clone().unwrap_or_default().options;
        // Each repetition times the whole evaluation and, for a quarter as long each, three parts of it; turns with
        // another network take as long as five repetitions.
        let timings = Strategy::ALL.len() * (speed.back_ends().len() + 1);
        let equal_speed = self.experiment.equal_speed.clone().unwrap_or_default().options;
        let pairs = self.experiment.matches.as_ref().map_or(0, |measure| measure.options.pairs());
        Rates {
            trainings,
            validations,
            speed: speed.seconds * (f64::from(speed.repetitions) * timings as f64 * 7.0 / 4.0 + 5.0),
            // Some four widths, two networks.
            width: f64::from(equal_speed.repetitions) * equal_speed.seconds * 8.0,
            game: pairs as f64 * seconds_per_pair,
        }
    }

    fn own_figures(&self) -> Vec<RowFigures> {
        let with_figures = self.experiment.rows.iter().filter(|row| !row.own.is_empty());
        let figures =
            |row: &ComparisonRow| RowFigures { set: row.label.clone(), method: row.method.name(), own: row.own };
        with_figures.map(figures).collect()
    }

    fn warnings(&self, rehearsals: &[Rehearsal]) -> Vec<String> {
        let mut warnings = Vec::new();
        for Rehearsal { run, outcome, .. } in rehearsals {
            let set = self.row_label(*run);
            let samples = training_split(&self.plan.runs[*run].settings, outcome);
            let per_parameter = samples as f64 / outcome.parameters.max(1) as f64;
            if per_parameter < RunRecord::SAMPLES_PER_PARAMETER {
                warnings.push(format!(
                    "{set} has {} parameters and {samples} training samples, {per_parameter:.1} per parameter: it may \
                     learn them by heart; take more data, a factor or a smaller l1",
                    outcome.parameters
                ));
            }
        }
        let narrow: Vec<&str> = self
            .experiment
            .rows
            .iter()
            .filter(|row| row.settings.l1 < SMALL_WIDTH)
            .map(|row| row.label.as_str())
            .collect();
        if !narrow.is_empty() {
            warnings.push(format!(
                "l1 is below {SMALL_WIDTH} for {}: the order of sets at such a width says little about the widths that \
                 engines use",
                narrow.join(", ")
            ));
        }
        let seeds = self.experiment.seeds.len();
        let sets = self.experiment.rows.len().max(2);
        let SeedPlan { detectable, advised, .. } = seed_plan(sets, seeds);
        if seeds < 2 {
            warnings.push(format!("one seed: intervals lack the variation between trainings; give {advised} or more"));
        } else if !seed_plan(sets, seeds).decides() {
            let with_more = seed_plan(sets, advised).detectable;
            warnings.push(format!(
                "two seeds decide nothing: Student's t at one degree of freedom is {:.1}, so that only sets that \
                 differ by {detectable:.0} times the deviation between trainings are told apart, with {advised} seeds \
                 by {with_more:.1} times; give {advised} or more",
                student_t_quantile(CONFIDENCE, seeds - 1),
            ));
        }
        let is_search = |planned: &PlannedEqualSpeed| planned.is_search;
        let is_found = self.experiment.rows.iter().any(|row| row.group == EQUAL_SPEED);
        if !is_found && self.plan.equal_speeds.iter().any(is_search) {
            warnings.push(
                "the widths of equal speed are found when the first networks are trained: trainings at them are \
                 counted as if they took as long as at the rows' own widths, their measures and matches not at all"
                    .into(),
            );
        }
        warnings
    }

    /// Whether two runs differ in their seed or their share of the data only.
    fn is_same_row(&self, a: usize, b: usize) -> bool {
        let [a, b] = [a, b].map(|run| (self.plan.runs[run].set, self.plan.runs[run].key.method));
        a == b
    }

    /// The label of a run's row, whatever its share of the data.
    fn row_label(&self, run: usize) -> &str {
        &self.plan.sets[self.plan.runs[run].set].label
    }
}

/// Adds the first round of a search, from the rehearsal of the first row.
fn with_search(mut estimate: RunEstimate, experiment: &Experiment) -> Result<RunEstimate, ExperimentError> {
    let Some(search) = &experiment.search else { return Ok(estimate) };
    let label = &experiment.rows[0].label;
    let row = estimate.rows.iter().find(|row| row.set == *label);
    let found = search.estimate(experiment, row.map(|row| (row.samples_per_second, row.seconds)))?;
    if let Some(seconds) = found.seconds.filter(|seconds| *seconds > found.budget_seconds) {
        estimate.warnings.push(format!(
            "hours = {} is too small for one round, which takes about {:.1}; give more, or fewer candidates or samples",
            found.budget_seconds / 3600.0,
            seconds / 3600.0
        ));
    }
    estimate.search = Some(found);
    Ok(estimate)
}

/// The rate of the last epoch, which has no warming up.
fn samples_per_second(outcome: &TrainOutcome) -> f64 {
    outcome.epochs.iter().rev().find_map(|epoch| epoch.samples_per_second).unwrap_or(1.0)
}

/// Samples of the training split, of which a rehearsal takes a part: about as many as the validation split says.
fn training_split(settings: &TrainSettings, outcome: &TrainOutcome) -> u64 {
    let share = settings.validation.clamp(1e-6, 1.0);
    let split = outcome.validation_samples as f64 * (1.0 - share) / share;
    outcome.training_samples.max(split as u64)
}

/// Follows nothing, but may be stopped.
struct NoMonitor<'a>(&'a dyn ExperimentMonitor);

impl ExperimentMonitor for NoMonitor<'_> {
    fn step(&mut self, _: usize, _: usize, _: &str, _: Option<Duration>) {}

    fn epoch(&mut self, _: &EpochMetrics, _: u32) {}

    fn skipped(&mut self, _: usize) {}

    fn trained(&mut self, _: &TrainedRun, _: FinishedWhen) {}

    fn stop_requested(&self) -> bool {
        self.0.stop_requested()
    }
}
