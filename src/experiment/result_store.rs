//! Finished results by key: each in a small file of the work folder, written atomically, with a checksum.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{from_value, to_value};
use crate::record::{RecordFileError, Timestamp, read_checked_json, write_checked_json};

/// Hash of everything that determines a result, including the version of fsbench.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub(super) struct ResultKey(String);

impl ResultKey {
    /// The first twenty hex digits of the hash of `determinants` as JSON.
    pub(super) fn of(kind: &str, determinants: &Value) -> ResultKey {
        let text = serde_json::json!([env!("CARGO_PKG_VERSION"), kind, determinants]).to_string();
        ResultKey(blake3::hash(text.as_bytes()).to_hex()[..20].to_owned())
    }
}

impl std::fmt::Display for ResultKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A result, and the time that it took.
#[derive(Clone, Debug)]
pub(super) struct StoredResult<T> {
    pub(super) seconds: f64,
    pub(super) recorded: Timestamp,
    pub(super) record: T,
}

/// The file of a [`StoredResult`].
#[derive(Serialize, Deserialize)]
struct ResultFile {
    seconds: f64,
    recorded: Timestamp,
    record: Value,
}

/// A folder of [`ResultFile`]s named `KIND-KEY.json`.
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
        let ResultFile { seconds, recorded, record } = read_checked_json(&self.path(kind, key)).ok()?;
        Some(StoredResult { seconds, recorded, record: from_value(&record, "").ok()? })
    }

    pub(super) fn put<T: Serialize>(
        &self,
        kind: &str,
        key: &ResultKey,
        seconds: f64,
        record: T,
    ) -> Result<StoredResult<T>, RecordFileError> {
        let recorded = self.write(kind, key, seconds, to_value(&record))?;
        Ok(StoredResult { seconds, recorded, record })
    }

    fn write(
        &self,
        kind: &str,
        key: &ResultKey,
        seconds: f64,
        record: serde_json::Result<Value>,
    ) -> Result<Timestamp, RecordFileError> {
        let path = self.path(kind, key);
        let record = record.map_err(|source| RecordFileError::Serialise { path: path.clone(), source })?;
        let file = ResultFile { seconds, recorded: Timestamp::now(), record };
        write_checked_json(&path, &file)?;
        Ok(file.recorded)
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
