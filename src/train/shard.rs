//! A shard: some positions of a batch, computed forward and backward on one thread, group by group.

use std::ops::Range;

use tch::{TchError, Tensor};

use super::TrainError;
use super::accumulators::{Activate, Differentiate, Neurons, saturation, sum_rows};
use super::activity::Activity;
use super::batch::{Batch, Labels};
use super::loss::{Loss, Losses, total};
use super::model::{SampleLosses, Sums};
use super::stack::{BLOCK, Block, Stack, StackGradients};
use crate::net::{FloatNet, OutputBuckets, Scheme, Shape};

/// Positions per shard, at most. The value affects a run's result: it decides in which order sums are rounded.
const SHARD_POSITIONS: usize = 1024;
/// Positions that a shard computes forward before it turns back, at most, so that their accumulators stay in a cache.
/// This affects a run's result, too.
const GROUP_POSITIONS: usize = 256;

/// The input that all shards of a step share.
#[derive(Copy, Clone)]
pub struct ShardPass<'a> {
    net: &'a FloatNet,
    stacks: &'a [Stack<'a>],
    neurons: Neurons,
    scheme: &'a Scheme,
    loss: &'a Loss,
    sparsity: f64,
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

/// A group of samples, computed forward: the memory that a shard uses again and again.
struct Group {
    /// Blocks of at most [`BLOCK`] positions of the same bucket.
    blocks: Vec<Block>,
    /// Outputs in centipawns, then their gradients: [positions].
    out: Vec<f32>,
}

/// A block's bucket and its positions, as indices into the group.
type Members = (usize, Vec<u32>);

impl<'a> ShardPass<'a> {
    /// `stacks` are the network's dense layers by bucket, rounded to the scheme's grid; `sparsity` is
    /// [`super::Optimisation::sparsity`].
    #[must_use]
    pub fn new(
        net: &'a FloatNet,
        stacks: &'a [Stack<'a>],
        scheme: &'a Scheme,
        loss: &'a Loss,
        sparsity: f64,
    ) -> ShardPass<'a> {
        ShardPass { net, stacks, neurons: Neurons::new(&net.shape, scheme), scheme, loss, sparsity }
    }

    /// The losses of some samples, summed and each, and the neurons' activity.
    #[must_use]
    pub fn evaluate(self, batch: &Batch<'_>, samples: Range<usize>) -> (Sums, SampleLosses, Activity) {
        let each = batch.positions_per_sample();
        let mut accumulators = vec![0.0; GROUP_POSITIONS * 2 * self.net.shape.row_len()];
        let mut group = Group { blocks: Vec::new(), out: Vec::new() };
        let (mut sums, mut losses, mut activity) = (Sums::default(), SampleLosses::default(), Activity::default());
        let saturation = saturation(self.net.shape.activation, self.scheme);
        for samples in groups(&samples, each) {
            let accumulators = &mut accumulators[..samples.len() * each * 2 * self.net.shape.row_len()];
            let members = self.forward(batch, samples.clone(), accumulators, &mut group);
            let group_losses = self.loss.differentiate(&mut group.out, batch.labels.slice(samples), 0.0);
            sums.add(summed(&group_losses));
            losses.append(group_losses);
            for ((bucket, positions), block) in members.iter().zip(&mut group.blocks) {
                let stride = self.stacks[*bucket].stride();
                let rows = block.first_inputs().chunks_exact(stride).take(positions.len());
                activity.count(rows, self.neurons.width, saturation);
            }
        }
        (sums, losses, activity)
    }

    /// These samples' share of the gradients of the batch's loss that is minimised: `weight` times the sum of its mean
    /// loss and `sparsity` times its mean activation. The gradients of their accumulators, [positions, 2, row], are
    /// written to `gradients`.
    #[must_use]
    pub fn train(self, batch: &Batch<'_>, weight: f64, samples: Range<usize>, gradients: &mut [f32]) -> ShardGradients {
        let each = batch.positions_per_sample();
        let row = self.net.shape.row_len();
        let activations = (batch.positions() * 2 * self.neurons.width) as f64;
        let sparsity = (weight * self.sparsity / activations) as f32;
        let mut layers: Vec<StackGradients> = self.stacks.iter().map(Stack::zero_gradients).collect();
        let mut ft_biases = vec![0.0; self.net.shape.l1];
        let (mut sums, mut rest) = (Sums::default(), gradients);
        let mut group = Group { blocks: Vec::new(), out: Vec::new() };
        for samples in groups(&samples, each) {
            let (accumulators, others) = rest.split_at_mut(samples.len() * each * 2 * row);
            rest = others;
            let members = self.forward(batch, samples.clone(), accumulators, &mut group);
            let factor = weight / batch.samples as f64 * self.scheme.float_centipawns();
            sums.add(summed(&self.loss.differentiate(&mut group.out, batch.labels.slice(samples), factor)));
            for ((bucket, positions), block) in members.iter().zip(&mut group.blocks) {
                let stack = &self.stacks[*bucket];
                let mut outputs = [0.0; BLOCK];
                for (output, position) in outputs.iter_mut().zip(positions) {
                    *output = group.out[*position as usize];
                }
                let outputs = &outputs[..positions.len()];
                stack.backward(block, outputs, &mut layers[*bucket]);
                stack.back_end.run(Differentiate {
                    neurons: self.neurons,
                    accumulators,
                    positions,
                    gradients: block.first_gradients(),
                    stride: stack.stride(),
                    sparsity,
                    psqt: self.net.shape.psqt.then_some((*bucket, outputs)),
                });
            }
            for accumulator in accumulators.chunks_exact(row) {
                ft_biases.iter_mut().zip(accumulator).for_each(|(sum, value)| *sum += value);
            }
        }
        let layers = self.stacks.iter().zip(&layers).flat_map(|(stack, layers)| stack.compact(layers)).collect();
        ShardGradients { sums, ft_biases, layers }
    }

    /// Computes the sums of the samples' accumulators, and the group's blocks and outputs.
    fn forward(
        &self,
        batch: &Batch<'_>,
        samples: Range<usize>,
        accumulators: &mut [f32],
        group: &mut Group,
    ) -> Vec<Members> {
        let Shape { l1, psqt, buckets, .. } = self.net.shape;
        let (each, row) = (batch.positions_per_sample(), self.net.shape.row_len());
        let (first, count) = (samples.start * each, samples.len() * each);
        sum_rows(self.net, batch.active, first, accumulators);
        let mut by_bucket = vec![Vec::new(); buckets.count];
        for (position, pieces) in (0..).zip(&batch.piece_counts[first..][..count]) {
            by_bucket[buckets.of(usize::from(*pieces))].push(position);
        }
        let mut members = Vec::new();
        for (bucket, positions) in by_bucket.iter().enumerate() {
            members.extend(positions.chunks(BLOCK).map(|block| (bucket, block.to_vec())));
        }
        group.out.resize(count, 0.0);
        for (number, (bucket, positions)) in members.iter().enumerate() {
            let stack = &self.stacks[*bucket];
            if number == group.blocks.len() {
                group.blocks.push(stack.block());
            }
            let block = &mut group.blocks[number];
            let (neurons, stride) = (self.neurons, stack.stride());
            stack.back_end.run(Activate { neurons, accumulators, positions, out: block.first_inputs(), stride });
            let mut outputs = [0.0; BLOCK];
            stack.forward(block, &mut outputs[..positions.len()]);
            for (output, position) in outputs.iter_mut().zip(positions) {
                if psqt {
                    let sides = &accumulators[*position as usize * 2 * row..][..2 * row];
                    *output += (sides[l1 + bucket] - sides[row + l1 + bucket]) / 2.0;
                }
                group.out[*position as usize] = *output * self.scheme.float_centipawns() as f32;
            }
        }
        members
    }
}

/// The sums of some samples' losses.
fn summed(losses: &SampleLosses) -> Sums {
    Sums {
        samples: losses.losses.len() as u64,
        loss: losses.losses.iter().map(|loss| f64::from(*loss)).sum(),
        preferred: losses.preferred.iter().filter(|preferred| **preferred).count() as u64,
    }
}

/// Cuts a shard's samples into groups of at most [`GROUP_POSITIONS`].
fn groups(samples: &Range<usize>, positions_per_sample: usize) -> impl Iterator<Item = Range<usize>> {
    let (per_group, Range { start, end }) = (GROUP_POSITIONS / positions_per_sample, samples.clone());
    (start..end).step_by(per_group).map(move |first| first..(first + per_group).min(end))
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
