//! The producer: worker threads fill slots, this thread announces them in order, a third listens to the consumer.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::batch_encoder::{BatchEncoder, EncoderSettings};
use super::batch_source::Samples;
use super::control::{Announcement, StreamControl, StreamEnd};
use super::shared_memory::{SharedMemory, reader_is_gone};
use super::shm_name::ShmName;
use super::{END, FAILED, PreparedStream, ServiceError};

/// How long an empty stream's memory waits for a consumer to map it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves one consumer: prepares, describes the stream on `output`, then exchanges slots until the end of the data or of
/// the consumer.
///
/// # Errors
/// What `prepare` returns; whatever keeps batches from being made; a consumer that gives back what it does not hold.
pub fn run<E>(
    prepare: impl FnOnce() -> Result<PreparedStream, E> + Send + 'static,
    input: impl Read + AsFd + Send + 'static,
    output: &mut (impl Write + AsRawFd),
) -> Result<(), E>
where
    E: From<ServiceError> + Send + 'static,
{
    let control = Arc::new(StreamControl::default());
    let consumed = has_a_writer(&input);
    let listener = Arc::clone(&control);
    thread::spawn(move || listen(input, &listener));
    match prepare_for(prepare, &control, consumed, output)? {
        Some(prepared) => Ok(serve(&prepared?, &control, output)?),
        None => match control.take_ending() {
            Some(StreamEnd::Failed(error)) => Err(error.into()),
            _ => Ok(()),
        },
    }
}

/// Whether an input's end means that somebody closed it: it is a pipe or socket. Who started this with none, or with
/// `/dev/null`, still reads the description.
fn has_a_writer(input: &impl AsFd) -> bool {
    let kind = input.as_fd().try_clone_to_owned().and_then(|input| File::from(input).metadata());
    kind.is_ok_and(|kind| kind.file_type().is_fifo() || kind.file_type().is_socket())
}

/// Preparing may take long (a data set is built); a consumer that is gone meanwhile is not worth the work, which then goes
/// on until the process ends. `consumed`: whether the input's end says that it is gone.
fn prepare_for<T: Send + 'static>(
    prepare: impl FnOnce() -> T + Send + 'static,
    control: &StreamControl,
    consumed: bool,
    output: &impl AsRawFd,
) -> Result<Option<T>, ServiceError> {
    let (sender, receiver) = channel();
    let preparing = thread::spawn(move || {
        // The receiver is dropped when nobody waits for the result any more.
        let _ = sender.send(prepare());
    });
    loop {
        match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(prepared) => return Ok(Some(prepared)),
            Err(RecvTimeoutError::Timeout) if control.ended() && (consumed || reader_is_gone(output)) => {
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

/// Takes slots back until the consumer closes its end.
fn listen(input: impl Read, control: &StreamControl) {
    for byte in BufReader::new(input).bytes() {
        match byte {
            Ok(byte) => {
                if let Err(error) = control.give_back(byte) {
                    control.end(StreamEnd::Failed(error));
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    control.end(StreamEnd::Stopped);
}

fn serve(prepared: &PreparedStream, control: &StreamControl, output: &mut impl Write) -> Result<(), ServiceError> {
    let request = &prepared.request;
    let (segment, mut name) = SharedMemory::create(request.slots, prepared.plan.slot_bytes, request.shm)?;
    control.open(request.slots, request.start_batch, prepared.samples.schedule().batches(), request.shard);
    let path = name.as_ref().map_or_else(|| segment.path(), |name| name.path().display().to_string());
    let mut line =
        serde_json::to_string(&prepared.describe(path)).map_err(|error| ServiceError::Consumer(error.into()))?;
    line.push('\n');
    with_workers(prepared, &segment, control, || {
        if let Err(error) = announce(&line, control, output, &mut name) {
            // A consumer that stopped reading has stopped; that is its right.
            let gone = error.kind() == io::ErrorKind::BrokenPipe;
            control.end(if gone { StreamEnd::Stopped } else { StreamEnd::Failed(ServiceError::Consumer(error)) });
        }
    });
    match control.take_ending() {
        Some(StreamEnd::Failed(error)) => {
            // The consumer may be gone; the error is reported all the same.
            let _ = output.write_all(&[FAILED]).and_then(|()| output.flush());
            Err(error)
        }
        Some(StreamEnd::Finished | StreamEnd::Stopped) | None => Ok(()),
    }
}

fn announce(
    line: &str,
    control: &StreamControl,
    output: &mut impl Write,
    name: &mut Option<ShmName>,
) -> io::Result<()> {
    output.write_all(line.as_bytes())?;
    output.flush()?;
    let mut announced = false;
    loop {
        match control.next_filled() {
            Announcement::Announce(slot, _) => {
                // From here on no kill of either side can leave anything.
                if control.answered()
                    && let Some(name) = name.take()
                {
                    name.unlink();
                }
                output.write_all(&[slot])?;
                announced = true;
            }
            Announcement::Complete => {
                output.write_all(&[END])?;
                output.flush()?;
                // The memory stays reachable until the consumer has copied the last batch; where there is none, until it
                // has had time to map it.
                match announced {
                    true => control.all_given_back(),
                    false => control.wait_for_the_end(PATIENCE),
                }
                control.end(StreamEnd::Finished);
                return Ok(());
            }
            Announcement::Ended => return Ok(()),
        }
        output.flush()?;
    }
}

/// Runs `lead` beside the workers; they stop when the stream ends.
pub(super) fn with_workers(
    prepared: &PreparedStream,
    segment: &SharedMemory,
    control: &StreamControl,
    lead: impl FnOnce(),
) {
    let source = EncoderSettings::new(&prepared.request, &prepared.set, &prepared.plan, prepared.unit);
    thread::scope(|scope| {
        let work = || work(&source, &prepared.samples, segment, control);
        let workers: Vec<_> = (0..prepared.request.threads).map(|_| scope.spawn(work)).collect();
        lead();
        control.end(StreamEnd::Stopped);
        for worker in workers {
            if let Err(panic) = worker.join() {
                control.end(StreamEnd::Failed(worker_panicked(&*panic)));
            }
        }
    });
}

fn work(source: &EncoderSettings<'_>, samples: &Samples, segment: &SharedMemory, control: &StreamControl) {
    let _alarm = Alarm(control);
    let mut encoder = BatchEncoder::new(source);
    let stop = || control.ended();
    while let Some(mut claim) = control.claim() {
        let batch = claim.batch();
        let filled = samples.batch(batch, &stop).and_then(|chosen| match chosen {
            Some(chosen) => encoder.fill(batch, &chosen, &mut segment.writer(&mut claim), stop),
            None => Ok(None),
        });
        match filled {
            Ok(Some(header)) => control.fill(claim, header),
            Ok(None) => return,
            Err(error) => return control.end(StreamEnd::Failed(error)),
        }
    }
}

/// Ends the stream when its thread panics, so that nobody waits for a batch that never comes.
struct Alarm<'a>(&'a StreamControl);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(StreamEnd::Failed(ServiceError::Worker("its message stands above".into())));
        }
    }
}

pub(super) fn worker_panicked(panic: &(dyn std::any::Any + Send)) -> ServiceError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    ServiceError::Worker(text.unwrap_or("no reason given").to_owned())
}
