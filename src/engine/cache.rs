//! The refresh cache (Finny table): for each perspective and context the last accumulator and what was active in it, so
//! that a refresh adds and subtracts what differs instead of everything.

use std::collections::HashMap;

use super::aligned::Aligned;
use super::model::Model;
use super::simd::BackEnd;
use crate::chess::{Board, ByPerspective, Perspective};
use crate::features::FeatureSet;

#[derive(Clone)]
struct Entry {
    accumulator: Aligned<i16>,
    /// Ascending.
    active: Vec<u32>,
}

/// Entries are exact whenever they were made: there is no need to forget them.
#[derive(Clone, Default)]
pub struct RefreshCache {
    entries: ByPerspective<HashMap<u64, Entry>>,
    active: Vec<u32>,
    added: Vec<u32>,
    removed: Vec<u32>,
}

/// What a refresh came to.
pub struct Refreshed {
    /// Rows added and subtracted.
    pub rows: usize,
    /// Active features now.
    pub active: usize,
}

impl RefreshCache {
    /// Brings `accumulator` to `board`.
    pub fn refresh(
        &mut self,
        set: &FeatureSet,
        model: &Model,
        back_end: BackEnd,
        (board, pov): (&Board, Perspective),
        accumulator: &mut [i16],
    ) -> Refreshed {
        set.active(board, pov, &mut self.active);
        self.active.sort_unstable();
        let contexts = set.blocks().iter().enumerate().fold(0u64, |number, (index, block)| {
            let context = set.context(index, board, pov).map_or(0, |context| context + 1);
            number.wrapping_mul(u64::from(block.contexts()) + 1).wrapping_add(u64::from(context))
        });
        let empty = || Entry { accumulator: model.empty_accumulator(), active: Vec::with_capacity(self.active.len()) };
        let entry = self.entries[pov].entry(contexts).or_insert_with(empty);
        difference(&entry.active, &self.active, &mut self.removed, &mut self.added);
        let rows = match self.added.len() + self.removed.len() <= self.active.len() {
            true => {
                model.update(back_end, &mut entry.accumulator, &self.added, &self.removed);
                self.added.len() + self.removed.len()
            }
            false => {
                model.refresh(back_end, &mut entry.accumulator, &self.active);
                self.active.len()
            }
        };
        entry.active.clone_from(&self.active);
        accumulator.copy_from_slice(&entry.accumulator);
        Refreshed { rows, active: self.active.len() }
    }
}

/// What stands in one ascending list only; repeated numbers count repeatedly.
fn difference(left: &[u32], right: &[u32], only_left: &mut Vec<u32>, only_right: &mut Vec<u32>) {
    only_left.clear();
    only_right.clear();
    let (mut l, mut r) = (0, 0);
    while l < left.len() && r < right.len() {
        let (a, b) = (left[l], right[r]);
        if a < b {
            only_left.push(a);
        } else if b < a {
            only_right.push(b);
        }
        l += usize::from(a <= b);
        r += usize::from(b <= a);
    }
    only_left.extend_from_slice(&left[l..]);
    only_right.extend_from_slice(&right[r..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences() {
        let check = |left: &[u32], right: &[u32], expected: [&[u32]; 2]| {
            let (mut only_left, mut only_right) = (vec![9], vec![9]);
            difference(left, right, &mut only_left, &mut only_right);
            assert_eq!([&only_left[..], &only_right[..]], expected, "{left:?} {right:?}");
        };
        check(&[1, 2, 5], &[2, 3], [&[1, 5], &[3]]);
        check(&[4, 4], &[4], [&[4], &[]]);
        check(&[], &[1, 1], [&[], &[1, 1]]);
    }
}
