//! The keys of results: everything that a result depends on. A changed key makes an experiment redo the step.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::ExperimentError;
use super::executor::PreparedData;
use super::plan::{PlanStep, PlannedEqualSpeed, PlannedRun};
use super::result_store::ResultKey;
use super::runner::Runner;
use super::spec::NetMeasure;
use crate::data::{Method, ScoreUnit};
use crate::record::{RunKey, machine, to_file_name_char};
use crate::train::TrainConfig;

impl Runner<'_> {
    pub(super) fn key(&self, step: PlanStep) -> ResultKey {
        let measure = &self.experiment.measure;
        let games = |measure: &Option<NetMeasure>| measure.as_ref().and_then(|measure| measure.games);
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
                let timing = measure.speed.as_ref().map(|m| json!([m.positions, m.repetitions, m.seconds]));
                let machine = [machine::cpu(), machine::back_end()];
                self.net_key("speed", run, &json!(["as given and arranged", timing, machine]))
            }
            PlanStep::EqualSpeed(index) => {
                let PlannedEqualSpeed { run, reference, is_search } = self.plan.equal_speeds[index];
                let reference = self.run_key(&self.plan.runs[reference]);
                let machine = [machine::cpu(), machine::back_end()];
                let games = self.data_hash();
                let measure = json!([reference, is_search, self.experiment.equal_speed, machine, games]);
                self.net_key("equal speed", run, &measure)
            }
            PlanStep::Match(index) => self.match_key(index),
        }
    }

    fn net_key(&self, kind: &str, run: usize, settings: &Value) -> ResultKey {
        ResultKey::of(kind, &json!([self.run_key(&self.plan.runs[run]), "best epoch", settings]))
    }

    pub(super) fn run_key(&self, run: &PlannedRun) -> ResultKey {
        let set = &self.plan.sets[run.set];
        let data = self.data.get(&run.key.method);
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
        // And the network that the run begins with by its hash.
        config.start = None;
        let resolved = &set.resolved;
        let second = run.second.and_then(|second| self.data.get(&second.method));
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

    /// Hash of the first method's samples, which stands for the games.
    fn data_hash(&self) -> Option<&str> {
        let first = self.plan.methods().into_iter().next()?;
        self.data.get(&first).map(|data| data.hash.as_str())
    }

    pub(super) fn config(&self, run: usize) -> Result<TrainConfig, ExperimentError> {
        let planned = &self.plan.runs[run];
        let data = self.data_of(planned.key.method)?;
        let second =
            planned.second.map(|second| self.data_of(second.method).map(|data| data.path.clone())).transpose()?;
        Ok(planned.config(&self.plan.sets[planned.set], data.path.clone(), second.unwrap_or_default()))
    }

    /// The run's folder: `WORK/METHOD-SET-seedN-KEY`. It has no label, so that experiments with equal runs share them.
    pub(super) fn run_folder(&self, run: usize) -> PathBuf {
        let run = &self.plan.runs[run];
        let set: String = self.plan.sets[run.set].written.chars().take(40).map(to_file_name_char).collect();
        let RunKey { method, seed, .. } = &run.key;
        self.options.work.join(format!("{}-{set}-seed{}-{}", method.name(), seed.0, self.run_key(run)))
    }

    fn data_of(&self, method: Method) -> Result<&PreparedData, ExperimentError> {
        self.data.get(&method).ok_or_else(|| ExperimentError::Step {
            step: "the data".into(),
            source: format!("no samples for the method {method:?}").into(),
        })
    }
}

/// The configuration as JSON, its first keys in the order in which the keys of finished runs have always been hashed.
pub(super) fn in_hashed_order(config: &TrainConfig) -> Value {
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
