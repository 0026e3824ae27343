//! The refresh rule: an accumulator is recomputed when the context of one of its blocks changes, and then only the part
//! that depends on a king (partial refresh). If fewer rows change than are active, the accumulator is updated instead.

use std::ops::Range;

use crate::chess::{Board, Perspective};
use crate::features::{Delta, FeatureSet};

/// Whether recomputing the `active` rows costs no more than updating the `changed` ones. A delta that lists no row at a
/// refresh leaves no choice: the contexts of all blocks changed.
pub const fn recomputes(delta: &Delta, changed: usize, active: usize) -> bool {
    delta.refresh && (changed == 0 || changed >= active)
}

/// The blocks of a set, split into those with one context (king-independent) and those with several (king-dependent).
/// The sum over the first is kept beside the accumulator, and no refresh recomputes it.
#[derive(Clone)]
pub struct PartialRefresh {
    independent: Vec<usize>,
    dependent: Vec<usize>,
    /// Feature indices of the dependent blocks.
    dependent_ranges: Vec<Range<u32>>,
}

impl PartialRefresh {
    /// `None` when the set lacks either kind of block, or a selection mixes their indices.
    pub fn new(set: &FeatureSet) -> Option<PartialRefresh> {
        let blocks = set.blocks();
        let (independent, dependent): (Vec<usize>, Vec<usize>) =
            (0..blocks.len()).partition(|block| blocks[*block].contexts() == 1);
        let ranges: Option<Vec<Range<u32>>> = dependent.iter().map(|block| blocks[*block].range()).collect();
        let has_both = !independent.is_empty() && !dependent.is_empty();
        has_both.then_some(PartialRefresh { independent, dependent, dependent_ranges: ranges? })
    }

    /// Replaces `out` by the king-independent ones among `features`.
    pub fn filter_independent(&self, features: &[u32], out: &mut Vec<u32>) {
        let is_dependent = |feature: &u32| self.dependent_ranges.iter().any(|range| range.contains(feature));
        out.clear();
        out.extend(features.iter().filter(|feature| !is_dependent(feature)));
    }

    /// Replaces `out` by the active features of the king-independent blocks.
    pub fn encode_independent(&self, set: &FeatureSet, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        encode_blocks(set, &self.independent, board, pov, out);
    }

    /// Replaces `out` by the active features of the king-dependent blocks.
    pub fn encode_dependent(&self, set: &FeatureSet, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        encode_blocks(set, &self.dependent, board, pov, out);
    }

    /// The numbers of the king-dependent blocks.
    #[must_use]
    pub fn dependent_blocks(&self) -> &[usize] {
        &self.dependent
    }
}

fn encode_blocks(set: &FeatureSet, blocks: &[usize], board: &Board, pov: Perspective, out: &mut Vec<u32>) {
    out.clear();
    blocks.iter().for_each(|block| set.encoder().append_block(*block, board, pov, out));
}
