//! Elo at equal cost, predicted from a difference of losses and a ratio of speeds. The prediction orders candidates;
//! matches decide.

use crate::record::{LossDifference, SearchPrediction, SearchRecord};
use crate::statistics::pentanomial::Interval;

/// The two-sided 95% quantile of the normal distribution.
const Z: f64 = 1.96;
/// How far, in Elo, sets of the same loss and speed may lie apart: a standard deviation.
const SCATTER: f64 = 15.0;

/// A match of the search, and what was known of both sets.
#[derive(Copy, Clone, Debug)]
struct Evidence {
    loss: f64,
    log2_speed: f64,
    elo: f64,
    variance: f64,
}

/// The prediction by the matches of a search so far: the mean and the covariance of both factors after them, by Bayes'
/// rule for a linear model with normal errors, beginning with [`SearchPrediction::before_matches`]. Speeds are those that
/// candidates are ordered by, or, of rows that were given and of rows at equal speed, a node's.
pub fn fitted(tree: &SearchRecord, cost_weight: f64, is_at_equal_speed: bool) -> SearchPrediction {
    let candidates = tree.rounds.iter().flat_map(|round| &round.candidates);
    let evidence = candidates.filter_map(|candidate| {
        let (full, played) = (candidate.full.as_ref()?, candidate.played.as_ref()?);
        let lifted = candidate.liftings.last().filter(|_| !is_at_equal_speed);
        let error = (played.elo.high - played.elo.low) / (2.0 * Z);
        Some(Evidence {
            loss: full.loss.value,
            log2_speed: lifted.map(|lifting| lifting.log2_speed).or(played.log2_speed).unwrap_or_default(),
            elo: played.elo.value,
            variance: error.powi(2) + SCATTER.powi(2),
        })
    });
    after(&evidence.collect::<Vec<_>>(), cost_weight)
}

fn after(evidence: &[Evidence], cost_weight: f64) -> SearchPrediction {
    let prior = SearchPrediction::before_matches(cost_weight);
    // The sums Σ x xᵀ / σ² and Σ x y / σ², to which the prior adds as two observations do.
    let [mut loss, mut speed] = [prior.loss_error, prior.speed_error].map(|error| error.powi(-2));
    let mut both = 0.0;
    let mut of_loss = prior.loss * loss;
    let mut of_speed = prior.speed * speed;
    for Evidence { loss: x, log2_speed: y, elo, variance } in evidence {
        loss += x * x / variance;
        speed += y * y / variance;
        both += x * y / variance;
        of_loss += x * elo / variance;
        of_speed += y * elo / variance;
    }
    let determinant = loss * speed - both * both;
    let [loss_variance, speed_variance] = [speed / determinant, loss / determinant];
    let covariance = -both / determinant;
    SearchPrediction {
        loss: loss_variance * of_loss + covariance * of_speed,
        loss_error: loss_variance.sqrt(),
        speed: covariance * of_loss + speed_variance * of_speed,
        speed_error: speed_variance.sqrt(),
        correlation: covariance / (loss_variance * speed_variance).sqrt(),
        matches: evidence.len(),
    }
}

/// Elo at equal cost with an interval that holds the errors of the loss and of both factors.
pub fn predicted(by: &SearchPrediction, loss: LossDifference, log2_speed: f64) -> Interval {
    let value = by.loss * loss.value + by.speed * log2_speed;
    let [of_loss, of_speed] = [loss.value * by.loss_error, log2_speed * by.speed_error];
    let of_factors = of_loss.powi(2) + of_speed.powi(2) + 2.0 * by.correlation * of_loss * of_speed;
    let half = (Z * Z * of_factors + (by.loss * loss.half_width).powi(2)).max(0.0).sqrt();
    Interval { value, low: value - half, high: value + half }
}

/// Elo at equal cost by prediction and match together: the mean of both, weighted by their variances. Few games say
/// little of a candidate whose loss is known.
pub fn expected(prediction: Option<Interval>, played: Interval) -> f64 {
    let variance = |of: Interval| ((of.high - of.low) / (2.0 * Z)).powi(2);
    let Some(prediction) = prediction else { return played.value };
    let [of_prediction, of_games] = [variance(prediction) + SCATTER.powi(2), variance(played)];
    (prediction.value * of_games + played.value * of_prediction) / (of_prediction + of_games)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_matches_the_prior_predicts() {
        let by = after(&[], 0.5);
        let prior = SearchPrediction::before_matches(0.5);
        assert!((2.0 * prior.speed - SearchPrediction::default().speed).abs() < 1e-9);
        assert!((by.loss - prior.loss).abs() < 1e-9 && (by.speed_error - prior.speed_error).abs() < 1e-9, "{by:?}");
        let found = predicted(&by, LossDifference { value: -0.05, half_width: 0.01 }, -0.1);
        assert!((found.value - (0.05 * 550.0 - 0.1 * prior.speed)).abs() < 1e-9, "{found:?}");
        assert!(found.low < found.value - 5.5 && found.high > found.value + 5.5, "{found:?}");
    }

    #[test]
    fn few_games_leave_the_prediction_and_many_replace_it() {
        let of = |value: f64, half: f64| Interval { value, low: value - half, high: value + half };
        let predicted = of(40.0, 10.0);
        assert!((expected(Some(predicted), of(-100.0, 1e6)) - 40.0).abs() < 0.1);
        assert!((expected(Some(predicted), of(-100.0, 0.1)) + 100.0).abs() < 0.1);
        // Errors of the same size.
        let between = expected(Some(predicted), of(0.0, Z * (SCATTER.powi(2) + (10.0 / Z).powi(2)).sqrt()));
        assert!((between - 20.0).abs() < 1e-9, "{between}");
        assert!((expected(None, of(7.0, 3.0)) - 7.0).abs() < 1e-9);
    }

    /// Matches that follow other factors than the prior's give those factors, with small errors.
    #[test]
    fn many_matches_replace_the_prior() {
        let matches: Vec<Evidence> = (0..200)
            .map(|number| {
                let loss = -0.001 * f64::from(number % 20) - 0.02;
                let log2_speed = 0.1 * f64::from(number % 7) - 0.3;
                Evidence { loss, log2_speed, elo: -900.0 * loss + 80.0 * log2_speed, variance: 25.0 }
            })
            .collect();
        let by = after(&matches, 1.0);
        assert!((by.loss + 900.0).abs() < 15.0 && (by.speed - 80.0).abs() < 3.0, "{by:?}");
        assert!(by.loss_error < 20.0 && by.speed_error < 3.0 && by.matches == 200, "{by:?}");
    }
}
