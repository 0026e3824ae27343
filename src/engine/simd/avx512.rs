//! 512-bit integer vectors with VNNI (Intel since 2019, AMD since 2022).

use std::arch::x86_64::*;

use bytemuck::Pod;

use super::{Vector, VectorKernel};
use crate::cpu::Avx512;

#[inline(always)]
pub(super) fn run<K: VectorKernel>(proof: Avx512, kernel: K) -> K::Output {
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,bmi1,bmi2,popcnt,lzcnt")]
    fn compiled<K: VectorKernel>(proof: Avx512, kernel: K) -> K::Output {
        kernel.run::<Zmm>(proof)
    }
    // SAFETY: the proof says that the CPU has all these features.
    unsafe { compiled(proof, kernel) }
}

/// Only functions that take an [`Avx512`] create one.
#[derive(Copy, Clone)]
pub struct Zmm(__m512i);

// SAFETY: a mask has `DOUBLES` bits, and compressing writes one index per set bit.
unsafe impl Vector for Zmm {
    type Proof = Avx512;
    const BYTES: usize = 64;
    const REGISTERS: usize = 32;

    #[inline(always)]
    fn zero(_: Avx512) -> Zmm {
        // SAFETY: here and below, a proof or a `Zmm` made with one is passed in, so the CPU has the instructions.
        Zmm(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    fn splat16(_: Avx512, value: i16) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_set1_epi16(value) })
    }

    #[inline(always)]
    fn splat32(_: Avx512, value: i32) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_set1_epi32(value) })
    }

    #[inline(always)]
    fn load<T: Pod>(_: Avx512, from: &[T]) -> Zmm {
        assert!(size_of_val(from) >= Self::BYTES);
        // SAFETY: as above; 64 bytes are readable, and the load needs no alignment.
        Zmm(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        assert!(size_of_val(to) >= Self::BYTES);
        // SAFETY: as above; 64 bytes are writable, any bits are a `T`, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn widen(_: Avx512, from: &[i8]) -> Zmm {
        assert!(from.len() >= Self::WORDS);
        // SAFETY: as above; 32 bytes are readable.
        Zmm(unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.as_ptr().cast())) })
    }

    #[inline(always)]
    fn add16(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_add_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn sub16(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_sub_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn add32(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_add_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn sub32(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_sub_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn clip16(self, max: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_min_epi16(_mm512_max_epi16(self.0, _mm512_setzero_si512()), max.0) })
    }

    #[inline(always)]
    fn mul16(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_mullo_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn dot2(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_madd_epi16(self.0, other.0) })
    }

    #[inline(always)]
    fn product16(self, other: Zmm, shift: u32) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_srl_epi16(_mm512_mullo_epi16(self.0, other.0), _mm_cvtsi32_si128(shift as i32)) })
    }

    #[inline(always)]
    fn pack(self, high: Zmm) -> Zmm {
        // Packing works within 128-bit quarters: put the eight eighths back in order.
        // SAFETY: as above.
        Zmm(unsafe {
            let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
            _mm512_permutexvar_epi64(order, _mm512_packus_epi16(self.0, high.0))
        })
    }

    #[inline(always)]
    fn min8(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_min_epu8(self.0, other.0) })
    }

    #[inline(always)]
    fn dot4(self, x: Zmm, w: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_dpbusd_epi32(self.0, x.0, w.0) })
    }

    #[inline(always)]
    fn nonzero32(self) -> u32 {
        // SAFETY: as above.
        u32::from(unsafe { _mm512_test_epi32_mask(self.0, self.0) })
    }

    #[inline(always)]
    fn nnz(proof: Avx512, masks: &[u16], indices: &mut [u16]) -> usize {
        let (pairs, rest) = masks.as_chunks::<2>();
        if proof.has_vbmi2() && rest.is_empty() {
            // SAFETY: the proof says that the CPU has the instructions.
            return unsafe { nnz_vbmi2(pairs, indices) };
        }
        let mut count = 0;
        for (index, mask) in masks.iter().enumerate() {
            let to = &mut indices[count..][..Self::DOUBLES];
            // SAFETY: as above; 32 bytes are writable.
            unsafe {
                let all = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
                let set = _mm512_maskz_compress_epi32(*mask, all);
                let first = _mm256_set1_epi16((index * Self::DOUBLES) as i16);
                let words = _mm256_add_epi16(_mm512_cvtepi32_epi16(set), first);
                _mm256_storeu_si256(to.as_mut_ptr().cast(), words);
            }
            count += mask.count_ones() as usize;
        }
        count
    }

    #[inline(always)]
    fn sum32(self) -> i32 {
        // SAFETY: as above.
        unsafe { _mm512_reduce_add_epi32(self.0) }
    }

    #[inline(always)]
    fn total32(self) -> i64 {
        // SAFETY: as above.
        unsafe {
            let low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(self.0));
            let high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(self.0));
            _mm512_reduce_add_epi64(_mm512_add_epi64(low, high))
        }
    }

    #[inline(always)]
    fn splat128<T: Pod>(_: Avx512, from: &[T]) -> Zmm {
        assert!(size_of_val(from) >= 16);
        // SAFETY: as above; 16 bytes are readable.
        Zmm(unsafe { _mm512_castps_si512(_mm512_broadcast_f32x4(_mm_loadu_ps(from.as_ptr().cast()))) })
    }

    #[inline(always)]
    fn sum_quarters([a, b, c, d]: [Zmm; 4]) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe {
            let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a.0, b.0), _mm512_unpackhi_epi32(a.0, b.0));
            let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c.0, d.0), _mm512_unpackhi_epi32(c.0, d.0));
            _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
        })
    }
}

/// [`Vector::nnz`] of pairs of masks, with VBMI2.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
fn nnz_vbmi2(masks: &[[u16; 2]], indices: &mut [u16]) -> usize {
    let mut all = [0i16; 32];
    for (element, index) in all.iter_mut().zip(0..) {
        *element = index;
    }
    // SAFETY: 64 bytes are readable.
    let mut all = unsafe { _mm512_loadu_si512(all.as_ptr().cast()) };
    let mut count = 0;
    for pair in masks {
        let mask = u32::from(pair[0]) | u32::from(pair[1]) << 16;
        let to = &mut indices[count..][..32];
        // SAFETY: 64 bytes are writable.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_maskz_compress_epi16(mask, all)) };
        all = _mm512_add_epi16(all, _mm512_set1_epi16(32));
        count += mask.count_ones() as usize;
    }
    count
}
