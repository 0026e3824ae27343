//! The lock of the work folder: held by one `run`, or by any number of processes that share steps.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::ExperimentError;

/// Locks the work folder for one process. The lock ends with the process, however that ends.
pub(super) fn lock(work: &Path) -> Result<File, ExperimentError> {
    lock_by(work, File::try_lock)
}

/// Locks the work folder for all processes that share the steps.
pub(super) fn lock_shared(work: &Path) -> Result<File, ExperimentError> {
    lock_by(work, File::try_lock_shared)
}

fn lock_by(work: &Path, lock: fn(&File) -> Result<(), TryLockError>) -> Result<File, ExperimentError> {
    let failed = |source| ExperimentError::WorkFolder { path: work.to_path_buf(), source };
    std::fs::create_dir_all(work).map_err(failed)?;
    // NFS refuses a shared lock of a file that is not open for reading, and an exclusive one without writing.
    let path = work.join("lock");
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    match lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ExperimentError::Busy(work.to_path_buf())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}
