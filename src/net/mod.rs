//! Networks: shapes, quantisation schemes, file formats and a plain float forward pass.
//!
//! A [`FloatNet`] is what the trainer leaves, a [`QuantNet`] what the engine runs; [`quantise`] leads from one to the
//! other under a [`Scheme`]. [`NetFile`] and the checkpoint functions keep both as safetensors files.

mod container;
mod error;
mod file;
mod float;
mod quant;
mod scheme;

pub use error::NetError;
pub use file::{Checkpoint, NetFile, Origin, load_float, save_float};
pub use float::{Dense, FloatNet, forward};
pub use quant::{QuantDense, QuantNet, forward_integer, on_grid, quantise};
pub use scheme::{Limits, Scheme};

use std::fmt;

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

impl Shape {
    const MAX_WIDTH: usize = 1 << 16;

    /// (inputs, outputs) of every dense layer, the first hidden to the output.
    #[must_use]
    pub fn dense(&self) -> Vec<(usize, usize)> {
        let widths = std::iter::once(2 * self.l1).chain(self.hidden.iter().copied());
        let outputs = self.hidden.iter().copied().chain(std::iter::once(1));
        widths.zip(outputs).collect()
    }

    /// # Errors
    /// When there are no features or neurons, more than two hidden layers, or a width beyond 65,536.
    pub fn validate(&self) -> Result<(), NetError> {
        let wrong = |why: String| Err(NetError::Shape(why));
        let layer = |width: usize| (1..=Self::MAX_WIDTH).contains(&width);
        if self.features == 0 {
            return wrong("a network needs at least one feature".into());
        }
        if !layer(self.l1) {
            return wrong(format!("an accumulator is 1 to {} wide, not {}", Self::MAX_WIDTH, self.l1));
        }
        if self.hidden.len() > 2 {
            return wrong(format!("at most two hidden layers, not {}", self.hidden.len()));
        }
        match self.hidden.iter().find(|width| !layer(**width)) {
            Some(width) => wrong(format!("a hidden layer is 1 to {} wide, not {width}", Self::MAX_WIDTH)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Shape {
    /// As `(768 → 256) × 2 → 32 → 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} → {}) × 2", self.features, self.l1)?;
        self.hidden.iter().try_for_each(|width| write!(f, " → {width}"))?;
        f.write_str(" → 1")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    pub(crate) fn shape(features: u32, l1: usize, hidden: &[usize]) -> Shape {
        Shape { features, l1, hidden: hidden.to_vec(), activation: Activation::Crelu }
    }

    /// Weights as training leaves them: small, within the scheme's limits, activations spread over [0, 1].
    pub(crate) fn random_net(shape: &Shape, seed: u64) -> FloatNet {
        let mut rng = Seed(seed).stream("random net", 0);
        let mut uniform =
            |count: usize, bound: f32| -> Vec<f32> { (0..count).map(|_| rng.random_range(-bound..bound)).collect() };
        let ft_weights = uniform(shape.features as usize * shape.l1, 0.25);
        let ft_biases = uniform(shape.l1, 0.5);
        let layer = |(inputs, outputs): (usize, usize)| {
            let bound = (1.0 / (inputs as f32).sqrt()).min(1.0);
            Dense { inputs, outputs, weights: uniform(inputs * outputs, bound), biases: uniform(outputs, bound) }
        };
        let layers = shape.dense().into_iter().map(layer).collect();
        FloatNet { shape: shape.clone(), ft_weights, ft_biases, layers }
    }

    #[test]
    fn shapes_are_checked() {
        let check = |shape: Shape, expected: &str| {
            assert_eq!(shape.validate().expect_err("wrong").to_string(), expected);
        };
        assert!(shape(768, 256, &[32, 32]).validate().is_ok());
        assert_eq!(shape(768, 256, &[32, 16]).dense(), [(512, 32), (32, 16), (16, 1)]);
        assert_eq!(shape(768, 256, &[]).dense(), [(512, 1)]);
        assert_eq!(shape(768, 256, &[32, 16]).to_string(), "(768 → 256) × 2 → 32 → 16 → 1");
        check(shape(0, 256, &[]), "the network's shape is wrong: a network needs at least one feature");
        check(shape(1, 0, &[]), "the network's shape is wrong: an accumulator is 1 to 65536 wide, not 0");
        check(shape(1, 8, &[1, 1, 1]), "the network's shape is wrong: at most two hidden layers, not 3");
        check(shape(1, 8, &[1, 0]), "the network's shape is wrong: a hidden layer is 1 to 65536 wide, not 0");
    }
}
