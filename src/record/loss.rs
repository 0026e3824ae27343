//! Results of `fsbench measure loss`.

use serde::{Deserialize, Serialize};

use crate::data::ScoreUnit;
use crate::features::Identity;
use crate::train::EvalLoss;

/// `measure loss`: networks on the same samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossRecord {
    pub data: LossData,
    /// How it was computed.
    pub loss: EvalLoss,
    /// What the intervals take as independent of each other.
    pub clusters: Cluster,
    /// In the order given.
    pub networks: Vec<NetworkLoss>,
    /// Every two of them.
    pub pairs: Vec<LossPair>,
}

/// The samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossData {
    pub path: String,
    /// `pgn`, `fsd`, `binpack`, `bullet` or `text`.
    pub format: String,
    pub score_unit: ScoreUnit,
    /// Those with a target.
    pub samples: u64,
    /// Those without: no score, no result, or not the one that λ asks for.
    pub without_target: u64,
    /// Games that the samples are of; none where the format has no games.
    pub games: Option<u64>,
}

/// What an interval takes as independent of each other. Of more than [`Cluster::GROUPS`] they are taken together in that
/// many groups.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cluster {
    /// Games: positions of one game are alike.
    Game,
    /// Samples, where the format has no games.
    Sample,
}

impl Cluster {
    pub const GROUPS: usize = 4096;
}

/// A network's loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkLoss {
    /// As the caller names it.
    pub network: String,
    pub arithmetic: Arithmetic,
    /// Of the feature set.
    pub name: String,
    pub identity: Identity,
    pub loss: f64,
    /// Half-width of the 95% interval; none with fewer than two clusters.
    pub interval: Option<f64>,
    pub by: ByPlace,
}

/// What a network computes with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
    /// Integers, as an engine does.
    Integer,
    /// Floats, as training does: a checkpoint.
    Float,
}

/// Losses (or differences of losses) of parts of the samples. Parts without samples are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByPlace {
    /// Pieces on the board, kings included.
    pub pieces: Vec<PartLoss>,
    /// Plies since the game's start; empty where the format has none.
    pub ply: Vec<PartLoss>,
    /// Side to move's material less the opponent's, in pawns (1, 3, 3, 5, 9).
    pub material: Vec<PartLoss>,
    /// Where the side to move's king stands, seen from its side.
    pub king: Vec<PartLoss>,
    /// Whether both kings stand on the same half, files a–d or e–h.
    pub kings: Vec<PartLoss>,
}

impl ByPlace {
    /// The divisions with their headings.
    #[must_use]
    pub fn divisions(&self) -> [(&'static str, &[PartLoss]); 5] {
        [
            ("pieces left", &self.pieces),
            ("ply", &self.ply),
            ("material", &self.material),
            ("king", &self.king),
            ("kings", &self.kings),
        ]
    }
}

/// A part of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartLoss {
    pub part: String,
    pub samples: u64,
    /// Mean over these samples.
    pub loss: f64,
    pub interval: Option<f64>,
}

/// Two networks on the same samples: the first's loss less the second's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossPair {
    /// Indices into `networks`.
    pub first: usize,
    pub second: usize,
    /// Below zero where the first is better.
    pub difference: f64,
    pub interval: Option<f64>,
    pub by: ByPlace,
}
