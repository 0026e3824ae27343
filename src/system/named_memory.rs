//! Memory with a name, by the package `shared_memory`: a file in [`shm_folder`](super::shm_folder).

use std::io;

use shared_memory::{Shmem, ShmemConf, ShmemError};

/// A file of memory, which loses its name when this is dropped. Its mapping is never accessed.
pub struct NamedMemory {
    _owner: Shmem,
}

impl NamedMemory {
    /// Makes `name` in the folder of shared memory.
    ///
    /// # Errors
    /// When the name is taken, or there is no room.
    pub fn create(name: &str, bytes: usize) -> io::Result<NamedMemory> {
        let owner = ShmemConf::new().os_id(format!("/{name}")).size(bytes).create().map_err(into_io_error)?;
        Ok(NamedMemory { _owner: owner })
    }
}

/// The system's own error, if there is one.
fn into_io_error(error: ShmemError) -> io::Error {
    match error {
        ShmemError::MappingIdExists => io::ErrorKind::AlreadyExists.into(),
        ShmemError::MapCreateFailed(code) | ShmemError::MapOpenFailed(code) | ShmemError::UnknownOsError(code) => {
            io::Error::from_raw_os_error(code as i32)
        }
        other => io::Error::other(other.to_string()),
    }
}
