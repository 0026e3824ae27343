//! Which samples stand in which batch: a function of seed, data and epoch alone, so that threads need not agree on
//! anything and a resumed run meets the same batches.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rand::RngExt;

use crate::units::Seed;

/// The batches of a stream, numbered from 0 over all epochs.
pub struct Order {
    /// Record indices, ascending.
    eligible: Arc<Vec<u32>>,
    seed: Seed,
    shuffle: bool,
    epoch_samples: usize,
    batch_size: usize,
    /// 0 = without end.
    epochs: u32,
    /// The newest epoch's permutation.
    newest: Mutex<Option<(u32, Arc<Vec<u32>>)>>,
}

/// One batch's place in the stream.
#[derive(Clone, Debug)]
pub struct Slice {
    pub epoch: u32,
    order: Arc<Vec<u32>>,
    range: Range<usize>,
}

impl Slice {
    /// Record indices, in the batch's order.
    #[must_use]
    pub fn records(&self) -> &[u32] {
        self.order.get(self.range.clone()).unwrap_or(&[])
    }
}

impl Order {
    /// `limit`: samples an epoch at most.
    #[must_use]
    pub fn new(
        eligible: Vec<u32>,
        seed: Seed,
        shuffle: bool,
        limit: Option<u64>,
        batch_size: usize,
        epochs: u32,
    ) -> Order {
        let epoch_samples = limit.map_or(eligible.len(), |limit| eligible.len().min(limit as usize));
        let eligible = Arc::new(eligible);
        Order { eligible, seed, shuffle, epoch_samples, batch_size, epochs, newest: Mutex::new(None) }
    }

    #[must_use]
    pub fn samples_per_epoch(&self) -> u64 {
        self.epoch_samples as u64
    }

    #[must_use]
    pub fn batches_per_epoch(&self) -> u64 {
        self.epoch_samples.div_ceil(self.batch_size) as u64
    }

    /// Batches of all epochs; none = without end.
    #[must_use]
    pub fn batches(&self) -> Option<u64> {
        (self.epochs != 0).then(|| self.batches_per_epoch() * u64::from(self.epochs))
    }

    /// The batch numbered `batch`.
    #[must_use]
    pub fn slice(&self, batch: u64) -> Slice {
        let per_epoch = self.batches_per_epoch().max(1);
        let epoch = (batch / per_epoch) as u32;
        let start = (batch % per_epoch) as usize * self.batch_size;
        let end = (start + self.batch_size).min(self.epoch_samples);
        Slice { epoch, order: self.permutation(epoch), range: start..end }
    }

    /// The first `epoch_samples` of the epoch's shuffle. Batches are asked for in ascending order, all but a few of them
    /// from the newest epoch: only that one is kept.
    fn permutation(&self, epoch: u32) -> Arc<Vec<u32>> {
        if !self.shuffle {
            return Arc::clone(&self.eligible);
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, order)) = newest.as_ref()
            && *known == epoch
        {
            return Arc::clone(order);
        }
        let order = Arc::new(shuffled(&self.eligible, self.epoch_samples, self.seed, epoch));
        if newest.as_ref().is_none_or(|(known, _)| *known < epoch) {
            *newest = Some((epoch, Arc::clone(&order)));
        }
        order
    }
}

/// Fisher–Yates from the front, stopped after `count` places.
pub(super) fn shuffled(items: &[u32], count: usize, seed: Seed, epoch: u32) -> Vec<u32> {
    let mut rng = seed.stream("shuffle", u64::from(epoch));
    let mut order = items.to_vec();
    for place in 0..count.min(order.len()) {
        let other = rng.random_range(place as u32..order.len() as u32) as usize;
        order.swap(place, other);
    }
    order.truncate(count);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(limit: Option<u64>, shuffle: bool) -> Order {
        Order::new((0..1000).map(|i| i * 3).collect(), Seed(5), shuffle, limit, 64, 2)
    }

    #[test]
    fn an_epoch_holds_every_sample_once() {
        let order = order(None, true);
        assert_eq!((order.batches_per_epoch(), order.batches()), (16, Some(32)));
        let epoch =
            |first: u64| -> Vec<u32> { (first..first + 16).flat_map(|b| order.slice(b).records().to_vec()).collect() };
        let (first, second) = (epoch(0), epoch(16));
        assert_ne!(first, second);
        for mut epoch in [first, second] {
            assert!(!epoch.is_sorted());
            epoch.sort_unstable();
            assert_eq!(epoch, (0..1000).map(|i| i * 3).collect::<Vec<u32>>());
        }
        assert_eq!((order.slice(15).records().len(), order.slice(15).epoch, order.slice(16).epoch), (40, 0, 1));
    }

    #[test]
    fn batches_may_be_asked_for_in_any_order() {
        let (forwards, backwards) = (order(None, true), order(None, true));
        let mut expected: Vec<_> = (0..32).map(|b| forwards.slice(b).records().to_vec()).collect();
        expected.reverse();
        assert_eq!((0..32).rev().map(|b| backwards.slice(b).records().to_vec()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_limited_epoch_is_the_start_of_the_whole_one() {
        let (whole, limited) = (order(None, true), order(Some(100), true));
        assert_eq!((limited.samples_per_epoch(), limited.batches_per_epoch()), (100, 2));
        assert_eq!(limited.slice(0).records(), whole.slice(0).records());
        assert_eq!(limited.slice(1).records(), &whole.slice(1).records()[..36]);
        assert_ne!(limited.slice(2).records(), limited.slice(0).records());
    }

    #[test]
    fn unshuffled_is_file_order() {
        let order = order(Some(70), false);
        assert_eq!(order.slice(1).records(), [192, 195, 198, 201, 204, 207]);
        assert_eq!(order.slice(3).records(), order.slice(1).records());
    }
}
