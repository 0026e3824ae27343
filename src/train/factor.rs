//! Factors in training: virtual rows beside the feature transformer's own, and their sum, which is what the network is.
//!
//! A feature's row is w = r + Σ v over its virtual inputs. So ∂L/∂r = ∂L/∂w, and ∂L/∂v is the sum of ∂L/∂w over the
//! features that have v: no batch needs to name virtual inputs.

use rayon::prelude::*;

use super::adam::{Adam, Slice};
use super::sparse::{Transposed, add_rows};
use crate::features::Factors;

/// Rows one task works on.
const TASK_ROWS: usize = 8;

/// The parts whose sum the network's rows are, with the optimiser's state of the virtual rows.
pub struct Factored {
    factors: Factors,
    width: usize,
    /// The features of each virtual input, ascending: `features[starts[v]..starts[v + 1]]`.
    starts: Vec<u32>,
    features: Vec<u32>,
    /// Rows of the features' own: [features, width]. Their moments are the network's.
    pub own: Vec<f32>,
    /// [virtual inputs, width]
    pub rows: Vec<f32>,
    pub first: Vec<f32>,
    pub second: Vec<f32>,
    /// Of the network's rows: [features, width]; those of features that the batch has not are old.
    gradients: Vec<f32>,
}

impl Factored {
    /// Virtual rows begin at zero, so that the network begins as it would without them. `rows`: the network's.
    #[must_use]
    pub fn new(factors: Factors, rows: &[f32], width: usize) -> Factored {
        let features = (rows.len() / width) as u32;
        let mut by_input: Vec<Vec<u32>> = vec![Vec::new(); factors.size as usize];
        for feature in 0..features {
            for &input in factors.inputs(feature) {
                by_input[input as usize].push(feature);
            }
        }
        let mut starts = vec![0];
        for features in &by_input {
            starts.push(starts.last().unwrap_or(&0) + features.len() as u32);
        }
        let zeros = || vec![0.0; factors.size as usize * width];
        Factored {
            width,
            starts,
            features: by_input.concat(),
            own: rows.to_vec(),
            rows: zeros(),
            first: zeros(),
            second: zeros(),
            gradients: vec![0.0; rows.len()],
            factors,
        }
    }

    /// One step of all rows: `merged` are the network's, `first` and `second` the moments of the features' own,
    /// `accumulators` the gradients of the batch's. To be called on the threads that shall do it.
    pub fn update(
        &mut self,
        adam: Adam,
        merged: &mut [f32],
        [first, second]: [&mut [f32]; 2],
        (accumulators, transposed): (&[f32], &Transposed),
        limit: f32,
    ) {
        let Factored { factors, width, starts, features, own, rows, gradients, .. } = self;
        let (width, task) = (*width, *width * TASK_ROWS);
        gradients.par_chunks_mut(task).enumerate().for_each(|(number, rows)| {
            for (row, gradient) in rows.chunks_mut(width).enumerate() {
                let active = transposed.of(number * TASK_ROWS + row);
                if !active.is_empty() {
                    gradient.fill(0.0);
                    add_rows(gradient, accumulators, active);
                }
            }
        });
        let gradients = &gradients[..];
        let seen = |feature: u32| !transposed.of(feature as usize).is_empty();
        let moments = self.first.par_chunks_mut(width).zip(self.second.par_chunks_mut(width));
        rows.par_chunks_mut(width).zip(moments).enumerate().for_each_init(
            || (vec![0.0; width], Vec::new()),
            |(gradient, picked), (input, (parameters, (first, second)))| {
                let features = &features[starts[input] as usize..starts[input + 1] as usize];
                picked.clear();
                picked.extend(features.iter().copied().filter(|&feature| seen(feature)));
                gradient.fill(0.0);
                add_rows(gradient, gradients, picked);
                adam.update(Slice { parameters, first, second }, gradient, limit);
            },
        );
        let (rows, zeros) = (&rows[..], vec![0.0; width]);
        let moments = first.par_chunks_mut(task).zip(second.par_chunks_mut(task));
        let tasks = own.par_chunks_mut(task).zip(merged.par_chunks_mut(task)).zip(moments).enumerate();
        tasks.for_each(|(number, ((own, merged), (first, second)))| {
            let moments = first.chunks_mut(width).zip(second.chunks_mut(width));
            let parts = own.chunks_mut(width).zip(merged.chunks_mut(width)).zip(moments);
            for (row, ((parameters, merged), (first, second))) in parts.enumerate() {
                let feature = number * TASK_ROWS + row;
                let gradient = if seen(feature as u32) { &gradients[feature * width..][..width] } else { &zeros };
                adam.update(Slice { parameters, first, second }, gradient, limit);
                merge(merged, parameters, rows, factors.inputs(feature as u32), limit);
            }
        });
    }
    /// Sums the parts up, for whoever changed them.
    pub fn merge(&self, merged: &mut [f32], limit: f32) {
        let rows = merged.par_chunks_mut(self.width).zip(self.own.par_chunks(self.width)).enumerate();
        rows.for_each(|(feature, (merged, own))| {
            merge(merged, own, &self.rows, self.factors.inputs(feature as u32), limit);
        });
    }
}

fn merge(merged: &mut [f32], own: &[f32], rows: &[f32], inputs: &[u32], limit: f32) {
    merged.copy_from_slice(own);
    add_rows(merged, rows, inputs);
    merged.iter_mut().for_each(|weight| *weight = weight.clamp(-limit, limit));
}
