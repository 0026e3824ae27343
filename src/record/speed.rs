//! Results of `fsbench measure speed`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Machine, SpeedRatio};
use crate::features::{EncoderKind, Identity};

/// The speed of one evaluation strategy on one back end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedEntry {
    /// `refresh`, or an incremental strategy: `eager` or `lazy`, with or without a refresh cache. `known line` for
    /// lines whose moves are known beforehand.
    pub strategy: String,
    /// `scalar`, `avx2`, …
    pub back_end: String,
    /// Mean over the repetitions.
    pub evaluations_per_second: f64,
    /// Half-width of the 95% interval over the repetitions, in evaluations per second.
    pub interval: f64,
    /// Whether the repetitions differ too much to rely on their mean; usually the machine was busy with something else.
    pub noisy: bool,
    /// Where the time of an evaluation is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nanoseconds: Option<TimeBreakdown>,
    /// Rows of the feature transformer added or subtracted per evaluation.
    pub rows: f64,
    /// Bytes per row.
    pub row_bytes: usize,
}

impl SpeedEntry {
    /// A measurement is noisy if its half-width exceeds this share of the mean.
    pub const NOISY_SHARE: f64 = 0.1;

    /// The interval's half-width as a share of the mean.
    #[must_use]
    pub fn spread(&self) -> f64 {
        self.interval / self.evaluations_per_second
    }

    /// Whether the repetitions differ too much to rely on their mean.
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        self.spread() > SpeedEntry::NOISY_SHARE
    }
}

/// Nanoseconds per evaluation, by task. They add up to the whole time of an evaluation.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeBreakdown {
    /// Finding the features that a move adds and removes, for both perspectives.
    pub features: f64,
    /// Bookkeeping: copying the board, making the move on it, and what the strategy keeps of positions. `None` in
    /// records in which it is part of `features`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bookkeeping: Option<f64>,
    /// Adding and subtracting rows of the feature transformer.
    pub rows: f64,
    /// From the accumulators to the score.
    pub forward: f64,
}

impl TimeBreakdown {
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total_with_features(self.features)
    }

    /// The share of the time in which features are found.
    #[must_use]
    pub fn features_share(&self) -> f64 {
        self.features / self.total()
    }

    #[must_use]
    pub(crate) fn scaled(&self, factor: f64) -> TimeBreakdown {
        TimeBreakdown {
            features: factor * self.features,
            bookkeeping: self.bookkeeping.map(|time| factor * time),
            rows: factor * self.rows,
            forward: factor * self.forward,
        }
    }

    /// The time of an evaluation in an engine that finds features in `own` nanoseconds.
    #[must_use]
    pub fn total_with_features(&self, own: f64) -> f64 {
        own + self.bookkeeping.unwrap_or_default() + self.rows + self.forward
    }
}

/// An evaluation strategy on a back end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedSetup {
    /// How accumulators follow the moves.
    pub strategy: String,
    /// Instruction set of the network's arithmetic.
    pub back_end: String,
}

/// Result of `measure speed`: one thread plays through games and evaluates every position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedRecord {
    /// Name of the feature set.
    pub name: String,
    pub identity: Identity,
    /// How its features are found; `None` where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderKind>,
    /// The network's file, as the caller names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The first 16 hexadecimal digits of the BLAKE3 hash of the network's numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Positions that were evaluated.
    pub positions: u64,
    /// Every strategy on every back end, with the network as it is in its file.
    pub entries: Vec<SpeedEntry>,
    /// The fastest of `entries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<SpeedSetup>,
    /// Lines whose moves are known beforehand, on every back end: positions are evaluated together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_lines: Vec<SpeedEntry>,
    /// The same network with permuted FT neurons; `None` if the data leave no positions to find a permutation on.
    #[serde(rename = "arranged", default, skip_serializing_if = "Option::is_none")]
    pub ft_permuted: Option<FtPermutedSpeed>,
    /// Its speed relative to another network's; `None` if it was timed alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<SpeedBeside>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// A comparison with another network, in which both evaluate the same positions by turns, as in their files, each with
/// its fastest strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeedBeside {
    /// The other network's `digest`.
    pub digest: String,
    #[serde(flatten)]
    pub speed: SpeedRatio,
}

/// The speed of a network whose FT neurons were permuted so that more chunks of inputs are zero; its scores are the
/// same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FtPermutedSpeed {
    /// Number of positions that the permutation was found on, from other games than those evaluated.
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

    /// The record as if both networks had been timed together: all speeds by the factor that makes the ratio of both
    /// networks' speeds the one that was timed by turns, since a machine's speed may change from one record to the
    /// next. Half-widths of intervals become the ratio's. `base`: the record of the network that it was timed beside.
    #[must_use]
    pub fn calibrated(&self, base: &SpeedRecord) -> SpeedRecord {
        let mut record = self.clone();
        let Some(SpeedBeside { speed, .. }) = &self.beside else { return record };
        let [Some(own), Some(of_base)] = [self, base].map(SpeedRecord::fastest) else { return record };
        let factor = speed.ratio * of_base.evaluations_per_second / own.evaluations_per_second;
        let permuted = record.ft_permuted.as_mut().map(|permuted| &mut permuted.entries);
        for entries in [Some(&mut record.entries), Some(&mut record.known_lines), permuted].into_iter().flatten() {
            for entry in entries {
                entry.evaluations_per_second *= factor;
                entry.interval = speed.half_width() * entry.evaluations_per_second;
                entry.noisy = entry.is_noisy();
                entry.nanoseconds = entry.nanoseconds.map(|times| times.scaled(1.0 / factor));
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(digest: &str, speeds: &[f64], beside: Option<(&str, f64)>) -> SpeedRecord {
        let nanoseconds = |speed: f64| {
            let part = 1e9 / (4.0 * speed);
            TimeBreakdown { features: part, bookkeeping: Some(part), rows: part, forward: part }
        };
        let entry = |speed: &f64| SpeedEntry {
            evaluations_per_second: *speed,
            interval: 0.5 * speed,
            noisy: true,
            nanoseconds: Some(nanoseconds(*speed)),
            ..SpeedEntry::default()
        };
        let speed = |ratio| SpeedRatio { ratio, low: 0.98 * ratio, high: 1.02 * ratio };
        SpeedRecord {
            name: digest.into(),
            identity: serde_json::from_value(serde_json::json!("0".repeat(64))).expect("an identity is a text"),
            encoder: None,
            network: None,
            digest: digest.into(),
            positions: 1,
            entries: speeds.iter().map(entry).collect(),
            best: None,
            known_lines: Vec::new(),
            ft_permuted: None,
            beside: beside.map(|(digest, ratio)| SpeedBeside { digest: digest.into(), speed: speed(ratio) }),
            machine: None,
        }
    }

    /// Timed when the machine was twice as slow, the set seems to be as fast as the first; by turns it is not.
    #[test]
    fn speeds_timed_at_another_time_follow_the_turns() {
        let first = record("first", &[1e6, 5e5], None);
        let other = record("other", &[1e6, 2e5], Some(("first", 0.5))).calibrated(&first);
        let speeds: Vec<f64> = other.entries.iter().map(|entry| entry.evaluations_per_second).collect();
        assert_eq!(speeds, [5e5, 1e5]);
        for entry in &other.entries {
            let total = entry.nanoseconds.expect("timed").total();
            assert!((total * entry.evaluations_per_second - 1e9).abs() < 1.0, "{entry:?}");
            assert!((entry.spread() - 0.02).abs() < 1e-9 && !entry.noisy, "{entry:?}");
        }
        assert_eq!(first.calibrated(&first), first, "timed alone");
    }
}
