//! Lookahead (Zhang et al. 2019, arXiv:1907.08610): every few steps the weights go back half the way to where they stood
//! when they did so last.

use super::factor::Factored;
use crate::net::FloatNet;

/// Steps between two meetings.
pub const LOOKAHEAD_STEPS: u64 = 6;
/// How far the slow weights follow the fast ones.
pub const FOLLOW: f32 = 0.5;

/// Where the weights stood at the last meeting.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookahead {
    /// With factors, `ft_weights` are the features' own rows.
    pub net: FloatNet,
    /// Of virtual inputs; empty without factors.
    pub factor_rows: Vec<f32>,
}

impl Lookahead {
    #[must_use]
    pub fn of(net: &FloatNet, factored: Option<&Factored>) -> Lookahead {
        let mut net = net.clone();
        if let Some(factored) = factored {
            net.ft_weights.clone_from(&factored.own);
        }
        Lookahead { net, factor_rows: factored.map_or_else(Vec::new, |factored| factored.rows.clone()) }
    }

    /// Lookahead weights follow the fast ones, which then go on from there. Rows stay within ±`limit`.
    pub fn meet(&mut self, fast: &mut FloatNet, factored: Option<&mut Factored>, limit: f32) {
        if let Some(factored) = factored {
            meet(&mut self.net.ft_weights, &mut factored.own);
            meet(&mut self.factor_rows, &mut factored.rows);
            factored.merge(&mut fast.ft_weights, limit);
        } else {
            meet(&mut self.net.ft_weights, &mut fast.ft_weights);
        }
        let others = self.net.tensors_mut().into_iter().zip(fast.tensors_mut()).skip(1);
        others.for_each(|(slow, fast)| meet(slow, fast));
    }
}

fn meet(slow: &mut [f32], fast: &mut [f32]) {
    for (slow, fast) in slow.iter_mut().zip(fast) {
        *slow += FOLLOW * (*fast - *slow);
        *fast = *slow;
    }
}
