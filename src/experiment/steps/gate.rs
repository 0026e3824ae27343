//! The match that decides whether a loop takes its new network, and the last one of a loop, which decides nothing.

use serde_json::{Value, json};

use super::self_play::planned;
use super::{PlanStep, PlannedGate, Step, StepKind, StepWork};
use crate::experiment::ExperimentError;
use crate::experiment::executor::{MatchRequest, StepError};
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::{ExperimentMonitor, Stage};
use crate::output;
use crate::record::{MatchKind, MatchRecord};

#[derive(Clone, Copy, Debug)]
pub struct Gate;

/// The network in question, beside its games.
const NETWORK: &str = "network.safetensors";

impl Step for Gate {
    fn kind(&self) -> StepKind {
        StepKind { name: "gate", version: 1, stage: Stage::Matches, is_resumable: true }
    }

    fn index(&self) -> usize {
        0
    }

    fn name(&self, plan: &Plan) -> String {
        let Some(PlannedGate { names: [player, opponent], sprt, .. }) = &plan.self_play.gate else {
            return String::new();
        };
        let what = if sprt.is_some() { "gate" } else { "match" };
        format!("{what} of {player} against {opponent}")
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        let (Some(gate), Some(measure)) = (&runner.plan.self_play.gate, &runner.experiment.matches) else {
            return Value::Null;
        };
        let networks = gate.networks.each_ref().map(|network| network.hash.as_str());
        let setup = runner.match_setup.as_ref().map(|setup| json!([setup.openings, setup.search]));
        let options = &measure.options;
        let rules = json!([options.adjudication, options.hash, options.opening_plies, gate.seed, options.pairs()]);
        json!([networks, measure.terms.nodes, setup, rules, gate.sprt])
    }

    fn needs(&self, _plan: &Plan) -> Vec<PlanStep> {
        Vec::new()
    }

    fn delete_files(&self, runner: &Runner<'_>) -> Result<(), ExperimentError> {
        let Some(gate) = &runner.plan.self_play.gate else { return Ok(()) };
        let path = runner.in_results(&gate.folder).join("games.journal");
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(ExperimentError::WorkFolder { path, source })
            }
            _ => Ok(()),
        }
    }
}

impl StepWork for Gate {
    type Record = MatchRecord;

    fn run(
        self,
        runner: &mut Runner<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<MatchRecord>, StepError> {
        let gate = planned(runner.plan.self_play.gate.as_ref())?;
        let settings = planned(runner.experiment.matches.as_ref())?;
        let folder = runner.in_results(&gate.folder);
        std::fs::create_dir_all(&folder)?;
        let network = std::fs::read(&gate.networks[0].path)?;
        output::write(&folder.join(NETWORK), &network)?;
        let request = MatchRequest {
            kind: MatchKind::EqualNodes,
            networks: gate.networks.each_ref().map(|network| network.path.clone()),
            names: gate.names.clone(),
            settings,
            openings: runner.openings.clone(),
            pairs: settings.options.pairs(),
            book_part: None,
            sprt: gate.sprt,
            seed: gate.seed,
            own: Default::default(),
            cost: None,
            folder,
        };
        runner.executor.play(&request, &*monitor)
    }

    fn show(self, record: MatchRecord, runner: &mut Runner<'_>) {
        let seconds = runner.seconds_of(&self.step());
        runner.self_play.gate = Some((record, seconds));
    }

    /// The games and the network stay beside the data of the iteration.
    fn checked(self, record: MatchRecord, runner: &Runner<'_>) -> Option<MatchRecord> {
        let folder = runner.in_results(&runner.plan.self_play.gate.as_ref()?.folder);
        [NETWORK, "games.pgn"].iter().all(|name| folder.join(name).is_file()).then_some(record)
    }
}
