//! How many different positions there are, in bounded memory: all keys are kept while they fit; beyond that only those
//! below a threshold that is halved whenever the memory is full (Wegman's adaptive sampling; Flajolet 1990).

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// Repeated positions.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Different positions: board, side to move, castling rights, en passant square.
    pub distinct: u64,
    /// Whether that is counted, or estimated.
    pub exact: bool,
    /// Half of the 95% interval of an estimate.
    pub plus_minus: u64,
    /// Share of the samples that repeat another.
    pub share: f64,
}

/// Keys kept at most: some 70 MB.
const MOST: usize = 1 << 22;

pub struct DistinctCounter {
    keys: HashSet<u64>,
    most: usize,
    halvings: u32,
}

impl Default for DistinctCounter {
    fn default() -> DistinctCounter {
        DistinctCounter::with_room(MOST)
    }
}

impl DistinctCounter {
    fn with_room(most: usize) -> DistinctCounter {
        DistinctCounter { keys: HashSet::new(), most, halvings: 0 }
    }

    /// Keys from here on are not wanted.
    pub fn below(&self) -> u64 {
        u64::MAX >> self.halvings
    }

    /// `keys` are uniform hashes of positions.
    pub fn extend(&mut self, keys: Vec<u64>) {
        for key in keys {
            if key < self.below() {
                self.keys.insert(key);
            }
            if self.keys.len() > self.most {
                self.halvings += 1;
                let below = self.below();
                self.keys.retain(|key| *key < below);
            }
        }
    }

    pub fn duplicates(&self, samples: u64) -> Duplicates {
        let kept = self.keys.len() as f64;
        let scale = 2f64.powi(self.halvings as i32);
        let distinct = (kept * scale).round() as u64;
        // The number kept is binomial.
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
    fn counted_while_they_fit_and_estimated_beyond() {
        let draws = Seed(4).draws("distinct");
        let check = |room, keys: u64, samples: u64| {
            let mut distinct = DistinctCounter::with_room(room);
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
