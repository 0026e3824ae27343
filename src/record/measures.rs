//! Results of `fsbench measure`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::network_records::{NetworkRecord, RecordKind};
use crate::engine::Differences;
use crate::features::Identity;

/// The records of networks, each in a results folder's file of its own.
pub(super) const KINDS: [RecordKind; 3] =
    [RecordKind::of::<ActivityRecord>(), RecordKind::of::<ErrorRecord>(), RecordKind::of::<WrongSignRecord>()];

/// Means per move for one perspective (the mover's, the other's, or their mean).
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoveCounts {
    /// Features that become active, per move.
    pub added: f64,
    /// Features that cease to be active, per move.
    pub removed: f64,
    /// Share of moves that change some block's context.
    pub refreshes: f64,
    /// Rows added or subtracted by updates, with refreshes from scratch.
    pub rows_update: f64,
    /// Rows added when every position is recomputed.
    pub rows_refresh: f64,
    /// Rows added or subtracted by updates, with a refresh cache.
    pub rows_cache: f64,
}

/// Result of `measure updates`: means over the played moves, and over all legal moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdatesRecord {
    /// The set's name.
    pub name: String,
    pub identity: Identity,
    /// Inputs per perspective.
    pub num_features: u32,
    /// Games that were read.
    pub games: u64,
    /// Positions that a move was played from.
    pub positions: u64,
    /// Moves that were counted.
    pub moves: u64,
    /// Active features, over both perspectives of each position.
    pub active_mean: f64,
    /// Most features active at once, per perspective.
    pub active_max: u64,
    /// active_mean / num_features
    pub density: f64,
    pub mover: MoveCounts,
    pub other: MoveCounts,
    pub mean: MoveCounts,
    /// The same means over every legal move of each position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal: Option<LegalCounts>,
}

/// Means over all legal moves.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegalCounts {
    /// Legal moves of all positions.
    pub moves: u64,
    pub mover: MoveCounts,
    pub other: MoveCounts,
    pub mean: MoveCounts,
}

/// One layer's activity over a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerActivity {
    /// `l1` (both perspectives' accumulators after activation), `l2`, …
    pub layer: String,
    /// Neurons of the layer.
    pub neurons: usize,
    /// Share of outputs that are positive after activation.
    pub active: f64,
    /// Share of outputs at the activation's upper bound.
    pub saturated: f64,
    /// Number of neurons that are never positive on the data.
    pub never_active: usize,
}

/// Result of `measure activity`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityRecord {
    /// The feature set's name.
    pub name: String,
    pub identity: Identity,
    /// Positions that were evaluated.
    pub positions: u64,
    pub layers: Vec<LayerActivity>,
    /// By output bucket, if there are several: each bucket has its own hidden layers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketActivity>,
}

impl NetworkRecord for ActivityRecord {
    const KIND: &'static str = "activity";
}

/// Activity on the positions of one output bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BucketActivity {
    /// Number of the output bucket.
    pub bucket: usize,
    /// Positions that it evaluates.
    pub positions: u64,
    pub layers: Vec<LayerActivity>,
}

/// Result of `measure error`: |WDL(float) − WDL(integer)| over a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRecord {
    /// The feature set's name.
    pub name: String,
    pub identity: Identity,
    /// Positions that were evaluated.
    pub positions: u64,
    /// Mean difference of the expected results.
    pub mean: f64,
    /// The smallest difference that at least 99% of the positions do not exceed, rounded up by up to a thousandth of
    /// it.
    pub p99: f64,
    /// The largest difference.
    pub max: f64,
    /// Share of positions with a difference of at most `tolerance`.
    pub within_tolerance: f64,
    /// The difference up to which a position counts as agreeing.
    pub tolerance: f64,
    /// Number of positions with an accumulator element outside i16, which wraps in the engine.
    pub accumulator_overflows: u64,
}

impl ErrorRecord {
    /// The usual tolerance.
    pub const TOLERANCE: f64 = Differences::TOLERANCE;
}

impl NetworkRecord for ErrorRecord {
    const KIND: &'static str = "error";
}

/// How often a network's evaluation has the other sign than the score, over the positions of a run's validation games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrongSignRecord {
    /// The feature set's name.
    pub name: String,
    pub identity: Identity,
    /// Positions with a score that is not 0.
    pub positions: u64,
    /// Positions without a score, or of score 0, which do not count.
    pub left_out: u64,
    /// Positions in which the integer network's evaluation has the other sign than the score, or is 0.
    pub wrong: u64,
}

impl WrongSignRecord {
    /// The share of `positions` that are wrong; `None` without positions.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.positions > 0).then(|| self.wrong as f64 / self.positions as f64)
    }
}

impl NetworkRecord for WrongSignRecord {
    const KIND: &'static str = "wrong_sign";
}
