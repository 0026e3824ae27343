//! The sequential probability ratio test (SPRT) over game pairs: it stops a match as soon as the results decide between
//! two Elo hypotheses.
//!
//! The log-likelihood ratio compares the most likely pair distributions under each hypothesis (the generalised SPRT;
//! M. Van den Bergh, "A practical introduction to the GSPRT" and "Normalized Elo").

use std::f64::consts::SQRT_2;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::pentanomial::{Distribution, NORMALISED_ELO_SCALE, Pairs, SCORES, moments};

/// Count of an outcome that did not occur, so that every probability is positive.
const PSEUDOCOUNT: f64 = 1e-3;

/// Unit of the hypotheses.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EloModel {
    /// Normalised Elo: distance of the mean score from ½ in standard deviations of a pair's score.
    #[default]
    Normalised,
    /// Logistic Elo: expected score.
    Logistic,
}

/// A sequential test of elo0 against elo1.
///
/// ```
/// use fsbench::play::{EloModel, Pairs, Sprt, SprtState};
///
/// let test = Sprt::new(0.0, 2.0, EloModel::Normalised)?;
/// let outcome = test.outcome(Pairs::from_counts([276, 7522, 15797, 7795, 322]));
/// assert_eq!(format!("{:.2}", outcome.llr), "2.93");
/// assert_eq!(outcome.state, SprtState::Continue);
/// # Ok::<(), fsbench::play::SprtError>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Sprt {
    pub elo0: f64,
    pub elo1: f64,
    pub model: EloModel,
    /// Probability of accepting elo1 when elo0 is true.
    pub alpha: f64,
    /// Probability of accepting elo0 when elo1 is true.
    pub beta: f64,
}

/// State of a test after some pairs.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SprtOutcome {
    /// Log-likelihood ratio of elo1 to elo0.
    pub llr: f64,
    /// elo0 is accepted at or below this.
    pub lower: f64,
    /// elo1 is accepted at or above this.
    pub upper: f64,
    /// Elo of the null hypothesis.
    pub elo0: f64,
    /// Elo of the alternative.
    pub elo1: f64,
    pub model: EloModel,
    pub state: SprtState,
    /// The test has decided: Elo of the results that ended it is biased, away from 0 on average.
    pub elo_is_biased: bool,
}

/// Decision of a test.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SprtState {
    /// More pairs are needed.
    Continue,
    /// elo0 is accepted.
    AcceptElo0,
    /// elo1 is accepted.
    AcceptElo1,
}

/// Error of a test's hypotheses.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SprtError {
    #[error("elo0 must be below elo1, and both within ±{limit}; {elo0} and {elo1} are not")]
    Hypotheses { elo0: f64, elo1: f64, limit: f64 },
}

impl Sprt {
    /// α and β, as engine testing frameworks use them.
    pub const ERROR_RATE: f64 = 0.05;
    /// Largest |Elo| of a hypothesis: beyond it, the most likely distribution under it may not be found.
    pub const LARGEST_ELO: f64 = 200.0;

    /// A test with α = β = 0.05.
    ///
    /// # Errors
    /// When elo0 is not below elo1, or either exceeds [`Self::LARGEST_ELO`].
    pub fn new(elo0: f64, elo1: f64, model: EloModel) -> Result<Sprt, SprtError> {
        let within = |elo: f64| elo.abs() <= Self::LARGEST_ELO;
        if !(elo0 < elo1 && within(elo0) && within(elo1)) {
            return Err(SprtError::Hypotheses { elo0, elo1, limit: Self::LARGEST_ELO });
        }
        Ok(Sprt { elo0, elo1, model, alpha: Self::ERROR_RATE, beta: Self::ERROR_RATE })
    }

    /// Lower and upper bounds of the log-likelihood ratio: ln(β / (1 − α)) and ln((1 − β) / α) (Wald 1945).
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        ((self.beta / (1.0 - self.alpha)).ln(), ((1.0 - self.beta) / self.alpha).ln())
    }

    /// The log-likelihood ratio of elo1 to elo0.
    #[must_use]
    pub fn llr(&self, pairs: Pairs) -> f64 {
        let observed = distribution(pairs);
        let most_likely = |elo: f64| match self.model {
            EloModel::Logistic => with_score(&observed, 1.0 / (1.0 + 10f64.powf(-elo / 400.0))),
            EloModel::Normalised => with_distance(&observed, SQRT_2 * elo / NORMALISED_ELO_SCALE),
        };
        let under0 = most_likely(self.elo0);
        let under1 = most_likely(self.elo1);
        let ratios = under0.iter().zip(under1).map(|(p0, p1)| (p1 / p0).ln());
        observed.total
            * observed.probabilities.iter().zip(ratios).map(|(probability, ratio)| probability * ratio).sum::<f64>()
    }

    /// The fewest pairs, at most `most`, after which a test may accept elo1: with the outcome that is the strongest
    /// evidence in every pair. `None` if it takes more.
    #[must_use]
    pub fn fewest_pairs(&self, most: u64) -> Option<u64> {
        let accepts = |pairs: u64| {
            let alike = |outcome: usize| {
                let mut counts = [0; 5];
                counts[outcome] = pairs;
                Pairs::from_counts(counts)
            };
            (0..5).any(|outcome| self.outcome(alike(outcome)).state == SprtState::AcceptElo1)
        };
        if most == 0 || !accepts(most) {
            return None;
        }
        // The ratio of pairs that are all alike grows with their number.
        let (mut too_few, mut enough) = (0, most);
        while enough - too_few > 1 {
            let middle = u64::midpoint(too_few, enough);
            if accepts(middle) { enough = middle } else { too_few = middle }
        }
        Some(enough)
    }

    /// The state of the test after `pairs`.
    #[must_use]
    pub fn outcome(&self, pairs: Pairs) -> SprtOutcome {
        let llr = self.llr(pairs);
        let (lower, upper) = self.bounds();
        let state = if llr >= upper {
            SprtState::AcceptElo1
        } else if llr <= lower {
            SprtState::AcceptElo0
        } else {
            SprtState::Continue
        };
        let Sprt { elo0, elo1, model, .. } = *self;
        SprtOutcome { llr, lower, upper, elo0, elo1, model, state, elo_is_biased: state != SprtState::Continue }
    }
}

/// The most likely distribution with mean score `score`: p̂ / (1 + θ(a − s)).
fn with_score(observed: &Distribution, score: f64) -> [f64; 5] {
    tilted(&observed.probabilities, &SCORES.map(|points| points - score))
}

/// The most likely distribution with (μ − ½) / σ = `distance`. Iterates, because the constraint is linear in the
/// probabilities only for fixed μ and σ.
fn with_distance(observed: &Distribution, distance: f64) -> [f64; 5] {
    const ITERATIONS: usize = 10;
    const CONVERGED: f64 = 1e-9;
    let mut probabilities = [0.2; 5];
    for _ in 0..ITERATIONS {
        let (mean, deviation) = moments(&probabilities);
        let slopes =
            SCORES.map(|score| score - 0.5 - 0.5 * distance * deviation * (1.0 + ((score - mean) / deviation).powi(2)));
        let next = tilted(&observed.probabilities, &slopes);
        let change = next.iter().zip(probabilities).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
        probabilities = next;
        if change < CONVERGED {
            break;
        }
    }
    probabilities
}

/// p̂ / (1 + θφ) with the θ for which Σ p̂ φ / (1 + θφ) = 0: the most likely distribution under which φ has mean 0.
fn tilted(observed: &[f64; 5], slopes: &[f64; 5]) -> [f64; 5] {
    let (least, greatest) = slopes
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), slope| (low.min(*slope), high.max(*slope)));
    // The sum falls from +∞ to −∞ between the θ at which a probability becomes infinite.
    let mut low = -1.0 / greatest;
    let mut high = -1.0 / least;
    let weighted =
        |theta: f64| observed.iter().zip(slopes).map(|(p, slope)| p * slope / (1.0 + theta * slope)).sum::<f64>();
    // 200 halvings determine every bit of a double.
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if weighted(middle) > 0.0 { low = middle } else { high = middle }
    }
    let theta = f64::midpoint(low, high);
    let mut tilted = *observed;
    tilted.iter_mut().zip(slopes).for_each(|(probability, slope)| *probability /= 1.0 + theta * slope);
    tilted
}

fn distribution(pairs: Pairs) -> Distribution {
    Distribution::of(pairs.counts().map(|count| if count == 0 { PSEUDOCOUNT } else { count as f64 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    /// Counts in the order LL, LD, WL, DD, WD, WW.
    fn check(counts: [u64; 6], [elo0, elo1]: [f64; 2], model: EloModel, expected: &str) {
        let [ll, ld, wl, dd, wd, ww] = counts;
        let pairs = Pairs { ll, ld, wl_dd: wl + dd, wd, ww };
        let llr = Sprt::new(elo0, elo1, model).expect("in order").llr(pairs);
        assert_eq!(format!("{llr:.2}"), expected, "{counts:?}");
    }

    /// The test vectors of fastchess.
    #[test]
    fn published_ratios() {
        check([365, 16618, 36029, 200, 16974, 390], [0.0, 2.0], EloModel::Normalised, "2.25");
        check([127, 4883, 10311, 401, 5150, 104], [-1.75, 0.25], EloModel::Normalised, "3.01");
        check([223, 9863, 20279, 1000, 10037, 246], [0.5, 2.5], EloModel::Logistic, "-3.07");
        check([871, 26175, 55003, 980, 26678, 821], [0.0, 2.0], EloModel::Logistic, "-4.98");
        check([276, 7522, 15797, 0, 7795, 322], [0.0, 2.0], EloModel::Normalised, "2.93");
    }

    #[test]
    fn bounds_are_those_of_wald() {
        let (lower, upper) = Sprt::new(0.0, 5.0, EloModel::Normalised).expect("in order").bounds();
        assert_eq!(format!("{lower:.3} {upper:.3}"), "-2.944 2.944");
    }

    #[test]
    fn hypotheses_are_checked() {
        for (elo0, elo1) in [(2.0, 0.0), (1.0, 1.0), (0.0, f64::NAN), (-500.0, 0.0)] {
            assert!(Sprt::new(elo0, elo1, EloModel::Logistic).is_err(), "{elo0} {elo1}");
        }
    }

    /// With one pair fewer no outcome accepts elo1, with as many a clean sweep does.
    #[test]
    fn the_fewest_pairs_are_those_of_the_strongest_evidence() {
        for (elo0, elo1, model) in [(0.0, 10.0, EloModel::Normalised), (0.0, 5.0, EloModel::Logistic)] {
            let test = Sprt::new(elo0, elo1, model).expect("in order");
            let fewest = test.fewest_pairs(1_000_000).expect("it can be decided");
            let accepts = |counts: [u64; 5]| test.outcome(Pairs::from_counts(counts)).state == SprtState::AcceptElo1;
            let alike = |pairs: u64| {
                [0, 1, 2, 3, 4].map(|outcome| std::array::from_fn(|at| if at == outcome { pairs } else { 0 }))
            };
            assert!(alike(fewest).into_iter().any(accepts) && !alike(fewest - 1).into_iter().any(accepts), "{fewest}");
            assert_eq!([test.fewest_pairs(fewest), test.fewest_pairs(fewest - 1)], [Some(fewest), None]);
            // Mixed results are no stronger evidence.
            let half = fewest / 2;
            assert!(!accepts([0, 0, 0, half, fewest - 1 - half]), "{fewest}");
        }
    }

    /// Draws a pair's outcome.
    fn draw(probabilities: &[f64; 5], rng: &mut impl rand::Rng) -> u8 {
        let mut remaining: f64 = rng.random();
        for (outcome, probability) in probabilities.iter().enumerate() {
            remaining -= probability;
            if remaining < 0.0 {
                return outcome as u8;
            }
        }
        4
    }

    /// A typical distribution, changed to have this normalised Elo.
    fn with_elo(nelo: f64) -> [f64; 5] {
        let typical = distribution(Pairs::from_counts([4, 20, 52, 20, 4]));
        with_distance(&typical, SQRT_2 * nelo / NORMALISED_ELO_SCALE)
    }

    /// In 93 to 97% of 2,000 matches the 95% interval contains the true Elo and normalised Elo.
    #[test]
    fn intervals_contain_the_true_elo() {
        for nelo in [0.0, 40.0, -120.0] {
            let truth = with_elo(nelo);
            let (mean, _) = moments(&truth);
            let elo = -400.0 * (1.0 / mean - 1.0f64).log10();
            let mut rng = Seed(14).stream("coverage", nelo.to_bits());
            let mut covered = [0; 2];
            for _ in 0..2_000 {
                let mut pairs = Pairs::default();
                (0..400).for_each(|_| pairs.add(draw(&truth, &mut rng)).expect("an outcome"));
                let estimate = pairs.estimate();
                covered[0] += i32::from((estimate.elo.low..=estimate.elo.high).contains(&elo));
                covered[1] += i32::from((estimate.nelo.low..=estimate.nelo.high).contains(&nelo));
            }
            assert!(covered.iter().all(|&count| (1_860..=1_940).contains(&count)), "{nelo}: {covered:?}");
        }
    }

    /// Under each hypothesis, at most 5% of 1,000 tests (within noise) accept the other one.
    #[test]
    fn error_rates_stay_within_their_bounds() {
        let test = Sprt::new(0.0, 30.0, EloModel::Normalised).expect("in order");
        for (truth, wrong) in [(0.0, SprtState::AcceptElo1), (30.0, SprtState::AcceptElo0)] {
            let probabilities = with_elo(truth);
            let mut rng = Seed(15).stream("errors", truth.to_bits());
            let mut errors = 0;
            for _ in 0..1_000 {
                let mut pairs = Pairs::default();
                let state = loop {
                    // The test is checked every ten pairs, as in matches.
                    (0..10).for_each(|_| pairs.add(draw(&probabilities, &mut rng)).expect("an outcome"));
                    let state = test.outcome(pairs).state;
                    if state != SprtState::Continue {
                        break state;
                    }
                };
                errors += i32::from(state == wrong);
            }
            // 5% of 1,000 and two standard deviations.
            assert!((10..=64).contains(&errors), "{truth}: {errors} of 1000");
        }
    }
}
