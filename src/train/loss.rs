//! The losses `eval` and `pqr` of outputs in memory, with their derivatives. In double precision and without the C
//! library's functions, whose last bit differs between machines.

use super::batch::Labels;
use super::trainer::SampleLosses;
use super::{EvalLoss, LossForm, PqrLoss};

/// The losses of a run's methods.
#[derive(Copy, Clone, Debug)]
pub struct Loss {
    pub eval: EvalLoss,
    pub pqr: PqrLoss,
}

impl Loss {
    /// The losses of outputs, [positions] in centipawns. The derivatives of the samples' summed losses with respect to
    /// the outputs, times `factor`, replace the outputs.
    #[must_use]
    pub fn differentiate(&self, out: &mut [f32], labels: Labels<'_>, factor: f64) -> SampleLosses {
        match labels {
            Labels::Eval(targets) => {
                let mut losses = Vec::with_capacity(targets.len());
                for (out, target) in out.iter_mut().zip(targets) {
                    let (loss, slope) = eval(&self.eval, f64::from(*out), f64::from(*target));
                    losses.push(loss as f32);
                    *out = (slope * factor) as f32;
                }
                SampleLosses { losses, preferred: Vec::new() }
            }
            Labels::Pqr => {
                let mut each = SampleLosses::default();
                for triplet in out.as_chunks_mut::<3>().0 {
                    each.preferred.push(triplet[2] > triplet[1]);
                    let (loss, slopes) = pqr(&self.pqr, triplet.map(f64::from));
                    each.losses.push(loss as f32);
                    *triplet = slopes.map(|slope| (slope * factor) as f32);
                }
                each
            }
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// log σ(x)
fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - libm::log1p(libm::exp(-x.abs()))
}

fn eval(loss: &EvalLoss, out: f64, target: f64) -> (f64, f64) {
    match loss.form {
        LossForm::Power => {
            let (expected, [a, b]) = expected_by_output(loss, out);
            let error = expected - target;
            // |error|^(power − 1)
            let rest = libm::pow(error.abs(), loss.power - 1.0);
            let sign = if error == 0.0 { 0.0 } else { error.signum() };
            // Without an asymmetry both are multiplied by 1, which changes no bit.
            let factor = loss.side_factor(expected, target);
            let slope = factor * loss.power * rest * sign * a * b / loss.output_scale;
            (factor * (rest * error.abs()), slope)
        }
        LossForm::Epsilon => {
            let beyond = (out - target).abs() - loss.epsilon;
            // A comparison that keeps NaN.
            if beyond <= 0.0 { (0.0, 0.0) } else { (beyond, (out - target).signum()) }
        }
    }
}

/// The expected result by an output in centipawns, and two factors of output_scale times its derivative.
fn expected_by_output(loss: &EvalLoss, out: f64) -> (f64, [f64; 2]) {
    if loss.output_offset == 0.0 {
        let expected = sigmoid(out / loss.output_scale);
        return (expected, [expected, 1.0 - expected]);
    }
    let win = sigmoid((out - loss.output_offset) / loss.output_scale);
    let defeat = sigmoid((-out - loss.output_offset) / loss.output_scale);
    (0.5 * (1.0 + win - defeat), [win * (1.0 - win) + defeat * (1.0 - defeat), 0.5])
}

fn pqr(loss: &PqrLoss, outputs: [f64; 3]) -> (f64, [f64; 3]) {
    let expected = outputs.map(|out| sigmoid(out / loss.output_scale));
    let [p, q, r] = expected.map(|expected| 2.0 * expected - 1.0);
    let value = -log_sigmoid(r - q) - loss.kappa * (log_sigmoid(p + q) + log_sigmoid(-p - q));
    // (−log σ)′(x) = σ(x) − 1, and κ·(−log σ(x) − log σ(−x))′ = κ·(2σ(x) − 1).
    let preference = sigmoid(r - q) - 1.0;
    let equality = loss.kappa * (2.0 * sigmoid(p + q) - 1.0);
    let slopes = [equality, equality - preference, preference];
    let squash = |n: usize| 2.0 * expected[n] * (1.0 - expected[n]) / loss.output_scale;
    (value, std::array::from_fn(|n| slopes[n] * squash(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses are those of [`EvalLoss::of`], and slopes their differences.
    #[test]
    fn slopes_are_those_of_the_losses() {
        for (output_offset, qp_asymmetry) in [(0.0, 0.0), (250.0, 0.0), (0.0, 0.4), (250.0, -0.4)] {
            let eval = EvalLoss { output_offset, qp_asymmetry, ..EvalLoss::default() };
            let loss = Loss { eval, pqr: PqrLoss::default() };
            for (out, target) in [(0.0f32, 0.3f32), (310.0, 0.9), (-40.0, 0.2), (900.0, 0.1)] {
                let of = |out: f64| eval.of(out, f64::from(target));
                let mut slope = [out];
                let found = loss.differentiate(&mut slope, Labels::Eval(&[target]), 1.0).losses[0];
                assert!((f64::from(found) - of(out.into())).abs() < 1e-6);
                let expected = (of(f64::from(out) + 0.01) - of(f64::from(out) - 0.01)) / 0.02;
                let error = f64::from(slope[0]) - expected;
                assert!(error.abs() < 1e-6 + 1e-4 * expected.abs(), "{eval:?} {out}: {} {expected}", slope[0]);
            }
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        let loss = Loss { eval: EvalLoss::default(), pqr: PqrLoss::default() };
        for form in [LossForm::Power, LossForm::Epsilon] {
            let loss = Loss { eval: EvalLoss { form, ..loss.eval }, ..loss };
            for (out, target) in [(f32::NAN, 0.5), (1.0, f32::NAN)] {
                let losses = loss.differentiate(&mut [out], Labels::Eval(&[target]), 1.0);
                assert!(losses.losses[0].is_nan(), "{form:?} {out} {target}");
            }
        }
    }
}
