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
            *parameter = (*parameter - step).max(-limit).min(limit);
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
