//! The dense layers of one bucket, forward and backward over a block of positions.

use super::lanes::{LanesKernel, padded};
use super::matmul::{AddProducts, Dots, MatrixProduct};
use crate::cpu::BackEnd;
use crate::engine::AlignedVec;
use crate::net::{Activation, Dense, Shape};

/// A layer with padded rows, and its transpose.
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Length of a row of inputs.
    stride: usize,
    /// [outputs, stride]
    weights: AlignedVec<f32>,
    /// [inputs, padded outputs]
    transposed: AlignedVec<f32>,
    /// [padded outputs]
    biases: AlignedVec<f32>,
}

impl Layer {
    fn new(dense: &Dense) -> Layer {
        let inputs = dense.inputs;
        let outputs = dense.outputs;
        let stride = padded(inputs);
        let columns = padded(outputs);
        let weights = AlignedVec::padded(&dense.weights, inputs, stride);
        let mut transposed = AlignedVec::zeroed(if outputs == 1 { 0 } else { inputs * columns });
        for (input, column) in transposed.chunks_exact_mut(columns).enumerate() {
            for (output, weight) in column[..outputs].iter_mut().enumerate() {
                *weight = dense.weights[output * inputs + input];
            }
        }
        let biases = AlignedVec::padded(&dense.biases, outputs, columns);
        Layer { inputs, outputs, stride, weights, transposed, biases }
    }

    /// Length of a row of outputs: one output is not padded.
    fn columns(&self) -> usize {
        if self.outputs == 1 { 1 } else { padded(self.outputs) }
    }
}

/// The dense layers of one bucket.
pub struct Stack<'a> {
    shape: &'a Shape,
    layers: Vec<Layer>,
    /// [`crate::net::Scheme::product_scale`]
    scale: f32,
    pub back_end: BackEnd,
}

/// Positions in a block, at most: their activations and the first layer's weights fit into a cache of the second level.
pub const BLOCK: usize = 48;

/// The values and gradients of a block of positions. It serves any bucket's stack of the same shape, block after block.
pub struct StackBlock {
    /// The inputs of each layer, [BLOCK, padded inputs]. The padding is zero.
    inputs: Vec<AlignedVec<f32>>,
    /// The sums of each layer, [BLOCK, padded outputs].
    sums: Vec<AlignedVec<f32>>,
    input_gradients: Vec<AlignedVec<f32>>,
    sum_gradients: Vec<AlignedVec<f32>>,
}

impl StackBlock {
    /// The inputs of the first layer, to be written, but for their padding: [BLOCK, padded inputs].
    pub fn first_inputs(&mut self) -> &mut [f32] {
        &mut self.inputs[0]
    }

    /// The gradients of the first layer's inputs: [BLOCK, padded inputs].
    #[must_use]
    pub fn first_gradients(&self) -> &[f32] {
        &self.input_gradients[0]
    }
}

/// The sums of a bucket's gradients.
#[derive(Clone, Debug, Default)]
pub struct StackGradients {
    /// Of each layer: [outputs, padded inputs].
    weights: Vec<Vec<f32>>,
    biases: Vec<Vec<f32>>,
}

impl<'a> Stack<'a> {
    #[must_use]
    pub fn new(shape: &'a Shape, layers: &[Dense], scale: f64, back_end: BackEnd) -> Stack<'a> {
        Stack { shape, layers: layers.iter().map(Layer::new).collect(), scale: scale as f32, back_end }
    }

    /// The length of a row of the first layer's inputs.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.layers[0].stride
    }

    #[must_use]
    pub fn zero_gradients(&self) -> StackGradients {
        let weights = self.layers.iter().map(|layer| vec![0.0; layer.outputs * layer.stride]);
        let biases = self.layers.iter().map(|layer| vec![0.0; layer.outputs]);
        StackGradients { weights: weights.collect(), biases: biases.collect() }
    }

    #[must_use]
    pub fn block(&self) -> StackBlock {
        let inputs = || self.layers.iter().map(|layer| AlignedVec::zeroed(BLOCK * layer.stride)).collect();
        let sums = || self.layers.iter().map(|layer| AlignedVec::zeroed(BLOCK * layer.columns())).collect();
        StackBlock { inputs: inputs(), sums: sums(), input_gradients: inputs(), sum_gradients: sums() }
    }

    /// Computes the outputs of the first rows of the block's first inputs, at most [`BLOCK`].
    pub fn forward(&self, block: &mut StackBlock, out: &mut [f32]) {
        let last = self.layers.len() - 1;
        let rows = out.len();
        for (index, layer) in self.layers.iter().enumerate() {
            let x = &block.inputs[index][..rows * layer.stride];
            if index == last {
                let dots =
                    Dots { x, weights: &layer.weights, start: layer.biases[0], out: &mut block.sums[index][..rows] };
                dots.run_on(self.back_end);
                continue;
            }
            let columns = layer.columns();
            let sums = &mut block.sums[index][..rows * columns];
            MatrixProduct {
                x,
                stride: layer.stride,
                summands: layer.inputs,
                matrix: &layer.transposed,
                start: Some(&layer.biases),
                out: sums,
                columns,
            }
            .run_on(self.back_end);
            let activation = self.shape.hidden_activation(index);
            let width = self.shape.hidden[index];
            for (to, at) in self.readers(index) {
                let stride = self.layers[to].stride;
                let each = block.inputs[to].chunks_exact_mut(stride).zip(block.sums[index].chunks_exact(columns));
                for (out, sums) in each.take(rows) {
                    activate(activation, &sums[..width], &mut out[at..], self.scale);
                }
            }
        }
        out.copy_from_slice(&block.sums[last][..rows]);
        if let Some((added, subtracted)) = self.shape.skip_outputs() {
            let columns = self.layers[0].columns();
            for (out, sums) in out.iter_mut().zip(block.sums[0].chunks_exact(columns)) {
                *out += sums[added] - subtracted.map_or(0.0, |output| sums[output]);
            }
        }
    }

    /// Computes the gradients of the first inputs and adds the layers' gradients to `total`, given the outputs'
    /// gradients, after [`Stack::forward`].
    pub fn backward(&self, block: &mut StackBlock, outputs: &[f32], total: &mut StackGradients) {
        let last = self.layers.len() - 1;
        let rows = outputs.len();
        block.sum_gradients[last][..rows].copy_from_slice(outputs);
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let columns = layer.columns();
            if index < last {
                let activation = self.shape.hidden_activation(index);
                let width = self.shape.hidden[index];
                block.sum_gradients[index][..rows * columns].fill(0.0);
                for (to, at) in self.readers(index) {
                    let stride = self.layers[to].stride;
                    let gradients = block.sum_gradients[index].chunks_exact_mut(columns);
                    let known = block.sums[index].chunks_exact(columns);
                    let from = block.input_gradients[to].chunks_exact(stride);
                    for ((out, sums), gradients) in gradients.zip(known).zip(from).take(rows) {
                        add_gradients(activation, &sums[..width], &gradients[at..], &mut out[..width], self.scale);
                    }
                }
                if let (0, Some((added, subtracted))) = (index, self.shape.skip_outputs()) {
                    for (out, gradient) in block.sum_gradients[index].chunks_exact_mut(columns).zip(outputs) {
                        out[added] += gradient;
                        if let Some(subtracted) = subtracted {
                            out[subtracted] -= gradient;
                        }
                    }
                }
            }
            let gradients = &block.sum_gradients[index][..rows * columns];
            MatrixProduct {
                x: gradients,
                stride: columns,
                summands: layer.outputs,
                matrix: &layer.weights,
                start: None,
                out: &mut block.input_gradients[index][..rows * layer.stride],
                columns: layer.stride,
            }
            .run_on(self.back_end);
            AddProducts {
                gradients,
                gradient_stride: columns,
                outputs: layer.outputs,
                x: &block.inputs[index][..rows * layer.stride],
                columns: layer.stride,
                sums: &mut total.weights[index],
            }
            .run_on(self.back_end);
            for row in gradients.chunks_exact(columns) {
                total.biases[index].iter_mut().zip(row).for_each(|(sum, gradient)| *sum += gradient);
            }
        }
    }

    /// The layers that read the activations of a hidden layer, and the first of their inputs that these are.
    fn readers(&self, hidden: usize) -> Vec<(usize, usize)> {
        let output = self.layers.len() - 1;
        let mut readers = Vec::new();
        if hidden + 1 < output || !self.shape.concatenated {
            readers.push((hidden + 1, 0));
        }
        if self.shape.concatenated {
            readers.push((output, self.shape.activation_widths()[1..=hidden].iter().sum()));
        }
        readers
    }

    /// Gradients without padding, weights before biases.
    #[must_use]
    pub fn compact(&self, gradients: &StackGradients) -> Vec<Vec<f32>> {
        let each = self.layers.iter().zip(&gradients.weights).zip(&gradients.biases);
        each.flat_map(|((layer, weights), biases)| {
            let rows = weights.chunks_exact(layer.stride).flat_map(|row| &row[..layer.inputs]);
            [rows.copied().collect(), biases.clone()]
        })
        .collect()
    }
}

/// The activations of a hidden layer's sums, as [`super::dense::activate`] computes them.
fn activate(activation: Activation, sums: &[f32], out: &mut [f32], scale: f32) {
    let (first, second) = out.split_at_mut(sums.len());
    let each = first.iter_mut().zip(sums);
    match activation {
        Activation::Relu => each.for_each(|(out, x)| *out = x.max(0.0)),
        Activation::Crelu | Activation::Pairwise => each.for_each(|(out, x)| *out = x.clamp(0.0, 1.0)),
        Activation::Screlu => each.for_each(|(out, x)| *out = x.clamp(0.0, 1.0).powi(2) * scale),
        Activation::Dual => {
            each.for_each(|(out, x)| *out = (x * x * scale).min(1.0));
            second.iter_mut().zip(sums).for_each(|(out, x)| *out = x.clamp(0.0, 1.0));
        }
    }
}

/// Adds the gradients of a hidden layer's sums, given the gradients of its activations. Like libtorch's, the gradient
/// passes at both ends of a clipped range.
fn add_gradients(activation: Activation, sums: &[f32], gradients: &[f32], out: &mut [f32], scale: f32) {
    let (first, second) = gradients.split_at(sums.len());
    let clipped = |x: f32, gradient: f32| if (0.0..=1.0).contains(&x) { gradient } else { 0.0 };
    let each = out.iter_mut().zip(sums).zip(first);
    match activation {
        Activation::Relu => each.for_each(|((out, x), g)| *out += if *x > 0.0 { *g } else { 0.0 }),
        Activation::Crelu | Activation::Pairwise => each.for_each(|((out, x), g)| *out += clipped(*x, *g)),
        Activation::Screlu => each.for_each(|((out, x), g)| *out += clipped(*x, 2.0 * scale * x * g)),
        Activation::Dual => {
            let square = |x: f32, g: f32| if x * x * scale <= 1.0 { 2.0 * scale * x * g } else { 0.0 };
            for (((out, x), of_square), of_clipped) in each.zip(second) {
                *out += square(*x, *of_square) + clipped(*x, *of_clipped);
            }
        }
    }
}
