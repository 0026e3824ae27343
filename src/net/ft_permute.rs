//! Permutes the accumulator's neurons of a network (`ft_permute`); see [`crate::engine::ft_permute()`] for a good
//! order. Also repeats and drops neurons, for a network of another width.

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
        self.with_units(order)
    }

    /// A network of accumulator width `l1` whose neurons are this network's, evenly repeated or left out. Its scores
    /// are meaningless, but about as many of its neurons are active as in this one, so that it takes as long as a
    /// trained network of its width.
    ///
    /// # Panics
    /// When `l1` is 0 or, with pairwise, odd.
    #[must_use]
    pub fn with_l1(&self, l1: usize) -> QuantNet {
        let old = self.units();
        let new = self.shape.activation.outputs(l1);
        assert!(new > 0 && (self.shape.activation != Activation::Pairwise || l1.is_multiple_of(2)), "no width {l1}");
        let mut net = self.with_units(&(0..new).map(|unit| unit * old / new).collect::<Vec<_>>());
        net.shape.l1 = l1;
        net
    }

    /// The network with unit `order[n]` at position n; a unit may occur several times or not at all.
    fn with_units(&self, order: &[usize]) -> QuantNet {
        let units = self.units();
        let parts = if self.shape.activation == Activation::Pairwise { 2 } else { 1 };
        let repeated = |parts: usize| {
            let mut all = Vec::new();
            for part in 0..parts {
                all.extend(order.iter().map(|unit| part * units + unit));
            }
            all
        };
        let neurons = repeated(parts);
        let inputs = repeated(2);
        let mut net = self.clone();
        net.ft_weights = select_columns(&self.ft_weights, self.shape.l1, &neurons);
        net.ft_biases = select_columns(&self.ft_biases, self.shape.l1, &neurons);
        for stack in &mut net.stacks {
            let QuantDense { weights, .. } = &mut stack[0];
            *weights = select_columns(weights, 2 * units, &inputs);
        }
        net
    }
}

/// Takes columns of rows of `width` numbers.
fn select_columns(rows: &[i16], width: usize, columns: &[usize]) -> Vec<i16> {
    let mut selected = Vec::new();
    for row in rows.chunks_exact(width) {
        selected.extend(columns.iter().map(|column| row[*column]));
    }
    selected
}
