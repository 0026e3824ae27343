//! The batches of binpacks that are served without building a data set. An epoch shuffles the files' segments, cuts
//! that sequence into windows of some hundred thousand samples, and shuffles the samples of each window; the result
//! depends on seed and data alone.
//!
//! The workers that need a window decode it together, segment by segment. It is dropped when later windows are in use,
//! so memory does not grow with the file.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use super::all_segments::{AllSegments, DecodeBuffers};
use super::batch_order::{BatchOrder, EpochCache, EpochWindows, WindowLimits};
use super::eligible::StreamSamples;
use super::sample_cell::SampleCell;
use super::shared_tasks::SharedTasks;
use super::shuffle::{bucket_shuffle, fisher_yates};
use super::sync::lock;
use super::window_memory::{CellSink, WindowMemory};
use super::{Request, ServiceError};
use crate::cpu::prefetch;
use crate::data::formats::binpack::{RecordSink, Segments};
use crate::data::{CompactRecord, Method, Record, Split, SplitRule};
use crate::units::sort_by_key;

const WINDOW_SAMPLES: u64 = 1 << 18;
/// Cached windows besides those that workers hold.
const CACHED_WINDOWS: usize = 2;
/// The low bits of a [`WindowSample`] number the sample in its segment, the high bits the segment in its window.
const SAMPLE_BITS: u32 = CompactRecord::NUMBER_BITS;

/// A sample of a window: segment << [`SAMPLE_BITS`] | sample.
type WindowSample = u32;

/// Epoch, and index in it.
type WindowKey = (u32, usize);

/// The batches of a stream over a binpack, numbered from 0 over all epochs.
pub(super) struct BinpackBatches {
    segments: Arc<AllSegments>,
    /// The segments of the split that have usable samples, in the files' order.
    eligible: Arc<[u32]>,
    samples: StreamSamples,
    batch_order: BatchOrder,
    epochs: EpochCache,
    windows: Mutex<Vec<Arc<BinpackWindow>>>,
    /// Memory of dropped windows, reused for the next.
    spare: Mutex<Vec<WindowMemory>>,
    /// Buffers in which no worker decodes a segment now.
    buffers: Mutex<Vec<DecodeBuffers>>,
    window_samples: u64,
    method: Method,
}

/// A segment of a window.
#[derive(Copy, Clone)]
struct WindowSegment {
    /// The number of the segment's first sample in the data.
    first: u32,
    /// The first of its samples in the window's memory, and their number.
    start: u32,
    samples: u32,
}

/// A range of a decoded window's samples.
pub(super) struct WindowRange {
    window: Arc<BinpackWindow>,
    range: Range<usize>,
}

impl WindowRange {
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    pub(super) fn reader(&self) -> WindowReader<'_> {
        let order = self.window.order.get().map_or(&[][..], |order| &order[self.range.clone()]);
        let BinpackWindow { segments, memory, method, .. } = &*self.window;
        WindowReader { order, segments, cells: memory.cells(), method: *method }
    }
}

/// The samples of a [`WindowRange`].
pub(super) struct WindowReader<'a> {
    order: &'a [WindowSample],
    segments: &'a [WindowSegment],
    cells: &'a [SampleCell],
    method: Method,
}

/// Where a sample is in memory.
#[derive(Copy, Clone)]
pub(super) struct DecodedSample<'a> {
    method: Method,
    first: u32,
    cell: &'a SampleCell,
}

impl DecodedSample<'_> {
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(self.cell);
    }

    #[inline]
    pub(super) fn record(self) -> Record {
        self.cell.load().record(self.first, self.method)
    }
}

impl<'a> WindowReader<'a> {
    pub(super) const fn len(&self) -> usize {
        self.order.len()
    }

    /// Some of the samples, numbered from the start of the range.
    #[inline]
    pub(super) fn locate(&self, samples: Range<usize>) -> impl Iterator<Item = DecodedSample<'a>> {
        self.order[samples].iter().map(|location| {
            let segment = location >> SAMPLE_BITS;
            let sample = location & ((1 << SAMPLE_BITS) - 1);
            let WindowSegment { first, start, .. } = self.segments[segment as usize];
            DecodedSample { method: self.method, first, cell: &self.cells[(start + sample) as usize] }
        })
    }
}

impl BinpackBatches {
    /// # Errors
    /// When the split has no samples, or a segment has too many.
    pub(super) fn new(request: &Request, segments: Vec<Segments>) -> Result<BinpackBatches, ServiceError> {
        let segments = AllSegments::new(segments);
        let all = || segments.files.iter().flat_map(Segments::segments);
        let usable_of = |rule: SplitRule| -> (Vec<u32>, u64) {
            let of_rule: Vec<u32> = (0..)
                .zip(all())
                .filter(|(number, segment)| segment.usable > 0 && rule.contains(*number, request.split))
                .map(|(number, _)| number)
                .collect();
            let samples = of_rule.iter().map(|&segment| u64::from(segments.get(segment as usize).usable)).sum();
            (of_rule, samples)
        };
        let (_, of_split) = usable_of(SplitRule::new(request.split_seed, request.validation));
        let (eligible, samples) = usable_of(request.split_rule());
        if samples == 0 && request.split != Split::All {
            return Err(ServiceError::Request(format!(
                "none of the {} segments of {} falls into the requested split (validation share {}, share of the \
                 training games {}); change --validation or --training-share, or ask for --read built, which splits \
                 game by game",
                segments.count,
                request.data,
                request.validation,
                request.reading.training_share.unwrap_or(1.0)
            )));
        }
        let largest = all().map(|segment| segment.samples).max().unwrap_or(0);
        if largest >= 1 << SAMPLE_BITS {
            return Err(ServiceError::Request(format!(
                "{} has {largest} consecutive samples of one game, more than a service can hold at once; ask for \
                 --read built",
                request.data
            )));
        }
        Ok(BinpackBatches {
            eligible: eligible.into(),
            samples: StreamSamples { read: samples, of_split },
            batch_order: request.batch_order(samples),
            epochs: EpochCache::default(),
            windows: Mutex::new(Vec::new()),
            spare: Mutex::new(Vec::new()),
            buffers: Mutex::default(),
            window_samples: WINDOW_SAMPLES,
            method: request.method,
            segments: Arc::new(segments),
        })
    }

    /// The same batches for another stream, which has windows of its own.
    pub(super) fn with_empty_caches(&self) -> BinpackBatches {
        BinpackBatches {
            segments: Arc::clone(&self.segments),
            eligible: Arc::clone(&self.eligible),
            samples: self.samples,
            batch_order: self.batch_order,
            epochs: EpochCache::default(),
            windows: Mutex::new(Vec::new()),
            spare: Mutex::new(Vec::new()),
            buffers: Mutex::default(),
            window_samples: self.window_samples,
            method: self.method,
        }
    }

    pub(super) const fn batch_order(&self) -> &BatchOrder {
        &self.batch_order
    }

    pub(super) const fn samples(&self) -> StreamSamples {
        self.samples
    }

    pub(super) fn segments(&self) -> &AllSegments {
        &self.segments
    }

    /// The number of samples of the segments that are read which the method cannot use.
    pub(super) fn unusable(&self) -> usize {
        let segments = self.eligible.iter().map(|&segment| self.segments.get(segment as usize));
        segments.map(|segment| (segment.samples - segment.usable) as usize).sum()
    }

    /// About `count` samples from segments spread over the split.
    pub(super) fn spread(&self, count: usize) -> Result<Vec<Record>, ServiceError> {
        const DECODED_SEGMENTS: usize = 16;
        let mut buffers = DecodeBuffers::default();
        let mut records = Vec::new();
        for &segment in self.eligible.iter().step_by(self.eligible.len().div_ceil(DECODED_SEGMENTS).max(1)) {
            self.segments.decode(segment as usize, &mut buffers)?;
            let decoded = &buffers.records;
            records.extend(decoded.iter().step_by((decoded.len() * DECODED_SEGMENTS / count).max(1)));
        }
        Ok(records)
    }

    /// The samples of a batch; `None` if `should_stop` returned true meanwhile, or another worker failed.
    pub(super) fn batch(
        &self,
        batch: u64,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<WindowRange>>, ServiceError> {
        let epoch = self.epoch(self.batch_order.epoch_of(batch));
        let mut ranges = Vec::with_capacity(2);
        for (number, range) in epoch.locate(self.batch_order.samples_of(batch)) {
            let segments = &epoch.groups[epoch.windows[number].groups.clone()];
            let window = self.window(epoch.epoch, number, segments)?;
            if !window.decode(self, segments, should_stop)? {
                return Ok(None);
            }
            ranges.push(WindowRange { window, range });
        }
        Ok(Some(ranges))
    }

    fn epoch(&self, epoch: u32) -> Arc<EpochWindows> {
        self.epochs.get_or_make(epoch, || {
            let segments = if self.batch_order.shuffle {
                fisher_yates(&self.eligible, self.batch_order.seed, epoch)
            } else {
                self.eligible.to_vec()
            };
            let limits = WindowLimits { samples: self.window_samples, groups: 1 << (WindowSample::BITS - SAMPLE_BITS) };
            EpochWindows::new(epoch, segments, |segment| self.usable(segment).into(), limits)
        })
    }

    fn usable(&self, segment: u32) -> u32 {
        self.segments.get(segment as usize).usable
    }

    fn window(&self, epoch: u32, number: usize, segments: &[u32]) -> Result<Arc<BinpackWindow>, ServiceError> {
        let key = (epoch, number);
        let mut windows = lock(&self.windows);
        if let Some(window) = windows.iter().find(|window| window.key == key) {
            return Ok(Arc::clone(window));
        }
        let mut start = 0;
        let segment = |&segment: &u32| {
            let samples = self.usable(segment);
            start += samples;
            let first = self.segments.first_sample(segment as usize);
            WindowSegment { first, start: start - samples, samples }
        };
        let segments: Vec<WindowSegment> = segments.iter().map(segment).collect();
        let spare = lock(&self.spare).pop().filter(|memory| memory.cells().len() >= start as usize);
        let memory = match spare {
            Some(memory) => memory,
            None => WindowMemory::new(start as usize)
                .map_err(|source| ServiceError::SharedMemory { action: "map memory for samples beside", source })?,
        };
        let window = Arc::new(BinpackWindow::new(key, segments, memory, self.method));
        windows.push(Arc::clone(&window));
        sort_by_key(&mut windows, &|window| window.key);
        if windows.len() > CACHED_WINDOWS
            && let Ok(dropped) = Arc::try_unwrap(windows.remove(0))
        {
            lock(&self.spare).push(dropped.memory);
        }
        Ok(window)
    }
}

/// The samples of some segments, decoded by several workers, and their order in the stream.
///
/// Task 0 shuffles the locations; task i + 1 decodes segment i.
struct BinpackWindow {
    key: WindowKey,
    segments: Vec<WindowSegment>,
    memory: WindowMemory,
    method: Method,
    order: OnceLock<Vec<WindowSample>>,
    tasks: SharedTasks,
}

impl BinpackWindow {
    fn new(key: WindowKey, segments: Vec<WindowSegment>, memory: WindowMemory, method: Method) -> BinpackWindow {
        BinpackWindow {
            key,
            method,
            tasks: SharedTasks::new(segments.len() + 1),
            segments,
            memory,
            order: OnceLock::new(),
        }
    }

    /// Works on the window's tasks, then waits until other workers have finished theirs. Returns false if `should_stop`
    /// returned true meanwhile, or another worker failed.
    fn decode(
        &self,
        batches: &BinpackBatches,
        segments: &[u32],
        should_stop: &dyn Fn() -> bool,
    ) -> Result<bool, ServiceError> {
        if self.tasks.are_complete() {
            return Ok(true);
        }
        let mut buffers = lock(&batches.buffers).pop().unwrap_or_default();
        self.tasks.run(should_stop, &mut |task| self.run_task(task, batches, segments, &mut buffers))?;
        lock(&batches.buffers).push(buffers);
        Ok(self.tasks.wait(should_stop))
    }

    fn run_task(
        &self,
        task: usize,
        batches: &BinpackBatches,
        segments: &[u32],
        buffers: &mut DecodeBuffers,
    ) -> Result<(), ServiceError> {
        // Every task is run once, so the cells are still empty.
        match task.checked_sub(1) {
            None => {
                let _ = self.order.set(self.shuffled_locations(batches));
            }
            Some(segment) => {
                let WindowSegment { first, start, samples } = self.segments[segment];
                let cells = &self.memory.cells()[start as usize..(start + samples) as usize];
                let mut sink = CellSink::new(cells, first, self.method);
                let (file, number) = batches.segments.locate(segments[segment] as usize);
                if file.segments()[number].samples == samples {
                    file.decode_all(number, &mut buffers.bytes, &mut sink)?;
                } else {
                    file.decode(number, &mut buffers.bytes, &mut buffers.records)?;
                    buffers.records.iter().for_each(|record| sink.push(*record));
                }
            }
        }
        Ok(())
    }

    fn shuffled_locations(&self, batches: &BinpackBatches) -> Vec<WindowSample> {
        let samples = self.segments.iter().map(|segment| segment.samples as usize).sum();
        let mut locations: Vec<WindowSample> = Vec::with_capacity(samples);
        for (index, segment) in (0..).zip(&self.segments) {
            let first: WindowSample = index << SAMPLE_BITS;
            locations.extend(first..first + segment.samples);
        }
        let (epoch, number) = self.key;
        if batches.batch_order.shuffle {
            bucket_shuffle(&locations, batches.batch_order.seed.draws(&format!("window {epoch} {number}")))
        } else {
            locations
        }
    }
}

#[cfg(test)]
mod tests;
