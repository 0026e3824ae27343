//! The losses of the best constant output, with which a network's validation loss is compared.

use super::{EvalLoss, LossForm, PqrLoss};

/// The eval loss of the best constant output, by golden-section search over the constant's target c. Both forms are
/// convex in c: |c − t|^power for power ≥ 1, times a factor on either side of t, and max(0, |c − t| − ε).
#[must_use]
pub fn eval_baseline(targets: &[f32], loss: &EvalLoss) -> f64 {
    let loss_of = |constant: f64, target: f64| {
        let error = (constant - target).abs();
        match loss.form {
            LossForm::Power => loss.side_factor(constant, target) * libm::pow(error, loss.power),
            LossForm::Epsilon => (error - loss.epsilon).max(0.0),
        }
    };
    let mean = |constant: f64| {
        let sum: f64 = targets.iter().map(|&target| loss_of(constant, target.into())).sum();
        sum / targets.len().max(1) as f64
    };
    let shrink = (5f64.sqrt() - 1.0) / 2.0;
    let bounds = targets.iter().fold((0.0, 1.0), |(low, high): (f32, f32), &t| (low.min(t), high.max(t)));
    let mut low = f64::from(bounds.0);
    let mut high = f64::from(bounds.1);
    let mut inner = [high - shrink * (high - low), low + shrink * (high - low)];
    let mut losses = inner.map(mean);
    while high - low > 1e-6 {
        if losses[0] < losses[1] {
            high = inner[1];
            inner = [high - shrink * (high - low), inner[0]];
            losses = [mean(inner[0]), losses[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + shrink * (high - low)];
            losses = [losses[1], mean(inner[1])];
        }
    }
    losses[0].min(losses[1])
}

/// The pqr loss of the best constant output, 0: r = q and p = −q.
#[must_use]
pub fn pqr_baseline(loss: &PqrLoss) -> f64 {
    std::f64::consts::LN_2 * (1.0 + 2.0 * loss.kappa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eval_baseline_is_the_best_constant() {
        // Power 2: the mean, with the variance as loss.
        let targets = [0.1, 0.2, 0.9, 0.4];
        let power = |power| EvalLoss { power, ..EvalLoss::default() };
        assert!((eval_baseline(&targets, &power(2.0)) - 0.095).abs() < 1e-6);
        // Any other constant is worse.
        let best = eval_baseline(&targets, &power(2.6));
        for constant in 0..=100 {
            let constant = f64::from(constant) / 100.0;
            let other = targets.iter().map(|&t| (constant - f64::from(t)).abs().powf(2.6)).sum::<f64>() / 4.0;
            assert!(best <= other + 1e-9);
        }
        // Constants from −5 to 10 lose nothing on 0 and 5, and 180 in sum on the other two.
        let loss = EvalLoss { form: LossForm::Epsilon, epsilon: 10.0, ..EvalLoss::default() };
        assert!((eval_baseline(&[-100.0, 0.0, 5.0, 100.0], &loss) - 45.0).abs() < 1e-3);
    }
}
