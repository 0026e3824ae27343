//! Tracks who owns each slot: a worker claims it, the announcer hands it to the consumer, the consumer gives it back.
//! Batches are claimed and announced in ascending order. A batch is claimed together with a slot, so the oldest one
//! always has a slot and the stream cannot deadlock.
//!
//! The mutex orders the accesses to a slot's memory, too: who gets a slot takes the lock after the one who hands it on
//! has released it, and thus sees the slot as that one left it (`model`).

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::sync::{Condvar, Mutex, MutexGuard, lock};
use super::{MAX_SLOTS, ServiceError, Shard, SlotHeader};
use crate::units::SortedMap;

/// The exclusive right to fill one slot with one batch. Only [`StreamControl::claim`] creates claims.
#[derive(Debug)]
pub(super) struct SlotClaim {
    batch: u64,
    slot: u8,
}

impl SlotClaim {
    pub(super) const fn batch(&self) -> u64 {
        self.batch
    }

    pub(super) const fn slot(&self) -> usize {
        self.slot as usize
    }
}

/// How a stream ended.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// Every batch was delivered.
    Finished,
    /// The consumer closed its end, or wants no more batches.
    Stopped,
    Failed(ServiceError),
}

/// The announcer's next task.
pub(super) enum NextSlot {
    /// This slot holds the next batch.
    Batch(u8, SlotHeader),
    /// Every batch was announced.
    Complete,
    /// The stream has ended.
    Ended,
}

#[derive(Default)]
struct StreamState {
    /// The slot given back last is claimed first: its lines are the likeliest to be in the CPU's cache.
    free: Vec<u8>,
    /// By slot: whether it was announced and not given back.
    held: Vec<bool>,
    /// Filled slots by batch, waiting for earlier batches.
    filled: SortedMap<u64, (u8, SlotHeader)>,
    next_claim: u64,
    next_announced: u64,
    /// From one batch of this shard to the next.
    batch_step: u64,
    end_batch: Option<u64>,
    given_back: bool,
    end: Option<StreamEnd>,
}

impl StreamState {
    /// The next announcement, if there is one yet.
    fn announce(&mut self) -> Option<NextSlot> {
        if self.end.is_some() {
            return Some(NextSlot::Ended);
        }
        let next = self.next_announced;
        if self.end_batch.is_some_and(|end| next >= end) {
            return Some(NextSlot::Complete);
        }
        let (slot, header) = self.filled.remove(&next)?;
        self.next_announced += self.batch_step;
        self.held[usize::from(slot)] = true;
        Some(NextSlot::Batch(slot, header))
    }
}

/// The state shared by the workers, the announcer and the thread that listens to the consumer.
#[derive(Default)]
pub(super) struct StreamControl {
    state: Mutex<StreamState>,
    changed: Condvar,
}

impl StreamControl {
    fn wait<'a>(&self, state: MutexGuard<'a, StreamState>) -> MutexGuard<'a, StreamState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stream: the shard's batches from `start` up to, not including, `end` (`None` = without end).
    pub(super) fn open(&self, slots: usize, start: u64, end: Option<u64>, shard: Shard) {
        let start = shard.first(start);
        let mut state = lock(&self.state);
        state.free = (0..slots.min(MAX_SLOTS) as u8).rev().collect();
        state.held = vec![false; slots];
        state.next_claim = start;
        state.next_announced = start;
        state.batch_step = u64::from(shard.of);
        state.end_batch = end;
    }

    /// Waits for a free slot and claims it for the next batch; `None` if no batch is left or the stream has ended.
    pub(super) fn claim(&self) -> Option<SlotClaim> {
        let mut state = lock(&self.state);
        loop {
            if state.end.is_some() || state.end_batch.is_some_and(|end| state.next_claim >= end) {
                return None;
            }
            if let Some(slot) = state.free.pop() {
                let batch = state.next_claim;
                state.next_claim += state.batch_step;
                return Some(SlotClaim { batch, slot });
            }
            state = self.wait(state);
        }
    }

    /// Records that the claimed slot holds its batch.
    #[allow(clippy::needless_pass_by_value, reason = "the right to write the slot ends here")]
    pub(super) fn fill(&self, claim: SlotClaim, header: SlotHeader) {
        lock(&self.state).filled.insert(claim.batch, (claim.slot, header));
        self.changed.notify_all();
    }

    /// Waits for the next batch in order, whose slot the consumer holds from then on.
    pub(super) fn next_announcement(&self) -> NextSlot {
        let mut state = lock(&self.state);
        loop {
            if let Some(announcement) = state.announce() {
                return announcement;
            }
            state = self.wait(state);
        }
    }

    /// As [`StreamControl::next_announcement`]; `None` if `timeout` passes first.
    pub(super) fn next_announcement_within(&self, timeout: Duration) -> Option<NextSlot> {
        let deadline = Instant::now() + timeout;
        let mut state = lock(&self.state);
        loop {
            let announcement = state.announce();
            let left = deadline.saturating_duration_since(Instant::now());
            if announcement.is_some() || left.is_zero() {
                return announcement;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes back a slot that the consumer held.
    ///
    /// # Errors
    /// When the consumer did not hold it.
    pub(super) fn give_back(&self, byte: u8) -> Result<(), ServiceError> {
        let mut state = lock(&self.state);
        match state.held.get_mut(usize::from(byte)) {
            Some(held) if *held => *held = false,
            _ => {
                let held: Vec<String> =
                    (0..state.held.len()).filter(|&slot| state.held[slot]).map(|slot| slot.to_string()).collect();
                let held = if held.is_empty() { "none".to_owned() } else { held.join(", ") };
                return Err(ServiceError::WrongSlot { byte, held });
            }
        }
        state.free.push(byte);
        state.given_back = true;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Number of slots that the consumer holds.
    pub(super) fn held(&self) -> usize {
        lock(&self.state).held.iter().filter(|held| **held).count()
    }

    /// Whether the consumer has given a slot back, which shows that it has mapped the memory.
    pub(super) fn is_mapped(&self) -> bool {
        lock(&self.state).given_back
    }

    /// Waits until the consumer holds no slot, or the stream has ended.
    pub(super) fn wait_until_given_back(&self) {
        let mut state = lock(&self.state);
        while state.end.is_none() && state.held.contains(&true) {
            state = self.wait(state);
        }
    }

    /// Waits until the stream has ended, at most `timeout`.
    pub(super) fn wait_until_ended(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut state = lock(&self.state);
        while state.end.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the stream. Only the first call counts.
    pub(super) fn end(&self, end: StreamEnd) {
        lock(&self.state).end.get_or_insert(end);
        self.changed.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        lock(&self.state).end.is_some()
    }

    /// The error of a stream that failed, once; the stream stays ended.
    pub(super) fn take_failure(&self) -> Option<ServiceError> {
        let mut state = lock(&self.state);
        match state.end.replace(StreamEnd::Stopped) {
            Some(StreamEnd::Failed(error)) => Some(error),
            _ => None,
        }
    }

    pub(super) fn take_end(&self) -> Option<StreamEnd> {
        lock(&self.state).end.take()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sync::explore;
    use super::*;

    #[test]
    fn batches_are_announced_in_ascending_order() {
        explore(|| {
            let control = StreamControl::default();
            control.open(3, 7, Some(10), Shard::WHOLE);
            let claims: Vec<SlotClaim> = std::iter::from_fn(|| control.claim()).take(3).collect();
            assert_eq!(claims.iter().map(SlotClaim::batch).collect::<Vec<_>>(), [7, 8, 9]);
            let slots: Vec<u8> = claims.iter().map(|claim| claim.slot).collect();
            claims.into_iter().rev().for_each(|claim| control.fill(claim, SlotHeader::default()));
            for slot in slots {
                assert!(matches!(control.next_announcement(), NextSlot::Batch(announced, _) if announced == slot));
            }
            assert!(matches!(control.next_announcement(), NextSlot::Complete));
            assert!(control.claim().is_none());
        });
    }

    #[test]
    fn a_shard_has_every_nth_batch() {
        explore(|| {
            let check = |index, of, start, end, expected: &[u64]| {
                let control = StreamControl::default();
                control.open(9, start, end, Shard { index, of });
                let batches: Vec<u64> =
                    std::iter::from_fn(|| control.claim()).map(|claim| claim.batch()).take(9).collect();
                assert_eq!(batches, expected, "{index}/{of} from {start}");
            };
            check(0, 3, 0, Some(7), &[0, 3, 6]);
            check(2, 3, 0, Some(7), &[2, 5]);
            check(2, 3, 3, Some(9), &[5, 8]);
            check(2, 3, 5, Some(9), &[5, 8]);
            check(4, 5, 0, Some(4), &[]);
            check(0, 1, 5, Some(8), &[5, 6, 7]);
        });
    }

    #[test]
    fn only_held_slots_can_be_given_back() {
        explore(|| {
            let control = StreamControl::default();
            control.open(2, 0, None, Shard::WHOLE);
            let claim = control.claim().expect("a slot is free");
            let message = control.give_back(0).expect_err("not announced").to_string();
            assert_eq!(message, "the consumer wrote 0, which is not the number of a slot it holds (it holds none)");
            control.fill(claim, SlotHeader::default());
            assert!(matches!(control.next_announcement(), NextSlot::Batch(0, _)));
            assert!(control.give_back(77).is_err());
            assert!(control.give_back(0).is_ok());
            assert!(control.give_back(0).is_err());
        });
    }
}
