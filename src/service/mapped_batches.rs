//! The batches of a mapped file. Their samples depend on seed, data and epoch alone, so that threads need no agreement
//! and a resumed run sees the same batches.
//!
//! An epoch shuffles the file's blocks of records, cuts that sequence into windows of about a million samples, and
//! shuffles the samples of each window. So a file of any size is read block by block, in bounded memory; a file of one
//! window is shuffled as a whole.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use super::batch_order::{BatchOrder, EpochCache, EpochWindows, WindowLimits, WindowSpan};
use super::eligible::EligibleRecords;
use super::shuffle::{bucket_shuffle, fisher_yates};
use super::sync::lock;

/// Records per block.
const BLOCK: usize = 4_096;
const WINDOW_SAMPLES: u64 = 1 << 20;
/// Cached windows besides the windows that workers hold: the current one and the next.
const CACHED_WINDOWS: usize = 2;
/// Windows after the newest that the system is asked to read from the disk already.
const FETCHED_AHEAD: usize = 2;

/// Hints to a mapped file about the records it will need and those it can release.
pub trait Paging {
    fn fetch(&self, records: Range<usize>);
    fn release(&self, records: Range<usize>);
}

/// The batches of a stream over a mapped file, numbered from 0 over all epochs.
pub struct MappedBatches {
    eligible: Arc<EligibleRecords>,
    samples_per_block: Arc<[u32]>,
    batch_order: BatchOrder,
    epochs: EpochCache,
    windows: Mutex<Windows>,
    window_samples: u64,
}

/// The windows in use.
#[derive(Default)]
struct Windows {
    cached: Vec<Arc<MappedWindow>>,
    /// No longer cached, but perhaps still read by slow workers. Records they read are in memory again, so they are
    /// released when the last worker is done.
    retired: Vec<Arc<MappedWindow>>,
    /// Keys of the windows that were fetched and not released.
    fetched: Vec<MappedWindowKey>,
}

/// Epoch, and index in it.
type MappedWindowKey = (u32, usize);

/// Blocks whose samples are shuffled together.
struct MappedWindow {
    epoch: u32,
    /// Index in its epoch.
    number: usize,
    /// Ascending.
    blocks: Vec<u32>,
    /// Record indices in the stream's order.
    samples: OnceLock<Vec<u32>>,
}

/// The records of one batch.
pub struct MappedBatch {
    pub epoch: u32,
    parts: Vec<(Arc<MappedWindow>, Range<usize>)>,
}

impl MappedBatch {
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|(_, range)| range.len()).sum()
    }

    /// Visits the record indices of some of the batch's samples, in its order.
    pub fn for_each(&self, samples: Range<usize>, mut visit: impl FnMut(u32)) {
        let mut preceding = 0;
        for (window, range) in &self.parts {
            let in_window = |sample: usize| range.start + sample.saturating_sub(preceding).min(range.len());
            let records = window.samples.get().map_or(&[][..], Vec::as_slice);
            records[in_window(samples.start)..in_window(samples.end)].iter().for_each(|&index| visit(index));
            preceding += range.len();
        }
    }
}

impl MappedBatches {
    #[must_use]
    pub fn new(eligible: EligibleRecords, batch_order: BatchOrder) -> MappedBatches {
        MappedBatches {
            samples_per_block: eligible.count_per_block(BLOCK).collect(),
            batch_order,
            epochs: EpochCache::default(),
            windows: Mutex::default(),
            window_samples: WINDOW_SAMPLES,
            eligible: Arc::new(eligible),
        }
    }

    /// The same batches for another stream, which has windows of its own.
    #[must_use]
    pub fn with_empty_caches(&self) -> MappedBatches {
        MappedBatches {
            eligible: Arc::clone(&self.eligible),
            samples_per_block: Arc::clone(&self.samples_per_block),
            batch_order: self.batch_order,
            epochs: EpochCache::default(),
            windows: Mutex::default(),
            window_samples: self.window_samples,
        }
    }

    /// Indices of about `count` of the records, spread evenly over the data, ascending.
    pub fn spread(&self, count: usize) -> impl Iterator<Item = u32> {
        self.eligible.spread(count)
    }

    #[must_use]
    pub const fn batch_order(&self) -> &BatchOrder {
        &self.batch_order
    }

    #[must_use]
    pub fn batch(&self, batch: u64, paging: &impl Paging) -> MappedBatch {
        let epoch = self.epoch(self.batch_order.epoch_of(batch));
        let samples = self.batch_order.samples_of(batch);
        let end = samples.end;
        let mut parts = Vec::with_capacity(2);
        let mut last = 0;
        for (number, range) in epoch.locate(samples) {
            let (window, _) = self.window(&epoch, number, paging);
            self.shuffle(&window);
            parts.push((window, range));
            last = number;
        }
        self.prepare_next(&epoch, last, end, paging);
        MappedBatch { epoch: epoch.epoch, parts }
    }

    /// Once half of a window has been delivered, one worker prepares the next while the others go on.
    fn prepare_next(&self, epoch: &Arc<EpochWindows>, current: usize, delivered: u64, paging: &impl Paging) {
        let half_delivered = |window: &WindowSpan| window.first_sample + window.samples / 2 <= delivered;
        let starts_in_epoch = |window: &WindowSpan| self.starts_in_epoch(window);
        let (epoch, next) = match epoch.windows.get(current) {
            Some(window) if !half_delivered(window) => return,
            Some(_) if epoch.windows.get(current + 1).is_some_and(starts_in_epoch) => (Arc::clone(epoch), current + 1),
            _ if self.batch_order.epochs != 0 && epoch.epoch + 1 >= self.batch_order.epochs => return,
            _ => (self.epoch(epoch.epoch + 1), 0),
        };
        if next < epoch.windows.len()
            && let (window, true) = self.window(&epoch, next, paging)
        {
            self.shuffle(&window);
        }
    }

    fn starts_in_epoch(&self, window: &WindowSpan) -> bool {
        window.first_sample < self.batch_order.epoch_samples
    }

    fn epoch(&self, epoch: u32) -> Arc<EpochWindows> {
        self.epochs.get_or_make(epoch, || {
            let samples_in = |block: u32| self.samples_per_block[block as usize];
            let blocks = 0..self.samples_per_block.len() as u32;
            let mut blocks: Vec<u32> = blocks.filter(|&block| samples_in(block) > 0).collect();
            if self.batch_order.shuffle {
                blocks = fisher_yates(&blocks, self.batch_order.seed, epoch);
            }
            let limits = WindowLimits { samples: self.window_samples, groups: usize::MAX };
            EpochWindows::new(epoch, blocks, |block| samples_in(block).into(), limits)
        })
    }

    /// A window, whose samples may not be shuffled yet, and whether this call created it.
    fn window(&self, epoch: &EpochWindows, number: usize, paging: &impl Paging) -> (Arc<MappedWindow>, bool) {
        let mut windows = lock(&self.windows);
        let Windows { cached, retired, fetched } = &mut *windows;
        if let Some(known) = cached.iter().find(|window| window.key() == (epoch.epoch, number)) {
            return (Arc::clone(known), false);
        }
        let blocks_of = |window: &WindowSpan| {
            let mut blocks = epoch.groups[window.groups.clone()].to_vec();
            // Adjacent blocks can be fetched together.
            blocks.sort_unstable();
            blocks
        };
        let ahead = epoch.windows.iter().enumerate().skip(number).take(1 + FETCHED_AHEAD);
        for (number, window) in ahead.take_while(|(_, window)| self.starts_in_epoch(window)) {
            let key = (epoch.epoch, number);
            if !fetched.contains(&key) {
                for_each_run(&blocks_of(window), |records| paging.fetch(records));
                fetched.push(key);
            }
        }
        let blocks = blocks_of(&epoch.windows[number]);
        let window = Arc::new(MappedWindow { epoch: epoch.epoch, number, blocks, samples: OnceLock::new() });
        cached.push(Arc::clone(&window));
        if cached.len() > CACHED_WINDOWS
            && let Some(oldest) = (0..cached.len()).min_by_key(|&index| cached[index].key())
        {
            retired.push(cached.swap_remove(oldest));
        }
        retired.retain(|window| {
            let is_in_use = Arc::strong_count(window) > 1;
            if !is_in_use {
                for_each_run(&window.blocks, |records| paging.release(records));
                fetched.retain(|key| *key != window.key());
            }
            is_in_use
        });
        (window, true)
    }

    fn shuffle(&self, window: &MappedWindow) {
        window.samples.get_or_init(|| {
            let records = |block: u32| block as usize * BLOCK..(block as usize + 1) * BLOCK;
            let samples: Vec<u32> =
                window.blocks.iter().flat_map(|&block| self.eligible.in_range(records(block))).collect();
            if self.batch_order.shuffle {
                let stream = format!("samples {} {}", window.epoch, window.number);
                bucket_shuffle(&samples, self.batch_order.seed.draws(&stream))
            } else {
                samples
            }
        });
    }
}

impl MappedWindow {
    const fn key(&self) -> MappedWindowKey {
        (self.epoch, self.number)
    }
}

/// Visits the records of ascending blocks, one range per run of adjacent blocks.
fn for_each_run(blocks: &[u32], mut visit: impl FnMut(Range<usize>)) {
    for run in blocks.chunk_by(|block, next| block + 1 == *next) {
        let first = run[0] as usize;
        visit(first * BLOCK..(first + run.len()) * BLOCK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    /// Records every hint: `true` for a fetch.
    type Hints = Mutex<Vec<(bool, Range<usize>)>>;

    impl Paging for Hints {
        fn fetch(&self, records: Range<usize>) {
            lock(self).push((true, records));
        }

        fn release(&self, records: Range<usize>) {
            lock(self).push((false, records));
        }
    }

    /// Every third record is eligible.
    fn eligible(records: u32) -> EligibleRecords {
        let mut bits = vec![0; records.div_ceil(64) as usize];
        (0..records).step_by(3).for_each(|record| bits[record as usize / 64] |= 1 << (record % 64));
        EligibleRecords::new(bits)
    }

    fn batch_order(batch_size: u64, epochs: u32) -> BatchOrder {
        BatchOrder { seed: Seed(5), shuffle: true, epoch_samples: 0, batch_size, epochs }
    }

    /// A file of one window, in batches of 64.
    fn small(epoch_samples: u64, shuffle: bool) -> MappedBatches {
        MappedBatches::new(eligible(3_000), BatchOrder { epoch_samples, shuffle, ..batch_order(64, 2) })
    }

    /// Windows of three or four blocks, in batches of 1,000.
    fn large(shuffle: bool) -> MappedBatches {
        let eligible = eligible(100_000);
        let batch_order = BatchOrder { epoch_samples: eligible.count(), shuffle, ..batch_order(1_000, 0) };
        MappedBatches { window_samples: 4_000, ..MappedBatches::new(eligible, batch_order) }
    }

    /// The record indices of a batch, read at once and in pieces.
    fn records(batches: &MappedBatches, number: u64) -> Vec<u32> {
        let batch = batches.batch(number, &Hints::default());
        let mut at_once = Vec::new();
        batch.for_each(0..batch.len(), |index| at_once.push(index));
        let mut in_pieces = Vec::new();
        for start in (0..batch.len()).step_by(7) {
            batch.for_each(start..(start + 7).min(batch.len()), |index| in_pieces.push(index));
        }
        assert_eq!(at_once, in_pieces);
        at_once
    }

    fn records_of_all(batches: &MappedBatches, numbers: Range<u64>) -> Vec<u32> {
        numbers.flat_map(|number| records(batches, number)).collect()
    }

    #[test]
    fn an_epoch_holds_every_sample_once() {
        let check = |batches: &MappedBatches, samples: u32| {
            let per_epoch = batches.batch_order().batches_per_epoch();
            let epochs = [0, 1].map(|epoch| records_of_all(batches, epoch * per_epoch..(epoch + 1) * per_epoch));
            assert_ne!(epochs[0], epochs[1]);
            for mut epoch in epochs {
                let still_adjacent = epoch.windows(2).filter(|pair| pair[0] + 3 == pair[1]).count();
                assert!(still_adjacent < epoch.len() / 50, "{still_adjacent} of {}", epoch.len());
                epoch.sort_unstable();
                assert_eq!(epoch, (0..samples).map(|i| i * 3).collect::<Vec<u32>>());
            }
        };
        check(&small(1_000, true), 1_000);
        check(&large(true), 33_334);
        let batches = small(1_000, true);
        assert_eq!((batches.batch_order().batches_per_epoch(), batches.batch_order().batches()), (16, Some(32)));
        let around_epoch_end = [15, 16].map(|number| batches.batch(number, &Hints::default()));
        assert_eq!(around_epoch_end.each_ref().map(|batch| (batch.len(), batch.epoch)), [(40, 0), (64, 1)]);
    }

    #[test]
    fn batches_can_be_requested_in_any_order() {
        let forwards: Vec<Vec<u32>> = (0..80).map(|number| records(&large(true), number)).collect();
        let batches = large(true);
        for number in (0..80).rev() {
            assert_eq!(records(&batches, number), forwards[number as usize], "{number}");
        }
    }

    #[test]
    fn a_limited_epoch_is_the_start_of_the_whole_one() {
        let whole = small(1_000, true);
        let limited = small(100, true);
        assert_eq!((limited.batch_order().epoch_samples, limited.batch_order().batches_per_epoch()), (100, 2));
        assert_eq!(records(&limited, 0), records(&whole, 0));
        assert_eq!(records(&limited, 1), records(&whole, 1)[..36]);
        assert_ne!(records(&limited, 2), records(&limited, 0));
    }

    #[test]
    fn unshuffled_batches_keep_the_file_order() {
        let batches = small(70, false);
        assert_eq!(records(&batches, 1), [192, 195, 198, 201, 204, 207]);
        assert_eq!(records(&batches, 3), records(&batches, 1));
        assert!(records_of_all(&large(false), 0..34).is_sorted());
    }

    #[test]
    fn evicted_windows_are_released() {
        let batches = large(true);
        let hints = Hints::default();
        (0..34).for_each(|number| drop(batches.batch(number, &hints)));
        let hints = lock(&hints).clone();
        let total = |fetched: bool| {
            hints.iter().filter(|(fetch, _)| *fetch == fetched).map(|(_, records)| records.len()).sum::<usize>()
        };
        let windows = lock(&batches.windows);
        let cached: usize = windows.cached.iter().map(|window| window.blocks.len() * BLOCK).sum();
        assert!(windows.retired.is_empty() && cached <= 8 * BLOCK, "{cached}");
        // All 25 blocks of the first epoch, and the first windows of the second, fetched ahead.
        assert!(total(true) >= 25 * BLOCK && total(true) < 38 * BLOCK, "{}", total(true));
        // Windows that are neither cached nor fetched ahead are released.
        let not_released = total(true) - total(false);
        assert!(
            not_released >= cached && not_released <= cached + 4 * FETCHED_AHEAD * BLOCK,
            "{not_released} {cached}"
        );
        assert!(windows.fetched.len() <= CACHED_WINDOWS + FETCHED_AHEAD);
    }

    /// A slow worker that still reads a window when it is evicted brings its pages back.
    #[test]
    fn windows_in_use_are_released_later() {
        let batches = large(true);
        let hints = Hints::default();
        let slow = batches.batch(0, &hints);
        (1..34).for_each(|number| drop(batches.batch(number, &hints)));
        let blocks = slow.parts[0].0.blocks.clone();
        let is_released = || {
            let first = blocks[0] as usize * BLOCK;
            lock(&hints).iter().any(|(fetch, records)| !fetch && records.contains(&first))
        };
        assert!(!is_released());
        drop(slow);
        (34..60).for_each(|number| drop(batches.batch(number, &hints)));
        assert!(is_released());
    }
}
