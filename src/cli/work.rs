//! `fsbench work`: does the steps of an experiment beside other processes, on this machine and others.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::Context;

use super::run::{StderrMonitor, failure, read, work_folder};
use super::{Failure, interrupt};
use crate::experiment::{Earlier, Experiment, ExperimentError, LocalExecutor, Runner, RunnerOptions, Share};
use crate::pipeline;

/// Do those steps of an experiment that no other process does, until all are done
///
/// Start it as often as you like, on every machine that sees the same cache (FSBENCH_CACHE, on a shared disk) and the
/// same experiment: each step is done by one process, and the steps of a process that died are taken over. `fsbench
/// run` then finds all results and reports. Steps that measure time wait until they are alone on their machine. Given a
/// folder, it does all experiments (*.toml) in it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The experiment's TOML file, or a folder of such files
    #[arg(value_name = "EXPERIMENT|DIR")]
    experiment: PathBuf,
    /// Folder of the records, as for `run`; of several experiments, the folder of theirs
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The size of the experiment, as for `run`
    #[arg(long, value_name = "NAME")]
    scale: Option<String>,
    /// The kind of machine on which times are measured, as for `run`
    #[arg(long, value_name = "TYPE")]
    timed_on: Option<String>,
    /// Processes to start on this machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: u32,
}

/// Between two looks at experiments whose last steps others do.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let experiments = experiments(arguments)?;
    let mut others = OtherProcesses::start(arguments)?;
    let is_one = experiments.len() == 1;
    let mut left: Vec<(&(Experiment, RunnerOptions), Earlier)> =
        experiments.iter().map(|one| (one, Earlier::default())).collect();
    let mut executor = LocalExecutor::new(Some(data_folder()?), arguments.timed_on.clone());
    let mut failed = None;
    while !left.is_empty() {
        let mut waiting = Vec::new();
        for (one @ (experiment, options), mut earlier) in left {
            if !is_one {
                note!("experiment {}", experiment.name);
            }
            let mut monitor = StderrMonitor::default();
            // Alone, it waits for other processes step by step.
            let results = if is_one {
                Runner::run(experiment, &mut executor, options, &mut monitor).map(Some)
            } else {
                Runner::run_free(experiment, &mut executor, options, &mut monitor, &mut earlier)
            };
            match results {
                Ok(Some(results)) => {
                    let trainings = results.runs.len();
                    let out = options.out.display();
                    note!("all steps are done, {trainings} trainings among them; `fsbench report {out}` shows them");
                }
                Ok(None) => waiting.push((one, earlier)),
                Err(error) if is_one || matches!(error, ExperimentError::Interrupted) => return Err(failure(error)),
                Err(error) => {
                    note!("error: {}: {error}", experiment.name);
                    failed = Some(error);
                }
            }
        }
        left = waiting;
        if !left.is_empty() {
            if interrupt::requested() {
                return Err(failure(ExperimentError::Interrupted));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
    others.wait()?;
    failed.map_or(Ok(()), |error| Err(failure(error)))
}

/// The experiments to work on; a folder's experiments in the order of their names.
fn experiments(arguments: &Arguments) -> Result<Vec<(Experiment, RunnerOptions)>, Failure> {
    let path = &arguments.experiment;
    let paths = if path.is_dir() { files(path)? } else { vec![path.clone()] };
    let work = work_folder(&data_folder()?);
    let is_folder = path.is_dir();
    let one = |path: &PathBuf| {
        let experiment = read(path, arguments.scale.as_deref())?;
        let out = match &arguments.out {
            Some(out) if is_folder => out.join(&experiment.name),
            Some(out) => out.clone(),
            None => experiment.results.join(&experiment.name),
        };
        let timed_on = arguments.timed_on.clone();
        let options = RunnerOptions { out, work: work.clone(), only: None, fresh: false, share: Share::Free, timed_on };
        Ok((experiment, options))
    };
    let mut experiments = paths.iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
    if is_folder {
        // One process does a loop, by `fsbench loop`.
        experiments.retain(|(experiment, _)| experiment.learning_loop.is_none());
    }
    Ok(experiments)
}

/// The `.toml` files of a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let listed = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = listed().with_context(|| folder.display().to_string()).map_err(Failure::Request)?;
    paths.retain(|path| path.is_file() && path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    if paths.is_empty() {
        Err(Failure::Request(anyhow::anyhow!("{}: no experiment (*.toml) in this folder", folder.display())))
    } else {
        Ok(paths)
    }
}

fn data_folder() -> Result<PathBuf, Failure> {
    pipeline::default_cache().map_err(Failure::request)
}

/// The other processes of `--jobs`. They go on without this one.
struct OtherProcesses(Vec<Child>);

impl OtherProcesses {
    fn start(arguments: &Arguments) -> Result<OtherProcesses, Failure> {
        let program = std::env::current_exe().map_err(Failure::work)?;
        let mut others = OtherProcesses(Vec::new());
        for _ in 1..arguments.jobs {
            let mut command = Command::new(&program);
            command.arg("work").arg(&arguments.experiment);
            if let Some(out) = &arguments.out {
                command.arg("--out").arg(out);
            }
            if let Some(scale) = &arguments.scale {
                command.args(["--scale", scale]);
            }
            if let Some(timed_on) = &arguments.timed_on {
                command.args(["--timed-on", timed_on]);
            }
            others.0.push(command.spawn().map_err(Failure::work)?);
        }
        Ok(others)
    }

    /// # Errors
    /// When one of them failed; it has said why.
    fn wait(&mut self) -> Result<(), Failure> {
        let mut failed = 0;
        for child in &mut self.0 {
            let ended = child.wait().map_err(Failure::work)?;
            failed += u32::from(!ended.success());
        }
        match failed {
            0 => Ok(()),
            _ => Err(Failure::work(anyhow::anyhow!("{failed} of the other processes failed; see above"))),
        }
    }
}
