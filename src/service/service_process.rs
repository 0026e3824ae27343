//! A service's process, as its client starts and ends it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::ServiceError;

/// Lines of the service's stderr kept for an error message.
const TAIL_LINES: usize = 12;
/// Bytes of one line of it that are read at once.
const LINE_BYTES: u64 = 1 << 16;
/// How long a service may take to go once its input is closed or it said that it failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The child process and what it said.
pub(super) struct ServiceProcess {
    child: Child,
    input: Option<ChildStdin>,
    tail: Arc<Mutex<VecDeque<String>>>,
    stderr: Option<JoinHandle<()>>,
}

impl ServiceProcess {
    pub(super) fn start(command: &mut Command) -> Result<(ServiceProcess, ChildStdout), ServiceError> {
        // A group of its own: Ctrl-C reaches the consumer, which ends the service when it is done with it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let program = command.get_program().into();
        let mut child = command.spawn().map_err(|source| ServiceError::Start { program, source })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(ServiceError::Protocol("its pipes are missing".into()));
        };
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let lines = Arc::clone(&tail);
        let stderr = thread::spawn(move || pass_on(errors, &lines));
        Ok((ServiceProcess { child, input: Some(input), tail, stderr: Some(stderr) }, output))
    }

    pub(super) fn give_back(&mut self, slot: u8) {
        if let Some(input) = &mut self.input {
            // A service that is gone is noticed by the next read, with its reason.
            let _ = input.write_all(&[slot]).and_then(|()| input.flush());
        }
    }

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

    /// The error for a service that stopped talking.
    pub(super) fn died(&mut self, what: &'static str) -> ServiceError {
        let status = self.finish();
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = tail.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        ServiceError::Died {
            what,
            status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            tail,
        }
    }

    /// Closes the input, waits for the process and kills it when it does not go by itself.
    pub(super) fn finish(&mut self) -> io::Result<ExitStatus> {
        drop(self.input.take());
        let deadline = Instant::now() + PATIENCE;
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
        if let Some(stderr) = self.stderr.take() {
            // It ends with the pipe; a panic there lost nothing but lines.
            let _ = stderr.join();
        }
        Ok(status)
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // Nobody is left to tell; a child that cannot be waited for is gone.
        let _ = self.finish();
    }
}

/// Copies the service's stderr to this process's, keeping the last lines.
fn pass_on(errors: impl Read, tail: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    while matches!(reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line), Ok(1..)) {
        // A closed stderr is no reason to stop keeping the lines.
        let _ = io::stderr().write_all(&line);
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}
