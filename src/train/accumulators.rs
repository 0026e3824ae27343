//! The feature transformer's accumulators: their sums, activations and gradients.

use super::batch::ActiveFeatures;
use super::lanes::{LANES, Lanes, LanesKernel, padded};
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

impl LanesKernel for Accumulate<'_> {
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

/// The step from an accumulator to the inputs of the dense layers.
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
        let activation = shape.activation;
        let scale = scheme.accumulator_product_scale() as f32;
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
    /// [positions, stride]: the side to move's activations, then the other's, then padding, which is kept.
    pub out: &'a mut [f32],
    pub stride: usize,
}

impl LanesKernel for Activate<'_> {
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

impl LanesKernel for Differentiate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) {
        let Neurons { activation, scale, l1, stride: row, width } = self.neurons;
        for (index, position) in self.positions.iter().enumerate() {
            let sides = &mut self.accumulators[*position as usize * 2 * row..][..2 * row];
            let gradients = &self.gradients[index * self.stride..][..2 * width];
            for (sums, gradients) in sides.chunks_exact_mut(row).zip(gradients.chunks_exact(width)) {
                differentiate::<V>(proof, activation, &mut sums[..l1], gradients, scale, self.sparsity);
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

/// Replaces the sums of an accumulator by their gradients, which are zero at the ends of the clipped range. In explicit
/// lanes, since compilers vectorise plain loops with conditions in some builds only.
#[inline(always)]
fn differentiate<V: Lanes>(
    proof: V::Proof,
    activation: Activation,
    sums: &mut [f32],
    gradients: &[f32],
    scale: f32,
    sparsity: f32,
) {
    let slopes = Slopes { activation, scale: V::splat(proof, scale), sparsity: V::splat(proof, sparsity) };
    let (grouped, of_rest) = gradients.as_chunks::<LANES>();
    if activation == Activation::Pairwise {
        let (first, second) = sums.split_at_mut(gradients.len());
        let (first, first_rest) = first.as_chunks_mut();
        let (second, second_rest) = second.as_chunks_mut();
        for ((a, b), g) in first.iter_mut().zip(second).zip(grouped) {
            slopes.replace_pairs(proof, a, b, g);
        }
        let mut a = partial(first_rest);
        let mut b = partial(second_rest);
        slopes.replace_pairs(proof, &mut a, &mut b, &partial(of_rest));
        first_rest.copy_from_slice(&a[..of_rest.len()]);
        second_rest.copy_from_slice(&b[..of_rest.len()]);
    } else {
        let (sums, rest) = sums.as_chunks_mut();
        for (sums, g) in sums.iter_mut().zip(grouped) {
            slopes.replace(proof, sums, g);
        }
        let mut sums = partial(rest);
        slopes.replace(proof, &mut sums, &partial(of_rest));
        rest.copy_from_slice(&sums[..of_rest.len()]);
    }
}

/// Fewer than [`LANES`] values, padded with zeros.
#[inline(always)]
fn partial(values: &[f32]) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    lanes[..values.len()].copy_from_slice(values);
    lanes
}

/// The step from gradients of activations to gradients of sums.
#[derive(Copy, Clone)]
struct Slopes<V> {
    activation: Activation,
    scale: V,
    /// Added to every gradient.
    sparsity: V,
}

impl<V: Lanes> Slopes<V> {
    #[inline(always)]
    fn replace(self, proof: V::Proof, sums: &mut [f32; LANES], gradients: &[f32; LANES]) {
        let x = V::load(proof, sums);
        let g = V::load(proof, gradients).add(self.sparsity);
        match self.activation {
            Activation::Relu => g.where_positive(x),
            Activation::Screlu => self.scale.add(self.scale).mul(x).mul(g).where_inside(x),
            Activation::Crelu | Activation::Dual | Activation::Pairwise => g.where_inside(x),
        }
        .store(sums);
    }

    #[inline(always)]
    fn replace_pairs(
        self,
        proof: V::Proof,
        first: &mut [f32; LANES],
        second: &mut [f32; LANES],
        gradients: &[f32; LANES],
    ) {
        let x = V::load(proof, first);
        let y = V::load(proof, second);
        let g = V::load(proof, gradients).add(self.sparsity).mul(self.scale);
        g.mul(y.clamped()).where_inside(x).store(first);
        g.mul(x.clamped()).where_inside(y).store(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::BackEnd;
    use crate::units::Seed;
    use rand::RngExt;

    struct Run<'a>(Activation, &'a mut [f32], &'a [f32]);

    impl LanesKernel for Run<'_> {
        type Output = ();

        #[inline(always)]
        fn run<V: Lanes>(self, proof: V::Proof) {
            differentiate::<V>(proof, self.0, self.1, self.2, 1.25, 0.5);
        }
    }

    /// On every back end, at every width and at the ends of the clipped range: the numbers of the formulas to the bit.
    #[test]
    fn gradients_are_those_of_the_formulas() {
        const EDGES: [f32; 8] = [0.0, -0.0, 1.0, f32::NAN, f32::INFINITY, -1e-40, 1e-40, 0.999_999_94];
        let mut rng = Seed(4).stream("accumulators", 0);
        let inside = |x: f32, slope: f32| if x > 0.0 && x < 1.0 { slope } else { 0.0 };
        for width in [1, 15, 16, 24, 40, 64] {
            let mut sums: Vec<f32> = (0..2 * width).map(|_| rng.random_range(-0.5..1.5)).collect();
            for edge in EDGES {
                sums[rng.random_range(0..2 * width)] = edge;
            }
            let gradients: Vec<f32> = (0..2 * width).map(|_| rng.random_range(-1.0..1.0)).collect();
            for activation in [Activation::Relu, Activation::Crelu, Activation::Screlu, Activation::Pairwise] {
                let gradients = &gradients[..activation.outputs(2 * width)];
                let formula = |n: usize| {
                    let x = sums[n];
                    let g = gradients[n % gradients.len()] + 0.5;
                    match activation {
                        Activation::Relu => {
                            if x > 0.0 {
                                g
                            } else {
                                0.0
                            }
                        }
                        Activation::Crelu | Activation::Dual => inside(x, g),
                        Activation::Screlu => inside(x, 2.5 * x * g),
                        Activation::Pairwise => inside(x, g * 1.25 * sums[(n + width) % (2 * width)].clamp(0.0, 1.0)),
                    }
                };
                let expected: Vec<u32> = (0..2 * width).map(|n| formula(n).to_bits()).collect();
                for back_end in BackEnd::available() {
                    let mut found = sums.clone();
                    Run(activation, &mut found, gradients).run_on(back_end);
                    let found: Vec<u32> = found.into_iter().map(f32::to_bits).collect();
                    assert_eq!(found, expected, "{}, {activation:?}, width {width}", back_end.name());
                }
            }
        }
    }
}
