//! The locks of a work folder, which its processes share: the folder, a step, a machine. The kernel ends a lock with
//! its holder, so that the steps of a process that died are free.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ExperimentError;
use crate::output::file_lock::{FileLock, LockError};
use crate::system::hostname;

/// Between two looks at steps that others do.
const POLL: Duration = Duration::from_millis(300);
/// After so long, the user learns for whom this process waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// Locks the work folder for one process.
pub(super) fn folder_alone(work: &Path) -> Result<FileLock, ExperimentError> {
    folder(work, FileLock::alone)
}

/// Locks the work folder for all processes that share its steps.
pub(super) fn folder_shared(work: &Path) -> Result<FileLock, ExperimentError> {
    folder(work, FileLock::shared)
}

fn folder(work: &Path, lock: fn(&Path) -> Result<FileLock, LockError>) -> Result<FileLock, ExperimentError> {
    make_folder(work)?;
    match lock(&work.join(FileLock::IN_FOLDER)) {
        Err(LockError::Held { .. }) => Err(ExperimentError::Busy(work.to_path_buf())),
        taken => Ok(taken?),
    }
}

/// The locks on the steps of a work folder.
pub(super) struct StepLocks {
    folder: PathBuf,
}

/// A lock, or why it cannot be had now.
pub(super) enum Tried {
    Taken(FileLock),
    Held(LockError),
}

impl StepLocks {
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn open(work: &Path) -> Result<StepLocks, ExperimentError> {
        let folder = work.join("locks");
        make_folder(&folder)?;
        Ok(StepLocks { folder })
    }

    /// The lock on a step.
    ///
    /// # Errors
    /// When the folder cannot be written or has no locks.
    pub(super) fn step(&self, key: &str) -> Result<Tried, ExperimentError> {
        tried(FileLock::alone(&self.folder.join(key)))
    }

    /// This machine, for a step that must be `alone` on it, or for any number of others.
    ///
    /// # Errors
    /// As [`StepLocks::step`].
    pub(super) fn machine(&self, alone: bool) -> Result<Tried, ExperimentError> {
        let path = self.folder.join(format!("machine {}", hostname()));
        tried(if alone { FileLock::alone(&path) } else { FileLock::shared(&path) })
    }
}

fn tried(lock: Result<FileLock, LockError>) -> Result<Tried, ExperimentError> {
    match lock {
        Ok(lock) => Ok(Tried::Taken(lock)),
        Err(held @ LockError::Held { .. }) => Ok(Tried::Held(held)),
        Err(error) => Err(error.into()),
    }
}

fn make_folder(path: &Path) -> Result<(), ExperimentError> {
    let failed = |source| ExperimentError::WorkFolder { path: path.to_path_buf(), source };
    std::fs::create_dir_all(path).map_err(failed)
}

/// For whom this process waits, and since when.
pub(super) struct Waiting {
    holder: String,
    since: Instant,
    is_told: bool,
}

impl Waiting {
    /// Sleeps until it is worth another look. Returns what to tell the user, once a holder.
    pub(super) fn look(waiting: &mut Option<Waiting>, held: &LockError) -> Option<String> {
        std::thread::sleep(POLL);
        let told = Waiting::note(waiting, held.to_string(), Instant::now());
        told.map(|holder| {
            format!("waiting: {holder}; should that process hang, end it, and its step is done by another")
        })
    }

    fn note(waiting: &mut Option<Waiting>, holder: String, now: Instant) -> Option<String> {
        match waiting {
            Some(known) if known.holder == holder => {
                let is_due = !known.is_told && now.duration_since(known.since) >= PATIENCE;
                known.is_told |= is_due;
                is_due.then_some(holder)
            }
            _ => {
                *waiting = Some(Waiting { holder, since: now, is_told: false });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::file_lock::LockHolder;

    #[test]
    fn a_step_is_locked_once_until_its_lock_is_dropped() {
        let work = tempfile::tempdir().expect("a folder");
        let locks = StepLocks::open(work.path()).expect("a folder");
        let taken = |key: &str| match locks.step(key).expect("writable") {
            Tried::Taken(lock) => Some(lock),
            Tried::Held(_) => None,
        };
        let lock = taken("a").expect("free");
        assert!(taken("a").is_none() && taken("b").is_some());
        drop(lock);
        assert!(taken("a").is_some());
        assert_eq!(std::fs::read_dir(&locks.folder).expect("a folder").count(), 0);
    }

    #[test]
    fn who_holds_a_step_for_long_is_named_once() {
        let mut waiting = None;
        let begun = Instant::now();
        let mut note =
            |holder: &str, seconds| Waiting::note(&mut waiting, holder.into(), begun + Duration::from_secs(seconds));
        assert_eq!(note("a", 0), None);
        assert_eq!(note("a", 59), None);
        assert_eq!(note("a", 60).as_deref(), Some("a"));
        assert_eq!(note("a", 600), None);
        assert_eq!(note("b", 601), None);
        assert_eq!(note("b", 661).as_deref(), Some("b"));
    }

    /// Of a process that hangs, on this machine or another one, the user learns which it is, and what to do.
    #[test]
    fn a_holder_that_hangs_is_named() {
        let holder = LockHolder { pid: 7, host: "node3".into(), since: "noon".into() };
        let held = LockError::Held { locked: "work/locks/a".into(), holder: Some(holder) };
        let since = Instant::now().checked_sub(PATIENCE).expect("the machine has run for a minute");
        let mut waiting = Some(Waiting { holder: held.to_string(), since, is_told: false });
        let told = Waiting::look(&mut waiting, &held).expect("it is time");
        assert_eq!(
            told,
            "waiting: work/locks/a is in use by process 7 on node3 since noon; should that process hang, end it, and \
             its step is done by another"
        );
    }
}
