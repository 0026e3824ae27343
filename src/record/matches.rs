//! Matches between trained networks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FeatureCost, Machine, RunKey, SpeedEntry};
use crate::statistics::pentanomial::Pairs;
use crate::units::Seed;

/// A match of a trained network against the reference set's network of the same method and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchResult {
    #[serde(flatten)]
    pub key: RunKey,
    /// The label of the reference's row.
    pub reference: String,
    pub record: MatchRecord,
}

/// The quantity that both networks have in equal measure.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchKind {
    /// Nodes per move.
    EqualNodes,
    /// Processor time per move: the faster network searches more nodes.
    EqualCost,
}

impl MatchKind {
    pub const ALL: [MatchKind; 2] = [MatchKind::EqualNodes, MatchKind::EqualCost];

    /// In words: `equal nodes`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MatchKind::EqualNodes => "equal nodes",
            MatchKind::EqualCost => "equal cost",
        }
    }
}

/// A match's conditions and outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchRecord {
    pub kind: MatchKind,
    pub conditions: MatchConditions,
    pub player: MatchPlayer,
    pub reference_player: MatchPlayer,
    /// How many nodes of the player cost as much as one of the reference; equal cost only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostRatio>,
    /// Game pairs by outcome, seen from the player.
    pub pairs: Pairs,
    /// Games by outcome, seen from the player.
    pub games: GameCounts,
    /// Games that were adjudicated; the rules ended the others.
    pub adjudicated: u64,
    pub machine: Machine,
}

/// The conditions of a match, beside the networks and their nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchConditions {
    /// Nodes per move of the reference.
    pub nodes: u64,
    pub openings: MatchOpenings,
    /// Seed of the order of openings.
    pub seed: Seed,
    /// `None`: every game was played until the rules ended it.
    pub adjudication: Option<Adjudication>,
    /// A player's hash table in MiB.
    pub hash: u32,
    /// Digest of the search.
    pub search: String,
    /// The match ended once half the 95% interval was at most this, in Elo, or when its pairs were played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
}

/// The book of a match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchOpenings {
    /// The file's name; `None` for the openings that come with fsbench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub count: u64,
    /// BLAKE3 hash of the openings, in hexadecimal.
    pub blake3: String,
    /// Moves taken from each game; `None` = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plies: Option<u16>,
}

/// A network's side of a match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchPlayer {
    /// BLAKE3 hash of the network's file, in hexadecimal.
    pub network: String,
    /// Factor from the network's internal units to the search's centipawns.
    pub eval_scale: f64,
    /// Limit of nodes per move.
    pub node_limit: u64,
    /// Moves that were searched.
    pub moves: u64,
    /// Nodes of all searches.
    pub nodes: u64,
    pub seconds: f64,
}

impl MatchPlayer {
    /// Nodes per second.
    #[must_use]
    pub fn nps(&self) -> f64 {
        self.nodes as f64 / self.seconds.max(1e-9)
    }
}

/// Games by outcome.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GameCounts {
    /// Games won.
    pub wins: u64,
    /// Games without a winner.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
}

impl GameCounts {
    #[must_use]
    pub const fn total(self) -> u64 {
        self.wins + self.draws + self.losses
    }
}

/// The results of some pairs of a match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Number of the first pair, from 0.
    pub first: u64,
    /// The player's half points in each pair.
    pub half_points: Vec<u8>,
}

/// The cost of a node in processor time. The values are medians over rounds in which the two networks take turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostRatio {
    /// Of the first and the second network; in an experiment the reference is the first. With the user's time of
    /// finding features, where there is one; `None` where `own_node_costs` replace them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nanoseconds_per_node: Option<[f64; 2]>,
    /// The first network's cost of a node divided by the second's: the second searches `ratio` times as many nodes.
    pub ratio: f64,
    /// 95% interval of the median ratio, from order statistics.
    pub low: f64,
    /// The interval's upper bound.
    pub high: f64,
    /// Rounds in which both were measured; 0 where `own_node_costs` replace them.
    pub rounds: usize,
    /// Of each network the user's time of finding features, beside the measured one that it replaces; `None` without.
    #[serde(default, skip_serializing_if = "no_features")]
    pub own_features: [Option<FeatureCost>; 2],
    /// The user's figures of both networks' costs of a node; `None` where they are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_node_costs: Option<[f64; 2]>,
    /// How much cost weighs where it decides on nodes, as a power of the ratio; `None` for 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Where it was measured; `None` where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

const fn no_features(features: &[Option<FeatureCost>; 2]) -> bool {
    matches!(features, [None, None])
}

impl CostRatio {
    /// The ratio by the user's figures alone.
    #[must_use]
    pub fn of_figures(node_costs: [f64; 2]) -> CostRatio {
        let [first, second] = node_costs;
        let ratio = first / second;
        CostRatio {
            nanoseconds_per_node: None,
            ratio,
            low: ratio,
            high: ratio,
            rounds: 0,
            own_features: [None; 2],
            own_node_costs: Some(node_costs),
            weight: None,
            machine: None,
        }
    }

    /// Whether it goes by figures of the user's.
    #[must_use]
    pub const fn is_by_figures(&self) -> bool {
        self.own_node_costs.is_some() || !no_features(&self.own_features)
    }

    /// Nodes of the second network that cost as much as `nodes` of the first, as far as cost weighs.
    ///
    /// ```
    /// use fsbench::record::CostRatio;
    ///
    /// // The second network's nodes cost four times as much.
    /// let ratio = CostRatio::of_figures([1.0, 4.0]);
    /// assert_eq!(ratio.nodes_of_second(1000), 250);
    /// assert_eq!(CostRatio { weight: Some(0.5), ..ratio }.nodes_of_second(1000), 500);
    /// ```
    #[must_use]
    pub fn nodes_of_second(&self, nodes: u64) -> u64 {
        let ratio = self.weight.map_or(self.ratio, |weight| self.ratio.powf(weight));
        ((nodes as f64 * ratio).round() as u64).max(1)
    }

    /// Whether the rounds differ too much to rely on their median, as [`SpeedEntry::is_noisy`].
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        self.high - self.low > 2.0 * SpeedEntry::NOISY_SHARE * self.ratio
    }
}

/// Rules by which games are adjudicated; scores are the players' own, in centipawns.
///
/// ```
/// use fsbench::play::Adjudication;
///
/// assert_eq!(Adjudication::default().resign_score, 600);
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Adjudication {
    /// A player resigns after `resign_moves` of its own scores in a row at or below minus this, when the opponent's
    /// last score is at or above it.
    pub resign_score: u16,
    /// Scores in a row that make a player resign.
    pub resign_moves: u16,
    /// A draw after `draw_moves` scores in a row of each side within ± this.
    pub draw_score: u16,
    /// Scores in a row of each side that make a draw.
    pub draw_moves: u16,
    /// First move number (counted from the start of the game) at which a draw can be adjudicated.
    pub draw_from_move: u16,
}

impl Default for Adjudication {
    fn default() -> Adjudication {
        Adjudication { resign_score: 600, resign_moves: 3, draw_score: 20, draw_moves: 8, draw_from_move: 34 }
    }
}
