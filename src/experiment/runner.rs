//! Does an experiment's steps in order, skips what the store already has, and keeps the results folder current.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::ExperimentError;
use super::networks::{self, Trained, Usage, plain};
use super::plan::{Plan, PlannedRun, Step, study};
use super::spec::{Experiment, NetMeasure};
use super::store::{Key, Store};
use super::workbench::{DataFacts, DataRequest, NetRequest, TrainRequest, Watch, Workbench};
use crate::data::{Method, ScoreUnit};
use crate::record::{
    Environment, Machine, NetResult, Results, RunKey, RunRecord, SetResult, StageSeconds, Timestamp, machine,
    read_json, write_atomically,
};
use crate::train::run_dir::OUTCOME;
use crate::train::{EpochMetrics, TrainConfig, TrainOutcome};

/// Where to work and what to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The results folder: small records only.
    pub out: PathBuf,
    /// Checkpoints, networks and the store of finished results.
    pub work: PathBuf,
    /// Only the steps of this set; records of others that are finished stay in the results.
    pub only: Option<String>,
    /// Forget finished results of this experiment first.
    pub fresh: bool,
}

/// Told what happens; asked whether to stop.
pub trait Progress {
    /// Step `number` (from 1) of `total` begins; `remaining` is estimated from the steps done so far.
    fn step(&mut self, number: usize, total: usize, what: &str, remaining: Option<Duration>);

    /// A training has finished an epoch, of `epochs`.
    fn epoch(&mut self, metrics: &EpochMetrics, epochs: u32);

    /// So many steps were finished before and are not done again.
    fn reused(&mut self, steps: usize);

    /// A training begins or has ended: asked to stop meanwhile, it saves its state first.
    fn training(&mut self, _runs: bool) {}

    /// A training is finished: `before` this experiment began, or in it.
    fn trained(&mut self, run: &Trained, before: bool);

    /// True when the experiment should end as soon as it can go on later.
    fn stop_requested(&self) -> bool;
}

/// An experiment at work.
pub struct Runner<'a> {
    experiment: &'a Experiment,
    workbench: &'a mut dyn Workbench,
    options: &'a Options,
    store: Store,
    plan: Plan,
    /// The games.
    source: PathBuf,
    data: HashMap<Method, DataFacts>,
    results: Results,
    newest: Option<Timestamp>,
}

impl<'a> Runner<'a> {
    /// Does everything that is not done yet and returns all records.
    ///
    /// # Errors
    /// A wrong experiment before any work; later the first step that fails, or [`ExperimentError::Interrupted`]. What
    /// was finished until then is in the results folder and is not done again.
    pub fn run(
        experiment: &'a Experiment,
        workbench: &'a mut dyn Workbench,
        options: &'a Options,
        progress: &mut dyn Progress,
    ) -> Result<Results, ExperimentError> {
        let plan = Plan::of(experiment, workbench)?;
        if let Some(only) = &options.only {
            plan.require_set(only)?;
        }
        let source = experiment.data_path()?;
        let _alone = lock(&options.work)?;
        let results = empty_results(experiment, &plan);
        let store = Store::new(&options.work.join("finished"));
        let mut runner =
            Runner { experiment, workbench, options, store, plan, source, data: HashMap::new(), results, newest: None };
        runner.prepare_data()?;
        if options.fresh {
            runner.forget()?;
        }
        let pending = runner.recall(progress)?;
        runner.work_off(&pending, progress)?;
        Ok(runner.results)
    }

    /// Opens or builds the samples of every method.
    fn prepare_data(&mut self) -> Result<(), ExperimentError> {
        for method in self.plan.methods() {
            let request = DataRequest {
                source: self.source.clone(),
                from_unit: self.experiment.from_unit,
                options: self.experiment.dataset_options(method),
            };
            let begun = Instant::now();
            let facts = self
                .workbench
                .data(&request)
                .map_err(|source| ExperimentError::Step { step: "the data".into(), source })?;
            let key = Key::of("data", &json!([request.options, facts.hash]));
            let stored = match self.store.get("data", &key) {
                Some(stored) => stored,
                None => self.store.put("data", &key, begun.elapsed().as_secs_f64(), ())?,
            };
            self.results.environment.seconds.data += stored.seconds;
            self.data.insert(method, facts);
        }
        Ok(())
    }

    /// Takes in what is finished; the steps still to do, those of `only` if given.
    fn recall(&mut self, progress: &mut dyn Progress) -> Result<Vec<Step>, ExperimentError> {
        self.note_usage()?;
        let mut pending = Vec::new();
        for step in self.plan.steps.clone() {
            if !self.recall_step(step)? {
                pending.push(step);
            } else if let Step::Train(run) = step {
                progress.trained(&self.trained(run)?, true);
            }
        }
        self.save()?;
        if let Some(only) = &self.options.only {
            pending.retain(|&step| self.plan.set_of(step).is_called(only));
        }
        Ok(pending)
    }

    fn work_off(&mut self, pending: &[Step], progress: &mut dyn Progress) -> Result<(), ExperimentError> {
        progress.reused(self.plan.steps.len() - pending.len());
        let mut estimate = Estimate::default();
        for (index, &step) in pending.iter().enumerate() {
            if progress.stop_requested() {
                return Err(ExperimentError::Interrupted);
            }
            let what = self.plan.describe(step);
            progress.step(index + 1, pending.len(), &what, estimate.of(&pending[index..]));
            let begun = Instant::now();
            self.do_step(step, progress)?;
            estimate.took(step, begun.elapsed());
            self.save()?;
        }
        Ok(())
    }

    fn do_step(&mut self, step: Step, progress: &mut dyn Progress) -> Result<(), ExperimentError> {
        // A row that asks for the same under another label may have done it meanwhile.
        if self.recall_step(step)? {
            if let Step::Train(run) = step {
                progress.trained(&self.trained(run)?, false);
            }
            return Ok(());
        }
        let key = self.key(step);
        let failed = |source| ExperimentError::Step { step: self.plan.describe(step), source };
        let begun = Instant::now();
        let seconds = || begun.elapsed().as_secs_f64();
        match step {
            Step::Train(run) => return self.train(run, progress),
            Step::Updates(set) => {
                let games = self.experiment.measure.updates.as_ref().and_then(|measure| measure.games);
                let request = &self.plan.sets[set].request;
                let record = self.workbench.updates(request, &self.source, games).map_err(failed)?;
                self.store.put("updates", &key, seconds(), record)?;
            }
            Step::Activity(_) => {
                let request = self.net_request(step)?;
                let record = self.workbench.activity(&request).map_err(failed)?;
                self.store.put("activity", &key, seconds(), record)?;
            }
            Step::Error(_) => {
                let request = self.net_request(step)?;
                let record = self.workbench.error(&request).map_err(failed)?;
                self.store.put("error", &key, seconds(), record)?;
            }
            Step::Speed(_) => {
                let request = self.net_request(step)?;
                let timing = self.experiment.measure.speed.clone().unwrap_or_default();
                let record = self.workbench.speed(&request, &timing).map_err(failed)?;
                self.store.put("speed", &key, seconds(), record)?;
            }
        }
        self.recall_step(step)?;
        Ok(())
    }

    fn train(&mut self, run: usize, progress: &mut dyn Progress) -> Result<(), ExperimentError> {
        let step = Step::Train(run);
        let (config, folder) = (self.config(run)?, self.folder(run));
        let describe = self.plan.describe(step);
        progress.training(true);
        let mut watch = Watching { progress: &mut *progress, epochs: config.settings.epochs };
        let outcome = self.workbench.train(&TrainRequest { config: &config, folder: folder.clone() }, &mut watch);
        progress.training(false);
        let outcome = outcome.map_err(|source| ExperimentError::Step { step: describe.clone(), source })?;
        let Some(outcome) = outcome else { return Err(ExperimentError::Interrupted) };
        if !folder.join(OUTCOME).is_file() {
            return Err(ExperimentError::NoOutcome { step: describe, path: folder.join(OUTCOME) });
        }
        self.keep_run(run, &outcome)?;
        self.recall_step(step)?;
        progress.trained(&self.trained(run)?, false);
        Ok(())
    }

    /// Where a finished run's network is; makes the link to it.
    fn trained(&self, run: usize) -> Result<Trained, ExperimentError> {
        let (key, folder) = (self.plan.runs[run].key.clone(), absolute(&self.folder(run)));
        let outcome: TrainOutcome = read_json(&folder.join(OUTCOME))?;
        let network = folder.join(outcome.network);
        let link = networks::link(&self.options.out, &key, &network);
        Ok(Trained { key, folder, network, link })
    }

    /// Says in the work folder which runs this experiment uses.
    fn note_usage(&self) -> Result<(), ExperimentError> {
        // Made first: only then there is one name for it, from whatever folder.
        let failed = |source| ExperimentError::Work { path: self.options.out.clone(), source };
        std::fs::create_dir_all(&self.options.out).map_err(failed)?;
        let name = |run| self.folder(run).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let usage = Usage {
            name: self.experiment.name.clone(),
            results: absolute(&self.options.out),
            runs: (0..self.plan.runs.len()).map(name).collect(),
        };
        Ok(usage.note(&self.options.work)?)
    }

    fn keep_run(&self, run: usize, outcome: &TrainOutcome) -> Result<(), ExperimentError> {
        let record = RunRecord::new(self.plan.runs[run].key.clone(), outcome);
        self.store.put("run", &self.key(Step::Train(run)), outcome.seconds, record)?;
        Ok(())
    }

    /// Adds a step's record to the results if it is finished.
    fn recall_step(&mut self, step: Step) -> Result<bool, ExperimentError> {
        match step {
            Step::Train(run) => self.recall_run(run),
            Step::Updates(set) => {
                let Some(record) = self.recall_record("updates", step) else { return Ok(false) };
                self.results.updates.push(SetResult { set: self.plan.sets[set].label.clone(), record });
                Ok(true)
            }
            Step::Activity(run) => {
                let Some(record) = self.recall_record("activity", step) else { return Ok(false) };
                self.results.activity.push(NetResult { key: self.plan.runs[run].key.clone(), record });
                Ok(true)
            }
            Step::Error(run) => {
                let Some(record) = self.recall_record("error", step) else { return Ok(false) };
                self.results.error.push(NetResult { key: self.plan.runs[run].key.clone(), record });
                Ok(true)
            }
            Step::Speed(run) => {
                let Some(record) = self.recall_record("speed", step) else { return Ok(false) };
                self.results.speed.push(NetResult { key: self.plan.runs[run].key.clone(), record });
                Ok(true)
            }
        }
    }

    /// A run is finished when its outcome is there and of the same configuration.
    fn recall_run(&mut self, run: usize) -> Result<bool, ExperimentError> {
        let Ok(outcome) = read_json::<TrainOutcome>(&self.folder(run).join(OUTCOME)) else { return Ok(false) };
        // The folder's name has a hash of the data's content and of the set: neither is told by its path. Without a best
        // epoch it is of a version whose network was the last one's.
        let neutral = |config: TrainConfig| TrainConfig { data: PathBuf::new(), set: String::new(), ..config };
        if neutral(outcome.config.clone()) != neutral(self.config(run)?) || outcome.best_epoch.is_none() {
            return Ok(false);
        }
        let key = self.key(Step::Train(run));
        if self.store.get::<RunRecord>("run", &key).is_none() {
            self.keep_run(run, &outcome)?;
        }
        let Some(stored) = self.store.get::<RunRecord>("run", &key) else { return Ok(false) };
        self.note(stored.recorded);
        self.results.environment.seconds.training += stored.seconds;
        // Kept, perhaps, under another row's label.
        self.results.runs.push(RunRecord { key: self.plan.runs[run].key.clone(), ..stored.record });
        Ok(true)
    }

    fn recall_record<T: DeserializeOwned + Serialize>(&mut self, kind: &str, step: Step) -> Option<T> {
        let stored = self.store.get::<T>(kind, &self.key(step))?;
        self.note(stored.recorded);
        self.results.environment.seconds.measures += stored.seconds;
        Some(stored.record)
    }

    fn note(&mut self, recorded: Timestamp) {
        self.newest = self.newest.take().max(Some(recorded));
    }

    /// Writes the results folder: the experiment's text and every record in the plan's order.
    fn save(&mut self) -> Result<(), ExperimentError> {
        let order: HashMap<_, _> =
            self.plan.runs.iter().enumerate().map(|(index, run)| (run.key.clone(), index)).collect();
        self.results.runs.sort_by_key(|run| order.get(&run.key).copied());
        self.results.activity.sort_by_key(|result| order.get(&result.key).copied());
        self.results.error.sort_by_key(|result| order.get(&result.key).copied());
        self.results.speed.sort_by_key(|result| order.get(&result.key).copied());
        let environment = &mut self.results.environment;
        if let Some(newest) = &self.newest {
            environment.recorded = newest.clone();
        }
        let seconds = &mut environment.seconds;
        seconds.total = seconds.data + seconds.training + seconds.measures;
        write_atomically(&self.options.out.join("experiment.toml"), self.experiment.text.as_bytes())?;
        self.results.save(&self.options.out)?;
        Ok(())
    }

    /// Forgets every finished result of the plan.
    fn forget(&self) -> Result<(), ExperimentError> {
        for &step in &self.plan.steps {
            let kind = match step {
                Step::Updates(_) => "updates",
                Step::Activity(_) => "activity",
                Step::Error(_) => "error",
                Step::Speed(_) => "speed",
                Step::Train(run) => {
                    let path = self.folder(run);
                    if path.exists() {
                        std::fs::remove_dir_all(&path).map_err(|source| ExperimentError::Work { path, source })?;
                    }
                    "run"
                }
            };
            self.store.remove(kind, &self.key(step))?;
        }
        Ok(())
    }

    /// Everything that determines a step's result.
    fn key(&self, step: Step) -> Key {
        let measure = &self.experiment.measure;
        let games = |measure: &Option<NetMeasure>| measure.as_ref().and_then(|measure| measure.games);
        match step {
            Step::Updates(set) => {
                let facts = &self.plan.sets[set].facts;
                let games = measure.updates.as_ref().and_then(|measure| measure.games);
                Key::of("updates", &json!([facts.identity, facts.name, self.hashes(), games]))
            }
            Step::Train(run) => self.run_key(&self.plan.runs[run]),
            Step::Activity(run) => self.net_key("activity", run, &json!(games(&measure.activity))),
            Step::Error(run) => self.net_key("error", run, &json!(games(&measure.error))),
            Step::Speed(run) => {
                let timing = measure.speed.as_ref().map(|m| json!([m.positions, m.repetitions, m.seconds]));
                let machine = [machine::cpu(), machine::back_end()];
                self.net_key("speed", run, &json!(["as given and arranged", timing, machine]))
            }
        }
    }

    fn net_key(&self, kind: &str, run: usize, settings: &serde_json::Value) -> Key {
        Key::of(kind, &json!([self.run_key(&self.plan.runs[run]), "best epoch", settings]))
    }

    fn run_key(&self, run: &PlannedRun) -> Key {
        let set = &self.plan.sets[run.set];
        let facts = self.data.get(&run.key.method);
        let hash = facts.map(|facts| facts.hash.as_str());
        // The same numbers in another unit are other scores; centipawns are left unsaid, as before there was a choice.
        let unit = facts.map(|facts| facts.score_unit).filter(|unit| *unit != ScoreUnit::Centipawns);
        let from_unit = unit.filter(|_| run.key.method == Method::Eval);
        let mut config = TrainConfig { from_unit, ..run.config(set, PathBuf::new()) };
        // A file is known by what it defines, from whatever folder it is named.
        if config.set.ends_with(".toml") {
            config.set = String::new();
        }
        Key::of("run", &json!([in_hashed_order(&config), set.facts.identity, set.facts.definition, hash]))
    }

    fn hashes(&self) -> Option<&str> {
        let first = self.plan.methods().into_iter().next()?;
        self.data.get(&first).map(|facts| facts.hash.as_str())
    }

    fn config(&self, run: usize) -> Result<TrainConfig, ExperimentError> {
        let planned = &self.plan.runs[run];
        let data = self.data_of(planned.key.method)?;
        Ok(planned.config(&self.plan.sets[planned.set], data.path.clone()))
    }

    /// `WORK/METHOD-SET-seedN-KEY`
    fn folder(&self, run: usize) -> PathBuf {
        let run = &self.plan.runs[run];
        // Not by the label: rows of two experiments that train the same share it.
        let set: String = self.plan.sets[run.set].written.chars().take(40).map(plain).collect();
        let RunKey { method, seed, .. } = &run.key;
        self.options.work.join(format!("{}-{set}-seed{}-{}", method.name(), seed.0, self.run_key(run)))
    }

    fn net_request(&self, step: Step) -> Result<NetRequest, ExperimentError> {
        let measure = &self.experiment.measure;
        let (run, settings) = match step {
            Step::Activity(run) => (run, measure.activity.as_ref()),
            Step::Error(run) => (run, measure.error.as_ref()),
            Step::Speed(run) | Step::Train(run) | Step::Updates(run) => (run, None),
        };
        let folder = self.folder(run);
        let outcome: TrainOutcome = read_json(&folder.join(OUTCOME))?;
        Ok(NetRequest {
            network: folder.join(outcome.network),
            weights: folder.join(outcome.weights),
            data: self.source.clone(),
            games: settings.and_then(|measure| measure.games),
        })
    }

    fn data_of(&self, method: Method) -> Result<&DataFacts, ExperimentError> {
        self.data.get(&method).ok_or_else(|| ExperimentError::Step {
            step: "the data".into(),
            source: format!("no samples for the method {method:?}").into(),
        })
    }
}

/// The configuration as JSON, its first keys in the order that keys of finished runs have always been hashed in.
pub(super) fn in_hashed_order(config: &TrainConfig) -> serde_json::Value {
    const FIRST: &str = "set data from_unit source factor method min_ply seed l1 hidden design scheme pawn batch_size \
        epochs epoch_samples learning_rate decay recipe second start validation split_seed eval_loss pqr_loss \
        compact_dead threads device";
    let mut config = serde_json::to_value(config).unwrap_or_default();
    let mut ordered = serde_json::Map::new();
    if let Some(config) = config.as_object_mut() {
        ordered.extend(FIRST.split(' ').filter_map(|key| Some((key.to_owned(), config.shift_remove(key)?))));
        ordered.append(config);
    }
    ordered.into()
}

/// Passes a training's news on.
struct Watching<'a> {
    progress: &'a mut dyn Progress,
    epochs: u32,
}

impl Watch for Watching<'_> {
    fn epoch(&mut self, metrics: &EpochMetrics) {
        self.progress.epoch(metrics, self.epochs);
    }

    fn stop_requested(&self) -> bool {
        self.progress.stop_requested()
    }
}

/// Mean times of trainings and measures so far.
#[derive(Default)]
struct Estimate {
    /// (steps, time) of trainings, then of measures.
    done: [(u32, Duration); 2],
}

impl Estimate {
    fn took(&mut self, step: Step, time: Duration) {
        let (steps, total) = &mut self.done[Estimate::kind(step)];
        *steps += 1;
        *total += time;
    }

    /// Time for the steps left; none before each kind among them was seen once.
    fn of(&self, left: &[Step]) -> Option<Duration> {
        left.iter()
            .map(|&step| {
                let (steps, total) = self.done[Estimate::kind(step)];
                (steps > 0).then(|| total / steps)
            })
            .sum()
    }

    const fn kind(step: Step) -> usize {
        match step {
            Step::Train(_) => 0,
            _ => 1,
        }
    }
}

/// A path that means the same from every folder.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf())
}

/// One experiment at a time in a work folder; the lock goes with the process, however it ends.
pub(super) fn lock(work: &Path) -> Result<File, ExperimentError> {
    let failed = |source| ExperimentError::Work { path: work.to_path_buf(), source };
    std::fs::create_dir_all(work).map_err(failed)?;
    let file = File::create(work.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ExperimentError::Busy(work.to_path_buf())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn empty_results(experiment: &Experiment, plan: &Plan) -> Results {
    let threads = plan.runs.first().map(|run| run.settings.threads()).unwrap_or_else(machine::cores);
    let Machine { cpu, cores, back_end, commit, recorded } = Machine::current();
    let environment = Environment {
        recorded,
        fsbench: env!("CARGO_PKG_VERSION").into(),
        commit,
        cpu,
        back_end,
        cores,
        os: std::env::consts::OS.into(),
        threads,
        seconds: StageSeconds::default(),
    };
    Results {
        study: study(experiment),
        environment,
        runs: Vec::new(),
        updates: Vec::new(),
        activity: Vec::new(),
        error: Vec::new(),
        speed: Vec::new(),
    }
}
