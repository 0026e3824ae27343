//! Errors of experiments.

use std::path::PathBuf;

use thiserror::Error;

use super::spec::Location;
use crate::output::file_lock::LockError;
use crate::record::RecordFileError;

/// Why an experiment cannot start or continue.
#[derive(Debug, Error)]
pub enum ExperimentError {
    #[error("cannot read the experiment {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{at}: {message}")]
    Spec { at: Location, message: String },
    #[error("{at}: the feature set '{set}' cannot be used: {message}")]
    Set { at: Location, set: String, message: String },
    #[error(
        "{at}: no file {}; paths are relative to the experiment's folder, to the current one or to $FSBENCH_DATA",
        path.display()
    )]
    NoFile { at: Location, path: PathBuf },
    #[error("{at}: the openings cannot be used: {message}")]
    Openings { at: Location, message: String },
    #[error("no run of the experiment uses the set '{set}'; the experiment has {known}")]
    NoSuchSet { set: String, known: String },
    #[error(
        "another experiment, or a worker, is running in {}; wait for it to end, or set FSBENCH_CACHE to another folder \
         (two trainings at once would distort each other's timings)",
        .0.display()
    )]
    Busy(PathBuf),
    #[error(
        "the experiment '{experiment}' has no step {key}; `--list-steps` lists them (the keys change with the \
         settings, the data and the sets)"
    )]
    NoSuchStep { key: String, experiment: String },
    #[error("{step} needs {missing}, which is not done")]
    NotReady { step: String, missing: String },
    /// Steps failed, and others that need them were not done.
    #[error(
        "{failed} of the experiment's steps failed, and {} that need them were not done; the first: {first}",
        .blocked
    )]
    Failed { failed: usize, blocked: usize, first: Box<ExperimentError> },
    #[error("the row {row} cannot be trained: {source}")]
    NoTrainer { row: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("interrupted; the same command resumes it")]
    Interrupted,
    /// The error of a step's own work.
    #[error("{step}: {source}")]
    Step { step: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    File(#[from] RecordFileError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(
        "cannot tell which runs are in use: {} cannot be read or is damaged; run its experiment again, which writes it \
         anew",
        .0.display()
    )]
    UsedRuns(PathBuf),
    #[error("cannot create or read the folder {}: {source}", path.display())]
    WorkFolder { path: PathBuf, source: std::io::Error },
}

impl ExperimentError {
    /// Whether the request was wrong, as opposed to work that failed.
    #[must_use]
    pub fn is_request(&self) -> bool {
        use ExperimentError::{NoFile, NoSuchSet, NoSuchStep, NoTrainer, Openings, Read, Set, Spec};
        let is_about_a_file = matches!(self, Read { .. } | Spec { .. } | Set { .. } | NoFile { .. } | Openings { .. });
        is_about_a_file || matches!(self, NoSuchSet { .. } | NoSuchStep { .. } | NoTrainer { .. })
    }
}
