//! Experiments on a Slurm cluster: the missing steps as job arrays, whose jobs do steps with `fsbench run --step`.
//!
//! The store says which steps are done, Slurm's queue which are running or wait; a submission only notes which job does
//! which step. `stages.rs` arranges steps in arrays, `commands.rs` talks to Slurm, `submissions.rs` keeps notes and
//! logs.

mod commands;
mod stages;
mod submissions;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use super::listed_steps::ListedStep;
use crate::output::file_lock::LockError;
use crate::record::RecordFileError;
use crate::units::SortedMap;
use commands::{Queue, QueuedState};
use stages::{ArrayTask, JobArray};
use submissions::{Submissions, SubmittedArray};

/// Why an experiment cannot be submitted.
#[derive(Debug, Error)]
pub enum SlurmError {
    #[error("cannot run {program}: {source}; is Slurm installed here?")]
    Start { program: &'static str, source: std::io::Error },
    #[error("{command} failed: {message}")]
    Refused { command: String, message: String },
    #[error("{command} printed {output:?} in the place of a job's number")]
    NoJob { command: String, output: String },
    #[error(
        "some steps measure time: name the kind of nodes that does it, a feature of Slurm's nodes, with --timed-on \
         (`sinfo -o '%N %f'` lists them)"
    )]
    NoNodeType,
    #[error("another process is submitting this experiment: {0}")]
    Busy(LockError),
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Record(#[from] RecordFileError),
}

impl SlurmError {
    /// Whether the request was wrong, as opposed to work that failed.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        matches!(self, SlurmError::NoNodeType)
    }
}

/// How to submit an experiment.
#[derive(Clone, Debug)]
pub struct SlurmOptions {
    /// Of the experiment, for the jobs' names.
    pub name: String,
    pub partition: Option<String>,
    /// Tasks of an array at once; `None` = as many as Slurm likes.
    pub jobs: Option<u32>,
    /// More options of `sbatch`.
    pub sbatch: Vec<String>,
    /// The feature of the nodes on which times are measured.
    pub timed_on: Option<String>,
    /// A command and its arguments, which take the keys of steps as their last argument.
    pub step: Vec<String>,
    /// The command of the last job, which collects and reports.
    pub collect: Vec<String>,
    /// Folder in which the commands run.
    pub folder: PathBuf,
    /// Folder of notes and logs, which all nodes see.
    pub notes: PathBuf,
    /// Variables of the environment that the commands need.
    pub variables: Vec<(String, String)>,
}

/// Where an experiment's steps are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SlurmStatus {
    /// Steps of the experiment.
    pub steps: usize,
    /// Steps that are done.
    pub done: usize,
    /// Steps that run.
    pub running: usize,
    /// Steps that failed.
    pub failed: usize,
    /// For Slurm, for other steps, or to be submitted.
    pub waiting: usize,
    pub failures: Vec<FailedStep>,
    /// The jobs that this command submitted.
    pub submitted: Vec<SubmittedJobs>,
}

/// A step whose job ended without its result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FailedStep {
    /// The step's key.
    pub key: String,
    /// The step in words.
    pub name: String,
    /// The job and its task: `17_3`.
    pub job: String,
    /// The end of its log.
    pub log: PathBuf,
    /// The log's last lines.
    pub end: String,
}

/// An array of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SubmittedJobs {
    /// The stage of the steps.
    pub stage: String,
    /// Slurm's number of the job array.
    pub job: String,
    /// Its tasks.
    pub tasks: usize,
    /// As `sbatch --dependency` takes it.
    pub dependency: Option<String>,
}

/// Which steps to submit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Submit {
    /// None: only say where they are.
    Nothing,
    /// Steps that were never submitted: they became known when others were done.
    New,
    /// All that are neither done nor in the queue.
    Missing,
}

/// Says where an experiment's steps are, and submits those that are missing.
///
/// # Errors
/// When Slurm cannot be asked or refuses a job, or the notes cannot be kept.
pub fn submit(steps: &[ListedStep], options: &SlurmOptions, which: Submit) -> Result<SlurmStatus, SlurmError> {
    let mut submissions = Submissions::open(&options.notes)?;
    let is_complete = steps.iter().all(|step| step.done);
    let queue = if is_complete || submissions.is_empty() { Queue::default() } else { commands::queue()? };
    let places = Places::of(steps, &submissions, &queue);
    let mut status = places.status(steps, &submissions)?;
    let is_missing = |step: &&ListedStep| {
        let is_new = submissions.place_of(&step.key).is_none();
        let is_live = places.live.contains_key(&step.key);
        match which {
            Submit::Nothing => false,
            Submit::New => !step.done && is_new,
            Submit::Missing => !step.done && !is_live,
        }
    };
    // Rows of different labels may share a step.
    let mut seen = BTreeSet::new();
    let missing: Vec<&ListedStep> = steps.iter().filter(is_missing).filter(|step| seen.insert(&step.key)).collect();
    if missing.is_empty() {
        return Ok(status);
    }
    if options.timed_on.is_none() && missing.iter().any(|step| step.alone) {
        return Err(SlurmError::NoNodeType);
    }
    let live = |key: &str| places.live.get(key).copied();
    let mut jobs: BTreeSet<u64> = BTreeSet::new();
    let largest = commands::largest_index()?;
    stages::arrange(&missing, &live, largest, &mut |array: &JobArray<'_>| {
        let job = commands::submit_array(array, options, &submissions.folder())?;
        submissions.note(SubmittedArray::new(job, array))?;
        jobs.insert(job);
        jobs.extend(array.needed_jobs());
        status.submitted.push(SubmittedJobs {
            stage: array.stage.clone(),
            job: job.to_string(),
            tasks: array.tasks.len(),
            dependency: array.dependency(),
        });
        Ok(job)
    })?;
    // Collections that an earlier submission left in the queue, whose collection may have been refused, come first too.
    jobs.extend(places.live.values().map(|place| place.job));
    let collect = commands::submit_collection(&jobs, options, &submissions.folder())?;
    status.submitted.push(SubmittedJobs {
        stage: "collect".into(),
        job: collect.to_string(),
        tasks: 1,
        dependency: Some(commands::after_any(&jobs)),
    });
    Ok(status)
}

/// Steps that are in Slurm's queue, and what became of the others.
struct Places {
    live: SortedMap<String, ArrayTask>,
    running: BTreeSet<String>,
}

impl Places {
    fn of(steps: &[ListedStep], submissions: &Submissions, queue: &Queue) -> Places {
        let mut live = SortedMap::new();
        let mut running = BTreeSet::new();
        for step in steps.iter().filter(|step| !step.done) {
            let Some(place) = submissions.place_of(&step.key) else { continue };
            match queue.state(place) {
                Some(QueuedState::Running) => {
                    running.insert(step.key.clone());
                    live.insert(step.key.clone(), place);
                }
                Some(QueuedState::Waiting) => {
                    live.insert(step.key.clone(), place);
                }
                None => {}
            }
        }
        Places { live, running }
    }

    fn status(&self, steps: &[ListedStep], submissions: &Submissions) -> Result<SlurmStatus, SlurmError> {
        let mut status = SlurmStatus { steps: steps.len(), ..SlurmStatus::default() };
        let unfinished: BTreeSet<&str> = steps.iter().filter(|step| !step.done).map(|step| step.key.as_str()).collect();
        for step in steps {
            if step.done {
                status.done += 1;
            } else if self.running.contains(&step.key) {
                status.running += 1;
            } else if let Some(failure) = self.failure(step, &unfinished, submissions)? {
                status.failed += 1;
                status.failures.push(failure);
            } else {
                status.waiting += 1;
            }
        }
        Ok(status)
    }

    /// A step failed if its job began, has left the queue, and lacked nothing.
    fn failure(
        &self,
        step: &ListedStep,
        unfinished: &BTreeSet<&str>,
        submissions: &Submissions,
    ) -> Result<Option<FailedStep>, SlurmError> {
        let is_blocked = step.needs.iter().any(|need| unfinished.contains(need.as_str()));
        let Some(place) = submissions.place_of(&step.key).filter(|_| !is_blocked) else { return Ok(None) };
        if self.live.contains_key(&step.key) {
            return Ok(None);
        }
        let log = submissions.log_of(place);
        let Some(end) = submissions::end_of(&log)? else { return Ok(None) };
        let key = step.key.clone();
        let name = step.name.clone();
        Ok(Some(FailedStep { key, name, job: format!("{}_{}", place.job, place.task), log, end }))
    }
}
