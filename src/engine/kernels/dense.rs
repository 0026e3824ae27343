//! Dense layers of i8 weights.
//!
//! A first layer's weights are there in two orders: a group of four inputs after the other, so that groups that are all
//! zero can be left out, and in tiles that need fewer loads where most are not. Few outputs have a row each.

use crate::engine::model::{DenseLayer, DenseWeights};
use crate::engine::simd::{GroupWeights, Nnz, Vector, WIDEST};

/// What goes into a first dense layer.
pub struct Inputs<'a> {
    /// What comes from both accumulators, and at least one group of zeros behind.
    pub bytes: &'a [u8],
    /// Which groups of four are not all zero, a mask a vector.
    pub masks: &'a [u16],
    /// Room for the numbers of all groups, and [`super::super::simd::NNZ_SLACK`].
    pub found: &'a mut [u16],
    /// Tiles are walked through to and fro, so that a pass starts with what the one before has left in the cache.
    pub backwards: bool,
}

/// The first dense layer. Most of what comes from the accumulators of a trained network is zero: only groups that are not
/// are multiplied, unless walking through the tiles of all of them costs less.
#[inline(always)]
pub fn first<V: Vector>(proof: V::Proof, layer: &DenseLayer, inputs: Inputs<'_>, sums: &mut [i32]) {
    let Inputs { bytes, masks, found, backwards } = inputs;
    match &layer.weights {
        DenseWeights::PerOutput(_) | DenseWeights::Direct(_) => self::layer::<V>(proof, layer, bytes, sums),
        DenseWeights::Grouped { groups: weights, tiles } => {
            let places = Nnz::find::<V>(proof, masks, found);
            // Measured on both sides of it.
            if V::BYTES == WIDEST && 5 * places.count() > 4 * layer.groups {
                let input = &bytes[..layer.inputs];
                return Tiles { tiles, biases: &layer.biases, input, backwards }.run::<V>(proof, sums);
            }
            let (groups, _) = bytes.as_chunks::<4>();
            Product { groups, places: Some(&places), weights, biases: &layer.biases, sums }.run::<V>(proof);
        }
    }
}

/// Inputs and outputs of a tile of weights.
pub const TILE: usize = 16;

/// DenseWeights in tiles, those of an input's part after each other: for widest vectors. Vector r of a tile's four has in its
/// 128-bit quarter q the weights of output 4q + r, so that adding up neighbours leaves the outputs in order.
struct Tiles<'a> {
    tiles: &'a [i8],
    biases: &'a [i32],
    input: &'a [u8],
    backwards: bool,
}

impl Tiles<'_> {
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

    /// N tiles' outputs from `at` on; C parts of the inputs at a time, whose sums do not wait for each other.
    #[inline(always)]
    fn outputs<V: Vector, const N: usize, const C: usize>(&self, proof: V::Proof, at: usize, sums: &mut [i32]) {
        // Padding makes them whole chunks.
        let (parts, _) = self.input.as_chunks::<TILE>();
        let (parts, _) = parts.as_chunks::<C>();
        let weights = self.tiles.chunks_exact(C * TILE * self.biases.len());
        let mut each = [[[V::zero(proof); 4]; N]; C];
        if self.backwards {
            for (parts, weights) in parts.iter().rev().zip(weights.rev()) {
                add_tiles(proof, &mut each, parts, weights, TILE * at);
            }
        } else {
            for (parts, weights) in parts.iter().zip(weights) {
                add_tiles(proof, &mut each, parts, weights, TILE * at);
            }
        }
        for n in 0..N {
            let mut sum = V::load(proof, &self.biases[at + n * TILE..]);
            for part in &each {
                sum = sum.add32(V::sum_quarters(part[n]));
            }
            sum.store(&mut sums[at + n * TILE..]);
        }
    }
}

/// N tiles, from `at` on, of each of C parts of the inputs.
#[inline(always)]
fn add_tiles<V: Vector, const N: usize, const C: usize>(
    proof: V::Proof,
    each: &mut [[[V; 4]; N]; C],
    parts: &[[u8; TILE]; C],
    weights: &[i8],
    at: usize,
) {
    let stride = weights.len() / C;
    for (c, sums) in each.iter_mut().enumerate() {
        let x = V::splat128(proof, &parts[c]);
        let weights = &weights[c * stride + at..][..N * TILE * TILE];
        for n in 0..N {
            for r in 0..4 {
                sums[n][r] = sums[n][r].dot4(x, V::load(proof, &weights[(4 * n + r) * V::BYTES..]));
            }
        }
    }
}

/// DenseWeights of groups of four inputs, an output after the other, against the inputs of some groups.
struct Product<'a> {
    groups: &'a [[u8; 4]],
    /// The groups to multiply; none where they are all.
    places: Option<&'a Nnz<'a>>,
    weights: &'a [i8],
    biases: &'a [i32],
    sums: &'a mut [i32],
}

impl Product<'_> {
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

    /// N vectors of outputs from `at` on; C groups at a time, whose sums do not wait for each other.
    #[inline(always)]
    fn outputs<V: Vector, const N: usize, const C: usize>(&mut self, proof: V::Proof, at: usize) {
        let stride = 4 * self.biases.len();
        let mut sums = [[V::zero(proof); N]; C];
        for (n, sum) in sums[0].iter_mut().enumerate() {
            *sum = V::load(proof, &self.biases[at + n * V::DOUBLES..]);
        }
        if let Some(places) = self.places {
            let rows = GroupWeights { weights: self.weights, stride, at: 4 * at };
            for picked in places.picked::<V, N, C>(proof, self.groups, rows) {
                for c in 0..C {
                    let (x, weights) = picked[c];
                    add_products(&mut sums[c], x, weights);
                }
            }
        } else {
            let (several, rest) = self.groups.as_chunks::<C>();
            let mut weights = self.weights[4 * at..].chunks(stride);
            for inputs in several {
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
            for others in &sums[1..] {
                sum = sum.add32(others[n]);
            }
            sum.store(&mut self.sums[at + n * V::DOUBLES..]);
        }
    }
}

/// A group's inputs times its weights for N vectors of outputs.
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

/// A layer whose inputs are few or whose outputs are.
#[inline(always)]
pub fn layer<V: Vector>(proof: V::Proof, layer: &DenseLayer, input: &[u8], sums: &mut [i32]) {
    match &layer.weights {
        DenseWeights::PerOutput(weights) => {
            for (output, bias) in layer.biases[..layer.outputs].iter().enumerate() {
                let row = &weights[output * layer.inputs..][..layer.inputs];
                let input = &input[..layer.inputs];
                let mut products = [V::zero(proof); 2];
                let mut at = 0;
                while at + 2 * V::BYTES <= row.len() {
                    for (n, sum) in products.iter_mut().enumerate() {
                        let here = at + n * V::BYTES;
                        let x = V::load(proof, &input[here..]);
                        *sum = sum.dot4(x, V::load(proof, &row[here..]));
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
            Product { groups, places: None, weights, biases: &layer.biases, sums }.run::<V>(proof);
        }
        // Whole products are summed elsewhere.
        DenseWeights::Direct(_) => {}
    }
}
