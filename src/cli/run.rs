//! `fsbench run`: a whole experiment, resumable.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::HumanDuration;

use super::interrupt::Graceful;
use super::{Failure, Format, interrupt, report};
use crate::data;
use crate::experiment::{Experiment, ExperimentError, Local, Options, Progress, Runner};
use crate::train::EpochMetrics;

/// Do an experiment: build its data, train and measure everything it lists, report
///
/// The same command goes on after an interruption and does only what is missing or changed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The experiment's TOML file
    experiment: PathBuf,
    /// Where records and report go (default: results/ and the experiment's name)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only the runs and measures of this set; finished ones of others stay in the results
    #[arg(long, value_name = "SET")]
    only: Option<String>,
    /// Do everything again, also what is finished
    #[arg(long)]
    fresh: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !cfg!(feature = "train") {
        return Err(failure(ExperimentError::NoTrainer));
    }
    let experiment = Experiment::read(&arguments.experiment).map_err(failure)?;
    let data = data::default_cache().map_err(Failure::request)?;
    let options = Options {
        out: arguments.out.clone().unwrap_or_else(|| PathBuf::from(report::ROOT).join(&experiment.name)),
        work: data.with_file_name("runs"),
        only: arguments.only.clone(),
        fresh: arguments.fresh,
    };
    let mut local = Local { data: Some(data) };
    let mut progress = Lines { graceful: None };
    let results = Runner::run(&experiment, &mut local, &options, &mut progress).map_err(failure)?;
    report::show(&results, &options.out, arguments.format)
}

fn failure(error: ExperimentError) -> Failure {
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

/// A line a step and an epoch, to stderr.
struct Lines {
    /// While a training runs, which saves what it has before it ends; any other step is not worth that.
    graceful: Option<Graceful>,
}

impl Progress for Lines {
    fn step(&mut self, number: usize, total: usize, what: &str, remaining: Option<Duration>) {
        let remaining = remaining.map(|time| format!(", about {} left", HumanDuration(time))).unwrap_or_default();
        eprintln!("[{number}/{total}{remaining}] {what}");
    }

    fn epoch(&mut self, metrics: &EpochMetrics, epochs: u32) {
        let speed = metrics.samples_per_second.map(|rate| format!(", {rate:.0} samples/s")).unwrap_or_default();
        eprintln!("    epoch {}/{epochs}: validation loss {:.6}{speed}", metrics.epoch, metrics.validation_loss);
    }

    fn reused(&mut self, steps: usize) {
        if steps > 0 {
            eprintln!("{steps} steps are finished already or not asked for");
        }
    }

    fn training(&mut self, runs: bool) {
        self.graceful = runs.then(interrupt::gracefully);
    }

    fn stop_requested(&self) -> bool {
        interrupt::requested()
    }
}
