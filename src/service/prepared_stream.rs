//! A request made ready to be served: its samples are known and its slots laid out.

use std::sync::Arc;

use super::batch_source::BatchSource;
use super::binpack_batches::BinpackBatches;
use super::eligible::{ServedRecords, StreamSamples, served_records};
use super::mapped_batches::MappedBatches;
use super::mapped_files::MappedFiles;
use super::protocol::SlotLayout;
use super::{Array, Description, Layout, Request, ServiceError, SlotHeader};
use crate::chess::{Board, Perspective};
use crate::data::formats::binpack::Segments;
use crate::data::{Record, ScoreUnit};
use crate::features::{BucketExpression, FeatureSet};

/// Slots of at most this many bytes have room for the set's upper bound on active features; the room in larger slots is
/// estimated from the data.
const MAX_BOUNDED_SLOT: usize = 16 << 20;
/// Most buckets that fit the elements of the array `bucket`.
const MAX_BUCKETS: u32 = 256;
/// Records that the estimate looks at.
const ESTIMATE_RECORDS: usize = 8_192;

/// A request with everything that serving it needs.
pub struct PreparedStream {
    pub(super) request: Request,
    pub(super) set: Arc<FeatureSet>,
    pub(super) bucket_rule: Option<Arc<BucketExpression>>,
    pub(super) source: BatchSource,
    pub(super) score_unit: ScoreUnit,
    pub(super) layout: SlotLayout,
    /// Samples of the split that the request cannot use: they lack a score or result it needs, or (pqr) a second legal
    /// move.
    pub unusable: usize,
    samples: StreamSamples,
}

impl PreparedStream {
    /// A stream over mapped `.fsd` files.
    ///
    /// # Errors
    /// When the request cannot be served: no samples, impossible sizes.
    pub fn new(request: Request, set: FeatureSet, files: MappedFiles) -> Result<PreparedStream, ServiceError> {
        request.check()?;
        let bucket_rule = bucket_rule(&request, &set)?;
        let ServedRecords { eligible, unusable, samples } = served_records(&request, &files)?;
        let records = files.records();
        let some = eligible.spread(ESTIMATE_RECORDS).map(|index| records.get(index).with_game(index));
        let layout = SlotLayout::new(&request, &set, indices_per_position(&request, &set, some)?)?;
        let score_unit = files.score_unit();
        let batch_order = request.batch_order(eligible.count());
        let source = BatchSource::Mapped { files: Arc::new(files), batches: MappedBatches::new(eligible, batch_order) };
        Ok(PreparedStream { request, set: Arc::new(set), bucket_rule, source, score_unit, layout, unusable, samples })
    }

    /// A stream over binpacks, decoded while they are served.
    ///
    /// # Errors
    /// As [`PreparedStream::new`].
    pub fn from_binpack(
        request: Request,
        set: FeatureSet,
        segments: Vec<Segments>,
        score_unit: ScoreUnit,
    ) -> Result<PreparedStream, ServiceError> {
        request.check()?;
        let bucket_rule = bucket_rule(&request, &set)?;
        let batches = BinpackBatches::new(&request, segments)?;
        let some = batches.spread(ESTIMATE_RECORDS)?;
        let layout = SlotLayout::new(&request, &set, indices_per_position(&request, &set, some)?)?;
        let unusable = batches.unusable();
        let samples = batches.samples();
        let set = Arc::new(set);
        let source = BatchSource::Binpack(batches);
        Ok(PreparedStream { request, set, bucket_rule, source, score_unit, layout, unusable, samples })
    }

    /// The same batches for another stream.
    pub(super) fn with_empty_caches(&self) -> PreparedStream {
        PreparedStream {
            request: self.request.clone(),
            set: Arc::clone(&self.set),
            bucket_rule: self.bucket_rule.clone(),
            source: self.source.with_empty_caches(),
            score_unit: self.score_unit,
            layout: self.layout.clone(),
            unusable: self.unusable,
            samples: self.samples,
        }
    }

    /// The boards of about `count` samples, spread evenly over the data.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn boards(&self, count: usize) -> Result<Vec<Board>, ServiceError> {
        let records: Vec<Record> = match &self.source {
            BatchSource::Mapped { files, batches } => {
                let records = files.records();
                batches.spread(count).map(|index| *records.get(index)).collect()
            }
            BatchSource::Binpack(batches) => batches.spread(count)?,
        };
        let board = |(index, record): (u32, &Record)| {
            record.board().unpack().map_err(|error| ServiceError::Record { index, source: error.into() })
        };
        (0..).zip(&records).map(board).collect()
    }

    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    #[must_use]
    pub fn feature_set(&self) -> &FeatureSet {
        &self.set
    }

    #[must_use]
    pub fn samples_per_epoch(&self) -> u64 {
        self.source.batch_order().epoch_samples
    }

    #[must_use]
    pub fn batches_per_epoch(&self) -> u64 {
        self.source.batch_order().batches_per_epoch()
    }

    /// Number of batches from batch 0 to the end of the last epoch; `None` = without end.
    #[must_use]
    pub fn batches(&self) -> Option<u64> {
        self.source.batch_order().batches()
    }

    /// The arrays of a batch.
    #[must_use]
    pub fn arrays(&self) -> &[Array] {
        &self.layout.arrays
    }

    /// Unit of the data's scores; batches have them in centipawns.
    #[must_use]
    pub const fn score_unit(&self) -> ScoreUnit {
        self.score_unit
    }

    pub(super) fn describe(&self, shm: String) -> Description {
        let request = &self.request;
        let batch_order = self.source.batch_order();
        Description {
            shm,
            slots: request.slots(),
            slot_bytes: self.layout.slot_bytes,
            batch_size: request.batch_size,
            positions_per_sample: request.positions_per_sample(),
            layout: request.layout,
            method: request.method,
            identity: self.set.identity().clone(),
            num_features: self.set.num_features(),
            score_unit: self.score_unit,
            arrays: self.layout.arrays.clone(),
            header: SlotHeader::fields(),
            version: Description::VERSION,
            set: self.set.name().to_owned(),
            words_per_position: self.layout.words_per_position,
            samples: self.samples.read,
            samples_of_split: self.samples.of_split,
            samples_per_epoch: batch_order.epoch_samples,
            batches_per_epoch: batch_order.batches_per_epoch(),
            batches: batch_order.batches(),
            start_batch: request.shard.first(request.start_batch),
            shard: request.shard,
        }
    }
}

/// The request's bucket rule for the set.
fn bucket_rule(request: &Request, set: &FeatureSet) -> Result<Option<Arc<BucketExpression>>, ServiceError> {
    let Some(expression) = &request.bucket_rule else { return Ok(None) };
    if ["stockfish", "cpw"].contains(&expression.as_str()) {
        return Err(ServiceError::Request(format!(
            "{expression} chooses a bucket by the number of pieces, which batches have in the array `piece_count`; \
             --bucket-rule takes an expression, such as `bucket(K, zones)`"
        )));
    }
    let rule = set.bucket_expression(expression)?;
    match rule.count() {
        0..=MAX_BUCKETS => Ok(Some(Arc::new(rule))),
        count => Err(ServiceError::Request(format!(
            "the bucket rule has {count} buckets; the array `bucket` has room for numbers of {MAX_BUCKETS}"
        ))),
    }
}

/// Room for active features per position and side: the set's upper bound if that keeps slots small, otherwise 1.5 times
/// the largest number in `some` samples of the data. The estimate is an average over a whole batch; if a batch needs
/// more, the stream fails with an error.
fn indices_per_position(
    request: &Request,
    set: &FeatureSet,
    some: impl IntoIterator<Item = Record>,
) -> Result<usize, ServiceError> {
    let bound = set.max_active();
    let positions = request.batch_size.saturating_mul(request.positions_per_sample());
    if request.layout == Layout::Bitset || positions.saturating_mul(bound).saturating_mul(8) <= MAX_BOUNDED_SLOT {
        return Ok(bound);
    }
    let mut largest = 0;
    let mut active = Vec::new();
    for record in some {
        let board = record.board().unpack();
        let board = board.map_err(|error| ServiceError::Record { index: record.game(), source: error.into() })?;
        for pov in Perspective::ALL {
            set.encoder().encode(&board, pov, &mut active);
            largest = largest.max(active.len());
        }
    }
    Ok(bound.min(largest + largest / 2 + 8))
}
