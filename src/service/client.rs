//! The consumer's side: starts a service, maps its memory and lends its batches as typed slices.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytemuck::AnyBitPattern;

use super::shm::{Lease, View};
use super::{Description, Dtype, END, FAILED, Header, MAX_SLOTS, Request, ServiceError};

/// Lines of the service's stderr kept for an error message.
const TAIL_LINES: usize = 12;
/// How long a service may take to go once its input is closed or it said that it failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running service. Dropping it ends the service.
pub struct Client {
    process: Process,
    output: BufReader<ChildStdout>,
    description: Description,
    view: View,
    ended: bool,
}

/// A batch in shared memory; dropping it gives its slot back.
pub struct Batch<'a> {
    client: &'a mut Client,
    lease: Lease,
    header: Header,
}

/// One side's active features: position i has `indices[offsets[i]..offsets[i + 1]]`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Csr<'a> {
    /// positions + 1 of them, the first 0, the last the number of indices.
    pub offsets: &'a [i32],
    pub indices: &'a [i32],
}

impl Client {
    /// Starts `program samples-service …` and waits for its description. What the service writes to stderr goes to this
    /// process's stderr; its last lines become part of errors.
    ///
    /// # Errors
    /// When the program does not start, refuses the request or describes something that cannot be mapped.
    pub fn spawn(program: &Path, request: &Request) -> Result<Client, ServiceError> {
        let mut command = Command::new(program);
        command.args(request.arguments());
        Client::start(command)
    }

    /// As [`Client::spawn`], for any command that speaks the protocol.
    ///
    /// # Errors
    /// As [`Client::spawn`].
    pub fn start(mut command: Command) -> Result<Client, ServiceError> {
        let (mut process, output) = Process::start(&mut command)?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        match output.read_line(&mut line) {
            Ok(_) if line.ends_with('\n') => {}
            Ok(_) => return Err(process.died("ended before its first batch")),
            Err(error) => return Err(ServiceError::Protocol(format!("its first line cannot be read: {error}"))),
        }
        let description: Description = serde_json::from_str(&line)
            .map_err(|error| ServiceError::Protocol(format!("its first line is no description: {error}")))?;
        validate(&description)?;
        let view = match View::open(Path::new(&description.shm), description.slots, description.slot_bytes) {
            Err(_) if process.has_exited() => return Err(process.died("ended before its first batch")),
            view => view?,
        };
        Ok(Client { process, output, description, view, ended: false })
    }

    #[must_use]
    pub const fn description(&self) -> &Description {
        &self.description
    }

    /// Waits for the next batch; none at the end of the data.
    ///
    /// # Errors
    /// When the service failed, died or broke the protocol.
    #[allow(clippy::should_implement_trait, reason = "a batch borrows the client, which Iterator cannot say")]
    pub fn next(&mut self) -> Result<Option<Batch<'_>>, ServiceError> {
        if self.ended {
            return Ok(None);
        }
        let mut byte = [0u8];
        match self.output.read_exact(&mut byte) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.process.died("died in the middle of its stream"));
            }
            Err(error) => return Err(ServiceError::Protocol(format!("it cannot be read from: {error}"))),
        }
        let slot = match byte[0] {
            END => {
                self.ended = true;
                return Ok(None);
            }
            FAILED => return Err(self.process.died("failed")),
            slot if usize::from(slot) < self.description.slots => slot,
            slot => return Err(ServiceError::Protocol(format!("it announced slot {slot}, which does not exist"))),
        };
        let lease = self.view.lease(slot);
        let header = self.view.slice::<Header>(&lease, 0, 1).and_then(<[Header]>::first).copied();
        let header = header.ok_or_else(|| ServiceError::Protocol("a slot lies outside its memory".into()))?;
        for array in &self.description.arrays {
            let count = header.count(&array.count).map(|count| count as usize);
            if count.is_none_or(|count| count > array.len) {
                return Err(ServiceError::Protocol(format!(
                    "slot {slot} claims {count:?} elements of {}, which has {} at most",
                    array.name, array.len
                )));
            }
        }
        Ok(Some(Batch { client: self, lease, header }))
    }

    /// The service's process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.child.id()
    }

    /// Whether the service delivered everything.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }
}

/// The checks that make every later slice lie inside its slot.
fn validate(description: &Description) -> Result<(), ServiceError> {
    let broken = |text: String| Err(ServiceError::Protocol(text));
    if description.version != Description::VERSION {
        let (theirs, ours) = (description.version, Description::VERSION);
        return broken(format!("it speaks version {theirs} and this program version {ours}; use one build for both"));
    }
    if description.slots == 0 || description.slots > MAX_SLOTS {
        return broken(format!("it describes {} slots", description.slots));
    }
    if description.slots.checked_mul(description.slot_bytes).is_none() || !description.slot_bytes.is_multiple_of(64) {
        return broken(format!("it describes slots of {} bytes", description.slot_bytes));
    }
    for array in &description.arrays {
        let end = array.len.checked_mul(array.dtype.bytes()).and_then(|bytes| bytes.checked_add(array.offset));
        if end.is_none_or(|end| end > description.slot_bytes) || array.offset % 64 != 0 {
            return broken(format!("its array {} does not lie in a slot", array.name));
        }
    }
    Ok(())
}

impl Batch<'_> {
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.header.samples as usize
    }

    /// samples × positions_per_sample.
    #[must_use]
    pub const fn positions(&self) -> usize {
        self.header.positions as usize
    }

    /// From 0.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.header.epoch
    }

    /// From 0, counted over all epochs.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.header.batch
    }

    /// The side to move's view; empty in the bitset layout.
    #[must_use]
    pub fn stm(&self) -> Csr<'_> {
        Csr { offsets: self.array("stm_offsets", Dtype::I32), indices: self.array("stm_indices", Dtype::I32) }
    }

    /// The other side's view; empty in the bitset layout.
    #[must_use]
    pub fn nstm(&self) -> Csr<'_> {
        Csr { offsets: self.array("nstm_offsets", Dtype::I32), indices: self.array("nstm_indices", Dtype::I32) }
    }

    /// `words_per_position` words a position, feature i in bit i % 64 of word i / 64; empty in the csr layout.
    #[must_use]
    pub fn stm_bits(&self) -> &[u64] {
        self.array("stm_bits", Dtype::U64)
    }

    /// As [`Batch::stm_bits`].
    #[must_use]
    pub fn nstm_bits(&self) -> &[u64] {
        self.array("nstm_bits", Dtype::U64)
    }

    /// Centipawns, side to move's view, one a sample; NaN = none. Empty for pqr.
    #[must_use]
    pub fn scores(&self) -> &[f32] {
        self.array("score", Dtype::F32)
    }

    /// 0, 0.5 or 1, side to move's view, one a sample; NaN = unknown. Empty for pqr.
    #[must_use]
    pub fn results(&self) -> &[f32] {
        self.array("result", Dtype::F32)
    }

    /// Pieces on the board, one a position.
    #[must_use]
    pub fn piece_counts(&self) -> &[u8] {
        self.array("piece_count", Dtype::U8)
    }

    /// One a sample.
    #[must_use]
    pub fn plies(&self) -> &[u16] {
        self.array("ply", Dtype::U16)
    }

    /// Where each sample stands in the data, from 0.
    #[must_use]
    pub fn sample_indices(&self) -> &[u32] {
        self.array("sample_index", Dtype::U32)
    }

    fn array<T: AnyBitPattern>(&self, name: &str, dtype: Dtype) -> &[T] {
        let Some(array) = self.client.description.array(name).filter(|array| array.dtype == dtype) else { return &[] };
        let count = self.header.count(&array.count).unwrap_or_default() as usize;
        self.client.view.slice(&self.lease, array.offset, count).unwrap_or(&[])
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.client.process.give_back(self.lease.slot());
    }
}

/// The child process and what it said.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    tail: Arc<Mutex<VecDeque<String>>>,
    stderr: Option<JoinHandle<()>>,
}

impl Process {
    fn start(command: &mut Command) -> Result<(Process, ChildStdout), ServiceError> {
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
        Ok((Process { child, input: Some(input), tail, stderr: Some(stderr) }, output))
    }

    fn give_back(&mut self, slot: u8) {
        if let Some(input) = &mut self.input {
            // A service that is gone is noticed by the next read, with its reason.
            let _ = input.write_all(&[slot]).and_then(|()| input.flush());
        }
    }

    fn has_exited(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_millis(200);
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                status => return !matches!(status, Ok(None)),
            }
        }
    }

    /// The error for a service that stopped talking.
    fn died(&mut self, what: &'static str) -> ServiceError {
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
    fn finish(&mut self) -> io::Result<ExitStatus> {
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

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody is left to tell; a child that cannot be waited for is gone.
        let _ = self.finish();
    }
}

/// Copies the service's stderr to this process's, keeping the last lines.
fn pass_on(errors: impl Read, tail: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
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
