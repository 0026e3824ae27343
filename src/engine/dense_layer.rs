//! The dense layers of a network, laid out for the kernels.

use super::aligned::AlignedVec;
use super::kernels::TILE;
use super::simd::WIDEST;
use crate::net::{QuantDense, Scheme, WeightType};

/// Layers of at most this many outputs have one row per output.
const FEW_OUTPUTS: usize = 4;

pub(super) struct DenseLayer {
    /// Padded.
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) weights: DenseWeights,
    /// Padded to whole vectors.
    pub(super) biases: AlignedVec<i32>,
    /// Groups of four inputs that are not padding.
    pub(super) groups: usize,
    /// Of a first layer with grouped weights: the products of any so many groups may be added as i16
    /// ([`super::simd::Vector::dot4_all`]): 4, 2 or 1.
    pub(super) joined_groups: usize,
}

pub(super) enum DenseWeights {
    /// One padded row per output: for few outputs.
    PerOutput(AlignedVec<i8>),
    Grouped {
        /// For each group of four inputs, the four weights of every padded output. A last group is all zero.
        groups: AlignedVec<i8>,
        /// The same weights in tiles; empty for layers that read a hidden layer.
        tiles: AlignedVec<i8>,
    },
    /// The i16 weights of a direct output.
    Direct(AlignedVec<i16>),
}

impl DenseLayer {
    /// `side` inputs come from each accumulator and are padded to `padded`; 0 for layers that read a hidden layer.
    pub(super) fn new(layer: &QuantDense, (side, padded): (usize, usize), scheme: &Scheme) -> DenseLayer {
        let (columns, stride) = match side {
            0 => (layer.inputs, layer.inputs.next_multiple_of(WIDEST)),
            _ => (side, padded),
        };
        let inputs = layer.inputs / columns * stride;
        let bytes = || layer.weights.iter().map(|weight| *weight as i8).collect::<Vec<_>>();
        let mut biases = AlignedVec::zeroed(layer.outputs.next_multiple_of(WIDEST / size_of::<i32>()));
        biases[..layer.outputs].copy_from_slice(&layer.biases);
        let groups = inputs / 4;
        let mut joined_groups = 1;
        let weights = if scheme.weights == WeightType::I16 {
            DenseWeights::Direct(AlignedVec::padded(&layer.weights, columns, stride))
        } else if layer.outputs <= FEW_OUTPUTS {
            DenseWeights::PerOutput(AlignedVec::padded(&bytes(), columns, stride))
        } else {
            let rows = AlignedVec::padded(&bytes(), columns, stride);
            let outputs = biases.len();
            let mut grouped = AlignedVec::zeroed((groups + 1) * outputs * 4);
            for (output, row) in rows.chunks_exact(inputs).enumerate() {
                for (group, weights) in row.chunks_exact(4).enumerate() {
                    grouped[4 * (group * outputs + output)..][..4].copy_from_slice(weights);
                }
            }
            if side > 0 {
                joined_groups = joined(&rows, inputs, i32::from(scheme.crelu(i32::MAX)));
            }
            let tiles = if side == 0 { AlignedVec::zeroed(0) } else { tiled(&rows, inputs, outputs) };
            DenseWeights::Grouped { groups: grouped, tiles }
        };
        // The padding of hidden layers is zero: those groups are never multiplied.
        let used = if side == 0 { layer.inputs.div_ceil(4) } else { groups };
        DenseLayer { inputs, outputs: layer.outputs, weights, biases, groups: used, joined_groups }
    }
}

/// The largest number of groups (4, 2 or 1) whose products may be added as i16, whichever groups they are, with inputs
/// of at most `one`.
fn joined(rows: &[i8], inputs: usize, one: i32) -> usize {
    let fits = |count: usize| {
        let row_fits = |row: &[i8]| {
            [0, 2].into_iter().all(|start| {
                let pairs = || row.chunks_exact(4).map(|group| [i32::from(group[start]), i32::from(group[start + 1])]);
                let most = largest(pairs().map(|pair| pair.map(|weight| weight.max(0)).iter().sum()), count);
                let least = largest(pairs().map(|pair| pair.map(|weight| (-weight).max(0)).iter().sum()), count);
                one * most <= i32::from(i16::MAX) && one * least <= i32::from(i16::MAX)
            })
        };
        rows.chunks_exact(inputs).all(row_fits)
    };
    [4, 2].into_iter().find(|count| fits(*count)).unwrap_or(1)
}

/// The sum of the `count` largest numbers.
fn largest(numbers: impl Iterator<Item = i32>, count: usize) -> i32 {
    let mut numbers: Vec<i32> = numbers.collect();
    numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
    numbers.iter().take(count).sum()
}

/// Rearranges rows of weights into tiles of [`TILE`] outputs by [`TILE`] inputs. The tiles of the first [`TILE`] inputs
/// come first, for all `outputs` (a multiple of [`TILE`]). A tile is four vectors; quarter q of vector r has the
/// weights of output 4q + r.
fn tiled(rows: &[i8], inputs: usize, outputs: usize) -> AlignedVec<i8> {
    let mut tiles = AlignedVec::zeroed(inputs * outputs);
    for (output, row) in rows.chunks_exact(inputs).enumerate() {
        let tile = output / TILE;
        let inside = output % TILE;
        let quarter = inside / 4;
        let vector = inside % 4;
        for (column, weights) in row.chunks_exact(TILE).enumerate() {
            let at = TILE * (column * outputs + tile * TILE + vector * 4 + quarter);
            tiles[at..at + TILE].copy_from_slice(weights);
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_joined_while_no_sum_overflows() {
        // Two outputs of five groups; 258 · 127 is the largest product below 2^15.
        let check = |weights: [i8; 20], expected| {
            let mut rows = vec![1; 20];
            rows.extend(weights);
            assert_eq!(joined(&rows, 20, 127), expected, "{weights:?}");
        };
        check([32; 20], 4);
        check([33; 20], 2);
        check([-64; 20], 2);
        check([-65; 20], 1);
        // Of each group, the first pair and the second are summed apart, as are positive and negative weights.
        check(std::array::from_fn(|n| if n % 4 < 2 { 32 } else { -32 }), 4);
        check(std::array::from_fn(|n| if n % 2 == 0 { 64 } else { -64 }), 4);
        // Any two groups may meet.
        let mut far = [0; 20];
        far[0] = 127;
        far[1] = 127;
        far[16] = 4;
        check(far, 4);
        far[17] = 1;
        check(far, 1);
    }
}
