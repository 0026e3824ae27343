//! The service's process, as its client starts and ends it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::ServiceError;
use super::sync::lock;
use crate::system;

/// The exit status of a command whose request was wrong.
const REQUEST_REFUSED: i32 = 2;
/// Lines of stderr that an error message quotes at most.
const MAX_ERROR_LINES: usize = 12;
/// Longer lines of stderr are split after this many bytes.
const MAX_LINE_BYTES: u64 = 1 << 16;
/// How long a service may take to exit after its input was closed; then it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The child process and the error that its stderr ends with.
pub(super) struct ServiceProcess {
    child: Child,
    input: Option<ChildStdin>,
    /// The lines of stderr from the first that begins with `error: ` on, which are not shown yet.
    error_lines: Arc<Mutex<VecDeque<String>>>,
    stderr_thread: Option<JoinHandle<()>>,
}

impl ServiceProcess {
    pub(super) fn start(command: &mut Command) -> Result<(ServiceProcess, ChildStdout), ServiceError> {
        // In a process group of its own, so that Ctrl-C reaches only the consumer, which then ends the service
        // properly.
        system::in_own_group(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().into();
        let mut child = command.spawn().map_err(|source| ServiceError::Start { program, source })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(ServiceError::Protocol("its pipes are missing".into()));
        };
        let error_lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&error_lines);
        let stderr_thread = Some(thread::spawn(move || forward_stderr(errors, &kept)));
        Ok((ServiceProcess { child, input: Some(input), error_lines, stderr_thread }, output))
    }

    pub(super) fn give_back(&mut self, slot: u8) {
        if let Some(input) = &mut self.input {
            // If the service is gone, the next read fails and reports why.
            let _ = input.write_all(&[slot]).and_then(|()| input.flush());
        }
    }

    /// Whether the process has exited, or does so within 200 ms.
    pub(super) fn has_exited(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_millis(200);
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                status => return !matches!(status, Ok(None)),
            }
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process and returns an error that says how it ended, with what its stderr ends with. `event` completes "the
    /// sample service …".
    pub(super) fn finish_with_error(&mut self, event: &'static str) -> ServiceError {
        let status = self.finish();
        let error_lines = Vec::from(std::mem::take(&mut *lock(&self.error_lines))).join("\n");
        ServiceError::Died {
            event,
            refused: matches!(&status, Ok(status) if status.code() == Some(REQUEST_REFUSED)),
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            error_lines,
        }
    }

    /// Closes the input, waits for the process to exit, and kills it if it does not.
    pub(super) fn finish(&mut self) -> io::Result<ExitStatus> {
        drop(self.input.take());
        let deadline = Instant::now() + EXIT_TIMEOUT;
        let status = loop {
            match self.child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
                None => {
                    self.child.kill()?;
                    break self.child.wait()?;
                }
            }
        };
        if let Some(thread) = self.stderr_thread.take() {
            // The thread ends with the pipe. A panic in it loses nothing but lines of stderr.
            let _ = thread.join();
        }
        Ok(status)
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // Fails only if the child cannot be waited for, and then it is gone.
        let _ = self.finish();
        for line in lock(&self.error_lines).drain(..) {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

/// Copies stderr up to the first line that begins with `error: `, and keeps the lines from there on for an error message to
/// quote.
fn forward_stderr(errors: impl Read, error_lines: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    let mut is_error = false;
    while matches!(reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line), Ok(1..)) {
        is_error |= line.starts_with(b"error: ");
        if is_error {
            let mut kept = lock(error_lines);
            if kept.len() == MAX_ERROR_LINES {
                let first = kept.pop_front().unwrap_or_default();
                let _ = writeln!(io::stderr(), "{first}");
            }
            kept.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        } else {
            // Read on even if this process's stderr is closed.
            let _ = io::stderr().write_all(&line);
        }
        line.clear();
    }
}
