//! The network that plays a loop's first games: the user's, or one of material values.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::self_play::{make_folder_of, planned};
use super::{HashedFile, PlanStep, Step, StepKind, StepWork};
use crate::data::content_hash;
use crate::experiment::earlier::absolute;
use crate::experiment::executor::{LoopStart, StepError};
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::{ExperimentMonitor, Stage};
use crate::features::FeatureSet;
use crate::train::TrainConfig;

#[derive(Clone, Copy, Debug)]
pub struct StartNetwork;

/// The network in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartedNetwork {
    hash: String,
    start: LoopStart,
}

impl Step for StartNetwork {
    fn kind(&self) -> StepKind {
        StepKind { name: "start network", version: 1, stage: Stage::Data, is_resumable: false }
    }

    fn index(&self) -> usize {
        0
    }

    fn name(&self, _plan: &Plan) -> String {
        "the network that plays the first games".into()
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let Some(start) = &runner.plan.self_play.start else { return Value::Null };
        let hash = start.config.start.as_deref().map(|path| content_hash(path).ok());
        // A file is identified by its definition, not by its path.
        let definition = FeatureSet::resolve(&start.config.set).map(|set| set.definition().to_string()).ok();
        json!([TrainConfig { set: String::new(), start: None, ..start.config.clone() }, definition, hash])
    }

    fn needs(&self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    fn threads(&self, _plan: &Plan) -> usize {
        1
    }
}

impl StepWork for StartNetwork {
    type Record = StartedNetwork;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<StartedNetwork>, StepError> {
        let start = planned(runner.plan.self_play.start.as_ref())?;
        let path = runner.in_results(&start.file);
        make_folder_of(&path)?;
        let start = runner.executor.starting_network(&start.config, Some(&path))?;
        Ok(Some(StartedNetwork { hash: content_hash(&path)?, start }))
    }

    fn show(self, record: StartedNetwork, runner: &mut Runner<'_>) {
        let Some(start) = &runner.plan.self_play.start else { return };
        let path = absolute(&runner.in_results(&start.file));
        runner.self_play.start = Some((HashedFile { path, hash: record.hash }, record.start));
    }

    fn checked(self, record: StartedNetwork, runner: &Runner<'_>) -> Option<StartedNetwork> {
        let file = &runner.plan.self_play.start.as_ref()?.file;
        content_hash(&runner.in_results(file)).is_ok_and(|hash| hash == record.hash).then_some(record)
    }
}
