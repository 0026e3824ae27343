//! Networks: shapes, quantisation schemes, file formats and a plain float forward pass.
//!
//! The trainer produces a [`FloatNet`], the engine runs a [`QuantNet`]; [`quantise()`] converts one to the other under
//! a [`Scheme`]. [`NetFile`] and the checkpoint functions store both as safetensors files. [`nnue`] reads and writes
//! Stockfish's files, [`bullet`] the trainer bullet's. [`load_quantised`] loads any of these but bullet's.

mod bucket_chooser;
pub mod bullet;
mod container;
mod dequantise;
mod direct_output;
mod error;
mod file;
mod float;
mod ft_permute;
mod integer;
mod load;
pub mod nnue;
mod other_kind;
mod quantise;
mod scheme;
mod shape;

pub use bucket_chooser::BucketChooser;
pub use error::NetError;
pub use file::{Checkpoint, NetFile, Origin, load_float, read_description, save_float};
pub use float::{Dense, FloatNet, forward};
pub use integer::{QuantDense, QuantNet, RawScore, forward_integer};
pub use load::{LoadOptions, LoadedNetwork, StoredPrecision, load, load_quantised};
pub use quantise::{on_grid, quantise};
pub use scheme::{AccumulatorScales, Scheme, WeightLimits, WeightType};
pub use shape::{Activation, BucketRule, OutputBuckets, Shape};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    pub(crate) fn shape(features: u32, l1: usize, hidden: &[usize]) -> Shape {
        Shape::plain(features, l1, hidden.to_vec())
    }

    /// Weights as in a trained network: small, within the scheme's limits, activations spread over [0, 1].
    pub(crate) fn random_net(shape: &Shape, seed: u64) -> FloatNet {
        let mut rng = Seed(seed).stream("random net", 0);
        let mut uniform =
            |count: usize, bound: f32| -> Vec<f32> { (0..count).map(|_| rng.random_range(-bound..bound)).collect() };
        let fill = |name: &str, dimensions: &[usize]| {
            let bound = match (name, dimensions) {
                ("ft.weight", _) => 0.25,
                (_, [_, inputs]) => (1.0 / (*inputs as f32).sqrt()).min(1.0),
                _ => 0.5,
            };
            Ok::<_, NetError>(uniform(dimensions.iter().product(), bound))
        };
        FloatNet::filled(shape, fill).expect("filled")
    }
}
