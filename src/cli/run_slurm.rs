//! `fsbench run --on slurm`: submits an experiment's missing steps to a Slurm cluster, and says where they are.

use std::path::{Path, PathBuf};

use super::run::{Arguments, StderrMonitor, failure};
use super::{Failure, ResultFormat, print_json, report};
use crate::experiment::slurm::{self, SlurmError, SlurmOptions, SlurmStatus, Submit};
use crate::experiment::{Experiment, LocalExecutor, Runner, RunnerOptions};
use crate::record::to_file_name_char;

/// Options with which nothing is submitted.
const WITHOUT_CLUSTER: [&str; 6] = ["force", "plan", "only", "list_steps", "step", "without"];

/// The options of `--on`.
#[derive(Debug, clap::Args)]
pub struct SlurmArguments {
    /// Submit the missing steps to a Slurm cluster, as job arrays; all nodes must see the same folders. Given again, it
    /// says what is done, running, failed or waiting, and submits what is missing only. The last job collects and
    /// reports
    #[arg(long, value_name = "slurm[:PARTITION]", value_parser = parse_cluster,
        conflicts_with_all = WITHOUT_CLUSTER)]
    on: Option<SlurmTarget>,
    /// Tasks of a job array at once [default: as many as the cluster gives]
    #[arg(long, value_name = "N", requires = "on",
        conflicts_with_all = WITHOUT_CLUSTER, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: Option<u32>,
    /// More options of `sbatch` for every job, as in "--time=2:00:00 --cpus-per-task=8"; quoted as in a shell where one
    /// has spaces
    #[arg(long, value_name = "OPTIONS", requires = "on",
        conflicts_with_all = WITHOUT_CLUSTER, allow_hyphen_values = true, value_parser = parse_words)]
    sbatch: Option<Words>,
    /// Only say where the steps are
    #[arg(long, requires = "on", conflicts_with_all = WITHOUT_CLUSTER)]
    status: bool,
    /// Write the results of finished steps and the report, and submit steps that have become known
    #[arg(long, requires = "on", hide = true)]
    collect: bool,
}

/// Where an experiment runs.
#[derive(Clone, Debug)]
struct SlurmTarget {
    partition: Option<String>,
}

/// Words that are separated and quoted as in a shell.
#[derive(Clone, Debug)]
struct Words(Vec<String>);

impl SlurmArguments {
    pub(super) const fn is_requested(&self) -> bool {
        self.on.is_some()
    }
}

fn parse_cluster(text: &str) -> Result<SlurmTarget, String> {
    match text.split_once(':') {
        None if text == "slurm" => Ok(SlurmTarget { partition: None }),
        Some(("slurm", partition)) if !partition.is_empty() => Ok(SlurmTarget { partition: Some(partition.into()) }),
        _ => Err("expected slurm, or slurm:PARTITION".into()),
    }
}

impl Words {
    /// The text of these words.
    fn quoted(&self) -> Result<String, shlex::QuoteError> {
        shlex::try_join(self.0.iter().map(String::as_str))
    }
}

fn parse_words(text: &str) -> Result<Words, String> {
    shlex::split(text).map(Words).ok_or_else(|| "a quote is not closed, or the text ends with a backslash".into())
}

pub(super) fn run(
    arguments: &Arguments,
    experiment: &Experiment,
    executor: &mut LocalExecutor,
    options: &RunnerOptions,
    monitor: &mut StderrMonitor,
) -> Result<(), Failure> {
    let steps = Runner::list_steps(experiment, executor, options).map_err(failure)?;
    let which = match (&arguments.slurm.status, &arguments.slurm.collect) {
        (true, _) => Submit::Nothing,
        (_, true) => Submit::New,
        _ => Submit::Missing,
    };
    let status = slurm::submit(&steps, &slurm_options(arguments, experiment, options)?, which).map_err(refused)?;
    let is_complete = status.done == status.steps;
    if arguments.slurm.collect || is_complete && !arguments.slurm.status {
        let results = Runner::collect(experiment, executor, options, monitor).map_err(failure)?;
        note!("{}", text(&status));
        report::write_and_print(&results, &options.out, arguments.format, Some(&monitor.trained))?;
        return match status.failures.len() {
            0 => Ok(()),
            failed => Err(Failure::work(anyhow::anyhow!("{failed} steps failed; the same command submits them again"))),
        };
    }
    match arguments.format {
        ResultFormat::Json => print_json(&status),
        ResultFormat::Text => Ok(outln!("{}", text(&status))?),
    }
}

fn refused(error: SlurmError) -> Failure {
    if error.is_request() { Failure::request(error) } else { Failure::work(error) }
}

fn slurm_options(
    arguments: &Arguments,
    experiment: &Experiment,
    options: &RunnerOptions,
) -> Result<SlurmOptions, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(Failure::work);
    let out = absolute(&options.out)?;
    let program = std::env::current_exe().map_err(Failure::work)?;
    let word = |path: PathBuf| path.display().to_string();
    let mut command = vec![word(program), "run".into(), word(absolute(&arguments.experiment)?)];
    command.extend(["--out".into(), word(out.clone())]);
    for (name, value) in [("--scale", &arguments.scale), ("--timed-on", &arguments.timed_on)] {
        command.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
    }
    let given = &arguments.slurm;
    let partition = given.on.as_ref().and_then(|cluster| cluster.partition.clone());
    let mut collect = command.clone();
    collect.extend(["--collect".into(), "--on".into()]);
    collect.push(partition.as_ref().map_or_else(|| "slurm".into(), |partition| format!("slurm:{partition}")));
    collect.extend(given.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
    if let Some(words) = &given.sbatch {
        collect.extend(["--sbatch".to_owned(), words.quoted().map_err(Failure::request)?]);
    }
    command.push("--step".into());
    let name = blake3::hash(out.as_os_str().as_encoded_bytes()).to_hex();
    // A batch system may give its jobs another environment.
    let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    let variables = ["FSBENCH_CACHE", "FSBENCH_DATA", "FSBENCH_LIBTORCH_CUDA", "FSBENCH_NVRTC", "LD_LIBRARY_PATH"];
    Ok(SlurmOptions {
        name: format!("fsbench-{}", experiment.name.chars().map(to_file_name_char).collect::<String>()),
        partition,
        jobs: given.jobs,
        sbatch: given.sbatch.iter().flat_map(|Words(more)| more.clone()).collect(),
        timed_on: arguments.timed_on.clone(),
        step: command,
        collect,
        folder: std::env::current_dir().map_err(Failure::work)?,
        notes: absolute(&options.work)?.join("slurm").join(&name[..16]),
        variables: variables.into_iter().filter_map(variable).collect(),
    })
}

/// The status in a line, the failed steps with the ends of their logs, and the submitted jobs.
fn text(status: &SlurmStatus) -> String {
    let SlurmStatus { steps, done, running, failed, waiting, .. } = status;
    let mut out = format!("{steps} steps: {done} done, {running} running, {failed} failed, {waiting} waiting");
    for failure in &status.failures {
        out += &format!("\nfailed: {}, job {}; {} ends with\n", failure.name, failure.job, failure.log.display());
        out += &failure.end.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
    }
    for jobs in &status.submitted {
        let after = jobs.dependency.as_ref().map(|dependency| format!(", {dependency}")).unwrap_or_default();
        let tasks = if jobs.tasks == 1 { "task" } else { "tasks" };
        out += &format!("\nsubmitted: {}, {} {tasks}, job {}{after}", jobs.stage, jobs.tasks, jobs.job);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_sbatch_are_quoted_as_in_a_shell() {
        let words = |text| parse_words(text).map(|Words(words)| words);
        let two = ["--nice=0", "--comment=of two words"].map(str::to_owned);
        assert_eq!(words("--nice=0  --comment='of two words'"), Ok(two.to_vec()));
        assert!(words("--comment='of two").is_err());
        // The job that collects submits with the same options.
        let again = Words(two.to_vec()).quoted().expect("no NUL byte");
        assert_eq!(words(&again), Ok(two.to_vec()));
    }
}
