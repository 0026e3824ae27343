//! The same network with its accumulators' neurons in another order.

use super::{Activation, QuantDense, QuantNet};

impl QuantNet {
    /// What an accumulator puts into the first dense layer: a value a neuron, or one a pair of neurons where halves are
    /// multiplied.
    #[must_use]
    pub fn units(&self) -> usize {
        self.shape.activation.outputs(self.shape.l1)
    }

    /// The network whose unit n is this one's `order[n]`: every score is the same.
    ///
    /// # Panics
    /// When `order` does not hold every unit once.
    #[must_use]
    pub fn permute_ft(&self, order: &[usize]) -> QuantNet {
        let units = self.units();
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..units), "an order names every unit once");
        let halves = if self.shape.activation == Activation::Pairwise { 2 } else { 1 };
        let neurons: Vec<usize> =
            (0..halves).flat_map(|half| order.iter().map(move |unit| half * units + unit)).collect();
        let sides: Vec<usize> = (0..2).flat_map(|side| order.iter().map(move |unit| side * units + unit)).collect();
        let mut net = self.clone();
        net.ft_weights = columns(&self.ft_weights, &neurons);
        net.ft_biases = columns(&self.ft_biases, &neurons);
        for stack in &mut net.stacks {
            let QuantDense { weights, .. } = &mut stack[0];
            *weights = columns(weights, &sides);
        }
        net
    }
}

/// Rows of numbers with their columns taken in another order.
fn columns(rows: &[i16], order: &[usize]) -> Vec<i16> {
    rows.chunks_exact(order.len()).flat_map(|row| order.iter().map(|column| row[*column])).collect()
}
