//! The producer: worker threads fill slots, this thread announces them in order, a third listens to the consumer.

use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::control::{Control, Ending, Next};
use super::eligible::eligible;
use super::encode::{Encoder, Source};
use super::order::Order;
use super::protocol::Plan;
use super::samples::Samples;
use super::shm::{Segment, reader_is_gone};
use super::windows::Windows;
use super::{Description, END, FAILED, Header, Layout, Request, ServiceError};
use crate::chess::Perspective;
use crate::data::formats::binpack::Pieces;
use crate::data::{Fsd, Record};
use crate::features::FeatureSet;

/// How long an empty stream's memory waits for a consumer to map it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Slots for which the bound on active features needs no more than this many bytes use it; larger ones look at the data.
const BOUNDED_SLOT: usize = 16 << 20;
/// Records looked at to size such slots.
const PROBES: usize = 8_192;

/// A request with everything it needs at hand.
pub struct Prepared {
    request: Request,
    set: FeatureSet,
    samples: Samples,
    centipawns: f32,
    plan: Plan,
    /// Samples of the split left out: without a score and a result, or (pqr) without a second legal move.
    pub unusable: usize,
}

impl Prepared {
    /// `triplets`: whether every record is known to have a move played and another legal one.
    ///
    /// # Errors
    /// When the request cannot be served: nothing to serve, impossible sizes.
    pub fn new(request: Request, set: FeatureSet, file: Fsd, triplets: bool) -> Result<Prepared, ServiceError> {
        check(&request)?;
        let (eligible, unusable) = eligible(&request, &file, triplets)?;
        let probed = eligible.some(PROBES).map(|index| file.records()[index as usize].with_game(index));
        let probe = probe(&request, &set, probed)?;
        let plan = Plan::new(&request, &set, probe)?;
        let centipawns = file.header().score_unit.centipawns();
        let order = Order::new(
            eligible,
            request.seed,
            request.shuffle,
            request.epoch_samples,
            request.batch_size,
            request.epochs,
        );
        let samples = Samples::Mapped { file, order };
        Ok(Prepared { request, set, samples, centipawns, plan, unusable })
    }

    /// Serves a binpack as it is, every sample the method can use; `centipawns`: what a unit of its scores
    /// is worth.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn direct(
        request: Request,
        set: FeatureSet,
        pieces: Pieces,
        centipawns: f32,
    ) -> Result<Prepared, ServiceError> {
        check(&request)?;
        let windows = Windows::new(&request, pieces)?;
        let probe = probe(&request, &set, windows.some(PROBES)?)?;
        let plan = Plan::new(&request, &set, probe)?;
        let unusable = windows.unusable();
        Ok(Prepared { request, set, samples: Samples::Direct(windows), centipawns, plan, unusable })
    }

    fn describe(&self, shm: String) -> Description {
        let request = &self.request;
        Description {
            shm,
            slots: request.slots,
            slot_bytes: self.plan.slot_bytes,
            batch_size: request.batch_size,
            positions_per_sample: request.positions_per_sample(),
            layout: request.layout,
            method: request.method,
            identity: self.set.identity().clone(),
            num_features: self.set.num_features(),
            arrays: self.plan.arrays.clone(),
            header: Header::fields(),
            version: Description::VERSION,
            set: self.set.name().to_owned(),
            words_per_position: self.plan.words_per_position,
            samples_per_epoch: self.samples.samples_per_epoch(),
            batches_per_epoch: self.samples.batches_per_epoch(),
            batches: self.samples.batches(),
            start_batch: request.start_batch,
        }
    }
}

fn check(request: &Request) -> Result<(), ServiceError> {
    let bad = |text: String| Err(ServiceError::Request(text));
    if request.threads == 0 {
        return bad("0 threads asked for; give at least 1".into());
    }
    if request.epoch_samples == Some(0) {
        return bad("0 samples an epoch asked for; give at least 1, or leave it out for all".into());
    }
    if !(0.0..=1.0).contains(&request.validation) {
        return bad(format!("a validation share of {} asked for; it lies between 0 and 1", request.validation));
    }
    Ok(())
}

/// Room for how many active features a position and side: the set's bound where that is affordable, otherwise half as
/// much again as the most seen in `some` samples of the data. That is room for a whole batch of such positions; should
/// one need more all the same, the stream fails and says so.
fn probe(request: &Request, set: &FeatureSet, some: impl IntoIterator<Item = Record>) -> Result<usize, ServiceError> {
    let bound = set.max_active();
    let positions = request.batch_size.saturating_mul(request.positions_per_sample());
    if request.layout == Layout::Bitset || positions.saturating_mul(bound).saturating_mul(8) <= BOUNDED_SLOT {
        return Ok(bound);
    }
    let (mut most, mut active) = (0, Vec::new());
    for record in some {
        let board = record.board().unpack();
        let board = board.map_err(|error| ServiceError::Record { index: record.game(), source: error.into() })?;
        for pov in Perspective::ALL {
            set.active(&board, pov, &mut active);
            most = most.max(active.len());
        }
    }
    Ok(bound.min(most + most / 2 + 8))
}

/// Serves one consumer: prepares, describes the stream on `output`, then exchanges slots until the end of the data or of
/// the consumer.
///
/// # Errors
/// What `prepare` returns; whatever keeps batches from being made; a consumer that gives back what it does not hold.
pub fn run<E>(
    prepare: impl FnOnce() -> Result<Prepared, E> + Send + 'static,
    input: impl Read + Send + 'static,
    output: &mut (impl Write + AsRawFd),
) -> Result<(), E>
where
    E: From<ServiceError> + Send + 'static,
{
    let control = Arc::new(Control::default());
    let listener = Arc::clone(&control);
    thread::spawn(move || listen(input, &listener));
    match prepare_for(prepare, &control, output)? {
        Some(prepared) => Ok(serve(&prepared?, &control, output)?),
        None => Ok(()),
    }
}

/// Preparing may take long (a data set is built); a consumer that is gone meanwhile is not worth the work. A closed input
/// alone is no sign of that: who started this without one still reads the description.
fn prepare_for<T: Send + 'static>(
    prepare: impl FnOnce() -> T + Send + 'static,
    control: &Control,
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
            Err(RecvTimeoutError::Timeout) if control.ended() && reader_is_gone(output) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let panic = preparing.join().err();
                return Err(panic.map_or_else(|| ServiceError::Worker("no reason".into()), |p| worker_panicked(&*p)));
            }
        }
    }
}

/// Takes slots back until the consumer closes its end.
fn listen(input: impl Read, control: &Control) {
    for byte in BufReader::new(input).bytes() {
        match byte {
            Ok(byte) => {
                if let Err(error) = control.give_back(byte) {
                    control.end(Ending::Failed(error));
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    control.end(Ending::Stopped);
}

fn serve(prepared: &Prepared, control: &Control, output: &mut impl Write) -> Result<(), ServiceError> {
    let request = &prepared.request;
    let segment = Segment::create(request.slots, prepared.plan.slot_bytes)?;
    control.open(request.slots, request.start_batch, prepared.samples.batches());
    let mut line = serde_json::to_string(&prepared.describe(segment.path()))
        .map_err(|error| ServiceError::Consumer(error.into()))?;
    line.push('\n');
    with_workers(prepared, &segment, control, || {
        if let Err(error) = announce(&line, control, output) {
            // A consumer that stopped reading has stopped; that is its right.
            let gone = error.kind() == io::ErrorKind::BrokenPipe;
            control.end(if gone { Ending::Stopped } else { Ending::Failed(ServiceError::Consumer(error)) });
        }
    });
    match control.take_ending() {
        Some(Ending::Failed(error)) => {
            // The consumer may be gone; the error is reported all the same.
            let _ = output.write_all(&[FAILED]).and_then(|()| output.flush());
            Err(error)
        }
        Some(Ending::Finished | Ending::Stopped) | None => Ok(()),
    }
}

fn announce(line: &str, control: &Control, output: &mut impl Write) -> io::Result<()> {
    output.write_all(line.as_bytes())?;
    output.flush()?;
    let mut announced = false;
    loop {
        match control.next_filled() {
            Next::Announce(slot, _) => {
                output.write_all(&[slot])?;
                announced = true;
            }
            Next::Complete => {
                output.write_all(&[END])?;
                output.flush()?;
                // The memory stays reachable until the consumer has copied the last batch; where there is none, until it
                // has had time to map it.
                match announced {
                    true => control.all_given_back(),
                    false => control.wait_for_the_end(PATIENCE),
                }
                control.end(Ending::Finished);
                return Ok(());
            }
            Next::Ended => return Ok(()),
        }
        output.flush()?;
    }
}

/// Runs `lead` beside the workers; they stop when the stream ends.
fn with_workers(prepared: &Prepared, segment: &Segment, control: &Control, lead: impl FnOnce()) {
    let source = Source::new(&prepared.request, &prepared.set, &prepared.plan, prepared.centipawns);
    thread::scope(|scope| {
        let work = || work(&source, &prepared.samples, segment, control);
        let workers: Vec<_> = (0..prepared.request.threads).map(|_| scope.spawn(work)).collect();
        lead();
        control.end(Ending::Stopped);
        for worker in workers {
            if let Err(panic) = worker.join() {
                control.end(Ending::Failed(worker_panicked(&*panic)));
            }
        }
    });
}

fn work(source: &Source<'_>, samples: &Samples, segment: &Segment, control: &Control) {
    let _alarm = Alarm(control);
    let mut encoder = Encoder::new(source);
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
            Err(error) => return control.end(Ending::Failed(error)),
        }
    }
}

/// Ends the stream when its thread panics, so that nobody waits for a batch that never comes.
struct Alarm<'a>(&'a Control);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(Ending::Failed(ServiceError::Worker("its message stands above".into())));
        }
    }
}

pub(super) fn worker_panicked(panic: &(dyn std::any::Any + Send)) -> ServiceError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    ServiceError::Worker(text.unwrap_or("no reason given").to_owned())
}

/// How fast batches are made when nobody has to wait for the consumer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchReport {
    pub positions_per_second: f64,
    pub samples_per_second: f64,
    /// Bytes written to shared memory.
    pub bytes_per_second: f64,
    pub threads: usize,
    pub seconds: f64,
    pub batches: u64,
}

/// Fills slots for at least `duration`, giving each back at once. The request should be without end.
///
/// # Errors
/// As [`run`].
pub fn bench(prepared: &Prepared, duration: Duration) -> Result<BenchReport, ServiceError> {
    let request = &prepared.request;
    let segment = Segment::create(request.slots, prepared.plan.slot_bytes)?;
    let control = Control::default();
    control.open(request.slots, request.start_batch, prepared.samples.batches());
    let (mut positions, mut samples, mut bytes, mut batches) = (0u64, 0u64, 0u64, 0u64);
    let start = Instant::now();
    let mut elapsed = Duration::ZERO;
    with_workers(prepared, &segment, &control, || {
        while elapsed < duration
            && let Next::Announce(slot, header) = control.next_filled()
        {
            positions += u64::from(header.positions);
            samples += u64::from(header.samples);
            bytes += written(&prepared.plan, &header);
            batches += 1;
            elapsed = start.elapsed();
            if let Err(error) = control.give_back(slot) {
                control.end(Ending::Failed(error));
            }
        }
    });
    if let Some(Ending::Failed(error)) = control.take_ending() {
        return Err(error);
    }
    let rate = |n: u64| n as f64 / elapsed.as_secs_f64();
    Ok(BenchReport {
        positions_per_second: rate(positions),
        samples_per_second: rate(samples),
        bytes_per_second: rate(bytes),
        threads: request.threads,
        seconds: elapsed.as_secs_f64(),
        batches,
    })
}

/// Bytes a batch takes in its slot.
fn written(plan: &Plan, header: &Header) -> u64 {
    let array =
        |array: &super::Array| u64::from(header.count(&array.count).unwrap_or_default()) * array.dtype.bytes() as u64;
    size_of::<Header>() as u64 + plan.arrays.iter().map(array).sum::<u64>()
}
