//! Counts by value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::SortedMap;

/// How often each value occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Histogram(pub SortedMap<i32, u64>);

impl Histogram {
    pub fn add(&mut self, value: i32, count: u64) {
        *self.0.get_or_default(value) += count;
    }

    pub fn merge(&mut self, other: &Histogram) {
        other.0.iter().for_each(|(value, count)| self.add(*value, *count));
    }

    /// Number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The mean value; NaN for an empty histogram.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.0.iter().map(|(value, count)| f64::from(*value) * *count as f64).sum();
        sum / self.count() as f64
    }

    /// The smallest value such that at least the share `q` of all values do not exceed it; `None` for an empty
    /// histogram.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<i32> {
        let rank = q * self.count() as f64;
        let mut cumulative = 0;
        self.0.iter().find_map(|(value, count)| {
            cumulative += count;
            (cumulative as f64 >= rank).then_some(*value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let histogram = Histogram(SortedMap::from([(1, 1), (2, 2), (10, 1)]));
        let check = |q, expected| assert_eq!(histogram.quantile(q), Some(expected), "{q}");
        check(0.0, 1);
        check(0.25, 1);
        check(0.5, 2);
        check(0.75, 2);
        check(0.9, 10);
        check(1.0, 10);
        assert_eq!((histogram.mean(), histogram.count()), (3.75, 4));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
