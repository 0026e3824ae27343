//! Activations, rounded to bytes.

use crate::engine::model::Model;
use crate::engine::simd::Vector;
use crate::net::Activation;

/// What goes into the first dense layer from one accumulator.
#[inline(always)]
pub fn accumulator<V: Vector>(proof: V::Proof, model: &Model, accumulator: &[i16], output: &mut [u8]) {
    let one = V::splat16(proof, i16::from(model.one));
    let shift = model.product_shift;
    let half = output.len();
    let (first, second, squared) = match model.shape.activation {
        Activation::Pairwise => (&accumulator[..half], &accumulator[half..][..half], true),
        Activation::Screlu => (&accumulator[..half], &accumulator[..half], true),
        Activation::Relu | Activation::Crelu | Activation::Dual => (&accumulator[..half], &accumulator[..half], false),
    };
    let mut at = 0;
    while at + V::BYTES <= half {
        let mut low = V::load(proof, &first[at..]).clip16(one);
        let mut high = V::load(proof, &first[at + V::WORDS..]).clip16(one);
        if squared {
            low = low.product16(V::load(proof, &second[at..]).clip16(one), shift);
            high = high.product16(V::load(proof, &second[at + V::WORDS..]).clip16(one), shift);
        }
        low.pack(high).store(&mut output[at..]);
        at += V::BYTES;
    }
}

/// Turns a hidden layer's sums into the next one's inputs, zeros behind; gives their number.
#[inline(always)]
pub fn hidden(model: &Model, layer: usize, sums: &[i32], output: &mut [u8]) -> usize {
    let scheme = &model.scheme;
    let (shift, one) = (model.rescale_shift, i32::from(model.one));
    let activation = model.shape.hidden_activation(layer);
    let outputs = activation.outputs(sums.len());
    let (values, padding) = output.split_at_mut(outputs);
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
    padding.fill(0);
    outputs
}

/// The square of no sum beyond it is less than 1.0, where [`Model::small_square`] says so.
pub const SMALL: i32 = 1 << 15;
