//! Batches made by threads of this process, for a consumer in the same process: no second program, no copy.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytemuck::AnyBitPattern;

use super::control::{NextSlot, StreamControl, StreamEnd};
use super::serve::fill_slots;
use super::shared_memory::Slots;
use super::{Array, PreparedStream, ProcessBound, ServiceError, Shard, SlotHeader};

/// A running stream of batches, the same as a service's for the same request. Dropping it ends its threads.
///
/// ```
/// use std::time::Duration;
///
/// use fsbench::data::Method;
/// use fsbench::service::{LocalStream, NextBatch, Request, Shard, prepare};
///
/// let request = Request::new("piece", "experiments/games/sample.pgn.zst", Method::Eval);
/// # let request = Request { data: fsbench::pipeline::sample_games()?.into(), ..request };
/// let stream = prepare(request, &())?;
/// let batches = LocalStream::start(&stream, 0, Shard::WHOLE)?;
/// let mut samples = 0;
/// loop {
///     match batches.next(Duration::from_secs(1))? {
///         NextBatch::Ready(batch) => samples += batch.header().samples as usize,
///         NextBatch::Pending => {}
///         NextBatch::End => break,
///     }
/// }
/// assert_eq!(samples as u64, stream.samples_per_epoch());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LocalStream {
    running: ProcessBound<Running>,
}

struct Running {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// The state that the workers, the stream and its batches share.
struct Shared {
    stream: PreparedStream,
    slots: Slots,
    control: StreamControl,
}

/// The answer of [`LocalStream::next`].
pub enum NextBatch {
    Ready(LocalBatch),
    /// No batch was ready in time; ask again.
    Pending,
    /// Every batch was delivered.
    End,
}

/// A batch in the stream's memory. Its slot is refilled after the batch is dropped.
pub struct LocalBatch {
    shared: ProcessBound<Arc<Shared>>,
    slot: u8,
    header: SlotHeader,
}

impl LocalStream {
    /// Starts the request's threads. They make the batches of `shard` from number `start_batch` on, whatever the
    /// request says of both.
    ///
    /// # Errors
    /// When the memory cannot be mapped or a thread cannot be started.
    pub fn start(stream: &PreparedStream, start_batch: u64, shard: Shard) -> Result<LocalStream, ServiceError> {
        let request = stream.request();
        let slots = Slots::private(request.slots(), stream.layout.slot_bytes)?;
        let shared = Arc::new(Shared { stream: stream.with_empty_caches(), slots, control: StreamControl::default() });
        shared.control.open(request.slots(), start_batch, stream.source.batch_order().batches(), shard);
        let mut running = Running { shared, workers: Vec::with_capacity(request.threads) };
        for number in 0..request.threads {
            let shared = Arc::clone(&running.shared);
            let worker = thread::Builder::new().name(format!("batches {number}"));
            let worker = worker.spawn(move || fill_slots(&shared.stream, &shared.slots, &shared.control));
            running.workers.push(worker.map_err(|error| ServiceError::Worker(error.to_string()))?);
        }
        Ok(LocalStream { running: ProcessBound::new(running) })
    }

    /// The next batch, in order. Waits for it, at most `timeout`.
    ///
    /// # Errors
    /// When a batch could not be made (once; then the stream is at its end), or in a process that was forked from the
    /// stream's own.
    pub fn next(&self, timeout: Duration) -> Result<NextBatch, ServiceError> {
        let Some(Running { shared, .. }) = self.running.get() else {
            return Err(ServiceError::Forked { owner: self.running.process() });
        };
        match shared.control.next_announcement_within(timeout) {
            None => Ok(NextBatch::Pending),
            Some(NextSlot::Batch(slot, header)) => {
                Ok(NextBatch::Ready(LocalBatch { shared: ProcessBound::new(Arc::clone(shared)), slot, header }))
            }
            Some(NextSlot::Complete) => Ok(NextBatch::End),
            Some(NextSlot::Ended) => match shared.control.take_failure() {
                Some(error) => Err(error),
                None => Ok(NextBatch::End),
            },
        }
    }

    /// Ends the stream: its threads stop after their present batch, and [`LocalStream::next`] waits no longer.
    pub fn stop(&self) {
        if let Some(Running { shared, .. }) = self.running.get() {
            shared.control.end(StreamEnd::Stopped);
        }
    }

    /// Number of batches that were handed out and not dropped.
    #[must_use]
    pub fn held(&self) -> usize {
        self.running.get().map_or(0, |running| running.shared.control.held())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.control.end(StreamEnd::Stopped);
        for worker in self.workers.drain(..) {
            // A panic has ended the stream with an error already.
            let _ = worker.join();
        }
    }
}

impl LocalBatch {
    #[must_use]
    pub const fn header(&self) -> &SlotHeader {
        &self.header
    }

    /// The first element of an array of the stream's layout, and the number of its elements in this batch. The memory
    /// belongs to the batch until it is dropped: the stream neither reads nor writes it. `None` if the stream has no
    /// such array, or in a forked process.
    #[must_use]
    pub fn array(&self, name: &str) -> Option<(*mut u8, usize)> {
        let shared = self.shared.get()?;
        let array = shared.stream.layout.arrays.iter().find(|array| array.name == name)?;
        Some(self.elements(shared, array))
    }

    fn elements(&self, shared: &Shared, array: &Array) -> (*mut u8, usize) {
        let count = self.header.count(&array.count).unwrap_or(0) as usize;
        assert!(count <= array.len, "{count} elements of {}, which has {}", array.name, array.len);
        // The layout keeps arrays within their slot.
        (shared.slots.start(self.slot.into()).wrapping_add(array.offset), count)
    }

    /// A copy of an array; `None` as for [`LocalBatch::array`], or if its elements are not as long as `T`.
    #[must_use]
    #[allow(unsafe_code, reason = "reads the slot")]
    pub fn copied<T: AnyBitPattern>(&self, name: &str) -> Option<Vec<T>> {
        let shared = self.shared.get()?;
        let array = shared.stream.layout.arrays.iter().find(|array| array.name == name)?;
        let (start, count) = self.elements(shared, array);
        if array.dtype.bytes() != size_of::<T>() || !start.cast::<T>().is_aligned() {
            return None;
        }
        // SAFETY: the slot holds `count` elements of this size from `start` on, which were written, or mapped as zeros;
        // any bytes are values of `T`, and nobody writes the slot before the batch is dropped.
        Some(unsafe { std::slice::from_raw_parts(start.cast::<T>(), count) }.to_vec())
    }
}

impl Drop for LocalBatch {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.get() {
            // The batch holds its slot, so this cannot fail.
            let _ = shared.control.give_back(self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Method;
    use crate::service::{Request, prepare};
    use crate::units::Seed;

    fn stream(threads: usize) -> PreparedStream {
        let data = crate::pipeline::sample_games().expect("the sample games");
        let request = Request { batch_size: 512, threads, slots: Some(4), ..Request::new("piece", data, Method::Eval) };
        prepare(request, &()).expect("prepared")
    }

    fn all(batches: &LocalStream) -> Vec<(u64, Vec<i32>, Vec<f32>)> {
        let mut all = Vec::new();
        loop {
            match batches.next(Duration::from_secs(60)).expect("no failure") {
                NextBatch::Ready(batch) => all.push((
                    batch.header().batch,
                    batch.copied("stm_indices").expect("csr"),
                    batch.copied("score").expect("eval"),
                )),
                NextBatch::Pending => panic!("a batch takes a minute"),
                NextBatch::End => return all,
            }
        }
    }

    #[test]
    fn batches_depend_on_neither_threads_nor_shards() {
        let one = stream(1);
        let three = stream(3);
        let whole = all(&LocalStream::start(&one, 0, Shard::WHOLE).expect("started"));
        assert!(whole.len() > 4 && whole == all(&LocalStream::start(&three, 0, Shard::WHOLE).expect("started")));
        let late = all(&LocalStream::start(&three, 3, Shard { index: 1, of: 2 }).expect("started"));
        let expected: Vec<_> = whole.into_iter().skip(3).step_by(2).collect();
        assert_eq!(late, expected);
    }

    /// So a change of a set is compared on the same samples in the same order.
    #[test]
    fn batches_hold_the_same_samples_whatever_the_set() {
        let data = crate::pipeline::sample_games().expect("the sample games");
        let numbers = |set: &str, seed: u64| {
            let request =
                Request { epoch_samples: Some(3000), batch_size: 512, seed: Seed(seed), ..Request::default() };
            let request = Request { set: set.into(), data: data.clone().into(), ..request };
            let stream = prepare(request, &()).expect("prepared");
            let batches = LocalStream::start(&stream, 0, Shard::WHOLE).expect("started");
            let mut numbers: Vec<Vec<u32>> = Vec::new();
            loop {
                match batches.next(Duration::from_secs(60)).expect("no failure") {
                    NextBatch::Ready(batch) => numbers.push(batch.copied("sample_index").expect("there")),
                    NextBatch::Pending => panic!("a batch takes a minute"),
                    NextBatch::End => return numbers,
                }
            }
        };
        let piece = numbers("piece", 7);
        assert_eq!(piece.iter().map(Vec::len).sum::<usize>(), 3000);
        assert!(piece == numbers("chess768-kb4-hm + mobility-count", 7));
        assert!(piece != numbers("piece", 8));
    }

    /// The set's one active feature is the bucket: those of P, Q and R are seen by their own sides to move.
    #[test]
    fn buckets_are_those_of_the_side_to_move() {
        const RULE: &str = "file(K) * rank(E)";
        let data = crate::pipeline::sample_games().expect("the sample games");
        for method in [Method::Eval, Method::Pqr] {
            let rule = Some(RULE.to_owned());
            let request = Request { batch_size: 512, bucket_rule: rule, ..Request::new(RULE, data.clone(), method) };
            let batches = LocalStream::start(&prepare(request, &()).expect("prepared"), 0, Shard::WHOLE);
            let NextBatch::Ready(batch) = batches.expect("started").next(Duration::from_secs(60)).expect("no failure")
            else {
                unreachable!("a batch takes a minute")
            };
            let buckets: Vec<u8> = batch.copied("bucket").expect("one per position");
            assert_eq!(buckets.len(), batch.header().positions as usize);
            assert!(buckets.into_iter().map(i32::from).eq(batch.copied::<i32>("stm_indices").expect("csr")));
        }
    }

    #[test]
    fn a_held_slot_is_not_refilled_and_a_dropped_stream_ends() {
        let prepared = stream(2);
        let batches = LocalStream::start(&prepared, 0, Shard::WHOLE).expect("started");
        let mut held = Vec::new();
        while held.len() < 4 {
            if let NextBatch::Ready(batch) = batches.next(Duration::from_secs(60)).expect("no failure") {
                held.push(batch);
            }
        }
        assert_eq!(batches.held(), 4);
        assert!(matches!(batches.next(Duration::from_millis(30)), Ok(NextBatch::Pending)));
        let before: Vec<Vec<u32>> = held.iter().map(|batch| batch.copied("sample_index").expect("there")).collect();
        drop(held.remove(0));
        assert!(matches!(batches.next(Duration::from_secs(60)), Ok(NextBatch::Ready(_))));
        drop(batches);
        let after: Vec<Vec<u32>> = held.iter().map(|batch| batch.copied("sample_index").expect("there")).collect();
        assert_eq!(after, before[1..]);
    }
}
