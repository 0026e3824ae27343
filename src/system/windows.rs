//! What Windows does otherwise.

use std::ffi::c_void;
use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::FileExt;
use std::os::windows::io::{AsHandle, AsRawHandle};
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use memmap2::Mmap;
use windows_sys::Win32::Foundation::{
    ERROR_LOCK_VIOLATION, ERROR_PIPE_NOT_CONNECTED, EXCEPTION_IN_PAGE_ERROR, FALSE, HANDLE, TRUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_TYPE_PIPE, GetDiskFreeSpaceExW, GetFileInformationByHandle, GetFileType,
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, WriteFile,
};
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, GetStdHandle, STD_ERROR_HANDLE, SetConsoleCtrlHandler,
};
use windows_sys::Win32::System::Diagnostics::Debug::{AddVectoredExceptionHandler, EXCEPTION_POINTERS};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Memory::{PrefetchVirtualMemory, WIN32_MEMORY_RANGE_ENTRY};
use windows_sys::Win32::System::Pipes::PeekNamedPipe;
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, ExitProcess, GetCurrentProcess};

pub use std::os::windows::fs::symlink_file;
pub use std::os::windows::io::AsHandle as AsPipe;

/// The variable that holds the user's folder.
pub const HOME: &str = "USERPROFILE";

/// Whether [`path_of_open`] has an answer, so that shared memory needs no name.
pub const OPEN_FILES_HAVE_PATHS: bool = false;

/// The folder of all shared memory: the package `shared_memory` keeps its files there.
#[must_use]
pub fn shm_folder() -> PathBuf {
    std::env::temp_dir().join("shared_memory-rs")
}

/// A path by which other processes could open a file that this process holds open: none.
#[must_use]
pub fn path_of_open(_: &File) -> Option<String> {
    None
}

/// Fills the buffer from a place in the file.
///
/// # Errors
/// When the file cannot be read, or ends before.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.seek_read(&mut buffer[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn information(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and `found` is writable.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } == FALSE {
        return Err(io::Error::last_os_error());
    }
    Ok(found)
}

/// Whether `path` leads to `file`.
#[must_use]
pub fn is_same_file(file: &File, path: &Path) -> bool {
    let identity = |file: &File| {
        let found = information(file).ok()?;
        Some((found.dwVolumeSerialNumber, found.nFileIndexHigh, found.nFileIndexLow))
    };
    let at_path = File::open(path).ok().and_then(|file| identity(&file));
    at_path.is_some() && at_path == identity(file)
}

/// Whether the file has no name any more.
///
/// # Errors
/// When the system does not tell.
pub fn is_removed(file: &File) -> io::Result<bool> {
    Ok(information(file)?.nNumberOfLinks == 0)
}

/// Locks a file that others may read all the same, for this process alone or shared. What is locked is one byte beyond
/// any file's end, since Windows keeps others from reading the bytes that are locked.
///
/// # Errors
/// When another process holds the lock, or the file system has none.
pub fn try_lock(file: &File, shared: bool) -> Result<(), TryLockError> {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = u32::MAX - 1;
    place.Anonymous.Anonymous.OffsetHigh = i32::MAX as u32;
    let alone = if shared { 0 } else { LOCKFILE_EXCLUSIVE_LOCK };
    // SAFETY: the handle is open, and `place` outlives the call, which does not wait.
    let taken = unsafe { LockFileEx(file.as_raw_handle(), alone | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &raw mut place) };
    if taken != FALSE {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION as i32) {
        Err(TryLockError::WouldBlock)
    } else {
        Err(TryLockError::Error(error))
    }
}

/// Files have their folder's permissions.
#[must_use]
pub fn default_permissions() -> Option<Permissions> {
    None
}

/// Free bytes of the file system that holds `folder`.
///
/// # Errors
/// When the system does not tell.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    // The package makes it with the first memory.
    std::fs::create_dir_all(folder)?;
    let folder: Vec<u16> = folder.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the path ends with a zero, and `free` is writable.
    let told =
        unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, std::ptr::null_mut(), std::ptr::null_mut()) };
    if told == FALSE { Err(io::Error::last_os_error()) } else { Ok(free) }
}

/// Nothing: the system has allocated the bytes when it mapped the memory with its name.
///
/// # Errors
/// None.
pub fn allocate(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

/// Starts reading bytes of a mapped file from the disk; best effort.
pub fn will_need(map: &Mmap, at: usize, bytes: usize) {
    let Some(part) = at.checked_add(bytes).and_then(|end| map.get(at..end)) else { return };
    let range = WIN32_MEMORY_RANGE_ENTRY { VirtualAddress: part.as_ptr().cast_mut().cast(), NumberOfBytes: part.len() };
    // SAFETY: the one range lies in the map; the call changes no contents.
    let _ = unsafe { PrefetchVirtualMemory(GetCurrentProcess(), 1, &raw const range, 0) };
}

/// Nothing: the system takes pages of mapped files from a process when it needs memory.
///
/// # Safety
/// None is needed here; see the other systems.
pub unsafe fn release_pages(_: &Mmap, _: usize, _: usize) {}

/// Large pages need a privilege that users do not have.
pub fn want_large_pages(_: *const u8, _: usize) {}

/// The allocator has no such setting.
pub fn keep_freed_memory() {}

/// The command's process will be in a group of its own, so that Ctrl-C does not reach it.
pub fn in_own_group(command: &mut Command) -> &mut Command {
    command.creation_flags(CREATE_NEW_PROCESS_GROUP)
}

/// Whether the end of an input means that another process closed it: true for pipes.
#[must_use]
pub fn is_pipe(input: &impl AsHandle) -> bool {
    // SAFETY: the handle is open while it is borrowed.
    unsafe { GetFileType(input.as_handle().as_raw_handle()) == FILE_TYPE_PIPE }
}

/// Waits, at most `timeout`, until a pipe has data or is at its end; returns whether it is. Windows has no call that
/// waits for that, so it asks again and again, at most a millisecond apart.
#[must_use]
pub fn is_readable(pipe: &impl AsHandle, timeout: Duration) -> bool {
    let handle: HANDLE = pipe.as_handle().as_raw_handle();
    let none = std::ptr::null_mut();
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_micros(20);
    loop {
        let mut waiting = 0;
        // SAFETY: the handle is open while it is borrowed, no bytes are asked for, and `waiting` is writable.
        let told = unsafe { PeekNamedPipe(handle, none, 0, none.cast(), &raw mut waiting, none.cast()) };
        // It fails at the end.
        if told == FALSE || waiting > 0 {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(1));
    }
}

/// Whether the reader of a pipe is gone. The system does not tell before something is written.
#[must_use]
pub fn reader_is_gone(_: &impl AsHandle) -> bool {
    false
}

/// Whether a write failed because the reader of the pipe is gone.
#[must_use]
pub fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(ERROR_PIPE_NOT_CONNECTED as i32)
}

/// The machine's name; empty where the system does not tell.
#[must_use]
pub fn hostname() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Always true: locks of files end with their process, since those that it starts do not inherit them.
#[must_use]
pub fn is_running(_: u32) -> bool {
    true
}

/// The number of this process's user: folders for temporary files are each user's own, so all have the same.
#[must_use]
pub fn user() -> u32 {
    0
}

static LOST_PAGE: OnceLock<&'static [u8]> = OnceLock::new();

/// Makes the process print a message and exit with status 1 when it reads a mapped page whose file cannot be read any
/// more. (Mapped files cannot be cut off.)
///
/// # Errors
/// When the handler cannot be installed.
pub fn exit_on_lost_page(message: &'static [u8]) -> io::Result<()> {
    unsafe extern "system" fn handler(exception: *mut EXCEPTION_POINTERS) -> i32 {
        // SAFETY: the system passes a valid exception.
        let code = unsafe { (*(*exception).ExceptionRecord).ExceptionCode };
        if code == EXCEPTION_IN_PAGE_ERROR {
            let message = LOST_PAGE.get().copied().unwrap_or_default();
            let mut written = 0;
            // SAFETY: the bytes are static, and the call takes no lock of this program.
            unsafe {
                let stderr = GetStdHandle(STD_ERROR_HANDLE);
                let length = message.len() as u32;
                WriteFile(stderr, message.as_ptr(), length, &raw mut written, std::ptr::null_mut());
                ExitProcess(1);
            }
        }
        // The next handler's.
        0
    }
    let _ = LOST_PAGE.set(message);
    // SAFETY: the handler has the signature that the system calls.
    let installed: *mut c_void = unsafe { AddVectoredExceptionHandler(1, Some(handler)) };
    if installed.is_null() { Err(io::Error::last_os_error()) } else { Ok(()) }
}

static ON_SIGNAL: OnceLock<fn(u8)> = OnceLock::new();

/// Calls `handle`, on a thread that the system starts, with the number that a signal has on other systems: SIGINT for
/// Ctrl-C, SIGTERM for Ctrl-Break, SIGHUP for a closed window and when the user logs off.
///
/// # Errors
/// When the handler cannot be installed.
pub fn listen_to_signals(handle: fn(u8)) -> io::Result<()> {
    unsafe extern "system" fn handler(event: u32) -> i32 {
        let signal = match event {
            CTRL_C_EVENT => 2,
            CTRL_BREAK_EVENT => 15,
            _ => 1,
        };
        if let Some(handle) = ON_SIGNAL.get() {
            handle(signal);
        }
        // The system ends the process as soon as this returns; it gives a few seconds to stop in good order.
        while signal == 1 {
            thread::sleep(Duration::from_secs(1));
        }
        TRUE
    }
    let _ = ON_SIGNAL.set(handle);
    // SAFETY: the handler has the signature that the system calls.
    if unsafe { SetConsoleCtrlHandler(Some(handler), TRUE) } == FALSE {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Ends the process without running destructors, since other threads are still at work.
pub fn exit_now(status: u8) -> ! {
    // SAFETY: the call does not return.
    unsafe { ExitProcess(u32::from(status)) }
}

/// The largest resident memory of this process so far.
#[must_use]
pub fn peak_memory() -> Option<u64> {
    let mut found = PROCESS_MEMORY_COUNTERS::default();
    let length = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    // SAFETY: `found` is writable and has the length that is passed.
    let told = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut found, length) };
    (told != FALSE).then_some(found.PeakWorkingSetSize as u64)
}

/// The processor's family and model as Windows numbers them; it keeps the name in its registry only.
#[must_use]
pub fn processor() -> Option<String> {
    std::env::var("PROCESSOR_IDENTIFIER").ok().filter(|name| !name.is_empty())
}

/// The end of the input ends this process's work when its parent ends.
pub fn end_with_parent() {}
