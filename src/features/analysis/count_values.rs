//! Sets of values of a clamped count.

/// A subset of 0..=max. Sums saturate at max.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountValues {
    words: Vec<u64>,
    max: u32,
}

impl CountValues {
    pub fn none(max: u32) -> CountValues {
        CountValues { words: vec![0; max as usize / 64 + 1], max }
    }

    pub fn only(value: u32, max: u32) -> CountValues {
        let mut values = CountValues::none(max);
        values.insert(value.min(max));
        values
    }

    pub fn all(max: u32) -> CountValues {
        let mut values = CountValues::none(max);
        values.words.fill(!0);
        values.saturate();
        values
    }

    pub fn insert(&mut self, value: u32) {
        self.words[value as usize / 64] |= 1 << (value % 64);
    }

    pub fn contains(&self, value: u32) -> bool {
        value <= self.max && self.words[value as usize / 64] >> (value % 64) & 1 != 0
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..=self.max).filter(|value| self.contains(*value))
    }

    pub fn is_zero(&self) -> bool {
        self.words[0] == 1 && self.words[1..].iter().all(|word| *word == 0)
    }

    pub fn or(&mut self, other: &CountValues) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub fn and(&mut self, other: &CountValues) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Replaces the set by all sums of one of its values and one of `other`.
    pub fn add(&mut self, other: &CountValues) {
        if other.is_zero() {
            return;
        }
        let mut sums = CountValues::none(self.max);
        for a in other.iter() {
            sums.or_shifted(self, a);
        }
        sums.saturate();
        *self = sums;
    }

    /// Inserts every value of `other` plus `by`, saturating at the maximum.
    fn or_shifted(&mut self, other: &CountValues, by: u32) {
        let words = by as usize / 64;
        let bits = by % 64;
        let mut exceeds = false;
        for (at, word) in other.words.iter().enumerate() {
            let high = if bits == 0 { 0 } else { word >> (64 - bits) };
            for (to, shifted) in [(at + words, word << bits), (at + words + 1, high)] {
                match self.words.get_mut(to) {
                    Some(sums) => *sums |= shifted,
                    None => exceeds |= shifted != 0,
                }
            }
        }
        if exceeds {
            self.insert(self.max);
        }
    }

    /// Replaces values above the maximum by the maximum.
    fn saturate(&mut self) {
        let top = self.max % 64;
        let inside = !0u64 >> (63 - top);
        if let Some(last) = self.words.last_mut()
            && *last & !inside != 0
        {
            *last = *last & inside | 1 << top;
        }
    }

    /// [`CountValues::add`], repeated.
    pub fn add_times(&mut self, other: &CountValues, times: u32) {
        (0..times).for_each(|_| self.add(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of sums, value by value.
    fn sums(left: &[u32], right: &[u32], max: u32) -> Vec<u32> {
        let mut sums: Vec<u32> = left.iter().flat_map(|a| right.iter().map(move |b| (a + b).min(max))).collect();
        sums.sort_unstable();
        sums.dedup();
        sums
    }

    #[test]
    fn sums_saturate_at_the_maximum() {
        let of = |values: &[u32], max: u32| {
            let mut all = CountValues::none(max);
            values.iter().for_each(|value| all.insert((*value).min(max)));
            all
        };
        for max in [0, 1, 5, 62, 63, 64, 65, 127, 128, 200, 1024] {
            let some = |step: usize| (0..=max).step_by(step).collect::<Vec<_>>();
            for (left, right) in [(some(1), some(1)), (some(3), some(7)), (vec![max], vec![0, max]), (vec![0], some(5))]
            {
                let mut sum = of(&left, max);
                sum.add(&of(&right, max));
                assert_eq!(
                    sum.iter().collect::<Vec<_>>(),
                    sums(&left, &right, max),
                    "{left:?} + {right:?} up to {max}"
                );
            }
            assert_eq!(CountValues::all(max).iter().count() as u32, max + 1);
        }
    }
}
