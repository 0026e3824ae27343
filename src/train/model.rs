//! A network in training: one step along a batch's gradient, and the loss without a step.
//!
//! A batch is cut into shards of a fixed number of positions. A shard sums its accumulators, runs the dense layers
//! forwards and backwards in libtorch (on one thread) and leaves its accumulators' gradients behind; shards share
//! nothing, and their sums are added in order. Then each row of the feature transformer collects its gradient and takes
//! its Adam step at once, so that the gradient of the whole table never exists.
//!
//! Dense weights run forwards rounded to the scheme's grid, and the gradient with respect to the rounded weight moves the
//! unrounded one (straight-through: Bengio et al. 2013), so that quantisation costs little where steps are coarse.

use std::ops::Range;

use rayon::ThreadPool;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tch::{TchError, Tensor};

use super::activity::Activity;
use super::adam::{Adam, Slice};
use super::batch::{Batch, Labels};
use super::dense::{Head, copy_gradient};
use super::factor::Factored;
use super::init::zeros;
use super::loss::{Loss, total};
use super::slow::{LOOKAHEAD_STEPS, Slow};
use super::sparse::{Transposed, add_rows, clip, clip_backwards};
use super::{Optimiser, Recipe, TrainError};
use crate::features::Factors;
use crate::net::{Dense, FloatNet, Scheme, on_grid};

/// Positions a shard at most. Part of what a run computes: sums are rounded differently with another value.
const SHARD_POSITIONS: usize = 1024;
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
    nnue2score: f64,
    scheme: Scheme,
    pool: ThreadPool,
    /// Gradients of the accumulators: [positions, 2, l1].
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

/// What a shard gives back.
struct Shard {
    sums: Sums,
    ft_biases: Vec<f32>,
    layers: Vec<[Vec<f32>; 2]>,
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
        let (first, second) = (zeros(&net), zeros(&net));
        let (nnue2score, scheme) = (f64::from(scheme.nnue2score), scheme.clone());
        let (gradients, transposed) = (Vec::new(), Transposed::default());
        let factored = factors.map(|factors| Factored::new(factors, &net.ft_weights, net.shape.l1));
        let slow = (recipe.optimiser == Optimiser::Ranger).then(|| Slow::of(&net, factored.as_ref()));
        Ok(Model {
            net,
            factored,
            first,
            second,
            slow,
            step: 0,
            recipe,
            loss,
            nnue2score,
            scheme,
            pool,
            gradients,
            transposed,
        })
    }

    /// One Adam step along the gradient of the batch's mean loss; gives the loss before the step. When that is not
    /// finite, no step is taken.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn train(&mut self, batch: &Batch<'_>, learning_rate: f64) -> Result<Sums, TrainError> {
        let l1 = self.net.shape.l1;
        let features = self.net.shape.features as usize;
        self.gradients.resize(batch.positions() * 2 * l1, 0.0);
        let dense = on_grid(&self.net.layers, &self.scheme);
        let (net, loss, nnue2score) = (&self.net, &self.loss, self.nnue2score);
        let (gradients, transposed) = (&mut self.gradients, &mut self.transposed);
        let shards = self.pool.install(|| {
            let forwards_and_backwards = || {
                let chunk = shard_samples(batch) * batch.positions_per_sample() * 2 * l1;
                let shards = gradients.par_chunks_mut(chunk).enumerate();
                shards
                    .map(|(number, gradients)| train_shard(net, &dense, loss, nnue2score, batch, number, gradients))
                    .collect::<Result<Vec<Shard>, TrainError>>()
            };
            rayon::join(forwards_and_backwards, || transposed.fill(batch.rows, features)).0
        })?;
        let mut shards = shards.into_iter();
        let Some(first) = shards.next() else { return Ok(Sums::default()) };
        let sum = shards.fold(first, |sum, shard| sum.plus(&shard));
        if sum.sums.loss.is_finite() {
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
        Ok(sum.sums)
    }

    /// The losses of a batch, summed; adds what the neurons did.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn observe(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<Sums, TrainError> {
        let dense = on_grid(&self.net.layers, &self.scheme);
        let shards = batch.samples.div_ceil(shard_samples(batch));
        let shards: Vec<(Sums, Activity)> = self.pool.install(|| {
            let shards = (0..shards).into_par_iter();
            shards
                .map(|number| evaluate_shard(&self.net, &dense, &self.loss, self.nnue2score, batch, number))
                .collect::<Result<_, TrainError>>()
        })?;
        let mut sums = Sums::default();
        for (shard, seen) in &shards {
            sums.add(*shard);
            activity.add(seen);
        }
        Ok(sums)
    }

    /// √Σ g² over the network's parameters, factors merged.
    fn gradient_length(&self, sum: &Shard) -> f64 {
        let square = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        let (l1, features) = (self.net.shape.l1, self.net.shape.features as usize);
        let rows: Vec<f64> = self.pool.install(|| {
            let row = |gradient: &mut Vec<f32>, feature| {
                gradient.fill(0.0);
                add_rows(gradient, &self.gradients, self.transposed.of(feature));
                square(gradient)
            };
            (0..features).into_par_iter().map_init(|| vec![0.0; l1], row).collect()
        });
        let layers: f64 = sum.layers.iter().flatten().map(|values| square(values)).sum();
        (rows.iter().sum::<f64>() + square(&sum.ft_biases) + layers).sqrt()
    }

    fn update(&mut self, adam: Adam, sum: &Shard) {
        let Model { net, factored, first, second, scheme, pool, gradients, transposed, .. } = self;
        let (l1, limits) = (net.shape.l1, scheme.limits());
        let ft_limit = limits.feature_transformer as f32;
        pool.install(|| {
            if let Some(factored) = factored {
                let moments = [&mut first.ft_weights[..], &mut second.ft_weights[..]];
                return factored.update(adam, &mut net.ft_weights, moments, (gradients, transposed), ft_limit);
            }
            let rows = net
                .ft_weights
                .par_chunks_mut(l1 * TASK_ROWS)
                .zip(first.ft_weights.par_chunks_mut(l1 * TASK_ROWS))
                .zip(second.ft_weights.par_chunks_mut(l1 * TASK_ROWS));
            rows.enumerate().for_each_init(
                || vec![0.0; l1],
                |gradient, (task, ((parameters, first), second))| {
                    let rows = parameters.chunks_mut(l1).zip(first.chunks_mut(l1)).zip(second.chunks_mut(l1));
                    for (row, ((parameters, first), second)) in rows.enumerate() {
                        gradient.fill(0.0);
                        add_rows(gradient, gradients, transposed.of(task * TASK_ROWS + row));
                        adam.update(Slice { parameters, first, second }, gradient, ft_limit);
                    }
                },
            );
        });
        let slice =
            Slice { parameters: &mut net.ft_biases, first: &mut first.ft_biases, second: &mut second.ft_biases };
        adam.without_decay().update(slice, &sum.ft_biases, ft_limit);
        let last = net.layers.len() - 1;
        let layers = net.layers.iter_mut().zip(&mut first.layers).zip(&mut second.layers).zip(&sum.layers);
        for (index, (((layer, first), second), [weights, biases])) in layers.enumerate() {
            let limit = if index == last { limits.output } else { limits.hidden };
            adam.update(slice_of(layer, first, second, |layer| &mut layer.weights), weights, limit as f32);
            let adam = adam.without_decay();
            adam.update(slice_of(layer, first, second, |layer| &mut layer.biases), biases, f32::INFINITY);
        }
    }
}

fn slice_of<'a>(
    layer: &'a mut Dense,
    first: &'a mut Dense,
    second: &'a mut Dense,
    part: fn(&mut Dense) -> &mut Vec<f32>,
) -> Slice<'a> {
    Slice { parameters: part(layer), first: part(first), second: part(second) }
}

impl Shard {
    fn plus(mut self, other: &Shard) -> Shard {
        let add = |sum: &mut [f32], more: &[f32]| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        self.sums.add(other.sums);
        add(&mut self.ft_biases, &other.ft_biases);
        for (layer, more) in self.layers.iter_mut().zip(&other.layers) {
            layer.iter_mut().zip(more).for_each(|(sum, more)| add(sum, more));
        }
        self
    }
}

fn shard_samples(batch: &Batch<'_>) -> usize {
    SHARD_POSITIONS / batch.positions_per_sample()
}

fn samples_of(batch: &Batch<'_>, shard: usize) -> Range<usize> {
    let samples = shard_samples(batch);
    shard * samples..((shard + 1) * samples).min(batch.samples)
}

/// The clipped accumulators of some samples, side to move then other: [positions, 2·l1].
fn activations(net: &FloatNet, batch: &Batch<'_>, samples: &Range<usize>) -> Vec<f32> {
    let positions = samples.start * batch.positions_per_sample()..samples.end * batch.positions_per_sample();
    let mut values = net.ft_biases.repeat(2 * positions.len());
    let active = positions.flat_map(|position| batch.rows.map(|rows| rows.of(position)));
    for (accumulator, active) in values.chunks_exact_mut(net.shape.l1).zip(active) {
        add_rows(accumulator, &net.ft_weights, active);
        clip(accumulator);
    }
    values
}

fn tensor(activations: &[f32], net: &FloatNet) -> Result<Tensor, TchError> {
    Tensor::f_from_slice(activations)?.f_view([-1, 2 * net.shape.l1 as i64])
}

fn evaluate_shard(
    net: &FloatNet,
    dense: &[Dense],
    loss: &Loss,
    nnue2score: f64,
    batch: &Batch<'_>,
    shard: usize,
) -> Result<(Sums, Activity), TrainError> {
    let samples = samples_of(batch, shard);
    let head = Head::new(dense, nnue2score, false)?;
    let activations = activations(net, batch, &samples);
    let out = head.forward(&tensor(&activations, net)?)?;
    let labels = batch.labels.part(samples.clone());
    let (sums, _) = sums(loss, &out, labels, samples.len())?;
    Ok((sums, Activity::of(&activations, net.shape.l1)))
}

fn sums(loss: &Loss, out: &Tensor, labels: Labels<'_>, samples: usize) -> Result<(Sums, Tensor), TrainError> {
    let losses = loss.of(out, labels)?;
    let preferred = match &losses.preferred {
        Some(preferred) => total(preferred)? as u64,
        None => 0,
    };
    Ok((Sums { samples: samples as u64, loss: total(&losses.each.f_detach()?)?, preferred }, losses.each))
}

/// Writes the gradients of the shard's accumulators into `gradients`.
fn train_shard(
    net: &FloatNet,
    dense: &[Dense],
    loss: &Loss,
    nnue2score: f64,
    batch: &Batch<'_>,
    shard: usize,
    gradients: &mut [f32],
) -> Result<Shard, TrainError> {
    let samples = samples_of(batch, shard);
    let head = Head::new(dense, nnue2score, true)?;
    let activations = activations(net, batch, &samples);
    let leaf = tensor(&activations, net)?.set_requires_grad(true);
    let out = head.forward(&leaf)?;
    let (sums, each) = sums(loss, &out, batch.labels.part(samples.clone()), samples.len())?;
    each.f_sum(None)?.f_div_scalar(batch.samples as f64)?.f_backward()?;
    copy_gradient(&leaf, gradients)?;
    clip_backwards(gradients, &activations);
    let mut ft_biases = vec![0.0; net.shape.l1];
    for accumulator in gradients.chunks_exact(net.shape.l1) {
        ft_biases.iter_mut().zip(accumulator).for_each(|(sum, value)| *sum += value);
    }
    Ok(Shard { sums, ft_biases, layers: head.gradients()? })
}

#[cfg(test)]
mod tests;
