//! Vectors of numbers that start on a cache line, so that rows a multiple of 64 bytes long never straddle one more.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};

#[derive(Copy, Clone, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A fixed number of `T` (whose size divides 64), 64-byte aligned.
#[derive(Clone)]
pub struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    numbers: PhantomData<T>,
}

impl<T: Pod> Aligned<T> {
    #[must_use]
    pub fn zeroed(len: usize) -> Aligned<T> {
        const { assert!(64 % size_of::<T>() == 0) };
        let lines = vec![Line::zeroed(); (len * size_of::<T>()).div_ceil(size_of::<Line>())];
        Aligned { lines, len, numbers: PhantomData }
    }

    /// `values` in rows of `columns`, each row lengthened to `stride` with zeros.
    #[must_use]
    pub fn padded(values: &[T], columns: usize, stride: usize) -> Aligned<T> {
        let mut all = Aligned::zeroed(values.len() / columns * stride);
        for (to, from) in all.chunks_exact_mut(stride).zip(values.chunks_exact(columns)) {
            to[..columns].copy_from_slice(from);
        }
        all
    }
}

impl<T: Pod> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl<T: Pod> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_and_aligned() {
        let rows = Aligned::padded(&[1i16, 2, 3, 4, 5, 6], 3, 32);
        assert_eq!(rows.len(), 64);
        assert_eq!((&rows[..4], &rows[32..36]), (&[1, 2, 3, 0][..], &[4, 5, 6, 0][..]));
        assert_eq!(rows.as_ptr().addr() % 64, 0);
    }
}
