//! `fsbench work`: does the steps of an experiment beside other processes, on this machine and others.

use std::path::PathBuf;
use std::process::{Child, Command};

use super::Failure;
use super::run::{StderrMonitor, failure, read, work_folder};
use crate::experiment::{LocalExecutor, Runner, RunnerOptions, Share};
use crate::pipeline;

/// Do those steps of an experiment that no other process does, until all are done
///
/// Start it as often as you like, on every machine that sees the same cache (FSBENCH_CACHE, on a shared disk) and the same
/// experiment: each step is done by one process, and the steps of a process that died are taken over. `fsbench run` then
/// finds all results and reports. Steps that measure time wait until they are alone on their machine.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The experiment's TOML file
    experiment: PathBuf,
    /// Folder of the records, as for `run`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The size of the experiment, as for `run`
    #[arg(long, value_name = "NAME")]
    scale: Option<String>,
    /// Processes to start on this machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: u32,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let experiment = read(&arguments.experiment, arguments.scale.as_deref())?;
    let data = pipeline::default_cache().map_err(Failure::request)?;
    let options = RunnerOptions {
        out: arguments.out.clone().unwrap_or_else(|| experiment.results.join(&experiment.name)),
        work: work_folder(&data),
        only: None,
        fresh: false,
        share: Share::Free,
    };
    let mut others = Others::start(arguments)?;
    let mut executor = LocalExecutor { data_cache: Some(data) };
    let results = Runner::run(&experiment, &mut executor, &options, &mut StderrMonitor::default()).map_err(failure)?;
    others.wait()?;
    let steps = results.runs.len();
    note!("all steps are done, {steps} trainings among them; `fsbench report {}` shows them", options.out.display());
    Ok(())
}

/// The other processes of `--jobs`. They go on without this one.
struct Others(Vec<Child>);

impl Others {
    fn start(arguments: &Arguments) -> Result<Others, Failure> {
        let program = std::env::current_exe().map_err(Failure::work)?;
        let mut others = Others(Vec::new());
        for _ in 1..arguments.jobs {
            let mut command = Command::new(&program);
            command.arg("work").arg(&arguments.experiment);
            if let Some(out) = &arguments.out {
                command.arg("--out").arg(out);
            }
            if let Some(scale) = &arguments.scale {
                command.args(["--scale", scale]);
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
