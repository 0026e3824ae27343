//! Feature frequencies on real positions.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::MeasureError;
use super::lines::{Line, ReadSummary, fold_lines};
use crate::chess::Perspective;
use crate::features::FeatureSet;

/// Activations of each feature over the positions of some games, from both perspectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frequencies {
    pub positions: u64,
    /// Activations per feature.
    pub counts: Vec<u64>,
}

/// Counts activations over the first `limit` games. A feature that several bindings yield counts once, under `bag` once
/// per binding.
///
/// # Errors
/// When the data cannot be read or hold no position.
pub fn frequencies(
    set: &FeatureSet,
    data: &Path,
    limit: Option<u64>,
) -> Result<(Frequencies, ReadSummary), MeasureError> {
    // One table for all threads: sets have up to millions of features. Relaxed: it is read when all threads have ended.
    let counts: Vec<AtomicU64> = (0..set.num_features()).map(|_| AtomicU64::new(0)).collect();
    let add = |positions: &mut u64, line: &Line| {
        let mut active = Vec::new();
        line.for_each_position(|board, _, _| {
            *positions += 1;
            for pov in Perspective::ALL {
                set.encoder().encode(board, pov, &mut active);
                for feature in &active {
                    counts[*feature as usize].fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    };
    let (positions, summary) = fold_lines(data, limit, || 0, add, |a, b| a + b)?;
    let counts = counts.into_iter().map(AtomicU64::into_inner).collect();
    Ok((Frequencies { positions, counts }, summary))
}

impl Frequencies {
    /// The `k` most frequent features, most frequent first; ties go to the lower index.
    #[must_use]
    pub fn top(&self, k: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.counts.len() as u32).collect();
        order.sort_by_key(|feature| (std::cmp::Reverse(self.counts[*feature as usize]), *feature));
        order.truncate(k);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_ordered_and_ties_go_to_the_lower_index() {
        let frequencies = Frequencies { positions: 10, counts: vec![3, 9, 3, 0, 10] };
        assert_eq!(frequencies.top(4), [4, 1, 0, 2]);
        assert_eq!(frequencies.top(0), [] as [u32; 0]);
        assert_eq!(frequencies.top(9), [4, 1, 0, 2, 3]);
    }
}
