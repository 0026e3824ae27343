//! `fsbench train`: a network from a feature set and data.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::print::StdoutError;
use super::sample::Data;
use super::score_unit::note_assumed;
use super::train_progress::Progress;
use super::{Failure, Format, interrupt, print_json};
use crate::data::formats::score_unit;
use crate::data::{Method, ScoreUnit};
use crate::net::nnue::Architecture;
use crate::report::Estimate;
use crate::service::{ReadMode, Request};
use crate::train::{
    DeviceChoice, EvalLoss, LossForm, Optimisation, PqrLoss, SecondMethod, ShapeOptions, TrainConfig, TrainError,
    TrainOutcome, TrainingRun, run_dir,
};
use crate::units::Seed;

/// Train a network on a feature set
///
/// OUT then holds config.json, metrics.jsonl, checkpoint.safetensors (to go on from), best.safetensors (the float weights of
/// the epoch with the lowest validation loss), network.safetensors (the same, quantised), last.safetensors (the last epoch's,
/// quantised) and, once finished, outcome.json.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression [default: piece]
    set: Option<String>,
    #[command(flatten)]
    data: Data,
    /// eval: unit of the data's scores, where they do not say it: cp, or internal:PAWN with an engine's units a pawn
    /// [default: internal:208 of a binpack, else cp]
    #[arg(long, value_name = "UNIT")]
    from_unit: Option<ScoreUnit>,
    /// built: the method's filters apply to the data; auto: a binpack is decoded while training, every sample of it
    #[arg(long = "read", alias = "source", value_name = "HOW", value_enum, default_value = "built")]
    source: ReadMode,
    /// Train without the factors of the set's definition
    #[arg(long)]
    no_factor: bool,
    /// What to learn from
    #[arg(long, value_enum, default_value = "eval")]
    method: Method,
    /// Leave out positions before this ply when the data are built [default: 20 for eval, 0 for pqr]
    #[arg(long, value_name = "PLY")]
    min_ply: Option<u16>,
    /// The run's folder
    #[arg(long)]
    out: PathBuf,
    /// Accumulator width a perspective
    #[arg(long, default_value_t = 64)]
    l1: usize,
    /// Hidden layers' widths, one or two separated by a comma, or `none`
    #[arg(long, default_value = "32")]
    hidden: Widths,
    #[command(flatten)]
    design: ShapeOptions,
    /// The widths and parts of a Stockfish's network, and its features when no set is named: stockfish-12, stockfish-14,
    /// stockfish-15.1, …
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "l1", "hidden", "activation", "hidden_activation", "skip", "psqt", "buckets", "bucket_rule",
    ])]
    arch: Option<Architecture>,
    /// What the numbers become when the network is quantised: stockfish: weights in i8; simple: no hidden layers, weights
    /// in i16
    #[arg(long, value_name = "NAME", default_value = "stockfish")]
    scheme: String,
    /// Internal score units a pawn of the network: Stockfish 12 to 15 take 208 for one, 15.1 361, 16 328, 16.1 356
    #[arg(long, value_name = "UNITS", default_value_t = 100, value_parser = clap::value_parser!(i32).range(1..))]
    pawn: i32,
    /// Passes over the training split
    #[arg(long, value_name = "N", default_value_t = 10)]
    epochs: u32,
    /// Samples an epoch [default: all of the training split]
    #[arg(long)]
    epoch_samples: Option<u64>,
    /// Samples a step (a pqr sample holds three positions)
    #[arg(long, value_name = "N", default_value_t = Request::BATCH_SIZE)]
    batch_size: usize,
    /// Learning rate of the first epoch
    #[arg(long, value_name = "RATE", alias = "lr", default_value_t = 2e-3)]
    learning_rate: f64,
    /// Factor on the learning rate after every epoch
    #[arg(long, default_value_t = 0.8)]
    decay: f64,
    #[command(flatten)]
    recipe: Optimisation,
    /// Learn from a second method too, in the same steps
    #[arg(long, value_enum, value_name = "METHOD")]
    second: Option<Method>,
    /// The second method's games or samples [default: those of --data]
    #[arg(long, value_name = "FILE", requires = "second")]
    second_data: Option<PathBuf>,
    /// What a second method's loss counts beside the first's
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "second")]
    second_weight: f64,
    /// Begin with the network of another run's folder or of a file, whatever it learned from: a checkpoint or a quantised
    /// network (also .nnue)
    #[arg(long, value_name = "FILE")]
    start: Option<PathBuf>,
    /// Begin with the last epoch's network of the run's folder that --start names, not the best one's
    #[arg(long, requires = "start")]
    last: bool,
    /// Seeds, separated by commas; of several, each has its run in OUT/seed-N
    #[arg(long, value_delimiter = ',', default_values_t = [0])]
    seed: Vec<u64>,
    /// Share of games kept for validation
    #[arg(long, default_value_t = 0.1)]
    validation: f64,
    /// Root of the choice of validation games
    #[arg(long, value_name = "S", default_value_t = 0)]
    split_seed: u64,
    /// Threads of the trainer; the samples service has as many of its own [default: all cores]
    #[arg(long, value_name = "T", value_parser = super::threads::parse)]
    threads: Option<usize>,
    /// Where to train; auto: on a GPU where there is one
    #[arg(long, value_enum, default_value_t)]
    device: DeviceChoice,
    /// Leave out the rows of features that no legal position activates: no score changes, the network is smaller
    #[arg(long)]
    compact_dead: bool,
    /// Go on with the run in OUT where it stopped
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Minutes between two checkpoints within an epoch
    #[arg(long, value_name = "MINUTES", default_value_t = TrainingRun::CHECKPOINT_EVERY.as_secs_f64() / 60.0)]
    checkpoint_every: f64,
    /// Replace the run in OUT
    #[arg(long)]
    force: bool,
    /// eval: weight of the score in the target; the rest is the game's result
    #[arg(long, default_value_t = EvalLoss::default().lambda)]
    lambda: f64,
    /// eval: weight of the score in the last epoch, reached in even steps [default: as in the first]
    #[arg(long, value_name = "LAMBDA")]
    lambda_end: Option<f64>,
    /// eval: power: of the difference of expected results; epsilon: centipawns beyond a tolerance
    #[arg(long, value_enum, default_value_t)]
    loss: LossForm,
    /// eval, loss epsilon: the tolerance in centipawns
    #[arg(long, default_value_t = EvalLoss::default().epsilon)]
    epsilon: f64,
    /// eval: power of the error
    #[arg(long, default_value_t = EvalLoss::default().power)]
    power: f64,
    /// eval: centipawns a unit of the logistic that maps scores to expected results
    #[arg(long, default_value_t = EvalLoss::default().score_scale)]
    score_scale: f64,
    /// Centipawns a unit of the logistic that maps the network's output to expected results
    #[arg(long, default_value_t = EvalLoss::default().output_scale)]
    output_scale: f64,
    /// pqr: weight of the terms that make a position and the one after the chosen move equal
    #[arg(long, default_value_t = PqrLoss::default().kappa)]
    kappa: f64,
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Widths of hidden layers.
#[derive(Clone, Debug)]
struct Widths(Vec<usize>);

impl FromStr for Widths {
    type Err = String;

    fn from_str(text: &str) -> Result<Widths, String> {
        if text == "none" {
            return Ok(Widths(Vec::new()));
        }
        let width = |part: &str| part.trim().parse().map_err(|_| format!("`{part}` is no width"));
        text.split(',').map(width).collect::<Result<_, _>>().map(Widths)
    }
}

impl Arguments {
    /// The file to begin with: where a run's folder is named, its float weights.
    fn start(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.start {
            Some(start) if start.is_dir() => run_dir::weights(start, self.last).map(Some).map_err(failure),
            Some(start) if self.last => {
                let why = format!("--last chooses among a run folder's networks, and {} is none", start.display());
                Err(failure(TrainError::Config(why)))
            }
            start => Ok(start.clone()),
        }
    }

    fn config(&self, seed: Seed, start: Option<PathBuf>) -> Result<TrainConfig, Failure> {
        let shape = self.arch.map(Architecture::shape);
        let (l1, hidden) = match &shape {
            Some(shape) => (shape.l1, &shape.hidden),
            None => (self.l1, &self.hidden.0),
        };
        let set = self.set.as_deref().unwrap_or_else(|| self.arch.map_or("piece", Architecture::set_name));
        // One option for either method; what only one of them reads is not given to the other.
        let (both, output_scale) =
            (self.second.is_some_and(|second| second != self.method), EvalLoss::default().output_scale);
        let data = self.data.path()?;
        Ok(TrainConfig {
            set: set.into(),
            data: data.clone(),
            from_unit: self.from_unit,
            source: self.source,
            factor: !self.no_factor,
            method: self.method,
            min_ply: self.min_ply,
            seed,
            l1,
            hidden: hidden.clone(),
            design: shape.as_ref().map_or(self.design, ShapeOptions::of),
            scheme: self.scheme.clone(),
            pawn: self.pawn,
            batch_size: self.batch_size,
            epochs: self.epochs,
            epoch_samples: self.epoch_samples,
            learning_rate: self.learning_rate,
            decay: self.decay,
            recipe: self.recipe,
            start,
            second: self.second.map(|method| SecondMethod {
                method,
                data: self.second_data.clone().unwrap_or(data),
                from_unit: self.from_unit,
                source: self.source,
                weight: self.second_weight,
            }),
            validation: self.validation,
            split_seed: Seed(self.split_seed),
            eval_loss: EvalLoss {
                power: self.power,
                score_scale: self.score_scale,
                output_scale: if both || self.method == Method::Eval { self.output_scale } else { output_scale },
                lambda: self.lambda,
                lambda_end: self.lambda_end,
                form: self.loss,
                epsilon: self.epsilon,
            },
            pqr_loss: PqrLoss {
                kappa: self.kappa,
                output_scale: if both || self.method == Method::Pqr { self.output_scale } else { output_scale },
            },
            compact_dead: self.compact_dead,
            threads: self.threads.unwrap_or_else(Request::available_threads),
            device: self.device,
        })
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let _graceful = interrupt::gracefully();
    let seeds = &arguments.seed;
    if let Some((_, seed)) = seeds.iter().enumerate().find(|(index, seed)| seeds[..*index].contains(seed)) {
        return Err(Failure::request(TrainError::Config(format!("the seed {seed} stands twice"))));
    }
    let start = arguments.start()?;
    note_units(&arguments.config(Seed(0), start.clone())?)?;
    let mut outcomes = Vec::with_capacity(seeds.len());
    for seed in seeds {
        let folder = match seeds.len() {
            1 => arguments.out.clone(),
            _ => arguments.out.join(format!("seed-{seed}")),
        };
        let outcome = train(arguments, &arguments.config(Seed(*seed), start.clone())?, &folder)?;
        if arguments.format == Format::Text {
            print_text(&outcome, &folder)?;
        }
        outcomes.push(outcome);
    }
    match (arguments.format, &outcomes[..]) {
        (Format::Text, [_]) => {}
        (Format::Text, several) => print_spread(several)?,
        (Format::Json, [outcome]) => print_json(outcome)?,
        (Format::Json, several) => print_json(&several)?,
    }
    Ok(())
}

/// Says what scores are taken for where only their format tells.
fn note_units(config: &TrainConfig) -> Result<(), Failure> {
    let mut noted: Vec<&Path> = Vec::new();
    let tasks = config.tasks();
    for task in tasks.iter().filter(|task| task.method == Method::Eval && task.data.exists()) {
        let known = score_unit(task.data, None, task.from_unit).map_err(Failure::request)?;
        if !noted.contains(&task.data) {
            note_assumed(task.data, known);
            noted.push(task.data);
        }
    }
    match config.from_unit {
        Some(_) if tasks.iter().all(|task| task.method == Method::Pqr) => {
            Err(Failure::request(TrainError::Config("--from-unit says what scores mean, and pqr reads none".into())))
        }
        _ => Ok(()),
    }
}

fn train(arguments: &Arguments, config: &TrainConfig, folder: &Path) -> Result<TrainOutcome, Failure> {
    let mut progress = Progress::new(arguments.resume);
    let every = Duration::try_from_secs_f64(arguments.checkpoint_every * 60.0);
    let checkpoint_every = every.map_err(|_| {
        let text = format!("--checkpoint-every must be 0 minutes or more, not {}", arguments.checkpoint_every);
        Failure::request(TrainError::Config(text))
    })?;
    let (resume, force) = (arguments.resume, arguments.force);
    let run = TrainingRun { resume, force, checkpoint_every, ..TrainingRun::new(config, folder) };
    let outcome = run.train(&mut progress);
    progress.clear();
    outcome.map_err(failure)
}

fn failure(error: TrainError) -> Failure {
    match error.is_request() {
        true => Failure::request(error),
        false => Failure::work(error),
    }
}

fn print_text(outcome: &TrainOutcome, folder: &Path) -> Result<(), StdoutError> {
    outln!("{}: {} features, {} parameters", outcome.name, outcome.num_features, outcome.parameters)?;
    outln!(
        "validation loss {:.6} over {} samples, {} the best constant's {:.6}",
        outcome.validation_loss,
        outcome.validation_samples,
        beside(outcome.validation_loss, outcome.baseline_loss),
        outcome.baseline_loss
    )?;
    let best = outcome.best();
    if let Some(accuracy) = best.and_then(|epoch| epoch.validation_accuracy) {
        outln!("the move played is preferred in {:.1}% of them", 100.0 * accuracy)?;
    }
    if let Some(second) = best.and_then(|epoch| epoch.second) {
        let accuracy = second.validation_accuracy.map(|share| format!(", {:.1}% preferred", 100.0 * share));
        let (method, loss) = (second.method.name(), second.validation_loss);
        outln!("{method}: validation loss {loss:.6}{}", accuracy.unwrap_or_default())?;
    }
    let (epochs, path) = (outcome.epochs.len(), |name: &Path| folder.join(name).display().to_string());
    let number = best.map_or(0, |epoch| epoch.epoch);
    outln!("{:.1} s; network of epoch {number} of {epochs}, the best, in {}", outcome.seconds, path(&outcome.network))?;
    if let (Some(last), Some(epoch)) = (&outcome.last, outcome.epochs.last().filter(|epoch| epoch.epoch != number)) {
        outln!("the last epoch's, validation loss {:.6}, in {}", epoch.validation_loss, path(last))?;
    }
    Ok(())
}

/// How a loss compares with another.
fn beside(loss: f64, other: f64) -> String {
    let share = 100.0 * (1.0 - loss / other);
    format!("{:.1}% {}", share.abs(), if share < 0.0 { "above" } else { "below" })
}

/// The seeds' losses as one estimate.
fn print_spread(outcomes: &[TrainOutcome]) -> Result<(), StdoutError> {
    let losses: Vec<f64> = outcomes.iter().map(|outcome| outcome.validation_loss).collect();
    if let Some(Estimate { mean, interval: Some(interval), count }) = Estimate::over(&losses) {
        outln!("validation loss {mean:.6} ± {interval:.6} (95%, {count} seeds)")?;
    }
    Ok(())
}
