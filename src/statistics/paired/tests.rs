//! Small cases by hand, and the coverage of simulated experiments.

use rand::RngExt;

use super::*;
use crate::statistics::{CONFIDENCE, Z_95};
use crate::units::Seed;

fn sums(seeds: &[&[f64]]) -> SeedSums {
    (1..).zip(seeds.iter().map(|sums| sums.to_vec())).collect()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{found} instead of {expected}");
}

/// Two seeds and three games of one sample: x = [[1, 3, 5], [2, 2, 2]], with the seeds' means 3 and 2, the games' 1.5,
/// 2.5, 3.5 and the mean 2.5.
#[test]
fn components_by_hand() {
    let a = sums(&[&[2.0, 5.0, 8.0], &[4.0, 3.0, 3.0]]);
    let b = sums(&[&[1.0, 2.0, 3.0], &[2.0, 1.0, 1.0]]);
    let sets = PairedSets::new(&[1.0; 3], &[a, b], Scale::Linear).expect("three games");
    let found = sets.difference(0, 1).expect("two seeds");
    assert_eq!((found.value, found.seeds, found.games), (2.5, 2, 3));
    // MS(games) = 2 · (1 + 0 + 1) / 2 = 2; the residuals are ±1, 0, ∓1, so MS(rest) = 4 / 2 = 2.
    close(found.between_seeds.expect("two seeds").variance(), 0.5);
    close(found.by_games, 2.0 / 3.0);
    close(found.between_games, 0.0);
    // Only seeds remain: t at one degree of freedom, 12.7062, times √(0.5 / 2).
    assert!((found.half_width(Level::SINGLE) - 12.7062 * 0.5).abs() < 1e-3);
    assert_eq!(sets.difference(1, 0).expect("two seeds").value, -2.5);
    assert!(sets.difference(0, 2).is_none());
}

/// With one seed, the interval is a ratio's of sums with games as clusters, and lacks the seeds.
#[test]
fn one_seed_by_hand() {
    let samples = [1.0, 2.0, 3.0, 2.0];
    let a = [2.0, 3.0, 4.0, 5.0];
    let b = [1.0, 1.0, 5.0, 1.0];
    let sets = PairedSets::new(&samples, &[sums(&[&a]), sums(&[&b])], Scale::Linear).expect("four games");
    let found = sets.difference(0, 1).expect("a seed");
    let value = (14.0 - 8.0) / 8.0;
    close(found.value, value);
    let squares: f64 = (0..4).map(|game| (a[game] - b[game] - value * samples[game]).powi(2)).sum();
    close(found.between_games, 4.0 / 3.0 * squares / 64.0);
    assert!((found.half_width(Level::SINGLE) - 3.1824 * found.between_games.sqrt()).abs() < 1e-4);
    let outlook = found.outlook(Level::SINGLE);
    assert_eq!((found.standard_errors().0, outlook.dominant, outlook.more_seeds), (None, None, None));
    // Games without samples count for nothing.
    let with_empty = |sums: &[f64]| [sums, &[0.0]].concat();
    let same =
        PairedSets::new(&with_empty(&samples), &[sums(&[&with_empty(&a)]), sums(&[&with_empty(&b)])], Scale::Linear);
    assert_eq!(same.expect("four games").difference(0, 1), Some(found));
}

#[test]
fn ratios_are_compared_by_logarithms() {
    let samples = [10.0, 30.0, 20.0];
    let double: Vec<f64> = [3.0, 5.0, 9.0].map(|sum| 2.0 * sum).to_vec();
    let sets = [sums(&[&double, &double]), sums(&[&[3.0, 5.0, 9.0], &[3.0, 5.0, 9.0]])];
    let sets = PairedSets::new(&samples, &sets, Scale::Logarithmic).expect("three games");
    let found = sets.difference(0, 1).expect("two seeds");
    close(found.value, 2f64.ln());
    assert!(found.half_width(Level::SINGLE) < 1e-12, "twice as much in every game and seed: {found:?}");
    assert!(PairedSets::new(&samples, &[sums(&[&[0.0; 3]])], Scale::Logarithmic).is_none(), "ln 0");
    assert!(PairedSets::new(&[5.0, 0.0], &[sums(&[&[1.0, 0.0]])], Scale::Linear).is_none(), "one game");
}

#[test]
fn what_would_distinguish_a_pair() {
    let of = |value: f64, seeds: f64, by_games: f64, games: f64| PairedDifference {
        value,
        seeds: 3,
        games: 1_000,
        degrees: 999.0,
        between_seeds: PairNoise::of_differences(&[0.0, seeds.sqrt(), -seeds.sqrt()]),
        by_games,
        between_games: games,
    };
    // Seeds alone: |value| = t √(V / S), from tables 4.3027 at 2 degrees, 3.1824 at 3, 2.7764 at 4, 2.5706 at 5.
    let check =
        |value: f64, more: Option<u64>| assert_eq!(of(value, 1.0, 0.0, 0.0).outlook(Level::SINGLE).more_seeds, more);
    check(4.3027 / 3f64.sqrt() + 1e-3, None);
    check(4.3027 / 3f64.sqrt() - 1e-3, Some(1));
    check(3.1824 / 4f64.sqrt() - 1e-3, Some(2));
    check(2.7764 / 5f64.sqrt() - 1e-3, Some(3));
    check(0.001, None);
    // Where one source of variance is too large, only more of it helps.
    let by_seeds = of(1.0, 9.0, 0.0, 0.01).outlook(Level::SINGLE);
    assert_eq!((by_seeds.dominant, by_seeds.more_games), (Some(NoiseSource::Seeds), None));
    assert!(by_seeds.more_seeds.is_some());
    let by_games = of(1.0, 1e-6, 0.0, 1.0).outlook(Level::SINGLE);
    assert_eq!((by_games.dominant, by_games.more_seeds), (Some(NoiseSource::Games), None));
    let more = by_games.more_games.expect("games help");
    // The variance must fall to 1 / 1.96².
    assert!((2_800..2_900).contains(&more), "{more}");
    // The part of the seeds' variance that comes from few games falls with them.
    let rest = of(1.0, 1.0, 1.0, 0.0).outlook(Level::SINGLE);
    assert!(rest.dominant == Some(NoiseSource::Games) && rest.more_games.is_some(), "{rest:?}");
}

fn normal(rng: &mut impl RngExt) -> f64 {
    let u: f64 = 1.0 - rng.random::<f64>();
    let v: f64 = rng.random();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Noise of synthetic experiments, as shares of the loss.
#[derive(Copy, Clone)]
struct Noise {
    /// Between a set's seeds.
    seeds: f64,
    /// Between games, of the difference of two sets.
    games: f64,
    /// Between the seeds' differences in a game.
    rest: f64,
}

const GAMES: usize = 150;

/// Sums of sets whose losses are `means`: games of 5 to 60 samples, of very different difficulty, with skewed
/// differences.
fn experiment(means: &[f64], seeds: u64, noise: Noise, rng: &mut impl RngExt) -> (Vec<f64>, Vec<SeedSums>) {
    let samples: Vec<f64> = (0..GAMES).map(|_| f64::from(rng.random_range(5..=60))).collect();
    let difficulty: Vec<f64> = (0..GAMES).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
    let mut sets = Vec::new();
    for mean in means {
        let skewed = |rng: &mut _| -(1.0 - RngExt::random::<f64>(rng)).ln() - 1.0;
        let own: Vec<f64> = (0..GAMES).map(|_| noise.games * skewed(rng)).collect();
        let of_seed = |rng: &mut _| {
            let level = mean * (noise.seeds * normal(rng)).exp();
            let loss = |game: usize| samples[game] * level * (difficulty[game] + own[game] + noise.rest * normal(rng));
            (0..GAMES).map(loss).collect::<Vec<f64>>()
        };
        sets.push((0..seeds).map(|seed| (seed, of_seed(rng))).collect());
    }
    (samples, sets)
}

/// Of how many of 1,000 synthetic experiments the intervals of some pairs hold every true difference.
fn covered(number: u64, means: &[f64], seeds: u64, noise: Noise, pairs: &[(usize, usize)]) -> u64 {
    let mut rng = Seed(number).stream("synthetic comparisons", 0);
    let level = Level::together(pairs.len(), 1);
    let holds = |_: &u64| {
        let (samples, sets) = experiment(means, seeds, noise, &mut rng);
        let sets = PairedSets::new(&samples, &sets, Scale::Logarithmic).expect("positive losses");
        pairs.iter().all(|(first, second)| {
            let found = sets.difference(*first, *second).expect("seeds");
            (found.value - (means[*first] / means[*second]).ln()).abs() <= found.half_width(level)
        })
    };
    (0..1_000).filter(holds).count() as u64
}

/// 94% or more of 1,000 synthetic experiments, within chance, wherever the noise comes from.
#[test]
fn intervals_cover_the_true_difference() {
    let check = |number, means: &[f64], seeds, noise: [f64; 3]| {
        let [of_seeds, games, rest] = noise;
        let covered = covered(number, means, seeds, Noise { seeds: of_seeds, games, rest }, &[(0, 1)]);
        assert!(covered >= 930, "{} sets, {seeds} seeds, {noise:?}: {covered}", means.len());
    };
    // Two sets: seeds alone, games alone, both, and mostly their interaction.
    let two = &[0.011, 0.010];
    check(1, two, 3, [0.03, 0.0, 0.0]);
    check(2, two, 3, [0.0, 0.3, 0.05]);
    check(3, two, 3, [0.03, 0.5, 0.2]);
    check(4, two, 5, [0.02, 0.3, 0.5]);
    check(5, two, 3, [0.005, 0.1, 1.0]);
    // A pair of several sets.
    check(6, &[0.010, 0.011, 0.010, 0.014], 3, [0.03, 0.3, 0.2]);
    check(7, &[0.010, 0.011, 0.010, 0.014, 0.009, 0.010], 2, [0.03, 0.1, 0.2]);
}

/// Corrected for the number of comparisons, all of an experiment's intervals hold together in 95% or more.
#[test]
fn corrected_intervals_hold_together() {
    let noise = Noise { seeds: 0.03, games: 0.3, rest: 0.2 };
    let all = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let means = [0.010, 0.011, 0.010, 0.014];
    let corrected = covered(11, &means, 3, noise, &all);
    assert!(corrected >= 945, "{corrected}");
}

/// Two seeds of two sets have one degree of freedom: the interval is wide, and rather too wide than too narrow.
#[test]
fn two_seeds_of_two_sets_are_covered() {
    let covered = covered(8, &[0.011, 0.010], 2, Noise { seeds: 0.03, games: 0.3, rest: 0.2 }, &[(0, 1)]);
    assert!(covered >= 930, "{covered}");
}

/// With one seed the interval holds the games' noise alone.
#[test]
fn one_seed_covers_where_seeds_do_not_differ() {
    let noise = Noise { seeds: 0.0, games: 0.3, rest: 0.2 };
    let of = |number, noise| covered(number, &[0.011, 0.010], 1, noise, &[(0, 1)]);
    assert!((930..=970).contains(&of(9, noise)));
    assert!(of(10, Noise { seeds: 0.1, ..noise }) < 800, "that is why a report says what is missing");
    assert!((Z_95 - t_quantile(CONFIDENCE, 1e9)).abs() < 1e-8);
}
