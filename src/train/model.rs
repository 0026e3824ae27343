//! A network in training: steps along the gradient of batches, and losses without a step.
//!
//! A batch is cut into shards of a fixed number of positions ([`super::shard`]). Each shard computes its accumulators,
//! runs the dense layers forward and backward on one thread and returns its gradients. Shards share nothing, and their
//! sums are added in order ([`super::gradient`]). Then each row of the feature transformer takes its Adam step.
//!
//! Forward, dense weights are rounded to the scheme's grid; the gradient with respect to the rounded weight moves the
//! unrounded one (straight-through estimator: Bengio et al. 2013). So quantisation costs little even on a coarse grid.

use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::ThreadPool;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::activity::Activity;
use super::adam::{Adam, ParameterSlice};
use super::batch::Batch;
use super::factor::FactoredRows;
use super::gradient::{BatchPosition, FtGradients};
use super::lookahead::{Lookahead, SYNC_PERIOD};
use super::loss::Loss;
use super::order::{ContextBlock, sample_order};
use super::row_limits::RowLimits;
use super::rows::Rows;
use super::shard::{ShardGradients, ShardPass, Workspace, samples_per_shard};
use super::{Optimisation, Optimiser, TrainError, divergence, threads};
use crate::cpu::BackEnd;
use crate::features::Factors;
use crate::net::{FloatNet, Scheme, Shape};

/// Rows of the feature transformer that one task updates.
const TASK_ROWS: usize = 8;

/// A network with its optimiser's state.
pub struct Model {
    /// With factors merged into the feature transformer. After the first step or evaluation, only steps may change its
    /// rows.
    pub net: FloatNet,
    pub factored: Option<FactoredRows>,
    /// Adam's first and second moments.
    pub first_moments: FloatNet,
    pub second_moments: FloatNet,
    /// Ranger's slow weights.
    pub lookahead: Option<Lookahead>,
    /// Steps taken.
    pub step: u64,
    optimisation: Optimisation,
    loss: Loss,
    scheme: Scheme,
    pool: ThreadPool,
    gradients: FtGradients,
    /// The network's rows as the kernels read them; empty before the first step or evaluation.
    rows: OnceLock<Rows>,
    /// By which samples are sorted.
    context_block: Option<ContextBlock>,
    /// One for each thread that is at work.
    workspaces: Mutex<Vec<Workspace>>,
    back_end: BackEnd,
}

/// Sums over samples.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    pub samples: u64,
    pub loss: f64,
    /// pqr: samples with r > q.
    pub preferred: u64,
}

impl Sums {
    pub fn add(&mut self, other: Sums) {
        self.samples += other.samples;
        self.loss += other.loss;
        self.preferred += other.preferred;
    }

    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.samples.max(1) as f64
    }
}

/// The losses of single samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleLosses {
    pub losses: Vec<f32>,
    /// pqr: whether r > q; else empty.
    pub preferred: Vec<bool>,
}

impl SampleLosses {
    pub fn append(&mut self, mut other: SampleLosses) {
        self.losses.append(&mut other.losses);
        self.preferred.append(&mut other.preferred);
    }
}

/// A batch and the weight of its mean loss in the loss that is minimised.
#[derive(Copy, Clone, Debug)]
pub struct WeightedBatch<'a> {
    pub batch: Batch<'a>,
    pub weight: f64,
}

impl Model {
    /// # Errors
    /// When no threads can be started.
    pub fn new(
        net: FloatNet,
        factors: Option<Factors>,
        optimisation: Optimisation,
        loss: Loss,
        scheme: &Scheme,
        threads: usize,
    ) -> Result<Model, TrainError> {
        let pool = threads::pool(threads)?;
        let zeros = || FloatNet::zeros(&net.shape);
        let (first_moments, second_moments, scheme) = (zeros(), zeros(), scheme.clone());
        let factored = factors.map(|factors| FactoredRows::new(factors, &net.ft_weights, net.shape.row_len()));
        let lookahead = (optimisation.optimiser == Optimiser::Ranger).then(|| Lookahead::new(&net, factored.as_ref()));
        let back_end = BackEnd::best();
        let gradients = FtGradients::new(net.shape.features as usize, net.shape.row_len(), back_end);
        Ok(Model {
            net,
            factored,
            first_moments,
            second_moments,
            lookahead,
            step: 0,
            optimisation,
            loss,
            scheme,
            pool,
            gradients,
            rows: OnceLock::new(),
            context_block: None,
            workspaces: Mutex::default(),
            back_end,
        })
    }

    /// Lets steps visit samples of equal contexts together, which is faster if rows do not fit into a cache.
    #[must_use]
    pub fn sorted_by(self, context_block: Option<ContextBlock>) -> Model {
        Model { context_block: context_block.filter(|_| !self.gradients.shards_sum_rows()), ..self }
    }

    /// One step along the gradient of the batches' weighted losses. Returns each batch's losses before the step.
    ///
    /// # Errors
    /// When a loss or gradient is not finite: then no step is taken.
    pub fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        let (width, features) = (self.net.shape.row_len(), self.net.shape.features as usize);
        let order = |weighted: &WeightedBatch<'_>| sample_order(&weighted.batch, self.context_block.as_ref());
        let orders: Vec<Vec<u32>> = batches.iter().map(order).collect();
        let shards: Vec<(usize, &[u32])> = orders
            .iter()
            .enumerate()
            .flat_map(|(number, order)| {
                order.chunks(samples_per_shard(&batches[number].batch)).map(move |samples| (number, samples))
            })
            .collect();
        let each = |number: usize| batches[number].batch.positions_per_sample();
        let sizes: Vec<usize> = shards.iter().map(|(number, samples)| samples.len() * each(*number)).collect();
        let Model { net, scheme, loss, optimisation, gradients, rows, pool, workspaces, .. } = self;
        let rows = rows.get_or_init(|| pool.install(|| Rows::copied(&net.ft_weights, width)));
        let pass = ShardPass::new(net, rows, scheme, loss, optimisation.sparsity, self.back_end);
        let sums_by_shard = gradients.shards_sum_rows();
        let (outputs, tiles) = gradients.prepare(&sizes);
        let forward_and_backward = || {
            let shards = shards.par_iter().zip(outputs).map(|((number, samples), output)| {
                let WeightedBatch { batch, weight } = &batches[*number];
                (*number, with_workspace(workspaces, |memory| pass.train(batch, *weight, samples, output, memory)))
            });
            shards.collect::<Vec<(usize, ShardGradients)>>()
        };
        let transpose = || {
            if !sums_by_shard {
                let active: Vec<_> = batches.iter().map(|weighted| weighted.batch.active).collect();
                let positions = shards.iter().flat_map(|(number, samples)| {
                    let each = each(*number) as u32;
                    let positions = samples.iter().flat_map(move |sample| sample * each..(sample + 1) * each);
                    positions.map(|position| (*number as u32, position))
                });
                tiles.fill(&active, &positions.collect::<Vec<BatchPosition>>(), width, features);
            }
        };
        let shards = pool.install(|| rayon::join(forward_and_backward, transpose).0);
        let mut sums = vec![Sums::default(); batches.len()];
        shards.iter().for_each(|(number, shard)| sums[*number].add(shard.sums));
        let mut shards = shards.into_iter().map(|(_, shard)| shard);
        let Some(first) = shards.next() else { return Ok(sums) };
        let total = shards.fold(first, |total, shard| total.plus(&shard));
        let losses: Vec<f64> = sums.iter().map(Sums::mean_loss).collect();
        if !divergence::all_finite(&losses, &total) {
            let cause = divergence::explain(&self.net, batches, &losses, &total);
            return Err(TrainError::NotFinite { step: self.step + 1, cause, learning_rate });
        }
        self.pool.install(|| self.gradients.sum_rows());
        self.step += 1;
        let adam = self.adam(learning_rate, self.step, || self.gradient_length(&total));
        self.update(adam, &total);
        if let Some(lookahead) = &mut self.lookahead
            && self.step.is_multiple_of(SYNC_PERIOD)
        {
            let limits = RowLimits::new(&self.net.shape, &self.scheme);
            lookahead.synchronise(&mut self.net, self.factored.as_mut(), limits);
            self.rows.take();
        }
        Ok(sums)
    }

    /// The losses of a batch, summed and each, without a step; adds the neurons' activity.
    pub fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> (Sums, SampleLosses) {
        let Model { net, scheme, loss, optimisation, rows, pool, .. } = self;
        let rows = rows.get_or_init(|| pool.install(|| Rows::copied(&net.ft_weights, net.shape.row_len())));
        let pass = ShardPass::new(net, rows, scheme, loss, optimisation.sparsity, self.back_end);
        let samples: Vec<u32> = (0..batch.samples as u32).collect();
        let evaluated: Vec<(Sums, SampleLosses, Activity)> = self.pool.install(|| {
            let shards = samples.par_chunks(samples_per_shard(batch));
            let evaluate = |samples| with_workspace(&self.workspaces, |memory| pass.evaluate(batch, samples, memory));
            shards.map(evaluate).collect()
        });
        let (mut sums, mut each) = (Sums::default(), SampleLosses::default());
        for (shard_sums, shard_each, shard_activity) in evaluated {
            sums.add(shard_sums);
            each.append(shard_each);
            activity.add(&shard_activity);
        }
        (sums, each)
    }

    /// The constants of a step. `length` computes the gradient's length and is called only if long gradients are scaled
    /// down.
    pub fn adam(&self, learning_rate: f64, step: u64, length: impl FnOnce() -> f64) -> Adam {
        let Optimisation { optimiser, weight_decay, gradient_clip, .. } = self.optimisation;
        let scale = gradient_clip.map_or(1.0, |longest| (longest / length()).min(1.0));
        Adam::new(optimiser, weight_decay, learning_rate, step).scaled(scale as f32)
    }

    /// Parameters that a training sample has reached: all but the rows of features that were active in no sample. Adam's
    /// second moments of such a row are still zero; those of other rows sum squares of gradients.
    #[must_use]
    pub fn trained_parameters(&self) -> u64 {
        let row = self.net.shape.row_len();
        let rows = self.second_moments.ft_weights.chunks_exact(row);
        let untouched = rows.filter(|moments| moments.iter().all(|moment| *moment == 0.0)).count();
        self.net.parameters() - (untouched * row) as u64
    }

    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    #[must_use]
    pub const fn sparsity(&self) -> f64 {
        self.optimisation.sparsity
    }

    #[must_use]
    pub const fn loss(&self) -> &Loss {
        &self.loss
    }

    /// √Σ g² over the network's parameters, factors merged.
    fn gradient_length(&self, total: &ShardGradients) -> f64 {
        let square = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        let features = 0..self.net.shape.features as usize;
        let row = |feature| self.gradients.row(feature).map_or(0.0, square);
        let rows: Vec<f64> = self.pool.install(|| features.into_par_iter().map(row).collect());
        let layers: f64 = total.layers.iter().map(|values| square(values)).sum();
        (rows.iter().sum::<f64>() + square(&total.ft_biases) + layers).sqrt()
    }

    fn update(&mut self, adam: Adam, total: &ShardGradients) {
        let Model { net, factored, first_moments, second_moments, scheme, pool, gradients, rows, .. } = self;
        let (width, limits) = (net.shape.row_len(), RowLimits::new(&net.shape, scheme));
        let Some(padded_rows) = rows.get_mut() else { return };
        pool.install(|| {
            if let Some(factored) = factored {
                let moments = [&mut first_moments.ft_weights[..], &mut second_moments.ft_weights[..]];
                return factored.update(adam, (&mut net.ft_weights, padded_rows), moments, gradients, limits);
            }
            let (stride, zeros) = (padded_rows.stride(), vec![0.0; width]);
            let rows = net
                .ft_weights
                .par_chunks_mut(width * TASK_ROWS)
                .zip(first_moments.ft_weights.par_chunks_mut(width * TASK_ROWS))
                .zip(second_moments.ft_weights.par_chunks_mut(width * TASK_ROWS))
                .zip(padded_rows.values_mut().par_chunks_mut(stride * TASK_ROWS));
            rows.enumerate().for_each(|(task, (((parameters, first), second), padded_rows))| {
                let rows = parameters.chunks_mut(width).zip(first.chunks_mut(width)).zip(second.chunks_mut(width));
                for (number, (((parameters, first), second), padded_row)) in
                    rows.zip(padded_rows.chunks_mut(stride)).enumerate()
                {
                    let feature = task * TASK_ROWS + number;
                    let gradient = gradients.row(feature).unwrap_or(&zeros);
                    let slice = ParameterSlice { parameters: &mut *parameters, first, second };
                    adam.update(slice, gradient, limits.all);
                    limits.clamp_narrow(feature, parameters);
                    padded_row[..width].copy_from_slice(parameters);
                }
            });
        });
        let rules = update_rules(&net.shape, scheme);
        let gradients = std::iter::once(&total.ft_biases).chain(&total.layers);
        let moments = first_moments.tensors_mut().into_iter().zip(second_moments.tensors_mut());
        let all = net.tensors_mut().into_iter().zip(moments).zip(rules).skip(1).zip(gradients);
        for (((parameters, (first, second)), rule), gradient) in all {
            let adam = if rule.decays { adam } else { adam.without_decay() };
            adam.update(ParameterSlice { parameters, first, second }, gradient, rule.limit as f32);
        }
    }
}

/// Calls `work` with a workspace of which no other thread makes use.
fn with_workspace<T>(workspaces: &Mutex<Vec<Workspace>>, work: impl FnOnce(&mut Workspace) -> T) -> T {
    let lock = || workspaces.lock().unwrap_or_else(PoisonError::into_inner);
    let mut workspace = lock().pop().unwrap_or_default();
    let result = work(&mut workspace);
    lock().push(workspace);
    result
}

/// How an array of the network is updated.
#[derive(Copy, Clone, Debug)]
pub struct UpdateRule {
    /// Values are clamped to ± this.
    pub limit: f64,
    /// Whether weight decay applies.
    pub decays: bool,
    /// Rows may have narrower limits.
    pub rows: Option<RowLimits>,
    /// Forward, values are rounded to multiples of 1 / this; `None`: they are not rounded.
    pub grid: Option<f64>,
}

/// The rule of every array, in the order of [`Shape::tensors`]: weights and biases in turn.
pub fn update_rules(shape: &Shape, scheme: &Scheme) -> Vec<UpdateRule> {
    let limits = scheme.limits();
    let weights = |limit, scale| UpdateRule { limit, decays: true, grid: Some(scale), rows: None };
    let biases = |limit| UpdateRule { limit, decays: false, grid: None, rows: None };
    let rows = Some(RowLimits::new(shape, scheme));
    let limit = limits.feature_transformer;
    let ft = [UpdateRule { rows, grid: None, ..weights(limit, 1.0) }, biases(limit)];
    let stack = || {
        (0..=shape.hidden.len()).flat_map(|index| match index == shape.hidden.len() {
            true => [weights(limits.output, scheme.output_weight_scale()), biases(f64::INFINITY)],
            false => [weights(limits.hidden[index], scheme.hidden_weight_scale(index)), biases(f64::INFINITY)],
        })
    };
    ft.into_iter().chain((0..shape.buckets.count).flat_map(|_| stack())).collect()
}

#[cfg(test)]
pub(super) mod tests;
