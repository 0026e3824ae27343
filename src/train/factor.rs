//! Factors in training. A feature's row in the network is the sum of its own row and the rows of its virtual inputs,
//! w = r + Σ v. So ∂L/∂r = ∂L/∂w, and ∂L/∂v is the sum of ∂L/∂w over the features that have v: batches need not name
//! virtual inputs.

use rayon::prelude::*;

use super::adam::{Adam, ParameterSlice};
use super::gradient::FtGradients;
use super::lanes::{LanesKernel, padded};
use super::row_limits::RowLimits;
use super::rows::PaddedRows;
use super::sparse::AddRows;
use crate::cpu::BackEnd;
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
    /// The features' own rows, [features, width]. Their moments are stored as the moments of the network's rows.
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

    /// One step of all rows. `merged` are the network's rows, without padding and as the kernels read them; `first` and
    /// `second` are the moments of the features' own rows and `gradients` the summed gradients of the rows. Runs on the
    /// current thread pool.
    pub fn update(
        &mut self,
        adam: Adam,
        (merged, padded_rows): (&mut [f32], &mut PaddedRows),
        [first, second]: [&mut [f32]; 2],
        gradients: &FtGradients,
        limits: RowLimits,
    ) {
        let back_end = gradients.back_end();
        let FactoredRows { factors, width, starts, features, own, virtual_rows, first_moments, second_moments } = self;
        let width = *width;
        let task = width * TASK_ROWS;
        let stride = padded_rows.stride();
        let moments = first_moments.par_chunks_mut(width).zip(second_moments.par_chunks_mut(width));
        virtual_rows.par_chunks_mut(width).zip(moments).enumerate().for_each_init(
            || (vec![0.0; padded(width)], Vec::new()),
            |(gradient, selected), (input, (parameters, (first, second)))| {
                let features = &features[starts[input] as usize..starts[input + 1] as usize];
                selected.clear();
                selected.extend(features.iter().copied().filter(|&feature| gradients.has(feature as usize)));
                gradient.fill(0.0);
                AddRows { out: gradient, rows: gradients.rows(), selected }.run_on(back_end);
                adam.update(ParameterSlice { parameters, first, second }, &gradient[..width], limits.all);
            },
        );
        let virtual_rows = &virtual_rows[..];
        let zeros = vec![0.0; width];
        let moments = first.par_chunks_mut(task).zip(second.par_chunks_mut(task));
        let merged = merged.par_chunks_mut(task).zip(padded_rows.values_mut().par_chunks_mut(stride * TASK_ROWS));
        let tasks = own.par_chunks_mut(task).zip(merged).zip(moments).enumerate();
        tasks.for_each(|(number, ((own, (merged, padded_rows)), (first, second)))| {
            let moments = first.chunks_mut(width).zip(second.chunks_mut(width));
            let merged = merged.chunks_mut(width).zip(padded_rows.chunks_mut(stride));
            let rows = own.chunks_mut(width).zip(merged).zip(moments);
            for (row, ((parameters, (merged, padded_row)), (first, second))) in rows.enumerate() {
                let feature = number * TASK_ROWS + row;
                let gradient = gradients.row(feature).unwrap_or(&zeros);
                adam.update(ParameterSlice { parameters, first, second }, gradient, limits.all);
                merge_row(back_end, merged, parameters, virtual_rows, (factors, feature), limits);
                padded_row[..width].copy_from_slice(merged);
            }
        });
    }

    /// Recomputes the network's rows from their summands.
    pub fn merge(&self, merged: &mut [f32], limits: RowLimits) {
        let rows = merged.par_chunks_mut(self.width).zip(self.own.par_chunks(self.width)).enumerate();
        rows.for_each(|(feature, (merged, own))| {
            merge_row(BackEnd::best(), merged, own, &self.virtual_rows, (&self.factors, feature), limits);
        });
    }
}

fn merge_row(
    back_end: BackEnd,
    merged: &mut [f32],
    own: &[f32],
    virtual_rows: &[f32],
    (factors, feature): (&Factors, usize),
    limits: RowLimits,
) {
    merged.copy_from_slice(own);
    AddRows { out: merged, rows: virtual_rows, selected: factors.inputs(feature as u32) }.run_on(back_end);
    merged.iter_mut().for_each(|weight| *weight = weight.clamp(-limits.all, limits.all));
    limits.clamp_narrow(feature, merged);
}
