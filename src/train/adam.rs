//! The steps of Adam, AdamW and rectified Adam, each followed by weight clipping; [`Optimiser`] names the papers.

use tch::{TchError, Tensor};

use super::Optimiser;

/// The constants of one step.
#[derive(Copy, Clone, Debug)]
pub struct Adam {
    /// learning rate / (1 − β₁ᵗ), times the rectification
    rate: f32,
    /// 1 / √(1 − β₂ᵗ); `None` in rectified Adam's first steps, which do not divide by the second moment.
    correction: Option<f32>,
    /// 1 − learning rate · weight decay; multiplies the weights.
    decay_factor: f32,
    /// Multiplies the gradient.
    gradient_scale: f32,
}

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

impl Adam {
    /// The constants of step `step`, counted from 1.
    #[must_use]
    pub fn new(optimiser: Optimiser, weight_decay: f64, learning_rate: f64, step: u64) -> Adam {
        let step = step as f64;
        let beta2_power = f64::from(BETA2).powf(step);
        let rate = learning_rate / (1.0 - f64::from(BETA1).powf(step));
        let correction = Some((1.0 / (1.0 - beta2_power).sqrt()) as f32);
        let decay_factor = (1.0 - learning_rate * weight_decay) as f32;
        let (rate, correction, decay_factor) = match optimiser {
            Optimiser::Adam => (rate, correction, 1.0),
            Optimiser::Adamw => (rate, correction, decay_factor),
            Optimiser::Ranger => match rectification(step, beta2_power) {
                Some(rectification) => (rate * rectification, correction, decay_factor),
                None => (rate, None, decay_factor),
            },
        };
        Adam { rate: rate as f32, correction, decay_factor, gradient_scale: 1.0 }
    }

    /// The same step for gradients times `gradient_scale`.
    #[must_use]
    pub const fn scaled(self, gradient_scale: f32) -> Adam {
        Adam { gradient_scale, ..self }
    }

    /// The same step without weight decay, for biases.
    #[must_use]
    pub const fn without_decay(self) -> Adam {
        Adam { decay_factor: 1.0, ..self }
    }

    /// One step on `slice` along `gradient`; afterwards the parameters are clamped to ±`limit`.
    pub fn update(self, slice: ParameterSlice<'_>, gradient: &[f32], limit: f32) {
        match self.correction {
            Some(correction) => self.update_each(slice, gradient, limit, |v| v.sqrt() * correction + EPSILON),
            None => self.update_each(slice, gradient, limit, |_| 1.0),
        }
    }

    /// [`Adam::update`] of tensors, on any device.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn update_tensors(self, slice: TensorParameters<'_>, gradient: &Tensor, limit: f64) -> Result<(), TchError> {
        let TensorParameters { parameters, first, second } = slice;
        let gradient = gradient.f_mul_scalar(f64::from(self.gradient_scale))?;
        let _ = first.f_mul_scalar_(f64::from(BETA1))?.f_add_(&gradient.f_mul_scalar(f64::from(1.0 - BETA1))?)?;
        let squares = gradient.f_square()?.f_mul_scalar(f64::from(1.0 - BETA2))?;
        let _ = second.f_mul_scalar_(f64::from(BETA2))?.f_add_(&squares)?;
        let step = first.f_mul_scalar(f64::from(self.rate))?;
        let step = match self.correction {
            Some(correction) => {
                let size = second.f_sqrt()?.f_mul_scalar(f64::from(correction))?;
                step.f_div(&size.f_add_scalar(f64::from(EPSILON))?)?
            }
            None => step,
        };
        let _ = parameters.f_mul_scalar_(f64::from(self.decay_factor))?.f_sub_(&step)?.f_clamp_(-limit, limit)?;
        Ok(())
    }

    #[inline(always)]
    fn update_each(self, slice: ParameterSlice<'_>, gradient: &[f32], limit: f32, size: impl Fn(f32) -> f32) {
        let ParameterSlice { parameters, first, second } = slice;
        for (((parameter, m), v), &g) in parameters.iter_mut().zip(first).zip(second).zip(gradient) {
            let g = g * self.gradient_scale;
            *m = flush_denormal(BETA1 * *m + (1.0 - BETA1) * g);
            *v = flush_denormal(BETA2 * *v + (1.0 - BETA2) * g * g);
            let step = self.rate * *m / size(*v);
            *parameter = (*parameter * self.decay_factor - step).clamp(-limit, limit);
        }
    }
}

/// r of rectified Adam; `None` in the first steps, where the variance of the second moment is not bounded.
fn rectification(step: f64, beta2_power: f64) -> Option<f64> {
    // The paper's ρ∞ and ρₜ.
    let rho_limit = 2.0 / (1.0 - f64::from(BETA2)) - 1.0;
    let rho = rho_limit - 2.0 * step * beta2_power / (1.0 - beta2_power);
    (rho > 5.0).then(|| {
        let ratio = |rho: f64| (rho - 4.0) * (rho - 2.0) / rho;
        (ratio(rho) / ratio(rho_limit)).sqrt()
    })
}

/// Parameters with their first and second moments.
#[derive(Debug)]
pub struct ParameterSlice<'a> {
    pub parameters: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

/// As [`ParameterSlice`], on any device.
pub struct TensorParameters<'a> {
    pub parameters: &'a mut Tensor,
    pub first: &'a mut Tensor,
    pub second: &'a mut Tensor,
}

/// The moments of rare features decay into denormals, which change nothing and cost a hundred times more.
#[inline(always)]
fn flush_denormal(moment: f32) -> f32 {
    if moment.abs() < f32::MIN_POSITIVE { 0.0 } else { moment }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;
    use tch::nn::{self, OptimizerConfig};
    use tch::{Device, Kind};

    fn plain(learning_rate: f64, step: u64) -> Adam {
        Adam::new(Optimiser::Adam, 0.0, learning_rate, step)
    }

    #[test]
    fn first_step_by_hand() {
        // m = 0.1·2, v = 0.001·4; m/(1−0.9) = 2, v/(1−0.999) = 4; 0.5 − 0.01·2/√4 = 0.49
        let (mut parameters, mut first, mut second) = ([0.5f32], [0.0f32], [0.0f32]);
        let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
        plain(0.01, 1).update(slice, &[2.0], f32::INFINITY);
        assert!((parameters[0] - 0.49).abs() < 1e-6, "{parameters:?}");
        assert!((first[0] - 0.2).abs() < 1e-6 && (second[0] - 0.004).abs() < 1e-7, "{first:?} {second:?}");
    }

    #[test]
    fn follows_libtorch() {
        let store = nn::VarStore::new(Device::Cpu);
        let theirs = store.root().zeros("parameters", &[8]);
        let mut optimiser = nn::Adam::default().build(&store, 3e-3).expect("an optimiser");
        let (mut parameters, mut first, mut second) = ([0.0f32; 8], [0.0f32; 8], [0.0f32; 8]);
        let mut rng = Seed(1).stream("adam", 0);
        for step in 1..=200 {
            // Every third step has no gradient, as for a feature that was not active.
            let gradient: [f32; 8] =
                std::array::from_fn(|_| if step % 3 == 0 { 0.0 } else { rng.random_range(-1.0..2.0) });
            optimiser.backward_step(&(&theirs * Tensor::from_slice(&gradient)).sum(Kind::Float));
            let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
            plain(3e-3, step).update(slice, &gradient, f32::INFINITY);
            let theirs = Vec::<f32>::try_from(&theirs).expect("floats");
            for (ours, theirs) in parameters.iter().zip(&theirs) {
                assert!((ours - theirs).abs() < 1e-6 + 1e-5 * theirs.abs(), "step {step}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn parameters_stay_within_the_limit_and_nan_stays_nan() {
        let (mut parameters, mut first, mut second) = ([1.9f32, -1.9, 0.0], [0.0f32; 3], [0.0f32; 3]);
        let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
        plain(1.0, 1).update(slice, &[-1.0, 1.0, f32::NAN], 2.0);
        assert_eq!(parameters[..2], [2.0, -2.0]);
        assert!(parameters[2].is_nan());
    }

    #[test]
    fn decay_shrinks_weights_apart_from_the_gradient() {
        let step = |adam: Adam| {
            let (mut parameters, mut first, mut second) = ([0.5f32], [0.0f32], [0.0f32]);
            let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
            adam.update(slice, &[2.0], f32::INFINITY);
            (parameters[0], first[0])
        };
        let adamw = Adam::new(Optimiser::Adamw, 0.1, 0.01, 1);
        // 0.5·(1 − 0.01·0.1) − 0.01
        assert!((step(adamw).0 - 0.4895).abs() < 1e-6, "{:?}", step(adamw));
        assert_eq!(step(adamw.without_decay()), step(plain(0.01, 1)));
        assert_eq!(step(Adam::new(Optimiser::Adam, 0.1, 0.01, 1)), step(plain(0.01, 1)));
        // Half the gradient: the same direction, half the moment.
        assert!((step(plain(0.01, 1).scaled(0.5)).1 - 0.1).abs() < 1e-6);
    }

    #[test]
    fn rectified_steps_by_hand() {
        // ρ∞ = 1999; ρ₁ = 1999 − 2·0.999/0.001 = 1: no second moment yet, so 0.5 − 0.01·2.
        let (mut parameters, mut first, mut second) = ([0.5f32], [0.0f32], [0.0f32]);
        let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
        Adam::new(Optimiser::Ranger, 0.0, 0.01, 1).update(slice, &[2.0], f32::INFINITY);
        assert!((parameters[0] - 0.48).abs() < 1e-6, "{parameters:?}");
        let at = |step: u64| rectification(step as f64, f64::from(BETA2).powf(step as f64));
        assert_eq!(at(5), None);
        // ρ₁₀₀ = 1999 − 200·0.999¹⁰⁰/(1 − 0.999¹⁰⁰) = 98.33; √(94.33·96.33·1999 / (1995·1997·98.33)) = 0.2153
        assert!((at(100).expect("old enough") - 0.2153).abs() < 1e-3, "{:?}", at(100));
        assert!((at(100_000).expect("old enough") - 1.0).abs() < 1e-3);
    }
}
