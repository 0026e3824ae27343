//! Expected results against scores, and the logistic curve that fits them best.

use serde::{Deserialize, Serialize};

use crate::data::GameResult;

/// Results of the side to move.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultCounts {
    pub wins: u64,
    pub draws: u64,
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

    /// Sum of squared distances to `mean`, over all of them.
    fn squares(&self, mean: f64) -> f64 {
        let part = |count: u64, points: f64| count as f64 * (points - mean).powi(2);
        part(self.wins, 1.0) + part(self.draws, 0.5) + part(self.losses, 0.0)
    }
}

/// The mean result of the samples whose score lies in a range.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreBin {
    /// Middle of the range, centipawns.
    pub score: i32,
    pub samples: u64,
    /// In [0, 1], side to move's view.
    pub mean: f64,
    /// Half of the 95% interval, samples taken as independent.
    pub plus_minus: f64,
}

/// The expected result as 1 / (1 + exp(−(score − a) / b)), score in centipawns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogisticFit {
    /// The score with an expected result of one half, centipawns.
    pub a: f64,
    /// Scale, centipawns: what `score_scale` should be for these scores and results.
    pub b: f64,
    /// Halves of the 95% intervals, samples taken as independent; the positions of a game are not, so the truth is
    /// wider.
    pub a_plus_minus: f64,
    pub b_plus_minus: f64,
    pub samples: u64,
    /// Mean squared distance between result and curve.
    pub mean_squared_error: f64,
    /// By ranges of [`BIN`] centipawns.
    pub bins: Vec<ScoreBin>,
}

/// Centipawns a range.
const BIN: i32 = 50;
const ROUNDS: usize = 100;

/// Fits the curve by maximum likelihood (a draw counts as half a win and half a loss) to the results by score; none
/// where they do not determine one.
///
/// Newton's method on the logit w·score + c; b = 1/w, a = −c/w. Intervals from the sandwich covariance (White 1982) by
/// the delta method.
pub fn fit(outcomes: &[(i32, ResultCounts)]) -> Option<LogisticFit> {
    let samples: u64 = outcomes.iter().map(|(_, outcomes)| outcomes.count()).sum();
    let points = || outcomes.iter().map(|(score, outcomes)| (f64::from(*score) / UNIT, outcomes));
    let (mut w, mut c) = (0.0, 0.0);
    let mut settled = false;
    for _ in 0..ROUNDS {
        let (gradient, hessian) = derivatives(points(), w, c);
        let inverse = hessian.inverse()?;
        let step = inverse.times(gradient);
        // Halved where a whole step would overshoot.
        let damp = 1f64.min(2.0 / step.0.abs().max(step.1.abs()).max(1e-300));
        w += damp * step.0;
        c += damp * step.1;
        settled = step.0.abs() + step.1.abs() < 1e-12;
        if settled {
            break;
        }
    }
    if !settled || w <= 0.0 {
        return None;
    }
    let (_, hessian) = derivatives(points(), w, c);
    let inverse = hessian.inverse()?;
    let mut meat = Symmetric::default();
    let mut error = 0.0;
    for (x, outcomes) in points() {
        let squares = outcomes.squares(expected(w * x + c));
        meat.add(x, squares);
        error += squares;
    }
    let covariance = inverse.sandwich(meat);
    // a = −c/w and b = 1/w in units of `UNIT`.
    let (a, b) = (-c / w, 1.0 / w);
    let a_variance = covariance.quadratic((-a / w, -1.0 / w));
    let b_variance = covariance.quadratic((-b / w, 0.0));
    Some(LogisticFit {
        a: a * UNIT,
        b: b * UNIT,
        a_plus_minus: 1.96 * a_variance.sqrt() * UNIT,
        b_plus_minus: 1.96 * b_variance.sqrt() * UNIT,
        samples,
        mean_squared_error: error / samples as f64,
        bins: bins(outcomes),
    })
}

/// Scores are fitted in pawns, so that both parameters are of one size.
const UNIT: f64 = 100.0;

fn expected(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
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
        let (first, second) = (column((1.0, 0.0)), column((0.0, 1.0)));
        Symmetric { ww: first.0, wc: first.1, cc: second.1 }
    }
}

/// Gradient and negated Hessian of the log-likelihood.
fn derivatives<'a>(points: impl Iterator<Item = (f64, &'a ResultCounts)>, w: f64, c: f64) -> ((f64, f64), Symmetric) {
    let mut gradient = (0.0, 0.0);
    let mut hessian = Symmetric::default();
    for (x, outcomes) in points {
        let (count, p) = (outcomes.count() as f64, expected(w * x + c));
        let residual = count * (outcomes.mean() - p);
        gradient.0 += residual * x;
        gradient.1 += residual;
        hessian.add(x, count * p * (1.0 - p));
    }
    (gradient, hessian)
}

fn bins(outcomes: &[(i32, ResultCounts)]) -> Vec<ScoreBin> {
    let bin = |score: i32| (score + BIN / 2).div_euclid(BIN);
    let parts = outcomes.chunk_by(|a, b| bin(a.0) == bin(b.0));
    parts
        .map(|part| {
            let mut all = ResultCounts::default();
            part.iter().for_each(|(_, outcomes)| all.merge(*outcomes));
            let (samples, mean) = (all.count(), all.mean());
            let plus_minus = 1.96 * (all.squares(mean) / samples as f64 / samples as f64).sqrt();
            ScoreBin { score: bin(part[0].0) * BIN, samples, mean, plus_minus }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    /// Results drawn from the curve are fitted by it, within the interval.
    #[test]
    fn a_known_curve_is_found() {
        let (a, b) = (12.0, 230.0);
        let mut rng = Seed(6).stream("logistic", 0);
        let outcomes: Vec<(i32, ResultCounts)> = (-900..900)
            .map(|score| {
                let p = expected((f64::from(score) - a) / b);
                let mut outcomes = ResultCounts::default();
                for _ in 0..40 {
                    outcomes.add(if rng.random_bool(p) { GameResult::Win } else { GameResult::Loss });
                }
                (score, outcomes)
            })
            .collect();
        let fitted = fit(&outcomes).expect("determined");
        assert!((fitted.a - a).abs() < 2.0 * fitted.a_plus_minus, "{fitted:?}");
        assert!((fitted.b - b).abs() < 2.0 * fitted.b_plus_minus, "{fitted:?}");
        assert!(fitted.a_plus_minus < 10.0 && fitted.b_plus_minus < 10.0);
        assert_eq!(fitted.samples, 72_000);
        assert_eq!(fitted.bins.iter().map(|bin| bin.samples).sum::<u64>(), 72_000);
    }

    #[test]
    fn what_determines_no_curve_gives_none() {
        let only = |result| {
            let mut outcomes = ResultCounts::default();
            outcomes.add(result);
            outcomes
        };
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(10, only(GameResult::Win))]), None);
        assert_eq!(fit(&[(-10, only(GameResult::Loss)), (10, only(GameResult::Win))]), None);
        assert_eq!(fit(&[(-10, only(GameResult::Win)), (10, only(GameResult::Loss))]), None);
    }
}
