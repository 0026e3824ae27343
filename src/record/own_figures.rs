//! Figures of the user's own engine, which replace what fsbench measures of its own code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's own figures of what a row costs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnFigures {
    /// Nanoseconds a move in which the user's engine finds the features of both perspectives; it takes the place of
    /// fsbench's own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features_ns: Option<f64>,
    /// Cost of a node divided by the cost of a node of the comparison's first set; it takes the place of all that is
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_cost: Option<f64>,
}

impl OwnFigures {
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.features_ns.is_none() && self.node_cost.is_none()
    }
}

/// The time in which a network's features are found during a search: measured, and by the user's figure, which the cost
/// of its nodes goes by.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureCost {
    /// Nanoseconds a move, both perspectives, as fsbench finds them.
    pub measured_ns: f64,
    /// Nanoseconds a move, both perspectives, by the user's figure.
    pub own_ns: f64,
    /// Moves per node whose features are found.
    pub moves_per_node: f64,
}
