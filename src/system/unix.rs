//! What Linux and macOS share.

use std::ffi::CString;
use std::fs::{File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use memmap2::{Advice, Mmap, UncheckedAdvice};
use signal_hook::consts::{SIGBUS, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{exit, register};

pub use std::os::fd::AsFd as AsPipe;
pub use std::os::unix::fs::symlink as symlink_file;

/// The variable that holds the user's folder.
pub const HOME: &str = "HOME";

/// Fills the buffer from a place in the file, without moving what reads the file in order.
///
/// # Errors
/// When the file cannot be read, or ends before.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buffer, offset)
}

/// Whether `path` leads to `file`.
#[must_use]
pub fn is_same_file(file: &File, path: &Path) -> bool {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), path.metadata()), (Ok(file), Ok(path)) if identity(&file) == identity(&path))
}

/// Whether the file has no name any more.
///
/// # Errors
/// When the system does not tell.
pub fn is_removed(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

/// Locks a file that others may read all the same, for this process alone or shared.
///
/// # Errors
/// When another process holds the lock, or the file system has none.
pub fn try_lock(file: &File, shared: bool) -> Result<(), TryLockError> {
    if shared { file.try_lock_shared() } else { file.try_lock() }
}

/// The permissions of files that others read: 0666, from which the system takes the umask.
#[must_use]
pub fn default_permissions() -> Option<Permissions> {
    Some(Permissions::from_mode(0o666))
}

/// Free bytes of the file system that holds `folder`.
///
/// # Errors
/// When the system does not tell.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero, and `stat` is writable and large enough for the result.
    if unsafe { libc::statvfs(folder.as_ptr(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statvfs succeeded, so it filled `stat`.
    let stat = unsafe { stat.assume_init() };
    Ok(widened(stat.f_bavail).saturating_mul(widened(stat.f_frsize)))
}

/// The numbers have 32 bits on one system and 64 on another.
fn widened(number: impl Into<u64>) -> u64 {
    number.into()
}

/// Starts reading bytes of a mapped file from the disk; best effort.
pub fn will_need(map: &Mmap, at: usize, bytes: usize) {
    let _ = map.advise_range(Advice::WillNeed, at, bytes);
}

/// Releases the pages of bytes that are not needed now; best effort.
///
/// # Safety
/// The map is of a file that does not change, so that the pages are read back as they were.
pub unsafe fn release_pages(map: &Mmap, at: usize, bytes: usize) {
    // SAFETY: the caller's promise.
    let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, at, bytes) };
}

/// The command's process will be in a group of its own, so that Ctrl-C does not reach it.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Whether the end of an input means that another process closed it: true for pipes and sockets.
#[must_use]
pub fn is_pipe(input: &impl AsFd) -> bool {
    let metadata = input.as_fd().try_clone_to_owned().and_then(|input| File::from(input).metadata());
    metadata.is_ok_and(|metadata| metadata.file_type().is_fifo() || metadata.file_type().is_socket())
}

/// Waits, at most `timeout`, until a pipe has data or is at its end; returns whether it is.
#[must_use]
pub fn is_readable(pipe: &impl AsFd, timeout: Duration) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = timeout.as_millis().min(1000) as libc::c_int;
    // SAFETY: the count of 1 matches the one pollfd, which outlives the call.
    unsafe { libc::poll(&raw mut poll, 1, milliseconds) > 0 }
}

/// Whether the reader of a pipe is gone.
#[must_use]
pub fn reader_is_gone(pipe: &impl AsFd) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_fd().as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the count of 1 matches the one pollfd, which outlives the call.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLERR | libc::POLLNVAL) != 0
}

/// Whether a write failed because the reader of the pipe is gone.
#[must_use]
pub fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// The machine's name; empty where the kernel does not tell.
#[must_use]
pub fn hostname() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the length is the buffer's, less the last byte, which stays zero.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0 {
        return String::new();
    }
    String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).trim().to_owned()
}

/// Whether a process of this machine has not ended. One that has ended and was not waited for counts as running.
#[must_use]
pub fn is_running(process: u32) -> bool {
    // SAFETY: signal 0 is sent to nobody.
    let found = unsafe { libc::kill(process.cast_signed(), 0) } == 0;
    found || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// The number of this process's user.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Makes the process print a message and exit with status 1 when it reads a mapped page that its file has lost.
///
/// # Errors
/// When the handler cannot be installed.
pub fn exit_on_lost_page(message: &'static [u8]) -> io::Result<()> {
    let handler = move || {
        // SAFETY: the bytes are static, and `write` is async-signal-safe. A failure cannot be reported any more.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
        exit(1);
    };
    // SAFETY: the handler only calls `write` and `_exit`, which are async-signal-safe; it takes no lock and allocates
    // nothing.
    unsafe { register(SIGBUS, handler) }.map(drop)
}

/// Calls `handle` on a thread of its own with the number of every SIGINT, SIGTERM and SIGHUP, but for those that the
/// process ignores from its start, as under `nohup`.
///
/// # Errors
/// When the thread cannot be started.
pub fn listen_to_signals(handle: fn(u8)) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)))?;
    let handle_all = move || signals.forever().for_each(|signal| handle(signal as u8));
    std::thread::Builder::new().name("signals".into()).spawn(handle_all)?;
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only fills `action`, which is writable.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: sigaction succeeded, so it filled `action`.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Ends the process without running destructors, since other threads are still at work.
pub fn exit_now(status: u8) -> ! {
    exit(i32::from(status))
}
