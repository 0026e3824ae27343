//! Accumulator updates: rows of the feature transformer are added and subtracted.

use bytemuck::Pod;

use crate::engine::simd::{Kernel, Vector};

/// The type of a row's weights.
pub trait Weight: Pod {
    /// Loads `V::WORDS` weights as i16.
    fn load<V: Vector>(proof: V::Proof, from: &[Self]) -> V;
}

impl Weight for i16 {
    #[inline(always)]
    fn load<V: Vector>(proof: V::Proof, from: &[i16]) -> V {
        V::load(proof, from)
    }
}

/// For rows without PSQT sums.
impl Weight for i8 {
    #[inline(always)]
    fn load<V: Vector>(proof: V::Proof, from: &[i8]) -> V {
        V::widen(proof, from)
    }
}

/// Adds and subtracts rows of `table`.
pub struct AccumulatorUpdate<'a, W> {
    /// The accumulator to start from; `None` starts from `to`.
    pub from: Option<&'a [i16]>,
    pub to: &'a mut [i16],
    pub table: &'a [W],
    /// The i16 elements; PSQT sums follow.
    pub words: usize,
    pub added: &'a [u32],
    pub removed: &'a [u32],
}

impl<W: Weight> Kernel for AccumulatorUpdate<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self, proof: V::Proof) {
        let stride = self.to.len();
        let table = self.table;
        // Piece-square sets have only these three deltas: of moves, captures and castling.
        match (self.added, self.removed) {
            (&[a], &[r]) => self.fused::<V, 1, 1>(proof, [row(table, stride, a)], [row(table, stride, r)]),
            (&[a], &[r, s]) => {
                self.fused::<V, 1, 2>(proof, [row(table, stride, a)], [row(table, stride, r), row(table, stride, s)]);
            }
            (&[a, b], &[r, s]) => self.fused::<V, 2, 2>(
                proof,
                [row(table, stride, a), row(table, stride, b)],
                [row(table, stride, r), row(table, stride, s)],
            ),
            _ => self.tiled::<V>(proof),
        }
    }
}

#[inline(always)]
fn row<W>(table: &[W], stride: usize, feature: u32) -> &[W] {
    &table[feature as usize * stride..][..stride]
}

impl<W: Weight> AccumulatorUpdate<'_, W> {
    /// Reads all rows side by side: for a fixed number of rows.
    #[inline(always)]
    fn fused<V: Vector, const A: usize, const R: usize>(
        mut self,
        proof: V::Proof,
        added: [&[W]; A],
        removed: [&[W]; R],
    ) {
        let words = self.words;
        let mut at = 0;
        while at + 8 * V::WORDS <= words {
            self.fused_tile::<V, 8, A, R>(proof, at, added, removed);
            at += 8 * V::WORDS;
        }
        // Rows are padded to pairs of vectors.
        while at + 2 * V::WORDS <= words {
            self.fused_tile::<V, 2, A, R>(proof, at, added, removed);
            at += 2 * V::WORDS;
        }
        let AccumulatorUpdate { from, to, .. } = self;
        while at + V::WORDS <= to.len() {
            let mut sum = V::load(proof, &from.unwrap_or(&*to)[at..]);
            for row in added {
                sum = sum.add32(V::load(proof, &row[at..]));
            }
            for row in removed {
                sum = sum.sub32(V::load(proof, &row[at..]));
            }
            sum.store(&mut to[at..]);
            at += V::WORDS;
        }
    }

    /// Updates N vectors from `at`.
    #[inline(always)]
    fn fused_tile<V: Vector, const N: usize, const A: usize, const R: usize>(
        &mut self,
        proof: V::Proof,
        at: usize,
        added: [&[W]; A],
        removed: [&[W]; R],
    ) {
        let mut registers = [V::zero(proof); N];
        let from = &self.from.unwrap_or(&*self.to)[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n] = V::load(proof, &from[n * V::WORDS..]);
        }
        for row in added {
            let row = &row[at..][..N * V::WORDS];
            for n in 0..N {
                registers[n] = registers[n].add16(W::load(proof, &row[n * V::WORDS..]));
            }
        }
        for row in removed {
            let row = &row[at..][..N * V::WORDS];
            for n in 0..N {
                registers[n] = registers[n].sub16(W::load(proof, &row[n * V::WORDS..]));
            }
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
        if V::REGISTERS >= 32 {
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
        let stride = self.to.len();
        let mut registers = [V::zero(proof); N];
        let from = &self.from.unwrap_or(&*self.to)[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n] = V::load(proof, &from[n * V::WORDS..]);
        }
        for feature in self.added {
            let row = &self.table[*feature as usize * stride + at..][..N * V::WORDS];
            for n in 0..N {
                registers[n] = registers[n].add16(W::load(proof, &row[n * V::WORDS..]));
            }
        }
        for feature in self.removed {
            let row = &self.table[*feature as usize * stride + at..][..N * V::WORDS];
            for n in 0..N {
                registers[n] = registers[n].sub16(W::load(proof, &row[n * V::WORDS..]));
            }
        }
        let to = &mut self.to[at..][..N * V::WORDS];
        for n in 0..N {
            registers[n].store(&mut to[n * V::WORDS..]);
        }
    }

    /// Updates a vector of PSQT sums.
    #[inline(always)]
    fn psqt_sums<V: Vector>(&mut self, proof: V::Proof, at: usize) {
        let stride = self.to.len();
        let mut sum = V::load(proof, &self.from.unwrap_or(&*self.to)[at..]);
        for feature in self.added {
            sum = sum.add32(V::load(proof, &self.table[*feature as usize * stride + at..]));
        }
        for feature in self.removed {
            sum = sum.sub32(V::load(proof, &self.table[*feature as usize * stride + at..]));
        }
        sum.store(&mut self.to[at..]);
    }
}
