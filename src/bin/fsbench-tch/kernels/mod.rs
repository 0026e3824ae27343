//! The kernels of a training step on a GPU, `kernels.cu`, compiled at run time for one shape of network.
#![allow(unsafe_code, reason = "kernels take pointers")]

pub mod card;
pub mod cuda;
pub mod cuda_streams;
pub mod emulated;
pub mod emulated_streams;
pub mod memory_plan;
pub mod streams;

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;

use fsbench::net::{Activation, BucketRule, Scheme, Shape};
use fsbench::train::TrainError;

/// Features up to which a product of matrices is the faster way to the table's gradient
/// (`results/gpu/kernels/README.md`).
const MOST_BY_PRODUCT: u32 = 1536;

/// The whole source, as one file.
#[must_use]
pub fn source() -> String {
    include_str!("kernels.cu").replace("#include \"shape.h\"", include_str!("shape.h"))
}

/// Kernels that are compiled for one shape.
pub trait Kernels {
    /// Starts a kernel. Blocks and grids have the dimensions x and y.
    ///
    /// # Errors
    /// When the device refuses.
    ///
    /// # Safety
    /// `arguments` point to values of the types that the kernel takes. Pointers among these values point to memory of
    /// the device, as large as the kernel says, which stays until the kernel has run.
    unsafe fn launch(
        &self,
        kernel: &CStr,
        grid: [usize; 2],
        block: [usize; 2],
        arguments: &[Argument<'_>],
    ) -> Result<(), TrainError>;

    /// How many blocks the device runs at once, apart from several on one multiprocessor.
    fn multiprocessors(&self) -> usize;
}

/// A kernel's argument: the place of a value, which it borrows.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct Argument<'a>(*mut c_void, PhantomData<&'a ()>);

/// A kernel's argument.
pub fn argument<T>(value: &T) -> Argument<'_> {
    Argument(std::ptr::from_ref(value).cast_mut().cast(), PhantomData)
}

/// Arguments as the driver takes them.
fn places(arguments: &[Argument<'_>]) -> Vec<*mut c_void> {
    arguments.iter().map(|argument| argument.0).collect()
}

/// A dense layer of all stacks: [outputs, stride]. After the inputs, a row has the bias, then zeros.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DenseLayout {
    /// Of all stacks, stack by stack.
    pub outputs: usize,
    pub inputs: usize,
    pub stride: usize,
}

/// The sizes of a network's arrays as the kernels take them.
#[derive(Clone, Debug)]
pub struct KernelLayout {
    pub features: usize,
    /// Of the table's rows.
    pub stride: usize,
    /// Activations of an accumulator.
    pub width: usize,
    /// Of the activations of both accumulators, with a one.
    pub out_stride: usize,
    /// Of an accumulator's sums, if they are kept.
    pub sums_stride: Option<usize>,
    pub buckets: usize,
    pub layers: Vec<DenseLayout>,
    /// Whether the table's gradient is a product of matrices, else a sum by feature.
    pub by_product: bool,
}

impl KernelLayout {
    #[must_use]
    pub fn new(shape: &Shape) -> KernelLayout {
        let width = shape.activation.outputs(shape.l1);
        let out_stride = (2 * width + 1).next_multiple_of(8);
        let buckets = shape.buckets.count;
        let layers = shape.layer_sizes().into_iter().enumerate().map(|(index, (inputs, outputs))| {
            let stride = if index == 0 { out_stride } else { (inputs + 1).next_multiple_of(4) };
            DenseLayout { outputs: buckets * outputs, inputs, stride }
        });
        KernelLayout {
            features: shape.features as usize,
            stride: shape.row_len().next_multiple_of(4),
            width,
            out_stride,
            sums_stride: (shape.activation == Activation::Pairwise).then(|| 2 * width.next_multiple_of(4)),
            buckets,
            layers: layers.collect(),
            by_product: shape.features <= MOST_BY_PRODUCT,
        }
    }
}

/// The macros of shape.h.
#[must_use]
pub fn macros(shape: &Shape, scheme: &Scheme) -> Vec<(&'static str, String)> {
    let layout = KernelLayout::new(shape);
    let activation = |activation: Activation| {
        let number = match activation {
            Activation::Relu => 0,
            Activation::Crelu => 1,
            Activation::Screlu => 2,
            Activation::Pairwise => 3,
            Activation::Dual => 4,
        };
        number.to_string()
    };
    let float = |value: f64| format!("{:e}f", value as f32);
    let hidden = |index: usize| shape.hidden.get(index).copied().unwrap_or(0).to_string();
    let (added, subtracted) = match shape.skip_outputs() {
        None => (-1, -1),
        Some((added, None)) => (added as i64, -1),
        Some((added, Some(subtracted))) => (added as i64, subtracted as i64),
    };
    let rule = match shape.buckets.rule {
        BucketRule::Stockfish => 0,
        BucketRule::Cpw => 1,
        BucketRule::Expression(_) => 2,
    };
    vec![
        ("L1", shape.l1.to_string()),
        ("STRIDE", layout.stride.to_string()),
        ("WIDTH", layout.width.to_string()),
        ("OUT_STRIDE", layout.out_stride.to_string()),
        ("ACTIVATION", activation(shape.activation)),
        ("SUM_SCALE", float(scheme.accumulator_product_scale())),
        ("PRODUCT_SCALE", float(scheme.product_scale())),
        ("PSQT", u8::from(shape.psqt).to_string()),
        ("BUCKETS", layout.buckets.to_string()),
        ("BUCKET_RULE", rule.to_string()),
        ("HIDDEN", shape.hidden.len().to_string()),
        ("H1", hidden(0)),
        ("H2", hidden(1)),
        ("OUTPUTS_1", (layout.layers[0].outputs / layout.buckets).to_string()),
        ("HIDDEN_ACTIVATION_1", activation(shape.hidden_activation(0))),
        ("HIDDEN_ACTIVATION_2", activation(shape.hidden_activation(1))),
        ("SKIP_ADDED", added.to_string()),
        ("SKIP_SUBTRACTED", subtracted.to_string()),
        ("CONCATENATED", u8::from(shape.concatenated).to_string()),
        ("HALF_ROWS", "0".into()),
    ]
}

#[cfg(test)]
mod tests {
    use fsbench::net::OutputBuckets;

    use super::*;

    pub fn shape_with_every_option() -> Shape {
        Shape {
            activation: Activation::Pairwise,
            hidden_activation: Activation::Dual,
            skip: true,
            psqt: true,
            buckets: OutputBuckets { count: 8, ..OutputBuckets::default() },
            ..Shape::plain(768, 32, vec![8, 4])
        }
    }
}
