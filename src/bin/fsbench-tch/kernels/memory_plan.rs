//! How much of a GPU's memory a run takes, computed from the arrays that the trainer allocates.

use super::KernelLayout;
use super::card::mib;
use crate::kernel_trainer::active_columns;

/// What a run takes beside the arrays counted here: libtorch's products of matrices, the kernels, what fills up blocks.
/// CUDA's own memory is taken before the free memory is asked for.
const OVERHEAD: usize = 192 << 20;
const FLOAT: usize = 4;

/// What the plan needs to know of a run.
#[derive(Copy, Clone, Debug)]
pub struct PlannedRun {
    pub batch_size: usize,
    /// Of all batches of a step.
    pub positions_per_sample: usize,
    /// Most active features of one side.
    pub max_active: usize,
    /// Virtual rows; 0 without factors.
    pub factor_rows: usize,
    pub lookahead: bool,
}

/// The memory of a run.
#[derive(Copy, Clone, Debug)]
pub struct MemoryPlan {
    batch_size: usize,
    /// Bytes for any batch size.
    fixed: usize,
    /// Bytes per sample of a batch.
    per_sample: usize,
}

impl MemoryPlan {
    #[must_use]
    pub fn new(layout: &KernelLayout, run: &PlannedRun) -> MemoryPlan {
        // Values, two moments and the gradient; perhaps slow weights.
        let arrays = 4 + usize::from(run.lookahead);
        let row = layout.stride * FLOAT;
        let mut fixed = layout.features * row * (arrays - 1) + active_columns(layout.features) * row + 4 * row;
        if run.factor_rows > 0 {
            // The merged rows are a copy.
            fixed += layout.features * row + run.factor_rows * row * arrays;
        }
        fixed += layout.layers.iter().map(|layer| layer.outputs * layer.stride * FLOAT * (arrays + 1)).sum::<usize>();
        MemoryPlan {
            batch_size: run.batch_size,
            fixed: fixed + OVERHEAD,
            per_sample: run.positions_per_sample * per_position(layout, run.max_active),
        }
    }

    /// Bytes of a batch size.
    #[must_use]
    pub fn bytes(&self, batch_size: usize) -> usize {
        self.fixed + batch_size * self.per_sample
    }

    /// # Errors
    /// When `free` bytes are too few: how many are needed, and which batch size would fit.
    pub fn check(&self, free: usize) -> Result<(), String> {
        let needed = self.bytes(self.batch_size);
        if needed <= free {
            return Ok(());
        }
        let fits = free.saturating_sub(self.fixed) / self.per_sample;
        let remedy = match fits {
            0 => "no batch size fits; train a smaller network".into(),
            // A power of two, as batches usually are.
            fits => format!("--batch-size {} would fit", 1usize << fits.ilog2()),
        };
        Err(format!("the run needs {} and {} are free ({remedy})", mib(needed), mib(free)))
    }
}

/// Bytes per position of a batch, as `kernel_trainer/pass.rs` allocates them.
fn per_position(layout: &KernelLayout, max_active: usize) -> usize {
    let indices = 2 * max_active * FLOAT;
    // Two steps' batches: features, offsets, pieces and targets.
    let batches = 2 * (indices + 3 * FLOAT + 1);
    let activations = layout.out_stride * FLOAT;
    let sums = layout.sums_stride.map_or(0, |stride| 2 * stride * FLOAT);
    // The first layer's inputs are the activations; its sums are as large as their gradients.
    let mut layers = 2 * layout.layers[0].outputs * FLOAT;
    layers += layout.layers[1..].iter().map(|layer| (layer.outputs + layer.stride) * FLOAT).sum::<usize>();
    let table = if layout.by_product {
        // Two parts of the gradients and the rows of active features, in bfloat16.
        2 * 2 * (2 * layout.stride + active_columns(layout.features))
    } else {
        2 * layout.stride * FLOAT + 2 * indices
    };
    batches + 2 * activations + sums + layers + FLOAT + table
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "tests")]
mod tests {
    use fsbench::features::FeatureSet;
    use fsbench::net::{Activation, Shape};
    use serde_json::Value;

    use super::*;

    /// What a batch of 65,536 takes beyond one of 4,096 on the measured card is what the plan says, within a third.
    #[test]
    fn the_plan_is_what_was_measured() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results/gpu/nvidia-h100-80gb-hbm3.json");
        let measured: Value = serde_json::from_slice(&std::fs::read(path).expect("committed")).expect("JSON");
        let mebibytes = |network: &str, batch: u64| {
            let rows = measured["rates"].as_array().expect("rows");
            let row =
                rows.iter().find(|row| row["network"] == network && row["batch"] == batch && row["device"] == "cuda");
            row.and_then(|row| row["gpu_memory_mib"].as_f64()).expect("measured")
        };
        let check = |network: &str, set: &str, hidden: Vec<usize>, factors: bool| {
            let set = FeatureSet::resolve(set).expect("a set");
            let shape = Shape { activation: Activation::Screlu, ..Shape::plain(set.num_features(), 256, hidden) };
            let factor_rows = if factors { 704 } else { 0 };
            let run = PlannedRun {
                batch_size: 16384,
                positions_per_sample: 1,
                max_active: set.max_active(),
                factor_rows,
                lookahead: false,
            };
            let plan = MemoryPlan::new(&KernelLayout::new(&shape), &run);
            let planned = (plan.bytes(65536) - plan.bytes(4096)) as f64 / f64::from(1 << 20);
            let found = mebibytes(network, 65536) - mebibytes(network, 4096);
            assert!((planned / found - 1.0).abs() < 0.34, "{network}: planned {planned}, measured {found}");
        };
        check("piece 256→1", "piece", vec![], false);
        check("piece 256→32→1", "piece", vec![32], false);
        check("half-ka-v2-hm 256→32→1", "half-ka-v2-hm", vec![32], true);
    }
}
