//! The kernels with 256-bit integer vectors (x86-64 CPUs since 2013).
#![allow(unsafe_code, reason = "vector loads and stores through pointers, and calls that need AVX2")]

use std::arch::x86_64::{
    __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_extract_epi32, _mm256_add_epi16, _mm256_add_epi32,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_max_epi16, _mm256_min_epi16, _mm256_packus_epi16, _mm256_permute4x64_epi64,
    _mm256_set1_epi16, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_sub_epi16,
};

use super::{Kernels, LANES};

/// Elements of a vector of i16.
const WORDS: usize = 16;

/// Proof that the CPU has AVX2.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    #[must_use]
    pub fn detect() -> Option<Avx2> {
        is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }
}

impl Kernels for Avx2 {
    fn update(self, accumulator: &mut [i16], table: &[i16], added: &[u32], removed: &[u32]) {
        // SAFETY: `detect` is the only constructor, so the CPU has AVX2.
        unsafe { update(accumulator, table, added, removed) }
    }

    fn crelu(self, accumulator: &[i16], one: u8, output: &mut [u8]) {
        // SAFETY: as above.
        unsafe { crelu(accumulator, one, output) }
    }

    fn affine(self, input: &[u8], weights: &[i8], biases: &[i32], sums: &mut [i32]) {
        // SAFETY: as above.
        unsafe { affine(input, weights, biases, sums) }
    }
}

#[target_feature(enable = "avx2")]
fn load<T: bytemuck::Pod, const N: usize>(from: &[T; N]) -> __m256i {
    const { assert!(size_of::<[T; N]>() == 32) };
    // SAFETY: the array is 32 readable bytes; an unaligned load is asked for.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn store<T: bytemuck::Pod, const N: usize>(to: &mut [T; N], value: __m256i) {
    const { assert!(size_of::<[T; N]>() == 32) };
    // SAFETY: the array is 32 writable bytes of a type any bits are valid for; an unaligned store is asked for.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

/// Tiles of the accumulator stay in registers while all rows pass.
#[target_feature(enable = "avx2")]
fn update(accumulator: &mut [i16], table: &[i16], added: &[u32], removed: &[u32]) {
    const WIDE: usize = 8;
    let width = accumulator.len();
    let (vectors, rest) = accumulator.as_chunks_mut::<WORDS>();
    debug_assert!(rest.is_empty() && vectors.len().is_multiple_of(LANES / WORDS));
    let (wide, narrow) = vectors.as_chunks_mut::<WIDE>();
    let start = wide.len() * WIDE * WORDS;
    for (tile, registers) in wide.iter_mut().enumerate() {
        update_tile(registers, table, width, tile * WIDE * WORDS, added, removed);
    }
    let (narrow, _) = narrow.as_chunks_mut::<{ LANES / WORDS }>();
    for (tile, registers) in narrow.iter_mut().enumerate() {
        update_tile(registers, table, width, start + tile * LANES, added, removed);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn update_tile<const N: usize>(
    accumulator: &mut [[i16; WORDS]; N],
    table: &[i16],
    width: usize,
    column: usize,
    added: &[u32],
    removed: &[u32],
) {
    let row = |feature: u32| -> &[[i16; WORDS]; N] {
        let row = &table[feature as usize * width + column..][..N * WORDS];
        let (vectors, _) = row.as_chunks::<WORDS>();
        vectors.first_chunk().expect("N vectors were sliced")
    };
    let mut registers = [_mm256_setzero_si256(); N];
    for (register, values) in registers.iter_mut().zip(accumulator.iter()) {
        *register = load(values);
    }
    for feature in added {
        for (register, weights) in registers.iter_mut().zip(row(*feature)) {
            *register = _mm256_add_epi16(*register, load(weights));
        }
    }
    for feature in removed {
        for (register, weights) in registers.iter_mut().zip(row(*feature)) {
            *register = _mm256_sub_epi16(*register, load(weights));
        }
    }
    for (register, values) in registers.iter().zip(accumulator.iter_mut()) {
        store(values, *register);
    }
}

#[target_feature(enable = "avx2")]
fn crelu(accumulator: &[i16], one: u8, output: &mut [u8]) {
    let (inputs, rest) = accumulator.as_chunks::<WORDS>();
    let (pairs, _) = inputs.as_chunks::<2>();
    let (outputs, _) = output.as_chunks_mut::<32>();
    debug_assert!(rest.is_empty() && pairs.len() == outputs.len());
    let (zero, one) = (_mm256_setzero_si256(), _mm256_set1_epi16(i16::from(one)));
    for ([low, high], output) in pairs.iter().zip(outputs) {
        let low = _mm256_min_epi16(_mm256_max_epi16(load(low), zero), one);
        let high = _mm256_min_epi16(_mm256_max_epi16(load(high), zero), one);
        // Packing works within 128-bit halves: put the four quarters back in order.
        store(output, _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(low, high)));
    }
}

/// Four outputs at a time, so that each input is loaded once for four rows.
#[target_feature(enable = "avx2")]
fn affine(input: &[u8], weights: &[i8], biases: &[i32], sums: &mut [i32]) {
    let inputs = input.len();
    let (sums, last_sums) = sums.as_chunks_mut::<4>();
    let (biases, last_biases) = biases.as_chunks::<4>();
    let (blocks, last_rows) = weights.split_at(sums.len() * 4 * inputs);
    for ((sums, biases), rows) in sums.iter_mut().zip(biases).zip(blocks.chunks_exact(4 * inputs)) {
        let totals = four_rows(input, rows);
        for (sum, (bias, total)) in sums.iter_mut().zip(biases.iter().zip(totals)) {
            *sum = bias + total;
        }
    }
    for ((sum, bias), row) in last_sums.iter_mut().zip(last_biases).zip(last_rows.chunks_exact(inputs)) {
        *sum = bias + one_row(input, row);
    }
}

/// u8 · i8 pairs cannot saturate i16: 2 · 127 · 128 < 2^15.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply_add(sum: __m256i, input: __m256i, weights: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(input, weights);
    _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn four_rows(input: &[u8], rows: &[i8]) -> [i32; 4] {
    let (vectors, _) = input.as_chunks::<32>();
    let (a, rest) = rows.split_at(input.len());
    let (b, rest) = rest.split_at(input.len());
    let (c, d) = rest.split_at(input.len());
    let (a, b, c, d) = (a.as_chunks::<32>().0, b.as_chunks::<32>().0, c.as_chunks::<32>().0, d.as_chunks::<32>().0);
    let mut sums = [_mm256_setzero_si256(); 4];
    for ((((x, a), b), c), d) in vectors.iter().zip(a).zip(b).zip(c).zip(d) {
        let x = load(x);
        sums[0] = multiply_add(sums[0], x, load(a));
        sums[1] = multiply_add(sums[1], x, load(b));
        sums[2] = multiply_add(sums[2], x, load(c));
        sums[3] = multiply_add(sums[3], x, load(d));
    }
    let halves = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    let total = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
    [
        _mm_cvtsi128_si32(total),
        _mm_extract_epi32::<1>(total),
        _mm_extract_epi32::<2>(total),
        _mm_extract_epi32::<3>(total),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn one_row(input: &[u8], row: &[i8]) -> i32 {
    let mut sum = _mm256_setzero_si256();
    for (x, weights) in input.as_chunks::<32>().0.iter().zip(row.as_chunks::<32>().0) {
        sum = multiply_add(sum, load(x), load(weights));
    }
    let pairs = _mm256_hadd_epi32(sum, sum);
    let quads = _mm256_hadd_epi32(pairs, pairs);
    _mm_cvtsi128_si32(_mm_add_epi32(_mm256_castsi256_si128(quads), _mm256_extracti128_si256::<1>(quads)))
}
