//! Results of `fsbench measure loss`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::ScoreUnit;
use crate::features::Identity;
use crate::train::EvalLoss;

/// Losses of several networks on the same samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossRecord {
    pub data: LossData,
    /// The loss function.
    pub loss: EvalLoss,
    /// The unit that the intervals treat as independent.
    pub clusters: Cluster,
    /// In the order of the command line.
    pub networks: Vec<NetworkLoss>,
    /// Every pair of networks.
    pub pairs: Vec<LossPair>,
}

/// The samples that the losses are computed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossData {
    /// The file.
    pub path: String,
    /// `pgn`, `fsd`, `binpack`, `bullet` or `text`.
    pub format: String,
    pub score_unit: ScoreUnit,
    /// Samples with a target.
    pub samples: u64,
    /// Samples left out because they lack the score or result that λ needs.
    pub without_target: u64,
    /// Number of games; `None` if the format does not separate games.
    pub games: Option<u64>,
}

/// What confidence intervals treat as independent. More than 4,096 clusters are merged into that many groups.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cluster {
    /// Games, because the positions of a game are correlated.
    Game,
    /// Samples, if the format does not separate games.
    Sample,
}

impl Cluster {
    pub const MAX_GROUPS: usize = 4096;
}

/// A network's loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLoss {
    /// The file, as named on the command line.
    pub network: String,
    pub arithmetic: Arithmetic,
    /// Name of the feature set.
    pub name: String,
    pub identity: Identity,
    /// Mean loss over the samples.
    pub loss: f64,
    /// Half-width of the 95% interval; `None` for fewer than two clusters.
    pub interval: Option<f64>,
    pub by: LossBreakdown,
}

/// The arithmetic of a network.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
    /// Integers, as in an engine.
    Integer,
    /// Floats, as in training: a checkpoint.
    Float,
}

/// Losses, or differences of losses, on subsets of the samples. Empty subsets are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossBreakdown {
    /// By number of pieces on the board, kings included.
    pub pieces: Vec<SubsetLoss>,
    /// By ply; empty if the format has no plies.
    pub ply: Vec<SubsetLoss>,
    /// By the side to move's material minus the opponent's, in pawns (1, 3, 3, 5, 9).
    pub material: Vec<SubsetLoss>,
    /// By the score's size in centipawns; of the samples that have a score.
    pub score: Vec<SubsetLoss>,
    /// By square of the side to move's king, from its own perspective.
    pub king: Vec<SubsetLoss>,
    /// By whether both kings are on the same half of the board, files a–d or e–h.
    pub kings: Vec<SubsetLoss>,
}

impl LossBreakdown {
    /// The breakdowns with their headings.
    #[must_use]
    pub fn by_criterion(&self) -> [(&'static str, &[SubsetLoss]); 6] {
        [
            ("pieces left", &self.pieces),
            ("ply", &self.ply),
            ("material", &self.material),
            ("score", &self.score),
            ("king", &self.king),
            ("kings", &self.kings),
        ]
    }
}

/// The loss on a subset of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubsetLoss {
    /// The class of positions.
    #[serde(rename = "part")]
    pub subset: String,
    /// Its samples.
    pub samples: u64,
    /// Mean over the subset.
    pub loss: f64,
    /// Half-width of the 95% interval.
    pub interval: Option<f64>,
}

/// The loss of one network minus another's, on the same samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossPair {
    /// Indices into `networks`.
    pub first: usize,
    /// Number of the second network, from 0.
    pub second: usize,
    /// Negative if the first is better.
    pub difference: f64,
    /// Half-width of the 95% interval.
    pub interval: Option<f64>,
    pub by: LossBreakdown,
}
