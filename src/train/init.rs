//! Where training begins: seeded uniform weights, independent of libtorch's generator.

use rand::RngExt;

use crate::net::{Dense, FloatNet, Shape};
use crate::units::Seed;

/// Active features a position that the feature transformer's scale is made for. The same for every set, so that rare
/// features do not start smaller than frequent ones.
const TYPICAL_ACTIVE: f32 = 32.0;

/// A fresh network. Accumulators start around the middle of the clipped ReLU's linear part.
#[must_use]
pub fn fresh(shape: &Shape, seed: Seed) -> FloatNet {
    let uniform = |name: &str, count: usize, bound: f32| {
        let mut rng = seed.stream(name, 0);
        (0..count).map(|_| rng.random_range(-bound..bound)).collect::<Vec<f32>>()
    };
    let dense = shape.dense().into_iter().enumerate().map(|(index, (inputs, outputs))| {
        let bound = 1.0 / (inputs as f32).sqrt();
        Dense {
            inputs,
            outputs,
            weights: uniform(&format!("init layers.{index}.weight"), inputs * outputs, bound),
            biases: uniform(&format!("init layers.{index}.bias"), outputs, bound),
        }
    });
    FloatNet {
        shape: shape.clone(),
        ft_weights: uniform("init ft.weight", shape.features as usize * shape.l1, 1.0 / TYPICAL_ACTIVE.sqrt()),
        ft_biases: vec![0.5; shape.l1],
        layers: dense.collect(),
    }
}

/// A network of the same shape, all zero: moments at the start.
#[must_use]
pub fn zeros(net: &FloatNet) -> FloatNet {
    let zero = |values: &[f32]| vec![0.0; values.len()];
    let dense = |layer: &Dense| Dense {
        inputs: layer.inputs,
        outputs: layer.outputs,
        weights: zero(&layer.weights),
        biases: zero(&layer.biases),
    };
    FloatNet {
        shape: net.shape.clone(),
        ft_weights: zero(&net.ft_weights),
        ft_biases: zero(&net.ft_biases),
        layers: net.layers.iter().map(dense).collect(),
    }
}
