//! The folder of an export: made under a temporary name beside its place, then renamed.

use std::io;
use std::path::Path;

use super::ExportError;
use crate::output::{self, OutputError, Unfinished};

/// A file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its name within the folder.
    pub name: String,
    pub content: Vec<u8>,
}

impl ExportFile {
    pub fn new(name: &str, content: impl Into<Vec<u8>>) -> ExportFile {
        ExportFile { name: name.to_owned(), content: content.into() }
    }
}

/// Refuses a folder with anything in it.
///
/// # Errors
/// When the path is a file or a folder that is not empty.
pub fn check(folder: &Path) -> Result<(), ExportError> {
    match folder.metadata() {
        Ok(found) if !found.is_dir() => Err(ExportError::NotAFolder(folder.to_path_buf())),
        Ok(_) => match std::fs::read_dir(folder).map_err(|cause| failed(folder, cause))?.next() {
            Some(_) => Err(ExportError::NotEmpty(folder.to_path_buf())),
            None => Ok(()),
        },
        Err(_) => Ok(()),
    }
}

/// Writes the files; the folder's parents are made if need be.
///
/// # Errors
/// When the disk is full or the place cannot be written to.
pub fn write(folder: &Path, files: &[ExportFile]) -> Result<(), ExportError> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(|cause| failed(folder, cause))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let prefix = format!(".{name}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    let (temporary, unfinished) = Unfinished::create(|| builder.tempdir_in(parent), |made| made.path().to_path_buf())
        .map_err(|cause| failed(folder, cause))?;
    let inner = temporary.path().join("export");
    std::fs::create_dir(&inner).map_err(|cause| failed(folder, cause))?;
    for file in files {
        output::write(&inner.join(&file.name), &file.content)?;
    }
    // Renaming replaces an empty folder and no other.
    unfinished.finish(|| std::fs::rename(&inner, folder)).map_err(|cause| failed(folder, cause))
}

fn failed(folder: &Path, cause: io::Error) -> ExportError {
    OutputError { path: folder.to_path_buf(), cause }.into()
}
