//! The lock of a folder that one process writes to: a file in it that its holder keeps locked, and that says who that
//! is. The kernel releases the lock with the process, however that ends.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::text::utc;

/// The process that holds a lock, as the lock's file names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    /// The machine's name.
    pub host: String,
    /// When it locked the folder.
    pub since: String,
}

/// Failure to lock a folder.
#[derive(Debug, Error)]
pub enum LockError {
    #[error("{} is in use by {}", folder.display(), describe(holder.as_ref()))]
    Held { folder: PathBuf, holder: Option<LockHolder> },
    #[error("cannot lock {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn describe(holder: Option<&LockHolder>) -> String {
    holder.map_or_else(
        || "another process".into(),
        |LockHolder { pid, host, since }| format!("process {pid} on {host} since {since}"),
    )
}

impl LockHolder {
    fn this() -> LockHolder {
        LockHolder { pid: std::process::id(), host: hostname(), since: utc(SystemTime::now()) }
    }
}

/// A folder that this process has to itself until this is dropped. File systems without locks do not keep others out.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    /// Its lock ends when it is closed; processes that this one starts do not inherit it.
    file: File,
}

impl FolderLock {
    /// The name of the file.
    pub const NAME: &str = "lock";

    /// Locks an existing folder.
    ///
    /// # Errors
    /// When another process holds the lock, or the folder cannot be written to.
    pub fn acquire(folder: &Path) -> Result<FolderLock, LockError> {
        let path = folder.join(FolderLock::NAME);
        let failed = |source| LockError::Io { path: path.clone(), source };
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        loop {
            let mut file = open().map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let holder = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
                    return Err(LockError::Held { folder: folder.into(), holder });
                }
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // The holder before may have removed the file after it was opened here.
            if !is_at(&file, &path).map_err(failed)? {
                continue;
            }
            let holder = serde_json::to_vec(&LockHolder::this()).expect("texts and numbers are always JSON");
            file.set_len(0).and_then(|()| file.write_all(&holder)).map_err(failed)?;
            break Ok(FolderLock { path: path.clone(), file });
        }
    }
}

/// Whether the open file is the file at the path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Removed while it is locked, so that it is no other process's file. If that fails, an unlocked file is left,
        // which nobody holds.
        if is_at(&self.file, &self.path).unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The machine's name; empty where the kernel does not tell.
#[must_use]
pub fn hostname() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_once_until_the_lock_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = FolderLock::acquire(folder.path()).expect("free");
        let refused = FolderLock::acquire(folder.path()).expect_err("held");
        let LockError::Held { holder: Some(holder), .. } = &refused else { panic!("{refused}") };
        assert_eq!((holder.pid, &holder.host), (std::process::id(), &hostname()));
        assert!(refused.to_string().contains(&format!("process {} on", std::process::id())), "{refused}");
        drop(lock);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        drop(FolderLock::acquire(folder.path()).expect("free again"));
    }

    #[test]
    fn the_file_of_a_dead_process_locks_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FolderLock::NAME);
        fs::write(&path, br#"{"pid":1,"host":"a machine with a long name","since":"yesterday"}"#).expect("written");
        let lock = FolderLock::acquire(folder.path()).expect("free");
        let holder: LockHolder = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("whole");
        assert_eq!(holder.pid, std::process::id());
        drop(lock);
        assert!(!path.exists());
    }

    /// Threads that lock and unlock at once: never do two hold the lock.
    #[test]
    fn a_lock_that_is_being_removed_is_not_shared() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let folder = tempfile::tempdir().expect("a folder");
        let holders = AtomicU32::new(0);
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let Ok(lock) = FolderLock::acquire(folder.path()) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        taken.fetch_add(1, Ordering::Relaxed);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(taken.into_inner() > 0);
    }
}
