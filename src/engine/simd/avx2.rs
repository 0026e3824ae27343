//! 256-bit integer vectors (x86-64 CPUs since 2013).

use std::arch::x86_64::*;

use bytemuck::Pod;

use super::{Vector, VectorKernel, nnz};
use crate::cpu::Avx2;

#[inline(always)]
pub(super) fn run<K: VectorKernel>(proof: Avx2, kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn compiled<K: VectorKernel>(proof: Avx2, kernel: K) -> K::Output {
        kernel.run::<Ymm>(proof)
    }
    // SAFETY: the proof says that the CPU has all these features.
    unsafe { compiled(proof, kernel) }
}

/// Only functions that take an [`Avx2`] create one.
#[derive(Copy, Clone)]
pub struct Ymm(__m256i);

// SAFETY: for each of its eight low bits, mask n gives one index, below 8n + 8.
unsafe impl Vector for Ymm {
    type Proof = Avx2;
    const BYTES: usize = 32;
    const REGISTERS: usize = 16;
    const JOINS_PRODUCTS: bool = true;

    #[inline(always)]
    fn zero(_: Avx2) -> Ymm {
        // SAFETY: here and below, a proof or a `Ymm` made with one is passed in, so the CPU has AVX2.
        Ymm(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    fn splat16(_: Avx2, value: i16) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_set1_epi16(value) })
    }

    #[inline(always)]
    fn splat32(_: Avx2, value: i32) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_set1_epi32(value) })
    }

    #[inline(always)]
    fn load<T: Pod>(_: Avx2, from: &[T]) -> Ymm {
        assert!(size_of_val(from) >= Self::BYTES);
        // SAFETY: as above; 32 bytes are readable, and the load needs no alignment.
        Ymm(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        assert!(size_of_val(to) >= Self::BYTES);
        // SAFETY: as above; 32 bytes are writable, any bits are a `T`, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn widen(_: Avx2, from: &[i8]) -> Ymm {
        assert!(from.len() >= Self::WORDS);
        // SAFETY: as above; 16 bytes are readable.
        Ymm(unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.as_ptr().cast())) })
    }

    #[inline(always)]
    fn add16(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_add_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn sub16(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_sub_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn add32(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_add_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn sub32(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_sub_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn clip16(self, max: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_min_epi16(_mm256_max_epi16(self.0, _mm256_setzero_si256()), max.0) })
    }

    #[inline(always)]
    fn mul16(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_mullo_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn dot2(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_madd_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn product16(self, other: Ymm, shift: u32) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_srl_epi16(_mm256_mullo_epi16(self.0, other.0), _mm_cvtsi32_si128(shift as i32)) })
    }

    #[inline(always)]
    fn pack(self, high: Ymm) -> Ymm {
        // Packing works within 128-bit halves: put the four quarters back in order.
        // SAFETY: as above.
        Ymm(unsafe { _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(self.0, high.0)) })
    }

    #[inline(always)]
    fn min8(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_min_epu8(self.0, other.0) })
    }

    #[inline(always)]
    fn dot4(self, x: Ymm, w: Ymm) -> Ymm {
        // Two products cannot saturate i16: 2 · 127 · 128 < 2^15.
        // SAFETY: as above.
        Ymm(unsafe {
            let pairs = _mm256_maddubs_epi16(x.0, w.0);
            _mm256_add_epi32(self.0, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        })
    }

    #[inline(always)]
    fn dot4_all<const C: usize>(self, x: [Ymm; C], w: [Ymm; C]) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe {
            let mut pairs = _mm256_setzero_si256();
            for c in 0..C {
                pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(x[c].0, w[c].0));
            }
            _mm256_add_epi32(self.0, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        })
    }

    #[inline(always)]
    fn nonzero32(self) -> u32 {
        // SAFETY: as above.
        let zeros =
            unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(self.0, _mm256_setzero_si256()))) };
        !zeros as u32 & 0xff
    }

    #[inline(always)]
    fn nnz(_: Avx2, masks: &[u16], indices: &mut [u16]) -> usize {
        nnz::of_bytes(masks, indices)
    }

    #[inline(always)]
    fn sum32(self) -> i32 {
        // SAFETY: as above.
        unsafe {
            let four = _mm_add_epi32(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
            _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
        }
    }

    #[inline(always)]
    fn total32(self) -> i64 {
        // SAFETY: as above.
        unsafe {
            let low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(self.0));
            let high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(self.0));
            let four = _mm256_add_epi64(low, high);
            let two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
            _mm_extract_epi64::<0>(two) + _mm_extract_epi64::<1>(two)
        }
    }

    #[inline(always)]
    fn splat128<T: Pod>(_: Avx2, from: &[T]) -> Ymm {
        assert!(size_of_val(from) >= 16);
        // SAFETY: as above; 16 bytes are readable.
        Ymm(unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(from.as_ptr().cast())) })
    }

    #[inline(always)]
    fn sum_quarters([a, b, c, d]: [Ymm; 4]) -> Ymm {
        // SAFETY: as above.
        Ymm(unsafe { _mm256_hadd_epi32(_mm256_hadd_epi32(a.0, b.0), _mm256_hadd_epi32(c.0, d.0)) })
    }
}
