//! The least-squares fit of L(n) = E + A n^(−α) to several curves with a common exponent.

/// A measured point of a curve.
#[derive(Copy, Clone, Debug)]
pub(super) struct FitPoint {
    /// ln(n / the largest n of all curves)
    pub(super) log_samples: f64,
    pub(super) loss: f64,
    /// 1 / variance of `loss`
    pub(super) weight: f64,
}

/// A curve: the loss at which it ends, and the part that more data reduce, at the largest n.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct PowerLaw {
    /// E
    pub(super) floor: f64,
    /// A N^(−α) at the largest n, N.
    pub(super) reducible: f64,
}

impl PowerLaw {
    /// The loss at ln(n / N).
    pub(super) fn loss(&self, exponent: f64, log_samples: f64) -> f64 {
        self.floor + self.reducible * (-exponent * log_samples).exp()
    }
}

/// Curves with their common exponent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FittedCurves {
    pub(super) exponent: f64,
    pub(super) curves: Vec<PowerLaw>,
    /// Σ weight · residual², without the prior.
    pub(super) squares: f64,
}

/// The median of the prior of α, and the deviation of ln α: 95% lie between 0.08 and 1.2.
///
/// Published exponents of the data's size: 0.07 to 0.35 in four domains (Hestness et al. 2017), 0.095 without a floor
/// (Kaplan et al. 2020), 0.28 (Hoffmann et al. 2022) and 0.37 (Besiroglu et al. 2024) with one; learning theory has 0.5
/// for the error of estimation, and 1 for a parametric model.
pub(super) const PRIOR_MEDIAN: f64 = 0.3;
pub(super) const PRIOR_DEVIATION: f64 = std::f64::consts::LN_2;

/// Exponents that are tried at all.
const LOWEST: f64 = 0.02;
const HIGHEST: f64 = 3.0;
const GRID: u32 = 24;
const REFINEMENTS: u32 = 14;

/// Minimises Σ weight (loss − E − A n^(−α))² + ((ln α − `centre`) / deviation of the prior)² over α, E ≥ 0 and A ≥ 0.
/// For a given α the curves are separate linear problems; ln α is found on a grid, then by golden sections.
pub(super) fn fit(curves: &[Vec<FitPoint>], centre: f64) -> FittedCurves {
    let total = |log_exponent: f64| {
        let squares: f64 = curves.iter().map(|points| fit_curve(points, log_exponent.exp()).1).sum();
        squares + ((log_exponent - centre) / PRIOR_DEVIATION).powi(2)
    };
    let step = (HIGHEST / LOWEST).ln() / f64::from(GRID);
    let mut best = (LOWEST.ln(), f64::INFINITY);
    for number in 0..=GRID {
        let at = step.mul_add(f64::from(number), LOWEST.ln());
        let squares = total(at);
        if squares < best.1 {
            best = (at, squares);
        }
    }
    let log_exponent = golden_section(best.0 - step, best.0 + step, total);
    let exponent = log_exponent.exp();
    let fitted: Vec<(PowerLaw, f64)> = curves.iter().map(|points| fit_curve(points, exponent)).collect();
    FittedCurves {
        exponent,
        squares: fitted.iter().map(|(_, squares)| squares).sum(),
        curves: fitted.into_iter().map(|(curve, _)| curve).collect(),
    }
}

/// The place of a minimum between two bounds.
fn golden_section(low: f64, high: f64, value: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let [mut low, mut high] = [low, high];
    let mut inner = [high - ratio * (high - low), low + ratio * (high - low)];
    let mut values = inner.map(&value);
    for _ in 0..REFINEMENTS {
        if values[0] <= values[1] {
            high = inner[1];
            inner = [high - ratio * (high - low), inner[0]];
            values = [value(inner[0]), values[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + ratio * (high - low)];
            values = [values[1], value(inner[1])];
        }
    }
    f64::midpoint(low, high)
}

/// The best floor and reducible part at least 0, and the weighted sum of squares.
fn fit_curve(points: &[FitPoint], exponent: f64) -> (PowerLaw, f64) {
    let terms = || points.iter().map(|point| ((-exponent * point.log_samples).exp(), point.loss, point.weight));
    let [mut weights, mut x_sum, mut y_sum] = [0.0; 3];
    for (x, y, weight) in terms() {
        weights += weight;
        x_sum += weight * x;
        y_sum += weight * y;
    }
    let [x_mean, y_mean] = [x_sum / weights, y_sum / weights];
    let [mut xx, mut xy, mut xx_about_0, mut xy_about_0] = [0.0; 4];
    for (x, y, weight) in terms() {
        xx += weight * (x - x_mean).powi(2);
        xy += weight * (x - x_mean) * (y - y_mean);
        xx_about_0 += weight * x * x;
        xy_about_0 += weight * x * y;
    }
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    let floor = y_mean - slope * x_mean;
    let curve = if slope <= 0.0 {
        PowerLaw { floor: y_mean, reducible: 0.0 }
    } else if floor < 0.0 {
        PowerLaw { floor: 0.0, reducible: xy_about_0 / xx_about_0 }
    } else {
        PowerLaw { floor, reducible: slope }
    };
    let residual = |(x, y, weight): (f64, f64, f64)| weight * (y - curve.floor - curve.reducible * x).powi(2);
    (curve, terms().map(residual).sum())
}
