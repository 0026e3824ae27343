//! Memory for the samples of a decoded window, in large pages where the system has them: samples are read in random
//! order, and in pages of 4 KB each read would look up its page first.
#![allow(unsafe_code, reason = "maps memory")]

use std::io;

use memmap2::{MmapOptions, MmapRaw};

use super::sample_cell::SampleCell;
use crate::data::formats::binpack::RecordSink;
use crate::data::{CompactRecord, Method, Record};
use crate::system;

/// A large page of x86-64 and most others.
const LARGE_PAGE: usize = 2 << 20;

/// Stores samples in cells as they are decoded; those beyond the last cell are only counted.
pub(super) struct CellSink<'a> {
    cells: &'a [SampleCell],
    first: u32,
    method: Method,
    count: usize,
}

impl CellSink<'_> {
    /// The number of the first sample in the data is `first`.
    pub(super) const fn new(cells: &[SampleCell], first: u32, method: Method) -> CellSink<'_> {
        CellSink { cells, first, method, count: 0 }
    }
}

impl RecordSink for CellSink<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn push(&mut self, record: Record) {
        if let Some(cell) = self.cells.get(self.count) {
            cell.store(CompactRecord::of(&record, self.first, self.method));
        }
        self.count += 1;
    }

    fn pop(&mut self) {
        self.count = self.count.saturating_sub(1);
    }
}

/// Zeroed memory for some samples.
pub(super) struct WindowMemory {
    map: MmapRaw,
    /// Bytes before the first large page.
    start: usize,
    samples: usize,
}

impl WindowMemory {
    /// # Errors
    /// When the memory cannot be mapped.
    pub(super) fn new(samples: usize) -> io::Result<WindowMemory> {
        let bytes = (samples * size_of::<SampleCell>()).next_multiple_of(LARGE_PAGE);
        let map: MmapRaw = MmapOptions::new().len(bytes + LARGE_PAGE).map_anon()?.into();
        // Without large pages it is only slower.
        system::want_large_pages(map.as_ptr(), map.len());
        let start = map.as_ptr().addr().wrapping_neg() % LARGE_PAGE;
        Ok(WindowMemory { map, start, samples: bytes / size_of::<SampleCell>() })
    }

    pub(super) fn cells(&self) -> &[SampleCell] {
        // SAFETY: the mapping is private, anonymous and thus zeroed; it lives as long as `self`. It has `LARGE_PAGE`
        // bytes more than the cells, and `start` is less than that and brings them to a multiple of their alignment.
        // Cells are atomic, so that threads may write them through shared references, and any bytes are valid.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.start).cast::<SampleCell>(), self.samples) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_what_is_stored() {
        let memory = WindowMemory::new(100_000).expect("memory");
        assert!(memory.cells().len() >= 100_000 && memory.cells().as_ptr().addr().is_multiple_of(LARGE_PAGE));
        assert_eq!(memory.cells()[99_999].load().words(), [0; 4]);
        for (number, cell) in (0u64..).zip(memory.cells()) {
            cell.store(CompactRecord::from_words([number, 1, 2, !number]));
        }
        let last = memory.cells().len() as u64 - 1;
        assert_eq!(memory.cells()[last as usize].load().words(), [last, 1, 2, !last]);
    }
}
