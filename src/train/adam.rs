//! The steps of Adam, AdamW and rectified Adam, each followed by weight clipping; [`Optimiser`] names the papers.

use super::Optimiser;

/// The constants of one step.
#[derive(Copy, Clone, Debug)]
pub struct Adam {
    /// learning rate / (1 − β₁ᵗ), times the rectification
    pub rate: f32,
    /// 1 / √(1 − β₂ᵗ); `None` in rectified Adam's first steps, which do not divide by the second moment.
    pub correction: Option<f32>,
    /// 1 − learning rate · weight decay; multiplies the weights.
    pub decay_factor: f32,
    /// Multiplies the gradient.
    pub gradient_scale: f32,
}

/// β₁
pub const BETA1: f32 = 0.9;
/// β₂
pub const BETA2: f32 = 0.999;
/// ε
pub const EPSILON: f32 = 1e-8;

impl Adam {
    /// The constants of step `step`, counted from 1.
    #[must_use]
    pub fn new(optimiser: Optimiser, weight_decay: f64, learning_rate: f64, step: u64) -> Adam {
        let step = step as f64;
        // By a library of our own: each system's rounds differently.
        let beta2_power = libm::pow(BETA2.into(), step);
        let rate = learning_rate / (1.0 - libm::pow(BETA1.into(), step));
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

/// The moments of rare features decay into denormals, which change nothing and cost a hundred times more.
#[inline(always)]
fn flush_denormal(moment: f32) -> f32 {
    if moment.abs() < f32::MIN_POSITIVE { 0.0 } else { moment }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(learning_rate: f64, step: u64) -> Adam {
        Adam::new(Optimiser::Adam, 0.0, learning_rate, step)
    }

    #[test]
    fn first_step_by_hand() {
        // m = 0.1·2, v = 0.001·4; m/(1−0.9) = 2, v/(1−0.999) = 4; 0.5 − 0.01·2/√4 = 0.49
        let mut parameters = [0.5f32];
        let mut first = [0.0f32];
        let mut second = [0.0f32];
        let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
        plain(0.01, 1).update(slice, &[2.0], f32::INFINITY);
        assert!((parameters[0] - 0.49).abs() < 1e-6, "{parameters:?}");
        assert!((first[0] - 0.2).abs() < 1e-6 && (second[0] - 0.004).abs() < 1e-7, "{first:?} {second:?}");
    }

    #[test]
    fn parameters_stay_within_the_limit_and_nan_stays_nan() {
        let mut parameters = [1.9f32, -1.9, 0.0];
        let mut first = [0.0f32; 3];
        let mut second = [0.0f32; 3];
        let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
        plain(1.0, 1).update(slice, &[-1.0, 1.0, f32::NAN], 2.0);
        assert_eq!(parameters[..2], [2.0, -2.0]);
        assert!(parameters[2].is_nan());
    }

    #[test]
    fn decay_shrinks_weights_apart_from_the_gradient() {
        let step = |adam: Adam| {
            let mut parameters = [0.5f32];
            let mut first = [0.0f32];
            let mut second = [0.0f32];
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
        let mut parameters = [0.5f32];
        let mut first = [0.0f32];
        let mut second = [0.0f32];
        let slice = ParameterSlice { parameters: &mut parameters, first: &mut first, second: &mut second };
        Adam::new(Optimiser::Ranger, 0.0, 0.01, 1).update(slice, &[2.0], f32::INFINITY);
        assert!((parameters[0] - 0.48).abs() < 1e-6, "{parameters:?}");
        let at = |step: u64| rectification(step as f64, libm::pow(BETA2.into(), step as f64));
        assert_eq!(at(5), None);
        // ρ₁₀₀ = 1999 − 200·0.999¹⁰⁰/(1 − 0.999¹⁰⁰) = 98.33; √(94.33·96.33·1999 / (1995·1997·98.33)) = 0.2153
        assert!((at(100).expect("old enough") - 0.2153).abs() < 1e-3, "{:?}", at(100));
        assert!((at(100_000).expect("old enough") - 1.0).abs() < 1e-3);
    }
}
