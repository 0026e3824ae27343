//! The training of a run, in a folder of its own that is named by its key.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{PlanStep, Step, StepKind, StepWork};
use crate::data::{DataFiles, Method, ScoreUnit, content_hash};
use crate::experiment::ExperimentError;
use crate::experiment::earlier::absolute;
use crate::experiment::estimate::Rates;
use crate::experiment::executor::{StepError, TrainRequest};
use crate::experiment::network_links::{self, TrainedRun};
use crate::experiment::plan::{Plan, PlannedStart};
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::{ExperimentMonitor, FinishedWhen, PassPurpose, Stage};
use crate::record::{RunKey, RunRecord, read_checked_json, to_file_name_char};
use crate::train::run_dir::{self, OUTCOME};
use crate::train::{DeviceChoice, SecondMethod, TrainConfig, TrainError, TrainOutcome};

/// The index is into [`Plan::runs`].
#[derive(Clone, Copy, Debug)]
pub struct Train(pub usize);

/// What became of a training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TrainRecord {
    Done(Box<RunRecord>),
    /// Such a network cannot be trained; why not.
    Refused {
        refused: String,
    },
}

impl Step for Train {
    fn kind(&self) -> StepKind {
        StepKind { name: "train", version: 1, stage: Stage::Training, is_resumable: true }
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("training {}", plan.runs[self.0].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let run = &runner.plan.runs[self.0];
        let set = &runner.plan.sets[run.set];
        let data = runner.data.get(run.data);
        // The same numbers are other scores in another unit.
        let unit = data.map(|data| data.score_unit).filter(|unit| *unit != ScoreUnit::Centipawns);
        let from_unit = unit.filter(|_| run.key.method == Method::Eval);
        let mut config = run.config(set, PathBuf::new(), PathBuf::new());
        config.reading.from_unit = from_unit;
        // A file is identified by its definition, not by its path.
        if config.set.ends_with(".toml") {
            config.set = String::new();
        }
        if let Some(PlannedStart::Network { hash, .. }) = &run.start {
            config.start_hash = Some(hash.clone());
        }
        let second = run.second_data.and_then(|second| runner.data.get(second));
        let hashes = [data, second].map(|data| data.map(|data| data.hash.as_str()));
        json!([config, set.resolved.identity, set.resolved.definition, hashes])
    }

    fn needs(&self, plan: &Plan) -> Vec<PlanStep> {
        match plan.runs[self.0].start {
            Some(PlannedStart::Run(other)) => vec![Train(other).step()],
            _ => Vec::new(),
        }
    }

    fn needs_gpu(&self, plan: &Plan) -> bool {
        plan.runs[self.0].settings.device == DeviceChoice::Cuda
    }

    fn threads(&self, plan: &Plan) -> usize {
        plan.runs[self.0].settings.threads()
    }

    fn estimate(&self, _plan: &Plan, rates: &Rates) -> f64 {
        rates.trainings[self.0]
    }

    fn tell(
        &self,
        runner: &Runner<'_>,
        when: FinishedWhen,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<(), ExperimentError> {
        // The networks of a trial are not among the results, and those of a share are for its loss only.
        if runner.purpose == PassPurpose::Results && runner.plan.runs[self.0].share.is_none() {
            monitor.trained(&self.trained_run(runner)?, when);
        }
        Ok(())
    }

    fn delete_files(&self, runner: &Runner<'_>) -> Result<(), ExperimentError> {
        let path = runner.run_folder(self.0);
        match std::fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(ExperimentError::WorkFolder { path, source })
            }
            _ => Ok(()),
        }
    }
}

impl StepWork for Train {
    type Record = TrainRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<TrainRecord>, StepError> {
        let config = runner.config(self.0);
        let run = &runner.plan.runs[self.0];
        if let (Some(PlannedStart::Run(other)), None) = (&run.start, &config.start) {
            let other = Train(*other).name(&runner.plan);
            return Err(format!("it begins with the network of the {other}, which is not done").into());
        }
        let (key, may_fail) = (run.key.clone(), run.may_fail);
        let request = TrainRequest { config: &config, folder: runner.run_folder(self.0) };
        let is_of_network =
            |error: &StepError| error.downcast_ref::<TrainError>().is_some_and(TrainError::is_of_network);
        let outcome = match runner.executor.train(&request, monitor) {
            Err(error) if may_fail && is_of_network(&error) => {
                return Ok(Some(TrainRecord::Refused { refused: error.to_string() }));
            }
            done => done?,
        };
        let Some(outcome) = outcome else { return Ok(None) };
        let path = request.folder.join(OUTCOME);
        if !path.is_file() {
            return Err(format!("the trainer ended without writing {}", path.display()).into());
        }
        Ok(Some(TrainRecord::Done(Box::new(RunRecord::new(key, &outcome)))))
    }

    fn show(self, record: TrainRecord, runner: &mut Runner<'_>) {
        match record {
            TrainRecord::Done(record) => {
                // The record may have been stored under another row's label.
                let key = runner.plan.runs[self.0].key.clone();
                runner.results.runs.push(RunRecord { key, ..*record });
            }
            TrainRecord::Refused { refused } => runner.refused.push((self.0, refused)),
        }
    }

    fn checked(self, record: TrainRecord, runner: &Runner<'_>) -> Option<TrainRecord> {
        let is_known = match record {
            TrainRecord::Done(_) => self.outcome(runner).is_some(),
            TrainRecord::Refused { .. } => runner.plan.runs[self.0].may_fail,
        };
        is_known.then_some(record)
    }

    fn recover(self, runner: &Runner<'_>) -> Option<TrainRecord> {
        let record = RunRecord::new(runner.plan.runs[self.0].key.clone(), &self.outcome(runner)?);
        Some(TrainRecord::Done(Box::new(record)))
    }

    fn own_seconds(self, runner: &Runner<'_>) -> Option<f64> {
        Some(self.outcome(runner)?.seconds)
    }

    fn made(self, _record: &TrainRecord, runner: &Runner<'_>) -> Option<String> {
        let network = runner.network(self.0).ok()?;
        Some(blake3::hash(&std::fs::read(network).ok()?).to_hex().to_string())
    }
}

impl Train {
    /// The outcome in the run's folder, if it is of the same configuration.
    fn outcome(self, runner: &Runner<'_>) -> Option<TrainOutcome> {
        let outcome: TrainOutcome = read_checked_json(&runner.run_folder(self.0).join(OUTCOME)).ok()?;
        // Paths may differ: the folder's name contains hashes of the files they lead to.
        let without_paths = |config: TrainConfig| {
            let second = config.second.map(|second| SecondMethod { data: DataFiles::default(), ..second });
            TrainConfig { data: DataFiles::default(), set: String::new(), start: None, second, ..config }
        };
        (without_paths(outcome.config.clone()) == without_paths(runner.config(self.0))).then_some(outcome)
    }

    /// The finished run, with a link to its network in the results folder.
    fn trained_run(self, runner: &Runner<'_>) -> Result<TrainedRun, ExperimentError> {
        let key = runner.plan.runs[self.0].key.clone();
        let folder = absolute(&runner.run_folder(self.0));
        let outcome: TrainOutcome = read_checked_json(&folder.join(OUTCOME))?;
        let network = folder.join(outcome.network);
        let link = network_links::link(&runner.options.out, &key, &network);
        Ok(TrainedRun { key, folder, network, link })
    }
}

impl Runner<'_> {
    /// The trainer's configuration of a run. `start` is empty if the other run that it begins with is not done.
    pub(in crate::experiment) fn config(&self, run: usize) -> TrainConfig {
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
    pub(in crate::experiment) fn run_folder(&self, run: usize) -> PathBuf {
        let key = self.key(&Train(run).step());
        let run = &self.plan.runs[run];
        let set: String = self.plan.sets[run.set].written.chars().take(40).map(to_file_name_char).collect();
        let RunKey { method, seed, .. } = &run.key;
        self.options.work.join(format!("{}-{set}-seed{}-{key}", method.name(), seed.0))
    }
}
