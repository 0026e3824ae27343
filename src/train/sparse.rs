//! The feature transformer's sums on the CPU: of weight rows forward, of gradient rows backward.
//!
//! Forward, positions are independent. Backward, the batch is transposed first ([`TransposedBatch`]); then each feature
//! adds the gradients of the accumulators in which it was active, in the order of the batch. So any number of threads
//! gives the same bits.
#![allow(unsafe_code, reason = "calls of functions compiled for AVX2 and AVX-512, behind a check of the CPU")]

/// out += Σ rows[i] over `selected`, where each row has `out.len()` values.
///
/// # Panics
/// If a selected row does not exist.
pub fn add_rows<I: RowIndex>(out: &mut [f32], rows: &[f32], selected: &[I]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has AVX-512F.
            return unsafe { add_rows_avx512(out, rows, selected) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2.
            return unsafe { add_rows_avx2(out, rows, selected) };
        }
    }
    add_rows_in_blocks::<I, 32>(out, rows, selected);
}

/// The index of a row, as batches (i32) and [`TransposedBatch`] (u32) store it. The trait is sealed, since unsafe code
/// relies on `row` returning the same value twice.
pub trait RowIndex: Copy + sealed::Sealed {
    fn row(self) -> usize;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for u32 {}
}

impl RowIndex for i32 {
    fn row(self) -> usize {
        self as usize
    }
}

impl RowIndex for u32 {
    fn row(self) -> usize {
        self as usize
    }
}

/// As [`add_rows_in_blocks`], with up to 256 columns in sixteen registers. Rows come from beyond the L1 cache, and
/// entire rows load faster than parts of them.
///
/// # Panics
/// If a selected row does not exist.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn add_rows_avx512<I: RowIndex>(out: &mut [f32], rows: &[f32], selected: &[I]) {
    let width = out.len();
    let mut column = 0;
    while column < width {
        column += match width - column {
            256.. => add_registers::<I, 16>(out, rows, selected, column),
            128.. => add_registers::<I, 8>(out, rows, selected, column),
            64.. => add_registers::<I, 4>(out, rows, selected, column),
            16.. => add_registers::<I, 1>(out, rows, selected, column),
            _ => {
                add_columns(std::array::from_mut(&mut out[column]), rows, selected, width, column);
                1
            }
        };
    }
}

/// Adds 16·N columns, from `column` on, and returns their number.
///
/// # Panics
/// If there are fewer, or a selected row does not exist.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn add_registers<I: RowIndex, const N: usize>(out: &mut [f32], rows: &[f32], selected: &[I], column: usize) -> usize {
    use std::arch::x86_64::{__m512, _mm512_add_ps, _mm512_loadu_ps, _mm512_setzero_ps, _mm512_storeu_ps};
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(from: &[f32; 16]) -> __m512 {
        // SAFETY: the array has 64 bytes; unaligned addresses are allowed.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    let width = out.len();
    let out = out[column..].as_chunks_mut::<16>().0.first_chunk_mut::<N>().expect("at least 16 · N columns are left");
    let mut sums = [_mm512_setzero_ps(); N];
    for register in 0..N {
        sums[register] = load(&out[register]);
    }
    for number in selected {
        let row = rows[number.row() * width + column..].as_chunks::<16>().0.first_chunk::<N>().expect("a whole row");
        for register in 0..N {
            sums[register] = _mm512_add_ps(sums[register], load(&row[register]));
        }
    }
    for register in 0..N {
        // SAFETY: the array has 64 bytes; unaligned addresses are allowed.
        unsafe { _mm512_storeu_ps(out[register].as_mut_ptr(), sums[register]) };
    }
    16 * N
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_rows_avx2<I: RowIndex>(out: &mut [f32], rows: &[f32], selected: &[I]) {
    add_rows_in_blocks::<I, 64>(out, rows, selected);
}

/// Sums `BLOCK` columns at a time, so that they stay in registers. A column's sum does not depend on the block size.
#[inline(always)]
fn add_rows_in_blocks<I: RowIndex, const BLOCK: usize>(out: &mut [f32], rows: &[f32], selected: &[I]) {
    let width = out.len();
    let (blocks, tail) = out.as_chunks_mut::<BLOCK>();
    let tail_start = width - tail.len();
    for (number, block) in blocks.iter_mut().enumerate() {
        add_columns(block, rows, selected, width, number * BLOCK);
    }
    let (blocks, tail) = tail.as_chunks_mut::<8>();
    for (number, block) in blocks.iter_mut().enumerate() {
        add_columns(block, rows, selected, width, tail_start + number * 8);
    }
    let tail_start = width - tail.len();
    for (number, value) in tail.iter_mut().enumerate() {
        add_columns(std::array::from_mut(value), rows, selected, width, tail_start + number);
    }
}

#[inline(always)]
fn add_columns<I: RowIndex, const N: usize>(
    out: &mut [f32; N],
    rows: &[f32],
    selected: &[I],
    width: usize,
    column: usize,
) {
    let mut sums = *out;
    for number in selected {
        let start = number.row() * width + column;
        for (sum, value) in sums.iter_mut().zip(&rows[start..start + N]) {
            *sum += value;
        }
    }
    *out = sums;
}

/// A batch by feature instead of by position: for each feature, the accumulators in which it is active, in the batch's
/// order. The accumulators of position p are 2p (side to move) and 2p + 1.
#[derive(Debug, Default)]
pub struct TransposedBatch {
    /// features + 1 offsets: feature f's accumulators are `accumulators[starts[f]..starts[f + 1]]`.
    starts: Vec<u32>,
    accumulators: Vec<u32>,
}

impl TransposedBatch {
    /// Transposes the active features of some positions, those of the side to move before the other's. The first
    /// position has number `first`. Memory is reused.
    pub fn fill<'a>(&mut self, positions: impl Iterator<Item = [&'a [i32]; 2]> + Clone, first: usize, features: usize) {
        // The counts are stored two elements further: after summing, `starts[f + 1]` is where f begins and serves as
        // its cursor.
        self.starts.clear();
        self.starts.resize(features + 2, 0);
        for &feature in positions.clone().flatten().flatten() {
            self.starts[feature as usize + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.accumulators.clear();
        self.accumulators.resize(sum as usize, 0);
        for (accumulator, active) in (2 * first as u32..).zip(positions.flatten()) {
            for &feature in active {
                let cursor = &mut self.starts[feature as usize + 1];
                self.accumulators[*cursor as usize] = accumulator;
                *cursor += 1;
            }
        }
    }

    /// The accumulators in which `feature` is active.
    #[must_use]
    pub fn of(&self, feature: usize) -> &[u32] {
        &self.accumulators[self.starts[feature] as usize..self.starts[feature + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn rows_add_up_at_every_width() {
        let mut rng = Seed(5).stream("sparse", 0);
        for width in [1, 3, 8, 15, 32, 64, 72, 77, 128, 200, 264, 511] {
            let rows: Vec<f32> = (0..50 * width).map(|_| rng.random_range(-1.0..1.0)).collect();
            let selected: Vec<u32> = (0..20).map(|_| rng.random_range(0..50)).collect();
            let mut expected = vec![0.25f32; width];
            for &row in &selected {
                for (sum, value) in expected.iter_mut().zip(&rows[row as usize * width..]) {
                    *sum += value;
                }
            }
            let check = |name, sum: fn(&mut [f32], &[f32], &[u32])| {
                let mut out = vec![0.25f32; width];
                sum(&mut out, &rows, &selected);
                assert_eq!(out, expected, "{name}, width {width}");
            };
            check("detected", add_rows);
            check("plain", add_rows_in_blocks::<u32, 32>);
            check("in blocks as for AVX2", add_rows_in_blocks::<u32, 64>);
        }
    }

    /// On every CPU, a row that does not exist is not read.
    #[test]
    fn rows_that_do_not_exist_panic() {
        for number in [-1, 5, i32::MIN] {
            for width in [1, 16, 300] {
                let read = || add_rows(&mut vec![0.0; width], &vec![1.0; 5 * width], &[number, 2]);
                assert!(std::panic::catch_unwind(read).is_err(), "row {number}, width {width}");
            }
        }
    }

    #[test]
    fn transposing_keeps_all_features_in_order() {
        let positions: [[&[i32]; 2]; 3] = [[&[3, 1], &[1]], [&[], &[3]], [&[0, 3, 3], &[]]];
        let mut transposed = TransposedBatch::default();
        for first in [0, 10] {
            transposed.fill(positions.into_iter(), first, 4);
            let all: Vec<&[u32]> = (0..4).map(|feature| transposed.of(feature)).collect();
            let at = |accumulator: u32| 2 * first as u32 + accumulator;
            assert_eq!(all, [&[at(4)][..], &[at(0), at(1)], &[], &[at(0), at(3), at(4), at(4)]]);
        }
    }
}
