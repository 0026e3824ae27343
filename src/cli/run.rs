//! `fsbench run`: a whole experiment, resumable.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::HumanDuration;

use super::interrupt::Graceful;
use super::score_unit::note_assumed;
use super::{Failure, Format, interrupt, report};
use crate::data::Method;
use crate::data::formats::score_unit;
use crate::experiment::keys;
use crate::experiment::{Experiment, ExperimentError, Local, Options, Progress, Runner, Trained};
use crate::pipeline;
use crate::train::EpochMetrics;

/// Do an experiment: build its data, train and measure everything it lists, report
///
/// The same command goes on after an interruption and does only what is missing or changed. Networks are linked from the
/// folder networks/ of the results; `fsbench runs` lists the runs they come from. --help lists the keys of the file.
#[derive(Debug, clap::Args)]
#[command(after_long_help = keys::help())]
pub struct Arguments {
    /// The experiment's TOML file
    experiment: PathBuf,
    /// Where records and report go (default: in results/, or the folder that the experiment names, a folder of its name)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only the runs and measures of this set, or of the row of this label; finished ones of others stay in the results
    #[arg(long, value_name = "SET")]
    only: Option<String>,
    /// Do everything again, also what is finished
    #[arg(long, alias = "fresh")]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !cfg!(feature = "train") {
        return Err(failure(ExperimentError::NoTrainer));
    }
    let experiment = Experiment::read(&arguments.experiment).map_err(failure)?;
    if experiment.rows.iter().any(|row| row.method == Method::Eval) {
        let source = experiment.data_path().map_err(failure)?;
        note_assumed(&source, score_unit(&source, None, experiment.from_unit).map_err(Failure::request)?);
    }
    let data = pipeline::default_cache().map_err(Failure::request)?;
    let options = Options {
        out: arguments.out.clone().unwrap_or_else(|| experiment.results.join(&experiment.name)),
        work: work(&data),
        only: arguments.only.clone(),
        fresh: arguments.force,
    };
    let mut local = Local { data: Some(data) };
    let mut progress = Lines { graceful: None, trained: Vec::new() };
    let results = Runner::run(&experiment, &mut local, &options, &mut progress).map_err(failure)?;
    report::write_and_print(&results, &options.out, arguments.format, Some(&progress.trained))?;
    if arguments.format == Format::Text && progress.trained.iter().any(|run| run.link.is_some()) {
        note!("networks: {}; `fsbench runs` lists the runs they come from", options.out.join("networks").display());
    }
    Ok(())
}

/// Where runs are kept, beside the cache of data.
pub(super) fn work(data: &Path) -> PathBuf {
    data.with_file_name("runs")
}

pub(super) fn failure(error: ExperimentError) -> Failure {
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

/// A line a step, an epoch and a network, to stderr.
struct Lines {
    /// While a training runs, which saves what it has before it ends; any other step is not worth that.
    graceful: Option<Graceful>,
    /// Every finished run.
    trained: Vec<Trained>,
}

impl Progress for Lines {
    fn step(&mut self, number: usize, total: usize, what: &str, remaining: Option<Duration>) {
        let remaining = remaining.map(|time| format!(", about {} left", HumanDuration(time))).unwrap_or_default();
        note!("[{number}/{total}{remaining}] {what}");
    }

    fn epoch(&mut self, metrics: &EpochMetrics, epochs: u32) {
        let speed = metrics.samples_per_second.map(|rate| format!(", {rate:.0} samples/s")).unwrap_or_default();
        note!("    epoch {}/{epochs}: validation loss {:.6}{speed}", metrics.epoch, metrics.validation_loss);
    }

    fn reused(&mut self, steps: usize) {
        if steps > 0 {
            note!("{steps} steps are finished already or not asked for");
        }
    }

    fn training(&mut self, runs: bool) {
        self.graceful = runs.then(interrupt::gracefully);
    }

    fn trained(&mut self, run: &Trained, before: bool) {
        if !before {
            note!("    network: {}", run.link.as_ref().unwrap_or(&run.network).display());
        }
        self.trained.push(run.clone());
    }

    fn stop_requested(&self) -> bool {
        interrupt::requested()
    }
}
