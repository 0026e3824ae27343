//! The losses `eval` and `pqr` as tensor expressions. Targets (the blend of score and result) stand in the batch.

use fsbench::train::trainer::{Batch, Labels, Loss, SampleLosses, Sums};
use fsbench::train::{EvalLoss, LossForm, PqrLoss};
use tch::{Kind, TchError, Tensor};

/// The losses of a batch.
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

/// The losses of outputs: [positions], in centipawns from each position's side to move.
///
/// # Errors
/// When libtorch fails.
pub fn losses_of(loss: &Loss, out: &Tensor, labels: Labels<'_>) -> Result<Losses, TchError> {
    match labels {
        Labels::Eval(targets) => {
            let targets = Tensor::f_from_slice(targets)?.f_to_device(out.device())?.f_to_kind(out.f_kind()?)?;
            let each = match loss.eval.form {
                LossForm::Power => power(out, &targets, &loss.eval)?,
                LossForm::Epsilon => epsilon(out, &targets, &loss.eval)?,
            };
            Ok(Losses { each, preferred: None })
        }
        Labels::Pqr => {
            let triplets = out.f_view([-1, 3])?;
            let [p, q, r] = [triplets.f_select(1, 0)?, triplets.f_select(1, 1)?, triplets.f_select(1, 2)?];
            Ok(Losses { each: pqr(&p, &q, &r, &loss.pqr)?, preferred: Some(r.f_gt_tensor(&q)?) })
        }
    }
}

/// |e − t|^power, times 1 + qp_asymmetry where e > t; e = σ(out/output_scale) or, with an offset, the win-rate model of
/// [`EvalLoss::output_offset`].
fn power(out: &Tensor, targets: &Tensor, loss: &EvalLoss) -> Result<Tensor, TchError> {
    let offset = loss.output_offset;
    let expected = if offset == 0.0 {
        out.f_div_scalar(loss.output_scale)?.f_sigmoid()?
    } else {
        let share = |out: &Tensor| out.f_sub_scalar(offset)?.f_div_scalar(loss.output_scale)?.f_sigmoid();
        share(out)?.f_sub(&share(&out.f_neg()?)?)?.f_add_scalar(1.0)?.f_mul_scalar(0.5)?
    };
    let losses = expected.f_sub(targets)?.f_abs()?.f_pow_tensor_scalar(loss.power)?;
    if loss.qp_asymmetry == 0.0 {
        return Ok(losses);
    }
    let is_above = expected.f_detach()?.f_gt_tensor(targets)?.f_to_kind(losses.f_kind()?)?;
    losses.f_mul(&is_above.f_mul_scalar(loss.qp_asymmetry)?.f_add_scalar(1.0)?)
}

/// max(0, |score − out| − ε)
fn epsilon(out: &Tensor, scores: &Tensor, loss: &EvalLoss) -> Result<Tensor, TchError> {
    out.f_sub(scores)?.f_abs()?.f_sub_scalar(loss.epsilon)?.f_relu()
}

/// −log σ(r−q) − κ·log σ(p+q) − κ·log σ(−p−q) over f = 2σ(out/output_scale) − 1.
fn pqr(p: &Tensor, q: &Tensor, r: &Tensor, loss: &PqrLoss) -> Result<Tensor, TchError> {
    let squashed =
        |out: &Tensor| out.f_div_scalar(loss.output_scale)?.f_sigmoid()?.f_mul_scalar(2.0)?.f_sub_scalar(1.0);
    let p = squashed(p)?;
    let q = squashed(q)?;
    let r = squashed(r)?;
    let sum = p.f_add(&q)?;
    let equal = sum.f_log_sigmoid()?.f_add(&sum.f_neg()?.f_log_sigmoid()?)?.f_mul_scalar(loss.kappa)?;
    r.f_sub(&q)?.f_log_sigmoid()?.f_add(&equal)?.f_neg()
}

/// The sum, in double precision.
fn total(values: &Tensor) -> Result<f64, TchError> {
    values.f_sum(Kind::Double)?.f_double_value(&[])
}

/// The batch's loss that is minimised: `weight` times the sum of its mean loss and `sparsity` times its mean
/// activation. `losses` has one per sample, `activations` are [positions, 2 · width].
///
/// # Errors
/// When libtorch fails.
pub fn minimised_loss(
    losses: &Tensor,
    activations: &Tensor,
    sparsity: f64,
    batch: &Batch<'_>,
    weight: f64,
) -> Result<Tensor, TchError> {
    let loss = losses.f_sum(None)?.f_mul_scalar(weight / batch.samples as f64)?;
    if sparsity == 0.0 {
        return Ok(loss);
    }
    let values = batch.positions() as f64 * activations.size2()?.1 as f64;
    loss.f_add(&activations.f_sum(None)?.f_mul_scalar(weight * sparsity / values)?)
}

/// The losses' sums over a batch.
///
/// # Errors
/// When libtorch fails.
pub fn sums(losses: &Losses) -> Result<Sums, TchError> {
    let preferred = match &losses.preferred {
        Some(preferred) => total(preferred)? as u64,
        None => 0,
    };
    Ok(Sums { samples: losses.each.numel() as u64, loss: total(&losses.each.f_detach()?)?, preferred })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    fn losses(out: &[f64], labels: Labels<'_>, loss: &Loss) -> Vec<f64> {
        let losses = losses_of(loss, &Tensor::from_slice(out), labels).expect("a loss");
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
        let preferred =
            losses_of(&loss, &Tensor::from_slice(&out), Labels::Pqr).expect("a loss").preferred.expect("pqr");
        assert_eq!(Vec::<bool>::try_from(preferred).expect("booleans"), [true, false]);
    }

    /// Losses and derivatives equal the tensor expressions' in double precision.
    #[test]
    fn derivatives_are_those_of_the_tensor_expressions() {
        let outputs = [0.0f32, 361.0, -722.0, 5000.0, -40.0, 13.5, 12.0, 0.25, 99.0];
        let targets = [0.5f32, 0.25, 1.0, 0.0, 0.5, 0.9, 12.5, 0.0, 1.0];
        let check = |loss: Loss, labels: Labels<'_>| {
            let leaf = Tensor::from_slice(&outputs).to_kind(Kind::Double).set_requires_grad(true);
            let theirs = losses_of(&loss, &leaf, labels).expect("losses");
            (theirs.each.sum(Kind::Double) * 3.0).backward();
            let slopes = Vec::<f64>::try_from(leaf.grad()).expect("doubles");
            let losses = Vec::<f64>::try_from(theirs.each.detach()).expect("doubles");
            let mut out = outputs;
            let ours = loss.differentiate(&mut out, labels, 3.0);
            assert_eq!(ours.losses.len(), losses.len());
            for (ours, theirs) in ours.losses.iter().zip(losses).chain(out.iter().zip(slopes)) {
                assert!((f64::from(*ours) - theirs).abs() <= 1e-6 * theirs.abs() + 1e-12, "{loss:?}: {ours} {theirs}");
            }
            if let Some(preferred) = theirs.preferred {
                assert_eq!(ours.preferred, Vec::<bool>::try_from(preferred).expect("booleans"));
            }
        };
        let pqr = PqrLoss { kappa: 0.7, output_scale: 300.0 };
        for power in [1.0, 2.0, 2.6] {
            check(Loss { eval: EvalLoss { power, ..EvalLoss::default() }, pqr }, Labels::Eval(&targets));
        }
        for (output_offset, qp_asymmetry) in [(250.0, 0.0), (0.0, 0.4), (250.0, 0.4)] {
            let eval = EvalLoss { output_offset, qp_asymmetry, ..EvalLoss::default() };
            check(Loss { eval, pqr }, Labels::Eval(&targets));
        }
        let epsilon = EvalLoss { form: LossForm::Epsilon, epsilon: 15.0, ..EvalLoss::default() };
        check(Loss { eval: epsilon, pqr }, Labels::Eval(&targets));
        check(Loss { eval: epsilon, pqr }, Labels::Pqr);
    }
}
