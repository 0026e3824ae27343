//! Neuron activity of a network on real positions.

use std::path::Path;

use super::MeasureError;
use super::lines::{Line, ReadSummary, advance, fold_lines};
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::net::{Activation, NetFile};
use crate::record::{ActivityRecord, BucketActivity, LayerActivity};

/// Counts how often neurons are positive and saturated, in every layer but the output, over the positions of the first
/// `limit` games. Both perspectives' values of an L1 neuron count for that neuron. Values of relu are never saturated.
///
/// # Errors
/// When the network's feature set cannot be rebuilt or the data cannot be read.
pub fn activity(
    file: &NetFile,
    data: &Path,
    limit: Option<u64>,
) -> Result<(ActivityRecord, ReadSummary), MeasureError> {
    let set = file.origin.feature_set()?;
    let model = Model::new(&file.net);
    let shape = &file.net.shape;
    let one = file.net.scheme.crelu(i32::MAX);
    let evaluator = Evaluator::new(&set, &model, Strategy::EagerCached, BackEnd::best())?;

    let layer = |(index, width): (usize, &usize)| {
        let maximum = (shape.input_activation(index) != Activation::Relu).then_some(one);
        LayerCounts { maximum, outputs: 0, saturated: 0, positive: vec![0; *width] }
    };
    let bucket =
        || BucketCounts { positions: 0, layers: shape.activation_widths().iter().enumerate().map(layer).collect() };
    let empty = || (0..shape.buckets.count).map(|_| bucket()).collect::<Vec<_>>();
    let add = |buckets: &mut Vec<BucketCounts>, line: &Line| {
        let mut evaluator = evaluator.clone();
        line.for_each_position(|board, turn, played| {
            advance(&mut evaluator, board, played);
            let counts = &mut buckets[evaluator.bucket(turn)];
            counts.positions += 1;
            evaluator.observe(turn, |layer, values| counts.layers[layer].add(values));
        });
    };
    let merge = |a: Vec<BucketCounts>, b: Vec<BucketCounts>| a.into_iter().zip(&b).map(|(a, b)| a.plus(b)).collect();
    let (buckets, summary) = fold_lines(data, limit, empty, add, merge)?;
    let total = buckets.iter().fold(bucket(), BucketCounts::plus);
    let bucket_record = |(bucket, counts): (usize, &BucketCounts)| BucketActivity {
        bucket,
        positions: counts.positions,
        layers: counts.records(),
    };
    let record = ActivityRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        positions: total.positions,
        layers: total.records(),
        buckets: if buckets.len() > 1 { buckets.iter().enumerate().map(bucket_record).collect() } else { Vec::new() },
    };
    Ok((record, summary))
}

struct BucketCounts {
    positions: u64,
    layers: Vec<LayerCounts>,
}

impl BucketCounts {
    fn plus(mut self, other: &BucketCounts) -> BucketCounts {
        self.positions += other.positions;
        for (layer, more) in self.layers.iter_mut().zip(&other.layers) {
            layer.outputs += more.outputs;
            layer.saturated += more.saturated;
            layer.positive.iter_mut().zip(&more.positive).for_each(|(count, more)| *count += more);
        }
        self
    }

    fn records(&self) -> Vec<LayerActivity> {
        self.layers.iter().enumerate().map(|(index, layer)| layer.record(index + 1)).collect()
    }
}

struct LayerCounts {
    /// The saturated output; `None` if the activation has no maximum.
    maximum: Option<u8>,
    outputs: u64,
    saturated: u64,
    /// Positive outputs of each neuron.
    positive: Vec<u64>,
}

impl LayerCounts {
    fn add(&mut self, values: &[u8]) {
        self.outputs += values.len() as u64;
        self.saturated += values.iter().filter(|value| Some(**value) == self.maximum).count() as u64;
        self.positive.iter_mut().zip(values).for_each(|(count, value)| *count += u64::from(*value > 0));
    }

    fn record(&self, number: usize) -> LayerActivity {
        let share = |count: u64| count as f64 / self.outputs.max(1) as f64;
        LayerActivity {
            layer: format!("l{number}"),
            neurons: self.positive.len(),
            active: share(self.positive.iter().sum()),
            saturated: share(self.saturated),
            never_active: self.positive.iter().filter(|count| **count == 0).count(),
        }
    }
}
