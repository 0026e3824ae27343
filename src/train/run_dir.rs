//! A run's directory: the names of its files, and how they are written.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{EpochMetrics, TrainError};
use crate::json;
use crate::output;
use crate::output::checked::{content_of, in_envelope};
use crate::output::file_lock::FileLock;

pub const CONFIG: &str = "config.json";
pub const METRICS: &str = "metrics.jsonl";
/// Hashes of the data's contents when the run began.
pub const DATA: &str = "data.json";
/// The definition of the feature set without dead features, if the run leaves them out.
pub const DEFINITION: &str = "definition.toml";
/// The last state, from which the run can be continued.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// The float network with the lowest validation loss; with a second method, the lowest weighted sum of both losses.
pub const BEST: &str = "best.safetensors";
/// The run's network: [`BEST`], quantised.
pub const NETWORK: &str = "network.safetensors";
/// The quantised network of the last epoch. It is written after [`NETWORK`].
pub const LAST: &str = "last.safetensors";
/// The losses of [`BEST`] on each validation sample; absent for large splits.
pub const LOSSES: &str = "validation.losses";
/// The losses of the network's validation, by game and by class of sample; experiments write it.
pub const VALIDATION: &str = "validation.parquet";
/// The metrics for TensorBoard.
pub const EVENTS: &str = "events.out.tfevents.fsbench";
/// Written last: if it exists, the run has finished.
pub const OUTCOME: &str = "outcome.json";

/// All files of a run, in the order in which they are removed: without an outcome the run does not look finished.
const FILES: [&str; 12] =
    [OUTCOME, LAST, NETWORK, BEST, LOSSES, VALIDATION, CHECKPOINT, METRICS, EVENTS, DEFINITION, DATA, CONFIG];

/// The file in a run's directory that holds its network or, with `last`, the last epoch's. The run need not be
/// finished.
///
/// # Errors
/// If the directory holds no network.
pub fn network(folder: &Path, last: bool) -> Result<PathBuf, TrainError> {
    let has_both = folder.join(LAST).exists();
    let name = match (has_both, last) {
        (true, false) => NETWORK,
        (true, true) => LAST,
        (false, false) => BEST,
        (false, true) => CHECKPOINT,
    };
    existing(folder, name)
}

/// As [`network`], but the file with the float weights.
///
/// # Errors
/// As [`network`].
pub fn weights(folder: &Path, last: bool) -> Result<PathBuf, TrainError> {
    existing(folder, if last { CHECKPOINT } else { BEST })
}

fn existing(folder: &Path, name: &str) -> Result<PathBuf, TrainError> {
    let path = folder.join(name);
    if path.exists() {
        return Ok(path);
    }
    Err(TrainError::Config(format!(
        "{} holds no network: it is not a run's directory, or the run's first epoch is not done",
        folder.display()
    )))
}

/// A run's directory that this process writes to. No other process does: it is locked.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    lock: FileLock,
}

impl RunDir {
    /// Makes the directory of a new run. With `force`, an earlier run in it is removed.
    ///
    /// # Errors
    /// If another process is at work in the directory, if it holds a run and `force` is false, if it holds a file that
    /// no run writes, or if it cannot be made. In each case nothing has been removed.
    pub fn create(path: &Path, force: bool) -> Result<RunDir, TrainError> {
        let folder = RunDir::open(path)?;
        let (own, foreign): (Vec<_>, Vec<_>) =
            folder.entries()?.into_iter().partition(|name| FILES.contains(&name.as_str()));
        if let Some(first) = foreign.into_iter().next() {
            return Err(TrainError::Foreign { folder: path.into(), first });
        }
        // A definition alone was left by a run whose data were never ready.
        match own.into_iter().find(|name| !force && name != DEFINITION) {
            Some(first) => return Err(TrainError::Occupied { folder: path.into(), first }),
            None => FILES.iter().try_for_each(|name| folder.remove(name))?,
        }
        Ok(folder)
    }

    /// Opens the directory of a run to be continued, or makes it.
    ///
    /// # Errors
    /// If another process is at work in it, or it cannot be made, read or written to.
    pub fn open(path: &Path) -> Result<RunDir, TrainError> {
        fs::create_dir_all(path).map_err(TrainError::io("cannot make the run's directory", path))?;
        let folder = RunDir { root: path.into(), lock: FileLock::of_folder(path)? };
        for name in folder.entries()?.iter().filter(|name| output::is_part(name)) {
            let file = folder.path(name);
            fs::remove_file(&file).map_err(TrainError::io("cannot remove", file))?;
        }
        Ok(folder)
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// If it exists and cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), TrainError> {
        let file = self.path(name);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(TrainError::io("cannot remove", file)(error))
            }
            _ => Ok(()),
        }
    }

    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Called before the directory is written.
    ///
    /// # Errors
    /// If another process has taken the run over.
    pub fn check_held(&self) -> Result<(), TrainError> {
        if self.lock.is_held() { Ok(()) } else { Err(TrainError::TakenOver(self.root.clone())) }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The names of its files, but for the lock.
    fn entries(&self) -> Result<Vec<String>, TrainError> {
        let failed = || TrainError::io("cannot list", &self.root);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed())? {
            names.push(entry.map_err(failed())?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| name != FileLock::IN_FOLDER);
        names.sort_unstable();
        Ok(names)
    }

    /// Writes a JSON document in its envelope, atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), TrainError> {
        let json = json::to_indented(value).map_err(|error| self.damaged(name, error.to_string()))?;
        self.write(name, (in_envelope(&json) + "\n").as_bytes())
    }

    /// Writes a text, atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), TrainError> {
        self.write(name, text.as_bytes())
    }

    /// Writes bytes, atomically.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_bytes(&self, name: &str, bytes: &[u8]) -> Result<(), TrainError> {
        self.write(name, bytes)
    }

    /// Reads a JSON document; `None` if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read, is damaged or is not a `T`.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, TrainError> {
        let Some(text) = self.read(name)? else { return Ok(None) };
        let json = content_of(text.trim_end()).map_err(|damaged| self.damaged(name, damaged.to_string()))?;
        json::from_text(json).map(Some).map_err(|error| self.damaged(name, error.to_string()))
    }

    /// Appends an epoch to the metrics: a line with a JSON document in its envelope.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append_metrics(&self, metrics: &EpochMetrics) -> Result<(), TrainError> {
        let failed = || TrainError::io("cannot write", self.path(METRICS));
        let line = json::to_text(metrics).map_err(|error| self.damaged(METRICS, error.to_string()))?;
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.path(METRICS)).map_err(failed())?;
        file.write_all((in_envelope(&line) + "\n").as_bytes()).and_then(|()| file.sync_all()).map_err(failed())
    }

    /// Reads the metrics of the first `epochs` epochs and removes those that follow, which no checkpoint covers.
    ///
    /// # Errors
    /// If the file cannot be read or rewritten, or lacks an epoch.
    pub fn truncate_metrics(&self, epochs: u32) -> Result<Vec<EpochMetrics>, TrainError> {
        let text = self.read(METRICS)?.unwrap_or_default();
        let mut metrics = Vec::new();
        for (number, stored) in text.lines().take(epochs as usize).enumerate() {
            let at_line = |why: String| self.damaged(METRICS, format!("line {}: {why}", number + 1));
            let line = content_of(stored).map_err(|damaged| at_line(damaged.to_string()))?;
            let epoch: EpochMetrics = json::from_text(line).map_err(|error| at_line(error.to_string()))?;
            metrics.push(epoch);
        }
        if metrics.len() != epochs as usize {
            return Err(self.damaged(METRICS, format!("{} epochs where the checkpoint has {epochs}", metrics.len())));
        }
        let kept: String = text.split_inclusive('\n').take(epochs as usize).collect();
        if kept.len() != text.len() {
            self.write(METRICS, kept.as_bytes())?;
        }
        Ok(metrics)
    }

    fn read(&self, name: &str) -> Result<Option<String>, TrainError> {
        match fs::read_to_string(self.path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TrainError::io("cannot read", self.path(name))(error)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), TrainError> {
        Ok(output::write(&self.path(name), bytes)?)
    }

    fn damaged(&self, name: &str, why: String) -> TrainError {
        TrainError::Damaged { path: self.path(name), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn all_files_of_a_run_have_one_mode() {
        use std::os::unix::fs::PermissionsExt;
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = RunDir::create(&temporary.path().join("run"), false).expect("made");
        folder.write_text(CONFIG, "{}").expect("written");
        folder.write_bytes(EVENTS, b"x").expect("written");
        fs::write(folder.path("plain"), "").expect("written");
        let mode = |name: &str| folder.path(name).metadata().expect("it is there").permissions().mode();
        assert_eq!([mode(CONFIG), mode(EVENTS)], [mode("plain"); 2]);
    }

    #[test]
    fn unfinished_files_of_a_killed_run_are_removed() {
        let temporary = tempfile::tempdir().expect("a folder");
        for name in [".config.json.AbC.part", "kept"] {
            fs::write(temporary.path().join(name), "").expect("written");
        }
        let folder = RunDir::open(temporary.path()).expect("opened");
        assert_eq!(folder.entries().expect("listed"), ["kept"]);
    }
}
