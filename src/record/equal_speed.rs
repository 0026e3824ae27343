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
    /// The user's nanoseconds a move of finding features, of the set and of the reference, which took the place of
    /// measured ones.
    #[serde(default, skip_serializing_if = "no_figures")]
    pub own_features_ns: [Option<f64>; 2],
    /// The factor of all measured speeds that makes them agree with the user's cost of a node at the row's own width;
    /// `None` without such a figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_scale: Option<f64>,
    /// The fastest strategy of the set, and of the reference.
    pub strategies: [SpeedSetup; 2],
    /// Positions that were evaluated in turns.
    pub positions: u64,
    pub rounds: u32,
    pub machine: Machine,
}

const fn no_figures(figures: &[Option<f64>; 2]) -> bool {
    matches!(figures, [None, None])
}

impl EqualSpeedRecord {
    /// The speed at a width, if it was timed.
    #[must_use]
    pub fn speed_at(&self, l1: usize) -> Option<SpeedRatio> {
        self.tried.iter().find(|tried| tried.l1 == l1).map(|tried| tried.speed)
    }

    /// Whether the speeds go by figures of the user's.
    #[must_use]
    pub const fn is_by_figures(&self) -> bool {
        self.own_scale.is_some() || !no_figures(&self.own_features_ns)
    }

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
    /// The median.
    pub ratio: f64,
    /// Lower bound of its 95% interval.
    pub low: f64,
    /// Upper bound of its 95% interval.
    pub high: f64,
}

impl SpeedRatio {
    /// Half-width of the interval, as a share of the ratio.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / (2.0 * self.ratio)
    }

    /// Whether the rounds differ too much to rely on their median, as [`SpeedEntry::is_noisy`].
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        self.half_width() > SpeedEntry::NOISY_SHARE
    }
}
