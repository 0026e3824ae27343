//! A running experiment: its plan, its data and what is known of its results. `run.rs` does its steps, `view.rs` writes
//! the results folder.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::ExperimentError;
use super::earlier::{Earlier, absolute};
use super::executor::{DataRequest, Executor, MatchSetup, NetRequest, PreparedData};
use super::learning_loop::keep_further_record;
use super::lock;
use super::machine_checks::check_machine;
use super::plan::{Plan, study};
use super::runner_options::{ExperimentMonitor, FinishedWhen, PassPurpose, RunnerOptions, Share, Stage};
use super::spec::Experiment;
use super::steps::{HashedFile, PlanStep, PlayedShards, SelfPlayResults, Step, StepKind, Train, match_setup};
use super::store::{ResultKey, ResultStore, StoredResult};
use crate::features::EncoderKind;
use crate::output::file_lock::FileLock;
use crate::pipeline::{BuildError, WeightedInput};
use crate::record::{Environment, Machine, Results, RunKey, StageSeconds, Timestamp, machine, read_checked_json};
use crate::train::TrainOutcome;
use crate::train::run_dir::OUTCOME;
use crate::units::SortedMap;

/// Does an experiment's steps. Returns their results, or `None` if some remain to be done by other processes.
pub(super) type PlanPass<'p> = dyn FnMut(&Experiment, PassPurpose) -> Result<Option<PassResults>, ExperimentError> + 'p;

/// What the steps of a pass have found.
#[derive(Clone)]
pub(super) struct PassResults {
    pub(super) results: Results,
    /// Time of each result.
    pub(super) seconds: SortedMap<ResultKey, (Stage, f64)>,
    /// Time of each run's training.
    trainings: Vec<(RunKey, f64)>,
    /// The networks that cannot be trained, of rows that may fail, and why.
    pub(super) refused: Vec<(RunKey, String)>,
    /// The networks of the runs that are done, in the plan's order.
    pub(super) networks: Vec<TrainedNetwork>,
    pub(super) self_play: SelfPlayResults,
}

/// The network of a finished run.
#[derive(Clone)]
pub(super) struct TrainedNetwork {
    /// The quantised network.
    pub(super) network: HashedFile,
    /// The float network that it was quantised from.
    pub(super) weights: PathBuf,
}

impl PassResults {
    /// Time of a row's trainings.
    pub(super) fn training_seconds(&self, label: &str) -> f64 {
        self.trainings.iter().filter(|(run, _)| run.set == label).map(|(_, seconds)| seconds).sum()
    }

    /// Why a network of the row cannot be trained, if one cannot.
    pub(super) fn refusal(&self, label: &str) -> Option<String> {
        let (run, why) = self.refused.iter().find(|(run, _)| run.set == label)?;
        Some(format!("seed {}: {why}", run.seed))
    }
}

/// A running experiment.
pub struct Runner<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) purpose: PassPurpose,
    pub(super) executor: &'a mut dyn Executor,
    pub(super) options: &'a RunnerOptions,
    pub(super) store: ResultStore,
    pub(super) plan: Plan,
    /// The data; measures read the first file.
    inputs: Vec<WeightedInput>,
    /// The samples, as [`Plan::datasets`] lists them.
    pub(super) data: Vec<PreparedData>,
    /// The book of the matches; `None` = the openings that come with fsbench.
    pub(super) openings: Option<PathBuf>,
    /// `None` without matches.
    pub(super) match_setup: Option<MatchSetup>,
    pub(super) played: PlayedShards,
    pub(super) self_play: SelfPlayResults,
    pub(super) results: Results,
    /// Time of each result.
    pub(super) seconds: SortedMap<ResultKey, (Stage, f64)>,
    /// Runs whose networks cannot be trained, and why.
    pub(super) refused: Vec<(usize, String)>,
    /// What the steps made whose results are known.
    pub(super) made: SortedMap<ResultKey, Option<String>>,
    /// The steps' keys, once they were asked for.
    keys: RefCell<SortedMap<(&'static str, usize), ResultKey>>,
    /// Time of the newest result.
    pub(super) newest: Option<Timestamp>,
}

impl<'a> Runner<'a> {
    /// Does all steps that are not done yet, beside other processes if the options say so, and returns all records.
    ///
    /// # Errors
    /// When the experiment is wrong, before any work; when a step fails; or [`ExperimentError::Interrupted`]. Results
    /// finished until then are in the store and need not be computed again.
    pub fn run(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Results, ExperimentError> {
        let results = Runner::run_share(experiment, executor, options, monitor, &mut Earlier::default())?;
        results.ok_or(ExperimentError::Interrupted)
    }

    /// Does the steps that no other process does at the moment, and returns all records if all steps are done.
    /// `earlier` has the steps that the calls before have done; a step that failed is not done again.
    ///
    /// # Errors
    /// As [`Runner::run`], once no step is left that another process may do.
    pub fn run_free(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<Option<Results>, ExperimentError> {
        let options = RunnerOptions { share: Share::Unclaimed, ..options.clone() };
        Runner::run_share(experiment, executor, &options, monitor, earlier)
    }

    /// Does the step of this key, unless it is done, or waits until the process that does it has finished.
    ///
    /// # Errors
    /// As [`Runner::run`]; when the experiment has no such step, or a step that this one needs is not done.
    pub fn run_step(
        key: &str,
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        let options = RunnerOptions { share: Share::One(key.to_owned()), ..options.clone() };
        let mut earlier = Earlier::default();
        Runner::run_share(experiment, executor, &options, monitor, &mut earlier)?;
        if earlier.found {
            Ok(())
        } else {
            Err(ExperimentError::NoSuchStep { key: key.to_owned(), experiment: experiment.name.clone() })
        }
    }

    fn run_share(
        experiment: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<Option<Results>, ExperimentError> {
        // A process that does one step need not be able to do the others.
        if !matches!(options.share, Share::One(_)) {
            check_machine(experiment, executor, options)?;
        }
        if let Some(search) = &experiment.search {
            let openings = experiment.openings_path()?;
            for is_kept in [false, true] {
                let book_part = Some(search.book_part(is_kept));
                match_setup(&Experiment { book_part, ..experiment.clone() }, executor, openings.as_deref())?;
            }
        }
        let _folder = match &experiment.learning_loop {
            Some(learning_loop) => Some(learning_loop.begin(experiment, executor, options)?),
            None => None,
        };
        let results = Runner::passes(experiment, &mut |experiment, purpose| {
            Runner::pass(experiment, purpose, &mut *executor, options, &mut *monitor, &mut *earlier)
        })?;
        if results.is_some() {
            earlier.used_runs(experiment, options)?.save(&options.work)?;
        }
        Ok(results)
    }

    /// Runs `pass` over an experiment's rows, then over the rows that the results before determine: those of a search,
    /// and those at equal speed. Stops after a pass that returns `None`: it is not complete. Returns the last results.
    pub(super) fn passes(experiment: &Experiment, pass: &mut PlanPass<'_>) -> Result<Option<Results>, ExperimentError> {
        let done = match (&experiment.search, &experiment.learning_loop) {
            (Some(search), _) => search.passes(experiment, pass)?,
            (_, Some(learning_loop)) => learning_loop.passes(experiment, pass)?,
            (None, None) => Runner::passes_at_equal_speed(experiment, pass)?.map(|(_, done)| done),
        };
        Ok(done.map(|done| done.results))
    }

    /// Runs `pass` over an experiment's rows, then over the rows at equal speed. Returns the last experiment and its
    /// results.
    pub(super) fn passes_at_equal_speed(
        experiment: &Experiment,
        pass: &mut PlanPass<'_>,
    ) -> Result<Option<(Experiment, PassResults)>, ExperimentError> {
        let Some(done) = pass(experiment, PassPurpose::Results)? else { return Ok(None) };
        let experiment = &experiment.without(&done.refused);
        let found_widths = &done.results.equal_speed;
        let Some(found) = experiment.at_equal_speed(found_widths, &[]) else {
            return Ok(Some((experiment.clone(), done)));
        };
        // A trained network is not as fast as the network that its width was found with, so the first seed's networks
        // are timed.
        let Some(trained) = pass(&found.equal_speed_trial(), PassPurpose::Trial)? else { return Ok(None) };
        let last = experiment.at_equal_speed(found_widths, &trained.results.equal_speed).unwrap_or(found);
        Ok(pass(&last, PassPurpose::Results)?.map(|done| (last, done)))
    }

    /// Does all steps of the experiment's rows.
    fn pass(
        experiment: &Experiment,
        purpose: PassPurpose,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<Option<PassResults>, ExperimentError> {
        let (mut runner, _lock) = Runner::prepared(experiment, purpose, executor, options)?;
        if options.fresh {
            runner.delete_finished(&earlier.keys)?;
        }
        let pending = runner.load_finished(monitor, earlier)?;
        let complete = runner.do_steps(pending, monitor, earlier)?;
        earlier.keys.extend(runner.plan.steps.iter().map(|step| runner.key(step)));
        Ok(complete.then(|| runner.pass_results()))
    }

    /// The plan, the data, and the lock of the work folder, unless the process does nothing there.
    pub(super) fn prepared(
        experiment: &'a Experiment,
        purpose: PassPurpose,
        executor: &'a mut dyn Executor,
        options: &'a RunnerOptions,
    ) -> Result<(Runner<'a>, Option<FileLock>), ExperimentError> {
        let mut plan = Plan::new(experiment, executor)?;
        if let Some(only) = &options.only {
            plan.require_set(only)?;
        }
        let inputs = experiment.inputs()?;
        let openings = experiment.openings_path()?;
        let match_setup = match_setup(experiment, executor, openings.as_deref())?;
        if let (Some(measure), Some(setup)) = (&experiment.matches, &match_setup) {
            plan.divide_matches(measure, setup.count);
        }
        let lock = match options.share {
            Share::All => Some(lock::folder_alone(&options.work)?),
            Share::Free | Share::Unclaimed | Share::One(_) => Some(lock::folder_shared(&options.work)?),
            Share::Nothing => None,
        };
        let mut results = empty_results(experiment, &plan);
        if let Some(now) = results.learning_loop.as_mut().filter(|_| !options.fresh) {
            keep_further_record(now, &options.out);
        }
        let store = ResultStore::new(&options.work.join("finished"));
        let data = Vec::new();
        let seconds = SortedMap::new();
        let newest = None;
        let mut runner = Runner {
            experiment,
            purpose,
            executor,
            options,
            store,
            plan,
            inputs,
            data,
            openings,
            match_setup,
            played: PlayedShards::default(),
            self_play: SelfPlayResults::default(),
            results,
            seconds,
            refused: Vec::new(),
            made: SortedMap::new(),
            keys: RefCell::default(),
            newest,
        };
        runner.prepare_data()?;
        Ok((runner, lock))
    }

    pub(super) fn pass_results(self) -> PassResults {
        let mut trainings = Vec::new();
        let mut networks = Vec::new();
        for (index, run) in self.plan.runs.iter().enumerate() {
            let known = self.seconds.get(&self.key(&Train(index).step()));
            trainings.extend(known.map(|(_, seconds)| (run.key.clone(), *seconds)));
            networks.extend(self.trained_network(index));
        }
        let of_run = |(run, why): &(usize, String)| (self.plan.runs[*run].key.clone(), why.clone());
        let refused = self.refused.iter().map(of_run).collect();
        let Runner { results, seconds, self_play, .. } = self;
        PassResults { results, seconds, trainings, refused, networks, self_play }
    }

    /// Whether a step needs a network that cannot be trained.
    pub(super) fn is_without_network(&self, step: &dyn Step) -> bool {
        let is_refused = |need: &PlanStep| self.refused.iter().any(|(run, _)| Train(*run).id() == need.id());
        step.needs(&self.plan).iter().any(|need| is_refused(need) || self.is_without_network(&**need))
    }

    /// Opens or builds the samples of all runs.
    fn prepare_data(&mut self) -> Result<(), ExperimentError> {
        for options in self.plan.datasets.clone() {
            let request = DataRequest { inputs: self.inputs.clone(), options };
            let _lock = self.lock_data(&request)?;
            let begun = Instant::now();
            let data =
                self.executor.prepare_data(&request).map_err(|source| match source.downcast_ref::<BuildError>() {
                    Some(error) if error.is_request() => ExperimentError::Spec {
                        at: self.experiment.location_of_key("data"),
                        message: error.to_string(),
                    },
                    _ => ExperimentError::Step { step: "the data".into(), source },
                })?;
            let key = ResultKey::of(&json!(["data", request.options, data.hash]));
            let stored = match self.store.get("data", &key) {
                Some(stored) => stored,
                None => {
                    let stored = StoredResult::new(begun.elapsed().as_secs_f64(), Value::Null);
                    self.store.put("data", &key, &stored)?;
                    stored
                }
            };
            self.seconds.insert(key, (Stage::Data, stored.seconds));
            self.data.push(data);
        }
        Ok(())
    }

    /// Loads all finished results, and returns the steps that remain to be done.
    pub(super) fn load_finished(
        &mut self,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<Vec<PlanStep>, ExperimentError> {
        self.note_used_runs(earlier)?;
        let mut pending = Vec::new();
        for step in self.plan.steps.clone() {
            if step.load(self)? {
                step.tell(self, FinishedWhen::Before, monitor)?;
            } else {
                pending.push(step);
            }
        }
        if self.options.share == Share::All {
            self.save()?;
        }
        if self.options.only.is_some() {
            pending.retain(|step| self.is_requested(step));
            // Other sets' trainings that are needed are done, or their results are not asked for.
            let all = pending.clone();
            let will_be_done = |need: &PlanStep| all.contains(need) || self.made.contains_key(&self.key(need));
            // A training says itself what it lacks.
            pending
                .retain(|step| step.kind().stage == Stage::Training || step.needs(&self.plan).iter().all(will_be_done));
        }
        Ok(pending)
    }

    /// Whether a step is of the set of `--only`, if there is one.
    pub(super) fn is_requested(&self, step: &PlanStep) -> bool {
        // Without such a set, the plan may have steps and no run.
        let set = || &self.plan.sets[self.plan.runs[step.run_of(&self.plan)].set];
        self.options.only.as_ref().is_none_or(|only| set().is_called(only))
    }

    /// A step's key: the hash of its kind, its version, its inputs and the keys of the steps that it needs.
    pub(super) fn key(&self, step: &PlanStep) -> ResultKey {
        if let Some(known) = self.keys.borrow().get(&step.id()) {
            return known.clone();
        }
        let needs: Vec<ResultKey> = step.needs(&self.plan).iter().map(|need| self.key(need)).collect();
        let StepKind { name, version, .. } = step.kind();
        let key = ResultKey::of(&json!([[name, version, step.inputs(self)], needs]));
        self.keys.borrow_mut().insert(step.id(), key.clone());
        key
    }

    /// Hashes of what these steps made, so far as they are done.
    pub(super) fn made_by(&self, steps: &[PlanStep]) -> Vec<String> {
        let made = steps.iter().filter_map(|step| self.made.get(&self.key(step)).cloned().flatten());
        made.collect()
    }

    /// Notes the time of a result; rows of different labels may share one.
    pub(super) fn note(&mut self, key: &ResultKey, stage: Stage, stored: &StoredResult) {
        self.newest = self.newest.take().max(Some(stored.recorded.clone()));
        self.seconds.insert(key.clone(), (stage, stored.seconds));
    }

    /// Deletes the finished results of the requested steps, except steps with keys in `kept`.
    fn delete_finished(&self, kept: &HashSet<ResultKey>) -> Result<(), ExperimentError> {
        for step in self.plan.steps.iter().filter(|step| self.is_requested(step)) {
            if !kept.contains(&self.key(step)) {
                step.delete_files(self)?;
                self.store.remove(step.kind().name, &self.key(step))?;
            }
        }
        Ok(())
    }

    /// Hash of the first row's samples, which stands for the games.
    pub(super) fn data_hash(&self) -> Option<&str> {
        self.data.first().map(|data| data.hash.as_str())
    }

    /// The file whose games the networks are measured on.
    pub(super) fn source(&self) -> PathBuf {
        self.inputs.first().map(|input| input.origin.path()).unwrap_or_default()
    }

    /// The machine that a measured time of runs belongs to, and the encoders of their sets.
    pub(super) fn timed_on(&self, runs: &[usize]) -> Value {
        let encoder = |run: &usize| self.plan.sets[self.plan.runs[*run].set].resolved.encoder;
        let encoders: Vec<EncoderKind> = runs.iter().map(encoder).collect();
        match &self.options.timed_on {
            Some(node_type) => json!(["node type", node_type, encoders]),
            None => json!([machine::cpu(), machine::back_end(), encoders]),
        }
    }

    /// The quantised network of a finished run.
    pub(super) fn network(&self, run: usize) -> Result<PathBuf, ExperimentError> {
        let folder = self.run_folder(run);
        let outcome: TrainOutcome = read_checked_json(&folder.join(OUTCOME))?;
        Ok(folder.join(outcome.network))
    }

    /// The networks of a run, if it is done.
    fn trained_network(&self, run: usize) -> Option<TrainedNetwork> {
        let hash = self.made.get(&self.key(&Train(run).step()))?.clone()?;
        let folder = absolute(&self.run_folder(run));
        let outcome: TrainOutcome = read_checked_json(&folder.join(OUTCOME)).ok()?;
        let network = HashedFile { path: folder.join(outcome.network), hash };
        Some(TrainedNetwork { network, weights: folder.join(outcome.weights) })
    }

    /// Notes in the work folder which runs this experiment uses. Runs of passes to come are not known yet: until the
    /// last pass is done, the note keeps the runs that it had.
    fn note_used_runs(&self, earlier: &mut Earlier) -> Result<(), ExperimentError> {
        let name = |run| self.run_folder(run).file_name().unwrap_or_default().to_string_lossy().into_owned();
        earlier.runs.extend((0..self.plan.runs.len()).map(name));
        let used = earlier.used_runs(self.experiment, self.options)?;
        Ok(used.with_noted(&self.options.work).save(&self.options.work)?)
    }

    pub(super) fn net_request(&self, run: usize, games: Option<u64>) -> Result<NetRequest, ExperimentError> {
        let folder = self.run_folder(run);
        let outcome: TrainOutcome = read_checked_json(&folder.join(OUTCOME))?;
        Ok(NetRequest {
            config: self.config(run),
            network: folder.join(outcome.network),
            weights: folder.join(outcome.weights),
            data: self.source(),
            games,
            folder,
        })
    }
}

fn empty_results(experiment: &Experiment, plan: &Plan) -> Results {
    let threads = plan.runs.first().map(|run| run.settings.threads()).unwrap_or_else(machine::cores);
    let Machine { cpu, cores, back_end, commit, recorded, .. } = Machine::current();
    let environment = Environment {
        recorded,
        fsbench: env!("CARGO_PKG_VERSION").into(),
        commit,
        cpu,
        back_end,
        cores,
        os: std::env::consts::OS.into(),
        threads,
        timed_on: None,
        seconds: StageSeconds::default(),
    };
    let learning_loop = experiment.loop_record.clone();
    Results { search: experiment.tree.clone(), learning_loop, ..Results::empty(study(experiment, plan), environment) }
}
