//! Sixteen floats at a time, on every CPU with the same bits.
//!
//! [`Lanes`] is a group of sixteen floats in as many registers as the CPU needs for them, [`LanesKernel`] an algorithm
//! written once over it. Each lane rounds as a plain float does, a multiplication with addition rounds once
//! (`f32::mul_add`), and a kernel adds in an order that its sizes alone decide. So all back ends return the same bits.
#![allow(unsafe_code, reason = "vector instructions, and loads and stores through pointers")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use crate::cpu::BackEnd;

/// Floats in a group.
pub const LANES: usize = 16;

/// The smallest multiple of [`LANES`] that holds `values` floats.
#[must_use]
pub const fn padded(values: usize) -> usize {
    values.next_multiple_of(LANES)
}

/// [`LANES`] floats. Creating a value needs the proof that the CPU has the instructions.
pub trait Lanes: Copy {
    type Proof: Copy;
    /// How many groups the CPU's registers hold.
    const GROUPS: usize;

    fn splat(proof: Self::Proof, value: f32) -> Self;
    fn load(proof: Self::Proof, from: &[f32; LANES]) -> Self;
    fn store(self, to: &mut [f32; LANES]);
    fn add(self, summand: Self) -> Self;
    fn mul(self, factor: Self) -> Self;
    /// Each value clamped to 0..=1; not-a-number stays.
    fn clamped(self) -> Self;
    /// Where `place` > 0 the own value, elsewhere 0.
    fn where_positive(self, place: Self) -> Self;
    /// Where 0 < `place` < 1 the own value, elsewhere 0.
    fn where_inside(self, place: Self) -> Self;
    /// self · factor + summand, rounded once.
    fn mul_add(self, factor: Self, summand: Self) -> Self;
}

/// An algorithm over any lanes. `run` and its callees are `#[inline(always)]` and use no closures, so that a back end
/// compiles them as one function.
pub trait LanesKernel: Sized {
    type Output;
    fn run<V: Lanes>(self, proof: V::Proof) -> Self::Output;

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
            BackEnd::NeonDot(proof) => neon::run(proof.neon(), self),
        }
    }
}
