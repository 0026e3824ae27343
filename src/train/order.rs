//! The order in which a step visits the samples of its batch.
//!
//! Rows of a large feature transformer come from memory or the last cache. Positions whose kings stand in the same contexts
//! share most rows, so they are visited together.

use std::ops::Range;

use super::batch::Batch;
use crate::features::FeatureSet;

/// A block of features of which a position activates only those of its context: that of most contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextBlock {
    features: Range<u32>,
    contexts: u32,
}

impl ContextBlock {
    /// `None` if no block distinguishes more than the two halves of the board.
    #[must_use]
    pub fn of(set: &FeatureSet) -> Option<ContextBlock> {
        let most = set.blocks().iter().max_by_key(|block| block.contexts())?;
        let features = most.range()?;
        (most.contexts() > 2).then(|| ContextBlock { features, contexts: most.contexts() })
    }

    /// About the number of the context whose features are active, at most `u16::MAX`.
    fn context(&self, active: &[i32]) -> u16 {
        let Range { start, end } = self.features;
        let first = active.iter().map(|feature| *feature as u32).find(|feature| self.features.contains(feature));
        let place = u64::from(first.map_or(0, |feature| feature - start));
        (place * u64::from(self.contexts.min(u16::MAX.into())) / u64::from(end - start)) as u16
    }
}

/// The samples of a batch, sorted by the contexts of their first positions: the side to move's, then the other's.
/// Without a block, in the order of the batch.
#[must_use]
pub fn sample_order(batch: &Batch<'_>, block: Option<&ContextBlock>) -> Vec<u32> {
    let samples = 0..batch.samples as u32;
    let Some(block) = block else { return samples.collect() };
    let each = batch.positions_per_sample();
    let key = |sample: u32| {
        let [own, other] = batch.active.map(|side| block.context(side.of(sample as usize * each)));
        (own, other, sample)
    };
    let mut keys: Vec<(u16, u16, u32)> = samples.map(key).collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, _, sample)| sample).collect()
}

#[cfg(test)]
mod tests {
    use super::super::batch::{ActiveFeatures, Labels};
    use super::*;

    #[test]
    fn samples_are_sorted_by_the_contexts_of_both_sides() {
        let block = ContextBlock { features: 10..50, contexts: 4 };
        // Contexts of ten features each, after ten features of another block.
        let own = ([0, 2, 4, 6, 8], [3, 45, 7, 12, 44, 9, 3, 19]);
        let other = ([0, 1, 2, 3, 4], [30, 20, 10, 11]);
        let side = |(offsets, indices)| ActiveFeatures::new(offsets, indices, 50).expect("features");
        let active = [side((&own.0, &own.1)), side((&other.0, &other.1))];
        let batch = Batch { samples: 4, active, piece_counts: &[2; 4], labels: Labels::Eval(&[0.5; 4]) };
        assert_eq!(sample_order(&batch, None), [0, 1, 2, 3]);
        // Own contexts 3, 0, 3, 0; the others' 2, 1, 0, 0.
        assert_eq!(sample_order(&batch, Some(&block)), [3, 1, 2, 0]);
        let batch = Batch { samples: 1, active, piece_counts: &[2; 3], labels: Labels::Pqr };
        assert_eq!(sample_order(&batch, Some(&block)), [0]);
    }

    #[test]
    fn the_block_of_most_contexts_decides() {
        let of = |expression: &str| ContextBlock::of(&FeatureSet::resolve(expression).expect("a set"));
        assert_eq!(of("piece"), None);
        assert_eq!(of("chess768-mirrored"), None);
        // A context for each king square; mirrored ones share their features.
        assert_eq!(of("half-ka-v2-hm"), Some(ContextBlock { features: 0..22_528, contexts: 64 }));
    }
}
