//! The direct output of schemes with i16 weights: computed from the accumulators without rounding a product.
//!
//! A weight times an activation fits i16. A squared activation v therefore enters the sum as (v·w)·v: one i16
//! multiplication, and one multiplication that adds neighbouring products as i32.

use crate::engine::model::Model;
use crate::engine::simd::Vector;
use crate::net::Activation;

/// The positional part of the raw output. `weights` holds the weights of stm's values, then the weights of nstm's.
#[inline(always)]
pub fn output<V: Vector>(proof: V::Proof, model: &Model, [stm, nstm]: [&[i16]; 2], weights: &[i16], bias: i32) -> i32 {
    let (stm_weights, nstm_weights) = weights.split_at(model.side_inputs);
    let one = i16::from(model.one);
    let (sum, scale) = match model.shape.activation {
        Activation::Relu => (
            sum::<V, false>(proof, i16::MAX, stm, stm_weights) + sum::<V, false>(proof, i16::MAX, nstm, nstm_weights),
            1,
        ),
        Activation::Crelu | Activation::Dual => {
            (sum::<V, false>(proof, one, stm, stm_weights) + sum::<V, false>(proof, one, nstm, nstm_weights), 1)
        }
        Activation::Screlu => {
            (sum::<V, true>(proof, one, stm, stm_weights) + sum::<V, true>(proof, one, nstm, nstm_weights), one)
        }
        Activation::Pairwise => {
            (products::<V>(proof, one, stm, stm_weights) + products::<V>(proof, one, nstm, nstm_weights), one)
        }
    };
    (sum / i64::from(scale) + i64::from(bias)).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// Vectors whose products fit one i32 sum: each adds two products of at most 255 · 2^15.
const CHUNK: usize = 128;

/// Σ clip(x)·w, or Σ clip(x)²·w. The number of weights is a multiple of two vectors, and accumulators are no shorter.
#[inline(always)]
fn sum<V: Vector, const SQUARED: bool>(proof: V::Proof, max: i16, accumulator: &[i16], weights: &[i16]) -> i64 {
    let max = V::splat16(proof, max);
    let mut total = 0;
    let values = accumulator.chunks(CHUNK * V::WORDS).zip(weights.chunks(CHUNK * V::WORDS));
    for (values, weights) in values {
        let mut sum = V::zero(proof);
        for (values, weights) in values.chunks_exact(V::WORDS).zip(weights.chunks_exact(V::WORDS)) {
            let clipped = V::load(proof, values).clip16(max);
            let weights = V::load(proof, weights);
            let factor = if SQUARED { clipped.mul16(weights) } else { weights };
            sum = sum.add32(factor.dot2(clipped));
        }
        total += sum.total32();
    }
    total
}

/// Σ clip(x)·clip(y)·w, where y is the second half of the accumulator.
#[inline(always)]
fn products<V: Vector>(proof: V::Proof, max: i16, accumulator: &[i16], weights: &[i16]) -> i64 {
    let max = V::splat16(proof, max);
    let (first, second) = accumulator.split_at(weights.len());
    let mut total = 0;
    let mut from = 0;
    for weights in weights.chunks(CHUNK * V::WORDS) {
        let mut sum = V::zero(proof);
        let pairs = first[from..].chunks_exact(V::WORDS).zip(second[from..].chunks_exact(V::WORDS));
        for ((x, y), weights) in pairs.zip(weights.chunks_exact(V::WORDS)) {
            let x = V::load(proof, x).clip16(max);
            let y = V::load(proof, y).clip16(max);
            sum = sum.add32(x.mul16(V::load(proof, weights)).dot2(y));
        }
        total += sum.total32();
        from += weights.len();
    }
    total
}
