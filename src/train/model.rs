//! A network in training: one step along a batch's gradient, and the loss without a step.
//!
//! A batch is cut into shards of a fixed number of positions ([`super::shard`]). A shard sums its accumulators, runs the
//! dense layers forwards and backwards in libtorch (on one thread) and leaves its accumulators' gradients behind; shards
//! share nothing, and their sums are added in order. Then each row of the feature transformer collects its gradient and
//! takes its Adam step at once, so that the gradient of the whole table never exists.
//!
//! Dense weights run forwards rounded to the scheme's grid, and the gradient with respect to the rounded weight moves the
//! unrounded one (straight-through: Bengio et al. 2013), so that quantisation costs little where steps are coarse.

use rayon::ThreadPool;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::activity::Activity;
use super::adam::{Adam, Slice};
use super::batch::Batch;
use super::factor::Factored;
use super::gradient::Gradients;
use super::lookahead::{LOOKAHEAD_STEPS, Lookahead};
use super::loss::Loss;
use super::shard::{Pass, Shard, shards};
use super::{Optimisation, Optimiser, TrainError, divergence, threads};
use crate::features::Factors;
use crate::net::{Dense, FloatNet, Scheme, Shape, on_grid};

/// Rows of the feature transformer that one task updates.
const TASK_ROWS: usize = 8;

/// A network with its optimiser's state.
pub struct Model {
    /// With factors merged.
    pub net: FloatNet,
    pub factored: Option<Factored>,
    /// Adam's first and second moments.
    pub first: FloatNet,
    pub second: FloatNet,
    /// Ranger's slow weights; those of the features' own rows stand for the network's.
    pub lookahead: Option<Lookahead>,
    /// Steps taken.
    pub step: u64,
    optimisation: Optimisation,
    loss: Loss,
    scheme: Scheme,
    pool: ThreadPool,
    gradients: Gradients,
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

/// A batch and its share of the loss that is minimised.
#[derive(Copy, Clone, Debug)]
pub struct Part<'a> {
    pub batch: Batch<'a>,
    /// On the batch's mean loss.
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
        let (first, second, scheme) = (zeros(), zeros(), scheme.clone());
        let factored = factors.map(|factors| Factored::new(factors, &net.ft_weights, net.shape.row_len()));
        let lookahead = (optimisation.optimiser == Optimiser::Ranger).then(|| Lookahead::of(&net, factored.as_ref()));
        let gradients = Gradients::default();
        Ok(Model { net, factored, first, second, lookahead, step: 0, optimisation, loss, scheme, pool, gradients })
    }

    /// One step along the gradient of the parts' objectives, weighted; gives each part's losses before the step.
    ///
    /// # Errors
    /// When libtorch fails, or a loss or gradient is not finite: then no step is taken.
    pub fn train(&mut self, parts: &[Part<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        let (row, features) = (self.net.shape.row_len(), self.net.shape.features as usize);
        let positions: usize = parts.iter().map(|part| part.batch.positions()).sum();
        let stacks = self.stacks_on_grid();
        let sparsity = self.optimisation.sparsity;
        let pass = Pass { net: &self.net, stacks: &stacks, scheme: &self.scheme, loss: &self.loss, sparsity };
        let (mut rest, tiles) = self.gradients.prepare(positions, row, features);
        let mut work = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            for samples in shards(&part.batch) {
                let (own, others) = rest.split_at_mut(samples.len() * part.batch.positions_per_sample() * 2 * row);
                rest = others;
                work.push((number, samples, own));
            }
        }
        let rows: Vec<_> = parts.iter().map(|part| part.batch.rows).collect();
        let shards = self.pool.install(|| {
            let forwards_and_backwards = || {
                let shard = work.into_par_iter().map(|(number, samples, gradients)| {
                    let Part { batch, weight } = &parts[number];
                    Ok((number, pass.train(batch, *weight, samples, gradients)?))
                });
                shard.collect::<Result<Vec<(usize, Shard)>, TrainError>>()
            };
            rayon::join(forwards_and_backwards, || tiles.fill(&rows, row, features)).0
        })?;
        let mut sums = vec![Sums::default(); parts.len()];
        shards.iter().for_each(|(number, shard)| sums[*number].add(shard.sums));
        let mut shards = shards.into_iter().map(|(_, shard)| shard);
        let Some(first) = shards.next() else { return Ok(sums) };
        let sum = shards.fold(first, |sum, shard| sum.plus(&shard));
        let losses: Vec<f64> = sums.iter().map(Sums::mean_loss).collect();
        if !divergence::all_finite(&losses, &sum) {
            let cause = divergence::explain(&self.net, parts, &losses, &sum);
            return Err(TrainError::NotFinite { step: self.step + 1, cause, learning_rate });
        }
        if self.gradients.in_tiles() || self.factored.is_some() {
            self.pool.install(|| self.gradients.sum_rows());
        }
        self.step += 1;
        let adam = self.adam(learning_rate, self.step, || self.gradient_length(&sum));
        self.update(adam, &sum);
        if let Some(lookahead) = &mut self.lookahead
            && self.step.is_multiple_of(LOOKAHEAD_STEPS)
        {
            lookahead.meet(&mut self.net, self.factored.as_mut(), self.scheme.limits().feature_transformer as f32);
        }
        Ok(sums)
    }

    /// The losses of a batch, summed; adds what the neurons did.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn observe(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<Sums, TrainError> {
        let stacks = self.stacks_on_grid();
        let sparsity = self.optimisation.sparsity;
        let pass = Pass { net: &self.net, stacks: &stacks, scheme: &self.scheme, loss: &self.loss, sparsity };
        let all: Vec<_> = shards(batch).collect();
        let seen: Vec<(Sums, Activity)> = self.pool.install(|| {
            all.into_par_iter().map(|samples| pass.evaluate(batch, samples)).collect::<Result<_, TrainError>>()
        })?;
        let mut sums = Sums::default();
        for (shard, seen) in &seen {
            sums.add(*shard);
            activity.add(seen);
        }
        Ok(sums)
    }

    fn stacks_on_grid(&self) -> Vec<Vec<Dense>> {
        self.net.stacks.iter().map(|stack| on_grid(stack, &self.scheme)).collect()
    }

    /// The optimisation's step. `length`: of the gradient, asked for where long ones are shortened.
    pub fn adam(&self, learning_rate: f64, step: u64, length: impl FnOnce() -> f64) -> Adam {
        let Optimisation { optimiser, weight_decay, gradient_clip, .. } = self.optimisation;
        let shortened = gradient_clip.map_or(1.0, |longest| (longest / length()).min(1.0));
        Adam::new(optimiser, weight_decay, learning_rate, step).scaled(shortened as f32)
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
    fn gradient_length(&self, sum: &Shard) -> f64 {
        let square = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        let (width, features) = (self.net.shape.row_len(), self.net.shape.features as usize);
        let rows: Vec<f64> = self.pool.install(|| {
            let row = |scratch: &mut Vec<f32>, feature| square(self.gradients.row(feature, scratch));
            (0..features).into_par_iter().map_init(|| vec![0.0; width], row).collect()
        });
        let layers: f64 = sum.layers.iter().map(|values| square(values)).sum();
        (rows.iter().sum::<f64>() + square(&sum.ft_biases) + layers).sqrt()
    }

    fn update(&mut self, adam: Adam, sum: &Shard) {
        let Model { net, factored, first, second, scheme, pool, gradients, .. } = self;
        let (row, limits) = (net.shape.row_len(), scheme.limits());
        let ft_limit = limits.feature_transformer as f32;
        pool.install(|| {
            if let Some(factored) = factored {
                let moments = [&mut first.ft_weights[..], &mut second.ft_weights[..]];
                return factored.update(adam, &mut net.ft_weights, moments, gradients, ft_limit);
            }
            let rows = net
                .ft_weights
                .par_chunks_mut(row * TASK_ROWS)
                .zip(first.ft_weights.par_chunks_mut(row * TASK_ROWS))
                .zip(second.ft_weights.par_chunks_mut(row * TASK_ROWS));
            rows.enumerate().for_each_init(
                || vec![0.0; row],
                |scratch, (task, ((parameters, first), second))| {
                    let rows = parameters.chunks_mut(row).zip(first.chunks_mut(row)).zip(second.chunks_mut(row));
                    for (number, ((parameters, first), second)) in rows.enumerate() {
                        let gradient = gradients.row(task * TASK_ROWS + number, scratch);
                        adam.update(Slice { parameters, first, second }, gradient, ft_limit);
                    }
                },
            );
        });
        let bounds = bounds(&net.shape, scheme);
        let gradients = std::iter::once(&sum.ft_biases).chain(&sum.layers);
        let moments = first.tensors_mut().into_iter().zip(second.tensors_mut());
        let all = net.tensors_mut().into_iter().zip(moments).zip(bounds).skip(1).zip(gradients);
        for (((parameters, (first, second)), bound), gradient) in all {
            let adam = if bound.decays { adam } else { adam.without_decay() };
            adam.update(Slice { parameters, first, second }, gradient, bound.limit as f32);
        }
    }
}

/// How an array of the network is stepped.
#[derive(Copy, Clone, Debug)]
pub struct Bound {
    /// Numbers stay within ± this.
    pub limit: f64,
    /// Whether they shrink by themselves where the optimisation says so.
    pub decays: bool,
    /// Steps a unit that they are rounded to forwards; none: they are not.
    pub grid: Option<f64>,
}

/// Of every array, in the order of [`Shape::tensors`]: weights and biases by turns.
pub fn bounds(shape: &Shape, scheme: &Scheme) -> Vec<Bound> {
    let limits = scheme.limits();
    let weights = |limit, scale| Bound { limit, decays: true, grid: Some(scale) };
    let biases = |limit| Bound { limit, decays: false, grid: None };
    let ft = [Bound { grid: None, ..weights(limits.feature_transformer, 1.0) }, biases(limits.feature_transformer)];
    let stack = || {
        (0..=shape.hidden.len()).flat_map(|index| match index == shape.hidden.len() {
            true => [weights(limits.output, scheme.output_weight_scale()), biases(f64::INFINITY)],
            false => [weights(limits.hidden, scheme.hidden_weight_scale()), biases(f64::INFINITY)],
        })
    };
    ft.into_iter().chain((0..shape.buckets.count).flat_map(|_| stack())).collect()
}

#[cfg(test)]
pub(super) mod tests;
