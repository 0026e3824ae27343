//! Evaluation's loops, each written once over [`Vector`].
//!
//! Accumulators and rows of the feature transformer are alike: `words` i16, padded to whole vectors, then the PSQT sums of
//! all buckets as i32 in the space of two i16 each, padded too.

use super::model::{Layer, Model, Scratch, Weights};
use super::simd::{Kernel, Vector};
use crate::net::{Activation, RawScore};

/// Adds and subtracts rows.
pub struct Update<'a> {
    /// Where to start from; none = from what `to` holds.
    pub from: Option<&'a [i16]>,
    pub to: &'a mut [i16],
    pub table: &'a [i16],
    /// Elements that are i16 numbers; those behind are PSQT sums.
    pub words: usize,
    pub added: &'a [u32],
    pub removed: &'a [u32],
}

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) {
        let stride = self.to.len();
        let table = self.table;
        // What moves, captures and castlings change in sets of pieces gets loops of its own.
        match (self.added, self.removed) {
            (&[a], &[r]) => self.fused::<V, 1, 1>(proof, [row(table, stride, a)], [row(table, stride, r)]),
            (&[a], &[r, s]) => {
                self.fused::<V, 1, 2>(proof, [row(table, stride, a)], [row(table, stride, r), row(table, stride, s)]);
            }
            (&[a, b], &[r, s]) => self.fused::<V, 2, 2>(
                proof,
                [row(table, stride, a), row(table, stride, b)],
                [row(table, stride, r), row(table, stride, s)],
            ),
            _ => self.tiled::<V>(proof),
        }
    }
}

#[inline(always)]
fn row(table: &[i16], stride: usize, feature: u32) -> &[i16] {
    &table[feature as usize * stride..][..stride]
}

impl Update<'_> {
    /// All rows pass each vector at once.
    #[inline(always)]
    fn fused<V: Vector, const A: usize, const R: usize>(
        self,
        proof: V::Proof,
        added: [&[i16]; A],
        removed: [&[i16]; R],
    ) {
        let Update { from, to, words, .. } = self;
        let mut at = 0;
        // Padding makes them whole pairs of vectors.
        let pair = 2 * V::WORDS;
        while at + pair <= words {
            let start = &from.unwrap_or(&*to)[at..][..pair];
            let (mut low, mut high) = (V::load(proof, start), V::load(proof, &start[V::WORDS..]));
            for row in added {
                let row = &row[at..][..pair];
                low = low.add16(V::load(proof, row));
                high = high.add16(V::load(proof, &row[V::WORDS..]));
            }
            for row in removed {
                let row = &row[at..][..pair];
                low = low.sub16(V::load(proof, row));
                high = high.sub16(V::load(proof, &row[V::WORDS..]));
            }
            let end = &mut to[at..][..pair];
            low.store(end);
            high.store(&mut end[V::WORDS..]);
            at += pair;
        }
        while at + V::WORDS <= to.len() {
            let mut sum = V::load(proof, &from.unwrap_or(&*to)[at..]);
            for row in added {
                sum = sum.add32(V::load(proof, &row[at..]));
            }
            for row in removed {
                sum = sum.sub32(V::load(proof, &row[at..]));
            }
            sum.store(&mut to[at..]);
            at += V::WORDS;
        }
    }

    /// Tiles of the accumulator stay in registers while all rows pass.
    #[inline(always)]
    fn tiled<V: Vector>(mut self, proof: V::Proof) {
        let mut at = 0;
        if V::REGISTERS >= 32 {
            while at + 16 * V::WORDS <= self.words {
                self.tile::<V, 16>(proof, at);
                at += 16 * V::WORDS;
            }
        }
        while at + 8 * V::WORDS <= self.words {
            self.tile::<V, 8>(proof, at);
            at += 8 * V::WORDS;
        }
        while at + V::WORDS <= self.words {
            self.tile::<V, 1>(proof, at);
            at += V::WORDS;
        }
        while at + V::WORDS <= self.to.len() {
            self.sums::<V>(proof, at);
            at += V::WORDS;
        }
    }

    #[inline(always)]
    fn tile<V: Vector, const N: usize>(&mut self, proof: V::Proof, at: usize) {
        let stride = self.to.len();
        let mut registers = [V::zero(proof); N];
        let from = &self.from.unwrap_or(&*self.to)[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n] = V::load(proof, &from[n * V::WORDS..]);
        }
        for feature in self.added {
            let row = &self.table[*feature as usize * stride + at..][..N * V::WORDS];
            for n in 0..N {
                registers[n] = registers[n].add16(V::load(proof, &row[n * V::WORDS..]));
            }
        }
        for feature in self.removed {
            let row = &self.table[*feature as usize * stride + at..][..N * V::WORDS];
            for n in 0..N {
                registers[n] = registers[n].sub16(V::load(proof, &row[n * V::WORDS..]));
            }
        }
        let to = &mut self.to[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n].store(&mut to[n * V::WORDS..]);
        }
    }

    /// A vector of PSQT sums.
    #[inline(always)]
    fn sums<V: Vector>(&mut self, proof: V::Proof, at: usize) {
        let stride = self.to.len();
        let mut sum = V::load(proof, &self.from.unwrap_or(&*self.to)[at..]);
        for feature in self.added {
            sum = sum.add32(V::load(proof, &self.table[*feature as usize * stride + at..]));
        }
        for feature in self.removed {
            sum = sum.sub32(V::load(proof, &self.table[*feature as usize * stride + at..]));
        }
        sum.store(&mut self.to[at..]);
    }
}

/// From both accumulators to a bucket's raw output.
pub struct Forward<'a, See> {
    pub model: &'a Model,
    pub bucket: usize,
    pub stm: &'a [i16],
    pub nstm: &'a [i16],
    pub scratch: &'a mut Scratch,
    /// Gets what goes into every dense layer: (0, from stm's accumulator), (0, from nstm's), (1, from the first hidden
    /// layer), …
    pub see: See,
}

impl<See: FnMut(usize, &[u8])> Kernel for Forward<'_, See> {
    type Output = RawScore;

    #[inline(always)]
    fn run<V: Vector>(mut self, proof: V::Proof) -> RawScore {
        let model = self.model;
        let Scratch { input, found, sums, hidden } = self.scratch;
        let (own, their) = input.split_at_mut(model.half);
        activate::<V>(proof, model, self.stm, own);
        activate::<V>(proof, model, self.nstm, their);
        let seen = model.shape.activation.outputs(model.shape.l1);
        (self.see)(0, &own[..seen]);
        (self.see)(0, &their[..seen]);

        let stack = &model.stacks[self.bucket];
        first::<V>(proof, &stack[0], input, found, sums);
        let mut skip = 0;
        for (index, layer) in stack[1..].iter().enumerate() {
            let width = model.shape.hidden[index];
            if index == 0 && model.shape.skip {
                skip = model.scheme.skip(sums[width]);
            }
            let outputs = activate_hidden(model, index, &sums[..width], hidden);
            (self.see)(index + 1, &hidden[..outputs]);
            dense::<V>(proof, layer, hidden, sums);
        }
        let psqt = if model.shape.psqt {
            let sum = |accumulator: &[i16]| model.psqt(accumulator, self.bucket);
            sum(self.stm).wrapping_sub(sum(self.nstm)) / 2
        } else {
            0
        };
        RawScore { psqt, positional: sums[0].wrapping_add(skip) }
    }
}

/// What goes into the first dense layer from one accumulator.
#[inline(always)]
fn activate<V: Vector>(proof: V::Proof, model: &Model, accumulator: &[i16], output: &mut [u8]) {
    let one = V::splat16(proof, i16::from(model.one));
    let shift = model.product_shift;
    let half = output.len();
    let (first, second, squared) = match model.shape.activation {
        Activation::Pairwise => (&accumulator[..half], &accumulator[half..][..half], true),
        Activation::Screlu => (&accumulator[..half], &accumulator[..half], true),
        Activation::Relu | Activation::Crelu | Activation::Dual => (&accumulator[..half], &accumulator[..half], false),
    };
    let mut at = 0;
    while at + V::BYTES <= half {
        let mut low = V::load(proof, &first[at..]).clip16(one);
        let mut high = V::load(proof, &first[at + V::WORDS..]).clip16(one);
        if squared {
            low = low.product16(V::load(proof, &second[at..]).clip16(one), shift);
            high = high.product16(V::load(proof, &second[at + V::WORDS..]).clip16(one), shift);
        }
        low.pack(high).store(&mut output[at..]);
        at += V::BYTES;
    }
}

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
fn first<V: Vector>(proof: V::Proof, layer: &Layer, input: &[u8], found: &mut [u16], sums: &mut [i32]) {
    match &layer.weights {
        Weights::Rows(_) => dense::<V>(proof, layer, input, sums),
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
fn dense<V: Vector>(proof: V::Proof, layer: &Layer, input: &[u8], sums: &mut [i32]) {
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
    }
}

/// Turns a hidden layer's sums into the next one's inputs, zeros behind; gives their number.
#[inline(always)]
fn activate_hidden(model: &Model, layer: usize, sums: &[i32], output: &mut [u8]) -> usize {
    let scheme = &model.scheme;
    let (shift, one) = (model.rescale_shift, i32::from(model.one));
    let activation = model.shape.hidden_activation(layer);
    let outputs = activation.outputs(sums.len());
    let (values, padding) = output.split_at_mut(outputs);
    let (squares, clipped) = values.split_at_mut(outputs - sums.len());
    for (value, sum) in clipped.iter_mut().zip(sums) {
        *value = (sum >> shift).clamp(0, one) as u8;
    }
    match activation {
        Activation::Relu | Activation::Crelu | Activation::Pairwise => {}
        Activation::Screlu => {
            for value in clipped {
                *value = scheme.product(*value, *value);
            }
        }
        Activation::Dual => match model.small_square {
            Some(shift) => {
                for (value, sum) in squares.iter_mut().zip(sums) {
                    let sum = (*sum).clamp(-SMALL, SMALL);
                    *value = ((sum * sum) >> shift).min(one) as u8;
                }
            }
            None => {
                for (value, sum) in squares.iter_mut().zip(sums) {
                    *value = scheme.square(*sum);
                }
            }
        },
    }
    padding.fill(0);
    outputs
}

/// The square of no sum beyond it is less than 1.0, where [`Model::small_square`] says so.
pub const SMALL: i32 = 1 << 15;
