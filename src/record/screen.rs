//! What is known of a feature set before any training: its size and its cost on games.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A feature set's size and cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenRecord {
    /// Inputs per perspective.
    pub features: u32,
    /// Mean active features per perspective.
    pub active: f64,
    /// Rows of the feature transformer per move, mean of both perspectives.
    pub rows_a_move: f64,
    /// Nanoseconds in which a move's features are found for both perspectives; `None` where that was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_a_move: Option<f64>,
    /// The share of features that no legal position activates, as far as that is proved; `None` where that was not
    /// looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_share: Option<f64>,
    /// Of the feature transformer's weights in 16 bits, at the width of the search.
    pub bytes: u64,
    /// The limit that it exceeds, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}
