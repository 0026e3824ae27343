//! The runs kept in the work folder, and notes of which experiments use them, so that unused runs can be removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ExperimentError;
use crate::data::Method;
use crate::record::{RecordFileError, read_checked_json, write_checked_json};
use crate::system::hostname;
use crate::train::TrainConfig;
use crate::train::run_dir::{CONFIG, OUTCOME};
use crate::units::{Seed, sort_by};

/// The runs that an experiment uses, as long as its results folder exists, or may exist on another machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UsedRuns {
    /// Name of the experiment.
    pub(super) name: String,
    /// Its results folder.
    pub(super) results: PathBuf,
    /// Names of run folders.
    pub(super) runs: BTreeSet<String>,
    /// The machine that wrote the note.
    pub(super) host: String,
}

/// The notes' folder in the work folder.
const NOTE_FOLDER: &str = "experiments";

impl UsedRuns {
    /// Saves the note in the work folder. It replaces an earlier one for the same results folder.
    pub(super) fn save(&self, work: &Path) -> Result<(), RecordFileError> {
        write_checked_json(&self.path(work), self)
    }

    fn path(&self, work: &Path) -> PathBuf {
        let name = &blake3::hash(self.results.as_os_str().as_encoded_bytes()).to_hex()[..16];
        work.join(NOTE_FOLDER).join(format!("{name}.json"))
    }

    /// With the runs of the note that it replaces.
    pub(super) fn with_noted(mut self, work: &Path) -> UsedRuns {
        if let Ok(noted) = read_checked_json::<UsedRuns>(&self.path(work)) {
            self.runs.extend(noted.runs);
        }
        self
    }

    /// Whether the results folder is there, or is out of sight: of another machine, at a place that this one does not
    /// have.
    fn counts(&self) -> bool {
        let has_place = self.results.parent().is_some_and(Path::is_dir);
        let is_elsewhere = self.host != hostname() && !has_place;
        self.results.is_dir() || is_elsewhere
    }

    /// The notes of all experiments that count. One that cannot be read is an error: its runs would
    /// seem unused.
    fn load_all(work: &Path) -> Result<Vec<UsedRuns>, ExperimentError> {
        let mut notes = Vec::new();
        for path in paths(&work.join(NOTE_FOLDER))? {
            // A write that was cut off leaves its hidden part.
            if path.extension().is_some_and(|extension| extension == "json") {
                let note: UsedRuns = read_checked_json(&path).map_err(|_| ExperimentError::UsedRuns(path))?;
                if note.counts() {
                    notes.push(note);
                }
            }
        }
        Ok(notes)
    }
}

/// A run in the work folder.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KeptRun {
    /// The run's folder.
    pub path: PathBuf,
    /// Size of its folder.
    pub bytes: u64,
    /// False if the run was interrupted.
    pub finished: bool,
    /// The feature set as requested.
    pub set: String,
    pub method: Method,
    pub seed: Seed,
    /// Results folders of the experiments that use the run.
    pub used_by: Vec<PathBuf>,
}

/// All runs in the work folder, sorted by path.
///
/// # Errors
/// When the folder exists and cannot be read, or a note of the runs in use is damaged.
pub fn kept_runs(work: &Path) -> Result<Vec<KeptRun>, ExperimentError> {
    let notes = UsedRuns::load_all(work)?;
    let mut runs = Vec::new();
    for path in paths(work)? {
        // Only folders with a trainer's configuration are runs.
        let Ok(config) = read_checked_json::<TrainConfig>(&path.join(CONFIG)) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let users = notes.iter().filter(|note| note.runs.contains(&name));
        runs.push(KeptRun {
            bytes: folder_bytes(&path),
            finished: path.join(OUTCOME).is_file(),
            set: config.set,
            method: config.method,
            seed: config.seed,
            used_by: users.map(|note| note.results.clone()).collect(),
            path,
        });
    }
    sort_by(&mut runs, &|a, b| a.path.cmp(&b.path));
    Ok(runs)
}

/// Removes the runs that no experiment uses, and returns them.
///
/// # Errors
/// When an experiment is running in the folder, a note of the runs in use is damaged, or a run cannot be removed.
pub fn remove_unused_runs(work: &Path) -> Result<Vec<KeptRun>, ExperimentError> {
    let _lock = super::lock::folder_alone(work)?;
    let mut unused = kept_runs(work)?;
    unused.retain(|run| run.used_by.is_empty());
    for run in &unused {
        let failed = |source| ExperimentError::WorkFolder { path: run.path.clone(), source };
        std::fs::remove_dir_all(&run.path).map_err(failed)?;
    }
    Ok(unused)
}

/// The entries of a folder; none if there is no such folder.
fn paths(folder: &Path) -> Result<Vec<PathBuf>, ExperimentError> {
    let paths = match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    paths.map_err(|source| ExperimentError::WorkFolder { path: folder.to_path_buf(), source })
}

/// Total size of the files in a folder and the folders in it.
pub(super) fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_file() => data.len(),
        Ok(data) if data.is_dir() => folder_bytes(&entry.path()),
        _ => 0,
    };
    entries.map(bytes).sum()
}
