//! 128-bit integer vectors in pairs (every 64-bit ARM CPU), with or without instructions for dot products.
//!
//! A pair holds as many numbers as a register of AVX2, so that kernels and the layout of their tables are the same.

use std::arch::aarch64::*;
use std::marker::PhantomData;

use bytemuck::Pod;

use super::{Vector, VectorKernel, nnz};
use crate::cpu::{Neon, NeonDot};

#[inline(always)]
pub(super) fn run<K: VectorKernel>(proof: Neon, kernel: K) -> K::Output {
    #[target_feature(enable = "neon")]
    fn compiled<K: VectorKernel>(proof: Neon, kernel: K) -> K::Output {
        kernel.run::<NeonPair<Neon>>(proof)
    }
    // SAFETY: the proof says that the CPU has these instructions.
    unsafe { compiled(proof, kernel) }
}

#[inline(always)]
pub(super) fn run_dot<K: VectorKernel>(proof: NeonDot, kernel: K) -> K::Output {
    #[target_feature(enable = "neon,dotprod")]
    fn compiled<K: VectorKernel>(proof: NeonDot, kernel: K) -> K::Output {
        kernel.run::<NeonPair<NeonDot>>(proof)
    }
    // SAFETY: the proof says that the CPU has all these instructions.
    unsafe { compiled(proof, kernel) }
}

/// A proof of NEON, and how the CPU multiplies bytes.
pub trait ByteProducts: Copy {
    const JOINS: bool;

    /// Adds to every i32 of `sums` the four products of bytes of `x`, none negative, and `w`.
    ///
    /// # Safety
    /// The CPU has the instructions that `Self` proves.
    unsafe fn add(sums: int32x4_t, x: int8x16_t, w: int8x16_t) -> int32x4_t;
}

impl ByteProducts for Neon {
    const JOINS: bool = true;

    #[inline(always)]
    unsafe fn add(sums: int32x4_t, x: int8x16_t, w: int8x16_t) -> int32x4_t {
        // Two products fit i16: 2 · 127 · 128 < 2^15.
        // SAFETY: the caller's promise.
        unsafe {
            let low = vmull_s8(vget_low_s8(x), vget_low_s8(w));
            vpadalq_s16(sums, vpaddq_s16(low, vmull_high_s8(x, w)))
        }
    }
}

impl ByteProducts for NeonDot {
    const JOINS: bool = false;

    #[inline(always)]
    unsafe fn add(sums: int32x4_t, x: int8x16_t, w: int8x16_t) -> int32x4_t {
        // SAFETY: the caller's promise.
        unsafe { sdot(sums, x, w) }
    }
}

/// The instruction SDOT, whose intrinsic is not stable.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut sums: int32x4_t, x: int8x16_t, w: int8x16_t) -> int32x4_t {
    // SAFETY: it reads and writes these registers only.
    unsafe {
        std::arch::asm!(
            "sdot {sums:v}.4s, {x:v}.16b, {w:v}.16b",
            sums = inout(vreg) sums,
            x = in(vreg) x,
            w = in(vreg) w,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Only functions that take a `P` create one.
#[derive(Copy, Clone)]
pub struct NeonPair<P>(uint8x16_t, uint8x16_t, PhantomData<P>);

impl<P> NeonPair<P> {
    #[inline(always)]
    const fn of_bytes(low: uint8x16_t, high: uint8x16_t) -> NeonPair<P> {
        NeonPair(low, high, PhantomData)
    }

    /// # Safety
    /// The CPU must have NEON.
    #[inline(always)]
    unsafe fn of_words([low, high]: [int16x8_t; 2]) -> NeonPair<P> {
        // SAFETY: the caller's promise.
        unsafe { NeonPair::of_bytes(vreinterpretq_u8_s16(low), vreinterpretq_u8_s16(high)) }
    }

    /// # Safety
    /// The CPU must have NEON.
    #[inline(always)]
    unsafe fn of_doubles([low, high]: [int32x4_t; 2]) -> NeonPair<P> {
        // SAFETY: the caller's promise.
        unsafe { NeonPair::of_bytes(vreinterpretq_u8_s32(low), vreinterpretq_u8_s32(high)) }
    }

    #[inline(always)]
    fn signed_bytes(self) -> [int8x16_t; 2] {
        // SAFETY: here and below, a proof or a `NeonPair` made with one is passed in, so the CPU has NEON.
        unsafe { [vreinterpretq_s8_u8(self.0), vreinterpretq_s8_u8(self.1)] }
    }

    #[inline(always)]
    fn words(self) -> [int16x8_t; 2] {
        // SAFETY: as above.
        unsafe { [vreinterpretq_s16_u8(self.0), vreinterpretq_s16_u8(self.1)] }
    }

    #[inline(always)]
    fn doubles(self) -> [int32x4_t; 2] {
        // SAFETY: as above.
        unsafe { [vreinterpretq_s32_u8(self.0), vreinterpretq_s32_u8(self.1)] }
    }
}

/// The bit of each of eight words in a mask.
static MASK_BITS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

// SAFETY: for each of its eight low bits, mask n gives one index, below 8n + 8.
unsafe impl<P: ByteProducts> Vector for NeonPair<P> {
    type Proof = P;
    const BYTES: usize = 32;
    const REGISTERS: usize = 16;
    const MEMORY_OPERANDS: bool = false;
    const JOINS_PRODUCTS: bool = P::JOINS;

    #[inline(always)]
    fn zero(proof: P) -> NeonPair<P> {
        NeonPair::splat16(proof, 0)
    }

    #[inline(always)]
    fn splat16(_: P, value: i16) -> NeonPair<P> {
        // SAFETY: as above.
        unsafe { NeonPair::of_words([vdupq_n_s16(value); 2]) }
    }

    #[inline(always)]
    fn splat32(_: P, value: i32) -> NeonPair<P> {
        // SAFETY: as above.
        unsafe { NeonPair::of_doubles([vdupq_n_s32(value); 2]) }
    }

    #[inline(always)]
    fn load<T: Pod>(_: P, from: &[T]) -> NeonPair<P> {
        assert!(size_of_val(from) >= Self::BYTES);
        let start = from.as_ptr().cast::<u8>();
        // SAFETY: as above; 32 bytes are readable, and loads of bytes need no alignment.
        unsafe { NeonPair::of_bytes(vld1q_u8(start), vld1q_u8(start.add(16))) }
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        assert!(size_of_val(to) >= Self::BYTES);
        let start = to.as_mut_ptr().cast::<u8>();
        // SAFETY: as above; 32 bytes are writable, any bits are a `T`, and stores of bytes need no alignment.
        unsafe {
            vst1q_u8(start, self.0);
            vst1q_u8(start.add(16), self.1);
        }
    }

    #[inline(always)]
    fn widen(_: P, from: &[i8]) -> NeonPair<P> {
        assert!(from.len() >= Self::WORDS);
        // SAFETY: as above; 16 bytes are readable.
        unsafe {
            let bytes = vld1q_s8(from.as_ptr());
            NeonPair::of_words([vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)])
        }
    }

    #[inline(always)]
    fn add16(self, other: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.words(), other.words());
        // SAFETY: as above.
        unsafe { NeonPair::of_words([vaddq_s16(a, c), vaddq_s16(b, d)]) }
    }

    #[inline(always)]
    fn sub16(self, other: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.words(), other.words());
        // SAFETY: as above.
        unsafe { NeonPair::of_words([vsubq_s16(a, c), vsubq_s16(b, d)]) }
    }

    #[inline(always)]
    fn add32(self, other: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.doubles(), other.doubles());
        // SAFETY: as above.
        unsafe { NeonPair::of_doubles([vaddq_s32(a, c), vaddq_s32(b, d)]) }
    }

    #[inline(always)]
    fn sub32(self, other: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.doubles(), other.doubles());
        // SAFETY: as above.
        unsafe { NeonPair::of_doubles([vsubq_s32(a, c), vsubq_s32(b, d)]) }
    }

    #[inline(always)]
    fn clip16(self, max: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.words(), max.words());
        // SAFETY: as above.
        unsafe {
            let zero = vdupq_n_s16(0);
            NeonPair::of_words([vminq_s16(vmaxq_s16(a, zero), c), vminq_s16(vmaxq_s16(b, zero), d)])
        }
    }

    #[inline(always)]
    fn mul16(self, other: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.words(), other.words());
        // SAFETY: as above.
        unsafe { NeonPair::of_words([vmulq_s16(a, c), vmulq_s16(b, d)]) }
    }

    #[inline(always)]
    fn dot2(self, other: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.words(), other.words());
        // SAFETY: as above.
        unsafe {
            let low = vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(c)), vmull_high_s16(a, c));
            let high = vpaddq_s32(vmull_s16(vget_low_s16(b), vget_low_s16(d)), vmull_high_s16(b, d));
            NeonPair::of_doubles([low, high])
        }
    }

    #[inline(always)]
    fn product16(self, other: NeonPair<P>, shift: u32) -> NeonPair<P> {
        let [a, b] = self.mul16(other).words();
        // SAFETY: as above.
        unsafe {
            // A shift to the left by a negative number.
            let right = vdupq_n_s16((shift as i16).wrapping_neg());
            let [a, b] = [vreinterpretq_u16_s16(a), vreinterpretq_u16_s16(b)];
            let [a, b] = [vshlq_u16(a, right), vshlq_u16(b, right)];
            NeonPair::of_bytes(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b))
        }
    }

    #[inline(always)]
    fn pack(self, high: NeonPair<P>) -> NeonPair<P> {
        let ([a, b], [c, d]) = (self.words(), high.words());
        // SAFETY: as above.
        unsafe { NeonPair::of_bytes(vqmovun_high_s16(vqmovun_s16(a), b), vqmovun_high_s16(vqmovun_s16(c), d)) }
    }

    #[inline(always)]
    fn min8(self, other: NeonPair<P>) -> NeonPair<P> {
        // SAFETY: as above.
        unsafe { NeonPair::of_bytes(vminq_u8(self.0, other.0), vminq_u8(self.1, other.1)) }
    }

    #[inline(always)]
    fn dot4(self, x: NeonPair<P>, w: NeonPair<P>) -> NeonPair<P> {
        let ([low, high], [a, b], [c, d]) = (self.doubles(), x.signed_bytes(), w.signed_bytes());
        // SAFETY: as above.
        unsafe { NeonPair::of_doubles([P::add(low, a, c), P::add(high, b, d)]) }
    }

    #[inline(always)]
    fn dot4_all<const C: usize>(self, x: [NeonPair<P>; C], w: [NeonPair<P>; C]) -> NeonPair<P> {
        if !P::JOINS {
            let mut sums = self;
            for c in 0..C {
                sums = sums.dot4(x[c], w[c]);
            }
            return sums;
        }
        // Sums of single products may overflow i16; those of two, modulo 2^16, then fit all the same.
        // SAFETY: as above.
        unsafe {
            let mut products = [[vdupq_n_s16(0); 2]; 2];
            for c in 0..C {
                let (x, w) = (x[c].signed_bytes(), w[c].signed_bytes());
                for half in 0..2 {
                    let [low, high] = products[half];
                    let low = vmlal_s8(low, vget_low_s8(x[half]), vget_low_s8(w[half]));
                    products[half] = [low, vmlal_high_s8(high, x[half], w[half])];
                }
            }
            let [low, high] = self.doubles();
            let pairs = [vpaddq_s16(products[0][0], products[0][1]), vpaddq_s16(products[1][0], products[1][1])];
            NeonPair::of_doubles([vpadalq_s16(low, pairs[0]), vpadalq_s16(high, pairs[1])])
        }
    }

    #[inline(always)]
    fn nonzero32(self) -> u32 {
        let [low, high] = self.doubles();
        // SAFETY: as above; the array has eight words.
        unsafe {
            let set = vcombine_u16(vmovn_u32(vtstq_s32(low, low)), vmovn_u32(vtstq_s32(high, high)));
            u32::from(vaddvq_u16(vandq_u16(set, vld1q_u16(MASK_BITS.as_ptr()))))
        }
    }

    #[inline(always)]
    fn nnz(_: P, masks: &[u16], indices: &mut [u16]) -> usize {
        nnz::of_bytes(masks, indices)
    }

    #[inline(always)]
    fn sum32(self) -> i32 {
        let [low, high] = self.doubles();
        // SAFETY: as above.
        unsafe { vaddvq_s32(vaddq_s32(low, high)) }
    }

    #[inline(always)]
    fn total32(self) -> i64 {
        let [low, high] = self.doubles();
        // SAFETY: as above.
        unsafe { vaddlvq_s32(low) + vaddlvq_s32(high) }
    }

    #[inline(always)]
    fn splat128<T: Pod>(_: P, from: &[T]) -> NeonPair<P> {
        assert!(size_of_val(from) >= 16);
        // SAFETY: as above; 16 bytes are readable, and loads of bytes need no alignment.
        let quarter = unsafe { vld1q_u8(from.as_ptr().cast()) };
        NeonPair::of_bytes(quarter, quarter)
    }

    #[inline(always)]
    fn sum_quarters(four: [NeonPair<P>; 4]) -> NeonPair<P> {
        let [a, b, c, d] = four.map(NeonPair::doubles);
        // SAFETY: as above.
        unsafe {
            let low = vpaddq_s32(vpaddq_s32(a[0], b[0]), vpaddq_s32(c[0], d[0]));
            let high = vpaddq_s32(vpaddq_s32(a[1], b[1]), vpaddq_s32(c[1], d[1]));
            NeonPair::of_doubles([low, high])
        }
    }
}
