//! Lists of rows as multisets: a counter for every row says how often it stands in a list.

use std::cell::RefCell;

use super::code::RowList;

thread_local! {
    static COUNTS: RefCell<RowCounts> = const { RefCell::new(RowCounts(Vec::new())) };
}

/// By row; all 0 between calls.
struct RowCounts(Vec<u32>);

impl RowCounts {
    #[inline(always)]
    fn of(&mut self, row: u32) -> &mut u32 {
        let at = row as usize;
        if at >= self.0.len() {
            self.grow(at);
        }
        &mut self.0[at]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, at: usize) {
        self.0.resize((at + 1).next_power_of_two(), 0);
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
    COUNTS.with_borrow_mut(|counts| {
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
    COUNTS.with_borrow_mut(|counts| {
        keep_from(rows, from, |row| std::mem::replace(counts.of(row), 1) == 0);
        for row in &rows[from..] {
            *counts.of(*row) = 0;
        }
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
    }
}
