//! Sets of which some blocks look at a king and others do not: what a move of a king leaves alone.

use std::ops::Range;

use crate::chess::{Board, Perspective};
use crate::features::FeatureSet;

/// The blocks of a set by whether they have more than one context. The sum over those with one is never refreshed.
#[derive(Clone)]
pub struct PartialRefresh {
    still: Vec<usize>,
    moving: Vec<usize>,
    /// Indices of moving blocks.
    ranges: Vec<Range<u32>>,
}

impl PartialRefresh {
    /// None where all blocks are of one kind, or a selection mixes their indices.
    pub fn of(set: &FeatureSet) -> Option<PartialRefresh> {
        let blocks = set.blocks();
        let (still, moving): (Vec<usize>, Vec<usize>) =
            (0..blocks.len()).partition(|block| blocks[*block].contexts() == 1);
        let ranges: Option<Vec<Range<u32>>> = moving.iter().map(|block| blocks[*block].range()).collect();
        (!still.is_empty() && !moving.is_empty()).then_some(PartialRefresh { still, moving, ranges: ranges? })
    }

    /// Features of blocks without contexts go to `still`; gives how many others there are.
    pub fn split(&self, features: &[u32], still: &mut Vec<u32>) -> usize {
        still.clear();
        still.extend(features.iter().filter(|feature| !self.ranges.iter().any(|range| range.contains(feature))));
        features.len() - still.len()
    }

    /// What is active in the blocks without contexts; `out` is cleared first.
    pub fn still(&self, set: &FeatureSet, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        active(set, &self.still, board, pov, out);
    }

    /// What is active in the others.
    pub fn moving(&self, set: &FeatureSet, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        active(set, &self.moving, board, pov, out);
    }

    /// The numbers of the blocks with several contexts.
    #[must_use]
    pub fn moving_blocks(&self) -> &[usize] {
        &self.moving
    }
}

fn active(set: &FeatureSet, blocks: &[usize], board: &Board, pov: Perspective, out: &mut Vec<u32>) {
    out.clear();
    blocks.iter().for_each(|block| set.encoder().append_block(*block, board, pov, out));
}
