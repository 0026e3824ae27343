//! Groups of inputs that are not all zero: where they are, and what their weights give.

use super::{SPARE_PLACES, Vector};

/// Groups of four inputs that are not all zero, lowest first, then some more that are, so that they make whole chunks.
/// Only [`Places::find`] makes them, so that no group need be looked for beyond [`Places::groups`].
pub struct Places<'a> {
    numbers: &'a [u16],
    count: usize,
    groups: usize,
}

/// Places stand in whole chunks of so many.
const CHUNK: usize = 4;

impl<'a> Places<'a> {
    /// Bit i of `masks[n]` says whether group n · `DOUBLES` + i is not all zero. `room` holds a number for each bit and
    /// [`SPARE_PLACES`] more.
    #[inline(always)]
    pub fn find<V: Vector>(proof: V::Proof, masks: &[u16], room: &'a mut [u16]) -> Places<'a> {
        let groups = masks.len() * V::DOUBLES;
        assert!(groups < usize::from(u16::MAX) && room.len() >= groups + SPARE_PLACES);
        let count = V::places(proof, masks, room);
        // The group behind all others.
        room[count..][..CHUNK].fill(groups as u16);
        Places { numbers: &room[..count.next_multiple_of(CHUNK)], count, groups: groups + 1 }
    }

    /// Groups that are not all zero.
    pub fn count(&self) -> usize {
        self.count
    }

    /// To N vectors of outputs, from output `at` on, the products of the inputs at these places and their weights, in C
    /// sums that do not wait for each other. `groups`: the inputs and a group of zeros; `weights`: for every group in
    /// `groups` the four weights of every output, `outputs` of them.
    ///
    /// # Panics
    /// When there are fewer groups or weights.
    #[inline(always)]
    pub fn products<V: Vector, const N: usize, const C: usize>(
        &self,
        proof: V::Proof,
        sums: &mut [[V; N]; C],
        groups: &[[u8; 4]],
        (weights, outputs, at): (&[i8], usize, usize),
    ) {
        const { assert!(CHUNK.is_multiple_of(C)) };
        let stride = 4 * outputs;
        let bytes = N * V::BYTES;
        assert!(groups.len() >= self.groups && weights.len() >= self.groups * stride && 4 * at + bytes <= stride);
        for numbers in self.numbers.as_chunks::<C>().0 {
            for c in 0..C {
                let group = usize::from(numbers[c]);
                // SAFETY: `find` and [`Vector::places`] give numbers below `self.groups`; so many groups there are, and
                // so many times `stride` weights, of which the vectors end within a stride.
                let (inputs, weights) = unsafe {
                    (
                        groups.get_unchecked(group),
                        weights.get_unchecked(group * stride + 4 * at..).get_unchecked(..bytes),
                    )
                };
                let x = V::splat32(proof, i32::from_ne_bytes(*inputs));
                for n in 0..N {
                    sums[c][n] = sums[c][n].dot4(x, V::load(proof, &weights[n * V::BYTES..]));
                }
            }
        }
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

/// [`super::Vector::places`] of masks of eight bits.
#[inline(always)]
pub fn of_bytes(masks: &[u16], to: &mut [u16]) -> usize {
    let mut count = 0;
    for (index, mask) in masks.iter().enumerate() {
        // A copy of its own, so that all eight are moved at once.
        let mut places = PLACES[usize::from(mask & 0xff)];
        for place in &mut places {
            *place = place.wrapping_add(8 * index as u16);
        }
        to[count..][..8].copy_from_slice(&places);
        count += mask.count_ones() as usize;
    }
    count
}
