//! Lookahead (Zhang et al. 2019, arXiv:1907.08610): every few steps, slow weights move half way towards the weights
//! that are trained (the fast ones), which then continue from there.

use super::factor::FactoredRows;
use super::row_limits::RowLimits;
use crate::net::FloatNet;

/// The paper's k: steps between two synchronisations.
pub const SYNC_PERIOD: u64 = 6;
/// The paper's α: the share of the way that slow weights move.
pub const ALPHA: f32 = 0.5;

/// The slow weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookahead {
    /// With factors, `ft_weights` holds the features' own rows.
    pub net: FloatNet,
    /// Rows of virtual inputs; empty without factors.
    pub virtual_rows: Vec<f32>,
}

impl Lookahead {
    #[must_use]
    pub fn new(net: &FloatNet, factored: Option<&FactoredRows>) -> Lookahead {
        let mut net = net.clone();
        if let Some(factored) = factored {
            net.ft_weights.clone_from(&factored.own);
        }
        Lookahead { net, virtual_rows: factored.map_or_else(Vec::new, |factored| factored.virtual_rows.clone()) }
    }

    /// Moves the slow weights and copies them to the fast ones. The feature transformer's rows are clamped to `limits`.
    pub fn synchronise(&mut self, fast: &mut FloatNet, factored: Option<&mut FactoredRows>, limits: RowLimits) {
        if let Some(factored) = factored {
            synchronise(&mut self.net.ft_weights, &mut factored.own);
            synchronise(&mut self.virtual_rows, &mut factored.virtual_rows);
            factored.merge(&mut fast.ft_weights, limits);
        } else {
            synchronise(&mut self.net.ft_weights, &mut fast.ft_weights);
        }
        let others = self.net.tensors_mut().into_iter().zip(fast.tensors_mut()).skip(1);
        others.for_each(|(slow, fast)| synchronise(slow, fast));
    }
}

fn synchronise(slow: &mut [f32], fast: &mut [f32]) {
    for (slow, fast) in slow.iter_mut().zip(fast) {
        *slow += ALPHA * (*fast - *slow);
        *fast = *slow;
    }
}
