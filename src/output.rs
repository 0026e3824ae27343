//! Atomic output files: written under a temporary name in the same folder, flushed to the disk, then renamed.
//!
//! All files that others read are written through this module. Their mode is 0666 less the umask. A folder that one
//! process has to itself while it writes is locked ([`file_lock`]).

pub mod checked;
pub mod file_lock;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;
use thiserror::Error;

use crate::system;

/// Failure to write a file.
#[derive(Debug, Error)]
#[error("cannot write {}: {cause}; nothing was left behind", path.display())]
pub struct OutputError {
    pub path: PathBuf,
    pub cause: io::Error,
}

/// A file being written. If it is dropped before [`OutputFile::finish`], nothing is left on the disk.
pub struct OutputFile {
    path: PathBuf,
    writer: BufWriter<NamedTempFile>,
    unfinished: Unfinished,
}

impl OutputFile {
    /// Starts a file that will appear at `path`.
    ///
    /// # Errors
    /// When the folder cannot be written to, or `path` is a folder or device.
    pub fn create(path: &Path) -> Result<OutputFile, OutputError> {
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let cause = io::Error::other("it is a folder or device, not a file");
            return Err(OutputError { path: path.into(), cause });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        remove_stale_parts(folder, &prefix);
        let mut part = tempfile::Builder::new();
        part.prefix(&prefix).suffix(SUFFIX);
        // Temporary files are private by default.
        if let Some(permissions) = system::default_permissions() {
            part.permissions(permissions);
        }
        let (file, unfinished) =
            Unfinished::create(|| part.tempfile_in(folder), |file| file.path().to_path_buf()).map_err(failed(path))?;
        // The lock tells other processes that the file is in use. File systems without locks do not remove stale files.
        let _ = file.as_file().lock();
        Ok(OutputFile { path: path.to_path_buf(), writer: BufWriter::with_capacity(1 << 16, file), unfinished })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.writer.write_all(bytes).map_err(failed(&self.path))
    }

    /// Overwrites the beginning of the file.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn put_front(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let write = |writer: &mut BufWriter<NamedTempFile>| -> io::Result<()> {
            writer.seek(SeekFrom::Start(0))?;
            writer.write_all(bytes)?;
            writer.seek(SeekFrom::End(0)).map(drop)
        };
        write(&mut self.writer).map_err(failed(&self.path))
    }

    /// Flushes everything to the disk, but does not rename the file yet.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn seal(self) -> Result<SealedFile, OutputError> {
        let OutputFile { path, writer, unfinished } = self;
        let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error).map_err(failed(&path))?;
        file.as_file().sync_all().map_err(failed(&path))?;
        Ok(SealedFile { path, file, unfinished })
    }

    /// Flushes the file and renames it to its path.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn finish(self) -> Result<(), OutputError> {
        self.seal()?.persist()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes or replaces a file. Readers see either the old content or the new.
///
/// # Errors
/// When the folder cannot be written to or the disk is full. The old file is then unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let mut file = OutputFile::create(path)?;
    file.put(bytes)?;
    file.finish()
}

/// Whether this is the name of an unfinished output, which a killed process may have left.
#[must_use]
pub fn is_part(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(SUFFIX)
}

const SUFFIX: &str = ".part";

/// Writers lock their parts at once. An older part without a lock has lost its writer.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// Removes parts that killed processes have left. Parts that cannot be read or removed stay.
fn remove_stale_parts(folder: &Path, prefix: &str) {
    let is_stale = |path: &Path| {
        // For writing, since NFS refuses an exclusive lock without it.
        let Ok(file) = File::options().read(true).write(true).open(path) else { return false };
        let age =
            file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|written| written.elapsed().ok());
        age.is_some_and(|age| age > STALE_AFTER) && file.try_lock().is_ok()
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_part = name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(SUFFIX));
        if is_part && is_stale(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A flushed file that has not been renamed yet. If it is dropped, nothing is left on the disk.
pub struct SealedFile {
    path: PathBuf,
    file: NamedTempFile,
    unfinished: Unfinished,
}

impl SealedFile {
    /// Renames the file to its path.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn persist(self) -> Result<(), OutputError> {
        let SealedFile { path, file, unfinished } = self;
        unfinished.finish(|| file.persist(&path).map_err(|error| error.error)).map_err(failed(&path))?;
        Ok(())
    }

    /// Renames the file to its path, unless there is a file already: then that one stays, and this one is removed.
    /// Returns whether it was renamed. Of processes that do this at once, one succeeds; but several may on the few file
    /// systems that have neither links nor renames that replace nothing.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn persist_first(self) -> Result<bool, OutputError> {
        let SealedFile { path, file, unfinished } = self;
        // Inside, since a file that was not renamed is removed when its error is dropped.
        let rename = || match file.persist_noclobber(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) if has_no_links(&error.error) && !path.exists() => {
                error.file.persist(&path).map(|_| true).map_err(|error| error.error)
            }
            Err(error) => Err(error.error),
        };
        unfinished.finish(rename).map_err(failed(&path))
    }
}

/// Whether this may be the error of a link where the file system has none.
fn has_no_links(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
}

/// The unfinished files of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registration of a file or folder that must be removed if the process ends before the file is finished. Dropping it
/// ends the registration.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Creates a file and registers it for [`remove_unfinished`].
    ///
    /// # Errors
    /// As `make`.
    pub fn create<T, E>(
        make: impl FnOnce() -> Result<T, E>,
        path: impl FnOnce(&T) -> PathBuf,
    ) -> Result<(T, Unfinished), E> {
        let mut all = unfinished();
        let file = make()?;
        let path = path(&file);
        all.insert(path.clone());
        Ok((file, Unfinished(path)))
    }

    /// Finishes or removes the file and ends the registration.
    ///
    /// # Errors
    /// As `finish`.
    pub fn finish<T, E>(self, finish: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut all = unfinished();
        let result = finish();
        all.remove(&self.0);
        drop(all);
        result
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

/// Removes all unfinished files and folders before the process ends, while other threads may still be at work. Threads
/// that then start or finish a file block until the process has ended.
pub fn remove_unfinished() {
    let all = unfinished();
    for path in all.iter() {
        // If this fails, the next writer removes the file.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    std::mem::forget(all);
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> OutputError {
    let path = path.to_path_buf();
    move |cause| OutputError { path, cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn the_first_of_two_files_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        let sealed = [b"first", b"other"].map(|bytes| {
            let mut file = OutputFile::create(&path).expect("created");
            file.put(bytes).expect("written");
            file.seal().expect("flushed")
        });
        assert_eq!(sealed.map(|file| file.persist_first().expect("renamed or not")), [true, false]);
        assert_eq!(std::fs::read(&path).expect("a file"), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn only_parts_without_a_writer_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let part = |name: &str, age: Duration| {
            let file = File::create(at(name)).expect("created");
            file.set_modified(SystemTime::now() - age).expect("aged");
            file
        };
        let old = Duration::from_secs(3600);
        for (name, age) in [(".x.fsd.a.part", old), (".x.fsd.b.part", Duration::ZERO), (".y.fsd.c.part", old)] {
            drop(part(name, age));
        }
        let written = part(".x.fsd.d.part", old);
        written.lock().expect("locked");
        OutputFile::create(&at("x.fsd")).and_then(OutputFile::finish).expect("written");
        let found = |name: &str| at(name).exists();
        assert!(!found(".x.fsd.a.part"));
        assert!(found(".x.fsd.b.part") && found(".y.fsd.c.part") && found(".x.fsd.d.part") && found("x.fsd"));
    }

    #[cfg(unix)]
    #[test]
    fn files_have_the_default_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |name: &str| {
            let found = folder.path().join(name).metadata().expect("it is there");
            found.permissions().mode() & 0o7777
        };
        std::fs::write(folder.path().join("plain"), "").expect("written");
        write(&folder.path().join("whole"), b"x").expect("written");
        assert_eq!(mode("whole"), mode("plain"));
    }

    #[test]
    fn a_failed_output_changes_no_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.json");
        write(&path, b"old").expect("written");
        let mut file = OutputFile::create(&path).expect("created");
        file.put(b"half of the n").expect("the disk has room");
        drop(file);
        std::fs::create_dir(folder.path().join("folder")).expect("made");
        assert!(write(&folder.path().join("folder"), b"x").is_err());
        assert!(write(&folder.path().join("nowhere/x"), b"x").is_err());
        assert_eq!(std::fs::read(&path).expect("it is there"), b"old");
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["folder", "results.json"]);
    }
}
