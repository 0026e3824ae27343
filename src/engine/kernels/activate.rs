//! Activations, rounded to bytes.

use crate::engine::model::Model;
use crate::engine::simd::Vector;
use crate::net::Activation;

/// What goes into the first dense layer from one accumulator. Bit i of `masks[n]` says whether the i-th group of four in
/// the n-th vector is not all zero; gives how many are not.
#[inline(always)]
pub fn accumulator<V: Vector>(
    proof: V::Proof,
    model: &Model,
    accumulator: &[i16],
    output: &mut [u8],
    masks: &mut [u16],
) -> usize {
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
    let mut count = 0;
    for ((first, second), (output, mask)) in inputs.zip(outputs) {
        let (low, high) = (V::load(proof, first), V::load(proof, &first[V::WORDS..]));
        let bytes = if squared {
            let times = (V::load(proof, second).clip16(one), V::load(proof, &second[V::WORDS..]).clip16(one));
            low.clip16(one).product16(times.0, shift).pack(high.clip16(one).product16(times.1, shift))
        } else {
            low.pack(high).min8(one8)
        };
        bytes.store(output);
        let nonzero = bytes.nonzero32();
        *mask = nonzero as u16;
        count += nonzero.count_ones() as usize;
    }
    count
}

/// Turns a hidden layer's sums into the next one's inputs; gives their number.
#[inline(always)]
pub fn hidden(model: &Model, layer: usize, sums: &[i32], output: &mut [u8]) -> usize {
    let scheme = &model.scheme;
    let (shift, one) = (model.rescale_shift, i32::from(model.one));
    let activation = model.shape.hidden_activation(layer);
    let outputs = activation.outputs(sums.len());
    let values = &mut output[..outputs];
    let (squares, clipped) = values.split_at_mut(outputs - sums.len());
    for (value, sum) in clipped.iter_mut().zip(sums) {
        *value = (sum >> shift).clamp(0, one) as u8;
    }
    match activation {
        Activation::Relu | Activation::Crelu | Activation::Pairwise => {}
        Activation::Screlu => {
            for value in clipped {
                *value = scheme.product(*value, *value);
            }
        }
        Activation::Dual => match model.small_square {
            Some(shift) => {
                for (value, sum) in squares.iter_mut().zip(sums) {
                    let sum = (*sum).clamp(-SMALL, SMALL);
                    *value = ((sum * sum) >> shift).min(one) as u8;
                }
            }
            None => {
                for (value, sum) in squares.iter_mut().zip(sums) {
                    *value = scheme.square(*sum);
                }
            }
        },
    }
    outputs
}

/// The square of no sum beyond it is less than 1.0, where [`Model::small_square`] says so.
pub const SMALL: i32 = 1 << 15;
