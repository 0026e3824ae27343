//! Which samples of a mapped file stand in which batch: a function of seed, data and epoch alone, so that threads need not
//! agree on anything and a resumed run meets the same batches.
//!
//! An epoch shuffles the file's blocks of records, cuts their row into windows of about a million samples and shuffles
//! the samples of each window; all at once where there are no more. So a file of any size is read block by block, and
//! what is kept of it does not grow.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::eligible::Eligible;
use super::schedule::{Epoch, Epochs, Schedule, Span, fisher_yates};
use super::shuffle::bucket_shuffle;
use crate::units::Seed;

/// Records of a block.
const BLOCK: usize = 4_096;
/// Samples after which a window ends with the block.
const WINDOW_SAMPLES: u64 = 1 << 20;
/// Windows kept beside those that workers hold: the one before, which a slow worker may still be in, and the one after.
const KEPT: usize = 3;

/// What a mapped file is told of the records to come and those that are done with.
pub trait Paging {
    fn fetch(&self, records: Range<usize>);
    fn release(&self, records: Range<usize>);
}

/// The batches of a stream, numbered from 0 over all epochs.
pub struct Order {
    eligible: Eligible,
    /// Of each block.
    samples: Vec<u32>,
    schedule: Schedule,
    plans: Epochs,
    live: Mutex<Vec<Arc<Window>>>,
    window_samples: u64,
}

/// Blocks whose samples are shuffled together.
struct Window {
    /// Epoch, and place in it.
    key: (u32, usize),
    /// Ascending.
    blocks: Vec<u32>,
    /// Record indices in the stream's order.
    samples: OnceLock<Vec<u32>>,
}

/// One batch's place in the stream.
pub struct Slice {
    pub epoch: u32,
    parts: Vec<(Arc<Window>, Range<usize>)>,
}

impl Slice {
    #[must_use]
    pub fn samples(&self) -> usize {
        self.parts.iter().map(|(_, places)| places.len()).sum()
    }

    /// Visits the record indices at some of the batch's places, in its order.
    pub fn each(&self, places: Range<usize>, mut visit: impl FnMut(u32)) {
        let mut before = 0;
        for (window, part) in &self.parts {
            let inside = |place: usize| part.start + place.saturating_sub(before).min(part.len());
            let samples = window.samples.get().map_or(&[][..], Vec::as_slice);
            samples[inside(places.start)..inside(places.end)].iter().for_each(|index| visit(*index));
            before += part.len();
        }
    }
}

impl Order {
    /// `limit`: samples an epoch at most.
    #[must_use]
    pub fn new(
        eligible: Eligible,
        seed: Seed,
        shuffle: bool,
        limit: Option<u64>,
        batch_size: usize,
        epochs: u32,
    ) -> Order {
        let epoch_samples = limit.map_or(eligible.count(), |limit| eligible.count().min(limit));
        let batch_size = batch_size.max(1) as u64;
        Order {
            samples: eligible.blocks(BLOCK).collect(),
            schedule: Schedule { seed, shuffle, epoch_samples, batch_size, epochs },
            plans: Epochs::default(),
            live: Mutex::new(Vec::new()),
            window_samples: WINDOW_SAMPLES,
            eligible,
        }
    }

    #[must_use]
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The batch numbered `batch`.
    #[must_use]
    pub fn slice(&self, batch: u64, paging: &impl Paging) -> Slice {
        let (epoch, samples) = (self.plan(self.schedule.epoch(batch)), self.schedule.places(batch));
        let end = samples.end;
        let mut parts = Vec::with_capacity(2);
        let mut at = 0;
        for (number, places) in epoch.parts(samples) {
            let (window, _) = self.window(&epoch, number, paging);
            self.mix(&window);
            parts.push((window, places));
            at = number;
        }
        self.look_ahead(&epoch, at, end, paging);
        Slice { epoch: epoch.number, parts }
    }

    /// Where half of a window was asked for, the one after it is made ready by one worker while others go on.
    fn look_ahead(&self, epoch: &Arc<Epoch>, at: usize, end: u64, paging: &impl Paging) {
        let half = |span: &Span| span.first + span.samples / 2 <= end;
        let (epoch, number) = match epoch.spans.get(at) {
            Some(span) if !half(span) => return,
            Some(_) if epoch.spans.get(at + 1).is_some_and(|next| next.first < self.schedule.epoch_samples) => {
                (Arc::clone(epoch), at + 1)
            }
            _ if self.schedule.epochs != 0 && epoch.number + 1 >= self.schedule.epochs => return,
            _ => (self.plan(epoch.number + 1), 0),
        };
        if number < epoch.spans.len()
            && let (window, true) = self.window(&epoch, number, paging)
        {
            self.mix(&window);
        }
    }

    fn plan(&self, number: u32) -> Arc<Epoch> {
        self.plans.get(number, || {
            let blocks: Vec<u32> =
                (0..).zip(&self.samples).filter(|(_, samples)| **samples > 0).map(|(block, _)| block).collect();
            let blocks = if self.schedule.shuffle { fisher_yates(&blocks, self.schedule.seed, number) } else { blocks };
            Epoch::of(number, blocks, |block| self.samples[block as usize].into(), (self.window_samples, usize::MAX))
        })
    }

    /// A window, its samples perhaps not there yet, and whether nobody had it before.
    fn window(&self, epoch: &Epoch, number: usize, paging: &impl Paging) -> (Arc<Window>, bool) {
        let key = (epoch.number, number);
        let mut live = lock(&self.live);
        if let Some(known) = live.iter().find(|window| window.key == key) {
            return (Arc::clone(known), false);
        }
        let mut blocks = epoch.items[epoch.spans[number].items.clone()].to_vec();
        // What is read together should lie together.
        blocks.sort_unstable();
        each_run(&blocks, |records| paging.fetch(records));
        let window = Arc::new(Window { key, blocks, samples: OnceLock::new() });
        live.push(Arc::clone(&window));
        if live.len() > KEPT
            && let Some(oldest) = (0..live.len()).min_by_key(|at| live[*at].key)
        {
            let forgotten = live.swap_remove(oldest);
            each_run(&forgotten.blocks, |records| paging.release(records));
        }
        (window, true)
    }

    fn mix(&self, window: &Window) {
        window.samples.get_or_init(|| {
            let samples: Vec<u32> = window
                .blocks
                .iter()
                .flat_map(|&block| self.eligible.within(block as usize * BLOCK..(block as usize + 1) * BLOCK))
                .collect();
            let (epoch, number) = window.key;
            match self.schedule.shuffle {
                true => bucket_shuffle(&samples, self.schedule.seed.draws(&format!("samples {epoch} {number}"))),
                false => samples,
            }
        });
    }
}

/// Visits the records of ascending blocks, those that follow each other at once.
fn each_run(blocks: &[u32], mut visit: impl FnMut(Range<usize>)) {
    for run in blocks.chunk_by(|a, b| a + 1 == *b) {
        let first = run[0] as usize;
        visit(first * BLOCK..(first + run.len()) * BLOCK);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Paging for Mutex<Vec<(bool, Range<usize>)>> {
        fn fetch(&self, records: Range<usize>) {
            lock(self).push((true, records));
        }

        fn release(&self, records: Range<usize>) {
            lock(self).push((false, records));
        }
    }

    /// Every third of so many records.
    fn eligible(records: u32) -> Eligible {
        let mut bits = vec![0; records.div_ceil(64) as usize];
        (0..records).step_by(3).for_each(|at| bits[at as usize / 64] |= 1 << (at % 64));
        Eligible::new(bits)
    }

    fn order(limit: Option<u64>, shuffle: bool) -> Order {
        Order::new(eligible(3_000), Seed(5), shuffle, limit, 64, 2)
    }

    /// In windows of three or four blocks.
    fn large(batch_size: usize) -> Order {
        let order = Order::new(eligible(100_000), Seed(5), true, None, batch_size, 0);
        Order { window_samples: 4_000, ..order }
    }

    fn batch(order: &Order, number: u64) -> Vec<u32> {
        let slice = order.slice(number, &Mutex::new(Vec::new()));
        let mut all = Vec::new();
        slice.each(0..slice.samples(), |index| all.push(index));
        let mut parts = Vec::new();
        (0..slice.samples())
            .step_by(7)
            .for_each(|at| slice.each(at..(at + 7).min(slice.samples()), |index| parts.push(index)));
        assert_eq!(all, parts);
        all
    }

    fn batches(order: &Order, numbers: Range<u64>) -> Vec<u32> {
        numbers.flat_map(|number| batch(order, number)).collect()
    }

    #[test]
    fn an_epoch_holds_every_sample_once() {
        let check = |order: &Order, samples: u32| {
            let per_epoch = order.schedule().batches_per_epoch();
            let epochs = [0, 1].map(|epoch| batches(order, epoch * per_epoch..(epoch + 1) * per_epoch));
            assert_ne!(epochs[0], epochs[1]);
            for mut epoch in epochs {
                let followed = epoch.windows(2).filter(|pair| pair[0] + 3 == pair[1]).count();
                assert!(followed < epoch.len() / 50, "{followed} of {}", epoch.len());
                epoch.sort_unstable();
                assert_eq!(epoch, (0..samples).map(|i| i * 3).collect::<Vec<u32>>());
            }
        };
        check(&order(None, true), 1_000);
        check(&large(1_000), 33_334);
        let order = order(None, true);
        assert_eq!((order.schedule().batches_per_epoch(), order.schedule().batches()), (16, Some(32)));
        let slices = [15, 16].map(|number| order.slice(number, &Mutex::new(Vec::new())));
        assert_eq!(slices.each_ref().map(|slice| (slice.samples(), slice.epoch)), [(40, 0), (64, 1)]);
    }

    #[test]
    fn batches_may_be_asked_for_in_any_order() {
        let expected: Vec<Vec<u32>> = (0..80).map(|number| batch(&large(1_000), number)).collect();
        let backwards = large(1_000);
        for number in (0..80).rev() {
            assert_eq!(batch(&backwards, number), expected[number as usize], "{number}");
        }
    }

    #[test]
    fn a_limited_epoch_is_the_start_of_the_whole_one() {
        let (whole, limited) = (order(None, true), order(Some(100), true));
        assert_eq!((limited.schedule().epoch_samples, limited.schedule().batches_per_epoch()), (100, 2));
        assert_eq!(batch(&limited, 0), batch(&whole, 0));
        assert_eq!(batch(&limited, 1), batch(&whole, 1)[..36]);
        assert_ne!(batch(&limited, 2), batch(&limited, 0));
    }

    #[test]
    fn unshuffled_is_file_order() {
        let order = order(Some(70), false);
        assert_eq!(batch(&order, 1), [192, 195, 198, 201, 204, 207]);
        assert_eq!(batch(&order, 3), batch(&order, 1));
        let mut unshuffled = large(1_000);
        unshuffled.schedule.shuffle = false;
        assert!(batches(&unshuffled, 0..34).is_sorted());
    }

    #[test]
    fn what_is_done_with_is_released() {
        let (order, told) = (large(1_000), Mutex::new(Vec::new()));
        (0..34).for_each(|number| drop(order.slice(number, &told)));
        let told = lock(&told).clone();
        let records =
            |fetched| told.iter().filter(|(kind, _)| *kind == fetched).map(|(_, range)| range.len()).sum::<usize>();
        let kept: usize = lock(&order.live).iter().map(|window| window.blocks.len() * BLOCK).sum();
        // Of the second epoch, the window looked ahead for.
        assert!(records(true) >= 25 * BLOCK && records(true) < 31 * BLOCK, "{}", records(true));
        assert_eq!(records(true) - records(false), kept);
        assert!(kept <= 12 * BLOCK, "{kept}");
    }
}
