//! What happens when a mapped file is cut off while it is read: the system sends SIGBUS, and without a word about it the
//! process would be gone.
#![allow(unsafe_code, reason = "handles the signal that reading mapped memory may raise")]

use std::io;

use signal_hook::consts::SIGBUS;
use signal_hook::low_level::{exit, register};

const MESSAGE: &[u8] =
    b"error: a file was cut off while it was read (a .fsd file, or shared memory), or its disk failed; \
    files of samples are replaced, not changed where they stand: wait for the whole file and give the command again\n";

/// Has a program say so on stderr and end with status 1. For a process's beginning; a library's user may have a handler of
/// its own.
///
/// # Errors
/// When the handler cannot be set.
pub fn tell_when_cut_off() -> io::Result<()> {
    let tell = || {
        // SAFETY: the bytes are static, and `write` may be called in a signal handler. Nothing more can be done where it fails.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
        exit(1);
    };
    // SAFETY: `tell` calls `write` and `_exit` only, which may be called in a signal handler; it takes no lock and no memory.
    unsafe { register(SIGBUS, tell) }.map(drop)
}
