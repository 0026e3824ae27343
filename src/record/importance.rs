//! Results of `fsbench measure importance`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cluster, LossData};
use crate::features::Identity;
use crate::train::EvalLoss;

/// The loss of a network when rows of its feature transformer lose their differences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportanceRecord {
    /// Name of the feature set.
    pub name: String,
    pub identity: Identity,
    /// The samples that were used.
    pub data: LossData,
    /// The loss that was computed.
    pub function: EvalLoss,
    /// The units taken as independent.
    pub clusters: Cluster,
    /// The network's mean loss.
    pub loss: f64,
    pub blocks: Vec<BlockImportance>,
    pub rows: RowCounts,
}

/// A block and its axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockImportance {
    /// The block's name.
    pub block: String,
    /// All rows of the block.
    pub whole: RowGroup,
    pub axes: Vec<AxisImportance>,
}

/// An axis and the rows of each of its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AxisImportance {
    /// The factor as written.
    pub axis: String,
    pub values: Vec<RowGroup>,
}

/// Some rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowGroup {
    /// The axis's value; empty for a whole block.
    pub value: String,
    /// Rows of the group.
    pub rows: u64,
    /// How many of them are active, per position and perspective.
    pub active: f64,
    /// Root mean square of the rows' Euclidean norms, in units of the activation's upper bound.
    pub norm: f64,
    /// Rise of the mean loss when every row is replaced by the group's mean row, weighted by how often each is active;
    /// `None` if the group has one row or no active row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<Rise>,
}

/// A rise of the mean loss.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rise {
    /// The estimate.
    pub mean: f64,
    /// Half of the 95% interval; `None` with one cluster.
    pub interval: Option<f64>,
}

/// How many rows the data can do without.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowCounts {
    /// Rows of the feature transformer.
    pub total: u32,
    /// Never active in the data.
    pub never_active: u32,
    /// Active, but removing the row changes no position's score by more than `epsilon`.
    pub without_effect: u32,
    /// In centipawns.
    pub epsilon: f64,
}
