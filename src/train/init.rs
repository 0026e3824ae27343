//! Where training begins: seeded uniform weights, independent of libtorch's generator.

use rand::RngExt;

use crate::net::{Dense, FloatNet, Shape};
use crate::units::Seed;

/// Bound of the feature transformer's weights. Small, so that a feature the data seldom show adds little noise; the dense
/// layers' weights already tell the neurons apart.
const FT_BOUND: f32 = 0.005;
/// Inside the clipped ReLU's linear part, nearer to its sparse end.
const FT_BIAS: f32 = 0.1;

/// A fresh network.
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
        ft_weights: uniform("init ft.weight", shape.features as usize * shape.l1, FT_BOUND),
        ft_biases: vec![FT_BIAS; shape.l1],
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
