//! The feature transformer's accumulators: their sums, activations and gradients.

use super::batch::ActiveFeatures;
use super::lanes::{Kernel, Lanes, padded};
use super::sparse::{Start, add_rows};
use crate::net::{Activation, Scheme, Shape};

/// Computes both accumulators of some positions.
pub struct Accumulate<'a> {
    /// [features, stride]
    pub rows: &'a [f32],
    /// [stride]
    pub biases: &'a [f32],
    /// The side to move's, then the other's.
    pub active: [ActiveFeatures<'a>; 2],
    /// Indices into the batch.
    pub positions: &'a [u32],
    /// [positions, 2, stride], side to move first.
    pub out: &'a mut [f32],
}

impl Kernel for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) {
        let stride = self.biases.len();
        for (position, sides) in self.positions.iter().zip(self.out.chunks_exact_mut(2 * stride)) {
            let (own, other) = sides.split_at_mut(stride);
            let [of_own, of_other] = [&self.active[0], &self.active[1]].map(|active| active.of(*position as usize));
            add_rows::<V, i32>(proof, Start::From(self.biases), own, self.rows, of_own);
            add_rows::<V, i32>(proof, Start::From(self.biases), other, self.rows, of_other);
        }
    }
}

/// What turns an accumulator into the inputs of the dense layers.
#[derive(Copy, Clone, Debug)]
pub struct Neurons {
    activation: Activation,
    /// [`Scheme::accumulator_product_scale`]
    scale: f32,
    l1: usize,
    /// Length of an accumulator: the neurons, then PSQT values, then padding.
    stride: usize,
    /// Number of activations per accumulator.
    pub width: usize,
}

impl Neurons {
    #[must_use]
    pub fn new(shape: &Shape, scheme: &Scheme) -> Neurons {
        let (activation, scale) = (shape.activation, scheme.accumulator_product_scale() as f32);
        Neurons {
            activation,
            scale,
            l1: shape.l1,
            stride: padded(shape.row_len()),
            width: activation.outputs(shape.l1),
        }
    }
}

/// Activates the accumulators of some positions.
pub struct Activate<'a> {
    pub neurons: Neurons,
    /// [all positions, 2, stride of an accumulator]
    pub accumulators: &'a [f32],
    /// Indices into `accumulators`.
    pub positions: &'a [u32],
    /// [positions, stride]: the activations of the side to move, then those of the other, then padding, which is kept.
    pub out: &'a mut [f32],
    pub stride: usize,
}

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Proof) {
        let Neurons { activation, scale, l1, stride: row, width } = self.neurons;
        for (position, out) in self.positions.iter().zip(self.out.chunks_exact_mut(self.stride)) {
            let sides = &self.accumulators[*position as usize * 2 * row..][..2 * row];
            for (sums, out) in sides.chunks_exact(row).zip(out.chunks_exact_mut(width)) {
                activate(activation, &sums[..l1], out, scale);
            }
        }
    }
}

/// Replaces the accumulators of some positions by their gradients.
pub struct Differentiate<'a> {
    pub neurons: Neurons,
    /// [all positions, 2, stride of an accumulator]
    pub accumulators: &'a mut [f32],
    /// Indices into `accumulators`.
    pub positions: &'a [u32],
    /// The gradients of the activations, [positions, stride].
    pub gradients: &'a [f32],
    pub stride: usize,
    /// Added to the gradient of every activation.
    pub sparsity: f32,
    /// With PSQT: the bucket of the positions, and the gradient of each one's PSQT value.
    pub psqt: Option<(usize, &'a [f32])>,
}

impl Kernel for Differentiate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Proof) {
        let Neurons { activation, scale, l1, stride: row, width } = self.neurons;
        for (index, position) in self.positions.iter().enumerate() {
            let sides = &mut self.accumulators[*position as usize * 2 * row..][..2 * row];
            let gradients = &self.gradients[index * self.stride..][..2 * width];
            for (sums, gradients) in sides.chunks_exact_mut(row).zip(gradients.chunks_exact(width)) {
                differentiate(activation, &mut sums[..l1], gradients, scale, self.sparsity);
                sums[l1..].fill(0.0);
            }
            if let Some((bucket, gradients)) = self.psqt {
                sides[l1 + bucket] = gradients[index] / 2.0;
                sides[row + l1 + bucket] = -gradients[index] / 2.0;
            }
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

#[inline(always)]
fn activate(activation: Activation, sums: &[f32], out: &mut [f32], scale: f32) {
    let each = out.iter_mut().zip(sums);
    match activation {
        Activation::Relu => each.for_each(|(out, x)| *out = x.max(0.0)),
        Activation::Crelu | Activation::Dual => each.for_each(|(out, x)| *out = x.clamp(0.0, 1.0)),
        Activation::Screlu => {
            for (out, x) in each {
                let x = x.clamp(0.0, 1.0);
                *out = x * x * scale;
            }
        }
        Activation::Pairwise => {
            let (first, second) = sums.split_at(sums.len() / 2);
            for ((out, a), b) in out.iter_mut().zip(first).zip(second) {
                *out = a.clamp(0.0, 1.0) * b.clamp(0.0, 1.0) * scale;
            }
        }
    }
}

/// The gradient is zero at the ends of the clipped range.
#[inline(always)]
fn differentiate(activation: Activation, sums: &mut [f32], gradients: &[f32], scale: f32, sparsity: f32) {
    let each = sums.iter_mut().zip(gradients);
    match activation {
        Activation::Relu => each.for_each(|(x, g)| *x = if *x > 0.0 { g + sparsity } else { 0.0 }),
        Activation::Crelu | Activation::Dual => {
            each.for_each(|(x, g)| *x = if *x > 0.0 && *x < 1.0 { g + sparsity } else { 0.0 });
        }
        Activation::Screlu => {
            let factor = 2.0 * scale;
            each.for_each(|(x, g)| *x = if *x > 0.0 && *x < 1.0 { factor * *x * (g + sparsity) } else { 0.0 });
        }
        Activation::Pairwise => {
            let (first, second) = sums.split_at_mut(gradients.len());
            for ((a, b), g) in first.iter_mut().zip(second).zip(gradients) {
                let (first, second, g) = (*a, *b, (g + sparsity) * scale);
                *a = if first > 0.0 && first < 1.0 { g * second.clamp(0.0, 1.0) } else { 0.0 };
                *b = if second > 0.0 && second < 1.0 { g * first.clamp(0.0, 1.0) } else { 0.0 };
            }
        }
    }
}
