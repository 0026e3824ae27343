//! Names of shared memory, for consumers in another container or without access to `/proc`.
//!
//! The name exists in the system's folder from the description until the consumer gives its first slot back, which shows that it
//! has mapped the memory. A service removes its name when it ends; a service killed before that leaves it, and the next
//! service or client removes it. A lock on the file shows whether the owner lives: the kernel releases it however a
//! process ends, even across containers, where process IDs cannot be compared.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::Unfinished;
use crate::system::{self, NamedMemory};

/// How a consumer finds the shared memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShmNaming {
    /// Through the service's `/proc/PID/fd`: killed processes leave nothing behind. Systems without it name the memory.
    #[default]
    Unnamed,
    /// Through a file, on Linux in `/dev/shm`, which another container can share.
    Named,
}

const PREFIX: &str = "fsbench-samples-";

/// Attempts to create a name; one fails if the name exists, or if a sweep removed it before it was locked.
const ATTEMPTS: u32 = 100;

/// The name of shared memory; dropping it removes the name.
pub(super) struct ShmName {
    path: PathBuf,
    /// Removes the name when it is dropped.
    owner: NamedMemory,
    /// Removes the name on a signal.
    unfinished: Unfinished,
}

impl ShmName {
    /// Creates a file of `bytes` bytes, not allocated yet, opens it for reading and writing, and locks it.
    pub(super) fn create(bytes: usize) -> io::Result<(File, ShmName)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        for attempt in 0..ATTEMPTS {
            // The time, because a process in another container may have the same ID.
            let name = format!("{PREFIX}{}-{now:x}-{attempt}", std::process::id());
            let path = system::shm_folder().join(&name);
            let create = || NamedMemory::create(&name, bytes);
            let (owner, unfinished) = match Unfinished::create(create, |_| path.clone()) {
                Ok(created) => created,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let file = File::options().read(true).write(true).open(&path);
            let name = ShmName { path, owner, unfinished };
            let file = match file {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            file.lock()?;
            // A sweep that locked the file first has removed it, taking its owner for dead.
            if system::is_same_file(&file, &name.path) {
                return Ok((file, name));
            }
        }
        Err(io::Error::other(format!("{ATTEMPTS} names were taken or removed")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the name; the consumer has mapped the memory and needs it no more.
    pub(super) fn unlink(self) {
        let ShmName { owner, unfinished, .. } = self;
        drop(owner);
        drop(unfinished);
    }
}

/// Removes the names of dead services; files that cannot be opened or removed stay.
pub(super) fn sweep() {
    for entry in std::fs::read_dir(system::shm_folder()).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        // A service that is just creating this file waits for the lock, then sees that the file is gone.
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
            && system::is_same_file(&file, &path)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Whether a path is the name of a service's shared memory.
pub(super) fn is_shm_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.parent() == Some(&*system::shm_folder()) && name.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_lives_as_long_as_its_owner_and_a_sweep_removes_those_of_the_dead() {
        let (file, name) = ShmName::create(4096).expect("there is room");
        let path = name.path().to_path_buf();
        assert!(is_shm_name(&path) && path.exists());
        sweep();
        assert!(path.exists(), "its owner lives");
        let (_, other) = ShmName::create(4096).expect("there is room");
        assert_ne!(other.path(), path);
        // As a killed process leaves it: the name exists, the lock is gone.
        drop(file);
        let ShmName { owner, unfinished, .. } = name;
        std::mem::forget(owner);
        drop(unfinished);
        sweep();
        assert!(!path.exists());
        let path = other.path().to_path_buf();
        other.unlink();
        assert!(!path.exists());
    }
}
