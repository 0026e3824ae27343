//! The feature transformer's sums on the CPU: of weight rows forward, of gradient rows backward.
//!
//! Forward, positions are independent. Backward, the batch is transposed first ([`TransposedBatch`]); then each feature
//! adds the gradients of the accumulators in which it was active, in the order of the batch. So any number of threads
//! gives the same bits.

use std::ops::Range;

use super::lanes::{LANES, Lanes, LanesKernel};

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

impl<I: RowIndex> LanesKernel for AddRows<'_, I> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) {
        add_rows::<V, I>(proof, Start::Out, self.out, self.rows, self.selected);
    }
}

/// out += Σ rows, all of them in order.
pub struct AddAllRows<'a> {
    /// A row's length, a multiple of [`LANES`].
    pub out: &'a mut [f32],
    /// [rows, row's length]
    pub rows: &'a [f32],
}

impl LanesKernel for AddAllRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) {
        // Several rows at a time: each is then read from its first column to its last, as caches prefetch.
        const ROWS: usize = 8;
        let width = self.out.len();
        let mut blocks = self.rows.chunks_exact(ROWS * width);
        for rows in blocks.by_ref() {
            add_block::<V, ROWS>(proof, self.out, rows);
        }
        for row in blocks.remainder().chunks_exact(width) {
            add_block::<V, 1>(proof, self.out, row);
        }
    }
}

#[inline(always)]
fn add_block<V: Lanes, const ROWS: usize>(proof: V::Proof, out: &mut [f32], rows: &[f32]) {
    let mut each: [&[[f32; LANES]]; ROWS] = [&[]; ROWS];
    for (row, values) in each.iter_mut().zip(rows.chunks_exact(out.len())) {
        *row = values.as_chunks().0;
    }
    for (group, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let mut sum = V::load(proof, out);
        for row in &each {
            sum = V::load(proof, &row[group]).add(sum);
        }
        sum.store(out);
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

/// The start of a sum of rows.
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
        let groups = (width - column) / LANES;
        // A constant: what needs more registers than there are is not compiled.
        column += if const { V::GROUPS >= 32 } && groups >= 8 {
            match groups {
                17 => add_groups::<V, I, 17>(proof, start, out, rows, selected, column),
                16.. => add_groups::<V, I, 16>(proof, start, out, rows, selected, column),
                _ => add_groups::<V, I, 8>(proof, start, out, rows, selected, column),
            }
        } else {
            match groups {
                4.. => add_groups::<V, I, 4>(proof, start, out, rows, selected, column),
                _ => add_groups::<V, I, 1>(proof, start, out, rows, selected, column),
            }
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
    let width = out.len();
    let columns = N * LANES;
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
    /// The features that are active, ascending.
    features: Vec<u32>,
    /// One more than features: the accumulators of `features[n]` are `accumulators[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    accumulators: Vec<u32>,
    /// Of every feature: how often it is active, then where its next accumulator goes. Zeros between two fills.
    cursors: Vec<u32>,
}

impl TransposedBatch {
    /// Transposes the active features of some positions, the side to move's before the other's. The first position has
    /// number `first`. Memory is reused.
    pub fn fill<'a>(&mut self, positions: impl Iterator<Item = [&'a [i32]; 2]> + Clone, first: usize, features: usize) {
        let TransposedBatch { features: active, starts, accumulators, cursors } = self;
        cursors.resize(features, 0);
        // Nested loops: flattened iterators take twice as long.
        for sides in positions.clone() {
            for side in sides {
                side.iter().for_each(|&feature| cursors[feature as usize] += 1);
            }
        }
        active.clear();
        starts.clear();
        let mut sum = 0;
        for (group, cursors) in cursors.chunks_mut(LANES).enumerate() {
            // Most features of a large set are not active.
            if cursors.iter().fold(0, |any, count| any | count) == 0 {
                continue;
            }
            for (feature, cursor) in (group * LANES..).zip(cursors).filter(|(_, count)| **count > 0) {
                active.push(feature as u32);
                starts.push(sum);
                sum += std::mem::replace(cursor, sum);
            }
        }
        starts.push(sum);
        accumulators.clear();
        accumulators.resize(sum as usize, 0);
        let mut accumulator = 2 * first as u32;
        for sides in positions {
            for side in sides {
                for &feature in side {
                    let cursor = &mut cursors[feature as usize];
                    accumulators[*cursor as usize] = accumulator;
                    *cursor += 1;
                }
                accumulator += 1;
            }
        }
        for &feature in &*active {
            cursors[feature as usize] = 0;
        }
    }

    /// How often the features below `feature` are active in all.
    #[must_use]
    pub fn before(&self, feature: usize) -> usize {
        self.starts.get(self.index(feature)).map_or(0, |start| *start as usize)
    }

    /// The active ones of some consecutive features, ascending, each with its accumulators.
    pub fn within(&self, features: Range<usize>) -> impl Iterator<Item = (usize, &[u32])> {
        (self.index(features.start)..self.index(features.end)).map(|index| {
            let accumulators = &self.accumulators[self.starts[index] as usize..self.starts[index + 1] as usize];
            (self.features[index] as usize, accumulators)
        })
    }

    /// The number of active features below `feature`.
    fn index(&self, feature: usize) -> usize {
        self.features.partition_point(|active| (*active as usize) < feature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::BackEnd;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn rows_add_up_at_every_width() {
        let mut rng = Seed(5).stream("sparse", 0);
        for width in [1, 3, 8, 15, 32, 64, 72, 77, 128, 200, 264, 272, 511] {
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
                AddRows { out: &mut out, rows: &rows, selected: &selected }.run_on(back_end);
                assert_eq!(out, expected, "{}, width {width}", back_end.name());
            }
        }
    }

    #[test]
    fn all_rows_add_up_in_order() {
        let mut rng = Seed(5).stream("sparse", 1);
        for (width, count) in [(16, 1), (48, 7), (64, 8), (272, 29)] {
            let rows: Vec<f32> = (0..count * width).map(|_| rng.random_range(-1.0..1.0)).collect();
            let mut expected = vec![0.25f32; width];
            for row in rows.chunks_exact(width) {
                expected.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            for back_end in BackEnd::available() {
                let mut out = vec![0.25f32; width];
                AddAllRows { out: &mut out, rows: &rows }.run_on(back_end);
                assert_eq!(out, expected, "{}, {count} rows of {width}", back_end.name());
            }
        }
    }

    /// On every CPU, a row that does not exist is not read.
    #[test]
    fn rows_that_do_not_exist_panic() {
        for number in [-1, 5, i32::MIN] {
            for width in [1, 16, 300] {
                for back_end in BackEnd::available() {
                    let mut out = vec![0.0; width];
                    let rows = vec![1.0; 5 * width];
                    let read = || AddRows { out: &mut out, rows: &rows, selected: &[number, 2] }.run_on(back_end);
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
            let at = |accumulator: u32| 2 * first as u32 + accumulator;
            let expected = [(0, &[at(4)][..]), (1, &[at(0), at(1)]), (3, &[at(0), at(3), at(4), at(4)])];
            assert_eq!(transposed.within(0..4).collect::<Vec<_>>(), expected);
            assert_eq!(transposed.within(1..3).collect::<Vec<_>>(), expected[1..2]);
            assert_eq!([0, 1, 2, 3, 4].map(|feature| transposed.before(feature)), [0, 1, 3, 3, 7]);
        }
    }
}
