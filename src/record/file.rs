//! Small JSON files, replaced atomically: a reader sees the old content or the new, never a part of it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::output::checked::{content_of, in_envelope};
use crate::output::{self, OutputError, OutputFile};

/// Errors of reading and writing records.
#[derive(Debug, Error)]
pub enum RecordFileError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: line {}, column {}: not a valid record: {source}", path.display(), source.line(), source.column())]
    Parse { path: PathBuf, source: serde_json::Error },
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
    write_atomically(path, (indented(path, value)? + "\n").as_bytes())
}

/// As [`write_json`], in an envelope with a checksum ([`in_envelope`]): for files that fsbench alone reads.
///
/// # Errors
/// As [`write_json`].
pub fn write_checked_json<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<(), RecordFileError> {
    write_atomically(path, checked(path, value)?.as_bytes())
}

/// Writes a value as [`write_checked_json`] does, into a folder that exists, unless there is a file of this path: then
/// that file's value is returned, and this one is not kept.
///
/// # Errors
/// As [`write_json`] and [`read_checked_json`].
pub fn keep_first_json<T: Serialize + DeserializeOwned>(path: &Path, value: T) -> Result<T, RecordFileError> {
    let text = checked(path, &value)?;
    let keep = || {
        let mut file = OutputFile::create(path)?;
        file.put(text.as_bytes())?;
        file.seal()?.persist_first()
    };
    match keep() {
        Ok(true) => Ok(value),
        Ok(false) => read_checked_json(path),
        Err(OutputError { cause, .. }) => Err(RecordFileError::Write { path: path.to_path_buf(), source: cause }),
    }
}

fn checked<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<String, RecordFileError> {
    Ok(in_envelope(&indented(path, value)?) + "\n")
}

fn indented<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<String, RecordFileError> {
    serde_json::to_string_pretty(value)
        .map_err(|source| RecordFileError::Serialise { path: path.to_path_buf(), source })
}

/// Reads a value from a JSON file.
///
/// # Errors
/// When the file cannot be read, or is not the JSON of a `T`; then the error names line and column.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordFileError> {
    parse(path, &read_text(path)?)
}

/// Reads a value that [`write_checked_json`] wrote.
///
/// # Errors
/// As [`read_json`], and when the file is damaged.
pub fn read_checked_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordFileError> {
    let text = read_text(path)?;
    let content = content_of(text.trim_end()).map_err(|_| RecordFileError::Damaged(path.to_path_buf()))?;
    parse(path, content)
}

fn read_text(path: &Path) -> Result<String, RecordFileError> {
    std::fs::read_to_string(path).map_err(|source| RecordFileError::Read { path: path.to_path_buf(), source })
}

fn parse<T: DeserializeOwned>(path: &Path, json: &str) -> Result<T, RecordFileError> {
    serde_json::from_str(json).map_err(|source| RecordFileError::Parse { path: path.to_path_buf(), source })
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
