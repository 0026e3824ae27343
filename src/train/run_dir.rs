//! A run's folder: what stands in it under which name, and how it is written.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{EpochMetrics, TrainError};
use crate::output;

pub const CONFIG: &str = "config.json";
pub const METRICS: &str = "metrics.jsonl";
/// Hashes of what the data held when the run began.
pub const DATA: &str = "data.json";
/// The feature set's definition when it is not the one that was asked for: without dead features.
pub const DEFINITION: &str = "definition.toml";
/// The last state, from which a run continues.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// The float network with the lowest validation loss: with a second method, the lowest weighted sum of both.
pub const BEST: &str = "best.safetensors";
/// The run's network, quantised: that of the epoch of [`BEST`].
pub const NETWORK: &str = "network.safetensors";
/// The quantised network of the last epoch. Folders without it are unfinished, or of versions whose [`NETWORK`] this was.
pub const LAST: &str = "last.safetensors";
/// The metrics for TensorBoard.
pub const EVENTS: &str = "events.out.tfevents.fsbench";
/// Written last: where it stands, the run has finished.
pub const OUTCOME: &str = "outcome.json";

/// Whether a killed run left this file unfinished; earlier versions named them `.tmp…`.
fn is_rubbish(name: &str) -> bool {
    output::is_part(name) || name.starts_with(".tmp")
}

/// Everything that a run writes. The outcome goes first: without it nothing else looks finished.
const FILES: [&str; 10] = [OUTCOME, LAST, NETWORK, BEST, CHECKPOINT, METRICS, EVENTS, DEFINITION, DATA, CONFIG];

/// The file in a run's folder that holds its network, or with `last` the last epoch's, finished or not.
///
/// # Errors
/// When the folder holds no network.
pub fn network(folder: &Path, last: bool) -> Result<PathBuf, TrainError> {
    let names: &[&str] = match (folder.join(LAST).exists(), last) {
        (true, false) => &[NETWORK],
        (true, true) => &[LAST],
        (false, false) => &[BEST, NETWORK],
        (false, true) => &[NETWORK, CHECKPOINT],
    };
    find(folder, names)
}

/// As [`network`], the float weights.
///
/// # Errors
/// As there.
pub fn weights(folder: &Path, last: bool) -> Result<PathBuf, TrainError> {
    find(folder, &[if last { CHECKPOINT } else { BEST }])
}

fn find(folder: &Path, names: &[&str]) -> Result<PathBuf, TrainError> {
    let found = names.iter().map(|name| folder.join(name)).find(|path| path.exists());
    found.ok_or_else(|| {
        let folder = folder.display();
        TrainError::Config(format!(
            "{folder} holds no network: it is no run's folder, or the run's first epoch is not done"
        ))
    })
}

/// A run folder that this process writes to.
#[derive(Debug)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// Makes the folder for a new run. What an earlier run left there is removed with `force` and otherwise refused;
    /// files that no run writes are never touched.
    ///
    /// # Errors
    /// When there is a run in the folder and no `force`, when there is anything else in it, or it cannot be made. Nothing has
    /// been removed then.
    pub fn create(path: &Path, force: bool) -> Result<RunDir, TrainError> {
        let folder = RunDir::open(path)?;
        let (own, foreign): (Vec<_>, Vec<_>) =
            folder.entries()?.into_iter().partition(|name| FILES.contains(&name.as_str()));
        if let Some(first) = foreign.into_iter().next() {
            return Err(TrainError::Foreign { folder: path.into(), first });
        }
        // A definition alone was written for a run whose data were never ready.
        match own.into_iter().find(|name| !force && name != DEFINITION) {
            Some(first) => return Err(TrainError::Occupied { folder: path.into(), first }),
            None => FILES.iter().try_for_each(|name| folder.remove(name))?,
        }
        Ok(folder)
    }

    /// The folder of a run to continue; made when there is none.
    ///
    /// # Errors
    /// When it cannot be made or read.
    pub fn open(path: &Path) -> Result<RunDir, TrainError> {
        fs::create_dir_all(path).map_err(TrainError::io("cannot make the run's folder", path))?;
        let folder = RunDir(path.into());
        for name in folder.entries()?.iter().filter(|name| is_rubbish(name)) {
            let file = folder.path(name);
            fs::remove_file(&file).map_err(TrainError::io("cannot remove", file))?;
        }
        Ok(folder)
    }

    /// Removes a file where it stands.
    ///
    /// # Errors
    /// When it stands and cannot be removed.
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
        self.0.join(name)
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }

    fn entries(&self) -> Result<Vec<String>, TrainError> {
        let failed = || TrainError::io("cannot list", &self.0);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed())? {
            names.push(entry.map_err(failed())?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Writes a JSON document, atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), TrainError> {
        let json = serde_json::to_string_pretty(value).map_err(|error| self.damaged(name, error.to_string()))?;
        self.write(name, format!("{json}\n").as_bytes())
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

    /// A JSON document; none when there is no such file.
    ///
    /// # Errors
    /// When it cannot be read or is not what it should be.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, TrainError> {
        let Some(text) = self.read(name)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| self.damaged(name, error.to_string()))
    }

    /// Appends an epoch to the metrics.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append_metrics(&self, metrics: &EpochMetrics) -> Result<(), TrainError> {
        let failed = || TrainError::io("cannot write", self.path(METRICS));
        let line = serde_json::to_string(metrics).map_err(|error| self.damaged(METRICS, error.to_string()))?;
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.path(METRICS)).map_err(failed())?;
        file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(failed())
    }

    /// The metrics of the first `epochs` epochs; lines behind them, which no checkpoint covers, are removed.
    ///
    /// # Errors
    /// When the file cannot be read or rewritten, or lacks an epoch.
    pub fn rewind_metrics(&self, epochs: u32) -> Result<Vec<EpochMetrics>, TrainError> {
        let text = self.read(METRICS)?.unwrap_or_default();
        let mut all = Vec::new();
        for (number, line) in text.lines().take(epochs as usize).enumerate() {
            let metrics: EpochMetrics = serde_json::from_str(line)
                .map_err(|error| self.damaged(METRICS, format!("line {}: {error}", number + 1)))?;
            all.push(metrics);
        }
        if all.len() != epochs as usize {
            return Err(self.damaged(METRICS, format!("{} epochs where the checkpoint has {epochs}", all.len())));
        }
        let kept: String = text.split_inclusive('\n').take(epochs as usize).collect();
        if kept.len() != text.len() {
            self.write(METRICS, kept.as_bytes())?;
        }
        Ok(all)
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
        let place = tempfile::tempdir().expect("a folder");
        let folder = RunDir::create(&place.path().join("run"), false).expect("made");
        folder.write_text(CONFIG, "{}").expect("written");
        folder.write_bytes(EVENTS, b"x").expect("written");
        fs::write(folder.path("plain"), "").expect("written");
        let mode = |name: &str| folder.path(name).metadata().expect("it is there").permissions().mode();
        assert_eq!([mode(CONFIG), mode(EVENTS)], [mode("plain"); 2]);
    }

    #[test]
    fn what_a_killed_run_left_unfinished_is_removed() {
        let place = tempfile::tempdir().expect("a folder");
        for name in [".tmpAbC", ".config.json.AbC.part", "kept"] {
            fs::write(place.path().join(name), "").expect("written");
        }
        let folder = RunDir::open(place.path()).expect("opened");
        assert_eq!(folder.entries().expect("listed"), ["kept"]);
    }
}
