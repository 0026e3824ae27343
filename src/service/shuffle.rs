//! Shuffling long lists in a cache's reach.

use crate::units::Draws;

/// A permutation, each with the same chance: every item goes to a bucket of its own choice and buckets, which fit into the
/// cache, are shuffled for themselves (Rao 1961, Sandelius 1962).
pub(super) fn bucket_shuffle(items: &[u32], draws: Draws) -> Vec<u32> {
    const BUCKETS: usize = 256;
    let choices: Vec<u8> =
        (0..items.len().div_ceil(8) as u64).flat_map(|number| draws.at(number).to_le_bytes()).collect();
    let choices = &choices[..items.len()];
    let mut starts = [0usize; BUCKETS + 1];
    for &choice in choices {
        starts[usize::from(choice) + 1] += 1;
    }
    for bucket in 0..BUCKETS {
        starts[bucket + 1] += starts[bucket];
    }
    let (mut out, mut cursors) = (vec![0; items.len()], starts);
    for (&item, &choice) in items.iter().zip(choices) {
        let cursor = &mut cursors[usize::from(choice)];
        out[*cursor] = item;
        *cursor += 1;
    }
    let drawn = items.len() as u64;
    for bounds in starts.windows(2) {
        let bucket = &mut out[bounds[0]..bounds[1]];
        for place in 1..bucket.len() {
            let other = draws.below(drawn + (bounds[0] + place) as u64, place as u32 + 1) as usize;
            bucket.swap(place, other);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    /// Every item reaches every place equally often.
    #[test]
    fn mixing_is_uniform() {
        const ITEMS: usize = 12;
        let items: Vec<u32> = (0..ITEMS as u32).collect();
        let mut counts = [[0u32; ITEMS]; ITEMS];
        for round in 0..12_000 {
            let mixed = bucket_shuffle(&items, Seed(round).draws("test"));
            mixed.iter().enumerate().for_each(|(place, &item)| counts[place][item as usize] += 1);
            let mut sorted = mixed;
            sorted.sort_unstable();
            assert_eq!(sorted, items);
        }
        let chi_squared: f64 = counts.iter().flatten().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
        // 121 degrees of freedom: 190 is exceeded once in 20,000 tries, and the draws are fixed.
        assert!(chi_squared < 190.0, "χ² = {chi_squared}");
    }

    #[test]
    fn long_lists_lose_nothing() {
        let items: Vec<u32> = (0..100_003).collect();
        let mut mixed = bucket_shuffle(&items, Seed(1).draws("test"));
        let unmoved = items.iter().zip(&mixed).filter(|(a, b)| a == b).count();
        assert!(unmoved < 20, "{unmoved} stayed");
        mixed.sort_unstable();
        assert_eq!(mixed, items);
    }
}
