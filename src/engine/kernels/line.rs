//! The accumulators of a line of positions. A tile of neurons stays in registers from the first position to the last,
//! and its activations are written position by position: accumulators are neither stored nor loaded between moves.

use super::activate::products;
use super::update::{AccumulatorRows, Row};
use crate::engine::aligned::AlignedVec;
use crate::engine::model::Model;
use crate::engine::simd::{Vector, VectorKernel};

/// How each position's sum of rows follows from the sum before.
#[derive(Clone, Debug, Default)]
pub struct LineChanges {
    /// Rows taken away, then rows added, of all positions.
    rows: Vec<u32>,
    /// By position: the ends of its rows taken away and of those added.
    ends: Vec<[usize; 2]>,
    /// By position: the number of a fresh accumulator that replaces the sum.
    fresh: Vec<Option<usize>>,
}

impl LineChanges {
    pub fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
        self.fresh.clear();
    }

    pub fn push_delta(&mut self, removed: &[u32], added: &[u32]) {
        self.rows.extend_from_slice(removed);
        let middle = self.rows.len();
        self.rows.extend_from_slice(added);
        self.ends.push([middle, self.rows.len()]);
        self.fresh.push(None);
    }

    pub fn push_fresh(&mut self, number: usize) {
        self.ends.push([self.rows.len(); 2]);
        self.fresh.push(Some(number));
    }

    /// All rows that some position takes away or adds.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    #[inline(always)]
    fn changes(&self, position: usize) -> [&[u32]; 2] {
        let start = if position == 0 { 0 } else { self.ends[position - 1][1] };
        let [middle, end] = self.ends[position];
        [&self.rows[start..middle], &self.rows[middle..end]]
    }
}

/// A sum of rows along the line.
pub struct LineSum<'a, R> {
    pub rows: R,
    pub steps: &'a LineChanges,
    /// The accumulator of the position before the line; afterwards of its last position.
    pub accumulator: &'a mut [i16],
}

/// Writes the activations and PSQT sums of one perspective for every position of a line. The network's activation is
/// pairwise.
pub struct LinePass<'a, A, B> {
    pub model: &'a Model,
    pub first: LineSum<'a, A>,
    /// With partial refresh, the other summand of the accumulator.
    pub second: Option<LineSum<'a, B>>,
    pub fresh: &'a [AlignedVec<i16>],
    /// By position: 0 where the perspective is stm's, else 1.
    pub sides: &'a [usize],
    /// [`Model::input_bytes`] per position.
    pub activations: &'a mut [u8],
    /// [`Model::input_masks`] per position.
    pub masks: &'a mut [u16],
    /// The PSQT part of an accumulator, per position.
    pub psqt: &'a mut [i16],
}

impl<A: AccumulatorRows, B: AccumulatorRows> VectorKernel for LinePass<'_, A, B> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(mut self, proof: V::Proof) {
        let is_split = self.second.is_some();
        // A constant: the tiles of the other case are not compiled.
        if const { V::REGISTERS >= 32 } {
            if is_split { self.tiles::<V, 4, true>(proof) } else { self.tiles::<V, 8, false>(proof) }
        } else if is_split {
            self.tiles::<V, 2, true>(proof);
        } else {
            self.tiles::<V, 4, false>(proof);
        }
    }
}

impl<A: AccumulatorRows, B: AccumulatorRows> LinePass<'_, A, B> {
    /// In tiles of H vectors of either half of the neurons.
    #[inline(always)]
    fn tiles<V: Vector, const H: usize, const IS_SPLIT: bool>(&mut self, proof: V::Proof) {
        let half = self.model.side_inputs;
        let mut at = 0;
        while at + H * V::WORDS <= half {
            self.tile::<V, H, IS_SPLIT>(proof, at);
            at += H * V::WORDS;
        }
        // Halves are padded to pairs of vectors.
        while at + 2 * V::WORDS <= half {
            self.tile::<V, 2, IS_SPLIT>(proof, at);
            at += 2 * V::WORDS;
        }
        let mut at = 2 * half;
        while at + V::WORDS <= self.first.accumulator.len() {
            self.psqt_sums::<V, IS_SPLIT>(proof, at);
            at += V::WORDS;
        }
    }

    #[inline(always)]
    fn tile<V: Vector, const H: usize, const IS_SPLIT: bool>(&mut self, proof: V::Proof, at: usize) {
        let half = self.model.side_inputs;
        let offsets = [at, half + at];
        let positions = self.sides.len();
        let clip = V::splat16(proof, i16::from(self.model.clip));
        let bytes = self.model.input_bytes();
        let masks = self.model.input_masks();
        let mut first = load::<V, H>(proof, self.first.accumulator, offsets);
        let mut second = first;
        if let (true, Some(part)) = (IS_SPLIT, &self.second) {
            second = load::<V, H>(proof, part.accumulator, offsets);
        }
        for position in 0..positions {
            follow(proof, &self.first, self.fresh, position, &mut first, offsets);
            let mut sums = first;
            if let (true, Some(part)) = (IS_SPLIT, &self.second) {
                follow(proof, part, self.fresh, position, &mut second, offsets);
                for part in 0..2 {
                    for n in 0..H {
                        sums[part][n] = sums[part][n].add16(second[part][n]);
                    }
                }
            }
            let side = self.sides[position];
            let output = &mut self.activations[position * bytes + side * half + at..][..H * V::WORDS];
            let mask = position * masks + (side * half + at) / V::BYTES;
            for n in (0..H).step_by(2) {
                let [low, high] = [sums[0][n], sums[0][n + 1]];
                let factors = [sums[1][n], sums[1][n + 1]];
                let products = products([low, high], factors, clip, self.model.product_shift);
                products.store(&mut output[n * V::WORDS..]);
                self.masks[mask + n / 2] = products.nonzero32() as u16;
            }
        }
        store(first, self.first.accumulator, offsets);
        if let (true, Some(part)) = (IS_SPLIT, &mut self.second) {
            store(second, part.accumulator, offsets);
        }
    }

    /// A vector of PSQT sums of all positions.
    #[inline(always)]
    fn psqt_sums<V: Vector, const IS_SPLIT: bool>(&mut self, proof: V::Proof, at: usize) {
        let words = 2 * self.model.side_inputs;
        let stride = self.first.accumulator.len() - words;
        let mut first = V::load(proof, &self.first.accumulator[at..]);
        let mut second = V::zero(proof);
        if let (true, Some(part)) = (IS_SPLIT, &self.second) {
            second = V::load(proof, &part.accumulator[at..]);
        }
        for position in 0..self.sides.len() {
            first = follow_psqt(proof, &self.first, self.fresh, position, first, at);
            if let (true, Some(part)) = (IS_SPLIT, &self.second) {
                second = follow_psqt(proof, part, self.fresh, position, second, at);
            }
            first.add32(second).store(&mut self.psqt[position * stride + at - words..]);
        }
        first.store(&mut self.first.accumulator[at..]);
        if let (true, Some(part)) = (IS_SPLIT, &mut self.second) {
            second.store(&mut part.accumulator[at..]);
        }
    }
}

#[inline(always)]
fn load<V: Vector, const H: usize>(proof: V::Proof, from: &[i16], offsets: [usize; 2]) -> [[V; H]; 2] {
    let mut sums = [[V::zero(proof); H]; 2];
    for part in 0..2 {
        let from = &from[offsets[part]..][..H * V::WORDS];
        for n in 0..H {
            sums[part][n] = V::load(proof, &from[n * V::WORDS..]);
        }
    }
    sums
}

#[inline(always)]
fn store<V: Vector, const H: usize>(sums: [[V; H]; 2], to: &mut [i16], offsets: [usize; 2]) {
    for part in 0..2 {
        let to = &mut to[offsets[part]..][..H * V::WORDS];
        for n in 0..H {
            sums[part][n].store(&mut to[n * V::WORDS..]);
        }
    }
}

/// Brings a tile of a summand to a position.
#[inline(always)]
fn follow<V: Vector, const H: usize, R: AccumulatorRows>(
    proof: V::Proof,
    summand: &LineSum<'_, R>,
    fresh: &[AlignedVec<i16>],
    position: usize,
    sums: &mut [[V; H]; 2],
    offsets: [usize; 2],
) {
    if let Some(number) = summand.steps.fresh[position] {
        *sums = load::<V, H>(proof, &fresh[number], offsets);
        return;
    }
    let [removed, added] = summand.steps.changes(position);
    for feature in removed {
        let row = summand.rows.row(*feature);
        row.subtract(proof, &mut sums[0], offsets[0]);
        row.subtract(proof, &mut sums[1], offsets[1]);
    }
    for feature in added {
        let row = summand.rows.row(*feature);
        row.add(proof, &mut sums[0], offsets[0]);
        row.add(proof, &mut sums[1], offsets[1]);
    }
}

#[inline(always)]
fn follow_psqt<V: Vector, R: AccumulatorRows>(
    proof: V::Proof,
    summand: &LineSum<'_, R>,
    fresh: &[AlignedVec<i16>],
    position: usize,
    mut sum: V,
    at: usize,
) -> V {
    if let Some(number) = summand.steps.fresh[position] {
        return V::load(proof, &fresh[number][at..]);
    }
    let [removed, added] = summand.steps.changes(position);
    for feature in removed {
        sum = sum.sub32(summand.rows.row(*feature).psqt(proof, at));
    }
    for feature in added {
        sum = sum.add32(summand.rows.row(*feature).psqt(proof, at));
    }
    sum
}
