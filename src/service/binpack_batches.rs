//! A binpack served without building a data set: its pieces are shuffled, cut into windows of some hundred thousand
//! samples, and each window's samples are shuffled once more. What stands where depends on seed and data alone.
//!
//! A window is decoded by whichever workers come to need it, piece by piece, and forgotten when later ones are in use:
//! memory does not grow with the file.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::schedule::{Epoch, Epochs, Schedule, fisher_yates};
use super::shuffle::bucket_shuffle;
use super::{Request, ServiceError};
use crate::data::formats::binpack::Pieces;
use crate::data::{Record, Split, SplitRule};

/// Samples after which a window ends with the piece.
const WINDOW_SAMPLES: u64 = 1 << 18;
/// Windows kept beside those that workers hold.
const KEPT: usize = 2;
/// A sample's number within its piece takes this many bits of its location, the piece's number the others.
const SAMPLE_BITS: u32 = 18;

/// The batches of a stream over a binpack.
pub(super) struct Windows {
    pieces: Pieces,
    /// Of the split, in the file's order.
    eligible: Vec<u32>,
    schedule: Schedule,
    plans: Epochs,
    live: Mutex<Vec<Arc<Window>>>,
    /// Memory of forgotten windows, for the pieces to come.
    spare: Mutex<Vec<Vec<Record>>>,
    window_samples: u64,
}

/// Samples of a window that stand together in a batch.
pub(super) struct Part {
    window: Arc<Window>,
    places: Range<usize>,
}

impl Part {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Visits the samples at some of the part's places.
    #[inline]
    pub(super) fn each(&self, places: Range<usize>, mut visit: impl FnMut(&Record)) {
        let (Some(order), start) = (self.window.order.get(), self.places.start) else { return };
        let decoded = &self.window.decoded;
        for location in &order[start + places.start..start + places.end] {
            let (piece, sample) = (location >> SAMPLE_BITS, location & ((1 << SAMPLE_BITS) - 1));
            visit(&decoded[piece as usize].get().expect("a ready window is decoded")[sample as usize]);
        }
    }
}

impl Windows {
    /// # Errors
    /// When the split has no samples.
    pub(super) fn new(request: &Request, pieces: Pieces) -> Result<Windows, ServiceError> {
        let rule = SplitRule::new(request.split_seed, request.validation);
        let all = pieces.pieces();
        let eligible: Vec<u32> = (0..all.len() as u32)
            .filter(|&piece| all[piece as usize].usable > 0 && rule.contains(piece, request.split))
            .collect();
        let samples: u64 = eligible.iter().map(|&piece| u64::from(all[piece as usize].usable)).sum();
        if samples == 0 && request.split != Split::All {
            return Err(ServiceError::Request(format!(
                "none of the {} pieces of {} falls into the split asked for (validation share {}); change --validation, \
                 ask for --split all, or for --read built, which splits game by game",
                all.len(),
                pieces.path().display(),
                request.validation
            )));
        }
        let largest = all.iter().map(|piece| piece.samples).max().unwrap_or(0);
        if largest >= 1 << SAMPLE_BITS {
            return Err(ServiceError::Request(format!(
                "{} has {largest} samples of one game in a row, more than a service can hold at once; ask for --read \
                 built",
                pieces.path().display()
            )));
        }
        Ok(Windows {
            eligible,
            schedule: Schedule {
                seed: request.seed,
                shuffle: request.shuffle,
                epoch_samples: request.epoch_samples.map_or(samples, |limit| samples.min(limit)),
                batch_size: request.batch_size.max(1) as u64,
                epochs: request.epochs,
            },
            plans: Epochs::default(),
            live: Mutex::new(Vec::new()),
            spare: Mutex::new(Vec::new()),
            window_samples: WINDOW_SAMPLES,
            pieces,
        })
    }

    pub(super) const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Samples of the split that the method cannot use.
    pub(super) fn unusable(&self) -> usize {
        let pieces = self.eligible.iter().map(|&piece| self.pieces.pieces()[piece as usize]);
        pieces.map(|piece| (piece.samples - piece.usable) as usize).sum()
    }

    /// Samples from all over the split, `count` or somewhat more.
    pub(super) fn some(&self, count: usize) -> Result<Vec<Record>, ServiceError> {
        /// Pieces looked into.
        const LOOKS: usize = 16;
        let (mut bytes, mut decoded, mut some) = (Vec::new(), Vec::new(), Vec::new());
        for &piece in self.eligible.iter().step_by(self.eligible.len().div_ceil(LOOKS).max(1)) {
            self.pieces.decode(piece as usize, &mut bytes, &mut decoded)?;
            some.extend(decoded.iter().step_by((decoded.len() * LOOKS / count).max(1)));
        }
        Ok(some)
    }

    /// The samples of a batch; none when `stop` said so on the way.
    pub(super) fn batch(&self, batch: u64, stop: &dyn Fn() -> bool) -> Result<Option<Vec<Part>>, ServiceError> {
        let epoch = self.plan(self.schedule.epoch(batch));
        let mut parts = Vec::with_capacity(2);
        for (number, places) in epoch.parts(self.schedule.places(batch)) {
            let pieces = epoch.spans[number].items.clone();
            let window = self.window((epoch.number, number), pieces.len());
            if !window.ready(self, &epoch.items[pieces], stop)? {
                return Ok(None);
            }
            parts.push(Part { window, places });
        }
        Ok(Some(parts))
    }

    fn plan(&self, number: u32) -> Arc<Epoch> {
        self.plans.get(number, || {
            let pieces = match self.schedule.shuffle {
                true => fisher_yates(&self.eligible, self.schedule.seed, number),
                false => self.eligible.clone(),
            };
            let usable = |piece: u32| self.pieces.pieces()[piece as usize].usable.into();
            Epoch::of(number, pieces, usable, (self.window_samples, 1 << (u32::BITS - SAMPLE_BITS)))
        })
    }

    fn window(&self, key: (u32, usize), pieces: usize) -> Arc<Window> {
        let mut live = lock(&self.live);
        if let Some(window) = live.iter().find(|window| window.key == key) {
            return Arc::clone(window);
        }
        let window = Arc::new(Window::new(key, pieces));
        live.push(Arc::clone(&window));
        live.sort_by_key(|window| window.key);
        if live.len() > KEPT
            && let Ok(forgotten) = Arc::try_unwrap(live.remove(0))
        {
            lock(&self.spare).extend(forgotten.decoded.into_iter().filter_map(OnceLock::into_inner));
        }
        window
    }
}

/// Pieces being decoded, then their samples in the stream's order.
struct Window {
    /// Epoch, and place in it.
    key: (u32, usize),
    decoded: Vec<OnceLock<Vec<Record>>>,
    /// Locations: piece, then sample.
    order: OnceLock<Vec<u32>>,
    /// The next task to be taken: 0 the order, the others pieces.
    next: AtomicUsize,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    done: usize,
    failed: bool,
}

impl Window {
    fn new(key: (u32, usize), pieces: usize) -> Window {
        Window {
            key,
            decoded: (0..pieces).map(|_| OnceLock::new()).collect(),
            order: OnceLock::new(),
            next: AtomicUsize::new(0),
            progress: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Helps until all is there; false when `stop` said so on the way, or another worker failed.
    fn ready(&self, windows: &Windows, pieces: &[u32], stop: &dyn Fn() -> bool) -> Result<bool, ServiceError> {
        let tasks = pieces.len() + 1;
        if lock(&self.progress).done == tasks {
            return Ok(true);
        }
        let mut bytes = Vec::new();
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks || stop() {
                break;
            }
            let outcome = self.work(task, windows, pieces, &mut bytes);
            let mut progress = lock(&self.progress);
            progress.done += 1;
            progress.failed |= outcome.is_err();
            drop(progress);
            self.changed.notify_all();
            outcome?;
        }
        let mut progress = lock(&self.progress);
        while progress.done < tasks && !progress.failed && !stop() {
            let waited = self.changed.wait_timeout(progress, Duration::from_millis(100));
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(progress.done == tasks && !progress.failed)
    }

    fn work(&self, task: usize, windows: &Windows, pieces: &[u32], bytes: &mut Vec<u8>) -> Result<(), ServiceError> {
        let Some(at) = task.checked_sub(1) else {
            let usable = pieces.iter().map(|&piece| windows.pieces.pieces()[piece as usize].usable);
            let locations = (0..).zip(usable).flat_map(|(piece, usable)| {
                let first: u32 = piece << SAMPLE_BITS;
                (0..usable).map(move |sample| first | sample)
            });
            let order: Vec<u32> = locations.collect();
            let (epoch, number) = self.key;
            let order = match windows.schedule.shuffle {
                true => bucket_shuffle(&order, windows.schedule.seed.draws(&format!("window {epoch} {number}"))),
                false => order,
            };
            // Task 0 is done once.
            let _ = self.order.set(order);
            return Ok(());
        };
        let mut records = lock(&windows.spare).pop().unwrap_or_default();
        windows.pieces.decode(pieces[at] as usize, bytes, &mut records)?;
        // As is every other.
        let _ = self.decoded[at].set(records);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::formats::binpack::{Usable, random_games};
    use crate::data::{Method, Needs};
    use crate::units::Seed;

    /// Four windows of two pieces or so each, in batches of 1,000.
    fn windows(change: impl FnOnce(&mut Request)) -> (Windows, Vec<Record>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        let records = random_games(&path, 300);
        let mut request =
            Request { batch_size: 1_000, seed: Seed(5), epochs: 2, ..Request::new("", &path, Method::Eval) };
        change(&mut request);
        let pieces = Pieces::scan(&path, Usable::Eval(Needs::Any), 2, &|_, _| {}).expect("a good file");
        let windows = Windows { window_samples: 6_000, ..Windows::new(&request, pieces).expect("samples") };
        (windows, records)
    }

    fn batch(windows: &Windows, number: u64) -> Vec<Record> {
        let parts = windows.batch(number, &|| false).expect("a good file").expect("nobody says stop");
        let mut all = Vec::new();
        parts.iter().for_each(|part| part.each(0..part.len(), |record| all.push(*record)));
        all
    }

    #[test]
    fn an_epoch_holds_every_sample_once() {
        let (windows, records) = windows(|_| {});
        assert_eq!(windows.schedule().epoch_samples, records.len() as u64);
        assert!(windows.plan(0).spans.len() > 3);
        let epochs = [0, 1].map(|epoch| {
            let per_epoch = windows.schedule().batches_per_epoch();
            let batches: Vec<Vec<Record>> =
                (epoch * per_epoch..(epoch + 1) * per_epoch).map(|number| batch(&windows, number)).collect();
            assert!(batches[..batches.len() - 1].iter().all(|batch| batch.len() == 1_000));
            batches.concat()
        });
        assert!(epochs[0] != epochs[1]);
        for mut epoch in epochs {
            let moved = epoch.windows(2).filter(|pair| pair[0].game() + 1 != pair[1].game()).count();
            assert!(moved * 10 > epoch.len() * 9, "{moved} of {}", epoch.len());
            epoch.sort_by_key(Record::game);
            assert!(epoch.iter().map(Record::game).eq(0..records.len() as u32));
            assert!(epoch.iter().zip(&records).all(|(found, known)| found.with_game(0) == *known));
        }
    }

    #[test]
    fn batches_are_the_same_in_any_order_and_by_many_threads() {
        let (expected, _) = windows(|_| {});
        let count = expected.schedule().batches().expect("two epochs");
        let expected: Vec<Vec<Record>> = (0..count).map(|number| batch(&expected, number)).collect();
        let (backwards, _) = windows(|_| {});
        for number in (0..count).rev() {
            assert!(batch(&backwards, number) == expected[number as usize], "{number}");
        }
        let (shared, _) = windows(|_| {});
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(known) = expected.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let number = expected.iter().position(|other| std::ptr::eq(other, known)).expect("it is there");
                        assert!(batch(&shared, number as u64) == *known, "{number}");
                    }
                });
            }
        });
    }

    #[test]
    fn requests_are_followed() {
        let (plain, records) = windows(|request| request.shuffle = false);
        assert!(batch(&plain, 0).iter().map(|record| record.with_game(0)).eq(records[..1_000].iter().copied()));
        let (other, _) = windows(|request| request.seed = Seed(6));
        let (usual, _) = windows(|_| {});
        assert!(batch(&other, 0) != batch(&usual, 0));
        let (limited, _) = windows(|request| request.epoch_samples = Some(1_500));
        assert_eq!((limited.schedule().batches(), batch(&limited, 1).len()), (Some(4), 500));
        assert!(batch(&limited, 0) == batch(&usual, 0));
        let part =
            |split| windows(|request| (request.split, request.validation) = (split, 0.4)).0.schedule().epoch_samples;
        let [train, validation] = [Split::Train, Split::Validation].map(part);
        assert!(train > 0 && validation > 0);
        assert_eq!(train + validation, records.len() as u64);
    }

    #[test]
    fn whoever_says_stop_is_not_kept_waiting() {
        let (windows, _) = windows(|_| {});
        assert!(windows.batch(0, &|| true).expect("no failure").is_none());
    }
}
