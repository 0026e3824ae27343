//! The loops of evaluation, each written once over [`Vector`].
//!
//! Accumulators and rows of the feature transformer have one layout: `words` i16, padded to whole vectors, then the
//! PSQT sums of all buckets as i32, each in the space of two i16, padded too. [`update`] changes accumulators.
//! [`activate`] and [`dense`] compute a score from them, or [`direct_output`] if the scheme has i16 weights.

mod activate;
mod dense;
mod direct_output;
mod line;
mod update;

use super::dense_layer::DenseWeights;
use super::model::{LayerScratch, Model, Scratch};
use super::simd::{Vector, VectorKernel};
use crate::net::RawScore;

pub use activate::{BLOCK, SMALL_SUM};
pub use dense::TILE;
pub use line::{LineChanges, LinePass, LineSum};
pub use update::{AccumulatorUpdate, MixedRows, NarrowRows, WideRows};

/// Receives the inputs of each dense layer: (0, activations of stm's accumulator), (0, activations of nstm's), (1,
/// activations of the first hidden layer), …
pub trait Observer {
    /// Whether it does anything.
    const OBSERVES: bool = true;
    fn observe(&mut self, layer: usize, values: &[u8]);
}

impl<F: FnMut(usize, &[u8])> Observer for F {
    fn observe(&mut self, layer: usize, values: &[u8]) {
        self(layer, values);
    }
}

/// Does nothing.
pub struct NoObserver;

impl Observer for NoObserver {
    const OBSERVES: bool = false;
    fn observe(&mut self, _: usize, _: &[u8]) {}
}

/// An accumulator, perhaps as two summands; whole if the output is direct.
#[derive(Copy, Clone)]
pub struct AccumulatorSums<'a> {
    pub first: &'a [i16],
    pub second: Option<&'a [i16]>,
}

/// Computes the raw output of a bucket from both accumulators.
pub struct Forward<'a, O> {
    pub model: &'a Model,
    pub bucket: usize,
    /// Of stm and nstm.
    pub accumulators: [AccumulatorSums<'a>; 2],
    pub scratch: &'a mut Scratch,
    pub observer: O,
}

impl<O: Observer> VectorKernel for Forward<'_, O> {
    type Output = RawScore;

    #[inline(always)]
    fn run<V: Vector>(mut self, proof: V::Proof) -> RawScore {
        let model = self.model;
        let layer = &model.stacks[self.bucket][0];
        let positional = match &layer.weights {
            DenseWeights::Direct(weights) => {
                if O::OBSERVES {
                    self.activations::<V>(proof);
                }
                // The evaluator adds the summands of its accumulators.
                let [stm, nstm] = [self.accumulators[0].first, self.accumulators[1].first];
                direct_output::output::<V>(proof, model, [stm, nstm], weights, layer.biases[0])
            }
            _ => self.layers::<V>(proof),
        };
        let psqt = if model.shape.psqt {
            let mut sides = [0; 2];
            for (side, AccumulatorSums { first, second }) in sides.iter_mut().zip(&self.accumulators) {
                *side = model.psqt(first, self.bucket);
                if let Some(second) = second {
                    *side = side.wrapping_add(model.psqt(second, self.bucket));
                }
            }
            let [stm, nstm] = sides;
            stm.wrapping_sub(nstm) / 2
        } else {
            0
        };
        RawScore { psqt, positional }
    }
}

impl<O: Observer> Forward<'_, O> {
    /// Computes the inputs of the first dense layer.
    #[inline(always)]
    fn activations<V: Vector>(&mut self, proof: V::Proof) {
        let model = self.model;
        let (stm, nstm) = self.scratch.input[..2 * model.side_inputs].split_at_mut(model.side_inputs);
        let (stm_masks, nstm_masks) = self.scratch.masks.split_at_mut(model.side_inputs / V::BYTES);
        activate::accumulator::<V>(proof, model, self.accumulators[0], stm, stm_masks);
        activate::accumulator::<V>(proof, model, self.accumulators[1], nstm, nstm_masks);
        if O::OBSERVES {
            let unpadded = model.shape.activation.outputs(model.shape.l1);
            self.observer.observe(0, &stm[..unpadded]);
            self.observer.observe(0, &nstm[..unpadded]);
        }
    }

    #[inline(always)]
    fn layers<V: Vector>(&mut self, proof: V::Proof) -> i32 {
        self.activations::<V>(proof);
        let Scratch { input, masks, layers } = &mut *self.scratch;
        let masks = &masks[..2 * self.model.side_inputs / V::BYTES];
        dense_layers::<V, O>(proof, self.model, self.bucket, (input, masks), layers, &mut self.observer)
    }
}

/// Computes the positional output of a bucket from the activations of both accumulators.
pub struct DenseStack<'a> {
    pub model: &'a Model,
    pub bucket: usize,
    /// The activations of stm's accumulator and of nstm's, then zeros.
    pub activations: &'a [u8],
    /// The masks of their groups.
    pub masks: &'a [u16],
    pub scratch: &'a mut LayerScratch,
}

impl VectorKernel for DenseStack<'_> {
    type Output = i32;

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) -> i32 {
        let DenseStack { model, bucket, activations, masks, scratch } = self;
        let masks = &masks[..2 * model.side_inputs / V::BYTES];
        dense_layers::<V, _>(proof, model, bucket, (activations, masks), scratch, &mut NoObserver)
    }
}

/// The dense layers of a bucket, from the activations of both accumulators and the masks of their groups that are not
/// all zero. Returns the raw output.
#[inline(always)]
fn dense_layers<V: Vector, O: Observer>(
    proof: V::Proof,
    model: &Model,
    bucket: usize,
    (bytes, masks): (&[u8], &[u16]),
    scratch: &mut LayerScratch,
    observer: &mut O,
) -> i32 {
    let LayerScratch { nnz, sums, hidden, backwards } = scratch;
    let stack = &model.stacks[bucket];
    *backwards = !*backwards;
    let inputs = dense::FirstInputs { bytes, masks, nnz, backwards: *backwards };
    dense::first_layer::<V>(proof, &stack[0], inputs, sums);
    let mut skip = 0;
    for (index, layer) in stack[1..].iter().enumerate() {
        let width = model.shape.hidden[index];
        if let (0, Some((added, subtracted))) = (index, model.skip_outputs) {
            skip = model.scheme.skip(sums[added].wrapping_sub(subtracted.map_or(0, |output| sums[output])));
        }
        let (earlier, rest) = hidden.split_at_mut(index);
        let mut own = 0;
        if model.shape.concatenated && index + 2 == stack.len() {
            for (values, &outputs) in earlier.iter().zip(&model.hidden_outputs) {
                rest[0][own..own + outputs].copy_from_slice(&values[..outputs]);
                own += outputs;
            }
        }
        let outputs = activate::hidden(model, index, sums, width, &mut rest[0][own..]);
        if O::OBSERVES {
            observer.observe(index + 1, &rest[0][own..own + outputs]);
        }
        dense::hidden_layer::<V>(proof, layer, &rest[0], sums);
    }
    model.scheme.raw(sums[0].wrapping_add(skip))
}
