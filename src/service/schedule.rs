//! What all streams share: batches numbered over epochs, and an epoch's items (blocks of records, pieces of a binpack)
//! shuffled, put in a row and cut into windows.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rand::RngExt;

use crate::units::Seed;

/// Which batches there are, and what of an epoch each of them is.
#[derive(Copy, Clone, Debug)]
pub struct Schedule {
    pub seed: Seed,
    pub shuffle: bool,
    pub epoch_samples: u64,
    pub batch_size: u64,
    /// 0 = without end.
    pub epochs: u32,
}

impl Schedule {
    #[must_use]
    pub const fn batches_per_epoch(&self) -> u64 {
        self.epoch_samples.div_ceil(self.batch_size)
    }

    /// Batches of all epochs; none = without end.
    #[must_use]
    pub fn batches(&self) -> Option<u64> {
        (self.epochs != 0).then(|| self.batches_per_epoch() * u64::from(self.epochs))
    }

    /// The epoch of a batch.
    #[must_use]
    pub fn epoch(&self, batch: u64) -> u32 {
        (batch / self.batches_per_epoch().max(1)) as u32
    }

    /// The numbers in its epoch of a batch's samples.
    #[must_use]
    pub fn places(&self, batch: u64) -> Range<u64> {
        let start = batch % self.batches_per_epoch().max(1) * self.batch_size;
        start..(start + self.batch_size).min(self.epoch_samples)
    }
}

/// Which items make which window in one epoch.
pub struct Epoch {
    pub number: u32,
    /// In the epoch's order.
    pub items: Vec<u32>,
    pub spans: Vec<Span>,
}

/// A window's place in its epoch.
pub struct Span {
    /// Number of its first sample.
    pub first: u64,
    pub samples: u64,
    /// Of [`Epoch::items`].
    pub items: Range<usize>,
}

impl Epoch {
    /// Items in their order; a window ends with the item that brings it to `most_samples` samples or `most_items` items.
    pub fn of(
        number: u32,
        items: Vec<u32>,
        samples_of: impl Fn(u32) -> u64,
        (most_samples, most_items): (u64, usize),
    ) -> Epoch {
        let mut spans: Vec<Span> = Vec::new();
        let mut first = 0;
        for (at, &item) in items.iter().enumerate() {
            let samples = samples_of(item);
            let room = |span: &&mut Span| span.samples < most_samples && span.items.len() < most_items;
            match spans.last_mut().filter(room) {
                Some(span) => {
                    span.samples += samples;
                    span.items.end = at + 1;
                }
                None => spans.push(Span { first, samples, items: at..at + 1 }),
            }
            first += samples;
        }
        Epoch { number, items, spans }
    }

    /// The windows that some samples of the epoch lie in, and their places there.
    pub fn parts(&self, samples: Range<u64>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let begin = self.spans.partition_point(|span| span.first + span.samples <= samples.start);
        let asked = self.spans.iter().enumerate().skip(begin).take_while(move |(_, span)| span.first < samples.end);
        let Range { start, end } = samples;
        asked.map(move |(number, span)| {
            let place = |at: u64| (at - span.first) as usize;
            (number, place(start.max(span.first))..place(end.min(span.first + span.samples)))
        })
    }
}

/// The epochs in use: that of the batches being made, and the one they come to.
#[derive(Default)]
pub struct Epochs(Mutex<Vec<Arc<Epoch>>>);

impl Epochs {
    /// The epoch of that number, made where nobody has it.
    pub fn get(&self, number: u32, make: impl FnOnce() -> Epoch) -> Arc<Epoch> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(epoch) = known.iter().find(|epoch| epoch.number == number) {
            return Arc::clone(epoch);
        }
        let epoch = Arc::new(make());
        known.push(Arc::clone(&epoch));
        if known.len() > 2
            && let Some(oldest) = (0..known.len()).min_by_key(|at| known[*at].number)
        {
            known.swap_remove(oldest);
        }
        epoch
    }
}

/// Items in an order drawn from seed and epoch (Fisher–Yates from the front).
#[must_use]
pub fn fisher_yates(items: &[u32], seed: Seed, epoch: u32) -> Vec<u32> {
    let mut rng = seed.stream("shuffle", u64::from(epoch));
    let mut order = items.to_vec();
    for place in 0..order.len() {
        let other = rng.random_range(place as u32..order.len() as u32) as usize;
        order.swap(place, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_windows_by_hand() {
        let schedule = Schedule { seed: Seed(1), shuffle: true, epoch_samples: 25, batch_size: 10, epochs: 2 };
        assert_eq!((schedule.batches_per_epoch(), schedule.batches()), (3, Some(6)));
        assert_eq!((schedule.epoch(2), schedule.epoch(3), schedule.places(5)), (0, 1, 20..25));
        // Items of 4, 5, 6, 7 and 8 samples; windows of 9 samples or two items.
        let epoch = Epoch::of(0, (4..9).collect(), u64::from, (9, 2));
        let spans: Vec<_> = epoch.spans.iter().map(|span| (span.first, span.samples, span.items.clone())).collect();
        assert_eq!(spans, [(0, 9, 0..2), (9, 13, 2..4), (22, 8, 4..5)]);
        assert_eq!(epoch.parts(0..9).collect::<Vec<_>>(), [(0, 0..9)]);
        assert_eq!(epoch.parts(8..25).collect::<Vec<_>>(), [(0, 8..9), (1, 0..13), (2, 0..3)]);
        assert_eq!(epoch.parts(30..31).count(), 0);
    }

    #[test]
    fn two_epochs_are_kept() {
        let epochs = Epochs::default();
        let made = |number| {
            let mut made = false;
            epochs.get(number, || {
                made = true;
                Epoch::of(number, vec![0], u64::from, (1, 1))
            });
            made
        };
        assert_eq!([0, 0, 1, 0, 2, 1, 2, 0].map(made), [true, false, true, false, true, false, false, true]);
    }

    #[test]
    fn every_item_is_drawn_once() {
        let items: Vec<u32> = (100..200).collect();
        let (first, second) = (fisher_yates(&items, Seed(1), 0), fisher_yates(&items, Seed(1), 1));
        assert!(first != second && first != items);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, items);
    }
}
