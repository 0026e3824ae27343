//! Fits a logistic curve to the results by score.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{Eval, GameResult, ScoreUnit};
use crate::units::SortedMap;

/// Counts of results, side to move's view.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResultCounts {
    /// Won by the side to move.
    pub wins: u64,
    /// Without a winner.
    pub draws: u64,
    /// Lost by the side to move.
    pub losses: u64,
}

impl ResultCounts {
    pub fn add(&mut self, result: GameResult) {
        match result {
            GameResult::Win => self.wins += 1,
            GameResult::Draw => self.draws += 1,
            GameResult::Loss => self.losses += 1,
        }
    }

    pub fn merge(&mut self, other: ResultCounts) {
        self.wins += other.wins;
        self.draws += other.draws;
        self.losses += other.losses;
    }

    #[must_use]
    pub const fn count(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Mean result in [0, 1].
    #[must_use]
    pub fn mean(&self) -> f64 {
        (self.wins as f64 + self.draws as f64 / 2.0) / self.count() as f64
    }

    /// Sum over all results of the squared distance to `mean`.
    fn squared_error(&self, mean: f64) -> f64 {
        let squares = |count: u64, points: f64| count as f64 * (points - mean).powi(2);
        squares(self.wins, 1.0) + squares(self.draws, 0.5) + squares(self.losses, 0.0)
    }
}

/// Larger scores, in centipawns, are counted as this score.
pub const SCORE_CUT: i32 = 3000;

/// A stored score in centipawns, clamped to ±[`SCORE_CUT`]; `None` for a mate.
#[must_use]
pub fn clamped_centipawns(score: i16, unit: ScoreUnit) -> Option<i32> {
    let is_mate = i32::from(score).abs() > Eval::LARGEST;
    (!is_mate).then(|| (unit.in_centipawns(score).round() as i32).clamp(-SCORE_CUT, SCORE_CUT))
}

/// Results by score in centipawns, as [`clamped_centipawns`] gives it.
#[derive(Debug, Default)]
pub struct ResultsByScore(SortedMap<i32, ResultCounts>);

impl ResultsByScore {
    pub fn add(&mut self, score: i32, result: GameResult) {
        self.0.get_or_default(score).add(result);
    }

    /// The curve by [`fit`].
    #[must_use]
    pub fn fit(self) -> Option<LogisticFit> {
        fit(&self.0.into_iter().collect::<Vec<_>>())
    }
}

/// The mean result of the samples whose score lies in a range.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreBin {
    /// Middle of the range, centipawns.
    pub score: i32,
    /// Samples with such scores.
    pub samples: u64,
    /// In [0, 1], side to move's view.
    pub mean: f64,
    /// Half the width of the 95% interval, if the samples were independent.
    pub plus_minus: f64,
}

/// The expected result as 1 / (1 + exp(−(score − a) / b)), score in centipawns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogisticFit {
    /// The score with an expected result of one half, centipawns.
    pub a: f64,
    /// Scale, centipawns: the right `score_scale` for these scores and results.
    pub b: f64,
    /// Half the widths of the 95% intervals, if the samples were independent. The positions of a game are not, so the
    /// true intervals are wider.
    pub a_plus_minus: f64,
    /// Likewise of `b`.
    pub b_plus_minus: f64,
    /// Samples that were fitted.
    pub samples: u64,
    /// Mean squared difference between result and curve.
    pub mean_squared_error: f64,
    /// By ranges of `BIN` centipawns.
    pub bins: Vec<ScoreBin>,
}

/// Centipawns per range.
const BIN: i32 = 50;
/// Most steps of Newton's method.
const MAX_STEPS: usize = 100;

/// Fits the curve to the results by score, by maximum likelihood; a draw counts as half a win and half a loss. Returns
/// `None` where the results do not determine a curve.
///
/// Uses Newton's method on the logit w·score + c, where b = 1/w and a = −c/w. The intervals come from the sandwich
/// covariance (White 1982) by the delta method.
pub fn fit(results: &[(i32, ResultCounts)]) -> Option<LogisticFit> {
    let samples: u64 = results.iter().map(|(_, results)| results.count()).sum();
    let points = || results.iter().map(|(score, results)| (f64::from(*score) / UNIT, results));
    let mut w = 0.0;
    let mut c = 0.0;
    let mut converged = false;
    for _ in 0..MAX_STEPS {
        let (gradient, hessian) = derivatives(points(), w, c);
        let inverse = hessian.inverse()?;
        let step = inverse.times(gradient);
        // Long steps are shortened, because they would overshoot.
        let damping = 1f64.min(2.0 / step.0.abs().max(step.1.abs()).max(1e-300));
        w += damping * step.0;
        c += damping * step.1;
        converged = step.0.abs() + step.1.abs() < 1e-12;
        if converged {
            break;
        }
    }
    if !converged || w <= 0.0 {
        return None;
    }
    let (_, hessian) = derivatives(points(), w, c);
    let inverse = hessian.inverse()?;
    let mut meat = Symmetric::default();
    let mut error = 0.0;
    for (x, results) in points() {
        let squares = results.squared_error(expected(w * x + c));
        meat.add(x, squares);
        error += squares;
    }
    let covariance = inverse.sandwich(meat);
    // a = −c/w and b = 1/w in units of `UNIT`.
    let a = -c / w;
    let b = 1.0 / w;
    let a_variance = covariance.quadratic((-a / w, -1.0 / w));
    let b_variance = covariance.quadratic((-b / w, 0.0));
    Some(LogisticFit {
        a: a * UNIT,
        b: b * UNIT,
        a_plus_minus: 1.96 * a_variance.sqrt() * UNIT,
        b_plus_minus: 1.96 * b_variance.sqrt() * UNIT,
        samples,
        mean_squared_error: error / samples as f64,
        bins: bins(results),
    })
}

/// Scores are fitted in pawns, so that both parameters have similar magnitudes.
const UNIT: f64 = 100.0;

fn expected(logit: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-logit))
}

/// A symmetric 2 × 2 matrix over (w, c).
#[derive(Copy, Clone, Debug, Default)]
struct Symmetric {
    ww: f64,
    wc: f64,
    cc: f64,
}

impl Symmetric {
    /// Adds `weight` times the outer product of (x, 1).
    fn add(&mut self, x: f64, weight: f64) {
        self.ww += weight * x * x;
        self.wc += weight * x;
        self.cc += weight;
    }

    fn inverse(self) -> Option<Symmetric> {
        let determinant = self.ww * self.cc - self.wc * self.wc;
        let scale = self.ww * self.cc;
        (determinant > 1e-12 * scale).then(|| Symmetric {
            ww: self.cc / determinant,
            wc: -self.wc / determinant,
            cc: self.ww / determinant,
        })
    }

    fn times(self, (w, c): (f64, f64)) -> (f64, f64) {
        (self.ww * w + self.wc * c, self.wc * w + self.cc * c)
    }

    fn quadratic(self, v: (f64, f64)) -> f64 {
        let (w, c) = self.times(v);
        w * v.0 + c * v.1
    }

    /// self · middle · self.
    fn sandwich(self, middle: Symmetric) -> Symmetric {
        let column = |v| self.times(middle.times(self.times(v)));
        let first = column((1.0, 0.0));
        let second = column((0.0, 1.0));
        Symmetric { ww: first.0, wc: first.1, cc: second.1 }
    }
}

/// Gradient and negated Hessian of the log-likelihood.
fn derivatives<'a>(points: impl Iterator<Item = (f64, &'a ResultCounts)>, w: f64, c: f64) -> ((f64, f64), Symmetric) {
    let mut gradient = (0.0, 0.0);
    let mut hessian = Symmetric::default();
    for (x, results) in points {
        let count = results.count() as f64;
        let p = expected(w * x + c);
        let residual = count * (results.mean() - p);
        gradient.0 += residual * x;
        gradient.1 += residual;
        hessian.add(x, count * p * (1.0 - p));
    }
    (gradient, hessian)
}

fn bins(results: &[(i32, ResultCounts)]) -> Vec<ScoreBin> {
    let bin = |score: i32| (score + BIN / 2).div_euclid(BIN);
    let bins = results.chunk_by(|a, b| bin(a.0) == bin(b.0));
    bins.map(|scores| {
        let mut total = ResultCounts::default();
        scores.iter().for_each(|(_, results)| total.merge(*results));
        let samples = total.count();
        let mean = total.mean();
        let plus_minus = 1.96 * (total.squared_error(mean) / samples as f64 / samples as f64).sqrt();
        ScoreBin { score: bin(scores[0].0) * BIN, samples, mean, plus_minus }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn a_curve_is_recovered_from_its_own_results() {
        let a = 12.0;
        let b = 230.0;
        let mut rng = Seed(6).stream("logistic", 0);
        let results: Vec<(i32, ResultCounts)> = (-900..900)
            .map(|score| {
                let p = expected((f64::from(score) - a) / b);
                let mut results = ResultCounts::default();
                for _ in 0..40 {
                    results.add(if rng.random_bool(p) { GameResult::Win } else { GameResult::Loss });
                }
                (score, results)
            })
            .collect();
        let fitted = fit(&results).expect("determined");
        assert!((fitted.a - a).abs() < 2.0 * fitted.a_plus_minus, "{fitted:?}");
        assert!((fitted.b - b).abs() < 2.0 * fitted.b_plus_minus, "{fitted:?}");
        assert!(fitted.a_plus_minus < 10.0 && fitted.b_plus_minus < 10.0);
        assert_eq!(fitted.samples, 72_000);
        assert_eq!(fitted.bins.iter().map(|bin| bin.samples).sum::<u64>(), 72_000);
    }

    #[test]
    fn results_that_determine_no_curve_give_none() {
        let only = |result| {
            let mut results = ResultCounts::default();
            results.add(result);
            results
        };
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(10, only(GameResult::Win))]), None);
        assert_eq!(fit(&[(-10, only(GameResult::Loss)), (10, only(GameResult::Win))]), None);
        assert_eq!(fit(&[(-10, only(GameResult::Win)), (10, only(GameResult::Loss))]), None);
    }
}
