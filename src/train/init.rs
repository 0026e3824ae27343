//! Initial weights: uniform and seeded.

use rand::RngExt;

use crate::net::{FloatNet, Shape};
use crate::units::Seed;

/// Bound of the feature transformer's weights. It is small, so that rare features add little noise; the dense layers'
/// weights suffice to make the neurons differ.
const FT_BOUND: f32 = 0.005;
/// In the clipped ReLU's linear range, near its lower end.
const FT_BIAS: f32 = 0.1;

/// A network with random weights. PSQT values are zero.
#[must_use]
pub fn random_network(shape: &Shape, seed: Seed) -> FloatNet {
    let uniform = |name: &str, count: usize, bound: f32| {
        let mut rng = seed.stream(&format!("init {name}"), 0);
        (0..count).map(|_| rng.random_range(-bound..bound)).collect::<Vec<f32>>()
    };
    let ft = uniform("ft.weight", shape.features as usize * shape.l1, FT_BOUND);
    let mut net = FloatNet::zeros(shape);
    let rows = net.ft_weights.chunks_exact_mut(shape.row_len()).zip(ft.chunks_exact(shape.l1));
    rows.for_each(|(row, neurons)| row[..shape.l1].copy_from_slice(neurons));
    net.ft_biases.fill(FT_BIAS);
    for (bucket, stack) in net.stacks.iter_mut().enumerate() {
        for (index, layer) in stack.iter_mut().enumerate() {
            let name = shape.layer_name(bucket, index);
            let bound = 1.0 / (layer.inputs as f32).sqrt();
            layer.weights = uniform(&format!("{name}.weight"), layer.weights.len(), bound);
            layer.biases = uniform(&format!("{name}.bias"), layer.biases.len(), bound);
        }
    }
    net
}
