//! Writes a network to bytes.

use super::architecture::{Encoding, WeightRange};
use super::{Nnue, PADDING, leb128};
use crate::net::QuantDense;

pub fn bytes(nnue: &Nnue) -> Vec<u8> {
    let Nnue { architecture, description, net } = nnue;
    let mut out = Vec::new();
    for number in [architecture.version(), architecture.hash(), description.len() as u32] {
        out.extend(number.to_le_bytes());
    }
    out.extend(description);
    out.extend(architecture.transformer_hash().to_le_bytes());
    let widened = |numbers: &[i16]| numbers.iter().copied().map(i32::from).collect::<Vec<_>>();
    match architecture.encoding() {
        Encoding::Plain => {
            for number in net.ft_biases.iter().chain(&net.ft_weights) {
                out.extend_from_slice(&number.to_le_bytes());
            }
            for number in &net.psqt_weights {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        Encoding::Compressed => {
            compress(&widened(&net.ft_biases), &mut out);
            compress(&widened(&net.ft_weights), &mut out);
            compress(&net.psqt_weights, &mut out);
        }
        Encoding::ByRange { ranges, psqt_by_range } => {
            compress(&widened(&net.ft_biases), &mut out);
            let mut weights = &net.ft_weights[..];
            let mut values = &net.psqt_weights[..];
            for WeightRange { features, is_narrow } in *ranges {
                let own = weights.split_off(..*features as usize * net.shape.l1).unwrap_or_default();
                if *is_narrow {
                    // `Nnue::from_file` has checked them.
                    out.extend(own.iter().map(|weight| *weight as u8));
                } else {
                    compress(&widened(own), &mut out);
                }
                if *psqt_by_range {
                    let own = values.split_off(..*features as usize * net.shape.buckets.count).unwrap_or_default();
                    compress(own, &mut out);
                }
            }
            if !psqt_by_range {
                compress(values, &mut out);
            }
        }
    }
    for stack in &net.stacks {
        out.extend(architecture.layers_hash().to_le_bytes());
        stack.iter().for_each(|layer| dense(layer, &mut out));
    }
    out
}

fn dense(layer: &QuantDense, out: &mut Vec<u8>) {
    for bias in &layer.biases {
        out.extend_from_slice(&bias.to_le_bytes());
    }
    let padding = layer.inputs.next_multiple_of(PADDING) - layer.inputs;
    for row in layer.weights.chunks_exact(layer.inputs) {
        out.extend(row.iter().map(|weight| *weight as u8));
        out.resize(out.len() + padding, 0);
    }
}

fn compress(numbers: &[i32], out: &mut Vec<u8>) {
    out.extend(leb128::MAGIC);
    let start = out.len();
    out.extend([0; 4]);
    numbers.iter().for_each(|number| leb128::write(*number, out));
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
