//! The noise of training, set by set: how much a set's result changes with the training seed.

use super::distributions::t_quantile;
use super::{Estimate, Level};
use crate::units::SortedMap;

/// Results of a feature set by training seed.
pub type BySeed = SortedMap<u64, f64>;

/// The noise of several sets that were trained with the same seeds.
///
/// In the table yₖₛ = μₖ + βₛ + εₖₛ of K sets and S seeds, the variance σₖ² of εₖₛ differs from set to set. The
/// difference of two sets over the seeds has the sample variance sₖₗ², with the expectation σₖ² + σₗ². All pairs
/// together estimate the mean of the σₖ² at (K−1)(S−1) degrees of freedom, and each set's own is, without bias (Grubbs
/// 1948), (Σₗ sₖₗ² − Σ sᵢⱼ² / (K−1)) / (K−2), at about S−1 degrees.
///
/// A set contributes to a squared half-width the larger of two: the common variance with its quantile, corrected for
/// all statements, and its own variance with the far larger quantile of S−1 degrees, at [`Level::of_own_noise`]. The
/// common variance alone is too small for a set that is noisier than the others; own variances alone would, at three
/// seeds, be so uncertain that nothing is ever distinguished. Simulated with 2 to 12 sets, 2 to 5 seeds and deviations
/// of 1 to 10, all statements hold together in at least 94%, and where all sets are equally noisy, the intervals of
/// three seeds are 1.22 to 1.29 times as wide as with the common variance (`scripts/coverage.sh`).
pub(super) struct SeedNoise {
    seeds: usize,
    /// Mean variance of a set.
    common: f64,
    /// Each set's own.
    of_sets: Vec<f64>,
}

impl SeedNoise {
    /// From the seeds that trained every set; `None` if fewer than three sets or two seeds are left.
    pub(super) fn of(sets: &[BySeed]) -> Option<SeedNoise> {
        let is_common = |seed: &&u64| sets.iter().all(|set| set.contains_key(seed));
        let common: Vec<u64> = sets.first()?.keys().filter(is_common).copied().collect();
        let count = sets.len();
        let seeds = common.len();
        if count < 3 || seeds < 2 {
            return None;
        }
        let mut of_pairs = vec![0.0; count];
        let mut total = 0.0;
        for first in 0..count {
            for second in first + 1..count {
                let differences: Vec<f64> = common.iter().map(|seed| sets[first][seed] - sets[second][seed]).collect();
                let variance = sample_variance(&differences);
                of_pairs[first] += variance;
                of_pairs[second] += variance;
                total += variance;
            }
        }
        let k = count as f64;
        let own = |of_pairs: &f64| ((of_pairs - total / (k - 1.0)) / (k - 2.0)).max(0.0);
        Some(SeedNoise { seeds, common: total / (k * (k - 1.0)), of_sets: of_pairs.iter().map(own).collect() })
    }

    /// The noise of the difference of two sets that have `seeds` seeds in common.
    pub(super) fn of_pair(&self, first: usize, second: usize, seeds: usize) -> PairNoise {
        PairNoise {
            missing: seeds - self.seeds,
            source: VarianceSource::Table {
                sets: self.of_sets.len(),
                common: self.common,
                own: [self.of_sets[first], self.of_sets[second]],
            },
        }
    }
}

/// The noise of the difference of two sets, for one seed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct PairNoise {
    /// Seeds that trained both, but not all of the table's sets.
    missing: usize,
    source: VarianceSource,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum VarianceSource {
    /// The pair's own sample variance.
    Pair(f64),
    /// A table of more sets.
    Table { sets: usize, common: f64, own: [f64; 2] },
}

impl PairNoise {
    /// From the differences of two sets alone; `None` with fewer than two.
    pub(super) fn of_differences(differences: &[f64]) -> Option<PairNoise> {
        (differences.len() > 1)
            .then(|| PairNoise { missing: 0, source: VarianceSource::Pair(sample_variance(differences)) })
    }

    /// The variance of one seed's difference.
    pub(super) fn variance(&self) -> f64 {
        match self.source {
            VarianceSource::Pair(variance) => variance,
            VarianceSource::Table { common, own, .. } => own.iter().map(|own| own.max(common)).sum(),
        }
    }

    /// The square of half the width of the interval around the mean difference over `seeds` seeds.
    pub(super) fn squared_half_width(&self, level: Level, seeds: usize) -> f64 {
        let degrees = seeds as f64 - self.missing as f64 - 1.0;
        let squared = match self.source {
            VarianceSource::Pair(variance) => t_quantile(level.each(), degrees).powi(2) * variance,
            VarianceSource::Table { sets, common, own } => {
                let of_common = t_quantile(level.each(), degrees * (sets as f64 - 1.0)).powi(2) * common;
                let quantile = t_quantile(level.of_own_noise(degrees + 1.0), degrees).powi(2);
                own.iter().map(|own| of_common.max(quantile * own)).sum()
            }
        };
        squared / seeds as f64
    }
}

/// The differences of all sets to the first over the seeds that both have, with intervals that hold together with 95%
/// confidence; `None` for the first itself and for a set without a common seed.
#[must_use]
pub fn differences_to_first(sets: &[BySeed]) -> Vec<Option<Estimate>> {
    let noise = SeedNoise::of(sets);
    let level = Level::together(sets.len().saturating_sub(1), 1);
    let difference = |set: usize| {
        let both: Vec<f64> = sets[set].iter().filter_map(|(seed, value)| Some(value - sets[0].get(seed)?)).collect();
        if set == 0 || both.is_empty() || both.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let of_pair = PairNoise::of_differences(&both)
            .map(|own| noise.as_ref().map_or(own, |noise| noise.of_pair(set, 0, both.len())));
        Some(Estimate {
            mean: both.iter().sum::<f64>() / both.len() as f64,
            interval: of_pair.map(|noise| noise.squared_half_width(level, both.len()).sqrt()),
            count: both.len(),
        })
    };
    (0..sets.len()).map(difference).collect()
}

fn sample_variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests;
