//! Measures the producer without a consumer.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::control::{NextSlot, StreamControl, StreamEnd};
use super::protocol::SlotLayout;
use super::serve::with_workers;
use super::shared_memory::SharedMemory;
use super::{Array, PreparedStream, ServiceError, SlotHeader};

/// How fast batches are made for a consumer that takes no time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BenchReport {
    /// Encoded positions per second.
    pub positions_per_second: f64,
    /// Samples per second.
    pub samples_per_second: f64,
    /// Bytes written to shared memory.
    pub bytes_per_second: f64,
    /// Encoding threads.
    pub threads: usize,
    /// Duration of the measurement.
    pub seconds: f64,
    /// Batches that were delivered.
    pub batches: u64,
    /// The CPU's model name.
    pub cpu: String,
    /// The vector instructions that encode the set: `avx512`, `neon` or `none`.
    pub vectors: &'static str,
}

/// Fills slots for at least `duration` and gives each back at once. The request should be without end.
///
/// # Errors
/// As [`run`](super::run).
pub fn bench(stream: &PreparedStream, duration: Duration) -> Result<BenchReport, ServiceError> {
    let request = &stream.request;
    let (memory, _name) = SharedMemory::create(request.slots(), stream.layout.slot_bytes, request.shm)?;
    let control = StreamControl::default();
    control.open(request.slots(), request.start_batch, stream.source.batch_order().batches(), request.shard);
    let mut positions = 0u64;
    let mut samples = 0u64;
    let mut bytes = 0u64;
    let mut batches = 0u64;
    let start = Instant::now();
    let mut elapsed = Duration::ZERO;
    with_workers(stream, memory.slots(), &control, || {
        while elapsed < duration
            && let NextSlot::Batch(slot, header) = control.next_announcement()
        {
            positions += u64::from(header.positions);
            samples += u64::from(header.samples);
            bytes += bytes_in_slot(&stream.layout, &header);
            batches += 1;
            elapsed = start.elapsed();
            if let Err(error) = control.give_back(slot) {
                control.end(StreamEnd::Failed(error));
            }
        }
    });
    if let Some(StreamEnd::Failed(error)) = control.take_end() {
        return Err(error);
    }
    let rate = |count: u64| count as f64 / elapsed.as_secs_f64();
    Ok(BenchReport {
        positions_per_second: rate(positions),
        samples_per_second: rate(samples),
        bytes_per_second: rate(bytes),
        threads: request.threads,
        seconds: elapsed.as_secs_f64(),
        batches,
        cpu: crate::cpu::model_name(),
        vectors: stream.set.encoder().vectors(),
    })
}

/// Bytes that a batch's header and arrays take.
fn bytes_in_slot(layout: &SlotLayout, header: &SlotHeader) -> u64 {
    let array_bytes =
        |array: &Array| u64::from(header.count(&array.count).unwrap_or_default()) * array.dtype.bytes() as u64;
    size_of::<SlotHeader>() as u64 + layout.arrays.iter().map(array_bytes).sum::<u64>()
}
