//! Dense layers with i8 weights.
//!
//! The weights of a first layer are stored twice: by groups of four inputs, so that groups that are all zero can be
//! skipped, and in tiles, which need fewer loads if most groups are not zero. Layers with few outputs have a row per
//! output.
#![allow(clippy::needless_range_loop, reason = "an output's number indexes several arrays at once")]

use crate::engine::dense_layer::{DenseLayer, DenseWeights};
use crate::engine::simd::{GroupWeights, Nnz, Vector, WIDEST};

/// The inputs of a first dense layer.
pub struct FirstInputs<'a> {
    /// The activations of both accumulators, followed by at least one group of zeros.
    pub bytes: &'a [u8],
    /// Per vector a mask of the groups of four that are not all zero.
    pub masks: &'a [u16],
    /// Buffer for the indices of all groups and [`super::super::simd::NNZ_SLACK`] more.
    pub nnz: &'a mut [u16],
    /// Whether to read the tiles from the end. Passes alternate, so that each starts with rows that are still in the
    /// cache.
    pub backwards: bool,
}

/// The first dense layer. Most inputs of a trained network are zero, so only non-zero groups are multiplied, unless the
/// tiles of all inputs cost less.
#[inline(always)]
pub fn first_layer<V: Vector>(proof: V::Proof, layer: &DenseLayer, inputs: FirstInputs<'_>, sums: &mut [i32]) {
    let FirstInputs { bytes, masks, nnz, backwards } = inputs;
    match &layer.weights {
        DenseWeights::PerOutput(_) | DenseWeights::Direct(_) => hidden_layer::<V>(proof, layer, bytes, sums),
        DenseWeights::Grouped { groups: weights, tiles } => {
            let nnz = Nnz::find::<V>(proof, masks, nnz);
            // The threshold is measured.
            if const { V::BYTES == WIDEST } && 5 * nnz.count() > 4 * layer.groups {
                let input = &bytes[..layer.inputs];
                return TiledProduct { tiles, biases: &layer.biases, input, backwards }.run::<V>(proof, sums);
            }
            let (groups, _) = bytes.as_chunks::<4>();
            let product = GroupedProduct { groups, nnz: Some(&nnz), weights, biases: &layer.biases, sums };
            if V::JOINS_PRODUCTS {
                match layer.joined_groups {
                    4 => return product.run_joined::<V, 4>(proof),
                    2 => return product.run_joined::<V, 2>(proof),
                    _ => {}
                }
            }
            product.run::<V>(proof);
        }
    }
}

/// Inputs and outputs of a tile of weights.
pub const TILE: usize = 16;

/// The product with weights in tiles, for the widest vectors. Vector r of a tile has the weights of output 4q + r in
/// its 128-bit quarter q, so that adding neighbours leaves the outputs in order.
struct TiledProduct<'a> {
    tiles: &'a [i8],
    biases: &'a [i32],
    input: &'a [u8],
    backwards: bool,
}

impl TiledProduct<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof, sums: &mut [i32]) {
        let outputs = self.biases.len();
        let mut at = 0;
        while at + 2 * TILE <= outputs {
            self.outputs::<V, 2, 1>(proof, at, sums);
            at += 2 * TILE;
        }
        while at + TILE <= outputs {
            self.outputs::<V, 1, 2>(proof, at, sums);
            at += TILE;
        }
    }

    /// The outputs of N tiles from `at`. C chunks of inputs are summed independently, to shorten the dependency chains.
    #[inline(always)]
    fn outputs<V: Vector, const N: usize, const C: usize>(&self, proof: V::Proof, at: usize, sums: &mut [i32]) {
        // Inputs are padded to whole chunks.
        let (chunks, _) = self.input.as_chunks::<TILE>();
        let (chunks, _) = chunks.as_chunks::<C>();
        let weights = self.tiles.chunks_exact(C * TILE * self.biases.len());
        let mut partial = [[[V::zero(proof); 4]; N]; C];
        if self.backwards {
            for (inputs, weights) in chunks.iter().rev().zip(weights.rev()) {
                add_tiles(proof, &mut partial, inputs, weights, TILE * at);
            }
        } else {
            for (inputs, weights) in chunks.iter().zip(weights) {
                add_tiles(proof, &mut partial, inputs, weights, TILE * at);
            }
        }
        for n in 0..N {
            let mut sum = V::load(proof, &self.biases[at + n * TILE..]);
            for chunk in &partial {
                sum = sum.add32(V::sum_quarters(chunk[n]));
            }
            sum.store(&mut sums[at + n * TILE..]);
        }
    }
}

/// Adds the products of N tiles, from `at`, for each of C chunks of inputs.
#[inline(always)]
fn add_tiles<V: Vector, const N: usize, const C: usize>(
    proof: V::Proof,
    partial: &mut [[[V; 4]; N]; C],
    inputs: &[[u8; TILE]; C],
    weights: &[i8],
    at: usize,
) {
    let stride = weights.len() / C;
    for (c, sums) in partial.iter_mut().enumerate() {
        let x = V::splat128(proof, &inputs[c]);
        let weights = &weights[c * stride + at..][..N * TILE * TILE];
        for n in 0..N {
            for r in 0..4 {
                sums[n][r] = sums[n][r].dot4(x, V::load(proof, &weights[(4 * n + r) * V::BYTES..]));
            }
        }
    }
}

/// The product with weights grouped by four inputs.
struct GroupedProduct<'a> {
    groups: &'a [[u8; 4]],
    /// The groups to multiply; `None` multiplies all.
    nnz: Option<&'a Nnz<'a>>,
    weights: &'a [i8],
    biases: &'a [i32],
    sums: &'a mut [i32],
}

impl GroupedProduct<'_> {
    #[inline(always)]
    fn run<V: Vector>(mut self, proof: V::Proof) {
        let outputs = self.biases.len();
        let mut at = 0;
        while at + 4 * V::DOUBLES <= outputs {
            self.outputs::<V, 4, 2>(proof, at);
            at += 4 * V::DOUBLES;
        }
        while at + 2 * V::DOUBLES <= outputs {
            self.outputs::<V, 2, 4>(proof, at);
            at += 2 * V::DOUBLES;
        }
        while at + V::DOUBLES <= outputs {
            self.outputs::<V, 1, 4>(proof, at);
            at += V::DOUBLES;
        }
    }

    /// [`GroupedProduct::run`] over non-zero groups whose products may be added as i16, J groups at a time.
    #[inline(always)]
    fn run_joined<V: Vector, const J: usize>(mut self, proof: V::Proof) {
        // Widths known beforehand need no multiplication to find a group's weights.
        match self.biases.len() {
            16 => self.joined_outputs::<V, 2, J>(proof, 0, 4 * 16),
            32 => self.joined_outputs::<V, 4, J>(proof, 0, 4 * 32),
            // Outputs are padded to pairs of vectors.
            outputs => {
                for at in (0..outputs).step_by(2 * V::DOUBLES) {
                    self.joined_outputs::<V, 2, J>(proof, at, 4 * outputs);
                }
            }
        }
    }

    /// N vectors of outputs from `at`.
    #[inline(always)]
    fn joined_outputs<V: Vector, const N: usize, const J: usize>(&mut self, proof: V::Proof, at: usize, stride: usize) {
        let Some(nnz) = self.nnz else { return };
        let mut sums = [V::zero(proof); N];
        for n in 0..N {
            sums[n] = V::load(proof, &self.biases[at + n * V::DOUBLES..]);
        }
        let weights = GroupWeights { rows: self.weights, stride, at: 4 * at };
        for chunk in nnz.iter::<V, N, J>(proof, self.groups, weights) {
            for n in 0..N {
                let mut x = [V::zero(proof); J];
                let mut w = x;
                for j in 0..J {
                    x[j] = chunk[j].0;
                    w[j] = chunk[j].1[n];
                }
                sums[n] = sums[n].dot4_all(x, w);
            }
        }
        for n in 0..N {
            sums[n].store(&mut self.sums[at + n * V::DOUBLES..]);
        }
    }

    /// N vectors of outputs from `at`. C groups are summed independently, to shorten the dependency chains.
    #[inline(always)]
    fn outputs<V: Vector, const N: usize, const C: usize>(&mut self, proof: V::Proof, at: usize) {
        let stride = 4 * self.biases.len();
        let mut sums = [[V::zero(proof); N]; C];
        for (n, sum) in sums[0].iter_mut().enumerate() {
            *sum = V::load(proof, &self.biases[at + n * V::DOUBLES..]);
        }
        if let Some(nnz) = self.nnz {
            let weights = GroupWeights { rows: self.weights, stride, at: 4 * at };
            for chunk in nnz.iter::<V, N, C>(proof, self.groups, weights) {
                for c in 0..C {
                    let (x, weights) = chunk[c];
                    add_products(&mut sums[c], x, weights);
                }
            }
        } else {
            let (chunks, rest) = self.groups.as_chunks::<C>();
            let mut weights = self.weights[4 * at..].chunks(stride);
            for inputs in chunks {
                for c in 0..C {
                    multiply(proof, &mut sums[c], inputs[c], weights.next().unwrap_or_default());
                }
            }
            for (inputs, weights) in rest.iter().zip(weights) {
                multiply(proof, &mut sums[0], *inputs, weights);
            }
        }
        for n in 0..N {
            let mut sum = sums[0][n];
            for other in &sums[1..] {
                sum = sum.add32(other[n]);
            }
            sum.store(&mut self.sums[at + n * V::DOUBLES..]);
        }
    }
}

/// Adds a group's inputs times its weights to N vectors of outputs.
#[inline(always)]
fn multiply<V: Vector, const N: usize>(proof: V::Proof, sums: &mut [V; N], inputs: [u8; 4], weights: &[i8]) {
    let row = &weights[..N * V::BYTES];
    let mut weights = [V::zero(proof); N];
    for n in 0..N {
        weights[n] = V::load(proof, &row[n * V::BYTES..]);
    }
    add_products(sums, V::splat32(proof, i32::from_ne_bytes(inputs)), weights);
}

#[inline(always)]
fn add_products<V: Vector, const N: usize>(sums: &mut [V; N], x: V, weights: [V; N]) {
    for n in 0..N {
        sums[n] = sums[n].dot4(x, weights[n]);
    }
}

/// A layer with few inputs or few outputs: every input is multiplied.
#[inline(always)]
pub fn hidden_layer<V: Vector>(proof: V::Proof, layer: &DenseLayer, input: &[u8], sums: &mut [i32]) {
    match &layer.weights {
        DenseWeights::PerOutput(weights) => {
            for (output, bias) in layer.biases[..layer.outputs].iter().enumerate() {
                let row = &weights[output * layer.inputs..][..layer.inputs];
                let input = &input[..layer.inputs];
                let mut products = [V::zero(proof); 2];
                let mut at = 0;
                while at + 2 * V::BYTES <= row.len() {
                    for (n, sum) in products.iter_mut().enumerate() {
                        let from = at + n * V::BYTES;
                        let x = V::load(proof, &input[from..]);
                        *sum = sum.dot4(x, V::load(proof, &row[from..]));
                    }
                    at += 2 * V::BYTES;
                }
                if at < row.len() {
                    products[0] = products[0].dot4(V::load(proof, &input[at..]), V::load(proof, &row[at..]));
                }
                sums[output] = bias.wrapping_add(products[0].add32(products[1]).sum32());
            }
        }
        DenseWeights::Grouped { groups: weights, .. } => {
            let groups = &input.as_chunks::<4>().0[..layer.groups];
            GroupedProduct { groups, nnz: None, weights, biases: &layer.biases, sums }.run::<V>(proof);
        }
        // See `direct_output`.
        DenseWeights::Direct(_) => {}
    }
}
