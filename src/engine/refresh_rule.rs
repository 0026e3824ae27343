//! The refresh rule: an accumulator is recomputed when the context of one of its blocks changes, and then only the part
//! that depends on a king (partial refresh). If fewer rows change than are active, the accumulator is updated instead.

use crate::chess::{Board, BoardChange, Perspective};
use crate::features::{Block, Delta, FeatureSet, Parts};

/// Whether recomputing the `active` rows costs no more than updating the `changed` ones. A delta that lists no row at a
/// refresh leaves no choice: the contexts of all blocks changed.
pub const fn recomputes(delta: &Delta, changed: usize, active: usize) -> bool {
    delta.refresh && (changed == 0 || changed >= active)
}

/// The blocks of a set, split into those whose context hardly ever changes (stable), and the others (king-dependent).
/// The sums over both are kept apart, so that a refresh recomputes the second only.
#[derive(Clone)]
pub struct PartialRefresh {
    /// Numbers of blocks: stable, king-dependent.
    blocks: [Vec<usize>; 2],
    parts: Parts,
}

/// Blocks of at most this many contexts are stable beside blocks of more: those that change when a king crosses the
/// middle.
const FEW_CONTEXTS: u32 = 2;

impl PartialRefresh {
    /// `None` when the set lacks either kind of block, or blocks of both kinds are encoded together.
    pub fn new(set: &FeatureSet) -> Option<PartialRefresh> {
        let contexts: Vec<u32> = set.blocks().iter().map(Block::contexts).collect();
        let few = |most: u32| contexts.iter().any(|contexts| *contexts <= most);
        let most = [FEW_CONTEXTS, 1].into_iter().find(|most| few(*most) && contexts.iter().any(|all| all > most))?;
        let (stable, dependent) = (0..contexts.len()).partition(|block| contexts[*block] <= most);
        let parts = set.encoder().parts(|block| contexts[block] > most)?;
        Some(PartialRefresh { blocks: [stable, dependent], parts })
    }

    /// For [`Encoder::diff_in_parts`](crate::features::Encoder::diff_in_parts): stable, king-dependent.
    pub const fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Replaces `out` by the active features of the stable blocks.
    pub fn encode_stable(&self, set: &FeatureSet, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        set.encoder().encode_blocks(&self.blocks[0], board, pov, out);
    }

    /// Replaces `out` by the active features of the king-dependent blocks.
    pub fn encode_dependent(&self, set: &FeatureSet, board: &Board, pov: Perspective, out: &mut Vec<u32>) {
        set.encoder().encode_blocks(&self.blocks[1], board, pov, out);
    }

    /// Whether a move changes the context of a stable block.
    pub fn refreshes_stable(
        &self,
        set: &FeatureSet,
        [before, after]: [&Board; 2],
        change: &BoardChange,
        pov: Perspective,
    ) -> bool {
        set.encoder().refreshes_any(&self.blocks[0], before, change, after, pov)
    }

    /// The numbers of the king-dependent blocks.
    #[must_use]
    pub fn dependent_blocks(&self) -> &[usize] {
        &self.blocks[1]
    }
}
