//! Lists of rows as sorted multisets.

use std::cmp::Ordering;

/// Sorts the rows of both lists behind the lengths `from` and drops those that stand in both, occurrence by occurrence.
pub fn cancel_from(left: &mut Vec<u32>, right: &mut Vec<u32>, from: [usize; 2]) {
    left[from[0]..].sort_unstable();
    right[from[1]..].sort_unstable();
    let [mut l, mut r] = from;
    let [mut kept_l, mut kept_r] = from;
    while l < left.len() && r < right.len() {
        match left[l].cmp(&right[r]) {
            Ordering::Equal => {
                l += 1;
                r += 1;
            }
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
    left.drain(kept_l..l);
    right.drain(kept_r..r);
}

/// Rows of a list up to which [`cancel`] does not sort.
const MOST_UNSORTED: usize = 64;

/// Drops what stands in both lists, occurrence by occurrence, in any order: short lists are not sorted.
pub fn cancel(left: &mut Vec<u32>, right: &mut Vec<u32>) {
    if left.len() > MOST_UNSORTED {
        return cancel_from(left, right, [0, 0]);
    }
    // A bit for each of `left`, which few others share.
    let mut seen = [0u64; 32];
    let place = |row: u32| (row.wrapping_mul(0x9e37_79b1) >> 21) as usize;
    for row in &*left {
        seen[place(*row) >> 6] |= 1 << (place(*row) & 63);
    }
    for at in (0..right.len()).rev() {
        let row = right[at];
        if seen[place(row) >> 6] >> (place(row) & 63) & 1 == 1
            && let Some(other) = left.iter().position(|left| *left == row)
        {
            left.swap_remove(other);
            right.swap_remove(at);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_cancel() {
        let check = |mut left: Vec<u32>, mut right: Vec<u32>, from: [usize; 2], expected: [&[u32]; 2]| {
            let [mut own_left, mut own_right] = [left[from[0]..].to_vec(), right[from[1]..].to_vec()];
            cancel_from(&mut left, &mut right, from);
            assert_eq!([&left[..], &right[..]], expected);
            cancel(&mut own_left, &mut own_right);
            own_left.sort_unstable();
            own_right.sort_unstable();
            assert_eq!([own_left, own_right], [&left[from[0]..], &right[from[1]..]]);
        };
        check(vec![], vec![3, 1], [0, 0], [&[], &[1, 3]]);
        check(vec![4, 2, 2, 9], vec![2, 4, 5], [0, 0], [&[2, 9], &[5]]);
        check(vec![7, 4, 2], vec![7, 2], [1, 1], [&[7, 4], &[7]]);
        check(vec![1, 2], vec![1, 2], [0, 0], [&[], &[]]);
    }

    #[test]
    fn repeats_are_dropped() {
        let mut rows = vec![5, 5, 1, 1, 2, 2, 2, 9];
        dedup_from(&mut rows, 2);
        assert_eq!(rows, [5, 5, 1, 2, 9]);
    }
}
