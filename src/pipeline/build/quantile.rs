//! Leaving out positions with few legal moves, relative to the other positions of the same ply.

use super::drop_reason::{BuildCounts, DropReason};
use super::temp_samples::TempSamples;
use crate::data::DataError;
use crate::units::SortedMap;

/// Drops the positions with fewer legal moves than the `quantile` of all positions at their ply. The number of legal
/// moves is in the records' scratch field.
pub fn drop_below_quantile(
    mut samples: TempSamples,
    quantile: f64,
    counts: &mut BuildCounts,
) -> Result<TempSamples, DataError> {
    let mut histograms: SortedMap<u16, Vec<u64>> = SortedMap::new();
    samples.for_each(|_, record| {
        let histogram = histograms.get_or_insert_with(record.ply().0, || vec![0; 256]);
        histogram[usize::from(record.scratch()).min(255)] += 1;
    })?;
    let min_moves: SortedMap<u16, u16> =
        histograms.iter().map(|(ply, histogram)| (*ply, quantile_of(histogram, quantile))).collect();
    samples.retain(DropReason::FewMoves, counts, |_, record| {
        min_moves.get(&record.ply().0).is_none_or(|min_moves| record.scratch() >= *min_moves)
    })
}

/// The largest m such that at most the share `quantile` of the positions has fewer than m moves; `histogram[m]`
/// positions have exactly m.
fn quantile_of(histogram: &[u64], quantile: f64) -> u16 {
    let total: u64 = histogram.iter().sum();
    let mut cumulative = 0;
    for (moves, count) in histogram.iter().enumerate() {
        cumulative += count;
        if cumulative as f64 > quantile * total as f64 {
            return moves as u16;
        }
    }
    histogram.len() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_legal_moves() {
        let check = |histogram: &[u64], quantile, expected| {
            assert_eq!(quantile_of(histogram, quantile), expected, "{histogram:?} {quantile}");
        };
        check(&[0, 1, 1, 1, 1], 0.0, 1);
        check(&[0, 1, 1, 1, 1], 0.25, 2);
        check(&[0, 1, 1, 1, 1], 0.5, 3);
        check(&[0, 0, 10, 1, 1], 0.5, 2);
    }
}
