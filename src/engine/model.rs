//! A quantised network laid out for the kernels: rows padded to whole vectors, tables on cache lines.

use super::aligned::Aligned;
use super::simd::{BackEnd, Kernels, LANES};
use crate::net::{QuantNet, Scheme};

/// A network ready to run. Padding is zero everywhere, so padded neurons stay zero and add nothing.
pub struct Model {
    scheme: Scheme,
    features: u32,
    l1: usize,
    /// Of an accumulator: `l1` padded to whole vectors.
    width: usize,
    table: Aligned<i16>,
    biases: Aligned<i16>,
    layers: Vec<Layer>,
}

struct Layer {
    /// `biases.len()` rows of the padded input width.
    weights: Aligned<i8>,
    biases: Vec<i32>,
}

/// Room for the activations and sums of one forward pass, reused from one to the next.
#[derive(Clone)]
pub struct Scratch {
    activations: Aligned<u8>,
    sums: Vec<i32>,
}

impl Model {
    #[must_use]
    pub fn new(net: &QuantNet) -> Model {
        let l1 = net.shape.l1;
        let width = l1.next_multiple_of(LANES);
        let layer = |(index, layer): (usize, &crate::net::QuantDense)| {
            let weights = match index {
                // Both perspectives' accumulators, each padded.
                0 => Aligned::padded(&layer.weights, l1, width),
                _ => Aligned::padded(&layer.weights, layer.inputs, layer.inputs.next_multiple_of(LANES)),
            };
            Layer { weights, biases: layer.biases.clone() }
        };
        Model {
            scheme: net.scheme.clone(),
            features: net.shape.features,
            l1,
            width,
            table: Aligned::padded(&net.ft_weights, l1, width),
            biases: Aligned::padded(&net.ft_biases, l1, width),
            layers: net.layers.iter().enumerate().map(layer).collect(),
        }
    }

    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Rows of the feature transformer.
    #[must_use]
    pub const fn features(&self) -> u32 {
        self.features
    }

    /// An accumulator of no active features.
    #[must_use]
    pub fn empty_accumulator(&self) -> Aligned<i16> {
        self.biases.clone()
    }

    /// Recomputes an accumulator from all active features (all below [`Model::features`]).
    pub fn refresh(&self, back_end: BackEnd, accumulator: &mut Aligned<i16>, active: &[u32]) {
        accumulator.copy_from_slice(&self.biases);
        back_end.update(accumulator, &self.table, active, &[]);
    }

    /// Adds and subtracts changed rows.
    pub fn update(&self, back_end: BackEnd, accumulator: &mut Aligned<i16>, added: &[u32], removed: &[u32]) {
        back_end.update(accumulator, &self.table, added, removed);
    }

    #[must_use]
    pub fn scratch(&self) -> Scratch {
        let widest = self.layers.iter().map(|layer| layer.biases.len()).max().unwrap_or(1);
        let inputs = (2 * self.width).max(widest.next_multiple_of(LANES));
        Scratch { activations: Aligned::zeroed(inputs), sums: vec![0; widest] }
    }

    /// The raw output: internal score units times the scheme's divisor. `see` gets each layer's activations: (0, stm's
    /// L1), (0, nstm's L1), (1, the first hidden layer's), …
    pub fn forward(
        &self,
        back_end: BackEnd,
        stm: &[i16],
        nstm: &[i16],
        scratch: &mut Scratch,
        mut see: impl FnMut(usize, &[u8]),
    ) -> i32 {
        let one = self.scheme.crelu(i32::MAX);
        for (accumulator, input) in [stm, nstm].into_iter().zip(scratch.activations.chunks_exact_mut(self.width)) {
            back_end.crelu(accumulator, one, input);
            see(0, &input[..self.l1]);
        }
        let mut inputs = 2 * self.width;
        let mut outputs = 0;
        for (index, layer) in self.layers.iter().enumerate() {
            if index > 0 {
                inputs = self.activate(&scratch.sums[..outputs], &mut scratch.activations);
                see(index, &scratch.activations[..outputs]);
            }
            outputs = layer.biases.len();
            let sums = &mut scratch.sums[..outputs];
            back_end.affine(&scratch.activations[..inputs], &layer.weights, &layer.biases, sums);
        }
        scratch.sums.first().copied().unwrap_or_default()
    }

    /// Turns a hidden layer's sums into the next one's inputs; gives their padded number.
    fn activate(&self, sums: &[i32], activations: &mut [u8]) -> usize {
        let padded = sums.len().next_multiple_of(LANES);
        let (values, padding) = activations[..padded].split_at_mut(sums.len());
        for (value, sum) in values.iter_mut().zip(sums) {
            *value = self.scheme.crelu(self.scheme.rescale(*sum));
        }
        padding.fill(0);
        padded
    }
}
