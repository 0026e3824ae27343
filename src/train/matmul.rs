//! The matrix products of a dense layer: forward, and for the gradients of its inputs and of its weights.
//!
//! Matrices are padded: the length of a row is a multiple of [`LANES`], and the padding is zero. Every number of a
//! result is one chain of rounded multiplications with addition, in the order of the sum, so that neither the CPU nor
//! the size of the pieces that are computed at once changes a bit.

use super::lanes::{LANES, Lanes, LanesKernel};

/// out\[row\] = start + Σₖ x\[row\]\[k\] · matrix\[k\], for every row of `x`.
pub struct MatrixProduct<'a> {
    /// [rows, `stride`], of which the first `summands` of a row are read.
    pub x: &'a [f32],
    pub stride: usize,
    pub summands: usize,
    /// [summands, columns]
    pub matrix: &'a [f32],
    /// [columns]; `None`: zeros.
    pub start: Option<&'a [f32]>,
    /// [rows, columns]
    pub out: &'a mut [f32],
    pub columns: usize,
}

impl LanesKernel for MatrixProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(mut self, proof: V::Proof) {
        let rows = self.out.len() / self.columns;
        let mut column = 0;
        while column < self.columns {
            let left = self.columns - column;
            // A constant: the tiles of the other case are not compiled.
            if const { V::GROUPS >= 32 } && left >= 4 * LANES {
                self.rows_of::<V, 6, 2, 4>(proof, rows, column);
                column += 4 * LANES;
            } else if left >= 2 * LANES {
                if const { V::GROUPS >= 32 } {
                    self.rows_of::<V, 12, 4, 2>(proof, rows, column);
                } else {
                    self.rows_of::<V, 2, 1, 2>(proof, rows, column);
                }
                column += 2 * LANES;
            } else {
                if const { V::GROUPS >= 32 } {
                    self.rows_of::<V, 12, 4, 1>(proof, rows, column);
                } else {
                    self.rows_of::<V, 4, 2, 1>(proof, rows, column);
                }
                column += LANES;
            }
        }
    }
}

impl MatrixProduct<'_> {
    /// `GROUPS` groups of columns of all rows, `MOST` rows at a time, of those left `FEW` at a time, then one. Single
    /// rows wait for each addition to end before the next.
    #[inline(always)]
    fn rows_of<V: Lanes, const MOST: usize, const FEW: usize, const GROUPS: usize>(
        &mut self,
        proof: V::Proof,
        rows: usize,
        column: usize,
    ) {
        let mut row = 0;
        while row + MOST <= rows {
            self.tile::<V, MOST, GROUPS>(proof, row, column);
            row += MOST;
        }
        while row + FEW <= rows {
            self.tile::<V, FEW, GROUPS>(proof, row, column);
            row += FEW;
        }
        while row < rows {
            self.tile::<V, 1, GROUPS>(proof, row, column);
            row += 1;
        }
    }

    #[inline(always)]
    fn tile<V: Lanes, const ROWS: usize, const GROUPS: usize>(&mut self, proof: V::Proof, row: usize, column: usize) {
        let mut sums = [[V::splat(proof, 0.0); GROUPS]; ROWS];
        if let Some(start) = self.start {
            let start = &start[column..][..GROUPS * LANES].as_chunks::<LANES>().0;
            for sums in &mut sums {
                for (sum, start) in sums.iter_mut().zip(start.iter()) {
                    *sum = V::load(proof, start);
                }
            }
        }
        let mut x: [&[f32]; ROWS] = [&[]; ROWS];
        for (number, x) in x.iter_mut().enumerate() {
            *x = &self.x[(row + number) * self.stride..][..self.summands];
        }
        for (k, weights) in self.matrix.chunks_exact(self.columns).enumerate().take(self.summands) {
            let weights = weights[column..][..GROUPS * LANES].as_chunks::<LANES>().0;
            let mut groups = [V::splat(proof, 0.0); GROUPS];
            for (group, weights) in groups.iter_mut().zip(weights) {
                *group = V::load(proof, weights);
            }
            for (sums, x) in sums.iter_mut().zip(&x) {
                let factor = V::splat(proof, x[k]);
                for (sum, weights) in sums.iter_mut().zip(&groups) {
                    *sum = factor.mul_add(*weights, *sum);
                }
            }
        }
        for (number, sums) in sums.iter().enumerate() {
            let out = &mut self.out[(row + number) * self.columns + column..][..GROUPS * LANES];
            for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                sum.store(out);
            }
        }
    }
}

/// sums\[output\] += Σ_row gradients\[row\]\[output\] · x\[row\], for every output: the gradient of a layer's weights.
pub struct AddProducts<'a> {
    /// [rows, `gradient_stride`]
    pub gradients: &'a [f32],
    pub gradient_stride: usize,
    pub outputs: usize,
    /// [rows, columns]
    pub x: &'a [f32],
    pub columns: usize,
    /// [outputs, columns]
    pub sums: &'a mut [f32],
}

impl LanesKernel for AddProducts<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(mut self, proof: V::Proof) {
        let mut column = 0;
        while column < self.columns {
            if const { V::GROUPS >= 32 } && self.columns - column >= 4 * LANES {
                self.outputs_of::<V, 4, 4>(proof, column);
                column += 4 * LANES;
            } else {
                self.outputs_of::<V, 4, 1>(proof, column);
                column += LANES;
            }
        }
    }
}

impl AddProducts<'_> {
    #[inline(always)]
    fn outputs_of<V: Lanes, const OUTPUTS: usize, const GROUPS: usize>(&mut self, proof: V::Proof, column: usize) {
        let mut output = 0;
        while output + OUTPUTS <= self.outputs {
            self.tile::<V, OUTPUTS, GROUPS>(proof, output, column);
            output += OUTPUTS;
        }
        while output < self.outputs {
            self.tile::<V, 1, GROUPS>(proof, output, column);
            output += 1;
        }
    }

    #[inline(always)]
    fn tile<V: Lanes, const OUTPUTS: usize, const GROUPS: usize>(
        &mut self,
        proof: V::Proof,
        output: usize,
        column: usize,
    ) {
        let mut sums = [[V::splat(proof, 0.0); GROUPS]; OUTPUTS];
        for (number, sums) in sums.iter_mut().enumerate() {
            let from = &self.sums[(output + number) * self.columns + column..][..GROUPS * LANES];
            for (sum, from) in sums.iter_mut().zip(from.as_chunks::<LANES>().0) {
                *sum = V::load(proof, from);
            }
        }
        let rows = self.x.chunks_exact(self.columns).zip(self.gradients.chunks_exact(self.gradient_stride));
        for (x, gradients) in rows {
            let x = x[column..][..GROUPS * LANES].as_chunks::<LANES>().0;
            let gradients = &gradients[output..][..OUTPUTS];
            let mut groups = [V::splat(proof, 0.0); GROUPS];
            for (group, x) in groups.iter_mut().zip(x) {
                *group = V::load(proof, x);
            }
            for (sums, gradient) in sums.iter_mut().zip(gradients) {
                let factor = V::splat(proof, *gradient);
                for (sum, x) in sums.iter_mut().zip(&groups) {
                    *sum = factor.mul_add(*x, *sum);
                }
            }
        }
        for (number, sums) in sums.iter().enumerate() {
            let to = &mut self.sums[(output + number) * self.columns + column..][..GROUPS * LANES];
            for (to, sum) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                sum.store(to);
            }
        }
    }
}

/// out\[row\] = start + Σₖ x\[row\]\[k\] · weights\[k\]: a layer with one output. Lane n sums the k of remainder n, and
/// the lanes are added in order.
pub struct Dots<'a> {
    /// [rows, columns]
    pub x: &'a [f32],
    /// [columns]
    pub weights: &'a [f32],
    pub start: f32,
    /// [rows]
    pub out: &'a mut [f32],
}

impl LanesKernel for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) {
        const ROWS: usize = 4;
        let columns = self.weights.len();
        let mut rows = self.x.chunks_exact(columns * ROWS);
        let mut outs = self.out.chunks_exact_mut(ROWS);
        for (x, out) in rows.by_ref().zip(outs.by_ref()) {
            dots::<V, ROWS>(proof, x, self.weights, self.start, out);
        }
        let last = rows.remainder().chunks_exact(columns).zip(outs.into_remainder().chunks_exact_mut(1));
        for (x, out) in last {
            dots::<V, 1>(proof, x, self.weights, self.start, out);
        }
    }
}

#[inline(always)]
fn dots<V: Lanes, const ROWS: usize>(proof: V::Proof, x: &[f32], weights: &[f32], start: f32, out: &mut [f32]) {
    let mut rows: [&[[f32; LANES]]; ROWS] = [&[]; ROWS];
    for (row, x) in rows.iter_mut().zip(x.chunks_exact(weights.len())) {
        *row = x.as_chunks().0;
    }
    let mut sums = [V::splat(proof, 0.0); ROWS];
    for (group, weights) in weights.as_chunks().0.iter().enumerate() {
        let weights = V::load(proof, weights);
        for (sum, row) in sums.iter_mut().zip(&rows) {
            *sum = V::load(proof, &row[group]).mul_add(weights, *sum);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        let mut lanes = [0.0; LANES];
        sum.store(&mut lanes);
        *out = start;
        for lane in lanes {
            *out += lane;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::BackEnd;
    use crate::units::Seed;
    use rand::RngExt;

    /// On every back end, the numbers of plain loops to the bit.
    #[test]
    fn products_are_chains_in_the_order_of_the_sum() {
        let mut rng = Seed(3).stream("matmul", 0);
        let mut random = |count: usize| (0..count).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
        for (rows, stride, summands, columns) in [(1, 16, 5, 16), (13, 32, 32, 32), (29, 48, 33, 80), (7, 16, 1, 144)] {
            let x = random(rows * stride);
            let matrix = random(summands * columns);
            let start = random(columns);
            let mut expected = vec![0.0f32; rows * columns];
            for row in 0..rows {
                for column in 0..columns {
                    let sum = &mut expected[row * columns + column];
                    *sum = start[column];
                    for k in 0..summands {
                        *sum = x[row * stride + k].mul_add(matrix[k * columns + column], *sum);
                    }
                }
            }
            let outputs = stride - 3;
            let wide = random(rows * columns);
            let before = random(outputs * columns);
            let mut added = before.clone();
            for row in 0..rows {
                for output in 0..outputs {
                    for column in 0..columns {
                        let sum = &mut added[output * columns + column];
                        *sum = x[row * stride + output].mul_add(wide[row * columns + column], *sum);
                    }
                }
            }
            let mut dots = vec![0.25f32; rows];
            for (row, out) in dots.iter_mut().enumerate() {
                let mut lanes = [0.0f32; LANES];
                for column in 0..columns {
                    let lane = &mut lanes[column % LANES];
                    *lane = wide[row * columns + column].mul_add(start[column], *lane);
                }
                lanes.iter().for_each(|lane| *out += lane);
            }
            for back_end in BackEnd::available() {
                let name = format!("{}, {rows} × {summands} × {columns}", back_end.name());
                let mut out = vec![9.0; rows * columns];
                MatrixProduct { x: &x, stride, summands, matrix: &matrix, start: Some(&start), out: &mut out, columns }
                    .run_on(back_end);
                assert_eq!(out, expected, "{name}");
                let mut sums = before.clone();
                AddProducts { gradients: &x, gradient_stride: stride, outputs, x: &wide, columns, sums: &mut sums }
                    .run_on(back_end);
                assert_eq!(sums, added, "{name}");
                let mut out = vec![9.0; rows];
                Dots { x: &wide, weights: &start, start: 0.25, out: &mut out }.run_on(back_end);
                assert_eq!(out, dots, "{name}");
            }
        }
    }
}
