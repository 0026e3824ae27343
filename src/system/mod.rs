//! What differs between operating systems: calls that Rust's library does not have, and choices that depend on the
//! system. One file for each system, and `unix.rs` for what Linux and macOS share; all of them have the same functions.
//! Other modules name no system, but for tests, and `fsbench-tch`, which is not built for Windows.
//!
//! | | Linux | macOS | Windows |
//! |---|---|---|---|
//! | shared memory | `/dev/shm`, without a name or with one | a file with a name | a file with a name |
//! | a mapped page that is lost | a signal | a signal | an exception; mapped files cannot be cut off |
//! | Ctrl-C | signals | signals | console events |
//! | a parent that was killed | its pipes end | its pipes end | its pipes end |
#![allow(unsafe_code, reason = "calls of the system")]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(target_os = "macos"))]
mod named_memory;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(target_os = "macos")]
pub use macos::*;
#[cfg(not(target_os = "macos"))]
pub use named_memory::NamedMemory;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

#[cfg(test)]
mod tests;
