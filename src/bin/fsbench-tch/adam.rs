//! The step of Adam on tensors, as [`Adam::update`] takes it on slices.

use fsbench::train::trainer::{Adam, BETA1, BETA2, EPSILON};
use tch::{TchError, Tensor};

/// Parameters with their first and second moments, on any device.
pub struct TensorParameters<'a> {
    pub parameters: &'a mut Tensor,
    pub first: &'a mut Tensor,
    pub second: &'a mut Tensor,
}

/// One step along `gradient`; afterwards the parameters are clamped to ±`limit`.
///
/// # Errors
/// When libtorch fails.
pub fn update(adam: Adam, slice: TensorParameters<'_>, gradient: &Tensor, limit: f64) -> Result<(), TchError> {
    let TensorParameters { parameters, first, second } = slice;
    let gradient = gradient.f_mul_scalar(f64::from(adam.gradient_scale))?;
    let _ = first.f_mul_scalar_(f64::from(BETA1))?.f_add_(&gradient.f_mul_scalar(f64::from(1.0 - BETA1))?)?;
    let squares = gradient.f_square()?.f_mul_scalar(f64::from(1.0 - BETA2))?;
    let _ = second.f_mul_scalar_(f64::from(BETA2))?.f_add_(&squares)?;
    let step = first.f_mul_scalar(f64::from(adam.rate))?;
    let step = match adam.correction {
        Some(correction) => {
            let size = second.f_sqrt()?.f_mul_scalar(f64::from(correction))?;
            step.f_div(&size.f_add_scalar(f64::from(EPSILON))?)?
        }
        None => step,
    };
    let _ = parameters.f_mul_scalar_(f64::from(adam.decay_factor))?.f_sub_(&step)?.f_clamp_(-limit, limit)?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "tests")]
mod tests {
    use fsbench::train::Optimiser;
    use fsbench::units::Seed;
    use rand::RngExt;
    use tch::nn::{self, OptimizerConfig};
    use tch::{Device, Kind};

    use super::*;

    /// Two hundred steps by either.
    #[test]
    fn follows_libtorch_s_own() {
        let store = nn::VarStore::new(Device::Cpu);
        let theirs = store.root().zeros("parameters", &[8]);
        let mut optimiser = nn::Adam::default().build(&store, 3e-3).expect("an optimiser");
        let [mut parameters, mut first, mut second] = [0; 3].map(|_| Tensor::zeros([8], (Kind::Float, Device::Cpu)));
        let mut rng = Seed(1).stream("adam", 0);
        for step in 1..=200 {
            // Every third step has no gradient, as for a feature that was not active.
            let gradient: [f32; 8] =
                std::array::from_fn(|_| if step % 3 == 0 { 0.0 } else { rng.random_range(-1.0..2.0) });
            let gradient = Tensor::from_slice(&gradient);
            optimiser.backward_step(&(&theirs * &gradient).sum(Kind::Float));
            let slice = TensorParameters { parameters: &mut parameters, first: &mut first, second: &mut second };
            let adam = Adam::new(Optimiser::Adam, 0.0, 3e-3, step);
            update(adam, slice, &gradient, f64::INFINITY).expect("a step");
            let difference = (&parameters - &theirs).abs().max().double_value(&[]);
            assert!(difference < 1e-6 + 1e-5 * theirs.abs().max().double_value(&[]), "step {step}: {difference}");
        }
    }
}
