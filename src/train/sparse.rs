//! The feature transformer's sums on the CPU: of weight rows forward, of gradient rows backward.
//!
//! Forward, positions are independent. Backward, the batch is transposed first ([`TransposedBatch`]); then each feature
//! adds the gradients of the accumulators in which it was active, in the order of the batch. So any number of threads
//! gives the same bits.

use super::lanes::{Kernel, LANES, Lanes};

/// out += Σ rows[i] over `selected`.
///
/// # Panics
/// If a selected row does not exist.
pub struct AddRows<'a, I> {
    /// A row's length.
    pub out: &'a mut [f32],
    /// [rows, row's length]
    pub rows: &'a [f32],
    pub selected: &'a [I],
}

impl<I: RowIndex> Kernel for AddRows<'_, I> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) {
        add_rows::<V, I>(proof, Start::Out, self.out, self.rows, self.selected);
    }
}

/// The index of a row, as batches (i32) and [`TransposedBatch`] (u32) store it.
pub trait RowIndex: Copy {
    fn row(self) -> usize;
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

/// What a sum of rows begins with.
#[derive(Copy, Clone)]
pub enum Start<'a> {
    Zeros,
    /// The values that the output holds.
    Out,
    From(&'a [f32]),
}

/// out = start + Σ rows[i] over `selected`, all of the same length. Column by column, the rows are added in order.
///
/// # Panics
/// If a selected row does not exist.
#[inline(always)]
pub fn add_rows<V: Lanes, I: RowIndex>(
    proof: V::Proof,
    start: Start<'_>,
    out: &mut [f32],
    rows: &[f32],
    selected: &[I],
) {
    let width = out.len();
    let mut column = 0;
    // As many columns at a time as the registers hold: rows come from beyond the L1 cache, and entire rows load faster
    // than parts of them.
    while column + LANES <= width {
        column += match (V::GROUPS >= 32, (width - column) / LANES) {
            (true, 16..) => add_groups::<V, I, 16>(proof, start, out, rows, selected, column),
            (true, 8..) => add_groups::<V, I, 8>(proof, start, out, rows, selected, column),
            (_, 4..) => add_groups::<V, I, 4>(proof, start, out, rows, selected, column),
            _ => add_groups::<V, I, 1>(proof, start, out, rows, selected, column),
        };
    }
    for column in column..width {
        let mut sum = match start {
            Start::Zeros => 0.0,
            Start::Out => out[column],
            Start::From(values) => values[column],
        };
        for index in selected {
            sum += rows[index.row() * width..][..width][column];
        }
        out[column] = sum;
    }
}

/// Adds `N` groups of columns, from `column` on. Returns the number of columns.
#[inline(always)]
fn add_groups<V: Lanes, I: RowIndex, const N: usize>(
    proof: V::Proof,
    start: Start<'_>,
    out: &mut [f32],
    rows: &[f32],
    selected: &[I],
    column: usize,
) -> usize {
    let (width, columns) = (out.len(), N * LANES);
    let mut sums = [V::splat(proof, 0.0); N];
    let values = match start {
        Start::Zeros => &[],
        Start::Out => &out[column..][..columns],
        Start::From(values) => &values[column..][..columns],
    };
    for (sum, from) in sums.iter_mut().zip(values.as_chunks().0) {
        *sum = V::load(proof, from);
    }
    for index in selected {
        let row = rows[index.row() * width + column..][..columns].as_chunks().0;
        for (sum, values) in sums.iter_mut().zip(row) {
            *sum = V::load(proof, values).add(*sum);
        }
    }
    for (to, sum) in out[column..][..columns].as_chunks_mut().0.iter_mut().zip(sums) {
        sum.store(to);
    }
    columns
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
    use super::super::lanes::BackEnd;
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
            for back_end in BackEnd::available() {
                let mut out = vec![0.25f32; width];
                back_end.run(AddRows { out: &mut out, rows: &rows, selected: &selected });
                assert_eq!(out, expected, "{}, width {width}", back_end.name());
            }
        }
    }

    /// On every CPU, a row that does not exist is not read.
    #[test]
    fn rows_that_do_not_exist_panic() {
        for number in [-1, 5, i32::MIN] {
            for width in [1, 16, 300] {
                for back_end in BackEnd::available() {
                    let (mut out, rows) = (vec![0.0; width], vec![1.0; 5 * width]);
                    let read = || back_end.run(AddRows { out: &mut out, rows: &rows, selected: &[number, 2] });
                    let read = std::panic::AssertUnwindSafe(read);
                    assert!(std::panic::catch_unwind(read).is_err(), "row {number}, width {width}");
                }
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
