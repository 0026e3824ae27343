//! The Elo of feature sets over trained seeds.

use std::cmp::Reverse;

use super::distributions::t_quantile;
use super::estimate::Estimate;
use super::level::Level;
use super::paired::PairedDifference;
use super::pentanomial::Interval;
use super::seed_noise::{BySeed, PairNoise, SeedNoise};
use crate::units::SortedMap;

/// An estimated effect, such as the Elo of one trained network.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Effect {
    pub value: f64,
    /// Variance of its estimation error.
    pub variance: f64,
    /// Degrees of freedom of that variance: pairs of games.
    pub degrees: f64,
}

impl Effect {
    /// The difference of two independent effects, with the degrees of freedom of Satterthwaite (1946).
    #[must_use]
    pub fn minus(self, other: Effect) -> Effect {
        let variance = self.variance + other.variance;
        let doubt = self.variance.powi(2) / self.degrees + other.variance.powi(2) / other.degrees;
        let degrees = if doubt > 0.0 { variance.powi(2) / doubt } else { f64::min(self.degrees, other.degrees) };
        Effect { value: self.value - other.value, variance, degrees }
    }

    /// The value ± t √variance.
    #[must_use]
    pub fn interval(self, confidence: f64) -> Interval {
        let half = self.half_width(confidence);
        Interval { value: self.value, low: self.value - half, high: self.value + half }
    }

    fn half_width(self, confidence: f64) -> f64 {
        t_quantile(confidence, self.degrees) * self.variance.sqrt()
    }
}

/// A feature set's matches: by training seed, the Elo of its network against that of the reference set.
pub type EloBySeed = SortedMap<u64, Effect>;

/// The mean Elo of each set over its seeds, with its variance components; `None` for a set without matches, such as the
/// reference set that all others have played, seed by seed.
///
/// With a row of zeros for the reference, the sets' Elo is a table of sets × seeds as that of `seed_noise.rs`: what a
/// seed's reference has of its own is in every row but the zeros, and so the difference of two rows has the noise of
/// their two sets alone, of training and of games. Where the sets' seeds differ, each has a table of its own, with those
/// that share most seeds with it. An interval is never narrower than the games of its own matches allow. Simulated
/// matches of 1 to 11 sets, of equal and of very unequal strength and noise, hold all statements together in at least
/// 94% (`scripts/coverage.sh`).
#[must_use]
pub fn elo_over_seeds(sets: &[EloBySeed]) -> Vec<Option<PairedDifference>> {
    let of_set = |(number, set): (usize, &EloBySeed)| {
        let seeds = set.len();
        if seeds == 0 {
            return None;
        }
        let mean = |of: fn(&Effect) -> f64| set.values().map(of).sum::<f64>() / seeds as f64;
        let values: Vec<f64> = set.values().map(|effect| effect.value).collect();
        let of_games = mean(|effect| effect.variance);
        let pairs = mean(|effect| effect.degrees);
        let between_seeds = PairNoise::of_differences(&values).map(|own| noise_around(sets, number).unwrap_or(own));
        let [by_games, between_games] = if seeds > 1 { [of_games, 0.0] } else { [0.0, of_games] };
        Some(PairedDifference {
            value: mean(|effect| effect.value),
            seeds,
            games: pairs.round() as usize,
            degrees: pairs,
            between_seeds,
            by_games,
            between_games,
        })
    };
    sets.iter().enumerate().map(of_set).collect()
}

/// The noise of a set's difference to the reference, as it shows in a table of the set and of those beside it: of the
/// sets that share most seeds with it, as many as leave most degrees of freedom and three quarters of its seeds. `None`
/// without such a table.
fn noise_around(sets: &[EloBySeed], number: usize) -> Option<PairNoise> {
    let set = &sets[number];
    let shared = |other: &usize| sets[*other].keys().filter(|seed| set.contains_key(seed)).count();
    let mut beside: Vec<usize> = (0..sets.len()).filter(|other| shared(other) > 0).collect();
    beside.sort_by_key(|other| (Reverse(shared(other)), *other != number));
    let mut common: Vec<u64> = set.keys().copied().collect();
    let mut most_degrees = 0;
    let mut members = 0;
    for (index, other) in beside.iter().enumerate() {
        common.retain(|seed| sets[*other].contains_key(seed));
        let degrees = (index + 1) * common.len().saturating_sub(1);
        if degrees >= most_degrees && 4 * common.len() >= 3 * set.len() {
            most_degrees = degrees;
            members = index + 1;
        }
    }
    beside.truncate(members);
    beside.sort_unstable();
    let values = |other: &usize| sets[*other].iter().map(|(seed, effect)| (*seed, effect.value)).collect();
    let mut rows: Vec<BySeed> = beside.iter().map(values).collect();
    rows.push(set.keys().map(|seed| (*seed, 0.0)).collect());
    let at = beside.iter().position(|other| *other == number)?;
    Some(SeedNoise::of(&rows)?.of_pair(at, members, set.len()))
}

/// The D of effects that are expected to be D x: Elo against log2 of the nodes, D being the Elo of twice the nodes. The
/// weighted least squares through the origin, Σ(x y / v) / Σ(x² / v), with Student's interval at one degree of freedom
/// less than there are effects; their scatter counts, but never for less than the games' noise. `None` with fewer than
/// three effects, or if no x differs from 0.
#[must_use]
pub fn proportional_effect(effects: &[(f64, Effect)], level: Level) -> Option<Estimate> {
    let count = effects.len();
    let sum = |term: &dyn Fn(f64, &Effect) -> f64| effects.iter().map(|(x, own)| term(*x, own) / own.variance).sum();
    let squares: f64 = sum(&|x, _| x * x);
    if count < 3 || squares <= 0.0 {
        return None;
    }
    let products: f64 = sum(&|x, own| x * own.value);
    let mean = products / squares;
    let residuals: f64 = sum(&|x, own| (own.value - mean * x).powi(2));
    let degrees = count as f64 - 1.0;
    let half = t_quantile(level.each(), degrees) * ((residuals / degrees).max(1.0) / squares).sqrt();
    Some(Estimate { mean, interval: Some(half), count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{CONFIDENCE, NoiseSource};

    fn effect(value: f64, variance: f64) -> Effect {
        Effect { value, variance, degrees: 100.0 }
    }

    fn set(values: &[f64], variance: f64) -> EloBySeed {
        (1..).zip(values.iter().map(|value| effect(*value, variance))).collect()
    }

    fn alone(values: &[f64], variance: f64) -> PairedDifference {
        elo_over_seeds(&[set(values, variance)])[0].expect("seeds")
    }

    /// Without other sets, Student's interval of the seeds' scatter.
    #[test]
    fn a_set_alone_has_the_scatter_of_its_seeds() {
        let values = [1.0, 4.0, 10.0];
        let found = alone(&values, 2.0).estimate(Level::SINGLE);
        let plain = Estimate::over(&values).expect("three values");
        assert_eq!((found.mean, found.count), (plain.mean, 3));
        assert!((found.interval.expect("an interval") - plain.interval.expect("an interval")).abs() < 1e-9);
    }

    #[test]
    fn one_seed_has_the_interval_of_its_games() {
        let one = alone(&[-3.0], 4.0).estimate(Level::SINGLE);
        assert_eq!((one.mean, one.count), (-3.0, 1));
        // t at 100 degrees of freedom is 1.9840.
        assert!((one.interval.expect("an interval") - 3.968).abs() < 0.001);
        let difference = effect(5.0, 2.0).minus(effect(1.0, 2.0));
        assert_eq!((difference.value, difference.variance), (4.0, 4.0));
        assert!((difference.degrees - 200.0).abs() < 1e-9);
    }

    #[test]
    fn equal_seeds_keep_the_error_of_their_games() {
        let expected = t_quantile(CONFIDENCE, 200.0) * 50f64.sqrt();
        for values in [[70.0, 70.0], [70.0, 71.0]] {
            let half = alone(&values, 100.0).half_width(Level::SINGLE);
            assert!((half - expected).abs() < 1e-9, "{half}");
        }
    }

    /// Ten sets show the noise of seeds better than one, whose three seeds allow intervals of 4.3 standard errors; what
    /// the reference of a seed adds to all of them alike is counted once.
    #[test]
    fn sets_share_what_they_show_of_the_noise() {
        let of_seed = [30.0, -30.0, 0.0];
        let deviation = |number: usize, seed: usize| [8.0, -8.0, 0.0][(number + seed) % 3] * [1.0, -1.0][number % 2];
        let row = |number: usize| -> EloBySeed {
            let value = |seed: usize| 10.0 * number as f64 + deviation(number, seed) + of_seed[seed];
            (0..3).map(|seed| (seed as u64, effect(value(seed), 25.0))).collect()
        };
        let sets: Vec<EloBySeed> = (0..10).map(row).collect();
        let level = Level::together(sets.len(), 1);
        let together: Vec<f64> =
            elo_over_seeds(&sets).into_iter().map(|found| found.expect("seeds").half_width(level)).collect();
        let own = elo_over_seeds(&sets[..1])[0].expect("seeds").half_width(level);
        assert!(together.iter().all(|half| *half < 0.5 * own), "{together:?} {own}");
        // The reference alone scatters by 30, of which a mean over three seeds keeps 17.
        assert!(together.iter().all(|half| *half > 30.0), "{together:?}");
    }

    #[test]
    fn sets_without_matches_count_for_nothing() {
        let played = [set(&[1.0, 2.0, 5.0], 1.0), set(&[7.0, 3.0, 4.0], 1.0)];
        let [first, second] = played.clone();
        let found = elo_over_seeds(&[EloBySeed::new(), first, EloBySeed::new(), second]);
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false, true]);
        let expected = elo_over_seeds(&played);
        assert_eq!([found[1], found[3]], expected[..]);
        assert_ne!(found[1].expect("seeds").between_seeds, alone(&[1.0, 2.0, 5.0], 1.0).between_seeds);
    }

    /// A set of two seeds has a table of what all show of these, and leaves the others the table of their eight.
    #[test]
    fn sets_of_fewer_seeds_leave_the_others_their_table() {
        let row = |number: usize, seeds: usize| -> EloBySeed {
            let value = |seed: usize| 10.0 * number as f64 + [8.0, -8.0, 3.0, -3.0, 0.0][(number * 2 + seed) % 5];
            (0..seeds).map(|seed| (seed as u64, effect(value(seed), 1.0))).collect()
        };
        let halves = |sets: &[EloBySeed]| -> Vec<f64> {
            elo_over_seeds(sets).into_iter().map(|found| found.expect("seeds").half_width(Level::SINGLE)).collect()
        };
        let mut sets: Vec<EloBySeed> = (0..5).map(|number| row(number, 8)).collect();
        let complete = halves(&sets);
        sets.push(row(5, 2));
        let alone = halves(&sets[5..])[0];
        let mixed = halves(&sets);
        assert_eq!(mixed[..5], complete[..]);
        assert!(mixed[5] > complete[0] && mixed[5] < alone, "{mixed:?} {alone}");
        // However many they are.
        sets.extend((6..30).map(|number| row(number, 2)));
        assert_eq!(halves(&sets)[..5], complete[..]);
    }

    /// The obstacle to an Elo of 10, and how much more data would do. Games are pairs of one seed's match.
    #[test]
    fn games_or_seeds_would_tell() {
        let of = |values: &[f64], variance| alone(values, variance).outlook(Level::SINGLE);
        let by_games = of(&[10.0, 11.0, 9.0], 400.0);
        assert_eq!((by_games.dominant, by_games.more_seeds.is_some()), (Some(NoiseSource::Games), true));
        // 400 / 3 must fall to (10 / 1.96)², 5.1 times as many as the 100 pairs.
        let more = by_games.more_games.expect("games help");
        assert!((400..435).contains(&more), "{more}");
        let by_seeds = of(&[-20.0, 10.0, 40.0], 1.0);
        assert_eq!((by_seeds.dominant, by_seeds.more_games), (Some(NoiseSource::Seeds), None));
        // t √(900 / k) < 10 from k = 37 on: 2.028 · 30 / √37 = 10.00, 2.026 · 30 / √38 = 9.86.
        assert!((34..=35).contains(&by_seeds.more_seeds.expect("seeds help")), "{by_seeds:?}");
        let far = of(&[-30.0, 10.0, 50.0], 1.0);
        assert_eq!((far.more_seeds, far.more_games), (None, None), "61 seeds are too many");
        let shown = of(&[100.0, 101.0, 99.0], 1.0);
        assert_eq!((shown.more_seeds, shown.more_games), (None, None));
        let one = of(&[10.0], 400.0);
        assert_eq!((one.dominant, one.more_seeds, one.more_games.is_some()), (None, None, true));
    }

    /// Two effects of 200 x and one that is 20 off, all with the variance 100.
    #[test]
    fn elo_of_twice_the_nodes() {
        let of = |off: f64| {
            let points = [(-0.5, -100.0), (0.25, 50.0 + off), (-0.25, -50.0)];
            let effects = points.map(|(x, value)| (x, effect(value, 100.0)));
            proportional_effect(&effects, Level::SINGLE).expect("three effects")
        };
        let exact = of(0.0);
        // Σx² = 0.375; t at two degrees of freedom is 4.3027. The games' noise remains.
        assert!((exact.mean - 200.0).abs() < 1e-9);
        assert!((exact.interval.expect("an interval") - 4.3027 * (100.0f64 / 0.375).sqrt()).abs() < 1e-2);
        let scattered = of(40.0);
        assert!((scattered.mean - 200.0 - 0.25 * 40.0 / 0.375).abs() < 1e-9);
        assert!(scattered.interval > exact.interval, "{scattered:?}");
        assert_eq!(proportional_effect(&[(1.0, effect(1.0, 1.0)); 2], Level::SINGLE), None);
        assert_eq!(proportional_effect(&[(0.0, effect(1.0, 1.0)); 3], Level::SINGLE), None);
    }
}
