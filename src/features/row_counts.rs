//! Lists of rows as multisets: a hash table counts how often each row stands in a list.

use std::cell::RefCell;

use super::code::RowList;

thread_local! {
    static COUNTS: RefCell<Memory> = const { RefCell::new(Memory { keys: Vec::new(), counts: Vec::new(), epoch: 0 }) };
}

/// The memory of a hash table with open addressing, which is used again from list to list.
struct Memory {
    /// Epoch and row, 32 bits each. What an earlier epoch left is empty.
    keys: Vec<u64>,
    counts: Vec<u32>,
    epoch: u32,
}

impl Memory {
    /// A table without rows, for so many.
    fn begin(&mut self, rows: usize) -> RowCounts<'_> {
        let places = (2 * rows).next_power_of_two().max(2);
        self.epoch = self.epoch.wrapping_add(1);
        if self.keys.len() < places || self.epoch == 0 {
            let places = places.max(self.keys.len());
            self.keys.clear();
            self.keys.resize(places, 0);
            self.counts.resize(places, 0);
            self.epoch = 1;
        }
        let epoch = u64::from(self.epoch);
        RowCounts { keys: &mut self.keys[..places], counts: &mut self.counts[..places], epoch }
    }
}

/// How often rows stand in a list.
struct RowCounts<'a> {
    keys: &'a mut [u64],
    counts: &'a mut [u32],
    epoch: u64,
}

impl RowCounts<'_> {
    /// A row's place, and whether it had none before.
    #[inline(always)]
    fn place(&mut self, row: u32) -> (usize, bool) {
        let key = self.epoch << 32 | u64::from(row);
        let last = self.keys.len() - 1;
        // The upper bits of a product with the golden ratio spread neighbouring rows.
        let mut at = (u64::from(row.wrapping_mul(0x9e37_79b1)) * self.keys.len() as u64) >> 32;
        loop {
            let place = at as usize & last;
            let found = self.keys[place];
            if found == key {
                return (place, false);
            }
            if found >> 32 != self.epoch {
                self.keys[place] = key;
                return (place, true);
            }
            at += 1;
        }
    }

    /// The count of a row; 0 at first.
    #[inline(always)]
    fn of(&mut self, row: u32) -> &mut u32 {
        let (place, is_new) = self.place(row);
        let count = &mut self.counts[place];
        if is_new {
            *count = 0;
        }
        count
    }
}

/// Drops those rows of both lists behind the lengths `from` that stand in both, occurrence by occurrence. The others keep
/// their order.
#[inline]
pub fn cancel_from(left: &mut RowList, right: &mut RowList, from: [usize; 2]) {
    if left.len() > from[0] && right.len() > from[1] {
        cancel(&mut left.vec(), &mut right.vec(), from);
    }
}

fn cancel(left: &mut Vec<u32>, right: &mut Vec<u32>, from: [usize; 2]) {
    COUNTS.with_borrow_mut(|memory| {
        let mut counts = memory.begin(left.len() + right.len() - from[0] - from[1]);
        for row in &left[from[0]..] {
            *counts.of(*row) += 1;
        }
        keep_from(right, from[1], |row| {
            let count = counts.of(row);
            let is_alone = *count == 0;
            *count -= u32::from(!is_alone);
            is_alone
        });
        // What is still counted has no equal.
        keep_from(left, from[0], |row| {
            let count = counts.of(row);
            let is_alone = *count != 0;
            *count -= u32::from(is_alone);
            is_alone
        });
    });
}

/// Drops repeats from the rows behind the length `from`. The first of equal ones stays.
#[inline]
pub fn dedup_from(rows: &mut RowList, from: usize) {
    if rows.len() > from + 1 {
        dedup(&mut rows.vec(), from);
    }
}

fn dedup(rows: &mut Vec<u32>, from: usize) {
    COUNTS.with_borrow_mut(|memory| {
        let mut counts = memory.begin(rows.len() - from);
        keep_from(rows, from, |row| counts.place(row).1);
    });
}

/// Keeps those rows behind the length `from` for which the condition holds.
#[inline(always)]
fn keep_from(rows: &mut Vec<u32>, from: usize, mut keeps: impl FnMut(u32) -> bool) {
    let mut end = from;
    for at in from..rows.len() {
        let row = rows[at];
        rows[end] = row;
        end += usize::from(keeps(row));
    }
    rows.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_cancel() {
        let check = |left: Vec<u32>, right: Vec<u32>, from: [usize; 2], expected: [&[u32]; 2]| {
            let [mut left, mut right] = [left, right].map(RowList::from);
            cancel_from(&mut left, &mut right, from);
            assert_eq!([&left[..], &right[..]], expected);
        };
        check(vec![], vec![3, 1], [0, 0], [&[], &[3, 1]]);
        check(vec![4, 2, 2, 9], vec![2, 4, 5], [0, 0], [&[2, 9], &[5]]);
        check(vec![7, 4, 2], vec![7, 2], [1, 1], [&[7, 4], &[7]]);
        check(vec![1, 2], vec![2, 1], [0, 0], [&[], &[]]);
        check(vec![3], vec![3, 3, 1_000_000], [0, 0], [&[], &[3, 1_000_000]]);
    }

    #[test]
    fn repeats_are_dropped() {
        for _ in 0..2 {
            let mut rows = RowList::from(vec![5, 5, 1, 2, 1, 9, 2, 2, 5]);
            dedup_from(&mut rows, 2);
            assert_eq!(rows, [5, 5, 1, 2, 9, 5]);
        }
        // Whatever their hashes.
        let once: Vec<u32> = (0..5_000).map(|number: u32| number.wrapping_mul(2_654_435_769)).collect();
        let mut rows = RowList::from([&once[..], &once[..1_000]].concat());
        dedup_from(&mut rows, 0);
        assert_eq!(rows, once);
    }

    #[test]
    fn counts_are_forgotten() {
        let mut memory = Memory { keys: Vec::new(), counts: Vec::new(), epoch: u32::MAX - 1 };
        for _ in 0..4 {
            let mut counts = memory.begin(3);
            assert_eq!([7, u32::MAX, 7].map(|row| std::mem::replace(counts.of(row), 2)), [0, 0, 2]);
        }
    }
}
