//! The feature transformer's gradient: a batch's accumulators' gradients, added up by feature.
//!
//! Every feature adds the gradients of the accumulators it was active in, in the order of the batch, so that no sum
//! depends on how the work is shared among threads. Where all rows fit in a cache, the batch is taken tile by tile: a
//! tile's accumulators then stay in a cache too while every feature takes its own, and the sums are the same to the bit.

use rayon::prelude::*;

use super::batch::Rows;
use super::sparse::{Transposed, add_rows};

/// Bytes of rows up to which a batch is taken in tiles.
const CACHED_ROWS: usize = 4 << 20;
/// Bytes of accumulators' gradients in a tile.
const TILE: usize = 512 << 10;

/// The gradients of one step.
#[derive(Debug, Default)]
pub struct Gradients {
    row: usize,
    features: usize,
    /// Of the accumulators: [positions, 2, row].
    pub accumulators: Vec<f32>,
    tiles: Tiles,
    /// [features, row]. Empty until [`Gradients::sum_rows`].
    rows: Vec<f32>,
}

/// Which accumulators each feature is part of, tile by tile.
#[derive(Debug, Default)]
pub struct Tiles(Vec<Transposed>);

impl Tiles {
    /// Takes the rows of some batches, whose positions are counted on from one to the next.
    pub fn fill(&mut self, batches: &[[Rows<'_>; 2]], row: usize, features: usize) {
        let positions: Vec<(u32, u32)> = batches
            .iter()
            .zip(0..)
            .flat_map(|(rows, batch)| (0..rows[0].positions() as u32).map(move |at| (batch, at)))
            .collect();
        let cached = features * row * size_of::<f32>() <= CACHED_ROWS;
        let tile = if cached { TILE / (2 * row * size_of::<f32>()) } else { positions.len() };
        let tiles: Vec<&[(u32, u32)]> = positions.chunks(tile.max(1)).collect();
        self.0.resize_with(tiles.len(), Transposed::default);
        let mut start = 0;
        let work = tiles.into_iter().zip(&mut self.0).map(|(positions, transposed)| {
            let first = start;
            start += positions.len();
            (first, positions, transposed)
        });
        work.collect::<Vec<_>>().into_par_iter().for_each(|(first, positions, transposed)| {
            let rows = positions.iter().map(|(batch, at)| batches[*batch as usize].map(|rows| rows.of(*at as usize)));
            transposed.fill(rows, first, features);
        });
    }
}

impl Gradients {
    /// Makes room for `positions` positions; gives the accumulators' gradients, to be written, and the tiles, to be filled.
    pub fn prepare(&mut self, positions: usize, row: usize, features: usize) -> (&mut [f32], &mut Tiles) {
        (self.row, self.features) = (row, features);
        self.accumulators.resize(positions * 2 * row, 0.0);
        (&mut self.accumulators, &mut self.tiles)
    }

    /// Whether a feature is in the batch.
    #[must_use]
    pub fn has(&self, feature: usize) -> bool {
        self.tiles.0.iter().any(|tile| !tile.of(feature).is_empty())
    }

    /// Whether the rows are summed all at once, rather than one by one when they are asked for.
    #[must_use]
    pub fn in_tiles(&self) -> bool {
        self.tiles.0.len() > 1
    }

    /// Sums the rows of all features, on the threads this is called on.
    pub fn sum_rows(&mut self) {
        let Gradients { row, features, accumulators, tiles, rows } = self;
        rows.resize(*features * *row, 0.0);
        let mut rest = &mut rows[..];
        let mut work = Vec::new();
        for (first, end) in shares(tiles, *features, rayon::current_num_threads()) {
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

    /// The rows that [`Gradients::sum_rows`] has summed: [features, row].
    #[must_use]
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// A feature's row: as summed already, or summed now, in `scratch`, which has as many numbers.
    pub fn row<'a>(&'a self, feature: usize, scratch: &'a mut [f32]) -> &'a [f32] {
        if self.in_tiles() {
            return &self.rows[feature * self.row..][..self.row];
        }
        scratch.fill(0.0);
        if let Some(tile) = self.tiles.0.first() {
            add_rows(scratch, &self.accumulators, tile.of(feature));
        }
        scratch
    }
}

/// Ranges of features that are active about equally often, for `threads` threads: as few as that, since each of them goes
/// through all the accumulators.
fn shares(tiles: &Tiles, features: usize, threads: usize) -> Vec<(usize, usize)> {
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

    /// Tiles or none, any number of threads: the sums of a plain loop, bit by bit.
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
            let rows = sides.each_ref().map(|(offsets, indices)| Rows::new(offsets, indices, features as u32));
            let rows = rows.map(|rows| rows.expect("rows"));
            let values: Vec<f32> = (0..2 * positions * 2 * row).map(|_| rng.random_range(-1.0..1.0)).collect();
            let mut expected = vec![0.0f32; features * row];
            // The same batch twice, the second's positions counted on from the first's.
            for position in 0..2 * positions {
                for side in 0..2 {
                    for feature in rows[side].of(position % positions) {
                        let sum = expected[*feature as usize * row..][..row].iter_mut();
                        let value = &values[(2 * position + side) * row..][..row];
                        sum.zip(value).for_each(|(sum, value)| *sum += value);
                    }
                }
            }
            for threads in [1, 3] {
                let pool = crate::train::threads::pool(threads).expect("threads");
                pool.install(|| {
                    let mut gradients = Gradients::default();
                    let (accumulators, tiles) = gradients.prepare(2 * positions, row, features);
                    accumulators.copy_from_slice(&values);
                    tiles.fill(&[rows, rows], row, features);
                    assert_eq!(gradients.in_tiles(), tiled);
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
