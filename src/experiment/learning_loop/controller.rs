//! The course of a loop: which pass comes next, by the results of those before. As in a search, nothing here looks at a
//! clock: the same results lead to the same choices, however often interrupted.

use std::path::PathBuf;

use toml::Spanned;

use super::table::LearningLoop;
use crate::experiment::ExperimentError;
use crate::experiment::runner::{PassResults, PlanPass};
use crate::experiment::runner_options::{PassPurpose, Stage, stage_seconds};
use crate::experiment::search::Halt;
use crate::experiment::spec::{ComparisonRow, Experiment, Measures, RowStart};
use crate::experiment::steps::{HashedFile, PlannedGate, PlannedGeneration, PlannedStartNetwork, SelfPlaySteps};
use crate::experiment::store::ResultKey;
use crate::play::{Sprt, SprtState};
use crate::record::{GateVerdict, LoopIteration, LoopMatch, LoopRecord, LoopTraining, MatchRecord};
use crate::units::{Seed, SortedMap};

/// A loop on its way.
struct LoopController<'a, 'p> {
    terms: &'a LearningLoop,
    /// The experiment as it is written.
    base: &'a Experiment,
    pass: &'a mut PlanPass<'p>,
    /// Time of each result so far.
    seconds: SortedMap<ResultKey, (Stage, f64)>,
    record: LoopRecord,
    /// The games of each iteration, with the number of their positions.
    games: Vec<(PathBuf, u64)>,
}

/// A network of the loop.
#[derive(Clone)]
struct LoopNetwork {
    /// Its iteration; 0: the start.
    number: u32,
    network: HashedFile,
    /// The file that trainings begin with, if they can.
    weights: Option<PathBuf>,
}

impl LoopNetwork {
    fn name(&self) -> String {
        if self.number == 0 { "start".into() } else { format!("iteration {}", self.number) }
    }
}

impl LearningLoop {
    /// Runs `pass` over one experiment after the other. Stops after a pass that returns `None`: it is not complete.
    /// Returns the last results.
    ///
    /// # Errors
    /// When the loop cannot begin, and errors of `pass`.
    pub(in crate::experiment) fn passes(
        &self,
        base: &Experiment,
        pass: &mut PlanPass<'_>,
    ) -> Result<Option<PassResults>, ExperimentError> {
        let start = base.rows[0].start.as_ref().map(|start| start.written().get_ref().clone());
        let record = LoopRecord {
            start: start.unwrap_or_else(|| "material values".into()),
            settings: self.settings_hash(base)?,
            ..LoopRecord::default()
        };
        let seconds = SortedMap::new();
        let controller = LoopController { terms: self, base, pass, seconds, record, games: Vec::new() };
        match controller.run() {
            Ok(done) => Ok(Some(done)),
            Err(Halt::Incomplete) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}

impl LoopController<'_, '_> {
    fn run(mut self) -> Result<PassResults, Halt> {
        self.show()?;
        let mut best = self.start()?;
        let mut first: Option<LoopNetwork> = None;
        for number in 1.. {
            self.record.stopped = self.reason_to_stop(number);
            if self.record.stopped.is_some() {
                break;
            }
            let before = self.record.seconds.total;
            let iteration =
                LoopIteration { number, player: best.number, games: None, training: None, gate: None, seconds: 0.0 };
            self.record.iterations.push(iteration);
            self.generate(number, &best)?;
            self.show()?;
            let trained = self.train(number, &best)?;
            self.show()?;
            let accepted = self.gate(number, &trained, &best)?;
            let seconds = self.record.seconds.total - before;
            self.present().seconds = seconds;
            if let Some(accepted) = accepted {
                first.get_or_insert_with(|| accepted.clone());
                best = accepted;
            }
            self.show()?;
        }
        if let Some(first) = first.filter(|first| first.number != best.number) {
            self.record.last = Some(self.last_match(&best, &first)?);
        }
        self.show()
    }

    /// Why no iteration of this number begins.
    fn reason_to_stop(&self, number: u32) -> Option<String> {
        let terms = &self.terms.terms;
        if let Some(most) = terms.iterations.filter(|most| number > *most) {
            return Some(format!("iteration {most} was the last"));
        }
        let hours = terms.hours.filter(|hours| self.record.seconds.total >= 3600.0 * hours)?;
        Some(if hours == 1.0 { "the hour is over".into() } else { format!("the {hours} hours are over") })
    }

    /// The present iteration.
    fn present(&mut self) -> &mut LoopIteration {
        self.record.iterations.last_mut().expect("an iteration has begun")
    }

    /// The network that plays the first games.
    fn start(&mut self) -> Result<LoopNetwork, Halt> {
        let config = self.terms.config(self.base)?;
        let given = config.start.clone();
        let start = PlannedStartNetwork { config, file: "start.safetensors".into() };
        let mut done = self.trial(SelfPlaySteps { start: Some(start), ..SelfPlaySteps::default() })?;
        let (network, start) = done.self_play.start.take().ok_or(Halt::Incomplete)?;
        if self.base.rows[0].start.is_none() {
            self.record.start = format!("material values, on {}", start.set);
        }
        // Trainings begin with a given network's float weights, if it has them.
        let weights = Some(given.unwrap_or_else(|| network.path.clone())).filter(|_| start.has_shape);
        Ok(LoopNetwork { number: 0, network, weights })
    }

    /// The games of an iteration.
    fn generate(&mut self, number: u32, best: &LoopNetwork) -> Result<(), Halt> {
        let book = self.terms.book(self.base)?;
        let seed = Seed(self.seed().draws("games of a loop").at(number.into()));
        let terms = &self.terms.terms;
        let generation = PlannedGeneration {
            name: format!("games of iteration {number}"),
            network: best.network.clone(),
            book: book.as_ref().map(|(_, hash)| hash.clone()),
            settings: terms.settings(seed, book.map(|(path, _)| path)),
            goal: terms.goal(),
            file: folder_of(number).join(terms.games_file()),
        };
        let mut done = self.trial(SelfPlaySteps { generation: Some(generation), ..SelfPlaySteps::default() })?;
        let (file, games) = done.self_play.games.take().ok_or(Halt::Incomplete)?;
        self.games.push((file, games.positions));
        self.present().games = Some(games);
        Ok(())
    }

    /// Trains on the last iterations.
    fn train(&mut self, number: u32, best: &LoopNetwork) -> Result<LoopNetwork, Halt> {
        let window = self.terms.terms.window.unwrap_or(u64::MAX);
        let mut positions = 0;
        let mut first = self.games.len();
        while first > 0 && positions < window {
            first -= 1;
            positions += self.games[first].1;
        }
        let start = best.weights.as_ref().filter(|_| self.terms.terms.warm_start);
        let start = start.map(|path| RowStart::Network(unwritten(path.display().to_string())));
        let row = ComparisonRow { start, ..self.base.rows[0].clone() };
        let data = self.games[first..].iter().map(|(path, _)| unwritten(path.display().to_string())).collect();
        let experiment = Experiment { rows: vec![row.clone()], data, matches: None, ..self.experiment() };
        let done = self.run_pass(&experiment, PassPurpose::Trial)?;
        let seconds = done.training_seconds(&row.label);
        let (Some(run), Some(files)) = (done.results.runs.first(), done.networks.first()) else {
            return Err(Halt::Incomplete);
        };
        self.present().training = Some(LoopTraining {
            first: first as u32 + 1,
            positions,
            samples: run.training_samples,
            train_loss: run.measured_epoch().map_or(f64::NAN, |epoch| epoch.train_loss),
            validation_loss: run.validation_loss,
            baseline_loss: run.baseline_loss,
            seconds,
        });
        Ok(LoopNetwork { number, network: files.network.clone(), weights: Some(files.weights.clone()) })
    }

    /// Tests a new network against the one that was accepted last. Returns it if it is accepted.
    fn gate(&mut self, number: u32, trained: &LoopNetwork, best: &LoopNetwork) -> Result<Option<LoopNetwork>, Halt> {
        let sprt = self.terms.terms.sprt();
        let (record, seconds) = self.play(trained, best, sprt, folder_of(number))?;
        let played = loop_match(trained, best, &record, sprt, seconds);
        let accepted = played.verdict == Some(GateVerdict::Accepted);
        self.present().gate = Some(played);
        Ok(accepted.then(|| trained.clone()))
    }

    /// The last accepted network against the first accepted one, whatever the games before.
    fn last_match(&mut self, last: &LoopNetwork, first: &LoopNetwork) -> Result<LoopMatch, Halt> {
        let folder = PathBuf::from(format!("iteration-{:03}-against-{:03}", last.number, first.number));
        let (record, seconds) = self.play(last, first, None, folder)?;
        Ok(loop_match(last, first, &record, None, seconds))
    }

    fn play(
        &mut self,
        player: &LoopNetwork,
        opponent: &LoopNetwork,
        sprt: Option<Sprt>,
        folder: PathBuf,
    ) -> Result<(MatchRecord, f64), Halt> {
        let options = self.base.matches.as_ref().map(|measure| &measure.options);
        let seed = options.map_or(0, |options| options.seed.0);
        let gate = PlannedGate {
            names: [player.name(), opponent.name()],
            networks: [player.network.clone(), opponent.network.clone()],
            sprt,
            // Every match has the openings in another order.
            seed: Seed(seed.wrapping_add(player.number.into()).wrapping_add(if sprt.is_none() { 1 << 32 } else { 0 })),
            folder,
        };
        let mut done = self.trial(SelfPlaySteps { gate: Some(gate), ..SelfPlaySteps::default() })?;
        done.self_play.gate.take().ok_or(Halt::Incomplete)
    }

    fn seed(&self) -> Seed {
        self.base.seeds.first().copied().unwrap_or_default()
    }

    /// The experiment without rows, data and measures.
    fn experiment(&self) -> Experiment {
        Experiment {
            rows: Vec::new(),
            data: Vec::new(),
            measure: Measures::default(),
            learning_loop: None,
            ..self.base.clone()
        }
    }

    /// Does steps that are no trainings.
    fn trial(&mut self, self_play: SelfPlaySteps) -> Result<PassResults, Halt> {
        let experiment = Experiment { self_play, ..self.experiment() };
        self.run_pass(&experiment, PassPurpose::Trial)
    }

    /// Writes the results as far as they are known.
    fn show(&mut self) -> Result<PassResults, Halt> {
        let loop_record = Some(self.record.clone());
        let experiment = Experiment { loop_record, matches: None, ..self.experiment() };
        self.run_pass(&experiment, PassPurpose::Results)
    }

    fn run_pass(&mut self, experiment: &Experiment, purpose: PassPurpose) -> Result<PassResults, Halt> {
        let done = (self.pass)(experiment, purpose)?.ok_or(Halt::Incomplete)?;
        self.seconds.extend(done.seconds.iter().map(|(key, known)| (key.clone(), *known)));
        self.record.seconds = stage_seconds(&self.seconds);
        Ok(done)
    }
}

/// The folder of an iteration in the loop's.
fn folder_of(number: u32) -> PathBuf {
    PathBuf::from(format!("iteration-{number:03}"))
}

fn loop_match(
    player: &LoopNetwork,
    opponent: &LoopNetwork,
    record: &MatchRecord,
    sprt: Option<Sprt>,
    seconds: f64,
) -> LoopMatch {
    let elo = record.pairs.estimate().elo;
    let verdict = sprt.map(|test| match test.outcome(record.pairs).state {
        SprtState::AcceptElo1 => GateVerdict::Accepted,
        SprtState::AcceptElo0 => GateVerdict::Rejected,
        SprtState::Continue => GateVerdict::Undecided,
    });
    let [player, opponent] = [player.number, opponent.number];
    LoopMatch { player, opponent, games: record.games, elo, verdict, seconds }
}

/// A text that stands nowhere in the file.
fn unwritten(text: String) -> Spanned<String> {
    Spanned::new(0..0, text)
}
