//! Long work from Python: without the GIL, interruptible by Ctrl-C, and safe in forked processes.

use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::output::remove_unfinished;

/// How long Python's signals may wait to be handled.
pub const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// The process that imported the module.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Called when the module is imported.
pub fn remember_process() {
    PROCESS.get_or_init(std::process::id);
}

/// Called when Python ends: a build that Ctrl-C took out of sight may still be at work, and would leave its file. A forked
/// process has no such threads, and leaves its parent's files alone.
#[pyfunction]
pub fn at_exit() {
    if PROCESS.get() == Some(&std::process::id()) {
        remove_unfinished();
    }
}

/// Does `work` on a thread of its own, without the GIL. A signal handler that raises, as Ctrl-C's does, ends the wait;
/// the work then goes on until it is done, and its result is dropped.
///
/// # Errors
/// The signal handler's exception, or the work's panic.
pub fn interruptible<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    interruptible_while(py, &mut |_| Ok(()), work)
}

/// As [`interruptible`]; `meanwhile` is called between looks at Python's signals, and once when the work is done.
///
/// # Errors
/// As [`interruptible`], and the error of `meanwhile`, which ends the wait in the same way.
pub fn interruptible_while<T: Send + 'static>(
    py: Python<'_>,
    meanwhile: &mut dyn FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let worker = thread::Builder::new().name("fsbench".into()).spawn(move || {
        // Sending fails if nobody waits any more.
        let _ = sender.send(in_own_pool(work));
    })?;
    loop {
        let received;
        (received, receiver) = py.detach(move || (receiver.recv_timeout(SIGNAL_INTERVAL), receiver));
        match received {
            Ok(result) => {
                meanwhile(py)?;
                return result;
            }
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                meanwhile(py)?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                drop(worker.join());
                return Err(PyRuntimeError::new_err("fsbench panicked; see its message on stderr"));
            }
        }
    }
}

/// In a forked process rayon's global pool has no threads, so the work gets a pool of its own.
fn in_own_pool<T: Send>(work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if PROCESS.get() == Some(&std::process::id()) {
        return Ok(work());
    }
    let pool = rayon::ThreadPoolBuilder::new().build();
    Ok(pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))?.install(work))
}
