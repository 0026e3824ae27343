//! Files that appear whole or not at all: written beside their place under another name, flushed to the disk, then
//! renamed. Whoever writes a file that others read goes through here, so that all have one mode: 0666 less the umask.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;
use thiserror::Error;

/// A file that could not be written.
#[derive(Debug, Error)]
#[error("cannot write {}: {cause}; nothing was left behind", path.display())]
pub struct OutputError {
    pub path: PathBuf,
    pub cause: io::Error,
}

/// A file being written. Dropped unfinished, it leaves nothing behind.
pub struct OutputFile {
    path: PathBuf,
    writer: BufWriter<NamedTempFile>,
    unfinished: Unfinished,
}

impl OutputFile {
    /// # Errors
    /// When the folder cannot be written to, or something other than a file stands in the place.
    pub fn create(path: &Path) -> Result<OutputFile, OutputError> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let cause = io::Error::other("it is a folder or device, not a file");
            return Err(OutputError { path: path.into(), cause });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        sweep(folder, &prefix);
        let mut part = tempfile::Builder::new();
        part.prefix(&prefix).suffix(SUFFIX);
        as_readable_as_any(&mut part);
        let (file, unfinished) =
            Unfinished::create(|| part.tempfile_in(folder), |file| file.path().to_path_buf()).map_err(failed(path))?;
        // As long as this process lives, nobody takes the file for left behind. Where files cannot be locked nobody
        // can find out, either.
        let _ = file.as_file().lock();
        Ok(OutputFile { path: path.to_path_buf(), writer: BufWriter::with_capacity(1 << 16, file), unfinished })
    }

    /// # Errors
    /// When the disk is full or breaks.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.writer.write_all(bytes).map_err(failed(&self.path))
    }

    /// Writes `bytes` over the file's beginning.
    ///
    /// # Errors
    /// When the disk is full or breaks.
    pub fn put_front(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        let write = |writer: &mut BufWriter<NamedTempFile>| -> io::Result<()> {
            writer.seek(SeekFrom::Start(0))?;
            writer.write_all(bytes)?;
            writer.seek(SeekFrom::End(0)).map(drop)
        };
        write(&mut self.writer).map_err(failed(&self.path))
    }

    /// Everything on the disk; only the name is still to come.
    ///
    /// # Errors
    /// When the disk is full or breaks.
    pub fn seal(self) -> Result<SealedFile, OutputError> {
        let OutputFile { path, writer, unfinished } = self;
        let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error).map_err(failed(&path))?;
        file.as_file().sync_all().map_err(failed(&path))?;
        Ok(SealedFile { path, file, unfinished })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the disk is full or breaks.
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

/// Replaces a file as a whole: a reader sees the old content or the new.
///
/// # Errors
/// When the folder cannot be written to or the disk is full; the old file then stands untouched.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let mut file = OutputFile::create(path)?;
    file.put(bytes)?;
    file.finish()
}

/// Whether a file of this name is what a killed process left of an output.
#[must_use]
pub fn is_part(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(SUFFIX)
}

const SUFFIX: &str = ".part";

/// Parts are locked as soon as they exist; one that is not, after this long, has lost its writer.
const STALE: Duration = Duration::from_secs(60);

/// Removes what killed processes left of an output. What cannot be looked at or removed stays.
fn sweep(folder: &Path, prefix: &str) {
    let is_stale = |path: &Path| {
        let Ok(file) = File::open(path) else { return false };
        let age = file.metadata().and_then(|found| found.modified()).ok().and_then(|written| written.elapsed().ok());
        age.is_some_and(|age| age > STALE) && file.try_lock().is_ok()
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_part = name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(SUFFIX));
        if is_part && is_stale(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A file that is written and has no name yet. Dropped, it leaves nothing behind.
pub struct SealedFile {
    path: PathBuf,
    file: NamedTempFile,
    unfinished: Unfinished,
}

impl SealedFile {
    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn persist(self) -> Result<(), OutputError> {
        let SealedFile { path, file, unfinished } = self;
        unfinished.finish(|| file.persist(&path).map_err(|error| error.error)).map_err(failed(&path))?;
        Ok(())
    }
}

/// The unfinished files of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is worth nothing without this process; dropping this says that it is gone or finished.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes a file, which [`remove_unfinished`] then knows.
    ///
    /// # Errors
    /// What `make` returns.
    pub fn create<T, E>(
        make: impl FnOnce() -> Result<T, E>,
        path: impl FnOnce(&T) -> PathBuf,
    ) -> Result<(T, Unfinished), E> {
        let mut all = unfinished();
        let made = make()?;
        let path = path(&made);
        all.insert(path.clone());
        Ok((made, Unfinished(path)))
    }

    /// Finishes or removes the file.
    ///
    /// # Errors
    /// What `finish` returns.
    pub fn finish<T, E>(self, finish: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut all = unfinished();
        let finished = finish();
        all.remove(&self.0);
        drop(all);
        finished
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

/// Removes all unfinished files, for a process that ends while threads are still at work. Threads that want to begin or
/// finish a file from now on wait until the process has ended.
pub fn remove_unfinished() {
    let all = unfinished();
    for path in all.iter() {
        // What cannot be removed now is swept by the next writer.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(all);
}

/// Temporary files are private by default; the system takes the umask from what is asked for here.
#[cfg(unix)]
fn as_readable_as_any(part: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    part.permissions(std::fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn as_readable_as_any(_: &mut tempfile::Builder<'_, '_>) {}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> OutputError {
    let path = path.to_path_buf();
    move |cause| OutputError { path, cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn only_parts_without_a_writer_are_swept() {
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
    fn a_file_has_the_mode_that_any_other_new_file_has() {
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
    fn an_output_that_fails_leaves_nothing_and_touches_nothing() {
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
