//! The feature transformer's accumulators with their activation and PSQT columns, forward and backward.

use tch::TchError;

use super::batch::ActiveFeatures;
use super::memory::{FloatBuffer, FrozenBuffer};
use super::sparse::add_rows;
use crate::net::{Activation, FloatNet, Scheme, Shape};

/// The accumulators of some positions, clipped to the activation's range.
pub struct Accumulators<'a> {
    shape: &'a Shape,
    /// [`Scheme::accumulator_product_scale`]
    scale: f32,
    /// [positions, 2, row], side to move first. PSQT columns are not clipped.
    clipped: FrozenBuffer,
    /// [positions, 2 · width]; `None` if they equal `clipped`.
    activations: Option<FrozenBuffer>,
}

impl<'a> Accumulators<'a> {
    /// Computes the accumulators of `positions`, which are indices into `features`, in that order.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn compute(
        net: &'a FloatNet,
        scheme: &Scheme,
        features: [ActiveFeatures<'_>; 2],
        positions: &[u32],
    ) -> Result<Accumulators<'a>, TchError> {
        let (shape, scale) = (&net.shape, scheme.accumulator_product_scale() as f32);
        let (l1, row) = (shape.l1, shape.row_len());
        let mut clipped = FloatBuffer::zeros(positions.len(), 2 * row)?;
        let active = positions.iter().flat_map(|position| features.map(|side| side.of(*position as usize)));
        for (accumulator, active) in clipped.chunks_exact_mut(row).zip(active) {
            accumulator[..l1].copy_from_slice(&net.ft_biases);
            add_rows(accumulator, &net.ft_weights, active);
            clip(shape.activation, &mut accumulator[..l1]);
        }
        let plain = row == l1 && matches!(shape.activation, Activation::Relu | Activation::Crelu);
        let activations = match plain {
            true => None,
            false => {
                let width = shape.activation.outputs(l1);
                let mut activations = FloatBuffer::zeros(positions.len(), 2 * width)?;
                for (out, clipped) in activations.chunks_exact_mut(width).zip(clipped.chunks_exact(row)) {
                    activate(shape.activation, &clipped[..l1], out, scale);
                }
                Some(activations.freeze())
            }
        };
        Ok(Accumulators { shape, scale, clipped: clipped.freeze(), activations })
    }

    /// Number of activations per accumulator.
    #[must_use]
    pub fn width(&self) -> usize {
        self.shape.activation.outputs(self.shape.l1)
    }

    /// [positions, 2 · width]
    #[must_use]
    pub fn activations(&self) -> &FrozenBuffer {
        self.activations.as_ref().unwrap_or(&self.clipped)
    }

    /// (stm − nstm) / 2 of each position's bucket; empty if the shape has no PSQT.
    #[must_use]
    pub fn psqt(&self, buckets: &[u8]) -> Vec<f32> {
        if !self.shape.psqt {
            return Vec::new();
        }
        let (l1, row) = (self.shape.l1, self.shape.row_len());
        let each = self.clipped.chunks_exact(2 * row).zip(buckets);
        each.map(|(sides, bucket)| (sides[l1 + *bucket as usize] - sides[row + l1 + *bucket as usize]) / 2.0).collect()
    }

    /// Writes the gradient of the accumulators of position `index`, [2, row], to `out`, given that of its activations,
    /// [2 · width], and its bucket with the gradient of its PSQT value.
    pub fn backward(&self, index: usize, activations: &[f32], psqt: Option<(u8, f32)>, out: &mut [f32]) {
        let (l1, row, width) = (self.shape.l1, self.shape.row_len(), self.width());
        let clipped = &self.clipped[index * 2 * row..][..2 * row];
        let sides = out.chunks_exact_mut(row).zip(clipped.chunks_exact(row)).zip(activations.chunks_exact(width));
        for ((out, clipped), gradient) in sides {
            let (out, columns) = out.split_at_mut(l1);
            activate_backward(self.shape.activation, &clipped[..l1], gradient, out, self.scale);
            columns.fill(0.0);
        }
        if let Some((bucket, gradient)) = psqt {
            out[l1 + bucket as usize] = gradient / 2.0;
            out[row + l1 + bucket as usize] = -gradient / 2.0;
        }
    }
}

/// The activation at which a neuron counts as saturated: the largest one, or 1 for unbounded activations.
#[must_use]
pub fn saturation(activation: Activation, scheme: &Scheme) -> f32 {
    match activation {
        Activation::Screlu | Activation::Pairwise => scheme.accumulator_product_scale() as f32,
        Activation::Relu | Activation::Crelu | Activation::Dual => 1.0,
    }
}

fn clip(activation: Activation, values: &mut [f32]) {
    match activation {
        Activation::Relu => values.iter_mut().for_each(|value| *value = value.max(0.0)),
        _ => values.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0)),
    }
}

/// Activates values that [`clip`] has clipped.
fn activate(activation: Activation, clipped: &[f32], out: &mut [f32], scale: f32) {
    match activation {
        Activation::Relu | Activation::Crelu | Activation::Dual => out.copy_from_slice(clipped),
        Activation::Screlu => out.iter_mut().zip(clipped).for_each(|(out, x)| *out = x * x * scale),
        Activation::Pairwise => {
            let (first, second) = clipped.split_at(clipped.len() / 2);
            out.iter_mut().zip(first).zip(second).for_each(|((out, a), b)| *out = a * b * scale);
        }
    }
}

/// The gradient is zero at the ends of the clipped range.
fn activate_backward(activation: Activation, clipped: &[f32], gradient: &[f32], out: &mut [f32], scale: f32) {
    let pass = |x: f32, gradient: f32| if x > 0.0 && x < 1.0 { gradient } else { 0.0 };
    let each = out.iter_mut().zip(clipped).zip(gradient);
    match activation {
        Activation::Relu => each.for_each(|((out, x), g)| *out = if *x > 0.0 { *g } else { 0.0 }),
        Activation::Crelu | Activation::Dual => each.for_each(|((out, x), g)| *out = pass(*x, *g)),
        Activation::Screlu => each.for_each(|((out, x), g)| *out = pass(*x, 2.0 * scale * x * g)),
        Activation::Pairwise => {
            let half = clipped.len() / 2;
            let ((first, second), (out_first, out_second)) = (clipped.split_at(half), out.split_at_mut(half));
            let halves = first.iter().zip(second).zip(out_first.iter_mut().zip(out_second)).zip(gradient);
            for (((a, b), (out_a, out_b)), g) in halves {
                *out_a = pass(*a, g * b * scale);
                *out_b = pass(*b, g * a * scale);
            }
        }
    }
}
