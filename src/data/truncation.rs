//! Reports files that are truncated while they are mapped: reading a missing page raises SIGBUS, which would end the
//! process without a message.

use std::io;

use crate::system;

const MESSAGE: &[u8] =
    b"error: a file was cut off while it was read (a .fsd file, or shared memory), or its disk failed; \
    .fsd files must be replaced, not changed in place: wait for the complete file and repeat the command\n";

/// Makes the process print a message and exit with status 1 on SIGBUS. For programs; users of the library may have a
/// handler of their own.
///
/// # Errors
/// When the handler cannot be installed.
pub fn install_truncation_handler() -> io::Result<()> {
    system::exit_on_lost_page(MESSAGE)
}
