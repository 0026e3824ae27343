//! Permutes the accumulator's neurons of a network (`ft_permute`); see [`crate::engine::ft_permute()`] for a good
//! order.

use super::{Activation, QuantDense, QuantNet};

impl QuantNet {
    /// First-layer inputs per accumulator: one per neuron, with pairwise one per pair of neurons.
    #[must_use]
    pub fn units(&self) -> usize {
        self.shape.activation.outputs(self.shape.l1)
    }

    /// The network with unit `order[n]` at position n. Every score stays the same.
    ///
    /// # Panics
    /// When `order` is not a permutation of the units.
    #[must_use]
    pub fn permute_ft(&self, order: &[usize]) -> QuantNet {
        let units = self.units();
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..units), "`order` is not a permutation of the units");
        let parts = if self.shape.activation == Activation::Pairwise { 2 } else { 1 };
        let neurons: Vec<usize> =
            (0..parts).flat_map(|part| order.iter().map(move |unit| part * units + unit)).collect();
        let inputs: Vec<usize> = (0..2).flat_map(|side| order.iter().map(move |unit| side * units + unit)).collect();
        let mut net = self.clone();
        net.ft_weights = permute_columns(&self.ft_weights, &neurons);
        net.ft_biases = permute_columns(&self.ft_biases, &neurons);
        for stack in &mut net.stacks {
            let QuantDense { weights, .. } = &mut stack[0];
            *weights = permute_columns(weights, &inputs);
        }
        net
    }
}

/// Permutes the columns of rows of numbers.
fn permute_columns(rows: &[i16], order: &[usize]) -> Vec<i16> {
    rows.chunks_exact(order.len()).flat_map(|row| order.iter().map(|column| row[*column])).collect()
}
