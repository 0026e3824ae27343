//! The dense layers of every bucket as tensors.

use fsbench::net::{Activation, FloatNet, Scheme, Shape};
use tch::{TchError, Tensor};

/// The input of the dense layers, sorted by bucket.
pub struct DenseInput<'a> {
    /// [positions, 2 · width of an activated accumulator], side to move first.
    pub activations: &'a Tensor,
    /// [positions]; `None` without PSQT.
    pub psqt: Option<&'a Tensor>,
    /// Number of positions in each bucket.
    pub counts: &'a [usize],
}

/// Dense layers as tensors.
pub struct DenseLayers<'a> {
    shape: &'a Shape,
    stacks: Vec<Vec<(Tensor, Tensor)>>,
    /// Centipawns per output of 1.0.
    centipawns: f64,
    /// [`Scheme::product_scale`]
    scale: f64,
}

impl<'a> DenseLayers<'a> {
    /// Wraps layers that are tensors already: weights and biases, stack by stack.
    #[must_use]
    pub fn from_tensors(net: &'a FloatNet, layers: Vec<(Tensor, Tensor)>, scheme: &Scheme) -> DenseLayers<'a> {
        let mut layers = layers.into_iter();
        let stack = |_| layers.by_ref().take(net.shape.hidden.len() + 1).collect();
        DenseLayers {
            shape: &net.shape,
            stacks: (0..net.shape.buckets.count).map(stack).collect(),
            centipawns: scheme.float_centipawns(),
            scale: scheme.product_scale(),
        }
    }

    /// The outputs in centipawns: [positions], in the input's order.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn forward(&self, input: &DenseInput<'_>) -> Result<Tensor, TchError> {
        let mut start = 0;
        let mut outputs = Vec::with_capacity(self.stacks.len());
        for (stack, count) in self.stacks.iter().zip(input.counts) {
            if *count > 0 {
                outputs.push(self.forward_stack(stack, &input.activations.f_narrow(0, start, *count as i64)?)?);
                start += *count as i64;
            }
        }
        let out = if outputs.len() == 1 { outputs.remove(0) } else { Tensor::f_cat(&outputs, 0)? };
        let out = out.f_squeeze_dim(1)?;
        let out = input.psqt.map_or_else(|| Ok(out.shallow_clone()), |psqt| out.f_add(psqt))?;
        out.f_mul_scalar(self.centipawns)
    }

    /// The outputs of one bucket's layers: [positions, 1].
    fn forward_stack(&self, layers: &[(Tensor, Tensor)], input: &Tensor) -> Result<Tensor, TchError> {
        let mut values = input.shallow_clone();
        let mut skip = None;
        let mut all = Vec::new();
        for (index, (weights, biases)) in layers.iter().enumerate() {
            values = values.f_linear(weights, Some(biases))?;
            let Some(width) = self.shape.hidden.get(index).map(|width| *width as i64) else { break };
            if let (0, Some((added, subtracted))) = (index, self.shape.skip_outputs()) {
                let output = |output: usize| values.f_narrow(1, output as i64, 1);
                let added = output(added)?;
                skip = Some(match subtracted {
                    Some(subtracted) => added.f_sub(&output(subtracted)?)?,
                    None => added,
                });
                values = values.f_narrow(1, 0, width)?;
            }
            values = activate(self.shape.hidden_activation(index), &values, self.scale)?;
            if self.shape.concatenated {
                all.push(values.shallow_clone());
                if all.len() == self.shape.hidden.len() {
                    values = Tensor::f_cat(&all, 1)?;
                }
            }
        }
        skip.map_or_else(|| Ok(values.shallow_clone()), |skip| values.f_add(&skip))
    }
}

/// `sums`: [positions, neurons]. `scale`: [`Scheme::product_scale`].
///
/// # Errors
/// When libtorch fails.
pub fn activate(activation: Activation, sums: &Tensor, scale: f64) -> Result<Tensor, TchError> {
    let clipped = || sums.f_clamp(0.0, 1.0);
    match activation {
        Activation::Relu => sums.f_relu(),
        Activation::Crelu => clipped(),
        Activation::Screlu => clipped()?.f_square()?.f_mul_scalar(scale),
        Activation::Pairwise => {
            let halves = clipped()?.f_chunk(2, 1)?;
            halves[0].f_mul(&halves[1])?.f_mul_scalar(scale)
        }
        Activation::Dual => {
            let squares = sums.f_square()?.f_mul_scalar(scale)?.f_clamp_max(1.0)?;
            Tensor::f_cat(&[squares, clipped()?], 1)
        }
    }
}
