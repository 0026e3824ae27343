//! What Linux does otherwise than macOS.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Whether [`path_of_open`] has an answer, so that shared memory needs no name.
pub const OPEN_FILES_HAVE_PATHS: bool = true;

/// The folder of all shared memory.
#[must_use]
pub fn shm_folder() -> PathBuf {
    Path::new("/dev/shm").into()
}

/// A path by which other processes of this user can open a file that this process holds open, as long as it runs.
#[must_use]
pub fn path_of_open(file: &File) -> Option<String> {
    Some(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

/// Allocates the bytes of a file: a full disk is an error here, not a signal at the first write to the mapping.
///
/// # Errors
/// When there is no room.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    loop {
        // SAFETY: the descriptor is open, and no pointer is passed.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Asks for large pages; best effort.
pub fn want_large_pages(start: *const u8, bytes: usize) {
    // SAFETY: the advice changes no contents, and fails if the bytes are not mapped.
    let _ = unsafe { libc::madvise(start.cast_mut().cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Makes the allocator keep freed memory. Every step allocates the same megabytes, and the system would spend a tenth
/// of the step clearing them.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        const LARGEST: i32 = 1 << 30;
        // SAFETY: sets two parameters of the C library's allocator; on failure they stay as they were.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGEST);
        }
    }
}

/// The largest resident memory of this process so far.
#[must_use]
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kibibytes)
}

/// The machine's name where `/proc/cpuinfo` has no processor's: boards with ARM processors have one.
#[must_use]
pub fn processor() -> Option<String> {
    let model = std::fs::read_to_string("/proc/device-tree/model").ok()?;
    Some(model.trim_matches(['\0', ' ', '\n']).to_owned()).filter(|model| !model.is_empty())
}

/// The kernel kills this process when its parent ends.
pub fn end_with_parent() {
    // SAFETY: the call changes nothing but which signal this process gets when its parent ends. It fails for no reason that
    // matters here: without it, the end of the input stops the run.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}
