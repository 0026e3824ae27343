//! The losses `eval` and `pqr` as tensor expressions, and the baseline losses of the best constant output. Targets (the
//! blend of score and result) come from [`EvalLoss::target`], in `loss_options.rs`.

use tch::{Kind, TchError, Tensor};

use super::batch::Labels;
use super::model::SampleLosses;
use super::{EvalLoss, LossForm, PqrLoss};

/// The losses of a run's methods.
#[derive(Copy, Clone, Debug)]
pub struct Loss {
    pub eval: EvalLoss,
    pub pqr: PqrLoss,
}

/// The losses of a batch or a shard.
pub struct Losses {
    /// The loss of each sample: [samples].
    pub each: Tensor,
    /// pqr: whether r > q, [samples].
    pub preferred: Option<Tensor>,
}

impl Losses {
    /// The losses in memory.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn copied(&self) -> Result<SampleLosses, TchError> {
        let losses = Vec::try_from(self.each.f_detach()?)?;
        let preferred = self.preferred.as_ref().map(Vec::try_from).transpose()?;
        Ok(SampleLosses { losses, preferred: preferred.unwrap_or_default() })
    }
}

impl Loss {
    /// The losses of outputs: [positions], in centipawns from each position's side to move.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn of(&self, out: &Tensor, labels: Labels<'_>) -> Result<Losses, TchError> {
        match labels {
            Labels::Eval(targets) => {
                let targets = Tensor::f_from_slice(targets)?.f_to_device(out.device())?.f_to_kind(out.f_kind()?)?;
                let each = match self.eval.form {
                    LossForm::Power => power(out, &targets, &self.eval)?,
                    LossForm::Epsilon => epsilon(out, &targets, &self.eval)?,
                };
                Ok(Losses { each, preferred: None })
            }
            Labels::Pqr => {
                let triplets = out.f_view([-1, 3])?;
                let [p, q, r] = [triplets.f_select(1, 0)?, triplets.f_select(1, 1)?, triplets.f_select(1, 2)?];
                Ok(Losses { each: pqr(&p, &q, &r, &self.pqr)?, preferred: Some(r.f_gt_tensor(&q)?) })
            }
        }
    }
}

/// |σ(out/output_scale) − t|^power
fn power(out: &Tensor, targets: &Tensor, loss: &EvalLoss) -> Result<Tensor, TchError> {
    let expected = out.f_div_scalar(loss.output_scale)?.f_sigmoid()?;
    expected.f_sub(targets)?.f_abs()?.f_pow_tensor_scalar(loss.power)
}

/// max(0, |score − out| − ε)
fn epsilon(out: &Tensor, scores: &Tensor, loss: &EvalLoss) -> Result<Tensor, TchError> {
    out.f_sub(scores)?.f_abs()?.f_sub_scalar(loss.epsilon)?.f_relu()
}

/// −log σ(r−q) − κ·log σ(p+q) − κ·log σ(−p−q) over f = 2σ(out/output_scale) − 1.
fn pqr(p: &Tensor, q: &Tensor, r: &Tensor, loss: &PqrLoss) -> Result<Tensor, TchError> {
    let squashed =
        |out: &Tensor| out.f_div_scalar(loss.output_scale)?.f_sigmoid()?.f_mul_scalar(2.0)?.f_sub_scalar(1.0);
    let (p, q, r) = (squashed(p)?, squashed(q)?, squashed(r)?);
    let sum = p.f_add(&q)?;
    let equal = sum.f_log_sigmoid()?.f_add(&sum.f_neg()?.f_log_sigmoid()?)?.f_mul_scalar(loss.kappa)?;
    r.f_sub(&q)?.f_log_sigmoid()?.f_add(&equal)?.f_neg()
}

/// The eval loss of the best constant output, by golden-section search over the constant's target c. Both forms are
/// convex in c: |c − t|^power for power ≥ 1, and max(0, |c − t| − ε).
#[must_use]
pub fn eval_baseline(targets: &[f32], loss: &EvalLoss) -> f64 {
    let loss_of = |error: f64| match loss.form {
        LossForm::Power => error.powf(loss.power),
        LossForm::Epsilon => (error - loss.epsilon).max(0.0),
    };
    let mean = |constant: f64| {
        let sum: f64 = targets.iter().map(|&target| loss_of((constant - f64::from(target)).abs())).sum();
        sum / targets.len().max(1) as f64
    };
    let shrink = (5f64.sqrt() - 1.0) / 2.0;
    let bounds = targets.iter().fold((0.0, 1.0), |(low, high): (f32, f32), &t| (low.min(t), high.max(t)));
    let (mut low, mut high) = (f64::from(bounds.0), f64::from(bounds.1));
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

/// The sum, in double precision.
pub fn total(values: &Tensor) -> Result<f64, TchError> {
    values.f_sum(Kind::Double)?.f_double_value(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    fn losses(out: &[f64], labels: Labels<'_>, loss: &Loss) -> Vec<f64> {
        let losses = loss.of(&Tensor::from_slice(out), labels).expect("a loss");
        Vec::try_from(losses.each).expect("doubles")
    }

    #[test]
    fn power_loss_by_hand() {
        let loss = Loss { eval: EvalLoss::default(), pqr: PqrLoss::default() };
        // σ(361/361) = 0.7310585786, 0.4810585786^2.6 = exp(2.6·ln 0.4810585786) = 0.149181
        let found = losses(&[361.0, 0.0, -722.0], Labels::Eval(&[0.25, 0.5, 1.0]), &loss);
        assert!((found[0] - 0.149_181).abs() < 1e-6, "{found:?}");
        assert!(found[1].abs() < 1e-9, "{found:?}");
        assert!((found[2] - (1.0 - sigmoid(-2.0)).powf(2.6)).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn epsilon_loss_by_hand() {
        let eval = EvalLoss { form: LossForm::Epsilon, epsilon: 15.0, ..EvalLoss::default() };
        let loss = Loss { eval, pqr: PqrLoss::default() };
        let found = losses(&[100.0, -30.0, 12.0], Labels::Eval(&[60.0, 20.0, 0.0]), &loss);
        assert_eq!(found, [25.0, 35.0, 0.0]);
    }

    #[test]
    fn pqr_loss_by_hand() {
        let loss = Loss { eval: EvalLoss::default(), pqr: PqrLoss { kappa: 0.5, output_scale: 100.0 } };
        let out = [100.0, -50.0, 20.0, 0.0, 0.0, 0.0];
        let found = losses(&out, Labels::Pqr, &loss);
        let [p, q, r] = [1.0, -0.5, 0.2].map(|x| 2.0 * sigmoid(x) - 1.0);
        let expected = -sigmoid(r - q).ln() - 0.5 * sigmoid(p + q).ln() - 0.5 * sigmoid(-p - q).ln();
        assert!((found[0] - expected).abs() < 1e-9, "{found:?} {expected}");
        assert!((found[1] - 2.0 * 2f64.ln()).abs() < 1e-9, "{found:?}");
        assert!((found[1] - pqr_baseline(&loss.pqr)).abs() < 1e-9);
        let preferred = loss.of(&Tensor::from_slice(&out), Labels::Pqr).expect("a loss").preferred.expect("pqr");
        assert_eq!(Vec::<bool>::try_from(preferred).expect("booleans"), [true, false]);
    }

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
