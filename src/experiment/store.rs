//! Results by key: each in a small file of the work folder, written atomically, with a checksum.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{RecordFileError, Timestamp, read_checked_json, write_checked_json};

/// Hash of everything that determines a result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ResultKey(String);

impl ResultKey {
    /// The first twenty hex digits of the hash of `determinants` as JSON.
    pub(super) fn of(determinants: &Value) -> ResultKey {
        ResultKey(blake3::hash(determinants.to_string().as_bytes()).to_hex()[..20].to_owned())
    }
}

impl std::fmt::Display for ResultKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A result, and how it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredResult {
    pub(super) seconds: f64,
    pub(super) recorded: Timestamp,
    /// Hash of what the step made, where the same step may make something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<String>,
    /// Hashes of what the steps that it needs had made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) made_of: Vec<String>,
    pub(super) record: Value,
}

impl StoredResult {
    pub(super) fn new(seconds: f64, record: Value) -> StoredResult {
        StoredResult { seconds, recorded: Timestamp::now(), made: None, made_of: Vec::new(), record }
    }
}

/// A folder of [`StoredResult`]s, in files named `KIND-KEY.json`.
#[derive(Clone, Debug)]
pub(super) struct ResultStore {
    folder: PathBuf,
}

impl ResultStore {
    pub(super) fn new(folder: &Path) -> ResultStore {
        ResultStore { folder: folder.to_path_buf() }
    }

    fn path(&self, kind: &str, key: &ResultKey) -> PathBuf {
        self.folder.join(format!("{kind}-{key}.json"))
    }

    /// The stored result; `None` if it is missing, unreadable or damaged.
    pub(super) fn get(&self, kind: &str, key: &ResultKey) -> Option<StoredResult> {
        read_checked_json(&self.path(kind, key)).ok()
    }

    pub(super) fn put(&self, kind: &str, key: &ResultKey, stored: &StoredResult) -> Result<(), RecordFileError> {
        write_checked_json(&self.path(kind, key), stored)
    }

    /// Removes a result; a missing one is no error.
    pub(super) fn remove(&self, kind: &str, key: &ResultKey) -> Result<(), RecordFileError> {
        let path = self.path(kind, key);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(RecordFileError::Write { path, source })
            }
            _ => Ok(()),
        }
    }
}
