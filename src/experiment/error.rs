//! Why an experiment cannot start or go on.

use std::path::PathBuf;

use thiserror::Error;

use super::spec::Location;
use crate::record::RecordFileError;

/// Errors of this module. [`ExperimentError::is_request`] tells a wrong request from failed work.
#[derive(Debug, Error)]
pub enum ExperimentError {
    #[error("cannot read the experiment {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{at}: {message}")]
    Spec { at: Location, message: String },
    #[error("{at}: the feature set '{set}' cannot be used: {message}")]
    Set { at: Location, set: String, message: String },
    #[error("{at}: no data file {}; paths are relative to the experiment's folder, or to the current one", path.display())]
    NoData { at: Location, path: PathBuf },
    #[error("no run of the experiment uses the set '{set}'; it has {known}")]
    NoSuchSet { set: String, known: String },
    #[error(
        "another experiment is at work in {}; wait for it to end, or set FSBENCH_CACHE to another folder (two trainings \
         at once would spoil each other's timings)",
        .0.display()
    )]
    Busy(PathBuf),
    #[error(
        "this fsbench was built without the trainer; build it with the feature `train` (the default) to run experiments"
    )]
    NoTrainer,
    #[error("interrupted; the same command goes on where it stopped")]
    Interrupted,
    /// A step's own error, with everything it says about where and why.
    #[error("{step}: {source}")]
    Step { step: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{step}: the trainer has ended without {}", path.display())]
    NoOutcome { step: String, path: PathBuf },
    #[error(transparent)]
    File(#[from] RecordFileError),
    #[error("cannot make or read the folder {}: {source}", path.display())]
    Work { path: PathBuf, source: std::io::Error },
}

impl ExperimentError {
    /// Whether the request was wrong (as opposed to work that failed on the way).
    #[must_use]
    pub fn is_request(&self) -> bool {
        use ExperimentError::{NoData, NoSuchSet, NoTrainer, Read, Set, Spec};
        matches!(self, Read { .. } | Spec { .. } | Set { .. } | NoData { .. } | NoSuchSet { .. } | NoTrainer)
    }
}
