//! Groups of inputs that are not all zero: where they are, and what their weights give.

use super::{NNZ_SLACK, Vector};

/// Numbers of groups of four inputs that are not all zero, lowest first, filled up to whole chunks with the number of a
/// group of zeros behind all others. Only [`Nnz::find`] makes it: every number is below `groups`.
pub struct Nnz<'a> {
    numbers: &'a [u16],
    /// Numbers before those that fill up.
    count: usize,
    /// Groups there must be: those of the masks, and the one of zeros.
    groups: usize,
}

/// Nnz stand in whole chunks of so many.
const CHUNK: usize = 4;

impl<'a> Nnz<'a> {
    /// Bit i of `masks[n]` says whether group n · `DOUBLES` + i is not all zero.
    ///
    /// # Panics
    /// When `room` does not hold a number for each group and [`NNZ_SLACK`] more, or the groups are too many for u16.
    #[inline(always)]
    pub fn find<V: Vector>(proof: V::Proof, masks: &[u16], room: &'a mut [u16]) -> Nnz<'a> {
        let groups = masks.len() * V::DOUBLES;
        assert!(groups < usize::from(u16::MAX) && room.len() >= groups + NNZ_SLACK);
        let count = V::nnz(proof, masks, room);
        room[count..][..CHUNK].fill(groups as u16);
        Nnz { numbers: &room[..count.next_multiple_of(CHUNK)], count, groups: groups + 1 }
    }

    /// Groups that are not all zero.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The inputs at these places and N vectors of their weights, C places at a time. `groups`: all inputs, then zeros.
    ///
    /// # Panics
    /// When there are not as many groups, weights for all of them, or vectors in a row.
    #[inline(always)]
    pub fn picked<'b, V: Vector, const N: usize, const C: usize>(
        &'b self,
        proof: V::Proof,
        groups: &'b [[u8; 4]],
        rows: GroupWeights<'b>,
    ) -> NnzIter<'b, V, N, C> {
        const { assert!(CHUNK.is_multiple_of(C)) };
        let GroupWeights { weights, stride, at } = rows;
        let all = self.groups.checked_mul(stride).is_some_and(|all| weights.len() >= all);
        let whole = at.checked_add(N * V::BYTES).is_some_and(|end| end <= stride);
        assert!(all && whole && groups.len() >= self.groups, "not enough groups");
        NnzIter { proof, numbers: self.numbers.as_chunks::<C>().0.iter(), groups, rows }
    }
}

/// Weights in rows, one a group of inputs.
#[derive(Copy, Clone)]
pub struct GroupWeights<'a> {
    pub weights: &'a [i8],
    /// Weights of a row.
    pub stride: usize,
    /// The first one wanted of every row.
    pub at: usize,
}

/// Observer [`Nnz::picked`]. Nothing is checked a group: with checks, and chunks that had a rest, evaluations of a 512×2 → 32
/// network with 55% of its groups not zero took 8% longer.
pub struct NnzIter<'a, V: Vector, const N: usize, const C: usize> {
    proof: V::Proof,
    numbers: std::slice::Iter<'a, [u16; C]>,
    groups: &'a [[u8; 4]],
    rows: GroupWeights<'a>,
}

impl<V: Vector, const N: usize, const C: usize> Iterator for NnzIter<'_, V, N, C> {
    /// A group's inputs in every i32, and its weights.
    type Item = [(V, [V; N]); C];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let numbers = self.numbers.next()?;
        let GroupWeights { weights, stride, at } = self.rows;
        let mut picked = [(V::zero(self.proof), [V::zero(self.proof); N]); C];
        for c in 0..C {
            let group = usize::from(numbers[c]);
            // SAFETY: numbers are below `Nnz::groups`; `picked` made sure of so many groups and rows, and of the
            // vectors in each row.
            let (inputs, weights) = unsafe {
                let row = weights.get_unchecked(group * stride + at..);
                (*self.groups.get_unchecked(group), row.get_unchecked(..N * V::BYTES))
            };
            picked[c].0 = V::splat32(self.proof, i32::from_ne_bytes(inputs));
            for n in 0..N {
                picked[c].1[n] = V::load(self.proof, &weights[n * V::BYTES..]);
            }
        }
        Some(picked)
    }
}

/// For each byte the places of its set bits, lowest first.
static PLACES: [[u16; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit as u16;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// [`super::Vector::nnz`] of masks of eight bits.
#[inline(always)]
pub fn of_bytes(masks: &[u16], to: &mut [u16]) -> usize {
    let mut count = 0;
    for (index, mask) in masks.iter().enumerate() {
        let mask = mask & 0xff;
        // A copy of its own, so that all eight are moved at once.
        let mut places = PLACES[usize::from(mask)];
        for place in &mut places {
            *place = place.wrapping_add(8 * index as u16);
        }
        to[count..][..8].copy_from_slice(&places);
        count += mask.count_ones() as usize;
    }
    count
}
