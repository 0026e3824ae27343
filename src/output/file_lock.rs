//! Locks between processes, also of several machines that share a folder: a file that its holder keeps locked, and that
//! says who that is. The kernel, or the server of a network file system, releases the lock with the process, however
//! that ends.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::json;
use crate::system;
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

/// Failure to lock a file.
#[derive(Debug, Error)]
pub enum LockError {
    #[error("{} is in use by {}", locked.display(), describe(holder.as_ref()))]
    Held { locked: PathBuf, holder: Option<LockHolder> },
    #[error("cannot lock {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn describe(holder: Option<&LockHolder>) -> String {
    match holder {
        None => "another process".into(),
        Some(LockHolder { pid, host, since }) => format!("process {pid} on {host} since {since}"),
    }
}

impl LockHolder {
    fn this() -> LockHolder {
        LockHolder { pid: std::process::id(), host: system::hostname(), since: utc(SystemTime::now()) }
    }

    fn read(path: &Path) -> Option<LockHolder> {
        json::from_text(&fs::read_to_string(path).ok()?).ok()
    }

    /// False if the process was one of this machine and has ended.
    fn may_live(&self) -> bool {
        self.host != system::hostname() || system::is_running(self.pid)
    }
}

/// How long a lock is waited for whose holder has ended, or is not named yet. A process that is killed while it starts
/// another leaves its locks to that other one, until it runs its own program.
const WAIT_FOR_THE_DEAD: Duration = Duration::from_secs(2);

/// A locked file, until this is dropped.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    /// Its lock ends when it is closed; processes that this one starts do not inherit it.
    file: File,
    /// `None`: others share the lock.
    holder: Option<LockHolder>,
}

impl FileLock {
    /// The name of the file whose lock is the folder's.
    pub const IN_FOLDER: &str = "lock";

    /// Locks a file, which is made if there is none, for this process alone. The file names the process, and is removed
    /// with the lock.
    ///
    /// # Errors
    /// When another process holds the lock, or the file system has no locks.
    pub fn alone(path: &Path) -> Result<FileLock, LockError> {
        FileLock::take(path, path, Some(LockHolder::this()))
    }

    /// Locks a file, which is made if there is none, for all processes that share the lock. The file stays.
    ///
    /// # Errors
    /// When another process holds the lock for itself, or the file system has no locks.
    pub fn shared(path: &Path) -> Result<FileLock, LockError> {
        FileLock::take(path, path, None)
    }

    /// Locks an existing folder for this process alone. File systems without locks do not keep others out.
    ///
    /// # Errors
    /// When another process holds the lock, or the folder cannot be written to.
    pub fn of_folder(folder: &Path) -> Result<FileLock, LockError> {
        FileLock::take(&folder.join(FileLock::IN_FOLDER), folder, Some(LockHolder::this()))
    }

    /// `locked`: the path that errors name.
    fn take(path: &Path, locked: &Path, holder: Option<LockHolder>) -> Result<FileLock, LockError> {
        let failed = |source| LockError::Io { path: path.into(), source };
        let started = Instant::now();
        loop {
            // NFS refuses a shared lock of a file that is not open for reading, and an exclusive one without writing.
            let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
            let mut file = opened.map_err(failed)?;
            let taken = system::try_lock(&file, holder.is_none());
            match taken {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let found = LockHolder::read(path);
                    let waits = holder.is_some() && !found.as_ref().is_some_and(LockHolder::may_live);
                    if waits && started.elapsed() < WAIT_FOR_THE_DEAD {
                        thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                    return Err(LockError::Held { locked: locked.into(), holder: found });
                }
                Err(TryLockError::Error(error)) if is_removed_by(&error) => continue,
                // Only folders do without.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported && path != locked => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // The holder before may have removed the file after it was opened here.
            match is_removed(&file) {
                Ok(false) => {}
                Ok(true) => continue,
                Err(error) => return Err(failed(error)),
            }
            if let Some(holder) = &holder {
                let text = json::to_bytes(holder).expect("texts and numbers are always JSON");
                file.set_len(0).and_then(|()| file.write_all(&text)).map_err(failed)?;
            }
            break Ok(FileLock { path: path.into(), file, holder });
        }
    }

    /// False once the file names another process: a server has given the lock away, because this machine slept or lost
    /// its connection.
    #[must_use]
    pub fn is_held(&self) -> bool {
        match (LockHolder::read(&self.path), &self.holder) {
            (Some(found), Some(own)) => found == *own,
            _ => true,
        }
    }
}

/// Whether the file has no name any more.
fn is_removed(file: &File) -> io::Result<bool> {
    match system::is_removed(file) {
        Err(error) if is_removed_by(&error) => Ok(true),
        known => known,
    }
}

/// Whether a server says that another machine has removed the file.
fn is_removed_by(error: &io::Error) -> bool {
    error.kind() == ErrorKind::StaleNetworkFileHandle
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Removed while it is locked, so that it is no other process's file. If that fails, an unlocked file is left,
        // which nobody holds.
        if self.holder.is_some() && is_removed(&self.file).is_ok_and(|removed| !removed) && self.is_held() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_once_until_the_lock_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = FileLock::of_folder(folder.path()).expect("free");
        let refused = FileLock::of_folder(folder.path()).expect_err("held");
        let LockError::Held { holder: Some(holder), .. } = &refused else { panic!("{refused}") };
        assert_eq!((holder.pid, &holder.host), (std::process::id(), &system::hostname()));
        assert!(refused.to_string().contains(&format!("process {} on", std::process::id())), "{refused}");
        drop(lock);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        drop(FileLock::of_folder(folder.path()).expect("free again"));
    }

    #[test]
    fn the_file_of_a_dead_process_locks_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FileLock::IN_FOLDER);
        fs::write(&path, br#"{"pid":1,"host":"a machine with a long name","since":"yesterday"}"#).expect("written");
        let lock = FileLock::of_folder(folder.path()).expect("free");
        let holder: LockHolder = json::from_bytes(&fs::read(&path).expect("a file")).expect("whole");
        assert_eq!(holder.pid, std::process::id());
        drop(lock);
        assert!(!path.exists());
    }

    /// As of a process that was killed while it started another one, which still holds the lock for a moment.
    #[cfg(unix)]
    #[test]
    fn a_lock_that_outlives_its_holder_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FileLock::IN_FOLDER);
        let mut ended = std::process::Command::new("true").spawn().expect("runs");
        ended.wait().expect("ends");
        let holder = LockHolder { pid: ended.id(), ..LockHolder::this() };
        fs::write(&path, json::to_bytes(&holder).expect("JSON")).expect("written");
        let open = File::open(&path).expect("a file");
        system::try_lock(&open, true).expect("free");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                open.unlock().expect("locked");
            });
            drop(FileLock::of_folder(folder.path()).expect("free after a while"));
        });
        // One that lives is not waited for.
        let _own = FileLock::of_folder(folder.path()).expect("free");
        let started = Instant::now();
        FileLock::of_folder(folder.path()).expect_err("held");
        assert!(started.elapsed() < WAIT_FOR_THE_DEAD);
    }

    #[test]
    fn a_shared_lock_keeps_out_a_lock_for_one_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machine");
        let both = [FileLock::shared(&path).expect("free"), FileLock::shared(&path).expect("shared")];
        assert!(matches!(FileLock::alone(&path), Err(LockError::Held { .. })));
        drop(both);
        assert!(path.exists());
        let alone = FileLock::alone(&path).expect("free");
        assert!(matches!(FileLock::shared(&path), Err(LockError::Held { holder: Some(_), .. })));
        drop(alone);
        assert!(!path.exists());
    }

    /// As when a server gives the lock of a machine that sleeps to another one, which takes the file over.
    #[test]
    fn a_lock_that_was_lost_is_the_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("step");
        let lock = FileLock::alone(&path).expect("free");
        assert!(lock.is_held());
        fs::write(&path, br#"{"pid":1,"host":"another","since":"now"}"#).expect("written");
        assert!(!lock.is_held());
        drop(lock);
        assert!(path.exists());
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
                        let Ok(lock) = FileLock::of_folder(folder.path()) else { continue };
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
