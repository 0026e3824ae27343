//! What can only be decided once all samples are known: quantiles, duplicates, target distributions, the final order.

use std::collections::BTreeMap;
use std::path::Path;

use rand::seq::SliceRandom;

use super::buckets::{Buckets, buckets_for};
use super::drop_reason::{BuildCounts, DropReason};
use super::options::{Balance, BalanceBy, Dedup};
use super::temp_samples::TempSamples;
use crate::data::{DataError, Record};
use crate::units::Seed;

/// Drops, ply by ply, positions with fewer legal moves than the quantile of all at that ply. The number of legal moves
/// stands in the records' scratch.
pub fn above_quantile(
    mut samples: TempSamples,
    quantile: f64,
    tally: &mut BuildCounts,
) -> Result<TempSamples, DataError> {
    let mut histograms: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    samples.each(|_, record| {
        let histogram = histograms.entry(record.ply().0).or_insert_with(|| vec![0; 256]);
        histogram[usize::from(record.scratch()).min(255)] += 1;
    })?;
    let least: BTreeMap<u16, u16> =
        histograms.iter().map(|(ply, counts)| (*ply, least_moves(counts, quantile))).collect();
    keep(samples, DropReason::FewMoves, tally, |_, record| {
        least.get(&record.ply().0).is_none_or(|least| record.scratch() >= *least)
    })
}

/// The largest m such that at most the share `quantile` has fewer than m; `counts[m]` have just m.
fn least_moves(counts: &[u64], quantile: f64) -> u16 {
    let all: u64 = counts.iter().sum();
    let mut fewer = 0;
    for (moves, count) in counts.iter().enumerate() {
        fewer += count;
        if fewer as f64 > quantile * all as f64 {
            return moves as u16;
        }
    }
    counts.len() as u16
}

/// Keeps the first of the samples that are the same.
pub fn unique(mut samples: TempSamples, dedup: Dedup, tally: &mut BuildCounts) -> Result<TempSamples, DataError> {
    #[derive(Copy, Clone, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Entry {
        key: u64,
        number: u64,
    }
    let count = buckets_for::<Entry>(samples.count());
    let bucket_of = |key: u64| ((u128::from(key) * count as u128) >> 64) as usize;
    let key_of = |record: &Record| record.key(dedup == Dedup::Move);
    let mut sizes = vec![0; count];
    samples.each(|_, record| sizes[bucket_of(key_of(record))] += 1)?;
    let mut buckets = Buckets::create(samples.output(), &sizes)?;
    samples.blocks(|first, records| {
        records.iter().zip(first..).try_for_each(|(record, number)| {
            let key = key_of(record);
            buckets.push(bucket_of(key), &Entry { key, number })
        })
    })?;
    let mut repeated = vec![0u64; samples.count().div_ceil(64) as usize];
    for bucket in 0..count {
        let mut entries = buckets.read(bucket)?;
        entries.sort_unstable_by_key(|entry| (entry.key, entry.number));
        for pair in entries.windows(2).filter(|pair| pair[0].key == pair[1].key) {
            repeated[(pair[1].number / 64) as usize] |= 1 << (pair[1].number % 64);
        }
    }
    keep(samples, DropReason::Duplicate, tally, |number, _| repeated[(number / 64) as usize] >> (number % 64) & 1 == 0)
}

/// Thins the samples to a target distribution, a number of samples, or both.
///
/// With a distribution alone, as many are kept as can be with the frequencies exact. With a number too, values that are
/// too rare are kept whole, and the others share what is left in proportion.
pub fn thin(
    mut samples: TempSamples,
    target: Option<&Balance>,
    limit: Option<u64>,
    seed: Seed,
    tally: &mut BuildCounts,
) -> Result<TempSamples, DataError> {
    let key = |record: &Record| match target.map(|target| target.by) {
        Some(BalanceBy::Ply) => record.ply().0,
        Some(BalanceBy::Pieces) => record.board().count() as u16,
        None => 0,
    };
    let mut found: BTreeMap<u16, u64> = BTreeMap::new();
    samples.each(|_, record| *found.entry(key(record)).or_default() += 1)?;
    let weight = |key: &u16| match target.and_then(|target| target.weights.as_ref()) {
        Some(weights) => weights.get(key).copied().unwrap_or(0.0),
        None => 1.0,
    };
    let exact = target.is_some();
    let mut wanted = quotas(&found, weight, limit, exact);
    let draws = seed.draws("thin");
    // Selection sampling: each of those left is taken with the result_probability that the quota still needs it.
    keep(samples, DropReason::Thinned, tally, |number, record| {
        let key = key(record);
        let (Some(left), Some(wanted)) = (found.get_mut(&key), wanted.get_mut(&key)) else { return false };
        let taken = (u128::from(draws.at(number)) * u128::from(*left)) >> 64 < u128::from(*wanted);
        *left -= 1;
        *wanted -= u64::from(taken);
        taken
    })
}

/// How many samples of each key are kept.
fn quotas(
    found: &BTreeMap<u16, u64>,
    weight: impl Fn(&u16) -> f64,
    samples: Option<u64>,
    exact: bool,
) -> BTreeMap<u16, u64> {
    let parts: Vec<(u16, f64, f64)> =
        found.iter().map(|(key, count)| (*key, *count as f64, weight(key))).filter(|part| part.2 > 0.0).collect();
    let exactly = parts.iter().map(|(_, count, weight)| count / weight).fold(f64::INFINITY, f64::min);
    let scale = match samples {
        None if exact => exactly,
        None => f64::INFINITY,
        // Where the quotas, each at most what was found, add up to the number.
        Some(samples) => {
            let mut limits: Vec<_> = parts.iter().map(|(_, count, weight)| (count / weight, *count, *weight)).collect();
            limits.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (mut full, mut weights) = (0.0, limits.iter().map(|limit| limit.2).sum::<f64>());
            let mut scale = f64::INFINITY;
            for (limit, count, weight) in limits {
                if full + limit * weights >= samples as f64 {
                    scale = (samples as f64 - full) / weights;
                    break;
                }
                full += count;
                weights -= weight;
            }
            scale
        }
    };
    let mut left = samples.unwrap_or(u64::MAX);
    let mut quota = |(key, count, weight): &(u16, f64, f64)| {
        let quota = ((scale * weight).min(*count).round() as u64).min(left);
        left -= quota;
        (*key, quota)
    };
    parts.iter().map(&mut quota).collect()
}

fn keep(
    samples: TempSamples,
    why: DropReason,
    tally: &mut BuildCounts,
    mut keep: impl FnMut(u64, &Record) -> bool,
) -> Result<TempSamples, DataError> {
    let before = samples.count();
    let kept = samples.filter_map(|number, record| keep(number, &record).then_some(record))?;
    tally.drop(why, before - kept.count());
    Ok(kept)
}

/// Hands all samples to `write`, in random order where `shuffle` gives a seed. A random order is dealt into buckets on
/// disk, then each bucket is shuffled in memory: every order is equally likely, and only the seed and the samples
/// decide.
pub fn in_order(
    mut samples: TempSamples,
    shuffle: Option<Seed>,
    mut write: impl FnMut(&[Record]) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let Some(seed) = shuffle else { return samples.blocks(|_, records| write(records)) };
    let count = buckets_for::<Record>(samples.count());
    let draws = seed.draws("shuffle");
    let bucket_of = |number: u64| draws.below(number, count as u32) as usize;
    let mut sizes = vec![0; count];
    (0..samples.count()).for_each(|number| sizes[bucket_of(number)] += 1);
    let output: &Path = samples.output();
    let mut buckets = Buckets::create(output, &sizes)?;
    samples.blocks(|first, records| {
        records.iter().zip(first..).try_for_each(|(record, number)| buckets.push(bucket_of(number), record))
    })?;
    for bucket in 0..count {
        let mut records = buckets.read(bucket)?;
        records.shuffle(&mut seed.stream("shuffle", bucket as u64));
        write(&records)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_follow_the_weights() {
        let found = BTreeMap::from([(2, 10), (3, 100), (4, 1000)]);
        let check = |weights: [f64; 3], samples, exact, expected: [u64; 3]| {
            let quotas = quotas(&found, |key| weights[usize::from(key - 2)], samples, exact);
            let found: Vec<u64> = [2, 3, 4].iter().map(|key| quotas.get(key).copied().unwrap_or(0)).collect();
            assert_eq!(found, expected, "{weights:?} {samples:?}");
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
    fn quantiles_of_legal_moves() {
        let check = |counts: &[u64], quantile, expected| {
            assert_eq!(least_moves(counts, quantile), expected, "{counts:?} {quantile}");
        };
        check(&[0, 1, 1, 1, 1], 0.0, 1);
        check(&[0, 1, 1, 1, 1], 0.25, 2);
        check(&[0, 1, 1, 1, 1], 0.5, 3);
        check(&[0, 0, 10, 1, 1], 0.5, 2);
    }
}
