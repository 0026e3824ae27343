//! Reports files that are truncated while they are mapped: reading a missing page raises SIGBUS, which would end the
//! process without a message.
#![allow(unsafe_code, reason = "handles the signal that reading mapped memory may raise")]

use std::io;

use signal_hook::consts::SIGBUS;
use signal_hook::low_level::{exit, register};

const MESSAGE: &[u8] =
    b"error: a file was cut off while it was read (a .fsd file, or shared memory), or its disk failed; \
    .fsd files must be replaced, not changed in place: wait for the complete file and repeat the command\n";

/// Makes the process print a message and exit with status 1 on SIGBUS. For programs; users of the library may have a
/// handler of their own.
///
/// # Errors
/// When the handler cannot be installed.
pub fn install_truncation_handler() -> io::Result<()> {
    let handler = || {
        // SAFETY: the bytes are static, and `write` is async-signal-safe. A failure cannot be reported any more.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
        exit(1);
    };
    // SAFETY: the handler only calls `write` and `_exit`, which are async-signal-safe; it takes no lock and allocates
    // nothing.
    unsafe { register(SIGBUS, handler) }.map(drop)
}
