//! The mean of effects that differ by more than their own errors: a feature set's Elo over trained seeds.

use super::{CONFIDENCE, Estimate, Z_95, student_t_quantile};

/// An estimated effect, such as the Elo of one trained network.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Effect {
    pub value: f64,
    /// Variance of its estimation error.
    pub variance: f64,
}

impl Effect {
    /// The difference of two independent effects.
    #[must_use]
    pub fn minus(self, other: Effect) -> Effect {
        Effect { value: self.value - other.value, variance: self.variance + other.variance }
    }
}

/// The random-effects mean with its 95% interval. Each effect yᵢ is the common mean plus a deviation of its own (the
/// training seed, variance τ²) plus its error (the games, variance vᵢ).
///
/// τ² is the estimate of DerSimonian and Laird (1986): with wᵢ = 1/vᵢ, ȳ = Σwᵢyᵢ/Σwᵢ and Q = Σwᵢ(yᵢ − ȳ)², τ² = max(0,
/// (Q − (k − 1)) / (Σwᵢ − Σwᵢ²/Σwᵢ)). The mean is μ = Σuᵢyᵢ/Σuᵢ with uᵢ = 1/(vᵢ + τ²), and its interval the wider of μ
/// ± t · √(Σuᵢ(yᵢ − μ)² / ((k − 1) Σuᵢ)) at k − 1 degrees of freedom (Hartung and Knapp 2001), which holds its level
/// for few effects but is narrow where they happen to agree, and μ ± 1.96 / √Σuᵢ (DerSimonian and Laird). For a single
/// effect it is y ± 1.96 √v, which does not hold the deviation. `None` without effects or if one is not finite.
#[must_use]
pub fn random_effects_mean(effects: &[Effect]) -> Option<Estimate> {
    if effects.iter().any(|effect| !(effect.value.is_finite() && effect.variance.is_finite())) {
        return None;
    }
    let count = effects.len();
    match effects {
        [] => None,
        [Effect { value, variance }] => Some(Estimate { mean: *value, interval: Some(Z_95 * variance.sqrt()), count }),
        _ if effects.iter().any(|effect| effect.variance <= 0.0) => {
            Estimate::over(&effects.iter().map(|effect| effect.value).collect::<Vec<_>>())
        }
        _ => {
            let between = variance_between(effects);
            let Weighted { mean, squares, total, .. } =
                Weighted::of(effects, |effect| 1.0 / (effect.variance + between));
            let degrees = count - 1;
            let interval = student_t_quantile(CONFIDENCE, degrees) * (squares / (degrees as f64 * total)).sqrt();
            // However close the effects happen to lie, their own errors remain.
            Some(Estimate { mean, interval: Some(interval.max(Z_95 / total.sqrt())), count })
        }
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
    use crate::statistics::pentanomial::Pairs;
    use crate::units::Seed;

    fn effect(value: f64, variance: f64) -> Effect {
        Effect { value, variance }
    }

    #[test]
    fn equal_errors_give_the_plain_mean() {
        let values = [1.0, 4.0, 10.0];
        let mean = random_effects_mean(&values.map(|value| effect(value, 2.0))).expect("three effects");
        let plain = Estimate::over(&values).expect("three values");
        assert!((mean.mean - plain.mean).abs() < 1e-12);
        assert!((mean.interval.expect("an interval") - plain.interval.expect("an interval")).abs() < 1e-9);
    }

    #[test]
    fn precise_effects_weigh_more_unless_seeds_differ_much() {
        let mean = |effects: &[Effect]| random_effects_mean(effects).expect("effects").mean;
        assert!(mean(&[effect(0.0, 1.0), effect(1.0, 100.0)]) < 0.1);
        let far = mean(&[effect(0.0, 1.0), effect(1000.0, 100.0)]);
        assert!((far - 500.0).abs() < 1.0, "{far}");
    }

    #[test]
    fn one_effect_has_the_interval_of_its_own_error() {
        let one = random_effects_mean(&[effect(-3.0, 4.0)]).expect("an effect");
        assert_eq!((one.mean, one.count), (-3.0, 1));
        assert!((one.interval.expect("an interval") - 3.92).abs() < 0.001);
        assert_eq!(random_effects_mean(&[]), None);
        assert_eq!(random_effects_mean(&[effect(f64::INFINITY, 1.0)]), None);
        assert_eq!(effect(5.0, 2.0).minus(effect(1.0, 3.0)), effect(4.0, 5.0));
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
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    #[test]
    fn equal_effects_keep_the_error_of_their_games() {
        let interval = |values: [f64; 2]| {
            random_effects_mean(&values.map(|value| effect(value, 100.0))).and_then(|mean| mean.interval).expect("two")
        };
        let expected = Z_95 * 50f64.sqrt();
        assert!((interval([70.0, 70.0]) - expected).abs() < 1e-9);
        assert!((interval([70.0, 71.0]) - expected).abs() < 1e-9);
    }

    /// Of 1,000 experiments, the interval holds the set's Elo in 95% or more, whether seeds differ or not. Where they do
    /// not differ, it holds it more often: it is never narrower than the games allow.
    #[test]
    fn intervals_cover_the_true_elo() {
        const EXPERIMENTS: u64 = 1_000;
        let check = |number: u64, seeds: u64, between: f64, elo: f64, most: u64| {
            let mut rng = Seed(number).stream("synthetic experiments", 0);
            let mut covered = 0;
            for _ in 0..EXPERIMENTS {
                let networks = (0..seeds).map(|_| elo + between * normal(&mut rng)).collect::<Vec<_>>();
                // Fewer pairs for some seeds, as matches that end at a wanted precision have.
                let pairs = |seed: usize| 150 + 50 * (seed as u64 % 3);
                let effects =
                    networks.iter().enumerate().map(|(seed, elo)| play(*elo, pairs(seed), &mut rng).elo_effect());
                let estimate = random_effects_mean(&effects.collect::<Vec<_>>()).expect("finite");
                let (low, high) = estimate.bounds();
                covered += u64::from((low..=high).contains(&elo));
            }
            assert!((930..=most).contains(&covered), "{seeds} seeds ± {between}, Elo {elo}: {covered}");
        };
        check(1, 3, 15.0, 20.0, 1_000);
        check(2, 3, 0.0, -40.0, 1_000);
        check(3, 5, 40.0, 0.0, 970);
        check(4, 2, 10.0, 60.0, 1_000);
        check(5, 1, 0.0, 30.0, 970);
    }
}
