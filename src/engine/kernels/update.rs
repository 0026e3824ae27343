//! Accumulator updates: rows of the feature transformer are added and subtracted.

use crate::engine::simd::{Vector, VectorKernel};

/// The rows of a feature transformer. A row has the weights of all neurons, then PSQT sums as i32, laid out like an
/// accumulator; positions in it are positions in the accumulator.
pub trait AccumulatorRows: Copy {
    type Row: Row;
    /// Whether adding a row needs no register beside the sums.
    const ADDS_FROM_MEMORY: bool = false;
    fn row(self, feature: u32) -> Self::Row;
}

/// A row of a feature transformer.
pub trait Row: Copy {
    /// Adds the weights from `at` to N vectors of i16.
    fn add<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize);
    fn subtract<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize);
    /// A vector of PSQT sums.
    fn psqt<V: Vector>(self, proof: V::Proof, at: usize) -> V;
}

/// Rows with weights of sixteen bits.
#[derive(Copy, Clone)]
pub struct WideRows<'a> {
    pub table: &'a [i16],
    /// Elements of a row.
    pub stride: usize,
    /// The feature of the first row.
    pub first: u32,
}

impl<'a> AccumulatorRows for WideRows<'a> {
    type Row = &'a [i16];
    const ADDS_FROM_MEMORY: bool = true;

    #[inline(always)]
    fn row(self, feature: u32) -> &'a [i16] {
        &self.table[(feature - self.first) as usize * self.stride..][..self.stride]
    }
}

impl Row for &[i16] {
    #[inline(always)]
    fn add<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize) {
        let row = &self[at..][..N * V::WORDS];
        for n in 0..N {
            sums[n] = sums[n].add16(V::load(proof, &row[n * V::WORDS..]));
        }
    }

    #[inline(always)]
    fn subtract<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize) {
        let row = &self[at..][..N * V::WORDS];
        for n in 0..N {
            sums[n] = sums[n].sub16(V::load(proof, &row[n * V::WORDS..]));
        }
    }

    #[inline(always)]
    fn psqt<V: Vector>(self, proof: V::Proof, at: usize) -> V {
        V::load(proof, &self[at..])
    }
}

/// Rows with weights of eight bits, widened on the fly: half the memory traffic.
#[derive(Copy, Clone)]
pub struct NarrowRows<'a> {
    pub table: &'a [i8],
    /// Weights of a row; PSQT sums follow.
    pub words: usize,
    /// Bytes of a row.
    pub stride: usize,
}

#[derive(Copy, Clone)]
pub struct NarrowRow<'a> {
    row: &'a [i8],
    words: usize,
}

impl<'a> AccumulatorRows for NarrowRows<'a> {
    type Row = NarrowRow<'a>;

    #[inline(always)]
    fn row(self, feature: u32) -> NarrowRow<'a> {
        NarrowRow { row: &self.table[feature as usize * self.stride..][..self.stride], words: self.words }
    }
}

impl Row for NarrowRow<'_> {
    #[inline(always)]
    fn add<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize) {
        let row = &self.row[at..][..N * V::WORDS];
        for n in 0..N {
            sums[n] = sums[n].add16(V::widen(proof, &row[n * V::WORDS..]));
        }
    }

    #[inline(always)]
    fn subtract<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize) {
        let row = &self.row[at..][..N * V::WORDS];
        for n in 0..N {
            sums[n] = sums[n].sub16(V::widen(proof, &row[n * V::WORDS..]));
        }
    }

    #[inline(always)]
    fn psqt<V: Vector>(self, proof: V::Proof, at: usize) -> V {
        // An element of the accumulator takes two bytes.
        V::load(proof, &self.row[self.words + 2 * (at - self.words)..])
    }
}

/// Narrow rows, then wide ones.
#[derive(Copy, Clone)]
pub struct MixedRows<'a> {
    pub narrow: NarrowRows<'a>,
    /// The rows of the features beyond.
    pub wide: WideRows<'a>,
}

#[derive(Copy, Clone)]
pub enum MixedRow<'a> {
    Narrow(NarrowRow<'a>),
    Wide(&'a [i16]),
}

impl<'a> AccumulatorRows for MixedRows<'a> {
    type Row = MixedRow<'a>;

    #[inline(always)]
    fn row(self, feature: u32) -> MixedRow<'a> {
        if feature < self.wide.first {
            MixedRow::Narrow(self.narrow.row(feature))
        } else {
            MixedRow::Wide(self.wide.row(feature))
        }
    }
}

impl Row for MixedRow<'_> {
    #[inline(always)]
    fn add<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize) {
        match self {
            MixedRow::Narrow(row) => row.add(proof, sums, at),
            MixedRow::Wide(row) => row.add(proof, sums, at),
        }
    }

    #[inline(always)]
    fn subtract<V: Vector, const N: usize>(self, proof: V::Proof, sums: &mut [V; N], at: usize) {
        match self {
            MixedRow::Narrow(row) => row.subtract(proof, sums, at),
            MixedRow::Wide(row) => row.subtract(proof, sums, at),
        }
    }

    #[inline(always)]
    fn psqt<V: Vector>(self, proof: V::Proof, at: usize) -> V {
        match self {
            MixedRow::Narrow(row) => row.psqt(proof, at),
            MixedRow::Wide(row) => row.psqt(proof, at),
        }
    }
}

/// Adds and subtracts rows.
pub struct AccumulatorUpdate<'a, R> {
    /// The accumulator to start from; `None` starts from `to`.
    pub from: Option<&'a [i16]>,
    pub to: &'a mut [i16],
    pub rows: R,
    /// The i16 elements; PSQT sums follow.
    pub words: usize,
    pub added: &'a [u32],
    pub removed: &'a [u32],
}

impl<R: AccumulatorRows> VectorKernel for AccumulatorUpdate<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) {
        let rows = self.rows;
        // Piece-square sets have only these three deltas: of moves, captures and castling.
        match (self.added, self.removed) {
            (&[a], &[r]) => self.fused::<V, 1, 1>(proof, [rows.row(a)], [rows.row(r)]),
            (&[a], &[r, s]) => self.fused::<V, 1, 2>(proof, [rows.row(a)], [rows.row(r), rows.row(s)]),
            (&[a, b], &[r, s]) => {
                self.fused::<V, 2, 2>(proof, [rows.row(a), rows.row(b)], [rows.row(r), rows.row(s)]);
            }
            _ => self.tiled::<V>(proof),
        }
    }
}

impl<R: AccumulatorRows> AccumulatorUpdate<'_, R> {
    /// Reads all rows side by side: for a fixed number of rows.
    #[inline(always)]
    fn fused<V: Vector, const A: usize, const C: usize>(
        mut self,
        proof: V::Proof,
        added: [R::Row; A],
        removed: [R::Row; C],
    ) {
        let words = self.words;
        let mut at = 0;
        while at + 8 * V::WORDS <= words {
            self.fused_tile::<V, 8, A, C>(proof, at, added, removed);
            at += 8 * V::WORDS;
        }
        // Rows are padded to pairs of vectors.
        while at + 2 * V::WORDS <= words {
            self.fused_tile::<V, 2, A, C>(proof, at, added, removed);
            at += 2 * V::WORDS;
        }
        let AccumulatorUpdate { from, to, .. } = self;
        while at + V::WORDS <= to.len() {
            let mut sum = V::load(proof, &from.unwrap_or(&*to)[at..]);
            for row in added {
                sum = sum.add32(row.psqt(proof, at));
            }
            for row in removed {
                sum = sum.sub32(row.psqt(proof, at));
            }
            sum.store(&mut to[at..]);
            at += V::WORDS;
        }
    }

    /// Updates N vectors from `at`.
    #[inline(always)]
    fn fused_tile<V: Vector, const N: usize, const A: usize, const C: usize>(
        &mut self,
        proof: V::Proof,
        at: usize,
        added: [R::Row; A],
        removed: [R::Row; C],
    ) {
        let mut registers = [V::zero(proof); N];
        let from = &self.from.unwrap_or(&*self.to)[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n] = V::load(proof, &from[n * V::WORDS..]);
        }
        for row in added {
            row.add(proof, &mut registers, at);
        }
        for row in removed {
            row.subtract(proof, &mut registers, at);
        }
        let to = &mut self.to[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n].store(&mut to[n * V::WORDS..]);
        }
    }

    /// Keeps a tile of the accumulator in registers while it reads all rows.
    #[inline(always)]
    fn tiled<V: Vector>(mut self, proof: V::Proof) {
        let mut at = 0;
        if const { V::REGISTERS >= 32 || (R::ADDS_FROM_MEMORY && V::MEMORY_OPERANDS) } {
            while at + 16 * V::WORDS <= self.words {
                self.tile::<V, 16>(proof, at);
                at += 16 * V::WORDS;
            }
        }
        while at + 8 * V::WORDS <= self.words {
            self.tile::<V, 8>(proof, at);
            at += 8 * V::WORDS;
        }
        while at + V::WORDS <= self.words {
            self.tile::<V, 1>(proof, at);
            at += V::WORDS;
        }
        while at + V::WORDS <= self.to.len() {
            self.psqt_sums::<V>(proof, at);
            at += V::WORDS;
        }
    }

    #[inline(always)]
    fn tile<V: Vector, const N: usize>(&mut self, proof: V::Proof, at: usize) {
        let mut registers = [V::zero(proof); N];
        let from = &self.from.unwrap_or(&*self.to)[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n] = V::load(proof, &from[n * V::WORDS..]);
        }
        for feature in self.added {
            self.rows.row(*feature).add(proof, &mut registers, at);
        }
        for feature in self.removed {
            self.rows.row(*feature).subtract(proof, &mut registers, at);
        }
        let to = &mut self.to[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n].store(&mut to[n * V::WORDS..]);
        }
    }

    /// Updates a vector of PSQT sums.
    #[inline(always)]
    fn psqt_sums<V: Vector>(&mut self, proof: V::Proof, at: usize) {
        let mut sum = V::load(proof, &self.from.unwrap_or(&*self.to)[at..]);
        for feature in self.added {
            sum = sum.add32(self.rows.row(*feature).psqt(proof, at));
        }
        for feature in self.removed {
            sum = sum.sub32(self.rows.row(*feature).psqt(proof, at));
        }
        sum.store(&mut self.to[at..]);
    }
}
