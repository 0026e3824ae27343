//! Loads finished results from the store, saves them to the results folder, and deletes them on request.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ExperimentError;
use super::plan::PlanStep;
use super::result_store::ResultKey;
use super::runner::Runner;
use super::runner_options::{PassPurpose, Stage};
use crate::data::DataFiles;
use crate::record::{
    NetResult, RunRecord, SetResult, StageSeconds, Timestamp, ValidationRecord, read_checked_json, write_atomically,
};
use crate::train::run_dir::{OUTCOME, VALIDATION};
use crate::train::{SecondMethod, TrainConfig, TrainOutcome};
use crate::units::sort_by_key;

impl Runner<'_> {
    /// Adds a step's record to the results if the step is finished, and returns whether it is.
    pub(super) fn load_step(&mut self, step: PlanStep) -> Result<bool, ExperimentError> {
        match step {
            PlanStep::Train(run) => self.load_run(run),
            PlanStep::Validation(run) => Ok(self.load_validation(run)),
            PlanStep::EqualSpeed(index) => {
                let Some(record) = self.load_record("equal speed", step) else { return Ok(false) };
                let key = self.plan.runs[self.plan.equal_speeds[index].run].key.clone();
                self.results.equal_speed.push(NetResult { key, record });
                Ok(true)
            }
            PlanStep::Updates(set) => {
                let Some(record) = self.load_record("updates", step) else { return Ok(false) };
                self.results.updates.push(SetResult { set: self.plan.sets[set].label.clone(), record });
                Ok(true)
            }
            PlanStep::Activity(run) => {
                let Some(record) = self.load_record("activity", step) else { return Ok(false) };
                self.results.activity.push(NetResult { key: self.plan.runs[run].key.clone(), record });
                Ok(true)
            }
            PlanStep::Error(run) => {
                let Some(record) = self.load_record("error", step) else { return Ok(false) };
                self.results.error.push(NetResult { key: self.plan.runs[run].key.clone(), record });
                Ok(true)
            }
            PlanStep::Speed(run) => {
                let Some(record) = self.load_record("speed", step) else { return Ok(false) };
                self.results.speed.push(NetResult { key: self.plan.runs[run].key.clone(), record });
                Ok(true)
            }
            PlanStep::Match(index) => Ok(self.load_match(index)),
            PlanStep::MatchCost(index) => Ok(self.load_match_cost(index)),
            PlanStep::MatchShard(index) => Ok(self.load_shard(index)),
        }
    }

    /// A run is finished if its folder has the outcome of the same configuration.
    fn load_run(&mut self, run: usize) -> Result<bool, ExperimentError> {
        let Ok(outcome) = read_checked_json::<TrainOutcome>(&self.run_folder(run).join(OUTCOME)) else {
            return Ok(false);
        };
        // Paths may differ: the folder's name contains hashes of the files they lead to.
        let without_paths = |config: TrainConfig| {
            let second = config.second.map(|second| SecondMethod { data: DataFiles::default(), ..second });
            TrainConfig { data: DataFiles::default(), set: String::new(), start: None, second, ..config }
        };
        let is_same = without_paths(outcome.config.clone()) == without_paths(self.config(run));
        if !is_same {
            return Ok(false);
        }
        let key = self.key(PlanStep::Train(run));
        if self.store.get::<RunRecord>("run", &key).is_none() {
            self.store_run(run, &outcome)?;
        }
        let Some(stored) = self.store.get::<RunRecord>("run", &key) else { return Ok(false) };
        self.note_time(stored.recorded);
        self.note_seconds(&key, Stage::Training, stored.seconds);
        // The record may have been stored under another row's label.
        self.results.runs.push(RunRecord { key: self.plan.runs[run].key.clone(), ..stored.record });
        Ok(true)
    }

    pub(super) fn store_run(&self, run: usize, outcome: &TrainOutcome) -> Result<(), ExperimentError> {
        let record = RunRecord::new(self.plan.runs[run].key.clone(), outcome);
        self.keep("run", &self.key(PlanStep::Train(run)), outcome.seconds, record)?;
        Ok(())
    }

    /// A validation is finished if the run's folder has the losses that its record describes.
    fn load_validation(&mut self, run: usize) -> bool {
        let key = self.key(PlanStep::Validation(run));
        let Some(stored) = self.store.get::<ValidationRecord>("validation", &key) else { return false };
        let Ok(record) = stored.record.with_losses_of(&self.run_folder(run).join(VALIDATION)) else { return false };
        self.note_time(stored.recorded);
        self.note_seconds(&key, Stage::Measures, stored.seconds);
        self.results.validation.push(NetResult { key: self.plan.runs[run].key.clone(), record });
        true
    }

    fn load_record<T: DeserializeOwned + Serialize>(&mut self, kind: &str, step: PlanStep) -> Option<T> {
        let key = self.key(step);
        let stored = self.store.get::<T>(kind, &key)?;
        self.note_time(stored.recorded);
        self.note_seconds(&key, Stage::Measures, stored.seconds);
        Some(stored.record)
    }

    /// Counts a result's time, once: rows of different labels may share a result.
    pub(super) fn note_seconds(&mut self, key: &ResultKey, stage: Stage, seconds: f64) {
        self.seconds.insert(key.to_string(), (stage, seconds));
    }

    pub(super) fn note_time(&mut self, recorded: Timestamp) {
        self.newest = self.newest.take().max(Some(recorded));
    }

    /// Writes the results folder, but for trials: the experiment's text, and every record in the plan's order.
    pub(super) fn save(&mut self) -> Result<(), ExperimentError> {
        if self.purpose == PassPurpose::Trial {
            return Ok(());
        }
        let order: HashMap<_, _> =
            self.plan.runs.iter().enumerate().map(|(index, run)| (run.key.clone(), index)).collect();
        let sets: HashMap<_, _> =
            self.plan.sets.iter().enumerate().map(|(index, set)| (set.label.clone(), index)).collect();
        sort_by_key(&mut self.results.updates, &|result| sets.get(&result.set).copied());
        sort_by_key(&mut self.results.runs, &|run| order.get(&run.key).copied());
        sort_by_key(&mut self.results.validation, &|result| order.get(&result.key).copied());
        sort_by_key(&mut self.results.activity, &|result| order.get(&result.key).copied());
        sort_by_key(&mut self.results.error, &|result| order.get(&result.key).copied());
        sort_by_key(&mut self.results.speed, &|result| order.get(&result.key).copied());
        sort_by_key(&mut self.results.equal_speed, &|result| order.get(&result.key).copied());
        sort_by_key(&mut self.results.matches, &|result| (order.get(&result.key).copied(), result.record.kind));
        let timed_on = self.timed_on_with_cpu();
        let environment = &mut self.results.environment;
        environment.timed_on = timed_on;
        if let Some(newest) = &self.newest {
            environment.recorded = newest.clone();
        }
        // In the order of the keys, so that the sums do not depend on the order of the steps.
        let sum = |stage: Stage| self.seconds.values().filter(|(of, _)| *of == stage).map(|(_, seconds)| seconds).sum();
        let [data, training, measures, matches] =
            [Stage::Data, Stage::Training, Stage::Measures, Stage::Matches].map(sum);
        let total = data + training + measures + matches;
        environment.seconds = StageSeconds { data, training, measures, matches, total };
        write_atomically(&self.options.out.join("experiment.toml"), self.experiment.text.as_bytes())?;
        self.results.save(&self.options.out)?;
        Ok(())
    }

    /// The named kind of machine that measured times, with the CPU that it had.
    fn timed_on_with_cpu(&self) -> Option<String> {
        let node_type = self.options.timed_on.as_ref()?;
        let of_speed = self.results.speed.iter().filter_map(|result| result.record.machine.as_ref());
        let of_widths = self.results.equal_speed.iter().map(|result| &result.record.machine);
        Some(match of_speed.chain(of_widths).next() {
            Some(machine) => format!("{node_type} ({})", machine.cpu),
            None => node_type.clone(),
        })
    }

    /// Deletes the finished results of the requested steps, except steps with keys in `kept`.
    pub(super) fn delete_finished(&mut self, kept: &HashSet<ResultKey>) -> Result<(), ExperimentError> {
        // A match's key covers the networks' files, so all keys come before any file is removed.
        let requested = self.plan.steps.iter().filter(|step| self.is_requested(**step));
        let keys: Vec<_> =
            requested.map(|&step| (step, self.key(step))).filter(|(_, key)| !kept.contains(key)).collect();
        for (step, key) in keys {
            let kind = match step {
                PlanStep::Train(run) => {
                    let path = self.run_folder(run);
                    if path.exists() {
                        let failed = |source| ExperimentError::WorkFolder { path: path.clone(), source };
                        std::fs::remove_dir_all(&path).map_err(failed)?;
                    }
                    "run"
                }
                step => step.kind(),
            };
            self.store.remove(kind, &key)?;
        }
        self.played.forget_networks();
        Ok(())
    }
}
