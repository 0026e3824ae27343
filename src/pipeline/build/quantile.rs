//! Leaving out positions with few legal moves, relative to the other positions of the same ply.

use rayon::prelude::*;
use shakmaty::Position;

use super::drop_reason::{BuildCounts, DropReason};
use super::temp_samples::TempSamples;
use crate::data::{DataError, Record};
use crate::units::SortedMap;

/// Drops the positions with fewer legal moves than the `quantile` of all positions at their ply.
pub fn drop_below_quantile(
    mut samples: TempSamples,
    quantile: f64,
    counts: &mut BuildCounts,
) -> Result<TempSamples, DataError> {
    let mut histograms: SortedMap<u16, Vec<u64>> = SortedMap::new();
    samples.for_each_block(|_, records| {
        for (record, moves) in records.iter().zip(legal_moves(records)) {
            let histogram = histograms.get_or_insert_with(record.ply().0, || vec![0; 256]);
            histogram[usize::from(moves).min(255)] += 1;
        }
        Ok(())
    })?;
    let min_moves: SortedMap<u16, u16> =
        histograms.iter().map(|(ply, histogram)| (*ply, quantile_of(histogram, quantile))).collect();
    let before = samples.count();
    samples.edit_blocks(|_, records| {
        let mut moves = legal_moves(records).into_iter();
        records.retain(|record| {
            let moves = moves.next().unwrap_or_default();
            min_moves.get(&record.ply().0).is_none_or(|min_moves| moves >= *min_moves)
        });
    })?;
    counts.drop(DropReason::FewMoves, before - samples.count());
    Ok(samples)
}

/// The number of legal moves in the position of each record.
fn legal_moves(records: &[Record]) -> Vec<u16> {
    let count = |record: &Record| record.position().map_or(0, |position| position.legal_moves().len() as u16);
    records.par_iter().with_min_len(1 << 8).map(count).collect()
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
