//! What macOS does otherwise than Linux.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Whether [`path_of_open`] has an answer, so that shared memory needs no name.
pub const OPEN_FILES_HAVE_PATHS: bool = false;

/// The folder of all shared memory: the user's own for temporary files. `shm_open` gives names that are no paths, which
/// consumers in other languages could not open.
#[must_use]
pub fn shm_folder() -> PathBuf {
    std::env::temp_dir()
}

/// A path by which other processes could open a file that this process holds open: none.
#[must_use]
pub fn path_of_open(_: &File) -> Option<String> {
    None
}

/// A file of memory, which loses its name when this is dropped.
pub struct NamedMemory {
    path: PathBuf,
}

impl NamedMemory {
    /// Makes `name` in the folder of shared memory.
    ///
    /// # Errors
    /// When the name is taken, or there is no room.
    pub fn create(name: &str, bytes: usize) -> io::Result<NamedMemory> {
        let path = shm_folder().join(name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let memory = NamedMemory { path };
        file.set_len(bytes as u64)?;
        Ok(memory)
    }
}

impl Drop for NamedMemory {
    fn drop(&mut self) {
        // If this fails, the next service removes the name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Allocates the bytes of a file: a full disk is an error here, not a signal at the first write to the mapping.
///
/// # Errors
/// When there is no room.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut store = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: length,
        fst_bytesalloc: 0,
    };
    // SAFETY: the descriptor is open, and `store` is what this command reads and writes.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut store) } == -1 {
        return Err(io::Error::last_os_error());
    }
    file.set_len(bytes)
}

/// The system chooses the pages' size itself.
pub fn want_large_pages(_: *const u8, _: usize) {}

/// The allocator has no such setting.
pub fn keep_freed_memory() {}

/// The largest resident memory of this process so far.
#[must_use]
pub fn peak_memory() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is writable and large enough for the result.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: getrusage succeeded, so it filled `usage`. macOS counts bytes.
    u64::try_from(unsafe { usage.assume_init() }.ru_maxrss).ok()
}

/// The processor's name.
#[must_use]
pub fn processor() -> Option<String> {
    let mut name = [0u8; 256];
    let mut length = name.len();
    let key = c"machdep.cpu.brand_string";
    // SAFETY: `length` is the buffer's length, and the call writes no more bytes than that.
    let failed = unsafe {
        libc::sysctlbyname(key.as_ptr(), name.as_mut_ptr().cast(), &raw mut length, std::ptr::null_mut(), 0) != 0
    };
    let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next()?).trim().to_owned();
    if failed || name.is_empty() { None } else { Some(name) }
}

/// The end of the input ends this process's work when its parent ends.
pub fn end_with_parent() {}
