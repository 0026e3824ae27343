//! Results of `fsbench measure speed`.

use serde::{Deserialize, Serialize};

use super::Machine;
use crate::features::Identity;

/// One way of evaluating, timed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpeedEntry {
    /// `refresh`, or a way of following the moves: `eager`, `lazy`, either with a refresh cache.
    pub strategy: String,
    /// `scalar`, `avx2`, …
    pub back_end: String,
    pub evaluations_per_second: f64,
    /// Half-width of the 95% interval over the repetitions, evaluations per second.
    pub interval: f64,
    /// [`SpeedEntry::is_noisy`]: something else kept the machine busy.
    #[serde(default)]
    pub noisy: bool,
    /// Where the time of an evaluation goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<Nanoseconds>,
    /// Rows of the feature transformer added or subtracted per evaluation, and bytes of a row: what the cost model counts.
    #[serde(default)]
    pub rows: f64,
    #[serde(default)]
    pub row_bytes: usize,
}

impl SpeedEntry {
    /// Half-widths above this share of the mean are noisy.
    pub const NOISY: f64 = 0.1;

    /// Whether the times of the repetitions are too far apart to be relied on.
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        self.interval > SpeedEntry::NOISY * self.evaluations_per_second
    }
}

/// Nanoseconds per evaluation by what they are spent on. The three add up to the time of an evaluation.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nanoseconds {
    /// Following the move and finding what it makes active and inactive, for both perspectives.
    pub features: f64,
    /// Adding and subtracting rows of the feature transformer.
    pub rows: f64,
    /// From the accumulators to the score.
    pub forward: f64,
}

/// A strategy on a back end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    pub strategy: String,
    pub back_end: String,
}

/// `measure speed`: one thread, games in order, moves applied, every position evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeedRecord {
    /// Of the feature set.
    pub name: String,
    pub identity: Identity,
    /// Which network was timed: its file, as the caller names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The first 16 hexadecimal digits of the blake3 of its numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    pub positions: u64,
    /// Every strategy on every back end; the network as its file has it.
    pub entries: Vec<SpeedEntry>,
    /// The fastest of `entries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Way>,
    /// The same network with its neurons arranged; none where the data hold no other positions to arrange them by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arranged: Option<ArrangedSpeed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// Times of a network whose neurons were put in the order that suits some positions: the scores are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrangedSpeed {
    /// Positions the order was found by. They are of other games than those evaluated.
    pub positions: u64,
    /// Every strategy on the widest back end.
    pub entries: Vec<SpeedEntry>,
}

impl SpeedRecord {
    /// The fastest of `entries`.
    #[must_use]
    pub fn fastest(&self) -> Option<&SpeedEntry> {
        let speed = |entry: &&SpeedEntry| entry.evaluations_per_second;
        self.entries.iter().max_by(|a, b| speed(a).total_cmp(&speed(b)))
    }
}
