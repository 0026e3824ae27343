//! Vectors in plain Rust: the reference of every operation, and the back end of CPUs without a better one.

use bytemuck::{Pod, cast, cast_slice, cast_slice_mut};

use super::{Vector, VectorKernel, nnz};
use crate::cpu::Scalar;

#[inline(never)]
pub(super) fn run<K: VectorKernel>(proof: Scalar, kernel: K) -> K::Output {
    kernel.run::<PortableVector>(proof)
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PortableVector([i16; 16]);

impl PortableVector {
    fn words(self, other: PortableVector, operation: fn(i16, i16) -> i16) -> PortableVector {
        PortableVector(std::array::from_fn(|n| operation(self.0[n], other.0[n])))
    }

    fn doubles(self) -> [i32; 8] {
        cast(self.0)
    }
}

// SAFETY: for each of its eight low bits, mask n gives one index, below 8n + 8.
unsafe impl Vector for PortableVector {
    type Proof = Scalar;
    const BYTES: usize = 32;
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn zero(_: Scalar) -> PortableVector {
        PortableVector([0; 16])
    }

    #[inline(always)]
    fn splat16(_: Scalar, value: i16) -> PortableVector {
        PortableVector([value; 16])
    }

    #[inline(always)]
    fn splat32(_: Scalar, value: i32) -> PortableVector {
        PortableVector(cast([value; 8]))
    }

    #[inline(always)]
    fn load<T: Pod>(_: Scalar, from: &[T]) -> PortableVector {
        let mut words = [0; 16];
        cast_slice_mut::<i16, u8>(&mut words).copy_from_slice(&cast_slice(from)[..32]);
        PortableVector(words)
    }

    #[inline(always)]
    fn store<T: Pod>(self, to: &mut [T]) {
        cast_slice_mut::<T, u8>(to)[..32].copy_from_slice(cast_slice(&self.0));
    }

    #[inline(always)]
    fn widen(_: Scalar, from: &[i8]) -> PortableVector {
        let from = &from[..Self::WORDS];
        PortableVector(std::array::from_fn(|n| i16::from(from[n])))
    }

    #[inline(always)]
    fn add16(self, other: PortableVector) -> PortableVector {
        self.words(other, i16::wrapping_add)
    }

    #[inline(always)]
    fn sub16(self, other: PortableVector) -> PortableVector {
        self.words(other, i16::wrapping_sub)
    }

    #[inline(always)]
    fn add32(self, other: PortableVector) -> PortableVector {
        let a = self.doubles();
        let b = other.doubles();
        PortableVector(cast::<[i32; 8], _>(std::array::from_fn(|n| a[n].wrapping_add(b[n]))))
    }

    #[inline(always)]
    fn sub32(self, other: PortableVector) -> PortableVector {
        let a = self.doubles();
        let b = other.doubles();
        PortableVector(cast::<[i32; 8], _>(std::array::from_fn(|n| a[n].wrapping_sub(b[n]))))
    }

    #[inline(always)]
    fn clip16(self, max: PortableVector) -> PortableVector {
        self.words(max, |value, max| value.max(0).min(max))
    }

    #[inline(always)]
    fn mul16(self, other: PortableVector) -> PortableVector {
        self.words(other, i16::wrapping_mul)
    }

    #[inline(always)]
    fn dot2(self, other: PortableVector) -> PortableVector {
        let product = |n: usize| i32::from(self.0[n]) * i32::from(other.0[n]);
        PortableVector(cast::<[i32; 8], _>(std::array::from_fn(|n| product(2 * n).wrapping_add(product(2 * n + 1)))))
    }

    #[inline(always)]
    fn product16(self, other: PortableVector, shift: u32) -> PortableVector {
        // Products of bytes need all sixteen bits.
        PortableVector(std::array::from_fn(|n| {
            (self.0[n].wrapping_mul(other.0[n]).cast_unsigned() >> shift).cast_signed()
        }))
    }

    #[inline(always)]
    fn pack(self, high: PortableVector) -> PortableVector {
        let byte = |n: usize| if n < 16 { self.0[n] } else { high.0[n - 16] }.clamp(0, 255) as u8;
        PortableVector(cast::<[u8; 32], _>(std::array::from_fn(byte)))
    }

    #[inline(always)]
    fn min8(self, other: PortableVector) -> PortableVector {
        let a = cast::<_, [u8; 32]>(self.0);
        let b = cast::<_, [u8; 32]>(other.0);
        PortableVector(cast::<[u8; 32], _>(std::array::from_fn(|n| a[n].min(b[n]))))
    }

    #[inline(always)]
    fn dot4(self, x: PortableVector, w: PortableVector) -> PortableVector {
        let sums = self.doubles();
        let x = cast::<_, [u8; 32]>(x.0);
        let w = cast::<_, [i8; 32]>(w.0);
        let product = |n: usize| i32::from(x[n]) * i32::from(w[n]);
        let four = |n: usize| product(4 * n) + product(4 * n + 1) + product(4 * n + 2) + product(4 * n + 3);
        PortableVector(cast::<[i32; 8], _>(std::array::from_fn(|n| sums[n].wrapping_add(four(n)))))
    }

    #[inline(always)]
    fn nonzero32(self) -> u32 {
        self.doubles().iter().rev().fold(0, |mask, value| mask << 1 | u32::from(*value != 0))
    }

    #[inline(always)]
    fn nnz(_: Scalar, masks: &[u16], indices: &mut [u16]) -> usize {
        nnz::of_bytes(masks, indices)
    }

    #[inline(always)]
    fn sum32(self) -> i32 {
        self.doubles().iter().fold(0, |sum, value| sum.wrapping_add(*value))
    }

    #[inline(always)]
    fn total32(self) -> i64 {
        self.doubles().iter().copied().map(i64::from).sum()
    }

    #[inline(always)]
    fn splat128<T: Pod>(_: Scalar, from: &[T]) -> PortableVector {
        let from: &[u8] = cast_slice(from);
        PortableVector(cast::<[u8; 32], _>(std::array::from_fn(|n| from[n % 16])))
    }

    #[inline(always)]
    fn sum_quarters(four: [PortableVector; 4]) -> PortableVector {
        let of = |n: usize| four[n % 4].doubles()[n / 4 * 4..][..4].iter().fold(0i32, |sum, x| sum.wrapping_add(*x));
        PortableVector(cast::<[i32; 8], _>(std::array::from_fn(of)))
    }
}
