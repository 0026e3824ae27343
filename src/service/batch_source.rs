//! The samples of a batch, from mapped files or from binpacks that are decoded window by window.

use std::ops::Range;
use std::sync::Arc;

use super::ServiceError;
use super::batch_order::BatchOrder;
use super::binpack_batches::{BinpackBatches, DecodedSample, WindowRange, WindowReader};
use super::mapped_batches::{MappedBatch, MappedBatches};
use super::mapped_files::{MappedFiles, MappedRecords};
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

    pub(super) const fn batch_order(&self) -> &BatchOrder {
        match self {
            BatchSource::Mapped { batches, .. } => batches.batch_order(),
            BatchSource::Binpack(batches) => batches.batch_order(),
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
                let epoch = batches.batch_order().epoch_of(number);
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

    /// Calls `read` with a reader of the samples.
    pub(super) fn read<R: ReadSamples>(&self, read: R) -> R::Output {
        match &self.storage {
            Storage::Mapped(records, batch) => read.run(&MappedReader { records, batch }),
            Storage::Decoded(ranges) => read.run(&DecodedReader(ranges.iter().map(WindowRange::reader).collect())),
        }
    }
}

/// A computation over the samples of a batch, compiled for each kind of data.
pub(super) trait ReadSamples {
    type Output;
    fn run<R: BatchSampleReader>(self, reader: &R) -> Self::Output;
}

/// Finds the samples of a batch, which are scattered in memory.
pub(super) trait BatchSampleReader {
    /// Where a sample is.
    type SampleRef: Copy;
    /// Whether samples are prefetched many at once. Where each lies in a page of its own, the CPU waits for the pages,
    /// and looks up several at a time; otherwise it waits less if prefetches alternate with work.
    const IN_BURSTS: bool;
    /// Replaces `out` by the places of some samples.
    fn locate(&self, samples: Range<usize>, out: &mut Vec<Self::SampleRef>);
    /// Prefetches a sample into the CPU's cache.
    fn prefetch(&self, place: Self::SampleRef);
    /// The sample, whose [`Record::game`] is its number in the data.
    fn record(&self, place: Self::SampleRef) -> Record;
}

struct MappedReader<'a> {
    records: &'a MappedRecords<'a>,
    batch: &'a MappedBatch,
}

impl<'a> BatchSampleReader for MappedReader<'a> {
    type SampleRef = (u32, &'a Record);
    const IN_BURSTS: bool = true;

    fn locate(&self, samples: Range<usize>, out: &mut Vec<Self::SampleRef>) {
        out.clear();
        self.batch.for_each(samples, |index| out.push((index, self.records.get(index))));
    }

    #[inline]
    fn prefetch(&self, (_, record): Self::SampleRef) {
        prefetch(record);
    }

    #[inline]
    fn record(&self, (index, record): Self::SampleRef) -> Record {
        record.with_game(index)
    }
}

struct DecodedReader<'a>(Vec<WindowReader<'a>>);

impl<'a> BatchSampleReader for DecodedReader<'a> {
    type SampleRef = DecodedSample<'a>;
    const IN_BURSTS: bool = false;

    fn locate(&self, samples: Range<usize>, out: &mut Vec<Self::SampleRef>) {
        out.clear();
        let mut preceding = 0;
        for range in &self.0 {
            let in_range = |sample: usize| sample.saturating_sub(preceding).min(range.len());
            out.extend(range.locate(in_range(samples.start)..in_range(samples.end)));
            preceding += range.len();
        }
    }

    #[inline]
    fn prefetch(&self, place: Self::SampleRef) {
        place.prefetch();
    }

    #[inline]
    fn record(&self, place: Self::SampleRef) -> Record {
        place.record()
    }
}
