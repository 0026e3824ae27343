//! 128-bit float vectors, in fours.

use std::arch::aarch64::*;

use super::{LANES, Lanes, LanesKernel};
use crate::cpu::Neon;

#[inline(always)]
pub(super) fn run<K: LanesKernel>(proof: Neon, kernel: K) -> K::Output {
    #[target_feature(enable = "neon")]
    fn compiled<K: LanesKernel>(proof: Neon, kernel: K) -> K::Output {
        kernel.run::<NeonFour>(proof)
    }
    // SAFETY: the proof says that the CPU has these instructions.
    unsafe { compiled(proof, kernel) }
}

/// Floats in a register.
const QUARTER: usize = LANES / 4;

/// Only functions that take a [`Neon`] create one.
#[derive(Copy, Clone)]
pub struct NeonFour([float32x4_t; 4]);

impl Lanes for NeonFour {
    type Proof = Neon;
    const GROUPS: usize = 8;

    #[inline(always)]
    fn splat(_: Neon, value: f32) -> NeonFour {
        // SAFETY: here and below, a proof or a `NeonFour` made with one is passed in, so the CPU has NEON.
        NeonFour([unsafe { vdupq_n_f32(value) }; 4])
    }

    #[inline(always)]
    fn load(_: Neon, from: &[f32; LANES]) -> NeonFour {
        let start = from.as_ptr();
        // SAFETY: as above; the array is four registers long, and loads need no more alignment than a float.
        NeonFour(unsafe {
            [
                vld1q_f32(start),
                vld1q_f32(start.add(QUARTER)),
                vld1q_f32(start.add(2 * QUARTER)),
                vld1q_f32(start.add(3 * QUARTER)),
            ]
        })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        let start = to.as_mut_ptr();
        for n in 0..4 {
            // SAFETY: as above; the array is four registers long, and stores need no more alignment than a float.
            unsafe { vst1q_f32(start.add(n * QUARTER), self.0[n]) }
        }
    }

    #[inline(always)]
    fn add(self, summand: NeonFour) -> NeonFour {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, summand.0);
        // SAFETY: as above.
        NeonFour(unsafe { [vaddq_f32(a, e), vaddq_f32(b, f), vaddq_f32(c, g), vaddq_f32(d, h)] })
    }

    #[inline(always)]
    fn mul(self, factor: NeonFour) -> NeonFour {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, factor.0);
        // SAFETY: as above.
        NeonFour(unsafe { [vmulq_f32(a, e), vmulq_f32(b, f), vmulq_f32(c, g), vmulq_f32(d, h)] })
    }

    #[inline(always)]
    fn clamped(mut self) -> NeonFour {
        for quarter in &mut self.0 {
            // Selected by comparisons: FMAX would make 0 of -0.
            // SAFETY: as above.
            unsafe {
                let zero = vdupq_n_f32(0.0);
                let one = vdupq_n_f32(1.0);
                let low = vbslq_f32(vcltq_f32(*quarter, zero), zero, *quarter);
                *quarter = vbslq_f32(vcgtq_f32(low, one), one, low);
            }
        }
        self
    }

    #[inline(always)]
    fn where_positive(mut self, place: NeonFour) -> NeonFour {
        for n in 0..4 {
            // SAFETY: as above.
            self.0[n] = unsafe { kept(self.0[n], vcgtq_f32(place.0[n], vdupq_n_f32(0.0))) };
        }
        self
    }

    #[inline(always)]
    fn where_inside(mut self, place: NeonFour) -> NeonFour {
        for n in 0..4 {
            // SAFETY: as above.
            self.0[n] = unsafe {
                let above = vcgtq_f32(place.0[n], vdupq_n_f32(0.0));
                let below = vcltq_f32(place.0[n], vdupq_n_f32(1.0));
                kept(self.0[n], vandq_u32(above, below))
            };
        }
        self
    }

    #[inline(always)]
    fn mul_add(self, factor: NeonFour, summand: NeonFour) -> NeonFour {
        let ([a, b, c, d], [e, f, g, h], [i, j, k, l]) = (self.0, factor.0, summand.0);
        // SAFETY: as above.
        NeonFour(unsafe { [vfmaq_f32(i, a, e), vfmaq_f32(j, b, f), vfmaq_f32(k, c, g), vfmaq_f32(l, d, h)] })
    }
}

/// The values where a mask is set, elsewhere 0.
///
/// # Safety
/// The CPU must have NEON.
#[inline(always)]
unsafe fn kept(values: float32x4_t, mask: uint32x4_t) -> float32x4_t {
    // SAFETY: the caller's promise.
    unsafe { vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(values), mask)) }
}
