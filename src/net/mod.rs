//! Networks: shapes, quantisation schemes, file formats and a plain float forward pass.

use serde::{Deserialize, Serialize};

/// Function applied to the accumulators and hidden layers.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// clamp(x, 0, 1)
    #[default]
    Crelu,
}

/// `(features → l1) × 2 → hidden… → 1`, as in DESIGN's network grammar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Inputs a perspective.
    pub features: u32,
    /// Accumulator width a perspective.
    pub l1: usize,
    /// Widths of the hidden layers, first to last; none to two.
    pub hidden: Vec<usize>,
    #[serde(default)]
    pub activation: Activation,
}

/// A fully connected layer: `weights[o * inputs + i]`, `biases[o]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<f32>,
    pub biases: Vec<f32>,
}

/// The trained float network. `ft_weights[feature * l1 + neuron]`; `layers` from the first hidden to the output.
/// The first dense layer reads the side to move's accumulator, then the other's.
#[derive(Clone, Debug, PartialEq)]
pub struct FloatNet {
    pub shape: Shape,
    pub ft_weights: Vec<f32>,
    pub ft_biases: Vec<f32>,
    pub layers: Vec<Dense>,
}
