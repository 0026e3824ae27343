//! Sets of values a clamped count may take.

/// A subset of 0..=max; sums saturate at max.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    words: Vec<u64>,
    max: u32,
}

impl Values {
    pub fn none(max: u32) -> Values {
        Values { words: vec![0; max as usize / 64 + 1], max }
    }

    pub fn only(value: u32, max: u32) -> Values {
        let mut values = Values::none(max);
        values.insert(value.min(max));
        values
    }

    pub fn all(max: u32) -> Values {
        let mut values = Values::none(max);
        (0..=max).for_each(|value| values.insert(value));
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

    pub fn or(&mut self, other: &Values) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub fn and(&mut self, other: &Values) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Every sum of one value of each.
    pub fn plus(&mut self, other: &Values) {
        if other.is_zero() {
            return;
        }
        let mut sums = Values::none(self.max);
        for a in other.iter() {
            for b in self.iter() {
                sums.insert((a + b).min(self.max));
            }
        }
        *self = sums;
    }

    /// The same, `times` over.
    pub fn plus_times(&mut self, other: &Values, times: u32) {
        (0..times).for_each(|_| self.plus(other));
    }
}
