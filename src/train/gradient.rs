//! The gradient of the feature transformer's rows: for each feature, the sum of the gradients of the accumulators in
//! which it was active.
//!
//! Each feature adds them in the order of the batch, so that no sum depends on the number of threads. If all rows fit
//! into a cache, the batch is processed tile by tile, so that a tile's accumulators stay in cache too; the sums are the
//! same to the bit.

use rayon::prelude::*;

use super::batch::ActiveFeatures;
use super::sparse::{TransposedBatch, add_rows};

/// A batch is processed in tiles if all rows together take at most this many bytes.
const CACHED_ROWS: usize = 4 << 20;
/// Bytes of accumulator gradients in a tile.
const TILE: usize = 512 << 10;

/// The gradients of one step.
#[derive(Debug, Default)]
pub struct FtGradients {
    row: usize,
    features: usize,
    /// The gradients of the accumulators: [positions, 2, row].
    pub accumulators: Vec<f32>,
    tiles: Tiles,
    /// [features, row]. Empty until [`FtGradients::sum_rows`].
    rows: Vec<f32>,
}

/// The accumulators in which each feature is active, tile by tile.
#[derive(Debug, Default)]
pub struct Tiles(Vec<TransposedBatch>);

impl Tiles {
    /// Fills the tiles with the active features of some batches, whose positions are numbered consecutively.
    pub fn fill(&mut self, batches: &[[ActiveFeatures<'_>; 2]], row: usize, features: usize) {
        let positions: Vec<(u32, u32)> = batches
            .iter()
            .zip(0..)
            .flat_map(|(active, batch)| (0..active[0].positions() as u32).map(move |index| (batch, index)))
            .collect();
        let cached = features * row * size_of::<f32>() <= CACHED_ROWS;
        let tile = if cached { TILE / (2 * row * size_of::<f32>()) } else { positions.len() };
        let tiles: Vec<&[(u32, u32)]> = positions.chunks(tile.max(1)).collect();
        self.0.resize_with(tiles.len(), TransposedBatch::default);
        let mut start = 0;
        let work = tiles.into_iter().zip(&mut self.0).map(|(positions, transposed)| {
            let first = start;
            start += positions.len();
            (first, positions, transposed)
        });
        work.collect::<Vec<_>>().into_par_iter().for_each(|(first, positions, transposed)| {
            let active =
                positions.iter().map(|(batch, index)| batches[*batch as usize].map(|side| side.of(*index as usize)));
            transposed.fill(active, first, features);
        });
    }
}

impl FtGradients {
    /// Makes room for a number of positions. Returns the accumulators' gradients, to be written, and the tiles, to be
    /// filled.
    pub fn prepare(&mut self, positions: usize, row: usize, features: usize) -> (&mut [f32], &mut Tiles) {
        (self.row, self.features) = (row, features);
        self.accumulators.resize(positions * 2 * row, 0.0);
        (&mut self.accumulators, &mut self.tiles)
    }

    /// Whether a feature is active in the batch.
    #[must_use]
    pub fn has(&self, feature: usize) -> bool {
        self.tiles.0.iter().any(|tile| !tile.of(feature).is_empty())
    }

    /// Whether [`FtGradients::sum_rows`] must be called before [`FtGradients::row`], which otherwise sums a row itself.
    #[must_use]
    pub fn is_tiled(&self) -> bool {
        self.tiles.0.len() > 1
    }

    /// Sums the rows of all features, on the current thread pool.
    pub fn sum_rows(&mut self) {
        let FtGradients { row, features, accumulators, tiles, rows } = self;
        rows.resize(*features * *row, 0.0);
        let mut rest = &mut rows[..];
        let mut work = Vec::new();
        for (first, end) in balanced_ranges(tiles, *features, rayon::current_num_threads()) {
            let (own, others) = rest.split_at_mut((end - first) * *row);
            rest = others;
            work.push((first, own));
        }
        work.into_par_iter().for_each(|(first, rows)| {
            for (number, tile) in tiles.0.iter().enumerate() {
                for (feature, sum) in (first..).zip(rows.chunks_exact_mut(*row)) {
                    let active = tile.of(feature);
                    if number == 0 {
                        sum.fill(0.0);
                    }
                    if !active.is_empty() {
                        add_rows(sum, accumulators, active);
                    }
                }
            }
        });
    }

    /// The result of [`FtGradients::sum_rows`]: [features, row].
    #[must_use]
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// A feature's gradient: summed already, or summed now in `scratch`, which has a row's length.
    pub fn row<'a>(&'a self, feature: usize, scratch: &'a mut [f32]) -> &'a [f32] {
        if self.is_tiled() {
            return &self.rows[feature * self.row..][..self.row];
        }
        scratch.fill(0.0);
        if let Some(tile) = self.tiles.0.first() {
            add_rows(scratch, &self.accumulators, tile.of(feature));
        }
        scratch
    }
}

/// One range of features per thread, each about equally often active. There are no more, since each range passes over
/// all accumulators.
fn balanced_ranges(tiles: &Tiles, features: usize, threads: usize) -> Vec<(usize, usize)> {
    let active = |feature: usize| tiles.0.iter().map(|tile| tile.of(feature).len()).sum::<usize>() + 1;
    let all: usize = (0..features).map(active).sum();
    let share = all.div_ceil(threads.max(1));
    let (mut ranges, mut first, mut sum) = (Vec::new(), 0, 0);
    for feature in 0..features {
        sum += active(feature);
        if sum >= share || feature + 1 == features {
            ranges.push((first, feature + 1));
            (first, sum) = (feature + 1, 0);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    /// With and without tiles, on any number of threads, the sums equal those of a plain loop to the bit.
    #[test]
    fn rows_are_summed_in_the_order_of_the_batch() {
        let check = |features: usize, row: usize, positions: usize, tiled: bool| {
            let mut rng = Seed(2).stream("gradients", positions as u64);
            let mut side = || {
                let mut offsets = vec![0];
                let mut indices = Vec::new();
                for _ in 0..positions {
                    indices.extend((0..rng.random_range(0..6)).map(|_| rng.random_range(0..features as i32 - 1)));
                    offsets.push(indices.len() as i32);
                }
                (offsets, indices)
            };
            let sides = [side(), side()];
            let active =
                sides.each_ref().map(|(offsets, indices)| ActiveFeatures::new(offsets, indices, features as u32));
            let active = active.map(|side| side.expect("features"));
            let values: Vec<f32> = (0..2 * positions * 2 * row).map(|_| rng.random_range(-1.0..1.0)).collect();
            let mut expected = vec![0.0f32; features * row];
            // The same batch twice; the second's positions follow the first's.
            for position in 0..2 * positions {
                for side in 0..2 {
                    for feature in active[side].of(position % positions) {
                        let sum = expected[*feature as usize * row..][..row].iter_mut();
                        let value = &values[(2 * position + side) * row..][..row];
                        sum.zip(value).for_each(|(sum, value)| *sum += value);
                    }
                }
            }
            for threads in [1, 3] {
                let pool = crate::train::threads::pool(threads).expect("threads");
                pool.install(|| {
                    let mut gradients = FtGradients::default();
                    let (accumulators, tiles) = gradients.prepare(2 * positions, row, features);
                    accumulators.copy_from_slice(&values);
                    tiles.fill(&[active, active], row, features);
                    assert_eq!(gradients.is_tiled(), tiled);
                    gradients.sum_rows();
                    assert!(gradients.rows() == expected, "{features} × {row}, {threads} threads");
                    let mut scratch = vec![9.0; row];
                    for feature in 0..features {
                        assert!(gradients.row(feature, &mut scratch) == &expected[feature * row..][..row]);
                        assert_eq!(gradients.has(feature), expected[feature * row] != 0.0, "feature {feature}");
                    }
                });
            }
        };
        check(60, 72, 1000, true);
        check(60, 8, 50, false);
        check(70_000, 16, 90, false);
    }
}
