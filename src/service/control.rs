//! Who may do what to which slot: claimed by a worker, announced to the consumer, given back. Batches are claimed and
//! announced in ascending order; a slot is claimed together with its batch, so the oldest batch always has one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Header, MAX_SLOTS, ServiceError, Shard};

/// The exclusive right to fill one slot with one batch. Only [`StreamControl::claim`] makes them.
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

/// How a stream came to its end.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// Every batch was handed over.
    Finished,
    /// The consumer closed its end, or wants no more.
    Stopped,
    Failed(ServiceError),
}

/// What the announcer does next.
pub(super) enum Announcement {
    Announce(u8, Header),
    /// Every batch was announced.
    Complete,
    Ended,
}

#[derive(Default)]
struct State {
    free: VecDeque<u8>,
    /// Announced and not given back, by slot.
    held: Vec<bool>,
    /// Filled, waiting for the batches before them.
    filled: BTreeMap<u64, (u8, Header)>,
    next_claim: u64,
    next_announced: u64,
    /// From a batch to the next: other shards have those between.
    step: u64,
    end: Option<u64>,
    /// Whether the consumer has given anything back.
    answered: bool,
    ending: Option<StreamEnd>,
}

/// The state workers, announcer and the consumer's reader share.
#[derive(Default)]
pub(super) struct StreamControl {
    state: Mutex<State>,
    changed: Condvar,
}

impl StreamControl {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stream: a shard's batches from `start` on and below `end` (none = without end) over `slots` slots.
    pub(super) fn open(&self, slots: usize, start: u64, end: Option<u64>, shard: Shard) {
        let start = shard.first(start);
        let mut state = self.lock();
        state.free = (0..slots.min(MAX_SLOTS) as u8).collect();
        state.held = vec![false; slots];
        state.next_claim = start;
        state.next_announced = start;
        state.step = u64::from(shard.of);
        state.end = end;
    }

    /// The next batch and a slot for it, as soon as one is free; none when there is nothing left to do.
    pub(super) fn claim(&self) -> Option<SlotClaim> {
        let mut state = self.lock();
        loop {
            if state.ending.is_some() || state.end.is_some_and(|end| state.next_claim >= end) {
                return None;
            }
            if let Some(slot) = state.free.pop_front() {
                let batch = state.next_claim;
                state.next_claim += state.step;
                return Some(SlotClaim { batch, slot });
            }
            state = self.wait(state);
        }
    }

    /// The claimed slot holds its batch.
    #[allow(clippy::needless_pass_by_value, reason = "the right to write ends here")]
    pub(super) fn fill(&self, claim: SlotClaim, header: Header) {
        self.lock().filled.insert(claim.batch, (claim.slot, header));
        self.changed.notify_all();
    }

    /// Waits for the next batch in order. Its slot counts as held from here on.
    pub(super) fn next_filled(&self) -> Announcement {
        let mut state = self.lock();
        loop {
            if state.ending.is_some() {
                return Announcement::Ended;
            }
            let next = state.next_announced;
            if state.end.is_some_and(|end| next >= end) {
                return Announcement::Complete;
            }
            if let Some((slot, header)) = state.filled.remove(&next) {
                state.next_announced += state.step;
                state.held[usize::from(slot)] = true;
                return Announcement::Announce(slot, header);
            }
            state = self.wait(state);
        }
    }

    /// The consumer gave a slot back.
    pub(super) fn give_back(&self, byte: u8) -> Result<(), ServiceError> {
        let mut state = self.lock();
        match state.held.get_mut(usize::from(byte)) {
            Some(held) if *held => *held = false,
            _ => {
                let waiting: Vec<String> =
                    (0..state.held.len()).filter(|&slot| state.held[slot]).map(|slot| slot.to_string()).collect();
                let waiting = if waiting.is_empty() { "none".to_owned() } else { waiting.join(", ") };
                return Err(ServiceError::WrongSlot { byte, waiting });
            }
        }
        state.free.push_back(byte);
        state.answered = true;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Whether the consumer has given a slot back, and so has mapped the memory.
    pub(super) fn answered(&self) -> bool {
        self.lock().answered
    }

    /// Waits until the consumer holds no slot.
    pub(super) fn all_given_back(&self) {
        let mut state = self.lock();
        while state.ending.is_none() && state.held.contains(&true) {
            state = self.wait(state);
        }
    }

    /// Waits until the stream has ended, `longest` at most.
    pub(super) fn wait_for_the_end(&self, longest: Duration) {
        let state = self.lock();
        drop(self.changed.wait_timeout_while(state, longest, |state| state.ending.is_none()));
    }

    /// The first ending counts.
    pub(super) fn end(&self, ending: StreamEnd) {
        self.lock().ending.get_or_insert(ending);
        self.changed.notify_all();
    }

    pub(super) fn ended(&self) -> bool {
        self.lock().ending.is_some()
    }

    pub(super) fn take_ending(&self) -> Option<StreamEnd> {
        self.lock().ending.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_announced_in_order_whatever_the_order_of_filling() {
        let control = StreamControl::default();
        control.open(3, 7, Some(10), Shard::WHOLE);
        let claims: Vec<SlotClaim> = std::iter::from_fn(|| control.claim()).take(3).collect();
        assert_eq!(claims.iter().map(SlotClaim::batch).collect::<Vec<_>>(), [7, 8, 9]);
        let slots: Vec<u8> = claims.iter().map(|claim| claim.slot).collect();
        claims.into_iter().rev().for_each(|claim| control.fill(claim, Header::default()));
        for slot in slots {
            assert!(matches!(control.next_filled(), Announcement::Announce(announced, _) if announced == slot));
        }
        assert!(matches!(control.next_filled(), Announcement::Complete));
        assert!(control.claim().is_none());
    }

    #[test]
    fn a_shard_has_every_nth_batch() {
        let check = |index, of, start, end, expected: &[u64]| {
            let control = StreamControl::default();
            control.open(9, start, end, Shard { index, of });
            let claims: Vec<u64> = std::iter::from_fn(|| control.claim()).map(|claim| claim.batch()).take(9).collect();
            assert_eq!(claims, expected, "{index}/{of} from {start}");
        };
        check(0, 3, 0, Some(7), &[0, 3, 6]);
        check(2, 3, 0, Some(7), &[2, 5]);
        check(2, 3, 3, Some(9), &[5, 8]);
        check(2, 3, 5, Some(9), &[5, 8]);
        check(4, 5, 0, Some(4), &[]);
        check(0, 1, 5, Some(8), &[5, 6, 7]);
    }

    #[test]
    fn only_held_slots_are_taken_back() {
        let control = StreamControl::default();
        control.open(2, 0, None, Shard::WHOLE);
        let claim = control.claim().expect("a slot is free");
        let message = control.give_back(0).expect_err("not announced").to_string();
        assert_eq!(message, "the consumer wrote 0, which is no slot that waits to be given back (waiting: none)");
        control.fill(claim, Header::default());
        assert!(matches!(control.next_filled(), Announcement::Announce(0, _)));
        assert!(control.give_back(77).is_err());
        assert!(control.give_back(0).is_ok());
        assert!(control.give_back(0).is_err());
    }
}
