//! The refresh cache (Finny table): for each perspective and context the last accumulator and what was active in it, so
//! that a refresh adds and subtracts what differs instead of everything.

use std::collections::HashMap;

use super::aligned::Aligned;
use super::model::Model;
use super::parts::Parts;
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
    /// Brings `accumulator` to `board`. With `parts`, entries are sums over the moving blocks alone, and those over the
    /// others are given.
    pub fn refresh(
        &mut self,
        set: &FeatureSet,
        model: &Model,
        back_end: BackEnd,
        (board, pov): (&Board, Perspective),
        parts: Option<(&Parts, &[i16])>,
        accumulator: &mut [i16],
    ) -> Refreshed {
        let contexts = |number: u64, block: usize| {
            let context = set.context(block, board, pov).map_or(0, |context| context + 1);
            number.wrapping_mul(u64::from(set.blocks()[block].contexts()) + 1).wrapping_add(u64::from(context))
        };
        let key = match parts {
            None => {
                set.active(board, pov, &mut self.active);
                (0..set.blocks().len()).fold(0, contexts)
            }
            Some((parts, _)) => {
                parts.moving(set, board, pov, &mut self.active);
                parts.moving_blocks().iter().copied().fold(0, contexts)
            }
        };
        self.active.sort_unstable();
        let empty = || {
            let mut accumulator = model.empty_accumulator();
            if parts.is_some() {
                accumulator.fill(0);
            }
            Entry { accumulator, active: Vec::with_capacity(self.active.len()) }
        };
        let entry = self.entries[pov].entry(key).or_insert_with(empty);
        difference(&entry.active, &self.active, &mut self.removed, &mut self.added);
        let mut rows = self.added.len() + self.removed.len();
        if rows <= self.active.len() {
            model.update(back_end, &mut entry.accumulator, &self.added, &self.removed);
        } else {
            rows = self.active.len();
            match parts {
                None => model.refresh(back_end, &mut entry.accumulator, &self.active),
                Some(_) => {
                    entry.accumulator.fill(0);
                    model.update(back_end, &mut entry.accumulator, &self.active, &[]);
                }
            }
        }
        entry.active.clone_from(&self.active);
        match parts {
            None => accumulator.copy_from_slice(&entry.accumulator),
            Some((_, still)) => model.sum(back_end, still, &entry.accumulator, accumulator),
        }
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
