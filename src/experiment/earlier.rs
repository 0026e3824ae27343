//! The steps of an experiment that one command has done so far.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::ExperimentError;
use super::kept_runs::UsedRuns;
use super::runner_options::RunnerOptions;
use super::spec::Experiment;
use super::store::ResultKey;
use crate::system::hostname;

/// What earlier passes over an experiment, and earlier calls of [`super::Runner::run_free`], have done.
#[derive(Default)]
pub struct Earlier {
    /// Keys of their steps: `--force` does not repeat them once more.
    pub(super) keys: HashSet<ResultKey>,
    /// Names of their runs' folders, which the experiment uses.
    pub(super) runs: BTreeSet<String>,
    /// Whether the requested step was among theirs.
    pub(super) found: bool,
    /// Steps that failed, which are not done again.
    pub(super) failed: Vec<(ResultKey, ExperimentError)>,
}

impl Earlier {
    /// The note of the runs that the experiment uses.
    pub(super) fn used_runs(
        &self,
        experiment: &Experiment,
        options: &RunnerOptions,
    ) -> Result<UsedRuns, ExperimentError> {
        // The folder must exist before it has an absolute path without links.
        let failed = |source| ExperimentError::WorkFolder { path: options.out.clone(), source };
        std::fs::create_dir_all(&options.out).map_err(failed)?;
        let name = experiment.name.clone();
        let results = absolute(&options.out);
        let runs = self.runs.clone();
        Ok(UsedRuns { name, results, runs, host: hostname() })
    }
}

/// A path that is valid from every current folder.
pub(super) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf())
}
