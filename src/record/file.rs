//! Small JSON files, written so that a reader sees the old content or the new, never a part.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;
use thiserror::Error;

/// Why a record could not be read or written.
#[derive(Debug, Error)]
pub enum RecordFileError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: line {}, column {}: not the record expected here: {source}", path.display(), source.line(), source.column())]
    Parse { path: PathBuf, source: serde_json::Error },
    #[error("cannot turn {} into JSON: {source}", path.display())]
    Serialise { path: PathBuf, source: serde_json::Error },
}

/// Replaces a file as a whole: written beside it, flushed to the disk, then renamed. Missing folders are made. A file
/// that holds these bytes already is left alone.
///
/// # Errors
/// When the folder cannot be made or written, or the disk is full; the old file then stands untouched.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordFileError> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let failed = |source| RecordFileError::Write { path: path.to_path_buf(), source };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    allow_others_to_read(&file).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Temporary files are made for their owner alone; results are for everyone.
#[cfg(unix)]
fn allow_others_to_read(file: &NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn allow_others_to_read(_file: &NamedTempFile) -> std::io::Result<()> {
    Ok(())
}

/// [`write_atomically`] of indented JSON with a final newline.
///
/// # Errors
/// As [`write_atomically`], or when the value has no JSON form.
pub fn write_json<T: Serialize + ?Sized>(path: &Path, value: &T) -> Result<(), RecordFileError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|source| RecordFileError::Serialise { path: path.to_path_buf(), source })?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}

/// # Errors
/// When the file cannot be read or is not the JSON of a `T`; the error names the line.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordFileError> {
    let bytes = std::fs::read(path).map_err(|source| RecordFileError::Read { path: path.to_path_buf(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| RecordFileError::Parse { path: path.to_path_buf(), source })
}
