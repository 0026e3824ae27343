//! The output layer of i16 weights: activations straight from the accumulators, products never rounded.
//!
//! A weight times an activation fits i16, so that a squared activation v counts as (v·w)·v: one multiplication of
//! words, and one that adds neighbouring products as i32.

use crate::engine::model::Model;
use crate::engine::simd::Vector;
use crate::net::Activation;

/// `weights`: those of stm's values, then those of nstm's.
#[inline(always)]
pub fn output<V: Vector>(proof: V::Proof, model: &Model, [stm, nstm]: [&[i16]; 2], weights: &[i16], bias: i32) -> i32 {
    let (own, their) = weights.split_at(model.half);
    let one = i16::from(model.one);
    let (sum, scale) = match model.shape.activation {
        Activation::Relu => {
            (sum::<V, false>(proof, i16::MAX, stm, own) + sum::<V, false>(proof, i16::MAX, nstm, their), 1)
        }
        Activation::Crelu | Activation::Dual => {
            (sum::<V, false>(proof, one, stm, own) + sum::<V, false>(proof, one, nstm, their), 1)
        }
        Activation::Screlu => (sum::<V, true>(proof, one, stm, own) + sum::<V, true>(proof, one, nstm, their), one),
        Activation::Pairwise => (products::<V>(proof, one, stm, own) + products::<V>(proof, one, nstm, their), one),
    };
    (sum / i64::from(scale) + i64::from(bias)).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// Vectors whose products one i32 of a sum can take: two products of at most 255 · 2^15 a vector.
const CHUNK: usize = 128;

/// Σ clip(x)·w, or Σ clip(x)²·w. Accumulators hold at least as many words as there are weights, a whole number of pairs of
/// vectors.
#[inline(always)]
fn sum<V: Vector, const SQUARED: bool>(proof: V::Proof, most: i16, accumulator: &[i16], weights: &[i16]) -> i64 {
    let most = V::splat16(proof, most);
    let mut total = 0;
    let values = accumulator.chunks(CHUNK * V::WORDS).zip(weights.chunks(CHUNK * V::WORDS));
    for (values, weights) in values {
        let mut sum = V::zero(proof);
        for (values, weights) in values.chunks_exact(V::WORDS).zip(weights.chunks_exact(V::WORDS)) {
            let (clipped, weights) = (V::load(proof, values).clip16(most), V::load(proof, weights));
            let factor = if SQUARED { clipped.mul16(weights) } else { weights };
            sum = sum.add32(factor.dot2(clipped));
        }
        total += sum.total32();
    }
    total
}

/// Σ clip(x)·clip(y)·w, where y stands half an accumulator behind x.
#[inline(always)]
fn products<V: Vector>(proof: V::Proof, most: i16, accumulator: &[i16], weights: &[i16]) -> i64 {
    let most = V::splat16(proof, most);
    let (first, second) = accumulator.split_at(weights.len());
    let mut total = 0;
    let mut from = 0;
    for weights in weights.chunks(CHUNK * V::WORDS) {
        let mut sum = V::zero(proof);
        let pairs = first[from..].chunks_exact(V::WORDS).zip(second[from..].chunks_exact(V::WORDS));
        for ((x, y), weights) in pairs.zip(weights.chunks_exact(V::WORDS)) {
            let (x, y) = (V::load(proof, x).clip16(most), V::load(proof, y).clip16(most));
            sum = sum.add32(x.mul16(V::load(proof, weights)).dot2(y));
        }
        total += sum.total32();
        from += weights.len();
    }
    total
}
