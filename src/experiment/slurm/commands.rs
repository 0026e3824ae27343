//! Slurm's commands: `sbatch`, `squeue`, `scontrol`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::stages::{ArrayTask, JobArray};
use super::submissions::log_path;
use super::{SlurmError, SlurmOptions};
use crate::train::tch_program::{LISTED_GPUS, VISIBLE_GPUS};
use crate::units::SortedMap;

/// A task's state in the queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum QueuedState {
    Running,
    Waiting,
}

/// The tasks in the queue.
#[derive(Debug, Default)]
pub struct Queue(SortedMap<ArrayTask, QueuedState>);

impl Queue {
    /// `None` if the task has left the queue.
    pub fn state(&self, place: ArrayTask) -> Option<QueuedState> {
        self.0.get(&place).copied()
    }

    /// From lines `JOB TASK STATE REASON`, one a task.
    fn parse(text: &str) -> Queue {
        let task = |line: &str| {
            let mut words = line.split_whitespace();
            let place = ArrayTask { job: words.next()?.parse().ok()?, task: words.next()?.parse().ok()? };
            let state = match words.next()? {
                // Waits for a task that failed, and will never begin.
                "PENDING" if words.next() == Some("DependencyNeverSatisfied") => return None,
                "RUNNING" | "COMPLETING" | "CONFIGURING" | "SUSPENDED" | "STOPPED" => QueuedState::Running,
                "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" => QueuedState::Waiting,
                _ => return None,
            };
            Some((place, state))
        };
        Queue(text.lines().filter_map(task).collect())
    }
}

/// The user's tasks in the queue.
pub fn queue() -> Result<Queue, SlurmError> {
    let text = output(Command::new("squeue").args(["--noheader", "--array", "--me", "--format=%F %K %T %r"]))?;
    Ok(Queue::parse(&text))
}

/// The largest number of a task that the cluster allows.
pub fn largest_index() -> Result<u32, SlurmError> {
    let text = output(Command::new("scontrol").args(["show", "config"]))?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize")?.split('=').nth(1));
    Ok(value.and_then(|value| value.trim().parse::<u32>().ok()).unwrap_or(1_001).saturating_sub(1).max(1))
}

/// Submits an array, and returns its job.
pub fn submit_array(array: &JobArray<'_>, options: &SlurmOptions, notes: &Path) -> Result<u64, SlurmError> {
    let mut command = sbatch(options, &array.stage, array.alone);
    if array.gpu && !names_gpus(&options.sbatch) {
        command.arg("--gres=gpu:1");
    }
    let throttle = options.jobs.map(|jobs| format!("%{jobs}")).unwrap_or_default();
    command.arg(format!("--array={}{throttle}", array.numbers()));
    if let Some(dependency) = array.dependency() {
        command.arg(format!("--dependency={dependency}")).arg("--kill-on-invalid-dep=yes");
    }
    let mut script = preamble(options);
    script += "case $SLURM_ARRAY_TASK_ID in\n";
    for (task, keys) in &array.tasks {
        script += &format!("{task}) keys={} ;;\n", keys.join(","));
    }
    script += &format!("esac\nexec {} \"$keys\"\n", quoted(&options.step));
    submit(command, options, &log_path(notes, "%A", "%a"), &script)
}

/// Submits the job that collects the results once these jobs have ended.
pub fn submit_collection(jobs: &BTreeSet<u64>, options: &SlurmOptions, notes: &Path) -> Result<u64, SlurmError> {
    let mut command = sbatch(options, "collect", false);
    command.arg(format!("--dependency={}", after_any(jobs)));
    let script = format!("{}exec {}\n", preamble(options), quoted(&options.collect));
    submit(command, options, &notes.join("logs").join("collect-%j.log"), &script)
}

/// A dependency on the end of jobs, whatever became of them.
pub fn after_any(jobs: &BTreeSet<u64>) -> String {
    format!("afterany{}", jobs.iter().map(|job| format!(":{job}")).collect::<String>())
}

fn sbatch(options: &SlurmOptions, stage: &str, alone: bool) -> Command {
    let mut command = Command::new("sbatch");
    command.arg("--parsable").arg(format!("--job-name={}-{stage}", options.name));
    if let Some(partition) = &options.partition {
        command.arg(format!("--partition={partition}"));
    }
    if let Some(node_type) = options.timed_on.as_ref().filter(|_| alone) {
        command.arg("--exclusive").arg(format!("--constraint={node_type}"));
    }
    command
}

/// Whether the user's options of `sbatch` say how many GPUs a job gets.
fn names_gpus(options: &[String]) -> bool {
    let names = |option: &String| {
        let name = option.split('=').next().unwrap_or_default();
        ["--gres", "--tres-per-task"].contains(&name) || name.starts_with("--gpus") || name.starts_with("-G")
    };
    options.iter().any(names)
}

/// The first lines of every script. A job uses the GPUs that Slurm gave it, and none if it gave none.
fn preamble(options: &SlurmOptions) -> String {
    let variable = |(name, value): &(String, String)| format!("export {name}={}\n", quoted(&[value]));
    let variables: String = options.variables.iter().map(variable).collect();
    let gpus = format!("export {LISTED_GPUS}=\"${VISIBLE_GPUS}\"\n");
    format!("#!/bin/sh\n{variables}{gpus}cd {} || exit 1\n", quoted(&[options.folder.display().to_string()]))
}

fn submit(mut command: Command, options: &SlurmOptions, log: &Path, script: &str) -> Result<u64, SlurmError> {
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).map_err(|source| SlurmError::File { path: folder.to_path_buf(), source })?;
    }
    command.arg(format!("--output={}", log.display())).args(&options.sbatch);
    let start = |source| SlurmError::Start { program: "sbatch", source };
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(start)?;
    if let Some(mut input) = child.stdin.take() {
        // A refused job closes its input early; its message says more.
        let _ = input.write_all(script.as_bytes());
    }
    let found = child.wait_with_output().map_err(start)?;
    let text = accepted(&command, &found)?;
    // `JOB`, or `JOB;CLUSTER`.
    let job = text.trim().split(';').next().and_then(|job| job.parse().ok());
    job.ok_or_else(|| SlurmError::NoJob { command: written(&command), output: text })
}

fn output(command: &mut Command) -> Result<String, SlurmError> {
    let program = if command.get_program() == "squeue" { "squeue" } else { "scontrol" };
    let found = command.output().map_err(|source| SlurmError::Start { program, source })?;
    accepted(command, &found)
}

/// The output of a command, if it succeeded.
fn accepted(command: &Command, found: &std::process::Output) -> Result<String, SlurmError> {
    if found.status.success() {
        Ok(String::from_utf8_lossy(&found.stdout).into_owned())
    } else {
        Err(SlurmError::Refused {
            command: written(command),
            message: String::from_utf8_lossy(&found.stderr).trim().to_owned(),
        })
    }
}

fn written(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Words for a shell, in single quotes.
fn quoted<T: AsRef<str>>(words: &[T]) -> String {
    let quote = |word: &T| format!("'{}'", word.as_ref().replace('\'', r"'\''"));
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_says_what_runs_and_what_waits() {
        let queue = Queue::parse(
            "7 0 RUNNING None\n7 1 PENDING Resources\n7 2 PENDING DependencyNeverSatisfied\n8 N/A PENDING x\n",
        );
        let state = |task| queue.state(ArrayTask { job: 7, task });
        assert_eq!([0, 1, 2, 3].map(state), [Some(QueuedState::Running), Some(QueuedState::Waiting), None, None]);
    }

    #[test]
    fn options_that_name_gpus_are_recognised() {
        let names = |text: &str| names_gpus(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for text in ["--time=1:00 --gres=gpu:a100:1", "--gres none", "--gpus=1", "--gpus-per-task=1", "-G1", "-G 1"] {
            assert!(names(text), "{text}");
        }
        for text in ["", "--time=1:00", "--gres-flags=enforce-binding", "--gpu-bind=closest", "--comment=--gres"] {
            assert!(!names(text), "{text}");
        }
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted(&["a b", "it's"]), r"'a b' 'it'\''s'");
    }
}
