//! Adam (Kingma and Ba 2015, arXiv:1412.6980), one slice of parameters at a time, followed by weight clipping.

/// The constants of one step.
#[derive(Copy, Clone, Debug)]
pub struct Adam {
    /// learning rate / (1 − β₁ᵗ)
    rate: f32,
    /// 1 / √(1 − β₂ᵗ)
    correction: f32,
}

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

impl Adam {
    /// `step` counts from 1.
    #[must_use]
    pub fn new(learning_rate: f64, step: u64) -> Adam {
        let exponent = step as f64;
        Adam {
            rate: (learning_rate / (1.0 - f64::from(BETA1).powf(exponent))) as f32,
            correction: (1.0 / (1.0 - f64::from(BETA2).powf(exponent)).sqrt()) as f32,
        }
    }

    /// One step on `slice` along `gradient`; the parameters then stay within ±`limit`.
    pub fn update(self, slice: Slice<'_>, gradient: &[f32], limit: f32) {
        let Slice { parameters, first, second } = slice;
        for (((parameter, m), v), &g) in parameters.iter_mut().zip(first).zip(second).zip(gradient) {
            *m = flushed(BETA1 * *m + (1.0 - BETA1) * g);
            *v = flushed(BETA2 * *v + (1.0 - BETA2) * g * g);
            let step = self.rate * *m / (v.sqrt() * self.correction + EPSILON);
            *parameter = (*parameter - step).clamp(-limit, limit);
        }
    }
}

/// Parameters with their first and second moments.
#[derive(Debug)]
pub struct Slice<'a> {
    pub parameters: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

/// Moments of features that have become rare decay into denormals: numbers that move nothing and cost a hundred times more.
#[inline(always)]
fn flushed(moment: f32) -> f32 {
    if moment.abs() < f32::MIN_POSITIVE { 0.0 } else { moment }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;
    use tch::nn::{self, OptimizerConfig};
    use tch::{Device, Kind, Tensor};

    #[test]
    fn first_step_by_hand() {
        // m = 0.1·2, v = 0.001·4; m/(1−0.9) = 2, v/(1−0.999) = 4; 0.5 − 0.01·2/√4 = 0.49
        let (mut parameters, mut first, mut second) = ([0.5f32], [0.0f32], [0.0f32]);
        let slice = Slice { parameters: &mut parameters, first: &mut first, second: &mut second };
        Adam::new(0.01, 1).update(slice, &[2.0], f32::INFINITY);
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
            let slice = Slice { parameters: &mut parameters, first: &mut first, second: &mut second };
            Adam::new(3e-3, step).update(slice, &gradient, f32::INFINITY);
            let theirs = Vec::<f32>::try_from(&theirs).expect("floats");
            for (ours, theirs) in parameters.iter().zip(&theirs) {
                assert!((ours - theirs).abs() < 1e-6 + 1e-5 * theirs.abs(), "step {step}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn parameters_stay_within_the_limit_and_nan_stays_nan() {
        let (mut parameters, mut first, mut second) = ([1.9f32, -1.9, 0.0], [0.0f32; 3], [0.0f32; 3]);
        let slice = Slice { parameters: &mut parameters, first: &mut first, second: &mut second };
        Adam::new(1.0, 1).update(slice, &[-1.0, 1.0, f32::NAN], 2.0);
        assert_eq!(parameters[..2], [2.0, -2.0]);
        assert!(parameters[2].is_nan());
    }
}
