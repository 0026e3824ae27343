//! The kernels in plain Rust: their meaning, and the back end of every CPU without a better one.

use super::Kernels;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Scalar;

impl Kernels for Scalar {
    fn update(self, accumulator: &mut [i16], table: &[i16], added: &[u32], removed: &[u32]) {
        let width = accumulator.len();
        let row = |feature: &u32| &table[*feature as usize * width..][..width];
        for feature in added {
            accumulator.iter_mut().zip(row(feature)).for_each(|(sum, weight)| *sum = sum.wrapping_add(*weight));
        }
        for feature in removed {
            accumulator.iter_mut().zip(row(feature)).for_each(|(sum, weight)| *sum = sum.wrapping_sub(*weight));
        }
    }

    fn crelu(self, accumulator: &[i16], one: u8, output: &mut [u8]) {
        for (output, value) in output.iter_mut().zip(accumulator) {
            *output = (*value).clamp(0, i16::from(one)) as u8;
        }
    }

    fn affine(self, input: &[u8], weights: &[i8], biases: &[i32], sums: &mut [i32]) {
        for ((sum, bias), row) in sums.iter_mut().zip(biases).zip(weights.chunks_exact(input.len())) {
            *sum = bias + row.iter().zip(input).map(|(w, x)| i32::from(*w) * i32::from(*x)).sum::<i32>();
        }
    }
}
