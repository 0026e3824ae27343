//! 256-bit float vectors, in pairs.

use std::arch::x86_64::*;

use super::{LANES, Lanes, LanesKernel};
use crate::cpu::Avx2;

#[inline(always)]
pub(super) fn run<K: LanesKernel>(proof: Avx2, kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,fma")]
    fn compiled<K: LanesKernel>(proof: Avx2, kernel: K) -> K::Output {
        kernel.run::<YmmPair>(proof)
    }
    // SAFETY: the proof says that the CPU has all these features.
    unsafe { compiled(proof, kernel) }
}

/// Only functions that take an [`Avx2`] create one.
#[derive(Copy, Clone)]
pub struct YmmPair(__m256, __m256);

impl Lanes for YmmPair {
    type Proof = Avx2;
    const GROUPS: usize = 8;

    #[inline(always)]
    fn splat(_: Avx2, value: f32) -> YmmPair {
        // SAFETY: here and below, a proof or a `YmmPair` made with one is passed in, so the CPU has the instructions.
        let half = unsafe { _mm256_set1_ps(value) };
        YmmPair(half, half)
    }

    #[inline(always)]
    fn load(_: Avx2, from: &[f32; LANES]) -> YmmPair {
        let start = from.as_ptr();
        // SAFETY: as above; the array is 64 bytes, and loads need no alignment.
        unsafe { YmmPair(_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(LANES / 2))) }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        let start = to.as_mut_ptr();
        // SAFETY: as above; the array is 64 bytes, and stores need no alignment.
        unsafe {
            _mm256_storeu_ps(start, self.0);
            _mm256_storeu_ps(start.add(LANES / 2), self.1);
        }
    }

    #[inline(always)]
    fn add(self, summand: YmmPair) -> YmmPair {
        // SAFETY: as above.
        unsafe { YmmPair(_mm256_add_ps(self.0, summand.0), _mm256_add_ps(self.1, summand.1)) }
    }

    #[inline(always)]
    fn mul(self, factor: YmmPair) -> YmmPair {
        // SAFETY: as above.
        unsafe { YmmPair(_mm256_mul_ps(self.0, factor.0), _mm256_mul_ps(self.1, factor.1)) }
    }

    #[inline(always)]
    fn clamped(self) -> YmmPair {
        // If a value is not a number, or both are zeros, these instructions return the second.
        // SAFETY: as above.
        unsafe {
            let zero = _mm256_setzero_ps();
            let one = _mm256_set1_ps(1.0);
            let low = _mm256_min_ps(one, _mm256_max_ps(zero, self.0));
            YmmPair(low, _mm256_min_ps(one, _mm256_max_ps(zero, self.1)))
        }
    }

    #[inline(always)]
    fn where_positive(self, place: YmmPair) -> YmmPair {
        // SAFETY: as above.
        unsafe {
            let zero = _mm256_setzero_ps();
            let low = _mm256_and_ps(self.0, _mm256_cmp_ps::<_CMP_GT_OQ>(place.0, zero));
            YmmPair(low, _mm256_and_ps(self.1, _mm256_cmp_ps::<_CMP_GT_OQ>(place.1, zero)))
        }
    }

    #[inline(always)]
    fn where_inside(self, place: YmmPair) -> YmmPair {
        // SAFETY: as above.
        unsafe { YmmPair(half_where_inside(self.0, place.0), half_where_inside(self.1, place.1)) }
    }

    #[inline(always)]
    fn mul_add(self, factor: YmmPair, summand: YmmPair) -> YmmPair {
        let low = (self.0, factor.0, summand.0);
        let high = (self.1, factor.1, summand.1);
        // SAFETY: as above.
        unsafe { YmmPair(_mm256_fmadd_ps(low.0, low.1, low.2), _mm256_fmadd_ps(high.0, high.1, high.2)) }
    }
}

/// # Safety
/// The CPU must have AVX.
#[inline(always)]
unsafe fn half_where_inside(values: __m256, place: __m256) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        let above = _mm256_cmp_ps::<_CMP_GT_OQ>(place, _mm256_setzero_ps());
        let below = _mm256_cmp_ps::<_CMP_LT_OQ>(place, _mm256_set1_ps(1.0));
        _mm256_and_ps(values, _mm256_and_ps(above, below))
    }
}
