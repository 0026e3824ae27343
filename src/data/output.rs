//! Files that appear whole or not at all: written beside their place under another name, then renamed.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use super::DataError;

/// A file being written. Dropped unfinished, it leaves nothing behind.
pub struct OutputFile {
    path: PathBuf,
    writer: BufWriter<NamedTempFile>,
}

impl OutputFile {
    /// # Errors
    /// When the folder cannot be written to, or something other than a file stands in the place.
    pub fn create(path: &Path) -> Result<OutputFile, DataError> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let cause = io::Error::other("it is a folder or device, not a file");
            return Err(DataError::Write { path: path.into(), cause });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        sweep(folder, &prefix);
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(SUFFIX)
            .tempfile_in(folder)
            .map_err(DataError::write(path))?;
        // As long as this process lives, nobody takes the file for left behind. Where files cannot be locked nobody
        // can find out, either.
        let _ = file.as_file().lock();
        Ok(OutputFile { path: path.to_path_buf(), writer: BufWriter::with_capacity(1 << 16, file) })
    }

    /// # Errors
    /// When the disk is full or breaks.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        self.writer.write_all(bytes).map_err(DataError::write(&self.path))
    }

    /// Writes `bytes` over the file's beginning.
    ///
    /// # Errors
    /// When the disk is full or breaks.
    pub fn put_front(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        let write = |writer: &mut BufWriter<NamedTempFile>| -> io::Result<()> {
            writer.seek(SeekFrom::Start(0))?;
            writer.write_all(bytes)?;
            writer.seek(SeekFrom::End(0)).map(drop)
        };
        write(&mut self.writer).map_err(DataError::write(&self.path))
    }

    /// Everything on the disk; only the name is still to come.
    ///
    /// # Errors
    /// When the disk is full or breaks.
    pub fn seal(self) -> Result<SealedFile, DataError> {
        let path = self.path;
        let file =
            self.writer.into_inner().map_err(std::io::IntoInnerError::into_error).map_err(DataError::write(&path))?;
        publish(file.as_file()).map_err(DataError::write(&path))?;
        file.as_file().sync_all().map_err(DataError::write(&path))?;
        Ok(SealedFile { path, file })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the disk is full or breaks.
    pub fn finish(self) -> Result<(), DataError> {
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
}

impl SealedFile {
    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn persist(self) -> Result<(), DataError> {
        self.file.persist(&self.path).map_err(|error| error.error).map_err(DataError::write(&self.path))?;
        Ok(())
    }
}

/// Temporary files are private; finished ones are as readable as any other.
#[cfg(unix)]
fn publish(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn publish(_: &File) -> io::Result<()> {
    Ok(())
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
}
