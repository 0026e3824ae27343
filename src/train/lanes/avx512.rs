//! 512-bit float vectors.

use std::arch::x86_64::*;

use super::{LANES, Lanes, LanesKernel};
use crate::cpu::Avx512;

#[inline(always)]
pub(super) fn run<K: LanesKernel>(proof: Avx512, kernel: K) -> K::Output {
    #[target_feature(enable = "avx512f,fma")]
    fn compiled<K: LanesKernel>(proof: Avx512, kernel: K) -> K::Output {
        kernel.run::<ZmmLanes>(proof)
    }
    // SAFETY: the proof says that the CPU has all these features.
    unsafe { compiled(proof, kernel) }
}

/// Only functions that take an [`Avx512`] create one.
#[derive(Copy, Clone)]
pub struct ZmmLanes(__m512);

impl Lanes for ZmmLanes {
    type Proof = Avx512;
    const GROUPS: usize = 32;

    #[inline(always)]
    fn splat(_: Avx512, value: f32) -> ZmmLanes {
        // SAFETY: here and below, a proof or a `ZmmLanes` made with one is passed in, so the CPU has the instructions.
        ZmmLanes(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    fn load(_: Avx512, from: &[f32; LANES]) -> ZmmLanes {
        // SAFETY: as above; the array is 64 bytes, and the load needs no alignment.
        ZmmLanes(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        // SAFETY: as above; the array is 64 bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn add(self, summand: ZmmLanes) -> ZmmLanes {
        // SAFETY: as above.
        ZmmLanes(unsafe { _mm512_add_ps(self.0, summand.0) })
    }

    #[inline(always)]
    fn mul(self, factor: ZmmLanes) -> ZmmLanes {
        // SAFETY: as above.
        ZmmLanes(unsafe { _mm512_mul_ps(self.0, factor.0) })
    }

    #[inline(always)]
    fn clamped(self) -> ZmmLanes {
        // If a value is not a number, or both are zeros, these instructions return the second.
        // SAFETY: as above.
        ZmmLanes(unsafe { _mm512_min_ps(_mm512_set1_ps(1.0), _mm512_max_ps(_mm512_setzero_ps(), self.0)) })
    }

    #[inline(always)]
    fn where_positive(self, place: ZmmLanes) -> ZmmLanes {
        // SAFETY: as above.
        ZmmLanes(unsafe {
            let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(place.0, _mm512_setzero_ps());
            _mm512_maskz_mov_ps(above, self.0)
        })
    }

    #[inline(always)]
    fn where_inside(self, place: ZmmLanes) -> ZmmLanes {
        // SAFETY: as above.
        ZmmLanes(unsafe {
            let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(place.0, _mm512_setzero_ps());
            let inside = _mm512_mask_cmp_ps_mask::<_CMP_LT_OQ>(above, place.0, _mm512_set1_ps(1.0));
            _mm512_maskz_mov_ps(inside, self.0)
        })
    }

    #[inline(always)]
    fn mul_add(self, factor: ZmmLanes, summand: ZmmLanes) -> ZmmLanes {
        // SAFETY: as above.
        ZmmLanes(unsafe { _mm512_fmadd_ps(self.0, factor.0, summand.0) })
    }
}
