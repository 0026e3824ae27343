//! The loops of evaluation, each written once over [`Vector`].
//!
//! Accumulators and rows of the feature transformer have one layout: `words` i16, padded to whole vectors, then the
//! PSQT sums of all buckets as i32, each in the space of two i16, padded too. [`update`] changes accumulators.
//! [`activate`] and [`dense`] compute a score from them, or [`direct_output`] if the scheme has i16 weights.

mod activate;
mod dense;
mod direct_output;
mod update;

use super::model::{DenseWeights, Model, Scratch};
use super::simd::{Kernel, Vector};
use crate::net::RawScore;

pub use activate::SMALL_SUM;
pub use dense::TILE;
pub use update::AccumulatorUpdate;

/// Receives the inputs of each dense layer: (0, activations of stm's accumulator), (0, those of nstm's), (1, those of
/// the first hidden layer), …
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

/// Computes the raw output of a bucket from both accumulators.
pub struct Forward<'a, O> {
    pub model: &'a Model,
    pub bucket: usize,
    pub stm: &'a [i16],
    pub nstm: &'a [i16],
    pub scratch: &'a mut Scratch,
    pub observer: O,
}

impl<O: Observer> Kernel for Forward<'_, O> {
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
                direct_output::output::<V>(proof, model, [self.stm, self.nstm], weights, layer.biases[0])
            }
            _ => self.layers::<V>(proof),
        };
        let psqt = if model.shape.psqt {
            let sum = |accumulator: &[i16]| model.psqt(accumulator, self.bucket);
            sum(self.stm).wrapping_sub(sum(self.nstm)) / 2
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
        activate::accumulator::<V>(proof, model, self.stm, stm, stm_masks);
        activate::accumulator::<V>(proof, model, self.nstm, nstm, nstm_masks);
        if O::OBSERVES {
            let unpadded = model.shape.activation.outputs(model.shape.l1);
            self.observer.observe(0, &stm[..unpadded]);
            self.observer.observe(0, &nstm[..unpadded]);
        }
    }

    #[inline(always)]
    fn layers<V: Vector>(&mut self, proof: V::Proof) -> i32 {
        self.activations::<V>(proof);
        let model = self.model;
        let Scratch { input, masks, nnz, sums, hidden, backwards } = &mut *self.scratch;
        let stack = &model.stacks[self.bucket];
        *backwards = !*backwards;
        let masks = &masks[..2 * model.side_inputs / V::BYTES];
        let inputs = dense::FirstInputs { bytes: input, masks, nnz, backwards: *backwards };
        dense::first_layer::<V>(proof, &stack[0], inputs, sums);
        let mut skip = 0;
        for (index, (layer, hidden)) in stack[1..].iter().zip(hidden).enumerate() {
            let width = model.shape.hidden[index];
            if index == 0 && model.shape.skip {
                skip = model.scheme.skip(sums[width]);
            }
            let outputs = activate::hidden(model, index, sums, width, hidden);
            if O::OBSERVES {
                self.observer.observe(index + 1, &hidden[..outputs]);
            }
            dense::hidden_layer::<V>(proof, layer, hidden, sums);
        }
        sums[0].wrapping_add(skip)
    }
}
