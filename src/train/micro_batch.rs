//! A micro-batch: some positions of a batch, computed forward and backward on one thread, group by group.

use super::accumulators::{Accumulate, Activate, Differentiate, Neurons, saturation};
use super::activity::Activity;
use super::batch::{Batch, Labels};
use super::gradient::MicroBatchOutput;
use super::lanes::LanesKernel;
use super::loss::Loss;
use super::rows::PaddedRows;
use super::sparse::{AddAllRows, TransposedBatch};
use super::stack::{BLOCK, Stack, StackBlock, StackGradients};
use super::trainer::{SampleLosses, Sums, TrainingRules};
use crate::cpu::BackEnd;
use crate::engine::AlignedVec;
use crate::net::{Dense, FloatNet, Scheme, Shape, on_grid};

/// Positions per micro-batch, at most. The value affects a run's result: it decides in which order sums are rounded.
const MICRO_BATCH_POSITIONS: usize = 1024;
/// Bytes of accumulators that a micro-batch computes forward before it turns back, about, so that they stay in a cache.
/// This affects a run's result, too.
const GROUP_BYTES: usize = 288 << 10;
/// Blocks in a group, at most.
const GROUP_BLOCKS: usize = 8;

/// The input that all micro-batches of a step share.
pub struct MicroBatchPass<'a> {
    shape: &'a Shape,
    /// The feature transformer's weights, [features].
    rows: &'a PaddedRows,
    /// The feature transformer's biases, padded: [stride].
    biases: AlignedVec<f32>,
    /// The dense layers by bucket, rounded to the scheme's grid.
    stacks: Vec<Stack<'a>>,
    scheme: &'a Scheme,
    loss: &'a Loss,
    sparsity: f64,
    back_end: BackEnd,
}

/// The memory that a thread uses again for each group of samples.
#[derive(Default)]
pub struct Workspace {
    /// [positions of the group, 2, stride]
    accumulators: AlignedVec<f32>,
    block: Option<StackBlock>,
    /// The group's positions, as indices into the batch.
    positions: Vec<u32>,
    /// The group's labels, if it has any.
    targets: Vec<f32>,
    /// Outputs in centipawns, then their gradients: [positions].
    out: Vec<f32>,
    /// Indices into the group, by output bucket.
    by_bucket: Vec<Vec<u32>>,
    tile: TransposedBatch,
}

/// A micro-batch's losses and gradients so far, except the gradients of the feature transformer's weights.
struct MicroBatchSums {
    sums: Sums,
    /// [stride]
    ft_biases: AlignedVec<f32>,
    layers: Vec<StackGradients>,
}

/// The result of a micro-batch: its losses and gradients, except the gradients of the feature transformer's weights.
pub struct MicroBatchGradients {
    pub sums: Sums,
    pub ft_biases: Vec<f32>,
    /// Gradients of every bucket's layers, weights before biases.
    pub layers: Vec<Vec<f32>>,
}

impl MicroBatchGradients {
    /// Adds another micro-batch's gradients. The sums of losses stay this micro-batch's.
    #[must_use]
    pub fn plus(mut self, other: &MicroBatchGradients) -> MicroBatchGradients {
        let add = |sum: &mut [f32], more: &[f32]| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.ft_biases, &other.ft_biases);
        self.layers.iter_mut().zip(&other.layers).for_each(|(sum, more)| add(sum, more));
        self
    }
}

/// The number of samples per micro-batch of a batch, at most.
#[must_use]
pub fn samples_per_micro_batch(batch: &Batch<'_>) -> usize {
    MICRO_BATCH_POSITIONS / batch.positions_per_sample()
}

impl<'a> MicroBatchPass<'a> {
    /// `rows` are the network's.
    #[must_use]
    pub fn new(
        net: &'a FloatNet,
        rows: &'a PaddedRows,
        rules: &'a TrainingRules,
        back_end: BackEnd,
    ) -> MicroBatchPass<'a> {
        let TrainingRules { optimisation, loss, scheme } = rules;
        let shape = &net.shape;
        let mut biases = AlignedVec::zeroed(rows.stride());
        biases[..shape.l1].copy_from_slice(&net.ft_biases);
        let stack = |layers: &Vec<Dense>| Stack::new(shape, &on_grid(layers, scheme), scheme.product_scale(), back_end);
        let stacks = net.stacks.iter().map(stack).collect();
        MicroBatchPass { shape, rows, biases, stacks, scheme, loss, sparsity: optimisation.sparsity, back_end }
    }

    /// The losses of some samples, summed and each, and the neurons' activity.
    #[must_use]
    pub fn evaluate(
        &self,
        batch: &Batch<'_>,
        samples: &[u32],
        workspace: &mut Workspace,
    ) -> (Sums, SampleLosses, Activity) {
        let neurons = Neurons::new(self.shape, self.scheme);
        let saturation = saturation(self.shape.activation, self.scheme);
        let mut sums = Sums::default();
        let mut losses = SampleLosses::default();
        let mut activity = Activity::default();
        let mut accumulators = std::mem::take(&mut workspace.accumulators);
        for samples in samples.chunks(self.samples_per_group(batch)) {
            let accumulators =
                room(&mut accumulators, samples.len() * batch.positions_per_sample() * 2 * self.stride());
            self.accumulate(batch, samples, accumulators, workspace);
            let Workspace { block, targets, out, by_bucket, .. } = workspace;
            let block = block.get_or_insert_with(|| self.stacks[0].block());
            for (bucket, positions) in blocks(by_bucket) {
                let mut outputs = [0.0; BLOCK];
                self.forward(accumulators, bucket, positions, block, &mut outputs[..positions.len()]);
                for (position, output) in positions.iter().zip(outputs) {
                    out[*position as usize] = output;
                }
                let rows = block.first_inputs().chunks_exact(self.stacks[bucket].stride()).take(positions.len());
                activity.count(rows, neurons.width, saturation);
            }
            let group = self.loss.differentiate(out, batch.labels.with(targets), 0.0);
            sums.add(summed(&group));
            losses.append(group);
        }
        workspace.accumulators = accumulators;
        (sums, losses, activity)
    }

    /// These samples' share of the gradients of the batch's loss that is minimised: `weight` times the sum of its mean
    /// loss and `sparsity` times its mean activation. The gradients of the feature transformer's weights go to
    /// `output`.
    #[must_use]
    pub fn train(
        &self,
        batch: &Batch<'_>,
        weight: f64,
        samples: &[u32],
        mut output: MicroBatchOutput<'_>,
        workspace: &mut Workspace,
    ) -> MicroBatchGradients {
        let each = batch.positions_per_sample();
        let mut gradients = MicroBatchSums {
            sums: Sums::default(),
            ft_biases: AlignedVec::zeroed(self.stride()),
            layers: self.stacks.iter().map(Stack::zero_gradients).collect(),
        };
        let mut own = std::mem::take(&mut workspace.accumulators);
        for samples in samples.chunks(self.samples_per_group(batch)) {
            let values = samples.len() * each * 2 * self.stride();
            let accumulators = match &mut output {
                MicroBatchOutput::Accumulators(rest) => {
                    let (group, others) = std::mem::take(rest).split_at_mut(values);
                    *rest = others;
                    group
                }
                MicroBatchOutput::Rows(_) => room(&mut own, values),
            };
            self.accumulate(batch, samples, accumulators, workspace);
            self.differentiate(batch, weight, accumulators, workspace, &mut gradients);
            AddAllRows { out: &mut gradients.ft_biases, rows: accumulators }.run_on(self.back_end);
            if let MicroBatchOutput::Rows(sums) = &mut output {
                let Workspace { tile, positions, .. } = workspace;
                let active = positions.iter().map(|position| batch.active.map(|side| side.of(*position as usize)));
                tile.fill(active, 0, self.shape.features as usize);
                sums.add(self.back_end, accumulators, tile);
            }
        }
        workspace.accumulators = own;
        let MicroBatchSums { sums, ft_biases, layers } = gradients;
        let layers = self.stacks.iter().zip(&layers).flat_map(|(stack, layers)| stack.compact(layers)).collect();
        MicroBatchGradients { sums, ft_biases: ft_biases[..self.shape.l1].to_vec(), layers }
    }

    /// Replaces the accumulators of a group by their gradients, and adds the group's losses and other gradients to
    /// `total`.
    fn differentiate(
        &self,
        batch: &Batch<'_>,
        weight: f64,
        accumulators: &mut [f32],
        workspace: &mut Workspace,
        total: &mut MicroBatchSums,
    ) {
        let neurons = Neurons::new(self.shape, self.scheme);
        let sparsity = (weight * self.sparsity / (batch.positions() * 2 * neurons.width) as f64) as f32;
        let factor = weight / batch.samples as f64 * self.scheme.float_centipawns();
        let Workspace { block, targets, out, by_bucket, .. } = workspace;
        let block = block.get_or_insert_with(|| self.stacks[0].block());
        // The positions of a triplet may stand in different blocks: then all outputs are computed first.
        let outputs_first = matches!(batch.labels, Labels::Pqr) && self.stacks.len() > 1;
        if outputs_first {
            for (bucket, positions) in blocks(by_bucket) {
                let mut outputs = [0.0; BLOCK];
                self.forward(accumulators, bucket, positions, block, &mut outputs[..positions.len()]);
                for (position, output) in positions.iter().zip(outputs) {
                    out[*position as usize] = output;
                }
            }
            total.sums.add(summed(&self.loss.differentiate(out, Labels::Pqr, factor)));
        }
        for (bucket, positions) in blocks(by_bucket) {
            let mut outputs = [0.0; BLOCK];
            let outputs = &mut outputs[..positions.len()];
            self.forward(accumulators, bucket, positions, block, outputs);
            let group = positions.iter().map(|position| *position as usize);
            if outputs_first {
                outputs.iter_mut().zip(group).for_each(|(slope, position)| *slope = out[position]);
            } else {
                let targets: Vec<f32> = match batch.labels {
                    Labels::Eval(_) => group.map(|position| targets[position]).collect(),
                    Labels::Pqr => Vec::new(),
                };
                total.sums.add(summed(&self.loss.differentiate(outputs, batch.labels.with(&targets), factor)));
            }
            let stack = &self.stacks[bucket];
            stack.backward(block, outputs, &mut total.layers[bucket]);
            Differentiate {
                neurons,
                accumulators,
                positions,
                gradients: block.first_gradients(),
                stride: stack.stride(),
                sparsity,
                psqt: self.shape.psqt.then_some((bucket, outputs)),
            }
            .run_on(self.back_end);
        }
    }

    /// Computes the sums of a group's accumulators, and lists its positions and labels in the workspace.
    fn accumulate(&self, batch: &Batch<'_>, samples: &[u32], accumulators: &mut [f32], workspace: &mut Workspace) {
        let each = batch.positions_per_sample() as u32;
        let Workspace { positions, targets, out, by_bucket, .. } = workspace;
        positions.clear();
        positions.extend(samples.iter().flat_map(|sample| sample * each..(sample + 1) * each));
        targets.clear();
        if let Labels::Eval(all) = batch.labels {
            targets.extend(samples.iter().map(|sample| all[*sample as usize]));
        }
        out.clear();
        out.resize(positions.len(), 0.0);
        by_bucket.resize_with(self.shape.buckets.count, Vec::new);
        by_bucket.iter_mut().for_each(Vec::clear);
        for (number, position) in (0..).zip(&*positions) {
            by_bucket[self.shape.buckets.of(usize::from(batch.bucket_inputs[*position as usize]))].push(number);
        }
        let rows = self.rows.values();
        let biases = &self.biases[..];
        Accumulate { rows, biases, active: batch.active, positions, out: accumulators }.run_on(self.back_end);
    }

    /// Computes the outputs of a block of positions, given as indices into the group, in centipawns.
    fn forward(
        &self,
        accumulators: &[f32],
        bucket: usize,
        positions: &[u32],
        block: &mut StackBlock,
        outputs: &mut [f32],
    ) {
        let stack = &self.stacks[bucket];
        let neurons = Neurons::new(self.shape, self.scheme);
        let stride = stack.stride();
        Activate { neurons, accumulators, positions, out: block.first_inputs(), stride }.run_on(self.back_end);
        stack.forward(block, outputs);
        if self.shape.psqt {
            let row = self.stride();
            let value = self.shape.l1 + bucket;
            for (output, position) in outputs.iter_mut().zip(positions) {
                let sides = &accumulators[*position as usize * 2 * row..][..2 * row];
                *output += (sides[value] - sides[row + value]) / 2.0;
            }
        }
        outputs.iter_mut().for_each(|output| *output *= self.scheme.float_centipawns() as f32);
    }

    /// Length of an accumulator.
    fn stride(&self) -> usize {
        self.rows.stride()
    }

    fn samples_per_group(&self, batch: &Batch<'_>) -> usize {
        let blocks = GROUP_BYTES / (2 * self.stride() * size_of::<f32>()) / BLOCK;
        blocks.clamp(1, GROUP_BLOCKS) * BLOCK / batch.positions_per_sample()
    }
}

/// The first `values` of an array, which grows if it has fewer.
fn room(memory: &mut AlignedVec<f32>, values: usize) -> &mut [f32] {
    if memory.len() < values {
        *memory = AlignedVec::zeroed(values);
    }
    &mut memory[..values]
}

/// Blocks of at most [`BLOCK`] positions, each with its bucket.
fn blocks(by_bucket: &[Vec<u32>]) -> impl Iterator<Item = (usize, &[u32])> {
    let each = by_bucket.iter().enumerate();
    each.flat_map(|(bucket, positions)| positions.chunks(BLOCK).map(move |block| (bucket, block)))
}

/// The sums of some samples' losses.
fn summed(losses: &SampleLosses) -> Sums {
    Sums {
        samples: losses.losses.len() as u64,
        loss: losses.losses.iter().map(|loss| f64::from(*loss)).sum(),
        preferred: losses.preferred.iter().filter(|preferred| **preferred).count() as u64,
    }
}
