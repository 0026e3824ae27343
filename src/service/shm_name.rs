//! Segments with a name, for consumers in another container or without access to `/proc`.
//!
//! The name stands in `/dev/shm` from the description until the consumer gives its first slot back, which shows that it
//! has mapped the memory. A service that ends takes its name along; one that is killed before leaves it, and whoever comes
//! next, service or client, sweeps it away. Who is dead is told by a lock on the file, which the kernel takes back from
//! a process however it ends: that holds across containers, where process numbers mean nothing.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use shared_memory::{Shmem, ShmemConf, ShmemError};

use super::shared_memory::FOLDER;
use crate::output::Unfinished;

/// How a consumer finds the shared memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ShmNaming {
    /// Through the service's `/proc/PID/fd`: killed processes leave nothing behind.
    #[default]
    Unnamed,
    /// By a file in `/dev/shm`, which another container can share.
    Named,
}

/// What every name begins with.
const PREFIX: &str = "fsbench-samples-";

/// Names tried before giving up: each of them met a sweeper.
const TRIES: u32 = 100;

/// A segment's name; it is gone when this is dropped.
pub(super) struct ShmName {
    path: PathBuf,
    /// Unlinks the name when it is dropped.
    owner: Shmem,
    /// So does a signal.
    unfinished: Unfinished,
}

impl ShmName {
    /// A file of `bytes` bytes, not allocated yet, open for reading and writing and locked.
    pub(super) fn create(bytes: usize) -> io::Result<(File, ShmName)> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        for number in 0..TRIES {
            // Unlike that of a process with this number in another container.
            let name = format!("{PREFIX}{}-{now:x}-{number}", std::process::id());
            let path = Path::new(FOLDER).join(&name);
            let make = || ShmemConf::new().os_id(format!("/{name}")).size(bytes).create();
            let (owner, unfinished) = match Unfinished::create(make, |_| path.clone()) {
                Ok(made) => made,
                Err(ShmemError::MappingIdExists) => continue,
                Err(error) => return Err(cause(error)),
            };
            let file = File::options().read(true).write(true).open(&path);
            let name = ShmName { path, owner, unfinished };
            let file = match file {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            file.lock()?;
            // A sweeper that came before the lock took the file for a dead service's.
            if is_at(&file, &name.path) {
                return Ok((file, name));
            }
        }
        Err(io::Error::other("all names are taken"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The consumer has mapped the memory: nobody needs the name any more.
    pub(super) fn unlink(self) {
        let ShmName { owner, unfinished, .. } = self;
        drop(owner);
        drop(unfinished);
    }
}

/// Whether `path` leads to this very file.
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(ours), Ok(theirs)) = (file.metadata(), path.metadata()) else { return false };
    (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
}

/// Removes the names of services that are gone. What cannot be looked at or removed stays.
pub(super) fn sweep() {
    for entry in std::fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        // While the lock is held here, whoever has just made the file waits, and then finds it gone.
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
            && is_at(&file, &path)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Whether this is how a named segment is called.
pub(super) fn is_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.parent() == Some(Path::new(FOLDER)) && name.starts_with(PREFIX)
}

/// What the system said, where it did.
fn cause(error: ShmemError) -> io::Error {
    match error {
        ShmemError::MapCreateFailed(code) | ShmemError::MapOpenFailed(code) | ShmemError::UnknownOsError(code) => {
            io::Error::from_raw_os_error(code as i32)
        }
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_lives_as_long_as_its_owner_and_dead_ones_are_swept() {
        let (file, name) = ShmName::create(4096).expect("there is room");
        let path = name.path().to_path_buf();
        assert!(is_name(&path) && path.exists());
        sweep();
        assert!(path.exists(), "its owner lives");
        let (_, other) = ShmName::create(4096).expect("there is room");
        assert_ne!(other.path(), path);
        // As a killed process leaves it: the name stands, the lock is gone.
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
