//! The order in which a step visits the samples of its batch.
//!
//! Rows of a large feature transformer come from memory or the last cache. Positions whose kings stand in the same
//! contexts share most rows, so they are visited together.

use std::ops::Range;

use super::batch::Batch;
use crate::features::FeatureSet;

/// A block of features of which a position activates only its context's: the block with most contexts.
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
    // The last key first: sorting keeps the order of equals.
    batch.active.iter().rev().fold(samples.clone().collect(), |order: Vec<u32>, side| {
        let contexts: Vec<u16> = samples.clone().map(|sample| block.context(side.of(sample as usize * each))).collect();
        sort_by(&order, &contexts)
    })
}

/// Samples in the order of their keys; samples of equal keys in the order given.
fn sort_by(samples: &[u32], keys: &[u16]) -> Vec<u32> {
    let mut starts = vec![0; keys.iter().max().map_or(0, |most| usize::from(*most) + 2)];
    keys.iter().for_each(|key| starts[usize::from(*key) + 1] += 1);
    for key in 1..starts.len() {
        starts[key] += starts[key - 1];
    }
    let mut sorted = vec![0; samples.len()];
    for sample in samples {
        let start = &mut starts[usize::from(keys[*sample as usize])];
        sorted[*start] = *sample;
        *start += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::super::batch::{ActiveFeatures, Labels};
    use super::*;
    use crate::service::Csr;

    #[test]
    fn samples_are_sorted_by_the_contexts_of_both_sides() {
        let block = ContextBlock { features: 10..50, contexts: 4 };
        // Contexts of ten features each, after ten features of another block.
        let own = ([0, 2, 4, 6, 8], [3, 45, 7, 12, 44, 9, 3, 19]);
        let other = ([0, 1, 2, 3, 4], [30, 20, 10, 11]);
        let own = Csr { offsets: &own.0, indices: &own.1 };
        let other = Csr { offsets: &other.0, indices: &other.1 };
        let active = [own, other].map(ActiveFeatures::from);
        let batch = Batch { samples: 4, active, bucket_inputs: &[2; 4], labels: Labels::Eval(&[0.5; 4]) };
        assert_eq!(sample_order(&batch, None), [0, 1, 2, 3]);
        // Own contexts 3, 0, 3, 0; the others' 2, 1, 0, 0.
        assert_eq!(sample_order(&batch, Some(&block)), [3, 1, 2, 0]);
        let batch = Batch { samples: 1, active, bucket_inputs: &[2; 3], labels: Labels::Pqr };
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
