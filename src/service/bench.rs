//! The producer measured without a consumer.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::control::{Announcement, StreamControl, StreamEnd};
use super::protocol::SlotLayout;
use super::serve::with_workers;
use super::shared_memory::SharedMemory;
use super::{Header, PreparedStream, ServiceError};

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
pub fn bench(prepared: &PreparedStream, duration: Duration) -> Result<BenchReport, ServiceError> {
    let request = &prepared.request;
    let (segment, _name) = SharedMemory::create(request.slots, prepared.plan.slot_bytes, request.shm)?;
    let control = StreamControl::default();
    control.open(request.slots, request.start_batch, prepared.samples.schedule().batches(), request.shard);
    let (mut positions, mut samples, mut bytes, mut batches) = (0u64, 0u64, 0u64, 0u64);
    let start = Instant::now();
    let mut elapsed = Duration::ZERO;
    with_workers(prepared, &segment, &control, || {
        while elapsed < duration
            && let Announcement::Announce(slot, header) = control.next_filled()
        {
            positions += u64::from(header.positions);
            samples += u64::from(header.samples);
            bytes += written(&prepared.plan, &header);
            batches += 1;
            elapsed = start.elapsed();
            if let Err(error) = control.give_back(slot) {
                control.end(StreamEnd::Failed(error));
            }
        }
    });
    if let Some(StreamEnd::Failed(error)) = control.take_ending() {
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
fn written(plan: &SlotLayout, header: &Header) -> u64 {
    let array =
        |array: &super::Array| u64::from(header.count(&array.count).unwrap_or_default()) * array.dtype.bytes() as u64;
    size_of::<Header>() as u64 + plan.arrays.iter().map(array).sum::<u64>()
}
