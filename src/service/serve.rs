//! The producer: worker threads fill slots, the main thread announces them in order, and a listener thread takes slots
//! back from the consumer.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::batch_encoder::BatchEncoder;
use super::control::{StreamControl, StreamEnd};
use super::exchange::{announce, listen};
use super::shared_memory::{SharedMemory, Slots};
use super::{FAILED, PreparedStream, ServiceError};
use crate::json;
use crate::system::{self, AsPipe};

/// Serves one consumer: prepares the data, writes the description to `output`, then exchanges slots until all batches
/// are delivered or the consumer closes `input`.
///
/// # Errors
/// The error of `prepare`, a failure to make a batch, or a consumer that gives back a slot it does not hold.
pub fn run<E>(
    prepare: impl FnOnce() -> Result<PreparedStream, E> + Send + 'static,
    input: impl Read + AsPipe + Send + 'static,
    output: &mut (impl Write + AsPipe),
) -> Result<(), E>
where
    E: From<ServiceError> + Send + 'static,
{
    let control = Arc::new(StreamControl::default());
    // A service started without stdin, or with `/dev/null`, still writes its description.
    let input_is_pipe = system::is_pipe(&input);
    let listener = Arc::clone(&control);
    thread::spawn(move || listen(input, &listener));
    match prepare_while_wanted(prepare, &control, input_is_pipe, output)? {
        Some(stream) => Ok(serve(&stream?, &control, output)?),
        None => match control.take_end() {
            Some(StreamEnd::Failed(error)) => Err(error.into()),
            _ => Ok(()),
        },
    }
}

/// Calls `prepare`, which may build a data set for minutes. `None` if the consumer went away meanwhile; the call then
/// runs on until the process ends.
fn prepare_while_wanted<T: Send + 'static>(
    prepare: impl FnOnce() -> T + Send + 'static,
    control: &StreamControl,
    input_is_pipe: bool,
    output: &impl AsPipe,
) -> Result<Option<T>, ServiceError> {
    let (sender, receiver) = channel();
    let preparing = thread::spawn(move || {
        // Sending fails if this function has returned already.
        let _ = sender.send(prepare());
    });
    loop {
        match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(prepared) => return Ok(Some(prepared)),
            Err(RecvTimeoutError::Timeout)
                if control.has_ended() && (input_is_pipe || system::reader_is_gone(output)) =>
            {
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let panic = preparing.join().err();
                return Err(panic.map_or_else(|| ServiceError::Worker("no reason".into()), |p| worker_panicked(&*p)));
            }
        }
    }
}

fn serve(stream: &PreparedStream, control: &StreamControl, output: &mut impl Write) -> Result<(), ServiceError> {
    let request = &stream.request;
    let (memory, mut name) = SharedMemory::create(request.slots(), stream.layout.slot_bytes, request.shm)?;
    control.open(request.slots(), request.start_batch, stream.source.batch_order().batches(), request.shard);
    let named = name.as_ref().map(|name| name.path().display().to_string());
    let path = named.or_else(|| memory.path()).unwrap_or_default();
    let mut line = json::to_text(&stream.describe(path)).map_err(|error| ServiceError::Consumer(error.into()))?;
    line.push('\n');
    // Once the consumer has mapped the memory, its name is removed, so that a kill leaves no file behind.
    let mut mapped = || {
        if let Some(name) = name.take() {
            name.unlink();
        }
    };
    with_workers(stream, memory.slots(), control, || {
        if let Err(error) = announce(&line, control, output, &mut mapped) {
            // A consumer may stop reading at any time; that is no failure.
            let stopped = system::is_closed_pipe(&error);
            control.end(if stopped { StreamEnd::Stopped } else { StreamEnd::Failed(ServiceError::Consumer(error)) });
        }
    });
    match control.take_end() {
        Some(StreamEnd::Failed(error)) => {
            // The consumer may be gone; the caller reports the error in any case.
            let _ = output.write_all(&[FAILED]).and_then(|()| output.flush());
            Err(error)
        }
        Some(StreamEnd::Finished | StreamEnd::Stopped) | None => Ok(()),
    }
}

/// Runs `main` while workers fill slots, then ends the stream and waits for the workers.
pub(super) fn with_workers(stream: &PreparedStream, slots: &Slots, control: &StreamControl, main: impl FnOnce()) {
    thread::scope(|scope| {
        let worker = || fill_slots(stream, slots, control);
        let workers: io::Result<Vec<_>> =
            (0..stream.request.threads).map(|_| thread::Builder::new().spawn_scoped(scope, worker)).collect();
        let workers = match workers {
            Ok(workers) => {
                main();
                control.end(StreamEnd::Stopped);
                workers
            }
            // Workers that were started wait for work until the stream ends.
            Err(error) => {
                control
                    .end(StreamEnd::Failed(ServiceError::Threads { threads: stream.request.threads, source: error }));
                Vec::new()
            }
        };
        for worker in workers {
            if let Err(panic) = worker.join() {
                control.end(StreamEnd::Failed(worker_panicked(&*panic)));
            }
        }
    });
}

/// A worker: fills slots until the stream ends.
pub(super) fn fill_slots(stream: &PreparedStream, slots: &Slots, control: &StreamControl) {
    let _guard = PanicGuard(control);
    let mut encoder = BatchEncoder::new(stream);
    let should_stop = || control.has_ended();
    while let Some(mut claim) = control.claim() {
        let batch = claim.batch();
        let filled = stream.source.batch(batch, &should_stop).and_then(|samples| match samples {
            Some(samples) => encoder.fill(batch, &samples, &mut slots.writer(&mut claim), should_stop),
            None => Ok(None),
        });
        match filled {
            Ok(Some(header)) => control.fill(claim, header),
            Ok(None) => return,
            Err(error) => return control.end(StreamEnd::Failed(error)),
        }
    }
}

/// Ends the stream if its thread panics, so that nobody waits for the batch that thread had claimed.
struct PanicGuard<'a>(&'a StreamControl);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(StreamEnd::Failed(ServiceError::Worker("see its message above".into())));
        }
    }
}

pub(super) fn worker_panicked(panic: &(dyn std::any::Any + Send)) -> ServiceError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    ServiceError::Worker(text.unwrap_or("no reason given").to_owned())
}
