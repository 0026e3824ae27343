//! The keys of results: everything that a result depends on. A changed key makes an experiment redo the step.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::plan::{PlanStep, PlannedEqualSpeed, PlannedRun, PlannedStart};
use super::result_store::ResultKey;
use super::runner::Runner;
use super::spec::NetMeasure;
use crate::data::{Method, ScoreUnit, content_hash};
use crate::features::EncoderKind;
use crate::json::to_value;
use crate::record::{RunKey, machine, to_file_name_char};
use crate::train::{TrainConfig, TrainerChoice, run_dir};

impl Runner<'_> {
    pub(super) fn key(&self, step: PlanStep) -> ResultKey {
        let measure = &self.experiment.measure;
        let games = |measure: &Option<NetMeasure>| measure.as_ref().and_then(|measure| measure.limit.games);
        match step {
            PlanStep::Updates(set) => {
                let resolved = &self.plan.sets[set].resolved;
                let games = measure.updates.as_ref().and_then(|measure| measure.games);
                ResultKey::of("updates", &json!([resolved.identity, resolved.name, self.data_hash(), games]))
            }
            PlanStep::Train(run) => self.run_key(&self.plan.runs[run]),
            // Raised when the file's classes change.
            PlanStep::Validation(run) => self.net_key("validation", run, &json!(1)),
            PlanStep::Activity(run) => self.net_key("activity", run, &json!(games(&measure.activity))),
            PlanStep::Error(run) => self.net_key("error", run, &json!(games(&measure.error))),
            PlanStep::Speed(run) => {
                let timing = measure.speed.as_ref().map(|measure| json!(measure.options));
                self.net_key("speed", run, &json!(["as given and arranged", timing, self.timed_on(&[run])]))
            }
            PlanStep::EqualSpeed(index) => {
                let PlannedEqualSpeed { run, reference, is_search, own } = self.plan.equal_speeds[index];
                let timed_on = self.timed_on(&[run, reference]);
                let reference = self.run_key(&self.plan.runs[reference]);
                let games = self.data_hash();
                let options = self.experiment.equal_speed.as_ref().map(|measure| measure.options);
                let measure = json!([reference, is_search, options, timed_on, games, own]);
                self.net_key("equal speed", run, &measure)
            }
            PlanStep::Match(index) => self.match_key(index),
            PlanStep::MatchCost(index) => self.match_cost_key(index),
            PlanStep::MatchShard(index) => self.shard_key(index),
        }
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

    fn net_key(&self, kind: &str, run: usize, settings: &Value) -> ResultKey {
        ResultKey::of(kind, &json!([self.run_key(&self.plan.runs[run]), "best epoch", settings]))
    }

    pub(super) fn run_key(&self, run: &PlannedRun) -> ResultKey {
        let set = &self.plan.sets[run.set];
        let data = self.data.get(run.data);
        let hash = data.map(|data| data.hash.as_str());
        // The unit belongs to the key because the same numbers are other scores in another unit. Centipawns are left
        // out, which keeps the keys of results from before other units existed.
        let unit = data.map(|data| data.score_unit).filter(|unit| *unit != ScoreUnit::Centipawns);
        let from_unit = unit.filter(|_| run.key.method == Method::Eval);
        let mut config = TrainConfig { from_unit, ..run.config(set, PathBuf::new(), PathBuf::new()) };
        // A file is identified by its definition, not by its path.
        if config.set.ends_with(".toml") {
            config.set = String::new();
        }
        config.start_hash = match &run.start {
            None => None,
            Some(PlannedStart::Network { hash, .. }) => Some(hash.clone()),
            // Known before the other run is trained.
            Some(PlannedStart::Run(other)) => Some(self.run_key(&self.plan.runs[*other]).to_string()),
        };
        let resolved = &set.resolved;
        let second = run.second_data.and_then(|second| self.data.get(second));
        match second {
            None => {
                ResultKey::of("run", &json!([in_hashed_order(&config), resolved.identity, resolved.definition, hash]))
            }
            Some(second) => {
                let config = in_hashed_order(&config);
                ResultKey::of("run", &json!([config, resolved.identity, resolved.definition, hash, second.hash]))
            }
        }
    }

    /// Hash of the first row's samples, which stands for the games.
    fn data_hash(&self) -> Option<&str> {
        self.data.first().map(|data| data.hash.as_str())
    }

    /// The trainer's configuration of a run. `start` is empty if the other run that it begins with is not done.
    pub(super) fn config(&self, run: usize) -> TrainConfig {
        let planned = &self.plan.runs[run];
        let path = |data: usize| self.data.get(data).map(|data| data.path.clone()).unwrap_or_default();
        let data = path(planned.data);
        let second = planned.second_data.map(path).unwrap_or_default();
        let config = planned.config(&self.plan.sets[planned.set], data, second);
        let (start, start_hash) = match &planned.start {
            None => (None, None),
            Some(PlannedStart::Network { path, hash }) => (Some(path.clone()), Some(hash.clone())),
            Some(PlannedStart::Run(other)) => {
                let path = run_dir::weights(&self.run_folder(*other), false).ok();
                let hash = path.as_deref().and_then(|path| content_hash(path).ok());
                (path, hash)
            }
        };
        TrainConfig { start, start_hash, ..config }
    }

    /// The run's folder: `WORK/METHOD-SET-seedN-KEY`. It has no label, so that experiments with equal runs share them.
    pub(super) fn run_folder(&self, run: usize) -> PathBuf {
        let run = &self.plan.runs[run];
        let set: String = self.plan.sets[run.set].written.chars().take(40).map(to_file_name_char).collect();
        let RunKey { method, seed, .. } = &run.key;
        self.options.work.join(format!("{}-{set}-seed{}-{}", method.name(), seed.0, self.run_key(run)))
    }
}

/// The configuration as JSON, its first keys in the order in which the keys of finished runs have always been hashed.
pub(super) fn in_hashed_order(config: &TrainConfig) -> Value {
    const FIRST: &str = "set data from_unit source factor method min_ply seed l1 hidden design scheme pawn batch_size \
        epochs epoch_samples learning_rate decay recipe second start validation split_seed eval_loss pqr_loss \
        compact_dead threads device";
    let mut config = to_value(config).unwrap_or_default();
    let mut ordered = serde_json::Map::new();
    if let Some(config) = config.as_object_mut() {
        // Left out where it is the usual one.
        if config.get("trainer") == Some(&json!(TrainerChoice::Kernels)) {
            config.shift_remove("trainer");
        }
        ordered.extend(FIRST.split(' ').filter_map(|key| Some((key.to_owned(), config.shift_remove(key)?))));
        ordered.append(config);
    }
    ordered.into()
}
