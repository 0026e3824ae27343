//! Activations of accumulators and hidden layers, as bytes.

use crate::engine::model::Model;
use crate::engine::simd::Vector;
use crate::net::Activation;

/// Writes one accumulator's inputs of the first dense layer to `output`. Bit i of `masks[n]` is set if the i-th group
/// of four in the n-th vector is not all zero.
#[inline(always)]
pub fn accumulator<V: Vector>(
    proof: V::Proof,
    model: &Model,
    accumulator: &[i16],
    output: &mut [u8],
    masks: &mut [u16],
) {
    let clip = V::splat16(proof, i16::from(model.clip));
    let clip8 = V::splat16(proof, i16::from_ne_bytes([model.clip; 2]));
    let shift = model.product_shift;
    let width = output.len();
    let (first, second) = match model.shape.activation {
        Activation::Pairwise => (&accumulator[..width], &accumulator[width..][..width]),
        _ => (&accumulator[..width], &accumulator[..width]),
    };
    let multiplies = model.shape.activation.multiplies();
    let inputs = first.chunks_exact(V::BYTES).zip(second.chunks_exact(V::BYTES));
    let outputs = output.chunks_exact_mut(V::BYTES).zip(masks);
    for ((first, second), (output, mask)) in inputs.zip(outputs) {
        let (low, high) = (V::load(proof, first), V::load(proof, &first[V::WORDS..]));
        let bytes = if multiplies {
            let factors = (V::load(proof, second).clip16(clip), V::load(proof, &second[V::WORDS..]).clip16(clip));
            low.clip16(clip).product16(factors.0, shift).pack(high.clip16(clip).product16(factors.1, shift))
        } else {
            low.pack(high).min8(clip8)
        };
        bytes.store(output);
        *mask = bytes.nonzero32() as u16;
    }
}

/// Sums per iteration. Sums and outputs are padded to whole blocks.
const BLOCK: usize = 16;

/// Writes the activations of a hidden layer's first `width` sums to `output` and returns their number. Values beyond
/// them do not matter: their weights are zero.
#[inline(always)]
pub fn hidden(model: &Model, layer: usize, sums: &[i32], width: usize, output: &mut [u8]) -> usize {
    let scheme = &model.scheme;
    let (shift, one) = (model.rescale_shift, i32::from(model.one));
    let activation = model.shape.hidden_activation(layer);
    let outputs = activation.outputs(width);
    let (blocks, _) = sums[..width.next_multiple_of(BLOCK)].as_chunks::<BLOCK>();
    if activation == Activation::Dual {
        for (sums, output) in blocks.iter().zip(output.chunks_exact_mut(BLOCK)) {
            let squares = match model.small_square {
                Some(shift) => squared(sums, shift, one),
                None => sums.map(|sum| scheme.square(sum)),
            };
            output.copy_from_slice(&squares);
        }
    }
    for (sums, output) in blocks.iter().zip(output[outputs - width..].chunks_exact_mut(BLOCK)) {
        output.copy_from_slice(&clipped(sums, shift, one));
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

/// min(x², 1), where [`Model::small_square`] guarantees that any sum beyond [`SMALL_SUM`] gives 1.0.
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
