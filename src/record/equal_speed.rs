//! The width at which a set's networks are as fast as a reference network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Machine, SpeedEntry, SpeedSetup};

/// The group of the rows at the widths of equal speed.
pub const EQUAL_SPEED: &str = "equal speed";

/// Result of a search for the accumulator width of equal speed, or of a comparison at one width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EqualSpeedRecord {
    /// The width whose speed is closest to the reference's.
    pub l1: usize,
    /// Evaluations per second relative to the reference's, at that width.
    pub speed: SpeedRatio,
    /// Every width that was timed, in ascending order.
    pub tried: Vec<WidthSpeed>,
    /// How far from 1 a ratio may be to count as equal, as a share.
    pub tolerance: f64,
    pub reference_l1: usize,
    /// The fastest strategy of the set, and of the reference.
    pub strategies: [SpeedSetup; 2],
    /// Positions that were evaluated in turns.
    pub positions: u64,
    pub rounds: u32,
    pub machine: Machine,
}

impl EqualSpeedRecord {
    #[must_use]
    pub fn is_within_tolerance(&self) -> bool {
        (self.speed.ratio - 1.0).abs() <= self.tolerance
    }
}

/// The speed of a network of some width.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WidthSpeed {
    pub l1: usize,
    #[serde(flatten)]
    pub speed: SpeedRatio,
}

/// Evaluations per second of one network divided by another's: the median over rounds in which both took turns, and its
/// 95% interval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedRatio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

impl SpeedRatio {
    /// Whether the rounds differ too much to rely on their median, as [`SpeedEntry::is_noisy`].
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        self.high - self.low > 2.0 * SpeedEntry::NOISY_SHARE * self.ratio
    }
}
