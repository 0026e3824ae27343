//! The consumer: starts a service, maps its memory and copies batches out of it.
//!
//! The service can write that memory at any time, so nothing borrows it. A batch is copied into the client's own arrays
//! and checked there, and its slot goes back at once for the service to refill. The copy costs little compared with
//! training on the batch.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command};
use std::time::Duration;

use super::batch_reader::{Announcement, BatchMemory, BatchReader, ClientBatch};
use super::service_process::ServiceProcess;
use super::{Description, Request, ServiceError, shm_name};
use crate::system;

/// A running service. Dropping it ends the service.
pub struct Client {
    process: ServiceProcess,
    reader: BatchReader<ChildStdout>,
    ended: bool,
}

impl Client {
    /// Starts `program samples-service …` and waits for its description. The service's stderr is copied to this
    /// process's stderr up to the first line that begins with `error: `; errors quote what follows from there on.
    ///
    /// # Errors
    /// When the program does not start, refuses the request, or describes memory that cannot be mapped.
    pub fn spawn(program: &Path, request: &Request) -> Result<Client, ServiceError> {
        let mut command = Command::new(program);
        command.args(request.arguments()?);
        Client::start(command)
    }

    /// As [`Client::spawn`]; `None` if `should_stop`, called ten times per second while the service prepares its data,
    /// returns true.
    ///
    /// # Errors
    /// As [`Client::spawn`].
    pub fn spawn_until(
        program: &Path,
        request: &Request,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Option<Client>, ServiceError> {
        let mut command = Command::new(program);
        command.args(request.arguments()?);
        Client::start_until(command, should_stop)
    }

    /// As [`Client::spawn`], for any command that speaks the protocol.
    ///
    /// # Errors
    /// As [`Client::spawn`].
    pub fn start(command: Command) -> Result<Client, ServiceError> {
        let client = Client::start_until(command, &|| false)?;
        client.ok_or_else(|| ServiceError::Protocol("the wait for its first line was stopped".into()))
    }

    fn start_until(mut command: Command, should_stop: &dyn Fn() -> bool) -> Result<Option<Client>, ServiceError> {
        let (mut process, output) = ServiceProcess::start(&mut command)?;
        let output = BufReader::new(output);
        if !wait(&output, should_stop) {
            // A service that is preparing its data ends when its stdout is closed.
            drop(output);
            return Ok(None);
        }
        match BatchReader::open(output) {
            Ok(Some(reader)) => Ok(Some(Client { process, reader, ended: false })),
            Ok(None) => Err(process.finish_with_error("ended before its first batch")),
            Err(ServiceError::SharedMemory { .. }) if process.has_exited() => {
                Err(process.finish_with_error("ended before its first batch"))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until the service has announced a batch or ended. False if `should_stop`, called ten times per second,
    /// returns true first.
    #[must_use]
    pub fn wait(&self, should_stop: &dyn Fn() -> bool) -> bool {
        wait(self.reader.output(), should_stop)
    }

    #[must_use]
    pub const fn description(&self) -> &Description {
        self.reader.description()
    }

    /// Whether the service has announced a batch or ended.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        is_ready(self.reader.output(), Duration::ZERO)
    }

    /// Waits for the next batch; `None` at the end of the data.
    ///
    /// # Errors
    /// When the service failed, died or broke the protocol.
    #[allow(clippy::should_implement_trait, reason = "a batch borrows the client, which Iterator cannot say")]
    pub fn next(&mut self) -> Result<Option<ClientBatch<'_>>, ServiceError> {
        if self.ended {
            return Ok(None);
        }
        let announced = self.reader.next()?;
        Ok(self.follow(announced)?.then(|| self.reader.batch()))
    }

    /// As [`Client::next`], into memory of the caller's; false at the end of the data.
    ///
    /// # Errors
    /// As [`Client::next`].
    pub fn read(&mut self, into: &mut BatchMemory) -> Result<bool, ServiceError> {
        if self.ended {
            return Ok(false);
        }
        let announced = self.reader.read(into)?;
        self.follow(announced)
    }

    /// Gives the slot of a copied batch back; false at the end of the data.
    fn follow(&mut self, announced: Announcement) -> Result<bool, ServiceError> {
        match announced {
            Announcement::Batch { slot } => {
                self.process.give_back(slot);
                Ok(true)
            }
            Announcement::End => {
                self.ended = true;
                Ok(false)
            }
            Announcement::Failed => Err(self.process.finish_with_error("failed")),
            Announcement::Died => Err(self.process.finish_with_error("died in the middle of its stream")),
        }
    }

    /// The service's process ID.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Whether the service has delivered every batch.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Fails only if the child cannot be waited for, and then it is gone.
        let _ = self.process.finish();
        // A service that was killed before the first slot came back has left its name.
        if shm_name::is_shm_name(&PathBuf::from(&self.reader.description().shm)) {
            shm_name::sweep();
        }
    }
}

fn wait(output: &BufReader<ChildStdout>, should_stop: &dyn Fn() -> bool) -> bool {
    while !is_ready(output, Duration::from_millis(100)) {
        if should_stop() {
            return false;
        }
    }
    true
}

/// Whether the output has something to read, or has ended, within a time.
fn is_ready(output: &BufReader<ChildStdout>, within: Duration) -> bool {
    !output.buffer().is_empty() || system::is_readable(output.get_ref(), within)
}
