//! Finished results by key: a small file each, written as a whole, in the work folder.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::{RecordFileError, Timestamp, read_json, write_json};

/// Digest of everything that determines a result, this program's version included.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub(super) struct Key(String);

impl Key {
    /// Twenty hex digits of the hash of `parts` as JSON.
    pub(super) fn of(kind: &str, parts: &serde_json::Value) -> Key {
        let text = serde_json::json!([env!("CARGO_PKG_VERSION"), kind, parts]).to_string();
        Key(blake3::hash(text.as_bytes()).to_hex()[..20].to_owned())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A result with what its making cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored<T> {
    pub(super) seconds: f64,
    pub(super) recorded: Timestamp,
    pub(super) record: T,
}

/// A folder of [`Stored`] results, named `KIND-KEY.json`.
#[derive(Clone, Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn new(folder: &Path) -> Store {
        Store { folder: folder.to_path_buf() }
    }

    fn path(&self, kind: &str, key: &Key) -> PathBuf {
        self.folder.join(format!("{kind}-{key}.json"))
    }

    /// The result, when it is there and readable; what is not readable is made again.
    pub(super) fn get<T: DeserializeOwned>(&self, kind: &str, key: &Key) -> Option<Stored<T>> {
        read_json(&self.path(kind, key)).ok()
    }

    pub(super) fn put<T: Serialize>(
        &self,
        kind: &str,
        key: &Key,
        seconds: f64,
        record: T,
    ) -> Result<Stored<T>, RecordFileError> {
        let stored = Stored { seconds, recorded: Timestamp::now(), record };
        write_json(&self.path(kind, key), &stored)?;
        Ok(stored)
    }

    /// Forgets a result; it is no error when there is none.
    pub(super) fn remove(&self, kind: &str, key: &Key) -> Result<(), RecordFileError> {
        let path = self.path(kind, key);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(RecordFileError::Write { path, source })
            }
            _ => Ok(()),
        }
    }
}
