//! Quantiles and probabilities of Student's t for any degrees of freedom, from the incomplete beta function.

/// Degrees of freedom above which Student's t is expanded around the normal distribution.
const NEARLY_NORMAL: f64 = 1e3;

/// The t with P(|T| ≤ t) = `confidence` under Student's distribution with `degrees` > 0, which need not be whole.
/// Infinite at 0 degrees.
#[must_use]
pub fn t_quantile(confidence: f64, degrees: f64) -> f64 {
    if degrees.is_nan() || degrees <= 0.0 {
        return f64::INFINITY;
    }
    if degrees > NEARLY_NORMAL {
        // Abramowitz and Stegun, 26.7.5.
        let z = bisect(|z| libm::erf(z / std::f64::consts::SQRT_2) < confidence, 40.0);
        let terms = [(z.powi(3) + z) / 4.0, (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0];
        return z + terms[0] / degrees + terms[1] / degrees.powi(2);
    }
    // With t = √ν · tan(angle), P(|T| ≤ t) = I(sin² angle; ½, ν/2) (Abramowitz and Stegun, 26.5.27).
    let below = |angle: f64| incomplete_beta(angle.sin().powi(2), 0.5, degrees / 2.0) < confidence;
    bisect(below, std::f64::consts::FRAC_PI_2).tan() * degrees.sqrt()
}

/// The point between 0 and `high` up to which `below` holds.
fn bisect(below: impl Fn(f64) -> bool, high: f64) -> f64 {
    let mut low = 0.0;
    let mut high = high;
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if below(middle) { low = middle } else { high = middle }
    }
    low
}

/// P(T ≤ `t`) under Student's distribution with `degrees` > 0, which need not be whole.
#[must_use]
pub fn t_probability(t: f64, degrees: f64) -> f64 {
    if degrees > NEARLY_NORMAL {
        // Abramowitz and Stegun, 26.7.8.
        let z = t * (1.0 - 0.25 / degrees) / (1.0 + t * t / (2.0 * degrees)).sqrt();
        return 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    }
    let outside = incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5);
    if t > 0.0 { 1.0 - outside / 2.0 } else { outside / 2.0 }
}

/// The regularised incomplete beta function I(x; a, b), by its continued fraction (Press et al., Numerical Recipes,
/// 6.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() * beta_fraction(x, a, b) / a
    } else {
        1.0 - front.exp() * beta_fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const STEPS: u32 = 20_000;
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Z_95, student_t_quantile};

    #[test]
    fn quantiles_of_whole_degrees_equal_the_finite_sums() {
        for degrees in [1, 2, 3, 7, 30, 400, 1_001, 5_000] {
            for confidence in [0.5, 0.95, 0.999] {
                let found = t_quantile(confidence, degrees as f64);
                let expected = student_t_quantile(confidence, degrees);
                assert!((found / expected - 1.0).abs() < 1e-7, "{confidence} {degrees}: {found} {expected}");
            }
        }
    }

    #[test]
    fn quantiles_between_and_beyond() {
        let between = t_quantile(0.95, 2.5);
        assert!((3.1824..4.3027).contains(&between), "{between}");
        for degrees in [1e6, 1e12] {
            let far = t_quantile(0.95, degrees);
            assert!((far - Z_95).abs() < 1e-5, "{degrees}: {far}");
        }
        assert_eq!(t_quantile(0.95, 0.0), f64::INFINITY);
    }

    #[test]
    fn probabilities_are_those_of_the_quantiles() {
        for degrees in [1.0, 2.5, 30.0] {
            for confidence in [0.5, 0.95, 0.999] {
                let t = t_quantile(confidence, degrees);
                let outside = (1.0 - confidence) / 2.0;
                assert!((t_probability(t, degrees) - 1.0 + outside).abs() < 1e-9, "{confidence} {degrees}");
                assert!((t_probability(-t, degrees) - outside).abs() < 1e-9, "{confidence} {degrees}");
            }
        }
        assert_eq!(t_probability(0.0, 3.0), 0.5);
        assert!((t_probability(2.0, 1e3) - t_probability(2.0, 1e3 + 1e-6)).abs() < 1e-6);
    }
}
