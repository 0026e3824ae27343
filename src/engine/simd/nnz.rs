//! nnz: the indices of the input groups that are not all zero, and the weights they select.

use super::{NNZ_SLACK, Vector};

/// The indices of the groups of four inputs that are not all zero, ascending. They are padded to whole chunks with the
/// index of a last group, which is all zero. Only [`Nnz::find`] makes an `Nnz`: every index is below `groups`.
pub struct Nnz<'a> {
    indices: &'a [u16],
    /// Indices before the padding.
    count: usize,
    /// Groups there must be: the groups of the masks, and a last group of zeros.
    groups: usize,
}

/// Indices are padded to a multiple of this.
const CHUNK: usize = 4;

impl<'a> Nnz<'a> {
    /// Bit i of `masks[n]` is set if group n · `DOUBLES` + i is not all zero.
    ///
    /// # Panics
    /// When `buffer` is shorter than the number of groups and [`NNZ_SLACK`], or the groups do not fit u16.
    #[inline(always)]
    pub fn find<V: Vector>(proof: V::Proof, masks: &[u16], buffer: &'a mut [u16]) -> Nnz<'a> {
        let groups = masks.len() * V::DOUBLES;
        assert!(groups < usize::from(u16::MAX) && buffer.len() >= groups + NNZ_SLACK);
        let count = V::nnz(proof, masks, buffer);
        buffer[count..][..CHUNK].fill(groups as u16);
        Nnz { indices: &buffer[..count.next_multiple_of(CHUNK)], count, groups: groups + 1 }
    }

    /// The number of groups that are not all zero.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Iterates over the inputs of these groups and N vectors of their weights, C groups at a time. `groups` holds all
    /// inputs, then zeros.
    ///
    /// # Panics
    /// When there are too few groups, rows of weights, or vectors in a row.
    #[inline(always)]
    pub fn iter<'b, V: Vector, const N: usize, const C: usize>(
        &'b self,
        proof: V::Proof,
        groups: &'b [[u8; 4]],
        weights: GroupWeights<'b>,
    ) -> NnzIter<'b, V, N, C> {
        const { assert!(CHUNK.is_multiple_of(C)) };
        let GroupWeights { rows, stride, at } = weights;
        let rows_fit = self.groups.checked_mul(stride).is_some_and(|all| rows.len() >= all);
        let vectors_fit = at.checked_add(N * V::BYTES).is_some_and(|end| end <= stride);
        assert!(rows_fit && vectors_fit && groups.len() >= self.groups, "not enough groups");
        NnzIter { proof, indices: self.indices.as_chunks::<C>().0.iter(), groups, weights }
    }
}

/// Weights in rows, one per group of inputs.
#[derive(Copy, Clone)]
pub struct GroupWeights<'a> {
    pub rows: &'a [i8],
    /// Weights per row.
    pub stride: usize,
    /// The first weight to take of every row.
    pub at: usize,
}

/// See [`Nnz::iter`]. It makes no check per group: checks, and a remainder after the chunks, made evaluations of a
/// 512×2 → 32 network with 55% of its groups not zero 8% slower.
pub struct NnzIter<'a, V: Vector, const N: usize, const C: usize> {
    proof: V::Proof,
    indices: std::slice::Iter<'a, [u16; C]>,
    groups: &'a [[u8; 4]],
    weights: GroupWeights<'a>,
}

impl<V: Vector, const N: usize, const C: usize> Iterator for NnzIter<'_, V, N, C> {
    /// A group's inputs, repeated in every i32, and its weights.
    type Item = [(V, [V; N]); C];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let indices = self.indices.next()?;
        let GroupWeights { rows, stride, at } = self.weights;
        let mut chunk = [(V::zero(self.proof), [V::zero(self.proof); N]); C];
        for c in 0..C {
            let group = usize::from(indices[c]);
            // SAFETY: indices are below `Nnz::groups`. `Nnz::iter` checked that there are as many groups and rows, and
            // that each row has the vectors.
            let (inputs, weights) = unsafe {
                let row = rows.get_unchecked(group * stride + at..);
                (*self.groups.get_unchecked(group), row.get_unchecked(..N * V::BYTES))
            };
            chunk[c].0 = V::splat32(self.proof, i32::from_ne_bytes(inputs));
            for n in 0..N {
                chunk[c].1[n] = V::load(self.proof, &weights[n * V::BYTES..]);
            }
        }
        Some(chunk)
    }
}

/// The indices of the set bits of each byte, ascending.
static BIT_INDICES: [[u16; 8]; 256] = {
    let mut indices = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        let mut count = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                indices[byte][count] = bit as u16;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    indices
};

/// [`super::Vector::nnz`] of masks of eight bits.
///
/// # Panics
/// When there is no room for eight indices per mask, and eight more.
#[inline(always)]
pub fn of_bytes(masks: &[u16], to: &mut [u16]) -> usize {
    assert!(to.len() >= 8 * masks.len() + 8);
    let mut first = [0u16; 8];
    let mut count = 0;
    for mask in masks {
        let mask = mask & 0xff;
        // A local copy, so that all eight are moved at once.
        let mut indices = BIT_INDICES[usize::from(mask)];
        for n in 0..8 {
            indices[n] = indices[n].wrapping_add(first[n]);
            first[n] = first[n].wrapping_add(8);
        }
        // SAFETY: each mask before this one gave at most eight indices.
        unsafe { to.get_unchecked_mut(count..count + 8) }.copy_from_slice(&indices);
        count += mask.count_ones() as usize;
    }
    count
}
