//! The samples of a batch, from mapped files or from binpacks that are decoded window by window.

use std::ops::Range;
use std::sync::Arc;

use super::ServiceError;
use super::binpack_batches::{BinpackBatches, WindowRange, WindowReader};
use super::mapped_batches::{MappedBatch, MappedBatches};
use super::mapped_files::{MappedFiles, MappedRecords};
use super::schedule::Schedule;
use crate::cpu::prefetch;
use crate::data::Record;

/// The data of a stream.
pub(super) enum BatchSource {
    Mapped { files: Arc<MappedFiles>, batches: MappedBatches },
    Binpack(BinpackBatches),
}

/// The samples of one batch.
pub(super) struct BatchSamples<'a> {
    pub(super) epoch: u32,
    storage: Storage<'a>,
}

enum Storage<'a> {
    Mapped(MappedRecords<'a>, MappedBatch),
    Decoded(Vec<WindowRange>),
}

impl BatchSource {
    /// The same batches for another stream. Streams at different places must not share their windows, of which a source
    /// keeps only the last few.
    pub(super) fn with_empty_caches(&self) -> BatchSource {
        match self {
            BatchSource::Mapped { files, batches } => {
                BatchSource::Mapped { files: Arc::clone(files), batches: batches.with_empty_caches() }
            }
            BatchSource::Binpack(batches) => BatchSource::Binpack(batches.with_empty_caches()),
        }
    }

    pub(super) const fn schedule(&self) -> &Schedule {
        match self {
            BatchSource::Mapped { batches, .. } => batches.schedule(),
            BatchSource::Binpack(batches) => batches.schedule(),
        }
    }

    /// A batch by its number; `None` if `should_stop` returned true meanwhile.
    pub(super) fn batch(
        &self,
        number: u64,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Option<BatchSamples<'_>>, ServiceError> {
        Ok(match self {
            BatchSource::Mapped { files, batches } => {
                let batch = batches.batch(number, &**files);
                Some(BatchSamples { epoch: batch.epoch, storage: Storage::Mapped(files.records(), batch) })
            }
            BatchSource::Binpack(batches) => {
                let epoch = batches.schedule().epoch_of(number);
                let ranges = batches.batch(number, should_stop)?;
                ranges.map(|ranges| BatchSamples { epoch, storage: Storage::Decoded(ranges) })
            }
        })
    }
}

impl BatchSamples<'_> {
    pub(super) fn len(&self) -> usize {
        match &self.storage {
            Storage::Mapped(_, batch) => batch.len(),
            Storage::Decoded(ranges) => ranges.iter().map(WindowRange::len).sum(),
        }
    }

    /// The samples, for reading in their order.
    pub(super) fn reader(&self) -> SampleReader<'_> {
        match &self.storage {
            Storage::Mapped(records, batch) => SampleReader::Mapped(records, batch),
            Storage::Decoded(ranges) => SampleReader::Decoded(ranges.iter().map(WindowRange::reader).collect()),
        }
    }
}

/// Reads the samples of a batch.
pub(super) enum SampleReader<'a> {
    Mapped(&'a MappedRecords<'a>, &'a MappedBatch),
    Decoded(Vec<WindowReader<'a>>),
}

impl SampleReader<'_> {
    /// Prefetches some of the batch's samples into the CPU's cache while others are encoded: they are scattered.
    pub(super) fn prefetch(&self, samples: Range<usize>) {
        match self {
            SampleReader::Mapped(records, batch) => batch.for_each(samples, |index| prefetch(records.get(index))),
            SampleReader::Decoded(ranges) => for_each_decoded(ranges, samples, prefetch),
        }
    }

    /// Copies some of the batch's samples into `out`, which is cleared first. [`Record::game`] of each copy is the
    /// sample's number in the data.
    pub(super) fn copy(&self, samples: Range<usize>, out: &mut Vec<Record>) {
        out.clear();
        match self {
            SampleReader::Mapped(records, batch) => {
                batch.for_each(samples, |index| out.push(records.get(index).with_game(index)));
            }
            SampleReader::Decoded(ranges) => for_each_decoded(ranges, samples, |record| out.push(*record)),
        }
    }
}

fn for_each_decoded(ranges: &[WindowReader<'_>], samples: Range<usize>, mut visit: impl FnMut(&Record)) {
    let mut preceding = 0;
    for range in ranges {
        let in_range = |sample: usize| sample.saturating_sub(preceding).min(range.len());
        range.for_each(in_range(samples.start)..in_range(samples.end), &mut visit);
        preceding += range.len();
    }
}
