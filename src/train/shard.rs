//! A shard: some positions of a batch, forwards and backwards on one thread.

use std::ops::Range;

use tch::{TchError, Tensor};

use super::accumulators::{Accumulators, one};
use super::activity::Activity;
use super::batch::{Batch, Labels};
use super::dense::{Head, Input};
use super::loss::{Loss, total};
use super::memory::with_numbers;
use super::model::Sums;
use super::{TrainError, threads};
use crate::net::{Dense, FloatNet, OutputBuckets, Scheme};

/// Positions a shard at most. Part of what a run computes: sums are rounded differently with another value.
const SHARD_POSITIONS: usize = 1024;

/// What every shard of a step needs.
#[derive(Copy, Clone)]
pub struct Pass<'a> {
    pub net: &'a FloatNet,
    /// The network's, rounded to the scheme's grid.
    pub stacks: &'a [Vec<Dense>],
    pub scheme: &'a Scheme,
    pub loss: &'a Loss,
    /// [`super::Optimisation::sparsity`]
    pub sparsity: f64,
}

/// What a shard gives back.
pub struct Shard {
    pub sums: Sums,
    pub ft_biases: Vec<f32>,
    /// Of every bucket's layers, weights before biases.
    pub layers: Vec<Vec<f32>>,
}

impl Shard {
    /// Both shards' gradients; the sums stay this one's.
    #[must_use]
    pub fn plus(mut self, other: &Shard) -> Shard {
        let add = |sum: &mut [f32], more: &[f32]| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.ft_biases, &other.ft_biases);
        self.layers.iter_mut().zip(&other.layers).for_each(|(sum, more)| add(sum, more));
        self
    }
}

/// The samples of each of a batch's shards.
pub fn shards(batch: &Batch<'_>) -> impl Iterator<Item = Range<usize>> {
    let (samples, all) = (SHARD_POSITIONS / batch.positions_per_sample(), batch.samples);
    (0..all.div_ceil(samples)).map(move |shard| shard * samples..((shard + 1) * samples).min(all))
}

/// A shard's positions, those of one bucket together.
pub struct Grouped {
    /// Numbers in the batch.
    pub positions: Vec<u32>,
    pub buckets: Vec<u8>,
    /// Positions of each bucket.
    pub counts: Vec<usize>,
    /// Where each position went; none: where it was.
    places: Option<Vec<i64>>,
}

impl Grouped {
    #[must_use]
    pub fn new(batch: &Batch<'_>, samples: &Range<usize>, buckets: OutputBuckets) -> Grouped {
        let each = batch.positions_per_sample();
        let range = samples.start * each..samples.end * each;
        let mut positions: Vec<u32> = range.clone().map(|position| position as u32).collect();
        if buckets.count == 1 {
            let count = positions.len();
            return Grouped { positions, buckets: vec![0; count], counts: vec![count], places: None };
        }
        let bucket = |position: &u32| buckets.of(usize::from(batch.pieces[*position as usize])) as u8;
        positions.sort_by_key(bucket);
        let mut counts = vec![0; buckets.count];
        let mut places = vec![0; positions.len()];
        let sorted: Vec<u8> = positions.iter().map(bucket).collect();
        for (place, (position, bucket)) in positions.iter().zip(&sorted).enumerate() {
            counts[*bucket as usize] += 1;
            places[*position as usize - range.start] = place as i64;
        }
        Grouped { positions, buckets: sorted, counts, places: Some(places) }
    }

    /// `out`, which stands in this order, in the batch's.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn back(&self, out: Tensor) -> Result<Tensor, TchError> {
        match &self.places {
            None => Ok(out),
            Some(places) => out.f_index_select(0, &Tensor::f_from_slice(places)?.f_to_device(out.device())?),
        }
    }
}

impl Pass<'_> {
    /// The loss of some samples, and what the neurons did.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn evaluate(self, batch: &Batch<'_>, samples: Range<usize>) -> Result<(Sums, Activity), TrainError> {
        threads::alone();
        let grouped = Grouped::new(batch, &samples, self.net.shape.buckets);
        let accumulators = Accumulators::of(self.net, self.scheme, batch.rows, &grouped.positions)?;
        let activations = accumulators.activations();
        let psqt = accumulators.psqt(&grouped.buckets);
        let psqt = if psqt.is_empty() { None } else { Some(Tensor::f_from_slice(&psqt)?) };
        let (activation, counts) = (activations.tensor(false), &grouped.counts[..]);
        let head = Head::new(self.net, self.stacks, self.scheme, false)?;
        let out = head.forward(&Input { activations: &activation, psqt: psqt.as_ref(), counts })?;
        let labels = batch.labels.part(samples.clone());
        let (sums, _) = sums(self.loss, &grouped.back(out)?, labels, samples.len())?;
        Ok((sums, Activity::of(activations, accumulators.width(), one(self.net.shape.activation, self.scheme))))
    }

    /// The gradients of the batch's [`objective`], `weight` times, as far as these samples make them; those of their
    /// accumulators, [positions, 2, row], are written into `gradients`.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn train(
        self,
        batch: &Batch<'_>,
        weight: f64,
        samples: Range<usize>,
        gradients: &mut [f32],
    ) -> Result<Shard, TrainError> {
        threads::alone();
        let grouped = Grouped::new(batch, &samples, self.net.shape.buckets);
        let accumulators = Accumulators::of(self.net, self.scheme, batch.rows, &grouped.positions)?;
        let activations = accumulators.activations().tensor(true);
        let psqt = accumulators.psqt(&grouped.buckets);
        let psqt = if psqt.is_empty() { None } else { Some(Tensor::f_from_slice(&psqt)?.set_requires_grad(true)) };
        let head = Head::new(self.net, self.stacks, self.scheme, true)?;
        let out = head.forward(&Input { activations: &activations, psqt: psqt.as_ref(), counts: &grouped.counts })?;
        let labels = batch.labels.part(samples.clone());
        let (sums, each) = sums(self.loss, &grouped.back(out)?, labels, samples.len())?;
        objective(&each, &activations, self.sparsity, batch, weight)?.f_backward()?;

        let psqt = psqt.map(|psqt| psqt.f_grad().and_then(Vec::<f32>::try_from)).transpose()?;
        let (row, width) = (self.net.shape.row_len(), accumulators.width());
        let first = samples.start * batch.positions_per_sample();
        with_numbers(&activations.f_grad()?, |numbers| {
            for (place, (position, gradient)) in
                grouped.positions.iter().zip(numbers.chunks_exact(2 * width)).enumerate()
            {
                let out = &mut gradients[(*position as usize - first) * 2 * row..][..2 * row];
                let psqt = psqt.as_ref().map(|psqt| (grouped.buckets[place], psqt[place]));
                accumulators.backwards(place, gradient, psqt, out);
            }
        })?;
        let mut ft_biases = vec![0.0; self.net.shape.l1];
        for accumulator in gradients.chunks_exact(row) {
            ft_biases.iter_mut().zip(accumulator).for_each(|(sum, value)| *sum += value);
        }
        Ok(Shard { sums, ft_biases, layers: head.gradients()? })
    }
}

/// What is minimised, `weight` times the batch's mean loss and `sparsity` times its mean activation, as far as some of its
/// samples make them: `each` loss and the `activations` of all their positions, [positions, 2 · width].
///
/// # Errors
/// When libtorch fails.
pub fn objective(
    each: &Tensor,
    activations: &Tensor,
    sparsity: f64,
    batch: &Batch<'_>,
    weight: f64,
) -> Result<Tensor, TchError> {
    let loss = each.f_sum(None)?.f_mul_scalar(weight / batch.samples as f64)?;
    if sparsity == 0.0 {
        return Ok(loss);
    }
    let values = batch.positions() as f64 * activations.size2()?.1 as f64;
    loss.f_add(&activations.f_sum(None)?.f_mul_scalar(weight * sparsity / values)?)
}

/// The losses of some samples: their sums, and each.
///
/// # Errors
/// When libtorch fails.
pub fn sums(loss: &Loss, out: &Tensor, labels: Labels<'_>, samples: usize) -> Result<(Sums, Tensor), TrainError> {
    let losses = loss.of(out, labels)?;
    let preferred = match &losses.preferred {
        Some(preferred) => total(preferred)? as u64,
        None => 0,
    };
    Ok((Sums { samples: samples as u64, loss: total(&losses.each.f_detach()?)?, preferred }, losses.each))
}
