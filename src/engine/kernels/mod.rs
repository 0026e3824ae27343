//! Evaluation's loops, each written once over [`Vector`].
//!
//! Accumulators and rows of the feature transformer are alike: `words` i16, padded to whole vectors, then the PSQT sums of
//! all buckets as i32 in the space of two i16 each, padded too. [`update`] changes accumulators; [`activate`] and
//! [`dense`] lead from them to a score, [`whole`] where products are not rounded.

mod activate;
mod dense;
mod direct_output;
mod update;

use super::model::{DenseWeights, Model, Scratch};
use super::simd::{Kernel, Vector};
use crate::net::RawScore;

pub use activate::SMALL;
pub use dense::TILE;
pub use update::AccumulatorUpdate;

/// Looks at what goes into every dense layer: (0, from stm's accumulator), (0, from nstm's), (1, from the first hidden
/// layer), …
pub trait Observer {
    /// Whether it looks at all.
    const OBSERVES: bool = true;
    fn see(&mut self, layer: usize, values: &[u8]);
}

impl<F: FnMut(usize, &[u8])> Observer for F {
    fn see(&mut self, layer: usize, values: &[u8]) {
        self(layer, values);
    }
}

/// Looks at nothing.
pub struct NoObserver;

impl Observer for NoObserver {
    const OBSERVES: bool = false;
    fn see(&mut self, _: usize, _: &[u8]) {}
}

/// From both accumulators to a bucket's raw output.
pub struct Forward<'a, S> {
    pub model: &'a Model,
    pub bucket: usize,
    pub stm: &'a [i16],
    pub nstm: &'a [i16],
    pub scratch: &'a mut Scratch,
    pub see: S,
}

impl<S: Observer> Kernel for Forward<'_, S> {
    type Output = RawScore;

    #[inline(always)]
    fn run<V: Vector>(mut self, proof: V::Proof) -> RawScore {
        let model = self.model;
        let layer = &model.stacks[self.bucket][0];
        let positional = match &layer.weights {
            DenseWeights::Direct(weights) => {
                if S::OBSERVES {
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

impl<S: Observer> Forward<'_, S> {
    /// What goes into the first dense layer, as bytes.
    #[inline(always)]
    fn activations<V: Vector>(&mut self, proof: V::Proof) {
        let model = self.model;
        let (own, their) = self.scratch.input[..2 * model.half].split_at_mut(model.half);
        let (masks, their_masks) = self.scratch.masks.split_at_mut(model.half / V::BYTES);
        activate::accumulator::<V>(proof, model, self.stm, own, masks);
        activate::accumulator::<V>(proof, model, self.nstm, their, their_masks);
        if S::OBSERVES {
            let seen = model.shape.activation.outputs(model.shape.l1);
            self.see.see(0, &own[..seen]);
            self.see.see(0, &their[..seen]);
        }
    }

    #[inline(always)]
    fn layers<V: Vector>(&mut self, proof: V::Proof) -> i32 {
        self.activations::<V>(proof);
        let model = self.model;
        let Scratch { input, masks, found, sums, hidden, backwards } = &mut *self.scratch;
        let stack = &model.stacks[self.bucket];
        *backwards = !*backwards;
        let masks = &masks[..2 * model.half / V::BYTES];
        let inputs = dense::Inputs { bytes: input, masks, found, backwards: *backwards };
        dense::first::<V>(proof, &stack[0], inputs, sums);
        let mut skip = 0;
        for (index, (layer, hidden)) in stack[1..].iter().zip(hidden).enumerate() {
            let width = model.shape.hidden[index];
            if index == 0 && model.shape.skip {
                skip = model.scheme.skip(sums[width]);
            }
            let outputs = activate::hidden(model, index, sums, width, hidden);
            if S::OBSERVES {
                self.see.see(index + 1, &hidden[..outputs]);
            }
            dense::layer::<V>(proof, layer, hidden, sums);
        }
        sums[0].wrapping_add(skip)
    }
}
