//! The scores of a position as users see them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::net::{RawScore, Scheme};
use crate::units::Centipawn;

/// The scores of a position, from the side to move's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Evaluation {
    /// The raw output in internal score units, truncated toward zero.
    pub score_internal: i32,
    pub score_cp: Centipawn,
    /// The output bucket of the position.
    pub bucket: usize,
    /// The scores of all buckets.
    pub buckets: Vec<BucketScore>,
}

/// The two summands of a bucket's score in internal units, each truncated toward zero.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BucketScore {
    /// The PSQT part.
    pub psqt: i32,
    /// The part of the layers.
    pub positional: i32,
}

impl Evaluation {
    /// From the raw outputs of all buckets; `bucket` is the position's.
    #[must_use]
    pub fn from_raw(raw: &[RawScore], bucket: usize, scheme: &Scheme) -> Evaluation {
        let score_internal = scheme.score(raw[bucket]);
        let score = |raw: &RawScore| BucketScore {
            psqt: scheme.internal_score(raw.psqt),
            positional: scheme.internal_score(raw.positional),
        };
        let score_cp = Centipawn(scheme.centipawns(score_internal));
        Evaluation { score_internal, score_cp, bucket, buckets: raw.iter().map(score).collect() }
    }
}
