//! Dense layers of i8 weights.

use crate::engine::model::{Layer, Weights};
use crate::engine::simd::Vector;

/// The places of the set bits of a byte, lowest first.
static PLACES: [[u16; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit as u16;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Writes the numbers of the groups of four inputs that are not all zero; gives how many. `found` has room for all and
/// eight more.
#[inline(always)]
fn nonzero_groups<V: Vector>(proof: V::Proof, input: &[u8], found: &mut [u16]) -> usize {
    let (mut count, mut group, mut at) = (0, 0u16, 0);
    while at + V::BYTES <= input.len() {
        let mut mask = V::load(proof, &input[at..]).nonzero32();
        let mut left = V::DOUBLES;
        while left > 0 {
            let byte = (mask & 0xff) as usize;
            // A copy of its own, so that all eight are moved at once.
            let mut places = PLACES[byte];
            for place in &mut places {
                *place += group;
            }
            found[count..][..8].copy_from_slice(&places);
            count += byte.count_ones() as usize;
            mask >>= 8;
            group += 8;
            left -= 8;
        }
        at += V::BYTES;
    }
    count
}

/// The first dense layer. Most of what comes from the accumulators is zero: only groups that are not are multiplied.
#[inline(always)]
pub fn first<V: Vector>(proof: V::Proof, layer: &Layer, input: &[u8], found: &mut [u16], sums: &mut [i32]) {
    match &layer.weights {
        Weights::Rows(_) | Weights::Whole(_) => self::layer::<V>(proof, layer, input, sums),
        Weights::Groups(weights) => {
            let count = nonzero_groups::<V>(proof, input, found);
            let (groups, _) = input.as_chunks::<4>();
            let product = Product { groups, weights, biases: &layer.biases, sums };
            // Where hardly any is zero, looking each up costs more than it saves.
            let full = 8 * count > 7 * input.len() / 4;
            product.run::<V>(proof, if full { None } else { Some(&found[..count]) });
        }
    }
}

/// Weights of groups of four inputs, an output after the other, against the inputs of those groups.
struct Product<'a> {
    groups: &'a [[u8; 4]],
    weights: &'a [i8],
    biases: &'a [i32],
    sums: &'a mut [i32],
}

impl Product<'_> {
    /// Of the groups `which`; of all groups without.
    #[inline(always)]
    fn run<V: Vector>(mut self, proof: V::Proof, which: Option<&[u16]>) {
        let outputs = self.biases.len();
        let mut at = 0;
        while at + 4 * V::DOUBLES <= outputs {
            self.outputs::<V, 4, 2>(proof, which, at);
            at += 4 * V::DOUBLES;
        }
        while at + 2 * V::DOUBLES <= outputs {
            self.outputs::<V, 2, 4>(proof, which, at);
            at += 2 * V::DOUBLES;
        }
        while at + V::DOUBLES <= outputs {
            self.outputs::<V, 1, 4>(proof, which, at);
            at += V::DOUBLES;
        }
    }

    /// N vectors of outputs from `at` on; C groups at a time, whose sums do not wait for each other.
    #[inline(always)]
    fn outputs<V: Vector, const N: usize, const C: usize>(
        &mut self,
        proof: V::Proof,
        which: Option<&[u16]>,
        at: usize,
    ) {
        let stride = 4 * self.biases.len();
        let mut sums = [[V::zero(proof); N]; C];
        for (n, sum) in sums[0].iter_mut().enumerate() {
            *sum = V::load(proof, &self.biases[at + n * V::DOUBLES..]);
        }
        if let Some(which) = which {
            let weights = &self.weights[4 * at..];
            let (several, rest) = which.as_chunks::<C>();
            for groups in several {
                for c in 0..C {
                    let group = usize::from(groups[c]);
                    multiply(proof, &mut sums[c], self.groups[group], &weights[group * stride..]);
                }
            }
            for group in rest {
                let group = usize::from(*group);
                multiply(proof, &mut sums[0], self.groups[group], &weights[group * stride..]);
            }
        } else {
            // Padding makes them whole chunks.
            let (several, _) = self.groups.as_chunks::<C>();
            for (groups, weights) in several.iter().zip(self.weights.chunks_exact(C * stride)) {
                for c in 0..C {
                    multiply(proof, &mut sums[c], groups[c], &weights[c * stride + 4 * at..]);
                }
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
    let x = V::splat32(proof, i32::from_ne_bytes(inputs));
    let weights = &weights[..N * V::BYTES];
    for n in 0..N {
        sums[n] = sums[n].dot4(x, V::load(proof, &weights[n * V::BYTES..]));
    }
}

/// A layer whose inputs are few or whose outputs are.
#[inline(always)]
pub fn layer<V: Vector>(proof: V::Proof, layer: &Layer, input: &[u8], sums: &mut [i32]) {
    match &layer.weights {
        Weights::Rows(weights) => {
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
        Weights::Groups(weights) => {
            let (groups, _) = input.as_chunks::<4>();
            let product = Product { groups, weights, biases: &layer.biases, sums };
            product.run::<V>(proof, Some(&layer.all));
        }
        // Whole products are summed elsewhere.
        Weights::Whole(_) => {}
    }
}
