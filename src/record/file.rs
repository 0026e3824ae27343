//! Small JSON files, replaced atomically: a reader sees the old content or the new, never a part of it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::json::{JsonError, ReadError, from_text, from_value, to_indented};
use crate::output::checked::{content_of, in_envelope};
use crate::output::{self, OutputError, OutputFile};

/// Errors of reading and writing records.
#[derive(Debug, Error)]
pub enum RecordFileError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: not a valid record: {source}", path.display())]
    Parse { path: PathBuf, source: JsonError },
    #[error(
        "{}: its checksum does not match: it is damaged or was edited; remove the file to make it again",
        .0.display()
    )]
    Damaged(PathBuf),
    #[error("{}: not what its record describes; remove the file and run the experiment again", .0.display())]
    Digest(PathBuf),
    #[error("cannot turn {} into JSON: {source}", path.display())]
    Serialise { path: PathBuf, source: serde_json::Error },
}

/// Writes a file atomically ([`output::write`]). Creates missing folders; does not touch a file that has these bytes
/// already.
///
/// # Errors
/// When the folder cannot be created or written, or the disk is full; the old file then stays unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordFileError> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let failed = |source| RecordFileError::Write { path: path.to_path_buf(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    output::write(path, bytes).map_err(|OutputError { cause, .. }| failed(cause))
}

/// Writes a value as indented JSON with a final newline, by [`write_atomically`].
///
/// # Errors
/// As [`write_atomically`], or when the value has no JSON form.
pub fn write_json<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<(), RecordFileError> {
    let json = serialised(path, to_indented(value))?;
    write_atomically(path, (json + "\n").as_bytes())
}

/// As [`write_json`], in an envelope with a checksum ([`in_envelope`]): for files that fsbench alone reads.
///
/// # Errors
/// As [`write_json`].
pub fn write_checked_json<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<(), RecordFileError> {
    let text = checked(path, to_indented(value))?;
    write_atomically(path, text.as_bytes())
}

/// Writes a value as [`write_checked_json`] does, into a folder that exists, unless there is a file of this path: then
/// that file's value is returned, and this one is not kept.
///
/// # Errors
/// As [`write_json`] and [`read_checked_json`].
pub fn keep_first_json<T: Serialize + DeserializeOwned>(path: &Path, value: T) -> Result<T, RecordFileError> {
    let text = checked(path, to_indented(&value))?;
    if write_first(path, &text)? { Ok(value) } else { read_checked_json(path) }
}

/// Writes a text unless there is a file of this path; returns whether it did.
fn write_first(path: &Path, text: &str) -> Result<bool, RecordFileError> {
    let keep = || {
        let mut file = OutputFile::create(path)?;
        file.put(text.as_bytes())?;
        file.seal()?.persist_first()
    };
    keep().map_err(|OutputError { cause, .. }| RecordFileError::Write { path: path.to_path_buf(), source: cause })
}

fn checked(path: &Path, json: serde_json::Result<String>) -> Result<String, RecordFileError> {
    Ok(in_envelope(&serialised(path, json)?) + "\n")
}

fn serialised(path: &Path, json: serde_json::Result<String>) -> Result<String, RecordFileError> {
    json.map_err(|source| RecordFileError::Serialise { path: path.to_path_buf(), source })
}

/// Reads a value from a JSON file.
///
/// # Errors
/// When the file cannot be read, or is not the JSON of a `T`; then the error names the line and column, or the value's
/// path.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordFileError> {
    let value = parse(path, &read_text(path)?)?;
    from_value(&value, "").map_err(|error| not_this_record(path, error))
}

/// Reads a value that [`write_checked_json`] wrote.
///
/// # Errors
/// As [`read_json`], and when the file is damaged.
pub fn read_checked_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordFileError> {
    let value = read_checked(path)?;
    from_value(&value, "").map_err(|error| not_this_record(path, error))
}

fn read_checked(path: &Path) -> Result<Value, RecordFileError> {
    let text = read_text(path)?;
    let content = content_of(text.trim_end()).map_err(|_| RecordFileError::Damaged(path.to_path_buf()))?;
    parse(path, content)
}

fn read_text(path: &Path) -> Result<String, RecordFileError> {
    std::fs::read_to_string(path).map_err(|source| RecordFileError::Read { path: path.to_path_buf(), source })
}

fn parse(path: &Path, json: &str) -> Result<Value, RecordFileError> {
    from_text(json).map_err(|source| RecordFileError::Parse { path: path.to_path_buf(), source })
}

fn not_this_record(path: &Path, error: ReadError) -> RecordFileError {
    RecordFileError::Parse { path: path.to_path_buf(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.json");
        let kept = ["first", "second"].map(|value| keep_first_json(&path, value.to_owned()).expect("written or read"));
        assert_eq!(kept, ["first", "first"]);
        std::fs::write(&path, "{").expect("written");
        assert!(matches!(keep_first_json(&path, 1), Err(RecordFileError::Damaged(_))));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
