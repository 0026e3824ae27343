//! The place of a sample in a window that several workers decode.

use super::sync::{AtomicU64, Ordering};
use crate::data::CompactRecord;

/// The place of a sample. Its words are written by one thread, which then finishes its task, and read by others once
/// all tasks are finished ([`SharedTasks`](super::shared_tasks::SharedTasks)).
///
/// Relaxed: the words are atomic only because Rust has no other way to write memory through a shared reference. The
/// tasks' mutex orders the writes before the reads.
#[derive(Default)]
#[repr(C, align(32))]
pub(super) struct SampleCell([AtomicU64; 4]);

impl SampleCell {
    #[inline(always)]
    pub(super) fn store(&self, sample: CompactRecord) {
        self.0.iter().zip(sample.words()).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    #[inline(always)]
    pub(super) fn load(&self) -> CompactRecord {
        CompactRecord::from_words(self.0.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }
}
