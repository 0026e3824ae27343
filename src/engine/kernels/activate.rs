//! Activations, rounded to bytes.

use crate::engine::model::Model;
use crate::engine::simd::Vector;
use crate::net::Activation;

/// What goes into the first dense layer from one accumulator. Bit i of `masks[n]` says whether the i-th group of four in
/// the n-th vector is not all zero.
#[inline(always)]
pub fn accumulator<V: Vector>(
    proof: V::Proof,
    model: &Model,
    accumulator: &[i16],
    output: &mut [u8],
    masks: &mut [u16],
) {
    let one = V::splat16(proof, i16::from(model.one));
    let one8 = V::splat16(proof, i16::from_ne_bytes([model.one; 2]));
    let shift = model.product_shift;
    let half = output.len();
    let (first, second) = match model.shape.activation {
        Activation::Pairwise => (&accumulator[..half], &accumulator[half..][..half]),
        _ => (&accumulator[..half], &accumulator[..half]),
    };
    let squared = model.shape.activation.multiplies();
    let inputs = first.chunks_exact(V::BYTES).zip(second.chunks_exact(V::BYTES));
    let outputs = output.chunks_exact_mut(V::BYTES).zip(masks);
    for ((first, second), (output, mask)) in inputs.zip(outputs) {
        let (low, high) = (V::load(proof, first), V::load(proof, &first[V::WORDS..]));
        let bytes = if squared {
            let times = (V::load(proof, second).clip16(one), V::load(proof, &second[V::WORDS..]).clip16(one));
            low.clip16(one).product16(times.0, shift).pack(high.clip16(one).product16(times.1, shift))
        } else {
            low.pack(high).min8(one8)
        };
        bytes.store(output);
        *mask = bytes.nonzero32() as u16;
    }
}

/// Sums that are turned at once; sums and outputs have room for whole blocks.
const BLOCK: usize = 16;

/// Turns a hidden layer's sums, of which `width` count, into the next one's inputs; gives their number. What stands behind
/// them is as good as zero: it has no weights.
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

/// Of sums whose square is at least 1.0 beyond [`SMALL`].
#[inline(always)]
fn squared(sums: &[i32; BLOCK], shift: u32, one: i32) -> [u8; BLOCK] {
    let mut values = [0; BLOCK];
    for n in 0..BLOCK {
        let sum = sums[n].clamp(-SMALL, SMALL);
        values[n] = ((sum * sum) >> shift).min(one) as u8;
    }
    values
}

/// The square of no sum beyond it is less than 1.0, where [`Model::small_square`] says so.
pub const SMALL: i32 = 1 << 15;
