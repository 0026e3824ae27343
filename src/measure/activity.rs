//! How busy a network's neurons are on real positions.

use std::path::Path;

use super::MeasureError;
use super::lines::{Line, ReadSummary, fold, follow};
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::net::{Activation, NetFile};
use crate::record::{ActivityRecord, BucketActivity, LayerActivity};

/// Activity of every layer but the output, over the positions of the data's first `limit` games. `l1` counts both
/// perspectives' accumulators; an L1 neuron is one neuron, whichever perspective it looks from. The values of relu are
/// never saturated.
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
    let (shape, one) = (&file.net.shape, file.net.scheme.crelu(i32::MAX));
    let evaluator = Evaluator::new(&set, &model, Strategy::EagerCached, BackEnd::best())?;

    let layer = |(index, width): (usize, &usize)| {
        let full = (shape.input_activation(index) != Activation::Relu).then_some(one);
        Layer { full, outputs: 0, saturated: 0, positive: vec![0; *width] }
    };
    let bucket = || Totals { positions: 0, layers: shape.activation_widths().iter().enumerate().map(layer).collect() };
    let empty = || (0..shape.buckets.count).map(|_| bucket()).collect::<Vec<_>>();
    let work = |buckets: &mut Vec<Totals>, line: &Line| {
        let mut evaluator = evaluator.clone();
        line.positions(|board, turn, step| {
            follow(&mut evaluator, board, step);
            let totals = &mut buckets[evaluator.bucket()];
            totals.positions += 1;
            evaluator.observe(turn, |layer, values| totals.layers[layer].add(values));
        });
    };
    let merge = |a: Vec<Totals>, b: Vec<Totals>| a.into_iter().zip(&b).map(|(a, b)| a.plus(b)).collect();
    let (totals, reading) = fold(data, limit, empty, work, merge)?;
    let whole = totals.iter().fold(bucket(), Totals::plus);
    let of_bucket = |(bucket, totals): (usize, &Totals)| BucketActivity {
        bucket,
        positions: totals.positions,
        layers: totals.records(),
    };
    let record = ActivityRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        positions: whole.positions,
        layers: whole.records(),
        buckets: if totals.len() > 1 { totals.iter().enumerate().map(of_bucket).collect() } else { Vec::new() },
    };
    Ok((record, reading))
}

struct Totals {
    positions: u64,
    layers: Vec<Layer>,
}

impl Totals {
    fn plus(mut self, other: &Totals) -> Totals {
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

struct Layer {
    /// A saturated output.
    full: Option<u8>,
    outputs: u64,
    saturated: u64,
    /// How often each neuron was positive.
    positive: Vec<u64>,
}

impl Layer {
    fn add(&mut self, values: &[u8]) {
        self.outputs += values.len() as u64;
        self.saturated += values.iter().filter(|value| Some(**value) == self.full).count() as u64;
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
