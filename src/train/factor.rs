//! Factors in training. A feature's row in the network is the sum of its own row and the rows of its virtual inputs,
//! w = r + Σ v. So ∂L/∂r = ∂L/∂w, and ∂L/∂v is the sum of ∂L/∂w over the features that have v: batches need not name
//! virtual inputs.

use rayon::prelude::*;

use super::adam::{Adam, ParameterSlice};
use super::gradient::FtGradients;
use super::row_limits::RowLimits;
use super::sparse::add_rows;
use crate::features::Factors;

/// Rows per task.
const TASK_ROWS: usize = 8;

/// The summands of the network's rows, with the moments of the virtual rows.
pub struct FactoredRows {
    factors: Factors,
    width: usize,
    /// The features of each virtual input, ascending: `features[starts[v]..starts[v + 1]]`.
    starts: Vec<u32>,
    features: Vec<u32>,
    /// The features' own rows, [features, width]. Their moments are stored as those of the network's rows.
    pub own: Vec<f32>,
    /// [virtual inputs, width]
    pub virtual_rows: Vec<f32>,
    pub first_moments: Vec<f32>,
    pub second_moments: Vec<f32>,
}

impl FactoredRows {
    /// Virtual rows begin at zero, so that the network begins as it would without them. `rows` are the network's.
    #[must_use]
    pub fn new(factors: Factors, rows: &[f32], width: usize) -> FactoredRows {
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
        FactoredRows {
            width,
            starts,
            features: by_input.concat(),
            own: rows.to_vec(),
            virtual_rows: zeros(),
            first_moments: zeros(),
            second_moments: zeros(),
            factors,
        }
    }

    #[must_use]
    pub const fn factors(&self) -> &Factors {
        &self.factors
    }

    /// One step of all rows. `merged` are the network's rows, `first` and `second` the moments of the features' own
    /// rows and `gradients` the summed gradients of the rows. Runs on the current thread pool.
    pub fn update(
        &mut self,
        adam: Adam,
        merged: &mut [f32],
        [first, second]: [&mut [f32]; 2],
        gradients: &FtGradients,
        limits: RowLimits,
    ) {
        let FactoredRows { factors, width, starts, features, own, virtual_rows, first_moments, second_moments } = self;
        let (width, task) = (*width, *width * TASK_ROWS);
        let in_batch = |feature: u32| gradients.has(feature as usize);
        let gradients = gradients.rows();
        let moments = first_moments.par_chunks_mut(width).zip(second_moments.par_chunks_mut(width));
        virtual_rows.par_chunks_mut(width).zip(moments).enumerate().for_each_init(
            || (vec![0.0; width], Vec::new()),
            |(gradient, selected), (input, (parameters, (first, second)))| {
                let features = &features[starts[input] as usize..starts[input + 1] as usize];
                selected.clear();
                selected.extend(features.iter().copied().filter(|&feature| in_batch(feature)));
                gradient.fill(0.0);
                add_rows(gradient, gradients, selected);
                adam.update(ParameterSlice { parameters, first, second }, gradient, limits.all);
            },
        );
        let (virtual_rows, zeros) = (&virtual_rows[..], vec![0.0; width]);
        let moments = first.par_chunks_mut(task).zip(second.par_chunks_mut(task));
        let tasks = own.par_chunks_mut(task).zip(merged.par_chunks_mut(task)).zip(moments).enumerate();
        tasks.for_each(|(number, ((own, merged), (first, second)))| {
            let moments = first.chunks_mut(width).zip(second.chunks_mut(width));
            let rows = own.chunks_mut(width).zip(merged.chunks_mut(width)).zip(moments);
            for (row, ((parameters, merged), (first, second))) in rows.enumerate() {
                let feature = number * TASK_ROWS + row;
                let gradient = if in_batch(feature as u32) { &gradients[feature * width..][..width] } else { &zeros };
                adam.update(ParameterSlice { parameters, first, second }, gradient, limits.all);
                merge_row(merged, parameters, virtual_rows, (factors, feature), limits);
            }
        });
    }

    /// Recomputes the network's rows from their summands.
    pub fn merge(&self, merged: &mut [f32], limits: RowLimits) {
        let rows = merged.par_chunks_mut(self.width).zip(self.own.par_chunks(self.width)).enumerate();
        rows.for_each(|(feature, (merged, own))| {
            merge_row(merged, own, &self.virtual_rows, (&self.factors, feature), limits);
        });
    }
}

fn merge_row(
    merged: &mut [f32],
    own: &[f32],
    virtual_rows: &[f32],
    (factors, feature): (&Factors, usize),
    limits: RowLimits,
) {
    merged.copy_from_slice(own);
    add_rows(merged, virtual_rows, factors.inputs(feature as u32));
    merged.iter_mut().for_each(|weight| *weight = weight.clamp(-limits.all, limits.all));
    limits.clamp_narrow(feature, merged);
}
