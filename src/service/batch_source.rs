//! Where the samples of a batch come from: a mapped file, or a binpack decoded window by window.
#![allow(unsafe_code, reason = "prefetching takes a pointer")]

use std::ops::Range;

use super::ServiceError;
use super::binpack_batches::{Part, Windows};
use super::mapped_batches::{Order, Paging, Slice};
use super::schedule::Schedule;
use crate::data::{Fsd, Record};

impl Paging for Fsd {
    fn fetch(&self, records: Range<usize>) {
        self.will_need(records);
    }

    fn release(&self, records: Range<usize>) {
        self.let_go(records);
    }
}

pub(super) enum Samples {
    Mapped { file: Fsd, order: Order },
    Direct(Windows),
}

/// The samples of one batch.
pub(super) struct Chosen<'a> {
    pub(super) epoch: u32,
    from: From<'a>,
}

enum From<'a> {
    Mapped(&'a [Record], Slice),
    Direct(Vec<Part>),
}

impl Samples {
    pub(super) const fn schedule(&self) -> &Schedule {
        match self {
            Samples::Mapped { order, .. } => order.schedule(),
            Samples::Direct(windows) => windows.schedule(),
        }
    }

    /// The batch numbered `batch`; none when `stop` said so on the way.
    pub(super) fn batch(&self, batch: u64, stop: &dyn Fn() -> bool) -> Result<Option<Chosen<'_>>, ServiceError> {
        Ok(match self {
            Samples::Mapped { file, order } => {
                let slice = order.slice(batch, file);
                Some(Chosen { epoch: slice.epoch, from: From::Mapped(file.records(), slice) })
            }
            Samples::Direct(windows) => {
                let parts = windows.batch(batch, stop)?;
                parts.map(|parts| Chosen { epoch: windows.schedule().epoch(batch), from: From::Direct(parts) })
            }
        })
    }
}

impl Chosen<'_> {
    pub(super) fn len(&self) -> usize {
        match &self.from {
            From::Mapped(_, slice) => slice.samples(),
            From::Direct(parts) => parts.iter().map(Part::len).sum(),
        }
    }

    /// Says that the samples at some of the batch's places will soon be copied: they are scattered, and what is not in
    /// a cache can come while others are encoded.
    pub(super) fn prefetch(&self, places: Range<usize>) {
        match &self.from {
            From::Mapped(records, slice) => slice.each(places, |index| prefetch(&records[index as usize])),
            // A window lies in a few megabytes.
            From::Direct(_) => {}
        }
    }

    /// Puts the samples at some of the batch's places into `out`. Their `game` is their place in the data.
    pub(super) fn copy(&self, places: Range<usize>, out: &mut Vec<Record>) {
        out.clear();
        match &self.from {
            From::Mapped(records, slice) => {
                slice.each(places, |index| out.push(records[index as usize].with_game(index)));
            }
            From::Direct(parts) => {
                let mut before = 0;
                for part in parts {
                    let inside = |place: usize| place.saturating_sub(before).min(part.len());
                    part.each(inside(places.start)..inside(places.end), |record| out.push(*record));
                    before += part.len();
                }
            }
        }
    }
}

/// Asks for a record's cache lines, where the CPU can be asked.
#[inline(always)]
fn prefetch(record: &Record) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(record).cast::<i8>();
        // SAFETY: SSE is part of x86-64, and fetching changes nothing; the last byte lies in the record.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start);
            _mm_prefetch::<_MM_HINT_T0>(start.add(Record::BYTES - 1));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = record;
}
