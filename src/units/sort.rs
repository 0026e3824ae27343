//! Sorts short lists. The standard library's sort is one or two thousand lines of compiler input for each type and
//! order; here lists of all types share a sort of positions.

use std::cmp::Ordering;

/// As [`slice::sort_by`].
pub fn sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let order = sorted_positions(items.len(), &|a, b| compare(&items[a], &items[b]));
    for position in 0..items.len() {
        // An item that was swapped away is where the item that took its place came from.
        let mut from = order[position];
        while from < position {
            from = order[from];
        }
        items.swap(position, from);
    }
}

/// As [`slice::sort_by_key`].
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: &dyn Fn(&T) -> K) {
    sort_by(items, &|a, b| key(a).cmp(&key(b)));
}

fn sorted_positions(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_are_sorted_as_by_the_standard_library(keys in prop::collection::vec(0..20, 0..60)) {
            let mut items: Vec<(i32, usize)> = keys.into_iter().enumerate().map(|(at, key)| (key, at)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by_key(&mut items, &|(key, _)| *key);
            prop_assert_eq!(items, expected);
        }
    }
}
