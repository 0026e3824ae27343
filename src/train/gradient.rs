//! The gradient of the feature transformer's rows: for each feature, the sum of the gradients of the accumulators in
//! which it was active.
//!
//! No sum depends on the number of threads. If all rows fit into a cache, each micro-batch of a batch sums its own
//! while the gradients of its accumulators are still in the cache, and the micro-batches' sums are added in order.
//! Otherwise the gradients of all accumulators are kept; then each feature adds its own in the order of the
//! micro-batches, tile by tile, so that a tile stays in the cache.

use rayon::prelude::*;

use super::batch::ActiveFeatures;
use super::lanes::{Lanes, LanesKernel, padded};
use super::rows::PaddedRows;
use super::sparse::{Start, TransposedBatch, add_rows};
use crate::cpu::BackEnd;
use crate::engine::HugePageTable;

/// Micro-batches sum rows if all rows together take at most this many bytes.
const CACHED_ROWS: usize = 2 << 20;
/// Bytes of accumulators in a tile. The value affects no result.
const TILE: usize = 1 << 20;

/// The sums of some features' gradients.
pub struct RowSums {
    rows: PaddedRows,
    /// By feature: whether its row holds a sum.
    summed: Vec<bool>,
}

impl RowSums {
    fn new(features: usize, width: usize) -> RowSums {
        RowSums { rows: PaddedRows::zeroed(features, width), summed: vec![false; features] }
    }

    fn clear(&mut self) {
        self.summed.fill(false);
    }

    /// Adds the accumulators of a tile, [accumulators, stride], to the rows of their features.
    pub fn add(&mut self, back_end: BackEnd, accumulators: &[f32], tile: &TransposedBatch) {
        let stride = self.rows.stride();
        let rows = self.rows.values_mut();
        let summed = &mut self.summed[..];
        AddTile { accumulators, tile, first: 0, rows, summed, stride }.run_on(back_end);
    }

    /// The sum of a feature that was active.
    fn of(&self, feature: usize) -> Option<&[f32]> {
        self.summed[feature].then(|| self.rows.row(feature))
    }
}

/// Adds a tile's accumulators to the rows of consecutive features.
struct AddTile<'a> {
    accumulators: &'a [f32],
    tile: &'a TransposedBatch,
    first: usize,
    rows: &'a mut [f32],
    summed: &'a mut [bool],
    stride: usize,
}

impl LanesKernel for AddTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self, proof: V::Proof) {
        let AddTile { accumulators, tile, first, rows, summed, stride } = self;
        for (feature, active) in tile.within(first..first + summed.len()) {
            let start = if summed[feature - first] { Start::Out } else { Start::Zeros };
            let row = &mut rows[(feature - first) * stride..][..stride];
            add_rows::<V, u32>(proof, start, row, accumulators, active);
            summed[feature - first] = true;
        }
    }
}

/// Where a micro-batch leaves its gradients.
pub enum MicroBatchOutput<'a> {
    /// The gradients of its accumulators: [positions, 2, stride].
    Accumulators(&'a mut [f32]),
    /// Their sums by feature.
    Rows(&'a mut RowSums),
}

/// The gradients of one step.
pub struct FtGradients {
    back_end: BackEnd,
    width: usize,
    features: usize,
    /// The gradients of all accumulators: [positions, 2, stride]. Empty if micro-batches sum rows.
    accumulators: HugePageTable<f32>,
    tiles: Tiles,
    /// The sums of each micro-batch; after [`FtGradients::sum_rows`] the first has the sums of all.
    sums: Vec<RowSums>,
    /// Micro-batches of this step.
    micro_batches: usize,
}

/// The accumulators in which each feature is active, tile by tile.
#[derive(Debug, Default)]
pub struct Tiles(Vec<TransposedBatch>);

/// A position: the number of its batch and its index there.
pub type BatchPosition = (u32, u32);

impl Tiles {
    /// Transposes the active features of the positions of some batches, on the current thread pool.
    pub fn fill(
        &mut self,
        batches: &[[ActiveFeatures<'_>; 2]],
        positions: &[BatchPosition],
        width: usize,
        features: usize,
    ) {
        let positions_per_tile = (TILE / (2 * padded(width) * size_of::<f32>())).max(1);
        let tiles: Vec<&[BatchPosition]> = positions.chunks(positions_per_tile).collect();
        self.0.resize_with(tiles.len(), TransposedBatch::default);
        tiles.into_par_iter().zip(&mut self.0).enumerate().for_each(|(number, (positions, transposed))| {
            let active =
                positions.iter().map(|(batch, index)| batches[*batch as usize].map(|side| side.of(*index as usize)));
            transposed.fill(active, number * positions_per_tile, features);
        });
    }
}

impl FtGradients {
    #[must_use]
    pub fn new(features: usize, width: usize, back_end: BackEnd) -> FtGradients {
        let accumulators = HugePageTable::zeroed(0);
        let tiles = Tiles::default();
        let sums = Vec::new();
        FtGradients { back_end, width, features, accumulators, tiles, sums, micro_batches: 0 }
    }

    #[must_use]
    pub const fn back_end(&self) -> BackEnd {
        self.back_end
    }

    /// Whether micro-batches sum rows, rather than leave the gradients of their accumulators.
    #[must_use]
    pub const fn micro_batches_sum_rows(&self) -> bool {
        self.features * padded(self.width) * size_of::<f32>() <= CACHED_ROWS
    }

    /// Makes room for micro-batches of the given numbers of positions. Returns where each micro-batch leaves its
    /// gradients, and the tiles, which [`FtGradients::sum_rows`] needs if micro-batches leave gradients of
    /// accumulators.
    pub fn prepare(&mut self, micro_batches: &[usize]) -> (Vec<MicroBatchOutput<'_>>, &mut Tiles) {
        self.micro_batches = micro_batches.len();
        if self.micro_batches_sum_rows() {
            while self.sums.len() < micro_batches.len() {
                self.sums.push(RowSums::new(self.features, self.width));
            }
            let sums = self.sums[..micro_batches.len()].iter_mut();
            let outputs = sums.map(|sums| {
                sums.clear();
                MicroBatchOutput::Rows(sums)
            });
            return (outputs.collect(), &mut self.tiles);
        }
        let per_position = 2 * padded(self.width);
        let values = micro_batches.iter().sum::<usize>() * per_position;
        if self.accumulators.len() < values {
            self.accumulators = HugePageTable::zeroed(values);
        }
        let mut rest = &mut self.accumulators[..];
        let outputs = micro_batches.iter().map(|positions| {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(positions * per_position);
            rest = others;
            MicroBatchOutput::Accumulators(own)
        });
        (outputs.collect(), &mut self.tiles)
    }

    /// Sums the rows of all features, on the current thread pool.
    pub fn sum_rows(&mut self) {
        if self.micro_batches_sum_rows() { self.add_micro_batches() } else { self.add_tiles() }
    }

    fn add_micro_batches(&mut self) {
        let Some((all, micro_batches)) = self.sums[..self.micro_batches].split_first_mut() else { return };
        let stride = all.rows.stride();
        let micro_batches = &*micro_batches;
        let rows = all.rows.values_mut().par_chunks_exact_mut(stride).zip(&mut all.summed);
        rows.enumerate().for_each(|(feature, (sum, summed))| {
            for more in micro_batches.iter().filter_map(|micro_batch| micro_batch.of(feature)) {
                if !std::mem::replace(summed, true) {
                    sum.fill(0.0);
                }
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
        });
    }

    fn add_tiles(&mut self) {
        let FtGradients { back_end, width, features, accumulators, tiles, sums, .. } = self;
        if sums.is_empty() {
            sums.push(RowSums::new(*features, *width));
        }
        sums[0].clear();
        let stride = sums[0].rows.stride();
        let RowSums { rows, summed } = &mut sums[0];
        let mut rows = rows.values_mut();
        let mut summed = &mut summed[..];
        let mut work = Vec::new();
        for (first, end) in balanced_ranges(tiles, *features, rayon::current_num_threads()) {
            let (own, others) = rows.split_at_mut((end - first) * stride);
            let (own_summed, others_summed) = summed.split_at_mut(end - first);
            rows = others;
            summed = others_summed;
            work.push((first, own, own_summed));
        }
        work.into_par_iter().for_each(|(first, rows, summed)| {
            for tile in &tiles.0 {
                AddTile { accumulators, tile, first, rows, summed, stride }.run_on(*back_end);
            }
        });
    }

    /// Whether a feature was active; after [`FtGradients::sum_rows`].
    #[must_use]
    pub fn has(&self, feature: usize) -> bool {
        self.sums.first().is_some_and(|sums| sums.summed[feature])
    }

    /// A feature's gradient, if it was active; after [`FtGradients::sum_rows`].
    #[must_use]
    pub fn row(&self, feature: usize) -> Option<&[f32]> {
        self.sums.first()?.of(feature)
    }

    /// All rows, [features, stride], of which inactive features' rows are undefined; after [`FtGradients::sum_rows`].
    #[must_use]
    pub fn rows(&self) -> &[f32] {
        self.sums.first().map_or(&[], |sums| sums.rows.values())
    }
}

/// One range of features per thread, each about equally often active. There are no more, since each range passes over
/// all accumulators.
fn balanced_ranges(tiles: &Tiles, features: usize, threads: usize) -> Vec<(usize, usize)> {
    // Each feature counts once more than it is active.
    let before = |feature: usize| tiles.0.iter().map(|tile| tile.before(feature)).sum::<usize>() + feature;
    let start_of = |share: usize| {
        let mut low = 0;
        let mut high = features;
        while low < high {
            let middle = usize::midpoint(low, high);
            (low, high) = if before(middle) < share { (middle + 1, high) } else { (low, middle) };
        }
        low
    };
    let all = before(features);
    let threads = threads.max(1);
    let starts: Vec<usize> = (0..=threads).map(|thread| start_of(all * thread / threads)).collect();
    starts.windows(2).map(|pair| (pair[0], pair[1])).filter(|(first, end)| first < end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Csr;
    use crate::units::Seed;
    use rand::RngExt;

    /// By micro-batches and by tiles, on any number of threads: the sums of plain loops to the bit.
    #[test]
    fn rows_are_summed_in_the_order_of_the_positions() {
        let check = |features: usize, width: usize, positions: usize, by_micro_batches: bool| {
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
            let active = sides.each_ref().map(|(offsets, indices)| ActiveFeatures::from(Csr { offsets, indices }));
            let stride = padded(width);
            let values: Vec<f32> = (0..2 * positions * 2 * stride).map(|_| rng.random_range(-1.0..1.0)).collect();
            // The same batch twice, the second time backwards; each is a micro-batch.
            let forward = (0..positions as u32).map(|index| (0, index));
            let order: Vec<BatchPosition> = forward.clone().chain(forward.rev().map(|(_, index)| (1, index))).collect();
            let mut expected = vec![[0.0f32; 2]; features * stride];
            for (number, (micro_batch, position)) in order.iter().enumerate() {
                for side in 0..2 {
                    for feature in active[side].of(*position as usize) {
                        let sum = expected[*feature as usize * stride..][..width].iter_mut();
                        let value = &values[(2 * number + side) * stride..][..width];
                        let micro_batch = if by_micro_batches { *micro_batch as usize } else { 0 };
                        sum.zip(value).for_each(|(sums, value)| sums[micro_batch] += value);
                    }
                }
            }
            let expected: Vec<f32> = expected.into_iter().map(|[first, second]| first + second).collect();
            for (threads, back_end) in
                [1, 3].into_iter().flat_map(|n| BackEnd::available().into_iter().map(move |b| (n, b)))
            {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
                let mut gradients = FtGradients::new(features, width, back_end);
                assert_eq!(gradients.micro_batches_sum_rows(), by_micro_batches);
                // Twice, so that memory is used again.
                for _ in 0..2 {
                    let (outputs, tiles) = gradients.prepare(&[positions, positions]);
                    let micro_batches = outputs.into_iter().zip(values.chunks_exact(values.len() / 2));
                    for ((output, values), order) in micro_batches.zip(order.chunks_exact(positions)) {
                        match output {
                            MicroBatchOutput::Accumulators(out) => out.copy_from_slice(values),
                            MicroBatchOutput::Rows(sums) => {
                                let mut tile = TransposedBatch::default();
                                let each = order.iter().map(|(_, index)| active.map(|side| side.of(*index as usize)));
                                tile.fill(each, 0, features);
                                sums.add(back_end, values, &tile);
                            }
                        }
                    }
                    pool.install(|| tiles.fill(&[active, active], &order, width, features));
                    pool.install(|| gradients.sum_rows());
                    for (feature, expected) in expected.chunks_exact(stride).enumerate() {
                        let row = gradients.row(feature);
                        assert_eq!(row.is_some(), gradients.has(feature));
                        assert_eq!(row.is_some(), expected[0] != 0.0, "{features} × {width}, feature {feature}");
                        assert!(
                            row.is_none_or(|row| row == &expected[..width]),
                            "{features} × {width}, {threads} threads"
                        );
                        assert!(row.is_none_or(|row| row == &gradients.rows()[feature * stride..][..width]));
                    }
                }
            }
        };
        check(60, 72, 1000, true);
        check(60, 8, 50, true);
        check(70_000, 16, 90, false);
        check(600, 1000, 300, false);
    }
}
