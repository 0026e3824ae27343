//! `fsbench train`: trains a network on a feature set and data. Options that are settings of the training are fields of
//! [`TrainConfig`]; the others are here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::print::StdoutError;
use super::sample::{FileArgument, SeveralData, all_files};
use super::score_unit::note_assumed;
use super::train_progress::TrainProgress;
use super::{Failure, ResultFormat, interrupt, print_json};
use crate::data::formats::score_unit;
use crate::data::{DataFiles, Method};
use crate::net::Scheme;
use crate::net::nnue::Architecture;
use crate::report::Estimate;
use crate::train::{
    EvalLoss, Preset, SecondMethod, ShapeOptions, TrainConfig, TrainError, TrainOutcome, TrainSettings, TrainingRun,
    run_dir,
};
use crate::units::Seed;

/// Train a network on a feature set
///
/// OUT then holds config.json, data.json (hashes of the data), metrics.jsonl, a file for TensorBoard,
/// checkpoint.safetensors (to continue from), best.safetensors (the float weights of the epoch with the lowest
/// validation loss), validation.losses (its losses by sample, unless they are too many), network.safetensors (the same
/// weights, quantised), last.safetensors (the last epoch's, quantised) and, once the run has finished, outcome.json. An
/// option at its default value passes where it has no effect on the run, as do --decay and --concatenated; any other
/// value is refused.
#[derive(Debug, clap::Args)]
#[command(mut_args = in_short_help_if_common)]
pub struct Arguments {
    /// A TOML file, the name of a shipped set, or an inline expression [default: piece]
    set: Option<String>,
    /// The run's directory
    #[arg(long, required = true)]
    out: Option<PathBuf>,
    /// Train with the settings of nnue-pytorch (stockfish), of bullet's simple example (bullet) or of Lombardo's thesis
    /// (thesis); options that are given as well prevail. --print-preset shows them with their sources
    #[arg(long, value_enum, value_name = "NAME")]
    preset: Option<Preset>,
    /// Print the settings of a preset as TOML, and train nothing
    #[arg(long, value_enum, value_name = "NAME", exclusive = true)]
    print_preset: Option<Preset>,
    /// The options that stand on the command line.
    #[arg(skip)]
    given: Vec<String>,
    /// Begin with the network of another run's directory or of a file: a checkpoint or a quantised network (also
    /// .nnue), trained by any method on this set or on one with a block in common
    #[arg(long, value_name = "FILE")]
    start: Option<PathBuf>,
    /// Of the run's directory that --start names, take the last epoch's network instead of the best one's
    #[arg(long, requires = "start")]
    last: bool,
    /// Seeds, separated by commas; with several, each has its run in OUT/seed-N
    #[arg(long, value_delimiter = ',', default_values_t = [0])]
    seed: Vec<u64>,
    /// Continue the run in OUT where it stopped
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Minutes between two checkpoints within an epoch
    #[arg(long, value_name = "MINUTES", default_value_t = TrainingRun::CHECKPOINT_EVERY.as_secs_f64() / 60.0)]
    checkpoint_every: f64,
    /// Replace the run in OUT
    #[arg(long)]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    data: SeveralData,
    /// Learn from a second method too, in the same steps
    #[arg(help_heading = "Data", long, value_enum, value_name = "METHOD")]
    second: Option<Method>,
    /// The second method's games or samples [default: as --data]
    #[arg(help_heading = "Data", long, value_name = "FILE", requires = "second")]
    second_data: Vec<FileArgument>,
    /// Weight of the second method's loss; the first's is 1
    #[arg(help_heading = "Data", long, value_name = "X", default_value_t = 1.0, requires = "second")]
    second_weight: f64,
    /// The shape and scheme of a Stockfish network, and its features when no set is named: stockfish-12, stockfish-14,
    /// stockfish-15.1, …
    #[arg(help_heading = "Network", long, value_name = "NAME", conflicts_with_all = [
        "l1", "hidden", "activation", "hidden_activation", "skip", "skip_difference", "concatenated", "narrow", "psqt",
        "buckets", "bucket_rule",
    ])]
    arch: Option<Architecture>,
    #[command(flatten)]
    config: TrainConfig,
}

/// The options that `-h` shows; `--help` shows all.
const COMMON: [&str; 17] = [
    "set",
    "data",
    "out",
    "method",
    "l1",
    "hidden",
    "activation",
    "buckets",
    "arch",
    "epochs",
    "batch_size",
    "learning_rate",
    "lambda",
    "trainer",
    "start",
    "seed",
    "resume",
];

fn in_short_help_if_common(argument: clap::Arg) -> clap::Arg {
    let is_common = COMMON.contains(&argument.get_id().as_str());
    argument.hide_short_help(!is_common)
}

impl Arguments {
    /// Notes which options stand on the command line.
    pub(super) fn note_given(&mut self, matches: &ArgMatches) {
        let is_given = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        self.given = matches.ids().filter(is_given).map(ToString::to_string).collect();
    }

    /// Whether the command line decides a key of the configuration (`recipe.optimiser`).
    fn is_given(&self, key: &str) -> bool {
        let is_of_shape = key.starts_with("design.") || key == "l1" || key == "hidden" || key == "scheme";
        let id = match key.rsplit_once('.') {
            Some(("skip", name)) => format!("skip_{name}"),
            Some((_, name)) => name.to_owned(),
            None if key == "read" => "mode".to_owned(),
            // Of a table without effect nothing is left.
            None if key == "skip" => "skip_unlikely".to_owned(),
            None => key.to_owned(),
        };
        (is_of_shape && self.arch.is_some()) || self.given.contains(&id)
    }

    /// The file to begin with; of a run's directory, its float weights.
    fn start(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.start {
            Some(start) if start.is_dir() => run_dir::weights(start, self.last).map(Some).map_err(failure),
            Some(start) if self.last => {
                let why = format!(
                    "--last chooses among the networks of a run, and {} is not a run's directory",
                    start.display()
                );
                Err(failure(TrainError::Config(why)))
            }
            start => Ok(start.clone()),
        }
    }

    /// The configuration of the first seed.
    fn config(&self, start: Option<PathBuf>) -> Result<TrainConfig, Failure> {
        let set = self.set.as_deref().unwrap_or_else(|| self.arch.map_or("piece", Architecture::set_name));
        let data = self.data.files()?;
        let second_data = all_files(&self.second_data)?;
        let second = self.second.map(|method| SecondMethod {
            method,
            data: DataFiles::new(second_data).unwrap_or_else(|| data.clone()),
            reading: self.config.reading,
            weight: self.second_weight,
        });
        let seed = Seed(self.seed.first().copied().unwrap_or_default());
        let mut config = TrainConfig { set: set.into(), data, seed, second, start, ..self.config.clone() };
        if let Some(preset) = self.preset {
            config = preset.apply(&config, &|key| self.is_given(key)).map_err(failure)?;
        }
        let methods = config.methods();
        let TrainSettings { l1, hidden, shape_options, scheme, eval_loss, pqr_loss, .. } = &mut config.settings;
        if let Some(arch) = self.arch {
            let shape = arch.shape();
            *shape_options = ShapeOptions::of(&shape);
            *l1 = shape.l1;
            *hidden = shape.hidden;
            let own = arch.scheme().name;
            if scheme.is_none() && own != Scheme::default().name {
                *scheme = Some(own);
            }
        }
        // One option serves both losses; a loss that the run does not use keeps its default.
        if methods.contains(&Method::Pqr) {
            pqr_loss.output_scale = eval_loss.output_scale;
        }
        if !methods.contains(&Method::Eval) {
            eval_loss.output_scale = EvalLoss::default().output_scale;
        }
        config.settings = config.settings.complete();
        if self.preset.is_some() {
            // What a preset says of another method has no effect, and is no mistake.
            config.settings.validate(&methods, &|key| self.is_given(key)).map_err(failure)?;
            config = config.effective();
        }
        Ok(config)
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let out = match (arguments.print_preset, &arguments.out) {
        (Some(preset), _) => return Ok(outln!("{}", preset.text().trim_end())?),
        (None, Some(out)) => out,
        (None, None) => return Err(failure(TrainError::Config("give --out, the run's directory".into()))),
    };
    let _graceful = interrupt::gracefully();
    let seeds = &arguments.seed;
    if let Some((_, seed)) = seeds.iter().enumerate().find(|(index, seed)| seeds[..*index].contains(seed)) {
        return Err(Failure::request(TrainError::Config(format!("the seed {seed} is given twice"))));
    }
    let config = arguments.config(arguments.start()?)?;
    note_units(&config)?;
    let mut outcomes = Vec::with_capacity(seeds.len());
    for seed in seeds {
        let folder = match seeds.len() {
            1 => out.clone(),
            _ => out.join(format!("seed-{seed}")),
        };
        let outcome = train(arguments, &TrainConfig { seed: Seed(*seed), ..config.clone() }, &folder)?;
        if arguments.format == ResultFormat::Text {
            print_outcome(&outcome, &folder)?;
        }
        outcomes.push(outcome);
    }
    match (arguments.format, &outcomes[..]) {
        (ResultFormat::Text, [_]) => {}
        (ResultFormat::Text, several) => print_spread(several)?,
        (ResultFormat::Json, [outcome]) => print_json(outcome)?,
        (ResultFormat::Json, several) => print_json(&several)?,
    }
    Ok(())
}

/// Notes the assumed unit of scores that the data do not state, and refuses `--from-unit` where it has no effect.
fn note_units(config: &TrainConfig) -> Result<(), Failure> {
    let mut noted: Vec<&Path> = Vec::new();
    let tasks = config.tasks();
    for task in tasks.iter().filter(|task| task.method == Method::Eval) {
        for file in task.data.iter().filter(|file| file.exists()) {
            let known = score_unit(file, None, task.reading.from_unit).map_err(Failure::request)?;
            if !noted.contains(&file) {
                note_assumed(file, known);
                noted.push(file);
            }
        }
    }
    match config.reading.from_unit {
        Some(_) if tasks.iter().all(|task| task.method == Method::Pqr) => {
            Err(Failure::request(TrainError::Config("--from-unit has no effect: pqr reads no scores".into())))
        }
        _ => Ok(()),
    }
}

fn train(arguments: &Arguments, config: &TrainConfig, folder: &Path) -> Result<TrainOutcome, Failure> {
    let mut progress = TrainProgress::new(arguments.resume);
    let every = Duration::try_from_secs_f64(arguments.checkpoint_every * 60.0);
    let checkpoint_every = every.map_err(|_| {
        let text = format!("--checkpoint-every must be 0 minutes or more, not {}", arguments.checkpoint_every);
        Failure::request(TrainError::Config(text))
    })?;
    let resume = arguments.resume;
    let force = arguments.force;
    let run = TrainingRun { resume, force, checkpoint_every, ..TrainingRun::new(config, folder) };
    let outcome = run.train(&mut progress);
    progress.clear();
    outcome.map_err(failure)
}

fn failure(error: TrainError) -> Failure {
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

fn print_outcome(outcome: &TrainOutcome, folder: &Path) -> Result<(), StdoutError> {
    outln!("{}: {} features, {} parameters", outcome.name, outcome.num_features, outcome.parameters)?;
    outln!(
        "validation loss {:.6} over {} samples, {} the best constant's {:.6}",
        outcome.validation_loss,
        outcome.validation_samples,
        compare(outcome.validation_loss, outcome.baseline_loss),
        outcome.baseline_loss
    )?;
    let best = outcome.best();
    if let Some(accuracy) = best.and_then(|epoch| epoch.validation_accuracy) {
        outln!("the move played is preferred in {:.1}% of them", 100.0 * accuracy)?;
    }
    if let Some(second) = best.and_then(|epoch| epoch.second) {
        let accuracy = second.validation_accuracy.map(|share| format!(", {:.1}% preferred", 100.0 * share));
        let method = second.method.name();
        let loss = second.validation_loss;
        outln!("{method}: validation loss {loss:.6}{}", accuracy.unwrap_or_default())?;
    }
    let epochs = outcome.epochs.len();
    let path = |name: &Path| folder.join(name).display().to_string();
    let number = best.map_or(0, |epoch| epoch.epoch);
    outln!("{:.1} s; network of epoch {number} of {epochs}, the best, in {}", outcome.seconds, path(&outcome.network))?;
    if let Some(averaged) = outcome.averaged {
        let kept = if averaged.kept { "it is the run's network" } else { "the best epoch's is lower" };
        let loss = averaged.validation_loss;
        outln!("the average of {} networks, validation loss {loss:.6}: {kept}", averaged.networks)?;
    }
    if let Some(epoch) = outcome.epochs.last().filter(|epoch| epoch.epoch != number) {
        outln!("the last epoch's, validation loss {:.6}, in {}", epoch.validation_loss, path(&outcome.last))?;
    }
    Ok(())
}

/// A loss compared with another.
fn compare(loss: f64, other: f64) -> String {
    let share = 100.0 * (1.0 - loss / other);
    format!("{:.1}% {}", share.abs(), if share < 0.0 { "above" } else { "below" })
}

/// The seeds' losses as one estimate with its confidence interval.
fn print_spread(outcomes: &[TrainOutcome]) -> Result<(), StdoutError> {
    let losses: Vec<f64> = outcomes.iter().map(|outcome| outcome.validation_loss).collect();
    if let Some(Estimate { mean, interval: Some(interval), count }) = Estimate::over(&losses) {
        outln!("validation loss {mean:.6} ± {interval:.6} (95%, {count} seeds)")?;
    }
    Ok(())
}
