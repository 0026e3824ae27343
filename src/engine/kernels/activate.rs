//! Activations of accumulators and hidden layers, as bytes.

use super::AccumulatorSums;
use crate::engine::model::{HiddenShifts, Model};
use crate::engine::simd::Vector;
use crate::net::Activation;

/// Writes one accumulator's inputs of the first dense layer to `output`. Bit i of `masks[n]` is set if the i-th group
/// of four in the n-th vector is not all zero.
#[inline(always)]
pub fn accumulator<V: Vector>(
    proof: V::Proof,
    model: &Model,
    accumulator: AccumulatorSums<'_>,
    output: &mut [u8],
    masks: &mut [u16],
) {
    let first = accumulator.first;
    match (accumulator.second, model.shape.activation.multiplies()) {
        (None, false) => activations::<V, false, false>(proof, model, [first; 2], output, masks),
        (None, true) => activations::<V, false, true>(proof, model, [first; 2], output, masks),
        (Some(second), false) => activations::<V, true, false>(proof, model, [first, second], output, masks),
        (Some(second), true) => activations::<V, true, true>(proof, model, [first, second], output, masks),
    }
}

/// The activations of an accumulator, or of the sum of two if it is split.
#[inline(always)]
fn activations<V: Vector, const IS_SPLIT: bool, const MULTIPLIES: bool>(
    proof: V::Proof,
    model: &Model,
    [first, second]: [&[i16]; 2],
    output: &mut [u8],
    masks: &mut [u16],
) {
    let clip = V::splat16(proof, i16::from(model.clip));
    let clip8 = V::splat16(proof, i16::from_ne_bytes([model.clip; 2]));
    let shift = model.product_shift;
    let width = output.len();
    let start = match model.shape.activation {
        Activation::Pairwise => width,
        _ => 0,
    };
    // A vector of bytes comes from two vectors of i16.
    let values = first[..width].chunks_exact(V::BYTES).zip(second[..width].chunks_exact(V::BYTES));
    let factors = [&first[start..][..width], &second[start..][..width]];
    let factors = factors[0].chunks_exact(V::BYTES).zip(factors[1].chunks_exact(V::BYTES));
    let outputs = output.chunks_exact_mut(V::BYTES).zip(masks);
    for ((values, factors), (output, mask)) in values.zip(factors).zip(outputs) {
        let values = load_two::<V, IS_SPLIT>(proof, values);
        let bytes = if MULTIPLIES {
            products(values, load_two::<V, IS_SPLIT>(proof, factors), clip, shift)
        } else {
            values[0].pack(values[1]).min8(clip8)
        };
        bytes.store(output);
        *mask = bytes.nonzero32() as u16;
    }
}

/// The products of clipped neurons as bytes: of two vectors and two of factors.
#[inline(always)]
pub fn products<V: Vector>([low, high]: [V; 2], [low_factor, high_factor]: [V; 2], clip: V, shift: u32) -> V {
    let low = low.clip16(clip).product16(low_factor.clip16(clip), shift);
    low.pack(high.clip16(clip).product16(high_factor.clip16(clip), shift))
}

/// Two vectors of an accumulator.
#[inline(always)]
fn load_two<V: Vector, const IS_SPLIT: bool>(proof: V::Proof, (first, second): (&[i16], &[i16])) -> [V; 2] {
    let mut sums = [V::load(proof, first), V::load(proof, &first[V::WORDS..])];
    if IS_SPLIT {
        sums[0] = sums[0].add16(V::load(proof, second));
        sums[1] = sums[1].add16(V::load(proof, &second[V::WORDS..]));
    }
    sums
}

/// Sums per iteration. Sums and outputs are padded to whole blocks.
pub const BLOCK: usize = 16;

/// Writes the activations of a hidden layer's first `width` sums to `output` and returns their number. Values beyond
/// them do not matter: their weights are zero.
#[inline(always)]
pub fn hidden(model: &Model, layer: usize, sums: &[i32], width: usize, output: &mut [u8]) -> usize {
    let scheme = &model.scheme;
    let HiddenShifts { rescale, small_square } = model.hidden[layer];
    let one = i32::from(model.one);
    let activation = model.shape.hidden_activation(layer);
    let outputs = activation.outputs(width);
    let (blocks, _) = sums[..width.next_multiple_of(BLOCK)].as_chunks::<BLOCK>();
    if activation == Activation::Dual {
        for (sums, output) in blocks.iter().zip(output.chunks_exact_mut(BLOCK)) {
            let squares = match small_square {
                Some(shift) => squared(sums, shift, one),
                None => sums.map(|sum| scheme.square(layer, sum)),
            };
            output.copy_from_slice(&squares);
        }
    }
    for (sums, output) in blocks.iter().zip(output[outputs - width..].chunks_exact_mut(BLOCK)) {
        output.copy_from_slice(&clipped(sums, rescale, one));
    }
    if activation == Activation::Screlu {
        for value in &mut output[..width] {
            *value = scheme.product(*value, *value);
        }
    }
    outputs
}

#[inline(always)]
fn clipped(sums: &[i32; BLOCK], shift: u32, one: i32) -> [u8; BLOCK] {
    let mut values = [0; BLOCK];
    for n in 0..BLOCK {
        values[n] = (sums[n] >> shift).clamp(0, one) as u8;
    }
    values
}

/// min(x², 1), where [`HiddenShifts::small_square`] guarantees that any sum beyond [`SMALL_SUM`] gives 1.0.
#[inline(always)]
fn squared(sums: &[i32; BLOCK], shift: u32, one: i32) -> [u8; BLOCK] {
    let mut values = [0; BLOCK];
    for n in 0..BLOCK {
        let sum = sums[n].clamp(-SMALL_SUM, SMALL_SUM);
        values[n] = ((sum * sum) >> shift).min(one) as u8;
    }
    values
}

/// Sums are clamped to ± this before squaring, so that the square fits i32.
pub const SMALL_SUM: i32 = 1 << 15;
