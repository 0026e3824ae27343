//! A shard: some positions of a batch, computed forward and backward on one thread.

use std::ops::Range;

use tch::{TchError, Tensor};

use super::accumulators::{Accumulators, saturation};
use super::activity::Activity;
use super::batch::{Batch, Labels};
use super::dense::{DenseInput, DenseLayers};
use super::loss::{Loss, Losses, total};
use super::memory::with_values;
use super::model::{SampleLosses, Sums};
use super::{TrainError, threads};
use crate::net::{Dense, FloatNet, OutputBuckets, Scheme};

/// Positions per shard, at most. The value affects a run's result: it decides in which order sums are rounded.
const SHARD_POSITIONS: usize = 1024;

/// The input that all shards of a step share.
#[derive(Copy, Clone)]
pub struct ShardPass<'a> {
    pub net: &'a FloatNet,
    /// The network's dense layers, rounded to the scheme's grid.
    pub stacks: &'a [Vec<Dense>],
    pub scheme: &'a Scheme,
    pub loss: &'a Loss,
    /// [`super::Optimisation::sparsity`]
    pub sparsity: f64,
}

/// The result of a shard: its losses and gradients, except for those of the feature transformer's weights.
pub struct ShardGradients {
    pub sums: Sums,
    pub ft_biases: Vec<f32>,
    /// Gradients of every bucket's layers, weights before biases.
    pub layers: Vec<Vec<f32>>,
}

impl ShardGradients {
    /// Adds another shard's gradients. The sums of losses stay those of this shard.
    #[must_use]
    pub fn plus(mut self, other: &ShardGradients) -> ShardGradients {
        let add = |sum: &mut [f32], more: &[f32]| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.ft_biases, &other.ft_biases);
        self.layers.iter_mut().zip(&other.layers).for_each(|(sum, more)| add(sum, more));
        self
    }
}

/// The range of samples of each shard of a batch.
pub fn shards(batch: &Batch<'_>) -> impl Iterator<Item = Range<usize>> {
    let (per_shard, total) = (SHARD_POSITIONS / batch.positions_per_sample(), batch.samples);
    (0..total.div_ceil(per_shard)).map(move |shard| shard * per_shard..((shard + 1) * per_shard).min(total))
}

/// A shard's positions, sorted by bucket.
pub struct BucketOrder {
    /// Indices in the batch.
    pub positions: Vec<u32>,
    /// The bucket of each position.
    pub buckets: Vec<u8>,
    /// Number of positions in each bucket.
    pub counts: Vec<usize>,
    /// The index of each position in the sorted order; `None` if the order is unchanged.
    sorted_indices: Option<Vec<i64>>,
}

impl BucketOrder {
    #[must_use]
    pub fn new(batch: &Batch<'_>, samples: &Range<usize>, buckets: OutputBuckets) -> BucketOrder {
        let each = batch.positions_per_sample();
        let range = samples.start * each..samples.end * each;
        let mut positions: Vec<u32> = range.clone().map(|position| position as u32).collect();
        if buckets.count == 1 {
            let count = positions.len();
            return BucketOrder { positions, buckets: vec![0; count], counts: vec![count], sorted_indices: None };
        }
        let bucket = |position: &u32| buckets.of(usize::from(batch.piece_counts[*position as usize])) as u8;
        positions.sort_by_key(bucket);
        let mut counts = vec![0; buckets.count];
        let mut sorted_indices = vec![0; positions.len()];
        let sorted: Vec<u8> = positions.iter().map(bucket).collect();
        for (index, (position, bucket)) in positions.iter().zip(&sorted).enumerate() {
            counts[*bucket as usize] += 1;
            sorted_indices[*position as usize - range.start] = index as i64;
        }
        BucketOrder { positions, buckets: sorted, counts, sorted_indices: Some(sorted_indices) }
    }

    /// Brings outputs from the sorted order into the batch's.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn restore(&self, out: Tensor) -> Result<Tensor, TchError> {
        match &self.sorted_indices {
            None => Ok(out),
            Some(indices) => out.f_index_select(0, &Tensor::f_from_slice(indices)?.f_to_device(out.device())?),
        }
    }
}

impl ShardPass<'_> {
    /// The losses of some samples, summed and each, and the neurons' activity.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn evaluate(
        self,
        batch: &Batch<'_>,
        samples: Range<usize>,
    ) -> Result<(Sums, SampleLosses, Activity), TrainError> {
        threads::use_one_thread();
        let order = BucketOrder::new(batch, &samples, self.net.shape.buckets);
        let accumulators = Accumulators::compute(self.net, self.scheme, batch.active, &order.positions)?;
        let activations = accumulators.activations();
        let psqt = accumulators.psqt(&order.buckets);
        let psqt = if psqt.is_empty() { None } else { Some(Tensor::f_from_slice(&psqt)?) };
        let (activation, counts) = (activations.tensor(false), &order.counts[..]);
        let dense = DenseLayers::new(self.net, self.stacks, self.scheme, false)?;
        let out = dense.forward(&DenseInput { activations: &activation, psqt: psqt.as_ref(), counts })?;
        let labels = batch.labels.slice(samples.clone());
        let (sums, losses) = losses(self.loss, &order.restore(out)?, labels, samples.len())?;
        let saturation = saturation(self.net.shape.activation, self.scheme);
        Ok((sums, losses.copied()?, Activity::count(activations, accumulators.width(), saturation)))
    }

    /// These samples' share of the gradients of the batch's [`minimised_loss`]. The gradients of their accumulators,
    /// [positions, 2, row], are written to `gradients`.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn train(
        self,
        batch: &Batch<'_>,
        weight: f64,
        samples: Range<usize>,
        gradients: &mut [f32],
    ) -> Result<ShardGradients, TrainError> {
        threads::use_one_thread();
        let order = BucketOrder::new(batch, &samples, self.net.shape.buckets);
        let accumulators = Accumulators::compute(self.net, self.scheme, batch.active, &order.positions)?;
        let activations = accumulators.activations().tensor(true);
        let psqt = accumulators.psqt(&order.buckets);
        let psqt = if psqt.is_empty() { None } else { Some(Tensor::f_from_slice(&psqt)?.set_requires_grad(true)) };
        let dense = DenseLayers::new(self.net, self.stacks, self.scheme, true)?;
        let out =
            dense.forward(&DenseInput { activations: &activations, psqt: psqt.as_ref(), counts: &order.counts })?;
        let labels = batch.labels.slice(samples.clone());
        let (sums, losses) = losses(self.loss, &order.restore(out)?, labels, samples.len())?;
        minimised_loss(&losses.each, &activations, self.sparsity, batch, weight)?.f_backward()?;

        let psqt = psqt.map(|psqt| psqt.f_grad().and_then(Vec::<f32>::try_from)).transpose()?;
        let (row, width) = (self.net.shape.row_len(), accumulators.width());
        let first = samples.start * batch.positions_per_sample();
        with_values(&activations.f_grad()?, |values| {
            for (index, (position, gradient)) in order.positions.iter().zip(values.chunks_exact(2 * width)).enumerate()
            {
                let out = &mut gradients[(*position as usize - first) * 2 * row..][..2 * row];
                let psqt = psqt.as_ref().map(|psqt| (order.buckets[index], psqt[index]));
                accumulators.backward(index, gradient, psqt, out);
            }
        })?;
        let mut ft_biases = vec![0.0; self.net.shape.l1];
        for accumulator in gradients.chunks_exact(row) {
            ft_biases.iter_mut().zip(accumulator).for_each(|(sum, value)| *sum += value);
        }
        Ok(ShardGradients { sums, ft_biases, layers: dense.gradients()? })
    }
}

/// Some samples' share of the loss that is minimised: `weight` times the sum of the batch's mean loss and `sparsity`
/// times its mean activation. `losses` are those of the samples and `activations` those of their positions, [positions,
/// 2 · width].
///
/// # Errors
/// When libtorch fails.
pub fn minimised_loss(
    losses: &Tensor,
    activations: &Tensor,
    sparsity: f64,
    batch: &Batch<'_>,
    weight: f64,
) -> Result<Tensor, TchError> {
    let loss = losses.f_sum(None)?.f_mul_scalar(weight / batch.samples as f64)?;
    if sparsity == 0.0 {
        return Ok(loss);
    }
    let values = batch.positions() as f64 * activations.size2()?.1 as f64;
    loss.f_add(&activations.f_sum(None)?.f_mul_scalar(weight * sparsity / values)?)
}

/// The losses of some samples: their sums, and each single one.
///
/// # Errors
/// When libtorch fails.
pub fn losses(loss: &Loss, out: &Tensor, labels: Labels<'_>, samples: usize) -> Result<(Sums, Losses), TrainError> {
    let losses = loss.of(out, labels)?;
    let preferred = match &losses.preferred {
        Some(preferred) => total(preferred)? as u64,
        None => 0,
    };
    Ok((Sums { samples: samples as u64, loss: total(&losses.each.f_detach()?)?, preferred }, losses))
}
