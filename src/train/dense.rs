//! The layers behind the accumulators, by libtorch.

use tch::{Kind, TchError, Tensor};

use crate::net::Dense;

/// Dense layers as tensors.
pub struct Head {
    layers: Vec<(Tensor, Tensor)>,
    /// Centipawns an output of 1.0.
    nnue2score: f64,
}

impl Head {
    /// Copies the layers. `train`: they collect gradients.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn new(layers: &[Dense], nnue2score: f64, train: bool) -> Result<Head, TchError> {
        let layer = |layer: &Dense| {
            let weights = Tensor::f_from_slice(&layer.weights)?;
            let weights = weights.f_view([layer.outputs as i64, layer.inputs as i64])?.set_requires_grad(train);
            Ok((weights, Tensor::f_from_slice(&layer.biases)?.set_requires_grad(train)))
        };
        Ok(Head { layers: layers.iter().map(layer).collect::<Result<_, TchError>>()?, nnue2score })
    }

    /// `activations`: [positions, 2·l1], the clipped accumulators, side to move first. Gives centipawns: [positions].
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn forward(&self, activations: &Tensor) -> Result<Tensor, TchError> {
        let mut values = activations.shallow_clone();
        for (index, (weights, biases)) in self.layers.iter().enumerate() {
            if index > 0 {
                values = values.f_clamp(0.0, 1.0)?;
            }
            values = values.f_linear(weights, Some(biases))?;
        }
        values.f_squeeze_dim(1)?.f_mul_scalar(self.nnue2score)
    }

    /// The gradients, shaped as the layers.
    ///
    /// # Errors
    /// When libtorch fails, or no backward pass went before.
    pub fn gradients(&self) -> Result<Vec<[Vec<f32>; 2]>, TchError> {
        let layer = |(weights, biases): &(Tensor, Tensor)| Ok([gradient(weights)?, gradient(biases)?]);
        self.layers.iter().map(layer).collect()
    }
}

/// A leaf's gradient.
///
/// # Errors
/// When libtorch fails, or no backward pass reached the leaf.
pub fn gradient(leaf: &Tensor) -> Result<Vec<f32>, TchError> {
    let mut out = vec![0.0; leaf.numel()];
    copy_gradient(leaf, &mut out)?;
    Ok(out)
}

/// As [`gradient`], into `out`, which has as many elements as the leaf.
///
/// # Errors
/// When libtorch fails, or no backward pass reached the leaf.
pub fn copy_gradient(leaf: &Tensor, out: &mut [f32]) -> Result<(), TchError> {
    let gradient = leaf.f_grad()?.f_to_kind(Kind::Float)?.f_contiguous()?;
    gradient.f_copy_data(out, out.len())
}
