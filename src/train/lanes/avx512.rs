//! 512-bit float vectors.

use std::arch::x86_64::*;

use super::{Kernel, LANES, Lanes};

/// Proof that the CPU has AVX-512F.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Avx512(());

impl Avx512 {
    #[must_use]
    pub fn detect() -> Option<Avx512> {
        let found = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma");
        found.then_some(Avx512(()))
    }

    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,fma")]
        fn compiled<K: Kernel>(proof: Avx512, kernel: K) -> K::Output {
            kernel.run::<Zmm>(proof)
        }
        // SAFETY: `detect` is the only constructor, so the CPU has these features.
        unsafe { compiled(self, kernel) }
    }
}

/// Only functions that take an [`Avx512`] create one.
#[derive(Copy, Clone)]
pub struct Zmm(__m512);

impl Lanes for Zmm {
    type Proof = Avx512;
    const GROUPS: usize = 32;

    #[inline(always)]
    fn splat(_: Avx512, value: f32) -> Zmm {
        // SAFETY: here and below, a proof or a `Zmm` made with one is passed in, so the CPU has the instructions.
        Zmm(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    fn load(_: Avx512, from: &[f32; LANES]) -> Zmm {
        // SAFETY: as above; the array is 64 bytes, and the load needs no alignment.
        Zmm(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        // SAFETY: as above; the array is 64 bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn add(self, summand: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_add_ps(self.0, summand.0) })
    }

    #[inline(always)]
    fn mul(self, factor: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_mul_ps(self.0, factor.0) })
    }

    #[inline(always)]
    fn clamped(self) -> Zmm {
        // If a value is not a number, or both are zeros, these instructions return the second.
        // SAFETY: as above.
        Zmm(unsafe { _mm512_min_ps(_mm512_set1_ps(1.0), _mm512_max_ps(_mm512_setzero_ps(), self.0)) })
    }

    #[inline(always)]
    fn where_positive(self, place: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe {
            let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(place.0, _mm512_setzero_ps());
            _mm512_maskz_mov_ps(above, self.0)
        })
    }

    #[inline(always)]
    fn where_inside(self, place: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe {
            let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(place.0, _mm512_setzero_ps());
            let inside = _mm512_mask_cmp_ps_mask::<_CMP_LT_OQ>(above, place.0, _mm512_set1_ps(1.0));
            _mm512_maskz_mov_ps(inside, self.0)
        })
    }

    #[inline(always)]
    fn mul_add(self, factor: Zmm, summand: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_fmadd_ps(self.0, factor.0, summand.0) })
    }
}
