//! The three loops evaluation spends its time in, one implementation a kind of CPU.
//!
//! [`Scalar`] says what they mean; every other back end gives the same integers (property-tested below). Holding a back
//! end proves that the CPU can run it.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
pub use scalar::Scalar;

/// Every width the kernels see is a multiple of this many elements.
pub const LANES: usize = 32;

/// What a back end can do. Widths are multiples of [`LANES`]; activations are at most 127.
pub trait Kernels: Copy {
    /// Adds and subtracts rows of `table` (`accumulator.len()` wide), modulo 2^16.
    fn update(self, accumulator: &mut [i16], table: &[i16], added: &[u32], removed: &[u32]);

    /// `output[i] = clamp(accumulator[i], 0, one)`; equal lengths.
    fn crelu(self, accumulator: &[i16], one: u8, output: &mut [u8]);

    /// `sums[o] = biases[o] + Σ weights[o * input.len() + i] · input[i]`.
    fn affine(self, input: &[u8], weights: &[i8], biases: &[i32], sums: &mut [i32]);
}

/// A back end this CPU has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BackEnd {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl BackEnd {
    /// Those this CPU has, slowest first.
    #[must_use]
    pub fn available() -> Vec<BackEnd> {
        let vector = [
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(BackEnd::Avx2),
        ];
        std::iter::once(BackEnd::Scalar(Scalar)).chain(vector.into_iter().flatten()).collect()
    }

    /// The fastest this CPU has.
    #[must_use]
    pub fn best() -> BackEnd {
        BackEnd::available().pop().unwrap_or(BackEnd::Scalar(Scalar))
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BackEnd::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(_) => "avx2",
        }
    }
}

impl Kernels for BackEnd {
    fn update(self, accumulator: &mut [i16], table: &[i16], added: &[u32], removed: &[u32]) {
        match self {
            BackEnd::Scalar(kernels) => kernels.update(accumulator, table, added, removed),
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(kernels) => kernels.update(accumulator, table, added, removed),
        }
    }

    fn crelu(self, accumulator: &[i16], one: u8, output: &mut [u8]) {
        match self {
            BackEnd::Scalar(kernels) => kernels.crelu(accumulator, one, output),
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(kernels) => kernels.crelu(accumulator, one, output),
        }
    }

    fn affine(self, input: &[u8], weights: &[i8], biases: &[i32], sums: &mut [i32]) {
        match self {
            BackEnd::Scalar(kernels) => kernels.affine(input, weights, biases, sums),
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(kernels) => kernels.affine(input, weights, biases, sums),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs `work` on every back end and demands the scalar result.
    fn check<T: PartialEq + std::fmt::Debug>(work: impl Fn(BackEnd) -> T) {
        let expected = work(BackEnd::Scalar(Scalar));
        for back_end in BackEnd::available() {
            assert_eq!(work(back_end), expected, "{}", back_end.name());
        }
    }

    const ROWS: u32 = 8;

    fn table(blocks: usize) -> impl Strategy<Value = (Vec<i16>, Vec<i16>)> {
        let numbers = |count| prop::collection::vec(any::<i16>(), count);
        (numbers(blocks * LANES), numbers(blocks * LANES * ROWS as usize))
    }

    fn layer() -> impl Strategy<Value = (Vec<u8>, Vec<i8>, Vec<i32>)> {
        (1usize..6, 1usize..11).prop_flat_map(|(blocks, outputs)| {
            let inputs = blocks * LANES;
            let weights = prop_oneof![any::<i8>(), Just(i8::MIN), Just(i8::MAX)];
            (
                prop::collection::vec(prop_oneof![0u8..=127, Just(127)], inputs),
                prop::collection::vec(weights, inputs * outputs),
                prop::collection::vec(-1_000_000_000..1_000_000_000, outputs),
            )
        })
    }

    proptest! {
        #[test]
        fn updates_agree(
            (start, table) in (1usize..12).prop_flat_map(table),
            added in prop::collection::vec(0..ROWS, 0..6),
            removed in prop::collection::vec(0..ROWS, 0..6),
        ) {
            check(|back_end| {
                let mut accumulator = start.clone();
                back_end.update(&mut accumulator, &table, &added, &removed);
                accumulator
            });
        }

        #[test]
        fn activations_agree((values, _) in (1usize..6).prop_flat_map(table), one in 1u8..=127) {
            check(|back_end| {
                let mut output = vec![0; values.len()];
                back_end.crelu(&values, one, &mut output);
                output
            });
        }

        #[test]
        fn layers_agree((input, weights, biases) in layer()) {
            check(|back_end| {
                let mut sums = vec![0; biases.len()];
                back_end.affine(&input, &weights, &biases, &mut sums);
                sums
            });
        }
    }

    #[test]
    fn scalar_by_hand() {
        let mut accumulator = [i16::MAX; LANES];
        let mut table = vec![1i16; LANES];
        table.extend([2; LANES]);
        Scalar.update(&mut accumulator, &table, &[0, 1, 1], &[0]);
        assert_eq!(accumulator, [i16::MIN + 3; LANES]);
        let mut output = [9; 3];
        Scalar.crelu(&[-5, 5, 500], 127, &mut output);
        assert_eq!(output, [0, 5, 127]);
        let mut sums = [0; 2];
        Scalar.affine(&[1, 2], &[3, 4, -5, -6], &[10, 20], &mut sums);
        assert_eq!(sums, [21, 3]);
    }
}
