//! A request made ready to be served: its samples found, its slots laid out.

use super::batch_source::Samples;
use super::binpack_batches::Windows;
use super::eligible::eligible;
use super::mapped_batches::Order;
use super::protocol::SlotLayout;
use super::{Description, Header, Layout, Request, ServiceError};
use crate::chess::Perspective;
use crate::data::formats::binpack::Pieces;
use crate::data::{Fsd, Record, ScoreUnit};
use crate::features::FeatureSet;

/// Slots for which the bound on active features needs no more than this many bytes use it; larger ones look at the data.
const BOUNDED_SLOT: usize = 16 << 20;
/// Records looked at to size such slots.
const PROBES: usize = 8_192;

/// A request with everything it needs at hand.
pub struct PreparedStream {
    pub(super) request: Request,
    pub(super) set: FeatureSet,
    pub(super) samples: Samples,
    pub(super) unit: ScoreUnit,
    pub(super) plan: SlotLayout,
    /// Samples of the split left out: without what the request needs, or (pqr) without a second legal move.
    pub unusable: usize,
}

impl PreparedStream {
    /// `triplets`: whether every record is known to have a move played and another legal one.
    ///
    /// # Errors
    /// When the request cannot be served: nothing to serve, impossible sizes.
    pub fn new(request: Request, set: FeatureSet, file: Fsd, triplets: bool) -> Result<PreparedStream, ServiceError> {
        check(&request)?;
        let (eligible, unusable) = eligible(&request, &file, triplets)?;
        let probed = eligible.some(PROBES).map(|index| file.records()[index as usize].with_game(index));
        let probe = probe(&request, &set, probed)?;
        let plan = SlotLayout::new(&request, &set, probe)?;
        let unit = file.header().score_unit;
        let order = Order::new(
            eligible,
            request.seed,
            request.shuffle,
            request.epoch_samples,
            request.batch_size,
            request.epochs,
        );
        let samples = Samples::Mapped { file, order };
        Ok(PreparedStream { request, set, samples, unit, plan, unusable })
    }

    /// Serves a binpack as it is, every sample the method can use; `unit`: of its scores.
    ///
    /// # Errors
    /// As [`PreparedStream::new`].
    pub fn direct(
        request: Request,
        set: FeatureSet,
        pieces: Pieces,
        unit: ScoreUnit,
    ) -> Result<PreparedStream, ServiceError> {
        check(&request)?;
        let windows = Windows::new(&request, pieces)?;
        let probe = probe(&request, &set, windows.some(PROBES)?)?;
        let plan = SlotLayout::new(&request, &set, probe)?;
        let unusable = windows.unusable();
        Ok(PreparedStream { request, set, samples: Samples::Direct(windows), unit, plan, unusable })
    }

    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn describe(&self, shm: String) -> Description {
        let request = &self.request;
        Description {
            shm,
            slots: request.slots,
            slot_bytes: self.plan.slot_bytes,
            batch_size: request.batch_size,
            positions_per_sample: request.positions_per_sample(),
            layout: request.layout,
            method: request.method,
            identity: self.set.identity().clone(),
            num_features: self.set.num_features(),
            score_unit: Some(self.unit),
            arrays: self.plan.arrays.clone(),
            header: Header::fields(),
            version: Description::VERSION,
            set: self.set.name().to_owned(),
            words_per_position: self.plan.words_per_position,
            samples_per_epoch: self.samples.schedule().epoch_samples,
            batches_per_epoch: self.samples.schedule().batches_per_epoch(),
            batches: self.samples.schedule().batches(),
            start_batch: request.shard.first(request.start_batch),
            shard: request.shard,
        }
    }
}

fn check(request: &Request) -> Result<(), ServiceError> {
    let bad = |text: String| Err(ServiceError::Request(text));
    if request.threads == 0 {
        return bad("0 threads asked for; give at least 1".into());
    }
    if request.shard.index >= request.shard.of {
        return bad(format!("shard {} asked for; shards are numbered from 0", request.shard));
    }
    if request.epoch_samples == Some(0) {
        return bad("0 samples an epoch asked for; give at least 1, or leave it out for all".into());
    }
    if !(0.0..=1.0).contains(&request.validation) {
        return bad(format!("a validation share of {} asked for; it lies between 0 and 1", request.validation));
    }
    Ok(())
}

/// Room for how many active features a position and side: the set's bound where that is affordable, otherwise half as
/// much again as the most seen in `some` samples of the data. That is room for a whole batch of such positions; should
/// one need more all the same, the stream fails and says so.
fn probe(request: &Request, set: &FeatureSet, some: impl IntoIterator<Item = Record>) -> Result<usize, ServiceError> {
    let bound = set.max_active();
    let positions = request.batch_size.saturating_mul(request.positions_per_sample());
    if request.layout == Layout::Bitset || positions.saturating_mul(bound).saturating_mul(8) <= BOUNDED_SLOT {
        return Ok(bound);
    }
    let (mut most, mut active) = (0, Vec::new());
    for record in some {
        let board = record.board().unpack();
        let board = board.map_err(|error| ServiceError::Record { index: record.game(), source: error.into() })?;
        for pov in Perspective::ALL {
            set.encoder().encode(&board, pov, &mut active);
            most = most.max(active.len());
        }
    }
    Ok(bound.min(most + most / 2 + 8))
}
