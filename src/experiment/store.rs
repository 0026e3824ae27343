//! Results by key: each in a small file of the work folder, written atomically, with a checksum.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{from_value, to_value};
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
pub(super) struct StoredResult<T> {
    pub(super) seconds: f64,
    pub(super) recorded: Timestamp,
    /// Hash of what the step made, where the same step may make something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<String>,
    /// Hashes of what the steps that it needs had made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) made_of: Vec<String>,
    pub(super) record: T,
}

impl<T> StoredResult<T> {
    pub(super) fn new(seconds: f64, made: Option<String>, made_of: Vec<String>, record: T) -> StoredResult<T> {
        StoredResult { seconds, recorded: Timestamp::now(), made, made_of, record }
    }
}

/// A folder of [`StoredResult`]s in files named `KIND-KEY.json`.
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
    pub(super) fn get<T: DeserializeOwned>(&self, kind: &str, key: &ResultKey) -> Option<StoredResult<T>> {
        let stored: StoredResult<Value> = read_checked_json(&self.path(kind, key)).ok()?;
        let StoredResult { seconds, recorded, made, made_of, record } = stored;
        Some(StoredResult { seconds, recorded, made, made_of, record: from_value(&record, "").ok()? })
    }

    pub(super) fn put<T: Serialize>(
        &self,
        kind: &str,
        key: &ResultKey,
        stored: &StoredResult<T>,
    ) -> Result<(), RecordFileError> {
        let path = self.path(kind, key);
        let record = to_value(&stored.record);
        let record = record.map_err(|source| RecordFileError::Serialise { path: path.clone(), source })?;
        // Of one type for all kinds, so that it is compiled once.
        let StoredResult { seconds, recorded, made, made_of, .. } = stored;
        let file = StoredResult {
            seconds: *seconds,
            recorded: recorded.clone(),
            made: made.clone(),
            made_of: made_of.clone(),
            record,
        };
        write_checked_json(&path, &file)
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
