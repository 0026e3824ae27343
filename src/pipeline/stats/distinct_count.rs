//! Counts distinct positions in bounded memory. All keys are kept while they fit; then only the keys below a threshold,
//! which is halved whenever the memory is full (Wegman's adaptive sampling; Flajolet 1990).

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many positions are distinct, and how many repeat.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duplicates {
    /// Distinct positions, by board, side to move, castling rights and en passant square.
    pub distinct: u64,
    /// Whether `distinct` is counted; otherwise it is estimated.
    pub exact: bool,
    /// Half the width of the estimate's 95% interval.
    pub plus_minus: u64,
    /// Share of the samples that repeat an earlier position.
    pub share: f64,
}

/// Most keys kept: about 70 MB.
const MAX_KEYS: usize = 1 << 22;

pub struct DistinctCounter {
    keys: HashSet<u64>,
    capacity: usize,
    halvings: u32,
}

impl Default for DistinctCounter {
    fn default() -> DistinctCounter {
        DistinctCounter::with_capacity(MAX_KEYS)
    }
}

impl DistinctCounter {
    fn with_capacity(capacity: usize) -> DistinctCounter {
        DistinctCounter { keys: HashSet::new(), capacity, halvings: 0 }
    }

    /// Keys from this value on are ignored.
    pub fn threshold(&self) -> u64 {
        u64::MAX >> self.halvings
    }

    /// Adds positions; `keys` are uniform hashes of them.
    pub fn extend(&mut self, keys: Vec<u64>) {
        for key in keys {
            if key < self.threshold() {
                self.keys.insert(key);
            }
            if self.keys.len() > self.capacity {
                self.halvings += 1;
                let threshold = self.threshold();
                self.keys.retain(|key| *key < threshold);
            }
        }
    }

    pub fn duplicates(&self, samples: u64) -> Duplicates {
        let kept = self.keys.len() as f64;
        let scale = 2f64.powi(self.halvings as i32);
        let distinct = (kept * scale).round() as u64;
        // The number of keys kept has a binomial distribution.
        let plus_minus = 1.96 * scale * (kept * (1.0 - 1.0 / scale)).sqrt();
        let distinct = distinct.min(samples);
        let share = 1.0 - distinct as f64 / samples.max(1) as f64;
        Duplicates { distinct, exact: self.halvings == 0, plus_minus: plus_minus.round() as u64, share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn keys_are_counted_while_they_fit_and_estimated_beyond() {
        let draws = Seed(4).draws("distinct");
        let check = |capacity, keys: u64, samples: u64| {
            let mut distinct = DistinctCounter::with_capacity(capacity);
            distinct.extend((0..samples).map(|i| draws.at(i % keys)).collect());
            distinct.duplicates(samples)
        };
        let exact = check(1000, 900, 3000);
        assert_eq!((exact.distinct, exact.exact, exact.plus_minus), (900, true, 0));
        assert!((exact.share - 0.7).abs() < 1e-9);
        let estimate = check(1000, 50_000, 60_000);
        assert!(!estimate.exact);
        assert!(estimate.distinct.abs_diff(50_000) < 2 * estimate.plus_minus, "{estimate:?}");
        assert!(estimate.plus_minus < 10_000);
    }
}
