//! Elo from game pairs, by the pentanomial model.
//!
//! Each opening is played twice with colours swapped, and such a pair has five outcomes. A pair is one observation,
//! because its two games are correlated.

use std::f64::consts::{LN_10, SQRT_2};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Z_95;
use super::random_effects::Effect;

/// 800 / ln 10: normalised Elo per unit of t = (μ − ½) / (√2 σ), where σ is the standard deviation of a pair's score.
pub(crate) const NORMALISED_ELO_SCALE: f64 = 800.0 / LN_10;

/// Count of an outcome that did not occur, so that every probability is positive.
const PSEUDOCOUNT: f64 = 1e-3;

/// Game pairs by outcome, seen from the first player.
///
/// ```
/// use fsbench::play::Pairs;
///
/// let pairs: Pairs = "34,54,63,64,75".parse()?;
/// let estimate = pairs.estimate();
/// assert_eq!(format!("{:.2}", estimate.elo.value), "55.58");
/// # Ok::<(), fsbench::play::PairsError>(())
/// ```
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// Two losses: 0 points of 2.
    pub ll: u64,
    /// A loss and a draw: ½ point.
    pub ld: u64,
    /// A win and a loss, or two draws: 1 point.
    pub wl_dd: u64,
    /// A win and a draw: 1½ points.
    pub wd: u64,
    /// Two wins: 2 points.
    pub ww: u64,
}

/// Error of a list of pair counts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PairsError {
    #[error("pairs are five counts separated by commas (LL,LD,WL+DD,WD,WW), not {found} in \"{text}\"")]
    Length { text: String, found: usize },
    #[error("\"{count}\" in \"{text}\" is not a count of pairs: give a whole number from 0 to {}", Pairs::MAX)]
    Count { text: String, count: String },
    #[error("no pair has been played: at least one count must be above 0")]
    Empty,
}

impl FromStr for Pairs {
    type Err = PairsError;

    fn from_str(text: &str) -> Result<Pairs, PairsError> {
        let counts: Vec<&str> = text.split(',').map(str::trim).collect();
        if counts.len() != 5 {
            return Err(PairsError::Length { text: text.into(), found: counts.len() });
        }
        let mut pairs = [0; 5];
        for (pair, count) in pairs.iter_mut().zip(counts) {
            *pair = count
                .parse()
                .ok()
                .filter(|count| *count <= Pairs::MAX)
                .ok_or_else(|| PairsError::Count { text: text.into(), count: count.into() })?;
        }
        if pairs == [0; 5] {
            return Err(PairsError::Empty);
        }
        Ok(Pairs::from_counts(pairs))
    }
}

impl Pairs {
    /// Largest count of an outcome: the sum of five counts is exact in a double.
    pub const MAX: u64 = 1 << 50;

    /// From counts in ascending order of points, 0 to 2.
    #[must_use]
    pub const fn from_counts([ll, ld, wl_dd, wd, ww]: [u64; 5]) -> Pairs {
        Pairs { ll, ld, wl_dd, wd, ww }
    }

    /// The counts in ascending order of points, 0 to 2.
    #[must_use]
    pub const fn counts(self) -> [u64; 5] {
        [self.ll, self.ld, self.wl_dd, self.wd, self.ww]
    }

    /// Number of pairs.
    #[must_use]
    pub fn total(self) -> u64 {
        self.counts().iter().sum()
    }

    /// Adds a pair in which the first player scored `half_points` of 4 half points.
    ///
    /// # Errors
    /// [`PairsError::Count`] if `half_points` is greater than 4.
    pub fn add(&mut self, half_points: u8) -> Result<(), PairsError> {
        let mut counts = self.counts();
        let Some(count) = counts.get_mut(usize::from(half_points)) else {
            return Err(PairsError::Count { text: "half points".into(), count: half_points.to_string() });
        };
        *count += 1;
        *self = Pairs::from_counts(counts);
        Ok(())
    }

    pub(crate) fn distribution(self) -> Distribution {
        let counts = self.counts().map(|count| if count == 0 { PSEUDOCOUNT } else { count as f64 });
        let total = counts.iter().sum();
        Distribution { probabilities: counts.map(|count| count / total), total }
    }

    /// Estimates Elo, normalised Elo and the likelihood of superiority.
    #[must_use]
    pub fn estimate(self) -> MatchEstimate {
        let distribution = self.distribution();
        let (mean, deviation) = distribution.moments();
        let error = deviation / distribution.total.sqrt();
        let elo = Interval {
            value: elo_of_score(mean),
            low: elo_of_score(mean - Z_95 * error),
            high: elo_of_score(mean + Z_95 * error),
        };
        let normalised = |score: f64| NORMALISED_ELO_SCALE * (score - 0.5) / (SQRT_2 * deviation);
        let nelo = Interval {
            value: normalised(mean),
            low: normalised(mean - Z_95 * error),
            high: normalised(mean + Z_95 * error),
        };
        MatchEstimate { score: mean, elo, nelo, los: normal_cdf((mean - 0.5) / error), pairs: self.total() }
    }

    /// Elo with the variance of its error, by the delta method: (dElo/dμ)² σ²/N with dElo/dμ = 400 / (ln 10 · μ (1 −
    /// μ)).
    #[must_use]
    pub fn elo_effect(self) -> Effect {
        let distribution = self.distribution();
        let (mean, deviation) = distribution.moments();
        let slope = 400.0 / (LN_10 * mean * (1.0 - mean));
        Effect { value: elo_of_score(mean), variance: (slope * deviation).powi(2) / distribution.total }
    }
}

/// A value and the bounds of its 95% interval. A bound is infinite if the interval reaches a score of 0 or 1.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Estimated strength of the first player relative to the second.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct MatchEstimate {
    /// Mean score per game, in [0, 1].
    pub score: f64,
    /// Logistic Elo: −400 log10(1/μ − 1).
    pub elo: Interval,
    /// Normalised Elo: the score's distance from ½ in standard deviations, scaled. Unlike logistic Elo, it does not
    /// shrink when more games are drawn.
    pub nelo: Interval,
    /// Likelihood of superiority: Φ((μ − ½) √N / σ).
    pub los: f64,
    /// Number of pairs.
    pub pairs: u64,
}

/// Probabilities of a pair's five scores 0, ¼, ½, ¾, 1 (points per game).
#[derive(Copy, Clone, Debug)]
pub(crate) struct Distribution {
    pub(crate) probabilities: [f64; 5],
    /// Number of observations, including pseudocounts.
    pub(crate) total: f64,
}

/// A pair's scores per game.
pub(crate) const SCORES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

impl Distribution {
    /// Mean and standard deviation of a pair's score.
    pub(crate) fn moments(&self) -> (f64, f64) {
        moments(&self.probabilities)
    }
}

pub(crate) fn moments(probabilities: &[f64; 5]) -> (f64, f64) {
    let expectation = |value: &dyn Fn(f64) -> f64| -> f64 {
        probabilities.iter().zip(SCORES).map(|(probability, score)| probability * value(score)).sum()
    };
    let mean = expectation(&|score| score);
    (mean, expectation(&|score| (score - mean).powi(2)).sqrt())
}

/// −400 log10(1/s − 1), infinite outside (0, 1).
fn elo_of_score(score: f64) -> f64 {
    if score <= 0.0 {
        f64::NEG_INFINITY
    } else if score >= 1.0 {
        f64::INFINITY
    } else {
        -400.0 * (1.0 / score - 1.0).log10()
    }
}

/// Φ(x) by the complementary error function.
fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, expected: &str) {
        assert_eq!(format!("{value:.2}"), expected);
    }

    /// Counts are (34, 54, 31, 32, 64, 75) as LL, LD, WL, DD, WD, WW.
    #[test]
    fn published_estimate() {
        let estimate = Pairs::from_counts([34, 54, 31 + 32, 64, 75]).estimate();
        check(estimate.elo.value, "55.58");
        check((estimate.elo.high - estimate.elo.low) / 2.0, "27.65");
        check(estimate.nelo.value, "57.94");
        check((estimate.nelo.high - estimate.nelo.low) / 2.0, "28.28");
        assert_eq!(estimate.pairs, 290);
    }

    /// The error by the delta method is half of the interval where that is short.
    #[test]
    fn the_effect_agrees_with_the_interval() {
        let pairs = Pairs::from_counts([340, 540, 630, 640, 750]);
        let (effect, elo) = (pairs.elo_effect(), pairs.estimate().elo);
        assert!((effect.value - elo.value).abs() < 1e-9);
        let half = Z_95 * effect.variance.sqrt();
        assert!((2.0 * half / (elo.high - elo.low) - 1.0).abs() < 0.01, "{half} {elo:?}");
        let sweep = Pairs { ww: 10, ..Pairs::default() }.elo_effect();
        assert!(sweep.value > 1000.0 && sweep.variance.sqrt() > 1000.0, "{sweep:?}");
    }

    #[test]
    fn even_results_are_zero() {
        let estimate = Pairs::from_counts([5, 20, 50, 20, 5]).estimate();
        assert!(estimate.elo.value.abs() < 1e-9 && estimate.nelo.value.abs() < 1e-9, "{estimate:?}");
        assert!((estimate.los - 0.5).abs() < 1e-12, "{estimate:?}");
        assert!((estimate.elo.low + estimate.elo.high).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn the_estimate_of_a_clean_sweep_is_finite() {
        let estimate = Pairs { ww: 10, ..Pairs::default() }.estimate();
        assert!(estimate.elo.value > 1000.0 && estimate.elo.value.is_finite(), "{estimate:?}");
        assert_eq!(estimate.elo.high, f64::INFINITY);
        assert!(estimate.los > 0.999, "{estimate:?}");
    }

    #[test]
    fn counts_are_checked() {
        let parse = |text: &str| text.parse::<Pairs>();
        assert_eq!(parse("1, 2,3,4,5"), Ok(Pairs::from_counts([1, 2, 3, 4, 5])));
        assert!(matches!(parse("1,2,3"), Err(PairsError::Length { found: 3, .. })));
        assert!(matches!(parse("1,2,3,4,-5"), Err(PairsError::Count { .. })));
        assert!(matches!(parse("1,2,3,4,1125899906842625"), Err(PairsError::Count { .. })));
        assert_eq!(parse("0,0,0,0,0"), Err(PairsError::Empty));
    }

    #[test]
    fn pairs_are_counted() {
        let mut pairs = Pairs::default();
        for half_points in [0, 1, 2, 2, 3, 4] {
            pairs.add(half_points).expect("at most four half points");
        }
        assert_eq!(pairs.counts(), [1, 1, 2, 1, 1]);
        assert!(pairs.add(5).is_err());
    }
}
