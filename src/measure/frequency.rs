//! How often each feature is active on real positions.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::MeasureError;
use super::lines::{Line, ReadSummary, fold};
use crate::chess::Perspective;
use crate::features::FeatureSet;

/// Activations over the positions of some games, each position seen by both perspectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frequencies {
    pub positions: u64,
    /// Of each feature.
    pub counts: Vec<u64>,
}

/// Counts activations over the data's first `limit` games. A feature that several bindings yield counts once (under
/// `bag`: once a binding).
///
/// # Errors
/// When the data cannot be read or hold no position.
pub fn frequencies(
    set: &FeatureSet,
    data: &Path,
    limit: Option<u64>,
) -> Result<(Frequencies, ReadSummary), MeasureError> {
    // One table for all threads: sets have up to millions of features.
    let counts: Vec<AtomicU64> = (0..set.num_features()).map(|_| AtomicU64::new(0)).collect();
    let work = |positions: &mut u64, line: &Line| {
        let mut active = Vec::new();
        line.positions(|board, _, _| {
            *positions += 1;
            for pov in Perspective::ALL {
                set.encoder().encode(board, pov, &mut active);
                for feature in &active {
                    counts[*feature as usize].fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    };
    let (positions, reading) = fold(data, limit, || 0, work, |a, b| a + b)?;
    let counts = counts.into_iter().map(AtomicU64::into_inner).collect();
    Ok((Frequencies { positions, counts }, reading))
}

impl Frequencies {
    /// The `k` most frequent features, most frequent first, the lower index first where two are equal.
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
