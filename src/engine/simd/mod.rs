//! The vector instructions of a CPU behind one small trait.
//!
//! [`Vector`] is a register, [`Kernel`] an algorithm written once over it (those of evaluation are in [`super::kernels`]).
//! [`BackEnd::run`] compiles a kernel for the CPU's instructions: everything in it becomes one function. Holding a back
//! end proves that the CPU can run it. All back ends give the same integers; [`Portable`] says which (property-tested).
#![allow(unsafe_code, reason = "vector instructions, and loads and stores through pointers")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod nnz;
mod portable;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub use nnz::{GroupWeights, Nnz};
pub use portable::Scalar;

/// Bytes of the widest vector: what kernels work on is padded to a multiple of it.
pub const WIDEST: usize = 64;

/// Room that [`Vector::nnz`] wants behind the places.
pub const NNZ_SLACK: usize = 32;

/// A register: `BYTES` bytes, half as many i16 and a quarter as many i32. Slices given to it hold at least a register.
/// Arithmetic is modulo 2^16 and 2^32. A value can only be made with the proof that the CPU has its instructions.
///
/// # Safety
/// Whatever the masks, [`Vector::nnz`] writes the numbers it counts, no more than `masks.len() * DOUBLES` and each below
/// that.
pub unsafe trait Vector: Copy {
    type Proof: Copy;
    const BYTES: usize;
    /// i16 elements.
    const WORDS: usize = Self::BYTES / 2;
    /// i32 elements.
    const DOUBLES: usize = Self::BYTES / 4;
    /// Registers the CPU has.
    const REGISTERS: usize;

    fn zero(proof: Self::Proof) -> Self;
    fn splat16(proof: Self::Proof, value: i16) -> Self;
    fn splat32(proof: Self::Proof, value: i32) -> Self;
    fn load<T: bytemuck::Pod>(proof: Self::Proof, from: &[T]) -> Self;
    fn store<T: bytemuck::Pod>(self, to: &mut [T]);
    /// `WORDS` bytes as i16.
    fn widen(proof: Self::Proof, from: &[i8]) -> Self;

    fn add16(self, other: Self) -> Self;
    fn sub16(self, other: Self) -> Self;
    fn add32(self, other: Self) -> Self;
    fn sub32(self, other: Self) -> Self;
    /// clamp(x, 0, most) of every i16; `most` is not negative.
    fn clip16(self, most: Self) -> Self;
    /// The low halves of the products of i16 elements.
    fn mul16(self, other: Self) -> Self;
    /// Products of i16 elements as i32, each pair of neighbours added.
    fn dot2(self, other: Self) -> Self;
    /// The product of i16 elements that are not negative and whose product fits i16, shifted right.
    fn product16(self, other: Self, shift: u32) -> Self;
    /// clamp(x, 0, 255) of the i16 elements of both, `self`'s first, as bytes.
    fn pack(self, high: Self) -> Self;
    /// The lesser of every two unsigned bytes.
    fn min8(self, other: Self) -> Self;
    /// To every i32 of `self` the four products of unsigned bytes of `x`, which are at most 127, and signed bytes of `w`.
    fn dot4(self, x: Self, w: Self) -> Self;
    /// Bit i is set where the i-th i32 is not 0.
    fn nonzero32(self) -> u32;
    /// The places of all bits set in `masks`, of which each has `DOUBLES`, the lowest first; what is written behind them,
    /// up to [`NNZ_SLACK`], is anything. Gives how many there are.
    fn nnz(proof: Self::Proof, masks: &[u16], places: &mut [u16]) -> usize;
    /// The sum of all i32.
    fn sum32(self) -> i32;
    /// The sum of all i32 without overflow.
    fn total32(self) -> i64;
    /// The first 16 bytes in every 128-bit quarter.
    fn splat128<T: bytemuck::Pod>(proof: Self::Proof, from: &[T]) -> Self;
    /// In every quarter, the sums of the four i32 that the same quarter of each has.
    fn sum_quarters(four: [Self; 4]) -> Self;
}

/// An algorithm over any vectors. `run` and all it calls are `#[inline(always)]` and free of closures, so that a back end
/// compiles it as one function.
pub trait Kernel {
    type Output;
    fn run<V: Vector>(self, proof: V::Proof) -> Self::Output;
}

/// A back end this CPU has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BackEnd {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl BackEnd {
    /// Those this CPU has, slowest first.
    #[must_use]
    pub fn available() -> Vec<BackEnd> {
        let vector = [
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(BackEnd::Avx2),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(BackEnd::Avx512),
        ];
        std::iter::once(BackEnd::Scalar(Scalar)).chain(vector.into_iter().flatten()).collect()
    }

    /// The fastest this CPU has.
    #[must_use]
    pub fn best() -> BackEnd {
        BackEnd::available().pop().unwrap_or(BackEnd::Scalar(Scalar))
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BackEnd::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx512(_) => "avx512",
        }
    }

    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            BackEnd::Scalar(back_end) => back_end.run(kernel),
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx2(back_end) => back_end.run(kernel),
            #[cfg(target_arch = "x86_64")]
            BackEnd::Avx512(back_end) => back_end.run(kernel),
        }
    }
}
