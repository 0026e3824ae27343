//! The vector instructions of a CPU behind one small trait.
//!
//! [`Vector`] is a register, [`VectorKernel`] an algorithm written once over it; the kernels of evaluation are in
//! `engine::kernels`. [`VectorKernel::run_on`] compiles a kernel into one function with the instructions of a back end.
//! All back ends give the same integers; `PortableVector` is the reference of the property tests.
#![allow(unsafe_code, reason = "vector instructions, and loads and stores through pointers")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod nnz;
mod portable;
#[cfg(test)]
mod tests;

use crate::cpu::BackEnd;

pub use nnz::{GroupWeights, Nnz};

/// Bytes of the widest vector. Arrays for kernels are padded to a multiple of it.
pub const WIDEST: usize = 64;

/// Elements that [`Vector::nnz`] may overwrite after the indices.
pub const NNZ_SLACK: usize = 32;

/// A register of `BYTES` bytes: half as many i16 and a quarter as many i32. Slices passed to it hold at least a
/// register. Arithmetic is modulo 2^16 and 2^32. Creating a value needs the proof that the CPU has the instructions.
///
/// # Safety
/// For any masks, [`Vector::nnz`] writes as many indices as it returns: at most `masks.len() * DOUBLES`, each below
/// that.
pub unsafe trait Vector: Copy {
    type Proof: Copy;
    const BYTES: usize;
    /// Number of i16 elements.
    const WORDS: usize = Self::BYTES / 2;
    /// Number of i32 elements.
    const DOUBLES: usize = Self::BYTES / 4;
    /// How many such vectors the CPU's registers hold.
    const REGISTERS: usize;
    /// Whether instructions take an operand from memory, without a register for it.
    const MEMORY_OPERANDS: bool = true;
    /// Whether [`Vector::dot4_all`] takes less time than [`Vector::dot4`] of each.
    const JOINS_PRODUCTS: bool = false;

    fn zero(proof: Self::Proof) -> Self;
    fn splat16(proof: Self::Proof, value: i16) -> Self;
    fn splat32(proof: Self::Proof, value: i32) -> Self;
    fn load<T: bytemuck::Pod>(proof: Self::Proof, from: &[T]) -> Self;
    fn store<T: bytemuck::Pod>(self, to: &mut [T]);
    /// Loads `WORDS` bytes as i16.
    fn widen(proof: Self::Proof, from: &[i8]) -> Self;

    fn add16(self, other: Self) -> Self;
    fn sub16(self, other: Self) -> Self;
    fn add32(self, other: Self) -> Self;
    fn sub32(self, other: Self) -> Self;
    /// clamp(x, 0, max) of every i16; `max` is not negative.
    fn clip16(self, max: Self) -> Self;
    /// The low halves of the products of i16 elements.
    fn mul16(self, other: Self) -> Self;
    /// Products of i16 elements as i32, each pair of neighbours added.
    fn dot2(self, other: Self) -> Self;
    /// The products of i16 elements, shifted right. No element is negative, and the products fit i16.
    fn product16(self, other: Self, shift: u32) -> Self;
    /// clamp(x, 0, 255) as bytes of the i16 elements of `self`, then of `high`.
    fn pack(self, high: Self) -> Self;
    /// The minimum of unsigned bytes.
    fn min8(self, other: Self) -> Self;
    /// Adds to every i32 of `self` the four products of unsigned bytes of `x`, at most 127, and signed bytes of `w`.
    fn dot4(self, x: Self, w: Self) -> Self;
    /// [`Vector::dot4`] of several `x` and `w`, if this cannot overflow: for every i32 both the sum of its first two
    /// products and the sum of its last two, over all of them, fit i16.
    #[inline(always)]
    fn dot4_all<const C: usize>(self, x: [Self; C], w: [Self; C]) -> Self {
        let mut sum = self;
        for c in 0..C {
            sum = sum.dot4(x[c], w[c]);
        }
        sum
    }
    /// A mask: bit i is set if the i-th i32 is not 0.
    fn nonzero32(self) -> u32;
    /// Writes the indices of the set bits of `masks`, ascending, and returns their number. Each mask has `DOUBLES`
    /// bits. Up to [`NNZ_SLACK`] elements after the indices are overwritten.
    fn nnz(proof: Self::Proof, masks: &[u16], indices: &mut [u16]) -> usize;
    /// The sum of all i32, modulo 2^32.
    fn sum32(self) -> i32;
    /// The sum of all i32 without overflow.
    fn total32(self) -> i64;
    /// Loads 16 bytes into every 128-bit quarter.
    fn splat128<T: bytemuck::Pod>(proof: Self::Proof, from: &[T]) -> Self;
    /// Element i of each quarter is the sum of the i32 in that quarter of `four[i]`.
    fn sum_quarters(four: [Self; 4]) -> Self;
}

/// An algorithm over any vectors. `run` and its callees are `#[inline(always)]` and use no closures, so that a back end
/// compiles them as one function.
pub trait VectorKernel: Sized {
    type Output;
    fn run<V: Vector>(self, proof: V::Proof) -> Self::Output;

    /// Runs the kernel with a back end's instructions. Inlined, so that a caller passes its kernel on without copying it.
    #[inline(always)]
    fn run_on(self, back_end: BackEnd) -> Self::Output {
        match back_end {
            BackEnd::Scalar(proof) => portable::run(proof, self),
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(proof) => avx2::run(proof, self),
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx512(proof) => avx512::run(proof, self),
            #[cfg(target_arch = "aarch64")]
            BackEnd::Neon(proof) => neon::run(proof, self),
            #[cfg(target_arch = "aarch64")]
            BackEnd::NeonDot(proof) => neon::run_dot(proof, self),
        }
    }
}
