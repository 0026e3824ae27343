//! Where the networks of an experiment are: links in its results, and a note in the work folder of who uses which run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ExperimentError;
use crate::data::Method;
use crate::record::{RecordFileError, RunKey, read_json, write_json};
use crate::train::TrainConfig;
use crate::train::run_dir::{CONFIG, OUTCOME};
use crate::units::Seed;

/// A finished run of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trained {
    #[serde(flatten)]
    pub key: RunKey,
    /// The run's folder.
    pub folder: PathBuf,
    /// The quantised network in it.
    pub network: PathBuf,
    /// A link to it in the results folder, where the file system has links.
    pub link: Option<PathBuf>,
}

/// Folder of the links, in a results folder.
const LINKS: &str = "networks";

/// Puts a link to a run's network into the results folder: `networks/METHOD-LABEL-seedN.safetensors`. No link where there
/// can be none.
pub(super) fn link(results: &Path, key: &RunKey, network: &Path) -> Option<PathBuf> {
    let link = results.join(LINKS).join(format!("{}.safetensors", file_name(key)));
    if std::fs::read_link(&link).is_ok_and(|target| target == network) {
        return Some(link);
    }
    std::fs::create_dir_all(link.parent()?).ok()?;
    // A link of an earlier run of this row; anything else stays, and is in the way.
    if link.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
        std::fs::remove_file(&link).ok()?;
    }
    symlink(network, &link).ok()?;
    Some(link)
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(_target: &Path, _link: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A run in letters that every file system takes; different runs have different names.
fn file_name(key: &RunKey) -> String {
    let RunKey { set, method, seed } = key;
    let plain: String = set.chars().map(plain).take(60).collect();
    let hash = if plain == *set { String::new() } else { format!("-{}", &blake3::hash(set.as_bytes()).to_hex()[..6]) };
    format!("{}-{plain}{hash}-seed{}", method.name(), seed.0)
}

pub(super) fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
}

/// What an experiment uses of the work folder. It counts as long as its results folder stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) name: String,
    pub(super) results: PathBuf,
    /// Names of run folders.
    pub(super) runs: Vec<String>,
}

/// Folder of the notes, in the work folder.
const USAGES: &str = "experiments";

impl Usage {
    /// Notes it, in the place of what the same results folder used before.
    pub(super) fn note(&self, work: &Path) -> Result<(), RecordFileError> {
        let name = &blake3::hash(self.results.as_os_str().as_encoded_bytes()).to_hex()[..16];
        write_json(&work.join(USAGES).join(format!("{name}.json")), self)
    }

    /// Of every experiment whose results stand.
    fn all(work: &Path) -> Vec<Usage> {
        let entries = std::fs::read_dir(work.join(USAGES)).into_iter().flatten().flatten();
        let usages = entries.filter_map(|entry| read_json::<Usage>(&entry.path()).ok());
        usages.filter(|usage| usage.results.is_dir()).collect()
    }
}

/// A run in the work folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeptRun {
    /// Its folder.
    pub path: PathBuf,
    pub bytes: u64,
    /// False of one that was interrupted.
    pub finished: bool,
    /// The feature set as it was asked for.
    pub set: String,
    pub method: Method,
    pub seed: Seed,
    /// Results folders of the experiments that use it.
    pub used_by: Vec<PathBuf>,
}

/// Every run in the work folder, by name.
///
/// # Errors
/// When the folder stands and cannot be read.
pub fn kept_runs(work: &Path) -> Result<Vec<KeptRun>, ExperimentError> {
    let failed = |source| ExperimentError::Work { path: work.to_path_buf(), source };
    let entries = match std::fs::read_dir(work) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let usages = Usage::all(work);
    let mut runs = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        // Nothing but what a trainer began is a run.
        let Ok(config) = read_json::<TrainConfig>(&path.join(CONFIG)) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let users = usages.iter().filter(|usage| usage.runs.contains(&name));
        runs.push(KeptRun {
            bytes: size(&path),
            finished: path.join(OUTCOME).is_file(),
            set: config.set,
            method: config.method,
            seed: config.seed,
            used_by: users.map(|usage| usage.results.clone()).collect(),
            path,
        });
    }
    runs.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(runs)
}

/// Removes the runs that no experiment uses; gives those it removed.
///
/// # Errors
/// When an experiment is at work in the folder, or a run cannot be removed.
pub fn remove_unused_runs(work: &Path) -> Result<Vec<KeptRun>, ExperimentError> {
    let _alone = super::runner::lock(work)?;
    let mut unused = kept_runs(work)?;
    unused.retain(|run| run.used_by.is_empty());
    for run in &unused {
        let failed = |source| ExperimentError::Work { path: run.path.clone(), source };
        std::fs::remove_dir_all(&run.path).map_err(failed)?;
    }
    Ok(unused)
}

/// Bytes of the files in a folder.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file).map(|file| file.len()).sum()
}
