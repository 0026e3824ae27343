//! Small cases by hand; `statistics/coverage.rs` simulates experiments.

use super::*;

fn table(rows: &[&[f64]]) -> Vec<BySeed> {
    rows.iter().map(|row| (1..).zip(row.iter().copied()).collect()).collect()
}

/// Differences of two seeds: s₁₂² = 2, s₁₃² = 8, s₂₃² = 2, so that σ² is (2 + 8 − 2) / 2 = 4, −2 (none) and 4.
#[test]
fn variances_by_hand() {
    let sets = table(&[&[0.0, 2.0], &[0.0, 0.0], &[0.0, -2.0]]);
    let noise = SeedNoise::of(&sets).expect("three sets");
    assert_eq!((noise.seeds, noise.common, &noise.of_sets[..]), (2, 2.0, &[4.0, 0.0, 4.0][..]));
    let of_pair = noise.of_pair(0, 1, 2);
    assert_eq!(of_pair.variance(), 4.0 + 2.0);
    // t(1) = 12.7062 for the first set's own, t(2) = 4.3027 for the common variance.
    let squared = of_pair.squared_half_width(Level::SINGLE, 2);
    let expected = (12.7062f64.powi(2) * 4.0 + 4.3027f64.powi(2) * 2.0) / 2.0;
    assert!((squared / expected - 1.0).abs() < 1e-4, "{squared} {expected}");
    assert!(SeedNoise::of(&sets[..2]).is_none() && SeedNoise::of(&table(&[&[1.0], &[1.0], &[1.0]])).is_none());
}

/// An effect that a seed has on all sets alike is no noise.
#[test]
fn what_sets_share_cancels() {
    let alone = table(&[&[1.0, 2.0, 4.0], &[2.0, 2.0, 2.0], &[0.0, 5.0, 1.0], &[1.0, 1.0, 0.0]]);
    let shared = alone.iter().map(|set| set.iter().map(|(seed, value)| (*seed, value + 10.0 * *seed as f64)).collect());
    let alone = SeedNoise::of(&alone).expect("sets");
    let shared = SeedNoise::of(&shared.collect::<Vec<_>>()).expect("sets");
    assert!((alone.common - shared.common).abs() < 1e-9);
    assert!(alone.of_sets.iter().zip(&shared.of_sets).all(|(own, other)| (own - other).abs() < 1e-9));
}

/// Two sets have their own variance only; a seed that others lack counts for the mean, not for the variance.
#[test]
fn pairs_with_other_seeds() {
    let own = PairNoise::of_differences(&[1.0, 2.0, 3.0]).expect("three seeds");
    assert!((own.squared_half_width(Level::SINGLE, 3) - 4.3027f64.powi(2) / 3.0).abs() < 1e-2);
    assert!(PairNoise::of_differences(&[1.0]).is_none());
    let mut sets = table(&[&[0.0, 2.0, 1.0], &[0.0, 0.0, 0.0], &[0.0, -2.0, 0.0]]);
    let all = SeedNoise::of(&sets).expect("three seeds").of_pair(0, 1, 3);
    sets[2].remove(&3);
    let noise = SeedNoise::of(&sets).expect("two seeds").of_pair(0, 1, 3);
    assert_eq!((all.missing, noise.missing), (0, 1));
    // The degrees of freedom are two seeds'.
    let expected = (12.7062f64.powi(2) * 4.0 + 4.3027f64.powi(2) * 2.0) / 3.0;
    assert!((noise.squared_half_width(Level::SINGLE, 3) / expected - 1.0).abs() < 1e-4);
}

#[test]
fn differences_to_the_first_set() {
    let mut sets = table(&[&[1.0, 2.0], &[3.0, 5.0]]);
    let found = differences_to_first(&sets);
    let plain = Estimate::over(&[2.0, 3.0]).expect("two seeds");
    assert_eq!(found[0], None);
    let difference = found[1].expect("two seeds");
    assert_eq!((difference.mean, difference.count), (plain.mean, 2));
    assert!((difference.interval.expect("two") - plain.interval.expect("two")).abs() < 1e-9);
    sets.push([(1, 0.0)].into());
    sets.push([(7, 0.0)].into());
    let found = differences_to_first(&sets);
    assert_eq!(found[2], Some(Estimate { mean: -1.0, interval: None, count: 1 }));
    assert_eq!(found[3], None);
    assert!(found[1].expect("two seeds").interval > difference.interval, "three statements instead of one");
    assert!(differences_to_first(&[]).is_empty());
}
