//! `fsbench run`: runs a whole experiment, which can be resumed.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration};

use super::interrupt::Graceful;
use super::print::table;
use super::score_unit::note_assumed_in_experiment;
use super::{Failure, ResultFormat, interrupt, print_json, report, run_slurm};
use crate::data::Method;
use crate::experiment::learning_loop::LoopEstimate;
use crate::experiment::search::SearchEstimate;
use crate::experiment::{
    Experiment, ExperimentError, ExperimentMonitor, FinishedWhen, LocalExecutor, RowFigures, RunEstimate, Runner,
    RunnerOptions, Share, TrainedRun, key_help,
};
use crate::generate::GenerateProgress;
use crate::pipeline::{self, build::input_unit};
use crate::play::{Interval, MatchProgress, Pairs};
use crate::record::MatchResult;
use crate::text::grouped;
use crate::train::EpochMetrics;

/// Run an experiment: build its data, train and measure everything that it lists, and report
///
/// The same command resumes an interrupted experiment: it does only the steps that are missing or changed. The folder
/// networks/ of the results has links to the networks; `fsbench runs` lists their runs. --help lists the keys of the
/// file.
#[derive(Debug, clap::Args)]
#[command(after_long_help = key_help::text())]
pub struct Arguments {
    /// The experiment's TOML file
    pub(super) experiment: PathBuf,
    /// Folder of the records and the report (default: results/NAME, or FOLDER/NAME if the experiment sets `results`)
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// The size of the experiment: one of the file's tables [scale.NAME] [default: cpu, where the file has any]
    #[arg(long, value_name = "NAME")]
    pub(super) scale: Option<String>,
    /// Say what the experiment will take, from short rehearsals of its trainings and matches, and do nothing else than
    /// build its data
    #[arg(long, conflicts_with = "force")]
    plan: bool,
    /// Print the steps, what each needs, whether it is done and how long it will take, as JSON, and do none
    #[arg(long, conflicts_with_all = ["force", "plan", "only"])]
    list_steps: bool,
    /// Do this step of --list-steps only, or these; at once if they are done. Many processes may each do a step in the
    /// same folder
    #[arg(long, value_name = "KEY,…", value_delimiter = ',',
        conflicts_with_all = ["force", "plan", "only", "list_steps"])]
    step: Vec<String>,
    /// The kind of machine on which times are measured, by any name. Results of times are then kept under that name, in
    /// the place of the CPU's. With --on slurm, a feature of the cluster's nodes
    #[arg(long, value_name = "TYPE")]
    pub(super) timed_on: Option<String>,
    #[command(flatten)]
    pub(super) slurm: run_slurm::SlurmArguments,
    /// Do only the runs and measures of this set, or of the row of this label; finished results of others are kept
    #[arg(long, value_name = "SET")]
    only: Option<String>,
    /// Leave out the row of this label, with its runs and measures
    #[arg(long, value_name = "LABEL", conflicts_with = "on")]
    without: Option<String>,
    /// Repeat all steps, including finished ones
    #[arg(long)]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ResultFormat,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    run_experiment(arguments, read(&arguments.experiment, arguments.scale.as_deref())?)
}

/// Runs an experiment that was read from the arguments' file.
pub(super) fn run_experiment(arguments: &Arguments, mut experiment: Experiment) -> Result<(), Failure> {
    if experiment.search.is_some() && (arguments.only.is_some() || arguments.without.is_some()) {
        return Err(Failure::Request(anyhow::anyhow!(
            "a search decides itself which sets it trains: leave --only and --without out"
        )));
    }
    if let Some(label) = &arguments.without {
        experiment.leave_out(label).map_err(failure)?;
    }
    if experiment.learning_loop.is_some() {
        refuse_parts(arguments)?;
    }
    let out = arguments.out.clone().unwrap_or_else(|| experiment.results.join(&experiment.name));
    let is_loop = experiment.learning_loop.is_some();
    // Nothing of a loop's rehearsal serves the loop.
    let rehearsal = (is_loop && arguments.plan).then(tempfile::tempdir).transpose().map_err(Failure::work)?;
    let data = match &rehearsal {
        Some(folder) => folder.path().join("data"),
        // All that a loop makes is in one folder.
        None if is_loop => out.join("work").join("data"),
        None => pipeline::default_cache().map_err(Failure::request)?,
    };
    let options = RunnerOptions {
        work: work_folder(&data),
        out,
        only: arguments.only.clone(),
        fresh: arguments.force,
        share: Share::All,
        timed_on: arguments.timed_on.clone(),
    };
    let mut executor = LocalExecutor::new(Some(data), arguments.timed_on.clone());
    let mut monitor = StderrMonitor::default();
    if arguments.list_steps {
        let steps = Runner::list_steps(&experiment, &mut executor, &options).map_err(failure)?;
        return print_json(&steps);
    }
    if !arguments.step.is_empty() {
        return do_steps(&arguments.step, &experiment, &mut executor, &options, &mut monitor);
    }
    if arguments.slurm.is_requested() {
        return run_slurm::run(arguments, &experiment, &mut executor, &options, &mut monitor);
    }
    if arguments.plan {
        let estimate = Runner::estimate(&experiment, &mut executor, &options, &mut monitor).map_err(failure)?;
        return match arguments.format {
            ResultFormat::Json => print_json(&estimate),
            ResultFormat::Text => Ok(outln!("{}", plan_text(&estimate))?),
        };
    }
    let results = Runner::run(&experiment, &mut executor, &options, &mut monitor).map_err(failure)?;
    report::write_and_print(&results, &options.out, arguments.format, Some(&monitor.trained))?;
    if arguments.format == ResultFormat::Text && monitor.trained.iter().any(|run| run.link.is_some()) {
        note!("networks: {}; `fsbench runs` lists their runs", options.out.join("networks").display());
    }
    Ok(())
}

/// Refuses options of an experiment that name some of its rows or steps, or other machines.
fn refuse_parts(arguments: &Arguments) -> Result<(), Failure> {
    let names_parts = arguments.only.is_some() || arguments.without.is_some() || !arguments.step.is_empty();
    if names_parts || arguments.list_steps || arguments.slurm.is_requested() {
        return Err(Failure::Request(anyhow::anyhow!(
            "the steps of a loop follow each other in one process: leave --only, --without, --step, --list-steps and \
             --on out"
        )));
    }
    Ok(())
}

/// Hides the options that [`refuse_parts`] refuses from a loop's help.
pub(super) fn hidden_from_loop(argument: clap::Arg) -> clap::Arg {
    const REFUSED: [&str; 8] = ["list_steps", "step", "on", "jobs", "sbatch", "status", "only", "without"];
    hidden_if(argument, &REFUSED)
}

/// Hides the options that choose rows, which a search refuses, from its help.
pub(super) fn hidden_from_search(argument: clap::Arg) -> clap::Arg {
    hidden_if(argument, &["only", "without"])
}

fn hidden_if(argument: clap::Arg, refused: &[&str]) -> clap::Arg {
    if refused.contains(&argument.get_id().as_str()) { argument.hide(true) } else { argument }
}

/// Does steps one after the other. A failed one does not stop the others.
fn do_steps(
    keys: &[String],
    experiment: &Experiment,
    executor: &mut LocalExecutor,
    options: &RunnerOptions,
    monitor: &mut StderrMonitor,
) -> Result<(), Failure> {
    let mut first = None;
    for key in keys {
        match Runner::run_step(key, experiment, executor, options, monitor) {
            Ok(()) => {}
            Err(error @ ExperimentError::Interrupted) => return Err(failure(error)),
            Err(error) if keys.len() > 1 => {
                note!("error: {error}");
                first = first.or(Some(error));
            }
            Err(error) => first = Some(error),
        }
    }
    first.map_or(Ok(()), |error| Err(failure(error)))
}

/// Reads an experiment, and notes which scores' unit is assumed.
pub(super) fn read(path: &Path, scale: Option<&str>) -> Result<Experiment, Failure> {
    let experiment = Experiment::read(path, scale).map_err(failure)?;
    if experiment.rows.iter().any(|row| row.method == Method::Eval) {
        for input in experiment.inputs().map_err(failure)? {
            note_assumed_in_experiment(&input.origin.path(), input_unit(&input).map_err(Failure::request)?);
        }
    }
    Ok(experiment)
}

/// Rows and stages with their times, memory, disk and warnings.
fn plan_text(estimate: &RunEstimate) -> String {
    let time = |seconds: f64| HumanDuration(Duration::from_secs_f64(seconds)).to_string();
    let mut out = String::new();
    if !estimate.rows.is_empty() {
        let rows = estimate.rows.iter().map(|row| {
            let numbers = [row.parameters, row.training_samples, row.samples_per_second as u64];
            let numbers = numbers.map(|number| grouped(&number.to_string()));
            [vec![row.set.clone(), row.method.to_owned()], numbers.to_vec(), vec![time(row.seconds)]].concat()
        });
        let header = ["set", "method", "parameters", "training samples", "samples/s", "a training"];
        out += &table(&header, rows);
        out.push('\n');
    }
    out += &format!("{} of {} steps to do", estimate.to_do, estimate.steps);
    for stage in &estimate.stages {
        out += &format!("\n  {}: {} steps, about {}", stage.stage, stage.steps, time(stage.seconds));
    }
    out += &format!("\ntime: about {} on this machine", time(estimate.seconds));
    if let Some(memory) = estimate.memory_bytes {
        out += &format!("\nmemory: {} in training, and some for the process that serves samples", HumanBytes(memory));
    }
    out += &format!("\ndisk: {} for the runs' folders", HumanBytes(estimate.disk_bytes));
    if let Some(SearchEstimate { candidates, samples, trainings, seconds, budget_seconds }) = &estimate.search {
        let samples = grouped(&samples.to_string());
        let about = seconds.map(|seconds| format!("; about {} without matches", time(seconds))).unwrap_or_default();
        out += &format!(
            "\nsearch: {} for rounds like the first: {candidates} candidates, {samples} samples of short trainings, \
             {trainings} trainings from scratch{about}",
            time(*budget_seconds)
        );
    }
    if let Some(found) = &estimate.learning_loop {
        out += &loop_text(found);
    }
    for RowFigures { set, own, .. } in &estimate.own_figures {
        if let Some(ns) = own.features_ns {
            out += &format!("\nby your figures: {ns} ns a move to find the features of {set}");
        }
        if let Some(cost) = own.node_cost {
            out += &format!("\nby your figures: a node of {set} costs {cost} times as much as one of the first set");
        }
    }
    for warning in &estimate.warnings {
        out += &format!("\nwarning: {warning}");
    }
    out
}

/// What an iteration of a loop takes.
fn loop_text(found: &LoopEstimate) -> String {
    let time = |seconds: f64| HumanDuration(Duration::from_secs_f64(seconds)).to_string();
    let number = |number: u64| grouped(&number.to_string());
    let LoopEstimate { positions, positions_per_second, gate_games, iterations, .. } = found;
    format!(
        "\nan iteration: {} positions in {} ({} a second), a training (the last on {} positions in {}), a gate of at \
         most {} games in {} (most are decided earlier), {} on the disk\niterations: {iterations} or more",
        number(*positions),
        time(found.games_seconds),
        number(*positions_per_second as u64),
        number(found.window),
        time(found.training_seconds),
        number(*gate_games),
        time(found.gate_seconds),
        HumanBytes(found.disk_bytes),
    )
}

/// The folder of runs, beside the cache of data sets.
pub(super) fn work_folder(data: &Path) -> PathBuf {
    data.with_file_name("runs")
}

pub(super) fn failure(error: ExperimentError) -> Failure {
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

/// Writes a line per step, epoch and network to stderr.
#[derive(Default)]
pub(super) struct StderrMonitor {
    /// Set while a training or a match runs, which then saves its state before it stops. Other steps are simply
    /// interrupted.
    graceful: Option<Graceful>,
    /// When the present match's progress was last reported; `None` before its first game.
    last_games: Mutex<Option<Instant>>,
    /// Every finished run.
    pub(super) trained: Vec<TrainedRun>,
}

impl ExperimentMonitor for StderrMonitor {
    fn step(&mut self, number: usize, total: usize, name: &str, remaining: Option<Duration>) {
        let remaining = remaining.map(|time| format!(", about {} left", HumanDuration(time))).unwrap_or_default();
        note!("[{number}/{total}{remaining}] {name}");
        let name = name.to_owned();
        interrupt::on_exit_say(move || {
            format!("interrupted in step {number}, {name}; the same command does what is missing")
        });
    }

    fn failed(&mut self, error: &ExperimentError) {
        note!("error: {error}");
    }

    fn waits(&mut self, text: &str) {
        note!("{text}");
    }

    fn epoch(&mut self, metrics: &EpochMetrics, epochs: u32) {
        let speed = metrics.samples_per_second.map(|rate| format!(", {rate:.0} samples/s")).unwrap_or_default();
        note!("    epoch {}/{epochs}: validation loss {:.6}{speed}", metrics.epoch, metrics.validation_loss);
    }

    fn skipped(&mut self, steps: usize) {
        if steps > 0 {
            note!("skipped steps (finished or not requested): {steps}");
        }
    }

    fn resumable_begins(&mut self) {
        self.graceful = Some(interrupt::gracefully());
        self.last_games = Mutex::new(None);
    }

    fn resumable_ended(&mut self) {
        self.graceful = None;
    }

    fn games(&self, progress: &MatchProgress) {
        if self.is_due() {
            let MatchProgress { games, total, first } = progress;
            note!("    game {games}/{total}: {}", elo(*first));
        }
    }

    fn generated(&self, progress: &GenerateProgress) {
        if self.is_due() {
            let GenerateProgress { games, positions, .. } = progress;
            note!("    {games} games, {positions} positions");
        }
    }

    fn played(&mut self, result: &MatchResult) {
        note!("    {} over {} games", elo(result.record.pairs), result.record.games.total());
    }

    fn trained(&mut self, run: &TrainedRun, when: FinishedWhen) {
        if when == FinishedWhen::Now {
            note!("    network: {}", run.link.as_ref().unwrap_or(&run.network).display());
        }
        self.trained.push(run.clone());
    }

    fn stop_requested(&self) -> bool {
        interrupt::requested()
    }
}

impl StderrMonitor {
    /// Whether it is time to report the progress of the present games.
    fn is_due(&self) -> bool {
        const EVERY: Duration = Duration::from_secs(20);
        let mut last = self.last_games.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.get_or_insert_with(Instant::now).elapsed() >= EVERY;
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Elo and its 95% interval.
fn elo(pairs: Pairs) -> String {
    if pairs.total() == 0 {
        return "no pair yet".into();
    }
    let Interval { value, low, high } = pairs.estimate().elo;
    format!("Elo {value:+.0} [{low:+.0}, {high:+.0}]")
}
