//! What an iteration of a loop will take, from a short rehearsal: some games of the starting network, and a training on
//! them.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use toml::Spanned;

use super::table::LearningLoop;
use crate::experiment::ExperimentError;
use crate::experiment::estimate::RunEstimate;
use crate::experiment::executor::{Executor, GenerationRequest};
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::{ExperimentMonitor, RunnerOptions};
use crate::experiment::spec::{ComparisonRow, Experiment};
use crate::generate::GenerateGoal;
use crate::units::Seed;

/// An iteration of a loop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LoopEstimate {
    /// Searched positions that an iteration adds.
    pub positions: u64,
    /// Rate of the rehearsed games on this machine.
    pub positions_per_second: f64,
    /// Time of an iteration's games.
    pub games_seconds: f64,
    /// Searched positions that the last iteration's training sees, if there are as many iterations as said below.
    pub window: u64,
    /// Time of that training.
    pub training_seconds: f64,
    /// Games of a gate, at most.
    pub gate_games: u64,
    /// Time of a gate that takes all of them; most are decided earlier.
    pub gate_seconds: f64,
    /// About as many iterations there will be, at least.
    pub iterations: u64,
    /// Of the last iteration: its games, the samples of its training, its run's folder.
    pub disk_bytes: u64,
}

/// Batches that the rehearsed games should fill.
const BATCHES: u64 = 4;
/// Fewer positions say little about the rate.
const LEAST_POSITIONS: u64 = 2_000;
/// Beyond so many iterations nothing is estimated.
const MOST_ITERATIONS: u64 = 100_000;
/// Bytes of a sample in a `.fsd` file.
const SAMPLE_BYTES: u64 = 40;

impl LearningLoop {
    /// # Errors
    /// When the loop cannot begin, or a rehearsal fails.
    pub(in crate::experiment) fn estimate(
        &self,
        base: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<RunEstimate, ExperimentError> {
        self.check(base, executor, &options.out, options.fresh)?;
        let failed = |source| ExperimentError::WorkFolder { path: options.work.clone(), source };
        std::fs::create_dir_all(&options.work).map_err(failed)?;
        let folder = tempfile::Builder::new().prefix("rehearsal-").tempdir_in(&options.work).map_err(failed)?;
        let step = |step: &str, source| ExperimentError::Step { step: step.into(), source };
        let network = folder.path().join("start.safetensors");
        let config = self.config(base)?;
        let starting = |source| step("the starting network", source);
        executor.starting_network(&config, Some(&network)).map_err(starting)?;

        let rehearsed = LEAST_POSITIONS.max(BATCHES * config.settings.batch_size as u64);
        let goal = match self.terms.goal() {
            GenerateGoal::Positions(positions) => GenerateGoal::Positions(positions.min(rehearsed)),
            GenerateGoal::Games(_) => GenerateGoal::Positions(rehearsed),
        };
        let options_of_match = base.matches.as_ref().map(|measure| measure.options.clone()).unwrap_or_default();
        let out = folder.path().join(self.terms.games_file());
        let settings = self.terms.settings(Seed(0), self.book(base)?.map(|(path, _)| path));
        let request = GenerationRequest {
            network: &network,
            settings: &settings,
            goal,
            hash: options_of_match.hash,
            concurrency: options_of_match.concurrency,
            out: &out,
        };
        monitor.step(1, 2, "rehearsing the games", None);
        let begun = Instant::now();
        let played = executor.generate(&request, &*monitor).map_err(|source| step("rehearsing the games", source))?;
        let Some(played) = played else { return Err(ExperimentError::Interrupted) };
        let seconds = begun.elapsed().as_secs_f64();

        let row = ComparisonRow { start: None, ..base.rows[0].clone() };
        let data = vec![Spanned::new(0..0, out.display().to_string())];
        let training = Experiment { rows: vec![row], data, matches: None, learning_loop: None, ..base.clone() };
        let estimate = Runner::estimate(&training, executor, options, monitor)?;
        let positions_per_second = played.positions as f64 / seconds.max(1e-9);
        let seconds_per_game = seconds / played.games.max(1) as f64;
        let positions = match self.terms.goal() {
            GenerateGoal::Positions(positions) => positions,
            GenerateGoal::Games(games) => u64::from(games) * played.positions / played.games.max(1),
        };
        let terms = &self.terms;
        // In proportion to the positions: the rehearsed row has the samples of the rehearsed games.
        let epoch = config.settings.epoch_samples.unwrap_or(u64::MAX);
        let row = estimate.rows.first();
        let kept = row.map_or(1.0, |row| row.training_samples as f64 / played.positions.max(1) as f64);
        let training_seconds = |trained: u64| {
            let samples = (kept * trained as f64).min(epoch as f64) * f64::from(config.settings.epochs);
            row.map_or(0.0, |row| samples / row.samples_per_second.max(1e-9))
        };
        let gate_games = 2 * options_of_match.pairs();
        let gate_nodes = base.matches.as_ref().and_then(|measure| measure.terms.nodes).unwrap_or_default();
        let nodes = terms.nodes.or(terms.soft_nodes).unwrap_or(1);
        let gate_seconds = seconds_per_game * gate_games as f64 * gate_nodes as f64 / nodes as f64;
        let games_seconds = positions as f64 / positions_per_second;
        let games_bytes = out.metadata().map_or(0, |file| file.len()) * positions / played.positions.max(1);
        let bytes = |trained: u64| games_bytes + (kept * trained as f64) as u64 * SAMPLE_BYTES + estimate.disk_bytes;
        // The window grows with every iteration, as far as it goes.
        let [mut iterations, mut trained, mut disk_bytes] = [0, 0, 0];
        let mut seconds = 0.0;
        let most = terms.iterations.map_or(MOST_ITERATIONS, |most| MOST_ITERATIONS.min(most.into()));
        while iterations < most && terms.hours.is_none_or(|hours| seconds < 3600.0 * hours) {
            iterations += 1;
            trained = (iterations * positions).min(terms.window.unwrap_or(u64::MAX).max(positions));
            seconds += games_seconds + training_seconds(trained) + gate_seconds;
            disk_bytes += bytes(trained);
        }
        let found = LoopEstimate {
            positions,
            positions_per_second,
            games_seconds,
            window: trained,
            training_seconds: training_seconds(trained),
            gate_games,
            gate_seconds,
            iterations,
            disk_bytes: bytes(trained),
        };
        Ok(RunEstimate {
            steps: 3,
            to_do: 3,
            stages: Vec::new(),
            seconds,
            disk_bytes,
            warnings: Vec::new(),
            learning_loop: Some(found),
            ..estimate
        })
    }
}
