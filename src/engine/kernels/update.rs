//! Accumulators: rows of the feature transformer added and subtracted.

use bytemuck::Pod;

use crate::engine::simd::{Kernel, Vector};

/// A weight of a row.
pub trait Weight: Pod {
    /// `V::WORDS` weights as i16.
    fn load<V: Vector>(proof: V::Proof, from: &[Self]) -> V;
}

impl Weight for i16 {
    #[inline(always)]
    fn load<V: Vector>(proof: V::Proof, from: &[i16]) -> V {
        V::load(proof, from)
    }
}

/// Of rows without PSQT sums.
impl Weight for i8 {
    #[inline(always)]
    fn load<V: Vector>(proof: V::Proof, from: &[i8]) -> V {
        V::widen(proof, from)
    }
}

/// Adds and subtracts rows.
pub struct AccumulatorUpdate<'a, W> {
    /// Where to start from; none = from what `to` holds.
    pub from: Option<&'a [i16]>,
    pub to: &'a mut [i16],
    pub table: &'a [W],
    /// Elements that are i16 numbers; those behind are PSQT sums.
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
        // What moves, captures and castlings change in sets of pieces gets loops of its own.
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
    /// All rows pass each vector at once.
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
            self.step::<V, 8, A, R>(proof, at, added, removed);
            at += 8 * V::WORDS;
        }
        // Padding makes them whole pairs of vectors.
        while at + 2 * V::WORDS <= words {
            self.step::<V, 2, A, R>(proof, at, added, removed);
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

    /// N vectors from `at` on.
    #[inline(always)]
    fn step<V: Vector, const N: usize, const A: usize, const R: usize>(
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

    /// Tiles of the accumulator stay in registers while all rows pass.
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
            self.sums::<V>(proof, at);
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

    /// A vector of PSQT sums.
    #[inline(always)]
    fn sums<V: Vector>(&mut self, proof: V::Proof, at: usize) {
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
