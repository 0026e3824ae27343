//! What is known of a definition before any training.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::Identity;

/// A definition's size and costs on positions of games, and the bounds that it exceeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenRecord {
    /// `None` for a set that its size alone excludes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Inputs per perspective.
    pub features: u64,
    /// Bytes of the feature transformer's weights in a network.
    pub bytes: u64,
    /// Mean number of active features per perspective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<f64>,
    /// Rows added or subtracted per move and perspective, with a refresh cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_a_move: Option<f64>,
    /// A hash of how the features tell the screened positions apart, whatever their numbers: sets of one hash are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// The bound that the set exceeds, or why it cannot be encoded, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Of a set that is not refused.
    #[serde(flatten)]
    pub costs: Option<ScreenedCosts>,
}

/// What is timed and proved of a definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenedCosts {
    /// Nanoseconds to find both perspectives' changed features of a move.
    pub ns_a_move: f64,
    /// Share of the features of which a short proof finds that no legal position activates them.
    pub dead_share: f64,
    /// Whether the features determine where all pieces stand, by a short proof: yes, no or unknown.
    pub lossless: String,
}
