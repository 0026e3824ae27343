//! Means over few repetitions, with 95% confidence intervals.

use schemars::JsonSchema;
use serde::Serialize;

/// A mean over repetitions with its 95% confidence interval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// The estimate.
    pub mean: f64,
    /// Half-width of the interval; `None` with fewer than two repetitions.
    pub interval: Option<f64>,
    /// Number of repetitions.
    pub count: usize,
}

/// Confidence level of all intervals.
pub const CONFIDENCE: f64 = 0.95;

impl Estimate {
    /// The mean of independent repetitions with Student's t interval at n − 1 degrees of freedom: mean ± t · s / √n.
    /// `None` without values or if a value is not finite.
    #[must_use]
    pub fn over(values: &[f64]) -> Option<Estimate> {
        let count = values.len();
        if count == 0 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let interval = (count > 1).then(|| {
            let degrees = count - 1;
            student_t_quantile(CONFIDENCE, degrees) * (squares / degrees as f64 / count as f64).sqrt()
        });
        Some(Estimate { mean, interval, count })
    }

    /// The estimate times a factor.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Estimate {
        Estimate { mean: self.mean * factor, interval: self.interval.map(|half| half * factor.abs()), ..self }
    }

    /// The interval's bounds; without an interval, the mean twice.
    #[must_use]
    pub fn bounds(self) -> (f64, f64) {
        let half = self.interval.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }
}

/// The t with P(|T| ≤ t) = `confidence` under Student's distribution; infinite at 0 degrees of freedom.
#[must_use]
pub fn student_t_quantile(confidence: f64, degrees: usize) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    // Bisection: the probability grows with the angle, and 64 halvings determine every bit.
    let mut low = 0.0;
    let mut high = std::f64::consts::FRAC_PI_2;
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if probability_within(middle, degrees) < confidence { low = middle } else { high = middle }
    }
    low.tan() * (degrees as f64).sqrt()
}

/// P(|T| ≤ t) for t = √degrees · tan(angle), by the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn probability_within(angle: f64, degrees: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    // Powers of the cosine from 0 (even degrees) or 1 (odd degrees) to degrees − 2, each with its coefficient.
    let (first, mut term) = if odd { (1, cosine) } else { (0, 1.0) };
    let mut sum = 0.0;
    for power in (first..degrees.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
    }
    if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from tables of the distribution.
    #[test]
    fn quantiles() {
        let check = |confidence, degrees, expected: f64| {
            let t = student_t_quantile(confidence, degrees);
            assert!((t - expected).abs() < 5e-4, "{confidence} {degrees}: {t}");
        };
        check(0.95, 1, 12.7062);
        check(0.95, 2, 4.3027);
        check(0.95, 3, 3.1824);
        check(0.95, 4, 2.7764);
        check(0.95, 29, 2.0452);
        check(0.95, 30, 2.0423);
        check(0.99, 9, 3.2498);
        assert_eq!(student_t_quantile(0.95, 0), f64::INFINITY);
    }

    #[test]
    fn intervals() {
        let estimate = Estimate::over(&[1.0, 2.0, 3.0]).expect("three values");
        assert_eq!((estimate.mean, estimate.count), (2.0, 3));
        // s = 1, so t / √3 = 4.3027 / 1.7321
        assert!((estimate.interval.expect("three values") - 2.4841).abs() < 1e-3);
        assert_eq!(Estimate::over(&[4.0]), Some(Estimate { mean: 4.0, interval: None, count: 1 }));
        assert_eq!(Estimate::over(&[0.5, 0.5]).and_then(|e| e.interval), Some(0.0));
        assert_eq!(Estimate::over(&[]), None);
        assert_eq!(Estimate::over(&[1.0, f64::NAN]), None);
        assert_eq!(estimate.scaled(-2.0).mean, -4.0);
        assert!(estimate.scaled(-2.0).interval > Some(4.0));
    }
}
