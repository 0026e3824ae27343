//! The lists of changed rows.

use std::cmp::Ordering;

/// The lists to which a block appends its changes, in ascending order.
pub struct RowChanges<'a> {
    pub removed: &'a mut Vec<u32>,
    pub added: &'a mut Vec<u32>,
    /// The index of the block's first row.
    pub offset: u32,
}

impl RowChanges<'_> {
    /// The present lengths of `removed` and `added`.
    #[inline(always)]
    pub fn lengths(&self) -> [usize; 2] {
        [self.removed.len(), self.added.len()]
    }

    /// Sorts the rows behind the lengths `from` and drops those that stand in both lists, occurrence by occurrence.
    #[inline(never)]
    pub fn cancel(&mut self, from: [usize; 2]) {
        let left = &mut *self.removed;
        let right = &mut *self.added;
        sort(&mut left[from[0]..]);
        sort(&mut right[from[1]..]);
        if left.len() == from[0] || right.len() == from[1] {
            return;
        }
        let mut l = from[0];
        let mut r = from[1];
        let mut kept_l = l;
        let mut kept_r = r;
        while l < left.len() && r < right.len() {
            match left[l].cmp(&right[r]) {
                Ordering::Equal => (l, r) = (l + 1, r + 1),
                Ordering::Less => {
                    left[kept_l] = left[l];
                    l += 1;
                    kept_l += 1;
                }
                Ordering::Greater => {
                    right[kept_r] = right[r];
                    r += 1;
                    kept_r += 1;
                }
            }
        }
        if kept_l < l {
            left.drain(kept_l..l);
        }
        if kept_r < r {
            right.drain(kept_r..r);
        }
    }
}

/// Mostly one or two rows.
fn sort(rows: &mut [u32]) {
    match rows {
        [] | [_] => {}
        [a, b] => (*a, *b) = ((*a).min(*b), (*a).max(*b)),
        rows => rows.sort_unstable(),
    }
}

/// Drops repeats from the sorted rows `rows[start..]`.
pub fn dedup_from(rows: &mut Vec<u32>, start: usize) {
    let mut end = start;
    for at in start..rows.len() {
        if at == start || rows[at] != rows[end - 1] {
            rows[end] = rows[at];
            end += 1;
        }
    }
    rows.truncate(end);
}
