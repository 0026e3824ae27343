//! The mean of effects that differ by more than their own errors: a feature set's Elo over trained seeds.

use super::distributions::t_quantile;
use super::outlook::{NoiseSource, Outlook, least_above};
use super::pentanomial::Interval;
use super::{Estimate, student_t_quantile};

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

/// The random-effects mean with its interval. Each effect yᵢ is the common mean plus a deviation of its own (the
/// training seed, variance τ²) plus its error (the games, variance vᵢ).
///
/// vᵢ is the mean variance of a pair of games over all effects, divided by the effect's own pairs: effects of few pairs
/// show their own variance so badly that weights from it would follow chance (of 3,000 simulated experiments with five
/// seeds of two pairs, 71% of the intervals held the truth; see `scripts/coverage.sh`).
///
/// τ² is the estimate of DerSimonian and Laird (1986): with wᵢ = 1/vᵢ, ȳ = Σwᵢyᵢ/Σwᵢ and Q = Σwᵢ(yᵢ − ȳ)², τ² = max(0,
/// (Q − (k − 1)) / (Σwᵢ − Σwᵢ²/Σwᵢ)). The mean is μ = Σuᵢyᵢ/Σuᵢ with uᵢ = 1/(vᵢ + τ²), and its interval the wider of μ
/// ± t · √(Σuᵢ(yᵢ − μ)² / ((k − 1) Σuᵢ)) at k − 1 degrees of freedom (Hartung and Knapp 2001), which holds its level
/// for few effects but is narrow where they happen to agree, and μ ± t / √Σuᵢ (DerSimonian and Laird) at as many
/// degrees as there are pairs. For a single effect it is y ± t √v, which does not hold the deviation. `None` without
/// effects or if one is not finite.
#[must_use]
pub fn random_effects_mean(effects: &[Effect], confidence: f64) -> Option<Estimate> {
    let count = effects.len();
    match effects {
        _ if !are_finite(effects) => None,
        [] => None,
        [effect] => Some(Estimate { mean: effect.value, interval: Some(effect.half_width(confidence)), count }),
        _ => {
            let EffectsModel { effects, between, pairs } = EffectsModel::of(effects);
            let Weighted { mean, squares, total, .. } =
                Weighted::of(&effects, |effect| 1.0 / (effect.variance + between));
            let degrees = count - 1;
            let scatter = student_t_quantile(confidence, degrees) * (squares / (degrees as f64 * total)).sqrt();
            // However close the effects happen to lie, their own errors remain.
            let of_games = t_quantile(confidence, pairs) / total.sqrt();
            Some(Estimate { mean, interval: Some(scatter.max(of_games)), count })
        }
    }
}

/// Whether further games or further seeds would show an Elo other than 0, and how many: games over all seeds together,
/// or seeds that play as many games each as those there are.
#[must_use]
pub fn elo_outlook(effects: &[Effect], confidence: f64) -> Outlook {
    let nothing = Outlook { dominant: None, more_seeds: None, more_games: None };
    let Some(now) = random_effects_mean(effects, confidence) else { return nothing };
    let EffectsModel { effects, between, pairs } = EffectsModel::of(effects);
    let count = effects.len();
    let of_games = effects.iter().map(|effect| effect.variance).sum::<f64>() / count as f64;
    // The seeds' scatter as it was found, beside the scatter that the model expects.
    let found = Weighted::of(&effects, |_| 1.0).squares / (count as f64 - 1.0).max(1.0) / (between + of_games);
    let half_width = |seeds: f64, growth: f64| {
        let variance = (between + of_games / growth) / seeds;
        let scatter = if count > 1 { t_quantile(confidence, seeds - 1.0) * (found * variance).sqrt() } else { 0.0 };
        let all_pairs = pairs * growth * seeds / count as f64;
        scatter.max(t_quantile(confidence, all_pairs) * variance.sqrt())
    };
    let excludes = |half: f64| now.mean.abs() > half;
    let is_shown = excludes(now.interval.unwrap_or(f64::INFINITY));
    let seeds = count as u64;
    let pairs = pairs.max(1.0) as u64;
    let more_seeds = || least_above(seeds, Outlook::MOST, |seeds| excludes(half_width(seeds as f64, 1.0)));
    let more_pairs = || {
        least_above(pairs, Outlook::MOST * pairs, |all| excludes(half_width(count as f64, all as f64 / pairs as f64)))
    };
    let dominant = if between > of_games { NoiseSource::Seeds } else { NoiseSource::Games };
    Outlook {
        dominant: (count > 1).then_some(dominant),
        more_seeds: if is_shown || count < 2 { None } else { more_seeds().map(|least| least - seeds) },
        more_games: if is_shown { None } else { more_pairs().map(|least| 2 * (least - pairs)) },
    }
}

fn are_finite(effects: &[Effect]) -> bool {
    effects.iter().all(|effect| effect.value.is_finite() && effect.variance.is_finite())
}

/// Effects with the variances of the model.
struct EffectsModel {
    effects: Vec<Effect>,
    /// τ²
    between: f64,
    /// Pairs of all effects.
    pairs: f64,
}

impl EffectsModel {
    fn of(effects: &[Effect]) -> EffectsModel {
        let pairs: f64 = effects.iter().map(|effect| effect.degrees).sum();
        let of_a_pair = effects.iter().map(|effect| effect.variance * effect.degrees.powi(2)).sum::<f64>() / pairs;
        let effects: Vec<Effect> =
            effects.iter().map(|effect| Effect { variance: of_a_pair / effect.degrees, ..*effect }).collect();
        let between = if effects.len() > 1 { variance_between(&effects) } else { 0.0 };
        EffectsModel { effects, between, pairs }
    }
}

/// τ² of DerSimonian and Laird.
fn variance_between(effects: &[Effect]) -> f64 {
    let Weighted { squares, total, weight_squares, .. } = Weighted::of(effects, |effect| 1.0 / effect.variance);
    let degrees = effects.len() as f64 - 1.0;
    ((squares - degrees) / (total - weight_squares / total)).max(0.0)
}

/// Sums over effects with weights.
struct Weighted {
    mean: f64,
    /// Σw (y − mean)²
    squares: f64,
    /// Σw
    total: f64,
    /// Σw²
    weight_squares: f64,
}

impl Weighted {
    fn of(effects: &[Effect], weight: impl Fn(&Effect) -> f64) -> Weighted {
        let sum = |term: &dyn Fn(&Effect) -> f64| effects.iter().map(term).sum::<f64>();
        let total = sum(&weight);
        let mean = sum(&|effect| weight(effect) * effect.value) / total;
        let squares = sum(&|effect| weight(effect) * (effect.value - mean).powi(2));
        Weighted { mean, squares, total, weight_squares: sum(&|effect| weight(effect).powi(2)) }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::statistics::CONFIDENCE;
    use crate::statistics::pentanomial::Pairs;
    use crate::units::Seed;

    fn effect(value: f64, variance: f64) -> Effect {
        Effect { value, variance, degrees: 100.0 }
    }

    fn mean_of(effects: &[Effect]) -> Option<Estimate> {
        random_effects_mean(effects, CONFIDENCE)
    }

    #[test]
    fn equal_errors_give_the_plain_mean() {
        let values = [1.0, 4.0, 10.0];
        let mean = mean_of(&values.map(|value| effect(value, 2.0))).expect("three effects");
        let plain = Estimate::over(&values).expect("three values");
        assert!((mean.mean - plain.mean).abs() < 1e-12);
        assert!((mean.interval.expect("an interval") - plain.interval.expect("an interval")).abs() < 1e-9);
    }

    /// The errors follow from the numbers of pairs.
    #[test]
    fn precise_effects_weigh_more_unless_seeds_differ_much() {
        let of = |value, pairs: f64| Effect { value, variance: 100.0 / pairs, degrees: pairs };
        let mean = |effects: &[Effect]| mean_of(effects).expect("effects").mean;
        assert!(mean(&[of(0.0, 100.0), of(1.0, 1.0)]) < 0.1);
        let far = mean(&[of(0.0, 100.0), of(1000.0, 1.0)]);
        assert!((far - 500.0).abs() < 1.0, "{far}");
    }

    #[test]
    fn one_effect_has_the_interval_of_its_own_error() {
        let one = mean_of(&[effect(-3.0, 4.0)]).expect("an effect");
        assert_eq!((one.mean, one.count), (-3.0, 1));
        // t at 100 degrees of freedom is 1.9840.
        assert!((one.interval.expect("an interval") - 3.968).abs() < 0.001);
        assert_eq!(mean_of(&[]), None);
        assert_eq!(mean_of(&[effect(f64::INFINITY, 1.0)]), None);
        let difference = effect(5.0, 2.0).minus(effect(1.0, 2.0));
        assert_eq!((difference.value, difference.variance), (4.0, 4.0));
        assert!((difference.degrees - 200.0).abs() < 1e-9);
        let wider = |confidence| random_effects_mean(&[effect(1.0, 4.0); 3], confidence).and_then(|mean| mean.interval);
        assert!(wider(0.99) > wider(0.95));
    }

    /// Pairs between players of known Elo: win and draw probabilities give the expected score, games of a pair are
    /// independent.
    fn play(elo: f64, pairs: u64, rng: &mut impl RngExt) -> Pairs {
        const DRAWS: f64 = 0.3;
        let score = 1.0 / (1.0 + 10f64.powf(-elo / 400.0));
        let mut counts = Pairs::default();
        for _ in 0..pairs {
            let mut game = || match rng.random::<f64>() {
                roll if roll < score - DRAWS / 2.0 => 2,
                roll if roll < score + DRAWS / 2.0 => 1,
                _ => 0,
            };
            counts.add(game() + game()).expect("at most four half points");
        }
        counts
    }

    /// A normally distributed number (Box and Muller).
    fn normal(rng: &mut impl RngExt) -> f64 {
        let u: f64 = 1.0 - rng.random::<f64>();
        let v: f64 = rng.random();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    #[test]
    fn equal_effects_keep_the_error_of_their_games() {
        let interval = |values: [f64; 2]| {
            mean_of(&values.map(|value| effect(value, 100.0))).and_then(|mean| mean.interval).expect("two")
        };
        let expected = t_quantile(CONFIDENCE, 200.0) * 50f64.sqrt();
        assert!((interval([70.0, 70.0]) - expected).abs() < 1e-9);
        assert!((interval([70.0, 71.0]) - expected).abs() < 1e-9);
    }

    /// The obstacle to an Elo of 10, and how much more data would do.
    #[test]
    fn games_or_seeds_would_tell() {
        let of = |values: [f64; 3], variance| elo_outlook(&values.map(|value| effect(value, variance)), CONFIDENCE);
        let by_games = of([10.0, 11.0, 9.0], 400.0);
        assert_eq!((by_games.dominant, by_games.more_seeds.is_some()), (Some(NoiseSource::Games), true));
        // 400 / 3 must fall to (10 / 1.96)², 5.1 times as many as the 600 games; then the seeds' scatter is not in the
        // way.
        let more = by_games.more_games.expect("games help");
        assert!((2_400..2_600).contains(&more), "{more}");
        let by_seeds = of([-30.0, 10.0, 50.0], 1.0);
        assert_eq!((by_seeds.dominant, by_seeds.more_games), (Some(NoiseSource::Seeds), None));
        // t √(1600 / k) < 10 from k = 64 on: 1.998 · 40 / 8 = 9.99.
        assert_eq!(by_seeds.more_seeds, Some(61));
        let shown = of([100.0, 101.0, 99.0], 1.0);
        assert_eq!((shown.more_seeds, shown.more_games), (None, None));
        let one = elo_outlook(&[effect(10.0, 400.0)], CONFIDENCE);
        assert_eq!((one.dominant, one.more_seeds, one.more_games.is_some()), (None, None, true));
    }

    /// Of 1,000 experiments, the interval holds the set's Elo in 95% or more, whether seeds differ or not. Where they
    /// do not differ, it holds it more often: it is never narrower than the games allow.
    #[test]
    fn intervals_cover_the_true_elo() {
        const EXPERIMENTS: u64 = 1_000;
        let check = |number: u64, seeds: u64, between: f64, elo: f64, first: u64, most: u64| {
            let mut rng = Seed(number).stream("synthetic experiments", 0);
            let mut covered = 0;
            for _ in 0..EXPERIMENTS {
                let networks = (0..seeds).map(|_| elo + between * normal(&mut rng)).collect::<Vec<_>>();
                // Fewer pairs for some seeds, as matches that end at a wanted precision have.
                let pairs = |seed: usize| first + first / 3 * (seed as u64 % 3);
                let effects =
                    networks.iter().enumerate().map(|(seed, elo)| play(*elo, pairs(seed), &mut rng).elo_effect());
                let estimate = mean_of(&effects.collect::<Vec<_>>()).expect("finite");
                let (low, high) = estimate.bounds();
                covered += u64::from((low..=high).contains(&elo));
            }
            assert!((930..=most).contains(&covered), "{seeds} seeds ± {between}, Elo {elo}: {covered}");
        };
        check(1, 3, 15.0, 20.0, 150, 1_000);
        check(2, 3, 0.0, -40.0, 150, 1_000);
        check(3, 5, 40.0, 0.0, 150, 970);
        check(4, 2, 10.0, 60.0, 150, 1_000);
        check(5, 1, 0.0, 30.0, 150, 970);
        // Very few pairs.
        check(6, 5, 40.0, 250.0, 3, 1_000);
        check(7, 3, 0.0, 0.0, 1, 1_000);
    }
}
