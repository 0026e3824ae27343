//! Batches on their way to the device. They are gathered in memory of the host from which the device copies while it
//! computes the step before; two steps' batches have room.
#![allow(unsafe_code, reason = "copies to the device take pointers")]

use std::io::{self, Write};
use std::ops::Range;
use std::rc::Rc;

use fsbench::train::TrainError;
use fsbench::train::tch_program::NAME;
use fsbench::train::trainer::{Batch, Labels};
use tch::{Device, Kind, Tensor};

use super::arguments::{Lists, Memory};
use super::step_times::StepTimes;
use crate::kernels::streams::{Event, HostMemory, Queue, Streams};
use crate::torch_error;

/// Every array starts at a multiple of this many bytes, and ends at one.
const ALIGNMENT: usize = 256;
/// Memory for batches grows by this many bytes, so that it seldom does.
const GROWTH: usize = 1 << 20;

/// Threads that gather a batch, and bytes that one of them copies at a time.
const GATHERERS: usize = 4;
const CHUNK: usize = 1 << 17;

/// A batch on a device.
pub struct DeviceBatch<'a> {
    pub batch: &'a Batch<'a>,
    pub lists: Lists,
    pub pieces: Memory,
    /// `None` for pqr.
    pub targets: Option<Memory>,
    /// Active features of both sides.
    pub active: usize,
}

/// The batches of a step on a device.
pub struct DeviceBatches<'a> {
    pub each: Vec<DeviceBatch<'a>>,
    set: usize,
}

/// Memory for the batches of two steps.
pub struct BatchMemories {
    streams: Rc<dyn Streams>,
    device: Device,
    sets: [MemorySet; 2],
    next: usize,
    /// Whether the user was told that copies are slow.
    told: bool,
}

/// Memory for the batches of one step.
struct MemorySet {
    host: Option<HostMemory>,
    device: Option<Tensor>,
    /// Everything has arrived.
    copied: Event,
    /// The step has run.
    used: Event,
}

/// A batch's arrays: features of the side to move, of the other, pieces and targets.
struct Arrays<'a> {
    all: Vec<&'a [u8]>,
}

impl<'a> Arrays<'a> {
    fn of(batch: &Batch<'a>) -> Arrays<'a> {
        let [stm, nstm] = batch.active;
        let mut all: Vec<&[u8]> = Vec::with_capacity(6);
        all.extend([stm.indices(), nstm.indices(), stm.offsets(), nstm.offsets()].map(bytemuck::cast_slice));
        all.push(batch.bucket_inputs);
        if let Labels::Eval(targets) = batch.labels {
            all.push(bytemuck::cast_slice(targets));
        }
        Arrays { all }
    }
}

impl BatchMemories {
    /// # Errors
    /// When the device fails.
    pub fn new(streams: Rc<dyn Streams>, device: Device) -> Result<BatchMemories, TrainError> {
        let set = || {
            let [copied, used] = [streams.event()?, streams.event()?];
            Ok::<_, TrainError>(MemorySet { host: None, device: None, copied, used })
        };
        let sets = [set()?, set()?];
        Ok(BatchMemories { streams, device, sets, next: 0, told: false })
    }

    /// Starts the copies of a step's batches; the kernels' queue waits for them. The batches' own memory is free
    /// afterwards.
    ///
    /// `times`: of the step.
    ///
    /// # Errors
    /// When the device fails.
    pub fn upload<'a>(
        &mut self,
        batches: &[&'a Batch<'a>],
        times: Option<&StepTimes>,
    ) -> Result<DeviceBatches<'a>, TrainError> {
        let number = self.next;
        self.next = (number + 1) % self.sets.len();
        // The step before the last has read its copy, and the host may fill the memory again.
        self.streams.host_waits(self.sets[number].copied)?;
        let arrays: Vec<Arrays<'a>> = batches.iter().map(|batch| Arrays::of(batch)).collect();
        let mut end = 0;
        let mut places: Vec<Vec<Range<usize>>> = Vec::with_capacity(batches.len());
        for Arrays { all } in &arrays {
            let place = |array: &&[u8]| {
                let start = end;
                end = (end + array.len()).next_multiple_of(ALIGNMENT);
                start..start + array.len()
            };
            places.push(all.iter().map(place).collect());
        }
        self.make_room(number, end)?;
        let BatchMemories { streams, sets, .. } = self;
        let MemorySet { host: Some(host), device: Some(device), copied, used } = &mut sets[number] else {
            return Err(TrainError::Device { library: "memory", why: "there is none for a batch".into() });
        };
        gather(&arrays, host.bytes_mut());
        streams.queue_waits(Queue::Copies, *used)?;
        let start = times.map_or(Ok(None), |times| times.now(Queue::Copies))?;
        // SAFETY: both memories have room for `end` bytes, and nothing frees or changes them before `host_waits` above.
        // The queue of copies has just waited for the last kernel that read the device's.
        unsafe { streams.upload(device.data_ptr(), host.start(), end) }?;
        streams.record(*copied, Queue::Copies)?;
        if let Some(times) = times {
            times.copied(start)?;
        }
        streams.queue_waits(Queue::Compute, *copied)?;
        let start = device.data_ptr();
        let mut each = Vec::with_capacity(batches.len());
        for (batch, places) in batches.iter().zip(&places) {
            let memory = |array: usize| start.wrapping_byte_add(places[array].start);
            each.push(DeviceBatch {
                batch,
                lists: Lists { indices: [memory(0), memory(1)], offsets: [memory(2), memory(3)] },
                pieces: memory(4),
                targets: places.get(5).map(|_| memory(5)),
                active: batch.active.iter().map(|side| side.indices().len()).sum(),
            });
        }
        Ok(DeviceBatches { each, set: number })
    }

    /// To be called when all work on the batches was started.
    ///
    /// # Errors
    /// When the device fails.
    pub fn used(&self, batches: &DeviceBatches<'_>) -> Result<(), TrainError> {
        self.streams.record(self.sets[batches.set].used, Queue::Compute)
    }

    fn make_room(&mut self, number: usize, bytes: usize) -> Result<(), TrainError> {
        let BatchMemories { streams, device, sets, told, .. } = self;
        let set = &mut sets[number];
        if set.host.as_ref().is_some_and(|host| host.size() >= bytes) {
            return Ok(());
        }
        let bytes = (bytes + bytes / 8).next_multiple_of(GROWTH);
        // Freed before more is taken.
        set.host = None;
        set.device = None;
        let host = HostMemory::new(streams, bytes)?;
        if let (Some(why), false) = (host.slow(), *told) {
            *told = true;
            let _ = writeln!(
                io::stderr(),
                "{NAME}: batches are copied while the GPU waits, since it pins no memory: {why}"
            );
        }
        set.host = Some(host);
        let size = [bytes as i64];
        set.device = Some(Tensor::f_empty(size, (Kind::Uint8, *device)).map_err(torch_error)?);
        // libtorch may have given memory that kernels still use.
        streams.record(set.used, Queue::Compute)
    }
}

impl Drop for BatchMemories {
    fn drop(&mut self) {
        for set in &self.sets {
            // Fails only if the device is lost, and then it copies no more.
            let _ = self.streams.host_waits(set.copied);
        }
    }
}

/// Copies all arrays to the memory, one after the other. Other threads take most of it.
fn gather(arrays: &[Arrays<'_>], memory: &mut [u8]) {
    let mut copies = Vec::new();
    let mut rest = memory;
    for array in arrays.iter().flat_map(|arrays| &arrays.all) {
        let (to, after) = rest.split_at_mut(array.len().next_multiple_of(ALIGNMENT).min(rest.len()));
        copies.extend(to[..array.len()].chunks_mut(CHUNK).zip(array.chunks(CHUNK)));
        rest = after;
    }
    let copy = |copies: &mut [(&mut [u8], &[u8])]| {
        for (to, from) in copies {
            to.copy_from_slice(from);
        }
    };
    let share = copies.len().div_ceil(GATHERERS).max(1);
    let mut shares = copies.chunks_mut(share);
    let Some(own) = shares.next() else { return };
    rayon::in_place_scope(|scope| {
        for share in shares {
            scope.spawn(move |_| copy(share));
        }
        copy(own);
    });
}
