//! Thinning samples to a target distribution, a number of samples, or both.

use super::drop_reason::{BuildCounts, DropReason};
use super::options::{Balance, BalanceBy};
use super::temp_samples::TempSamples;
use crate::data::{DataError, Record};
use crate::units::{Draws, Seed, SortedMap, sort_by, sort_by_key};

/// Thins the samples to the distribution `balance`, to at most `limit` samples, or both.
///
/// With a distribution alone, the frequencies are exact and as many samples are kept as that allows. With a limit too,
/// as many samples are kept as it says: values that are too rare keep all their samples, and the other values share the
/// rest in proportion.
pub fn thin(
    mut samples: TempSamples,
    balance: Option<&Balance>,
    limit: Option<u64>,
    seed: Seed,
    counts: &mut BuildCounts,
) -> Result<TempSamples, DataError> {
    let value_of = |record: &Record| match balance.map(|balance| balance.by) {
        Some(BalanceBy::Ply) => record.ply().0,
        Some(BalanceBy::Pieces) => record.board().count() as u16,
        None => 0,
    };
    let mut remaining: SortedMap<u16, u64> = SortedMap::new();
    samples.for_each(|_, record| *remaining.get_or_default(value_of(record)) += 1)?;
    let weight = |value: &u16| match balance.and_then(|balance| balance.weights.as_ref()) {
        Some(weights) => weights.get(value).copied().unwrap_or(0.0),
        None => 1.0,
    };
    let mut quotas = quotas(&remaining, weight, limit, balance.is_some(), seed.draws("quotas"));
    let draws = seed.draws("thin");
    // Selection sampling: each sample is kept with probability quota / remaining samples of its value.
    samples.retain(DropReason::Thinned, counts, |number, record| {
        let value = value_of(record);
        let (Some(remaining), Some(quota)) = (remaining.get_mut(&value), quotas.get_mut(&value)) else { return false };
        let keep = (u128::from(draws.at(number)) * u128::from(*remaining)) >> 64 < u128::from(*quota);
        *remaining -= 1;
        *quota -= u64::from(keep);
        keep
    })
}

/// A value of the distribution with the number of its samples and its relative frequency.
struct WeightedValue {
    value: u16,
    count: f64,
    weight: f64,
}

impl WeightedValue {
    /// How many of its samples are kept, before rounding.
    fn target(&self, scale: f64) -> f64 {
        (scale * self.weight).min(self.count)
    }
}

/// How many samples of each value are kept. With `exact` and without a limit, the quotas have the ratios of the
/// weights.
fn quotas(
    available: &SortedMap<u16, u64>,
    weight: impl Fn(&u16) -> f64,
    limit: Option<u64>,
    exact: bool,
    draws: Draws,
) -> SortedMap<u16, u64> {
    let weighted = available.iter().map(|(value, count)| WeightedValue {
        value: *value,
        count: *count as f64,
        weight: weight(value),
    });
    let values: Vec<WeightedValue> = weighted.filter(|value| value.weight > 0.0).collect();
    let scale = match limit {
        Some(limit) => return quotas_of_total(values, limit, draws),
        None if exact => values.iter().map(|value| value.count / value.weight).fold(f64::INFINITY, f64::min),
        None => f64::INFINITY,
    };
    values.iter().map(|value| (value.value, value.target(scale).round() as u64)).collect()
}

/// Quotas that add up to `total`, or to all samples where they are fewer. Each is its target, rounded up or down: the
/// values come in random order, and the sum of the targets so far is rounded, so that no value is favoured.
fn quotas_of_total(mut values: Vec<WeightedValue>, total: u64, draws: Draws) -> SortedMap<u16, u64> {
    let total = total.min(values.iter().map(|value| value.count as u64).sum::<u64>());
    let scale = scale_for_total(&values, total as f64);
    sort_by_key(&mut values, &|value| draws.at(u64::from(value.value)));
    let mut quotas = SortedMap::new();
    let mut sum = 0;
    let mut targets = 0.0f64;
    for value in &values {
        targets += value.target(scale);
        let quota = (targets.round() as u64).min(total).saturating_sub(sum).min(value.count as u64);
        quotas.insert(value.value, quota);
        sum += quota;
    }
    // Where the sum of the targets is inexact.
    for value in &values {
        let quota = quotas.get_or_default(value.value);
        let more = (total - sum).min(value.count as u64 - *quota);
        *quota += more;
        sum += more;
    }
    quotas
}

/// The scale at which the quotas add up to `total`; infinite where all samples together are fewer.
fn scale_for_total(values: &[WeightedValue], total: f64) -> f64 {
    // Above its scale of exhaustion, count / weight, a value contributes its count and no more.
    let mut by_exhaustion: Vec<(f64, &WeightedValue)> =
        values.iter().map(|value| (value.count / value.weight, value)).collect();
    sort_by(&mut by_exhaustion, &|a, b| a.0.total_cmp(&b.0));
    let mut exhausted = 0.0;
    let mut open_weight = by_exhaustion.iter().map(|(_, value)| value.weight).sum::<f64>();
    for (exhaustion, value) in by_exhaustion {
        if exhausted + exhaustion * open_weight >= total {
            return (total - exhausted) / open_weight;
        }
        exhausted += value.count;
        open_weight -= value.weight;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_follow_the_weights() {
        let available = SortedMap::from([(2, 10), (3, 100), (4, 1000)]);
        let check = |weights: [f64; 3], limit, exact, expected: [u64; 3]| {
            let weight = |value: &u16| weights[usize::from(value - 2)];
            let quotas = quotas(&available, weight, limit, exact, Seed(0).draws("quotas"));
            let found: Vec<u64> = [2, 3, 4].iter().map(|value| quotas.get(value).copied().unwrap_or(0)).collect();
            assert_eq!(found, expected, "{weights:?} {limit:?}");
        };
        check([1.0; 3], None, false, [10, 100, 1000]);
        check([1.0; 3], None, true, [10, 10, 10]);
        check([1.0, 2.0, 10.0], None, true, [10, 20, 100]);
        check([0.0, 1.0, 1.0], None, true, [0, 100, 100]);
        check([1.0; 3], Some(30), true, [10, 10, 10]);
        check([1.0; 3], Some(210), true, [10, 100, 100]);
        check([1.0; 3], Some(410), true, [10, 100, 300]);
        check([1.0; 3], Some(5000), true, [10, 100, 1000]);
    }

    #[test]
    fn quotas_add_up_and_favour_no_value() {
        let available: SortedMap<u16, u64> = (0..200).map(|value| (value, 10)).collect();
        for seed in 0..20 {
            let draws = Seed(seed).draws("quotas");
            for (limit, sum) in [(0, 0u64), (50, 50), (100, 100), (500, 500), (1999, 1999), (5000, 2000)] {
                let quotas = quotas(&available, |_| 1.0, Some(limit), true, draws);
                assert_eq!(quotas.values().sum::<u64>(), sum, "seed {seed}");
                let near = sum / 200..=sum.div_ceil(200);
                assert!(quotas.values().all(|quota| near.contains(quota)), "seed {seed}: {quotas:?}");
                let low_half = quotas.iter().filter(|(value, _)| **value < 100);
                let of_low_half = low_half.map(|(_, quota)| *quota).sum::<u64>();
                assert!(of_low_half.abs_diff(sum / 2) <= 25, "seed {seed}: {of_low_half} of {sum}");
            }
            // Weights of 1 and 3 in turn.
            let weight = |value: &u16| if value.is_multiple_of(2) { 1.0 } else { 3.0 };
            let quotas = quotas(&available, weight, Some(100), true, draws);
            assert_eq!(quotas.values().sum::<u64>(), 100, "seed {seed}");
            let heavy = quotas.iter().filter(|(value, _)| **value % 2 == 1);
            let of_heavy = heavy.map(|(_, quota)| *quota).sum::<u64>();
            assert!((60..=90).contains(&of_heavy), "seed {seed}: {of_heavy}");
        }
    }
}
