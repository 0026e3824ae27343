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
use super::loss::Loss;
use super::shard::{Pass, Shard, shards};
use super::slow::{LOOKAHEAD_STEPS, Slow};
use super::sparse::{Transposed, add_rows};
use super::{Optimiser, Recipe, TrainError};
use crate::features::Factors;
use crate::net::{Dense, FloatNet, Scheme, on_grid};

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
    pub slow: Option<Slow>,
    /// Steps taken.
    pub step: u64,
    recipe: Recipe,
    loss: Loss,
    scheme: Scheme,
    pool: ThreadPool,
    /// Gradients of the accumulators: [positions, 2, row].
    gradients: Vec<f32>,
    transposed: Transposed,
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
        recipe: Recipe,
        loss: Loss,
        scheme: &Scheme,
        threads: usize,
    ) -> Result<Model, TrainError> {
        // Shards run side by side; libtorch's own threads would only compete with them and split sums by their number.
        tch::set_num_threads(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| TrainError::Config(format!("cannot start {threads} threads: {error}")))?;
        let zeros = || FloatNet::zeros(&net.shape);
        let (first, second, scheme) = (zeros(), zeros(), scheme.clone());
        let (gradients, transposed) = (Vec::new(), Transposed::default());
        let factored = factors.map(|factors| Factored::new(factors, &net.ft_weights, net.shape.row()));
        let slow = (recipe.optimiser == Optimiser::Ranger).then(|| Slow::of(&net, factored.as_ref()));
        Ok(Model { net, factored, first, second, slow, step: 0, recipe, loss, scheme, pool, gradients, transposed })
    }

    /// One step along the gradient of the parts' mean losses, weighted; gives each part's losses before the step. When
    /// one is not finite, no step is taken.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn train(&mut self, parts: &[Part<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        let (row, features) = (self.net.shape.row(), self.net.shape.features as usize);
        let positions: usize = parts.iter().map(|part| part.batch.positions()).sum();
        self.gradients.resize(positions * 2 * row, 0.0);
        let stacks = self.stacks_on_grid();
        let pass = Pass { net: &self.net, stacks: &stacks, scheme: &self.scheme, loss: &self.loss };
        let (mut rest, transposed) = (&mut self.gradients[..], &mut self.transposed);
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
            rayon::join(forwards_and_backwards, || transposed.fill(&rows, features)).0
        })?;
        let mut sums = vec![Sums::default(); parts.len()];
        shards.iter().for_each(|(number, shard)| sums[*number].add(shard.sums));
        let mut shards = shards.into_iter().map(|(_, shard)| shard);
        let Some(first) = shards.next() else { return Ok(sums) };
        let sum = shards.fold(first, |sum, shard| sum.plus(&shard));
        if sums.iter().all(|sums| sums.loss.is_finite()) {
            self.step += 1;
            let Recipe { optimiser, weight_decay, gradient_clip, .. } = self.recipe;
            let adam = Adam::new(optimiser, weight_decay, learning_rate, self.step);
            let shortened = gradient_clip.map_or(1.0, |longest| (longest / self.gradient_length(&sum)).min(1.0));
            self.update(adam.scaled(shortened as f32), &sum);
            if let Some(slow) = &mut self.slow
                && self.step.is_multiple_of(LOOKAHEAD_STEPS)
            {
                slow.meet(&mut self.net, self.factored.as_mut(), self.scheme.limits().feature_transformer as f32);
            }
        }
        Ok(sums)
    }

    /// The losses of a batch, summed; adds what the neurons did.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn observe(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<Sums, TrainError> {
        let stacks = self.stacks_on_grid();
        let pass = Pass { net: &self.net, stacks: &stacks, scheme: &self.scheme, loss: &self.loss };
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

    /// √Σ g² over the network's parameters, factors merged.
    fn gradient_length(&self, sum: &Shard) -> f64 {
        let square = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        let (width, features) = (self.net.shape.row(), self.net.shape.features as usize);
        let rows: Vec<f64> = self.pool.install(|| {
            let row = |gradient: &mut Vec<f32>, feature| {
                gradient.fill(0.0);
                add_rows(gradient, &self.gradients, self.transposed.of(feature));
                square(gradient)
            };
            (0..features).into_par_iter().map_init(|| vec![0.0; width], row).collect()
        });
        let layers: f64 = sum.layers.iter().map(|values| square(values)).sum();
        (rows.iter().sum::<f64>() + square(&sum.ft_biases) + layers).sqrt()
    }

    fn update(&mut self, adam: Adam, sum: &Shard) {
        let Model { net, factored, first, second, scheme, pool, gradients, transposed, .. } = self;
        let (row, limits) = (net.shape.row(), scheme.limits());
        let ft_limit = limits.feature_transformer as f32;
        pool.install(|| {
            if let Some(factored) = factored {
                let moments = [&mut first.ft_weights[..], &mut second.ft_weights[..]];
                return factored.update(adam, &mut net.ft_weights, moments, (gradients, transposed), ft_limit);
            }
            let rows = net
                .ft_weights
                .par_chunks_mut(row * TASK_ROWS)
                .zip(first.ft_weights.par_chunks_mut(row * TASK_ROWS))
                .zip(second.ft_weights.par_chunks_mut(row * TASK_ROWS));
            rows.enumerate().for_each_init(
                || vec![0.0; row],
                |gradient, (task, ((parameters, first), second))| {
                    let rows = parameters.chunks_mut(row).zip(first.chunks_mut(row)).zip(second.chunks_mut(row));
                    for (number, ((parameters, first), second)) in rows.enumerate() {
                        gradient.fill(0.0);
                        add_rows(gradient, gradients, transposed.of(task * TASK_ROWS + number));
                        adam.update(Slice { parameters, first, second }, gradient, ft_limit);
                    }
                },
            );
        });
        let limits_of_layers = net.stacks.iter().flat_map(|stack| {
            let last = stack.len() - 1;
            let limit = move |index| if index == last { limits.output } else { limits.hidden };
            (0..stack.len()).flat_map(move |index| [limit(index) as f32, f32::INFINITY])
        });
        let all_limits: Vec<f32> = std::iter::once(ft_limit).chain(limits_of_layers).collect();
        let gradients = std::iter::once(&sum.ft_biases).chain(&sum.layers);
        let moments = first.tensors_mut().into_iter().zip(second.tensors_mut());
        let all = net.tensors_mut().into_iter().zip(moments).skip(1).zip(gradients).zip(all_limits);
        for (number, (((parameters, (first, second)), gradient), limit)) in all.enumerate() {
            // Weights and biases take turns, beginning with the feature transformer's biases.
            let adam = if number.is_multiple_of(2) { adam.without_decay() } else { adam };
            adam.update(Slice { parameters, first, second }, gradient, limit);
        }
    }
}

#[cfg(test)]
mod tests;
