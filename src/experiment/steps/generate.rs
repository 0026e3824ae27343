//! Games of a network against itself, for a loop's next training.

use serde_json::{Value, json};

use super::self_play::{make_folder_of, planned};
use super::{PlanStep, Step, StepKind, StepWork};
use crate::alpha_beta::search_digest;
use crate::data::content_hash;
use crate::experiment::ExperimentError;
use crate::experiment::earlier::absolute;
use crate::experiment::executor::{GenerationRequest, StepError};
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::{ExperimentMonitor, Stage};
use crate::generate::GenerateGoal;
use crate::pipeline::journal_path;
use crate::record::GeneratedGames;

#[derive(Clone, Copy, Debug)]
pub struct Generate;

impl Step for Generate {
    fn kind(&self) -> StepKind {
        StepKind { name: "self-play", version: 1, stage: Stage::Data, is_resumable: true }
    }

    fn index(&self) -> usize {
        0
    }

    fn name(&self, plan: &Plan) -> String {
        plan.self_play.generation.as_ref().map(|generation| generation.name.clone()).unwrap_or_default()
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let Some(generation) = &runner.plan.self_play.generation else { return Value::Null };
        let goal = match generation.goal {
            GenerateGoal::Games(games) => json!(["games", games]),
            GenerateGoal::Positions(positions) => json!(["positions", positions]),
        };
        let hash = runner.experiment.matches.as_ref().map(|measure| measure.options.hash);
        json!([generation.network.hash, generation.settings, generation.book, goal, hash, search_digest()])
    }

    fn needs(&self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    fn delete_files(&self, runner: &Runner<'_>) -> Result<(), ExperimentError> {
        let Some(generation) = &runner.plan.self_play.generation else { return Ok(()) };
        let file = runner.in_results(&generation.file);
        for path in [journal_path(&file), file] {
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ExperimentError::WorkFolder { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl StepWork for Generate {
    type Record = GeneratedGames;

    fn run(
        self,
        runner: &mut Runner<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<GeneratedGames>, StepError> {
        let generation = planned(runner.plan.self_play.generation.as_ref())?;
        let out = runner.in_results(&generation.file);
        make_folder_of(&out)?;
        let options = planned(runner.experiment.matches.as_ref()).map(|measure| &measure.options)?;
        let request = GenerationRequest {
            network: &generation.network.path,
            settings: &generation.settings,
            goal: generation.goal,
            hash: options.hash,
            concurrency: options.concurrency,
            out: &out,
        };
        runner.executor.generate(&request, &*monitor)
    }

    fn show(self, record: GeneratedGames, runner: &mut Runner<'_>) {
        let Some(generation) = &runner.plan.self_play.generation else { return };
        let path = absolute(&runner.in_results(&generation.file));
        let seconds = runner.seconds_of(&self.step());
        runner.self_play.games = Some((path, GeneratedGames { seconds, ..record }));
    }

    fn checked(self, record: GeneratedGames, runner: &Runner<'_>) -> Option<GeneratedGames> {
        let file = &runner.plan.self_play.generation.as_ref()?.file;
        content_hash(&runner.in_results(file)).is_ok_and(|hash| hash == record.hash).then_some(record)
    }
}
