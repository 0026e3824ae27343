//! Elo from game pairs, by the pentanomial model.
//!
//! Each opening is played twice with colours swapped, and such a pair has five outcomes. A pair is one observation,
//! because its two games are correlated.
//!
//! Intervals lie symmetrically around the Elo of the observed score: ± t · dElo/dμ · σ / √n, with Student's t at as
//! many degrees of freedom as there are pairs. Only in the error's estimate, [`PRIOR`] is added to the counts: a
//! quarter of a pair lost twice and a quarter of a pair won twice. Without it, pairs that all end alike would leave no
//! doubt. On the scale of Elo, rather than of the score, an interval of one-sided results is as wide as it must be, and
//! never infinite.
//!
//! Of the methods compared by their exact coverage, this is the simplest that covers the true Elo in at least 94% from
//! one pair on, for every Elo from 0 to ±700 and every draw rate from 5 to 95% that can exist, whether openings are
//! balanced or give White ±100 Elo (`scripts/coverage.sh`). The normal interval on the score's scale covers 0 to 90%
//! with one pair. A prior of one pair or more pulls strong players towards 0 and covers 42 to 90%. The quantile of n−1
//! degrees is infinite for one pair. From 100 pairs on, intervals are at most 2.5% wider than the normal ones,
//! or 12% where nine of ten pairs are alike.

use std::f64::consts::{LN_10, SQRT_2};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::CONFIDENCE;
use super::distributions::{t_probability, t_quantile};
use super::elo::Effect;

/// 800 / ln 10: normalised Elo per unit of t = (μ − ½) / (√2 σ), where σ is the standard deviation of a pair's score.
pub(crate) const NORMALISED_ELO_SCALE: f64 = 800.0 / LN_10;

/// Pairs that are added to the counts when errors are estimated, and to a score of 0 or 1.
const PRIOR: [f64; 5] = [0.25, 0.0, 0.0, 0.0, 0.25];

/// Largest probability with which the bound of a clean sweep is wrong.
const SWEEP_ERROR: f64 = 0.005;

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
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// The outcomes with [`PRIOR`], from which errors are estimated.
    fn with_prior(self) -> Distribution {
        let mut counts = self.counts().map(|count| count as f64);
        counts.iter_mut().zip(PRIOR).for_each(|(count, prior)| *count += prior);
        Distribution::of(counts)
    }

    /// The observed mean score per game; ½ without pairs.
    #[must_use]
    pub fn score(self) -> f64 {
        let points = self.counts().iter().zip(SCORES).map(|(count, score)| *count as f64 * score).sum::<f64>();
        if self.total() == 0 { 0.5 } else { points / self.total() as f64 }
    }

    /// Estimates Elo, normalised Elo and the likelihood of superiority, with 95% intervals.
    #[must_use]
    pub fn estimate(self) -> MatchEstimate {
        if self.ll == self.total() && self.ll > 0 {
            return self.mirrored().estimate().mirrored();
        }
        let effect = self.elo_effect();
        let los = match self.total() {
            0 => 0.5,
            _ => t_probability(effect.value / effect.variance.sqrt(), effect.degrees),
        };
        let elo = effect.interval(CONFIDENCE);
        let nelo = self.normalised_elo(CONFIDENCE);
        let estimate = MatchEstimate { score: self.score(), elo, nelo, los, pairs: self.total() };
        if self.ww > 0 && self.ww == self.total() { estimate.of_clean_sweep() } else { estimate }
    }

    /// The pairs as the second player sees them.
    const fn mirrored(self) -> Pairs {
        Pairs { ll: self.ww, ld: self.wd, wl_dd: self.wl_dd, wd: self.ld, ww: self.ll }
    }

    /// Elo with the variance of its error, by the delta method: (dElo/dμ)² σ²/N with dElo/dμ = 400 / (ln 10 · μ (1 −
    /// μ)), from the counts with [`PRIOR`]. The value is the Elo of the observed score, or with the prior if that is 0
    /// or 1.
    #[must_use]
    pub fn elo_effect(self) -> Effect {
        let distribution = self.with_prior();
        let (mean, deviation) = distribution.moments();
        let observed = self.score();
        let value = elo_of_score(if observed > 0.0 && observed < 1.0 { observed } else { mean });
        let slope = 400.0 / (LN_10 * mean * (1.0 - mean));
        let degrees = self.total() as f64;
        Effect { value, variance: (slope * deviation).powi(2) / distribution.total, degrees }
    }

    /// Normalised Elo, a multiple of d = (μ − ½) / σ. The variance of d, (1 − γd + (κ − 1) d²/4) / N with skewness γ
    /// and kurtosis κ, grows with d²; the interval is symmetrical on the scale asinh d, on which it does not. It takes
    /// d from the counts with [`PRIOR`], t at three degrees more than there are pairs (on this scale, few pairs are
    /// covered by less), and is extended to the value, which comes from the observed pairs unless all are alike.
    fn normalised_elo(self, confidence: f64) -> Interval {
        const SCALE: f64 = NORMALISED_ELO_SCALE / SQRT_2;
        if self.total() == 0 {
            return Interval { value: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let distribution = self.with_prior();
        let (mean, deviation) = distribution.moments();
        let distance = (mean - 0.5) / deviation;
        let standardised = |power: i32| -> f64 {
            let terms = distribution.probabilities.iter().zip(SCORES);
            terms.map(|(probability, score)| probability * ((score - mean) / deviation).powi(power)).sum()
        };
        let variance = 1.0 - standardised(3) * distance + (standardised(4) - 1.0) / 4.0 * distance.powi(2);
        let error = (variance.max(1.0) / distribution.total / (1.0 + distance.powi(2))).sqrt();
        let half = t_quantile(confidence, self.total() as f64 + 3.0) * error;
        let [low, high] = [-half, half].map(|half| SCALE * (distance.asinh() + half).sinh());
        let (mean, deviation) = Distribution::of(self.counts().map(|count| count as f64)).moments();
        let value = SCALE * if deviation > 0.0 { (mean - 0.5) / deviation } else { distance };
        Interval { value, low: low.min(value), high: high.max(value) }
    }
}

/// A value and the bounds of its 95% interval. Without a pair, the bounds are infinite.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower bound of its 95% interval.
    pub low: f64,
    /// Upper bound of its 95% interval.
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
    /// Likelihood of superiority: P(T ≤ Elo / error) under Student's distribution with as many degrees as pairs.
    pub los: f64,
    /// Number of pairs.
    pub pairs: u64,
}

impl MatchEstimate {
    /// Raises the lower bounds of n pairs that were all won twice. Such pairs have the probability pⁿ ≤ μⁿ, so that μ
    /// and p are at least [`SWEEP_ERROR`]^(1/n) but for that error, and normalised Elo is least where the rest is lost
    /// twice. Of equal players, one wins all with a probability of at most 2^(1−n).
    fn of_clean_sweep(mut self) -> MatchEstimate {
        let pairs = self.pairs as f64;
        let score = SWEEP_ERROR.powf(1.0 / pairs);
        self.elo.low = self.elo.low.max(elo_of_score(score));
        self.nelo.low =
            self.nelo.low.max(NORMALISED_ELO_SCALE / SQRT_2 * (score - 0.5) / (score * (1.0 - score)).sqrt());
        self.los = self.los.max(1.0 - (1.0 - pairs).exp2());
        self
    }

    /// The estimate for the second player.
    fn mirrored(self) -> MatchEstimate {
        let mirrored = |Interval { value, low, high }: Interval| Interval { value: -value, low: -high, high: -low };
        MatchEstimate {
            score: 1.0 - self.score,
            elo: mirrored(self.elo),
            nelo: mirrored(self.nelo),
            los: 1.0 - self.los,
            pairs: self.pairs,
        }
    }
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
    pub(crate) fn of(counts: [f64; 5]) -> Distribution {
        let total = counts.iter().sum();
        Distribution { probabilities: counts.map(|count| count / total), total }
    }

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

/// −400 log10(1/s − 1)
fn elo_of_score(score: f64) -> f64 {
    // Even results have 0, not −0.
    -400.0 * (1.0 / score - 1.0).log10() + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Z_95;

    fn check(value: f64, expected: &str) {
        assert_eq!(format!("{value:.2}"), expected);
    }

    /// Counts are (34, 54, 31, 32, 64, 75) as LL, LD, WL, DD, WD, WW. Published: 55.58 ± 27.65, normalised 57.94 ±
    /// 28.28.
    #[test]
    fn published_estimate() {
        let estimate = Pairs::from_counts([34, 54, 31 + 32, 64, 75]).estimate();
        check(estimate.elo.value, "55.58");
        check((estimate.elo.high - estimate.elo.low) / 2.0, "27.71");
        check(estimate.nelo.value, "57.94");
        check((estimate.nelo.high - estimate.nelo.low) / 2.0, "29.39");
        assert_eq!(estimate.pairs, 290);
    }

    #[test]
    fn even_results_are_zero() {
        for counts in [[5, 20, 50, 20, 5], [0, 0, 20, 0, 0]] {
            let estimate = Pairs::from_counts(counts).estimate();
            assert!(estimate.elo.value.abs() < 1e-9 && estimate.nelo.value.abs() < 1e-9, "{estimate:?}");
            assert_eq!(format!("{:+.1}", estimate.elo.value), "+0.0");
            assert!((estimate.los - 0.5).abs() < 1e-12, "{estimate:?}");
            assert!((estimate.elo.low + estimate.elo.high).abs() < 1e-9, "{estimate:?}");
        }
    }

    /// A quarter of a pair stands on the other side: with ten pairs won, 10.25 of 10.5.
    #[test]
    fn a_clean_sweep_is_finite() {
        let estimate = Pairs { ww: 10, ..Pairs::default() }.estimate();
        check(estimate.elo.value, "645.11");
        assert!(estimate.elo.high.is_finite(), "{estimate:?}");
        // 0.005^(1/8) = 0.516: eight pairs won exclude equal players, seven do not.
        let lost = |pairs| Pairs { ll: pairs, ..Pairs::default() }.estimate();
        assert!(lost(8).elo.high < -10.0 && lost(8).nelo.high < 0.0 && lost(8).los < 0.01, "{:?}", lost(8));
        assert!(lost(7).elo.high > 0.0, "{:?}", lost(7));
        // More points are never less Elo.
        let but_a_draw = Pairs { ww: 9, wd: 1, ..Pairs::default() }.estimate();
        assert!(but_a_draw.elo.value < estimate.elo.value, "{but_a_draw:?}");
    }

    /// Few pairs, or pairs that are all alike, leave doubt.
    #[test]
    fn no_interval_is_certain() {
        let width = |counts| {
            let MatchEstimate { elo, nelo, los, .. } = Pairs::from_counts(counts).estimate();
            for Interval { value, low, high } in [elo, nelo] {
                assert!(
                    low < value && value < high && low.is_finite() && high.is_finite(),
                    "{counts:?}: {elo:?} {nelo:?}"
                );
            }
            (elo.high - elo.low, los)
        };
        for counts in [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]] {
            let (width, los) = width(counts);
            assert!(width > 1400.0 && (0.2..0.8).contains(&los), "{counts:?}: {width} {los}");
        }
        assert!(width([0, 0, 20, 0, 0]).0 > 49.0 && width([0, 0, 0, 10, 0]).0 > 149.0);
        assert!(width([0, 0, 50, 0, 0]).0 > 19.0);
    }

    /// With hundreds of pairs, the interval equals the normal distribution's within 2%.
    #[test]
    fn many_pairs_have_the_normal_interval() {
        for counts in [[5, 20, 50, 20, 5], [2, 10, 30, 40, 18], [30, 5, 30, 5, 30], [0, 5, 90, 5, 0]] {
            for times in [1, 3, 10] {
                let pairs = Pairs::from_counts(counts.map(|count| count * times));
                let (mean, deviation) = Distribution::of(pairs.counts().map(|count| count as f64)).moments();
                let error = Z_95 * deviation / (pairs.total() as f64).sqrt();
                let normal = elo_of_score(mean + error) - elo_of_score(mean - error);
                let Interval { low, high, .. } = pairs.estimate().elo;
                let ratio = (high - low) / normal;
                let most = if counts[2] == 90 { 1.13 } else { 1.025 };
                assert!((0.99..most).contains(&ratio), "{counts:?} × {times}: {ratio}");
            }
        }
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
