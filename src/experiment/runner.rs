//! Runs an experiment's steps in order, skips steps whose results are stored, and keeps the results folder up to date.
//! `step_keys.rs` says on what a result depends, `finished_results.rs` collects finished results.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use serde_json::json;

use super::ExperimentError;
use super::earlier::{Earlier, absolute};
use super::equal_speed::EqualSpeedRequest;
use super::executor::{DataRequest, Executor, MatchSetup, NetRequest, PreparedData, TrainRequest, TrainingMonitor};
use super::lock;
use super::match_shards::PlayedShards;
use super::match_steps::match_setup;
use super::network_links::{self, TrainedRun};
use super::plan::{Plan, PlanStep, PlannedEqualSpeed, PlannedStart, study};
use super::result_store::{ResultKey, ResultStore};
use super::runner_options::{ExperimentMonitor, FinishedWhen, PassPurpose, RunnerOptions, Share, Stage};
use super::spec::Experiment;
use super::step_times::StepTimes;
use crate::output::file_lock::FileLock;
use crate::pipeline::WeightedInput;
use crate::record::{Environment, Machine, Results, StageSeconds, Timestamp, machine, read_checked_json};
use crate::train::run_dir::{OUTCOME, VALIDATION};
use crate::train::{EpochMetrics, TrainOutcome};
use crate::units::SortedMap;

/// The file whose games the networks are measured on.
fn source(inputs: &[WeightedInput]) -> PathBuf {
    inputs.first().map(|input| input.origin.path()).unwrap_or_default()
}

/// Refuses an experiment with a row that cannot be trained here.
fn check_trainers(
    experiment: &Experiment,
    executor: &dyn Executor,
    options: &RunnerOptions,
) -> Result<(), ExperimentError> {
    for row in &experiment.rows {
        let is_requested = options.only.as_ref().is_none_or(|only| row.is_called(only));
        if let (true, Err(source)) = (is_requested, executor.check_trainer(&row.settings)) {
            return Err(ExperimentError::NoTrainer { row: row.label.clone(), source });
        }
    }
    Ok(())
}

/// Does an experiment's steps. Returns their results, or `None` if some remain to be done by other processes.
type PlanPass<'p> = dyn FnMut(&Experiment, PassPurpose) -> Result<Option<Results>, ExperimentError> + 'p;

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
    pub(super) results: Results,
    /// Time of each result, by its key.
    pub(super) seconds: SortedMap<String, (Stage, f64)>,
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
            check_trainers(experiment, executor, options)?;
        }
        let results = Runner::passes(experiment, &mut |experiment, purpose| {
            Runner::pass(experiment, purpose, &mut *executor, options, &mut *monitor, &mut *earlier)
        })?;
        if results.is_some() {
            earlier.used_runs(experiment, options)?.save(&options.work)?;
        }
        Ok(results)
    }

    /// Runs `pass` over an experiment's rows, then over the rows at equal speed, which the results before determine.
    /// Stops after a pass that returns `None`: it is not complete. Returns the last results.
    pub(super) fn passes(experiment: &Experiment, pass: &mut PlanPass<'_>) -> Result<Option<Results>, ExperimentError> {
        let Some(results) = pass(experiment, PassPurpose::Results)? else { return Ok(None) };
        let found_widths = &results.equal_speed;
        let Some(found) = experiment.at_equal_speed(found_widths, &[]) else { return Ok(Some(results)) };
        // A trained network is not as fast as the network that its width was found with, so the first seed's networks
        // are timed.
        let Some(trained) = pass(&found.equal_speed_trial(), PassPurpose::Trial)? else { return Ok(None) };
        let at_equal_speed = experiment.at_equal_speed(found_widths, &trained.equal_speed);
        pass(&at_equal_speed.unwrap_or(found), PassPurpose::Results)
    }

    /// Does all steps of the experiment's rows.
    fn pass(
        experiment: &Experiment,
        purpose: PassPurpose,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
        earlier: &mut Earlier,
    ) -> Result<Option<Results>, ExperimentError> {
        let (mut runner, _lock) = Runner::prepared(experiment, purpose, executor, options)?;
        if options.fresh {
            runner.delete_finished(&earlier.keys)?;
        }
        let pending = runner.load_finished(monitor, earlier)?;
        let complete = match &options.share {
            Share::All => runner.do_pending(&pending, monitor).map(|()| true)?,
            Share::Free | Share::Unclaimed | Share::One(_) => runner.do_shared(pending, monitor, earlier)?,
        };
        earlier.keys.extend(runner.plan.steps.iter().map(|&step| runner.key(step)));
        Ok(complete.then_some(runner.results))
    }

    /// The plan, the data, and the lock of the work folder.
    pub(super) fn prepared(
        experiment: &'a Experiment,
        purpose: PassPurpose,
        executor: &'a mut dyn Executor,
        options: &'a RunnerOptions,
    ) -> Result<(Runner<'a>, FileLock), ExperimentError> {
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
            Share::All => lock::folder_alone(&options.work),
            Share::Free | Share::Unclaimed | Share::One(_) => lock::folder_shared(&options.work),
        }?;
        let results = empty_results(experiment, &plan);
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
            results,
            seconds,
            newest,
        };
        runner.prepare_data()?;
        Ok((runner, lock))
    }

    /// Opens or builds the samples of all runs.
    fn prepare_data(&mut self) -> Result<(), ExperimentError> {
        for options in self.plan.datasets.clone() {
            let request = DataRequest { inputs: self.inputs.clone(), options };
            let _lock = self.lock_data(&request)?;
            let begun = Instant::now();
            let data = self
                .executor
                .prepare_data(&request)
                .map_err(|source| ExperimentError::Step { step: "the data".into(), source })?;
            let key = ResultKey::of("data", &json!([request.options, data.hash]));
            let stored = match self.store.get("data", &key) {
                Some(stored) => stored,
                None => self.store.put("data", &key, begun.elapsed().as_secs_f64(), ())?,
            };
            self.note_seconds(&key, Stage::Data, stored.seconds);
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
            if !self.load_step(step)? {
                pending.push(step);
            } else if let PlanStep::Train(run) = step {
                self.tell_trained(run, FinishedWhen::Before, monitor)?;
            }
        }
        if self.options.share == Share::All {
            self.save()?;
        }
        if self.options.only.is_some() {
            pending.retain(|&step| self.is_requested(step));
            let all = pending.clone();
            pending.retain(|step| match step {
                PlanStep::Match(index) | PlanStep::MatchCost(index) => self.can_play(*index, &all),
                PlanStep::MatchShard(index) => self.can_play(self.plan.shards[*index].of, &all),
                PlanStep::EqualSpeed(index) => self.can_race(*index, &all),
                _ => true,
            });
        }
        Ok(pending)
    }

    /// Whether a step is of the set of `--only`, if there is one.
    pub(super) fn is_requested(&self, step: PlanStep) -> bool {
        self.options.only.as_ref().is_none_or(|only| self.plan.set_of(step).is_called(only))
    }

    fn do_pending(&mut self, pending: &[PlanStep], monitor: &mut dyn ExperimentMonitor) -> Result<(), ExperimentError> {
        monitor.skipped(self.plan.steps.len() - pending.len());
        let mut times = StepTimes::default();
        for (index, &step) in pending.iter().enumerate() {
            if monitor.stop_requested() {
                return Err(ExperimentError::Interrupted);
            }
            // Earlier shards may have made this one superfluous.
            if matches!(step, PlanStep::MatchShard(_)) && self.load_step(step)? {
                continue;
            }
            let remaining = times.estimate(&pending[index..]);
            monitor.step(index + 1, pending.len(), &self.plan.describe(step), remaining);
            let begun = Instant::now();
            self.do_step(step, monitor)?;
            times.add(step, begun.elapsed());
            self.save()?;
        }
        Ok(())
    }

    pub(super) fn do_step(
        &mut self,
        step: PlanStep,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        // An earlier step of this experiment may have stored the same result under another label.
        if self.load_step(step)? {
            if let PlanStep::Train(run) = step {
                self.tell_trained(run, FinishedWhen::Now, monitor)?;
            }
            return Ok(());
        }
        let key = self.key(step);
        let failed = |source| ExperimentError::Step { step: self.plan.describe(step), source };
        let begun = Instant::now();
        let seconds = || begun.elapsed().as_secs_f64();
        match step {
            PlanStep::Train(run) => return self.train(run, monitor),
            PlanStep::Match(index) => return self.play_match(index, monitor),
            PlanStep::MatchCost(index) => return self.measure_match_cost(index, monitor),
            PlanStep::MatchShard(index) => return self.play_shard(index, monitor),
            PlanStep::Updates(set) => {
                let games = self.experiment.measure.updates.as_ref().and_then(|measure| measure.games);
                let request = &self.plan.sets[set].request;
                let record = self.executor.updates(request, &source(&self.inputs), games).map_err(failed)?;
                self.keep("updates", &key, seconds(), record)?;
            }
            PlanStep::Validation(run) => {
                let config = self.config(run);
                let folder = self.run_folder(run);
                let request = TrainRequest { config: &config, folder };
                let record = self.executor.validation(&request).map_err(failed)?;
                // The losses come first: a record without them is not finished.
                record.losses.write(&request.folder.join(VALIDATION))?;
                self.keep("validation", &key, seconds(), record)?;
            }
            PlanStep::Activity(run) => {
                let games = self.experiment.measure.activity.as_ref().and_then(|measure| measure.limit.games);
                let record = self.executor.activity(&self.net_request(run, games)?).map_err(failed)?;
                self.keep("activity", &key, seconds(), record)?;
            }
            PlanStep::Error(run) => {
                let games = self.experiment.measure.error.as_ref().and_then(|measure| measure.limit.games);
                let record = self.executor.error(&self.net_request(run, games)?).map_err(failed)?;
                self.keep("error", &key, seconds(), record)?;
            }
            PlanStep::EqualSpeed(index) => {
                let PlannedEqualSpeed { run, reference, is_search, own } = self.plan.equal_speeds[index];
                let request = EqualSpeedRequest {
                    network: &self.network(run)?,
                    reference: &self.network(reference)?,
                    data: &source(&self.inputs),
                    is_search,
                    own,
                    options: self.experiment.equal_speed.as_ref().map(|measure| measure.options).unwrap_or_default(),
                };
                let record = self.executor.equal_speed(&request).map_err(failed)?;
                self.keep("equal speed", &key, seconds(), record)?;
            }
            PlanStep::Speed(run) => {
                let measure = self.experiment.measure.speed.as_ref();
                let timing = measure.map(|measure| measure.options).unwrap_or_default();
                let record = self.executor.speed(&self.net_request(run, None)?, timing).map_err(failed)?;
                self.keep("speed", &key, seconds(), record)?;
            }
        }
        self.load_step(step)?;
        Ok(())
    }

    /// Stores the result of the present step.
    pub(super) fn keep<T: Serialize>(
        &self,
        kind: &str,
        key: &ResultKey,
        seconds: f64,
        record: T,
    ) -> Result<(), ExperimentError> {
        self.store.put(kind, key, seconds, record)?;
        Ok(())
    }

    fn train(&mut self, run: usize, monitor: &mut dyn ExperimentMonitor) -> Result<(), ExperimentError> {
        let step = PlanStep::Train(run);
        let config = self.config(run);
        let folder = self.run_folder(run);
        let name = self.plan.describe(step);
        if let (Some(PlannedStart::Run(other)), None) = (&self.plan.runs[run].start, &config.start) {
            let other = self.plan.describe(PlanStep::Train(*other));
            let source = format!("it begins with the network of the {other}, which is not done").into();
            return Err(ExperimentError::Step { step: name, source });
        }
        monitor.resumable_begins();
        let epochs = config.settings.epochs;
        let mut adapter = TrainingMonitorAdapter { monitor: &mut *monitor, epochs };
        let outcome = self.executor.train(&TrainRequest { config: &config, folder: folder.clone() }, &mut adapter);
        monitor.resumable_ended();
        let outcome = outcome.map_err(|source| ExperimentError::Step { step: name.clone(), source })?;
        let Some(outcome) = outcome else { return Err(ExperimentError::Interrupted) };
        if !folder.join(OUTCOME).is_file() {
            return Err(ExperimentError::NoOutcome { step: name, path: folder.join(OUTCOME) });
        }
        self.played.forget_networks();
        self.store_run(run, &outcome)?;
        self.load_step(step)?;
        self.tell_trained(run, FinishedWhen::Now, monitor)
    }

    /// Tells the monitor of a finished run whose network is among the results.
    pub(super) fn tell_trained(
        &self,
        run: usize,
        when: FinishedWhen,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        if self.purpose == PassPurpose::Results {
            monitor.trained(&self.trained_run(run)?, when);
        }
        Ok(())
    }

    /// A finished run, with a link to its network in the results folder.
    fn trained_run(&self, run: usize) -> Result<TrainedRun, ExperimentError> {
        let key = self.plan.runs[run].key.clone();
        let folder = absolute(&self.run_folder(run));
        let outcome: TrainOutcome = read_checked_json(&folder.join(OUTCOME))?;
        let network = folder.join(outcome.network);
        let link = network_links::link(&self.options.out, &key, &network);
        Ok(TrainedRun { key, folder, network, link })
    }

    /// Notes in the work folder which runs this experiment uses. Runs of passes to come are not known yet: until the
    /// last pass is done, the note keeps the runs that it had.
    fn note_used_runs(&self, earlier: &mut Earlier) -> Result<(), ExperimentError> {
        let name = |run| self.run_folder(run).file_name().unwrap_or_default().to_string_lossy().into_owned();
        earlier.runs.extend((0..self.plan.runs.len()).map(name));
        let used = earlier.used_runs(self.experiment, self.options)?;
        Ok(used.with_noted(&self.options.work).save(&self.options.work)?)
    }

    fn net_request(&self, run: usize, games: Option<u64>) -> Result<NetRequest, ExperimentError> {
        let folder = self.run_folder(run);
        let outcome: TrainOutcome = read_checked_json(&folder.join(OUTCOME))?;
        Ok(NetRequest {
            network: folder.join(outcome.network),
            weights: folder.join(outcome.weights),
            data: source(&self.inputs),
            games,
        })
    }
}

/// Reports a training to the experiment's monitor.
struct TrainingMonitorAdapter<'a> {
    monitor: &'a mut dyn ExperimentMonitor,
    epochs: u32,
}

impl TrainingMonitor for TrainingMonitorAdapter<'_> {
    fn epoch(&mut self, metrics: &EpochMetrics) {
        self.monitor.epoch(metrics, self.epochs);
    }

    fn stop_requested(&self) -> bool {
        self.monitor.stop_requested()
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
    Results::empty(study(experiment, plan), environment)
}
