//! A table of rows of floats for the kernels: each row starts on a cache line, so that none touches an extra one.

use rayon::prelude::*;

use super::lanes::padded;
use crate::engine::HugePageTable;

/// Rows of `width` floats, padded with zeros to `stride`.
pub struct PaddedRows {
    values: HugePageTable<f32>,
    width: usize,
    stride: usize,
}

impl PaddedRows {
    #[must_use]
    pub fn zeroed(rows: usize, width: usize) -> PaddedRows {
        let stride = padded(width);
        PaddedRows { values: HugePageTable::zeroed(rows * stride), width, stride }
    }

    /// Copies rows of `width` values, on the current thread pool.
    #[must_use]
    pub fn copied(values: &[f32], width: usize) -> PaddedRows {
        let mut rows = PaddedRows::zeroed(values.len() / width, width);
        let stride = rows.stride;
        let each = rows.values.par_chunks_exact_mut(stride).zip(values.par_chunks_exact(width));
        each.for_each(|(to, from)| to[..width].copy_from_slice(from));
        rows
    }

    #[must_use]
    pub const fn stride(&self) -> usize {
        self.stride
    }

    /// [rows, stride]
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// [rows, stride]
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// A row without its padding.
    #[must_use]
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.stride..][..self.width]
    }
}
