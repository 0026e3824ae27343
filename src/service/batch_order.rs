//! The order that all streams share: batches are numbered over all epochs, and each epoch lines up groups of samples
//! (blocks of a mapped file, segments of a binpack) and cuts that sequence into windows.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::sync::lock;
use crate::units::Seed;

/// The batches of a stream, and the samples of an epoch that each of them holds.
#[derive(Copy, Clone, Debug)]
pub struct BatchOrder {
    pub seed: Seed,
    pub shuffle: bool,
    pub epoch_samples: u64,
    pub batch_size: u64,
    /// 0 = without end.
    pub epochs: u32,
}

impl BatchOrder {
    #[must_use]
    pub const fn batches_per_epoch(&self) -> u64 {
        self.epoch_samples.div_ceil(self.batch_size)
    }

    /// Number of batches in all epochs; `None` = without end.
    #[must_use]
    pub fn batches(&self) -> Option<u64> {
        (self.epochs != 0).then(|| self.batches_per_epoch() * u64::from(self.epochs))
    }

    #[must_use]
    pub fn epoch_of(&self, batch: u64) -> u32 {
        (batch / self.batches_per_epoch().max(1)) as u32
    }

    /// The samples of a batch, numbered within its epoch.
    #[must_use]
    pub fn samples_of(&self, batch: u64) -> Range<u64> {
        let start = batch % self.batches_per_epoch().max(1) * self.batch_size;
        start..(start + self.batch_size).min(self.epoch_samples)
    }
}

/// The sample groups of one epoch in their order, and the windows they form.
pub struct EpochWindows {
    pub epoch: u32,
    pub groups: Vec<u32>,
    pub windows: Vec<WindowSpan>,
}

/// Where a window lies in its epoch.
pub struct WindowSpan {
    pub first_sample: u64,
    pub samples: u64,
    /// Range of [`EpochWindows::groups`].
    pub groups: Range<usize>,
}

/// A window ends with the group that brings it to one of these sizes.
#[derive(Copy, Clone)]
pub struct WindowLimits {
    pub samples: u64,
    pub groups: usize,
}

impl EpochWindows {
    /// Cuts `groups` into windows, in the order given.
    pub fn new(epoch: u32, groups: Vec<u32>, samples_in: impl Fn(u32) -> u64, limits: WindowLimits) -> EpochWindows {
        let mut windows: Vec<WindowSpan> = Vec::new();
        let mut first_sample = 0;
        for (index, &group) in groups.iter().enumerate() {
            let samples = samples_in(group);
            let has_room =
                |window: &&mut WindowSpan| window.samples < limits.samples && window.groups.len() < limits.groups;
            match windows.last_mut().filter(has_room) {
                Some(window) => {
                    window.samples += samples;
                    window.groups.end = index + 1;
                }
                None => windows.push(WindowSpan { first_sample, samples, groups: index..index + 1 }),
            }
            first_sample += samples;
        }
        EpochWindows { epoch, groups, windows }
    }

    /// The windows that hold `samples` of the epoch, each with the range of its own samples that is meant.
    pub fn locate(&self, samples: Range<u64>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let Range { start, end } = samples;
        let first = self.windows.partition_point(|window| window.first_sample + window.samples <= start);
        let windows = self.windows.iter().enumerate().skip(first);
        windows.take_while(move |(_, window)| window.first_sample < end).map(move |(index, window)| {
            let in_window = |sample: u64| (sample - window.first_sample) as usize;
            let last = end.min(window.first_sample + window.samples);
            (index, in_window(start.max(window.first_sample))..in_window(last))
        })
    }
}

/// The two newest epochs in use: workers cross from one to the next at different times.
#[derive(Default)]
pub struct EpochCache(Mutex<Vec<Arc<EpochWindows>>>);

impl EpochCache {
    /// The windows of an epoch, computed by `make` unless they are cached.
    pub fn get_or_make(&self, epoch: u32, make: impl FnOnce() -> EpochWindows) -> Arc<EpochWindows> {
        let mut cached = lock(&self.0);
        if let Some(known) = cached.iter().find(|known| known.epoch == epoch) {
            return Arc::clone(known);
        }
        let made = Arc::new(make());
        cached.push(Arc::clone(&made));
        if cached.len() > 2
            && let Some(oldest) = (0..cached.len()).min_by_key(|&index| cached[index].epoch)
        {
            cached.swap_remove(oldest);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_windows_by_hand() {
        let batch_order = BatchOrder { seed: Seed(1), shuffle: true, epoch_samples: 25, batch_size: 10, epochs: 2 };
        assert_eq!((batch_order.batches_per_epoch(), batch_order.batches()), (3, Some(6)));
        assert_eq!((batch_order.epoch_of(2), batch_order.epoch_of(3), batch_order.samples_of(5)), (0, 1, 20..25));
        // Groups of 4, 5, 6, 7 and 8 samples; windows of 9 samples or two groups.
        let epoch = EpochWindows::new(0, (4..9).collect(), u64::from, WindowLimits { samples: 9, groups: 2 });
        let windows: Vec<_> =
            epoch.windows.iter().map(|window| (window.first_sample, window.samples, window.groups.clone())).collect();
        assert_eq!(windows, [(0, 9, 0..2), (9, 13, 2..4), (22, 8, 4..5)]);
        assert_eq!(epoch.locate(0..9).collect::<Vec<_>>(), [(0, 0..9)]);
        assert_eq!(epoch.locate(8..25).collect::<Vec<_>>(), [(0, 8..9), (1, 0..13), (2, 0..3)]);
        assert_eq!(epoch.locate(30..31).count(), 0);
    }

    #[test]
    fn the_cache_keeps_two_epochs() {
        let cache = EpochCache::default();
        let is_made_anew = |epoch| {
            let mut made = false;
            cache.get_or_make(epoch, || {
                made = true;
                EpochWindows::new(epoch, vec![0], u64::from, WindowLimits { samples: 1, groups: 1 })
            });
            made
        };
        let made = [0, 0, 1, 0, 2, 1, 2, 0].map(is_made_anew);
        assert_eq!(made, [true, false, true, false, true, false, false, true]);
    }
}
