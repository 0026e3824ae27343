//! The transposition table: what the search found in positions it has seen.

use super::code::MoveCode;

/// What a stored score says of the true one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Upper = 1,
    Lower = 2,
    Exact = 3,
}

impl Bound {
    pub(super) const fn is_lower(self) -> bool {
        matches!(self, Bound::Lower | Bound::Exact)
    }

    pub(super) const fn is_upper(self) -> bool {
        matches!(self, Bound::Upper | Bound::Exact)
    }
}

/// What is stored of a position.
#[derive(Copy, Clone, Debug)]
pub(super) struct Entry {
    pub(super) mv: MoveCode,
    /// As [`super::score::to_table`] gives it.
    pub(super) score: i32,
    /// Static evaluation, or [`super::score::NO_EVAL`].
    pub(super) eval: i32,
    pub(super) depth: i32,
    pub(super) bound: Bound,
}

/// An entry in memory: 12 bytes.
#[derive(Copy, Clone, Default)]
struct Slot {
    /// Lower half of the position's key; the upper half gives the bucket.
    check: u32,
    mv: MoveCode,
    score: i16,
    eval: i16,
    depth: u8,
    /// Age in the upper six bits, bound in the lower two; bound 0: empty.
    age_and_bound: u8,
}

const SLOTS: usize = 5;
const AGES: u8 = 64;

/// Positions that share an index: one cache line.
#[derive(Copy, Clone, Default)]
#[repr(align(64))]
struct Bucket([Slot; SLOTS]);

/// A hash table of fixed size; entries of older searches and of lower depth are replaced first.
pub struct TranspositionTable {
    buckets: Vec<Bucket>,
    age: u8,
}

impl TranspositionTable {
    /// Megabytes unless asked otherwise.
    pub const DEFAULT_MEGABYTES: usize = 16;
    /// Most megabytes that may be asked for.
    pub const MOST_MEGABYTES: usize = 65_536;

    /// An empty table of at least 1 megabyte.
    #[must_use]
    pub fn new(megabytes: usize) -> TranspositionTable {
        let buckets = megabytes.clamp(1, Self::MOST_MEGABYTES) * (1 << 20) / size_of::<Bucket>();
        TranspositionTable { buckets: vec![Bucket::default(); buckets], age: 0 }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.buckets.fill(Bucket::default());
        self.age = 0;
    }

    /// A new search begins.
    pub(super) fn advance(&mut self) {
        self.age = (self.age + 1) % AGES;
    }

    /// The share of entries that the present search wrote, in thousandths, from the first buckets.
    #[must_use]
    pub fn fullness(&self) -> u32 {
        let sample = &self.buckets[..self.buckets.len().min(200)];
        let fresh = |slot: &&Slot| slot.age_and_bound & 3 != 0 && slot.age_and_bound >> 2 == self.age;
        let used = sample.iter().flat_map(|bucket| &bucket.0).filter(fresh).count();
        (used * 1000 / (sample.len() * SLOTS)) as u32
    }

    fn index(&self, key: u64) -> usize {
        ((u128::from(key) * self.buckets.len() as u128) >> 64) as usize
    }

    /// What is known of the position with this key.
    pub(super) fn probe(&self, key: u64) -> Option<Entry> {
        let bucket = &self.buckets[self.index(key)];
        let slot = bucket.0.iter().find(|slot| slot.check == key as u32 && slot.age_and_bound & 3 != 0)?;
        let bound = match slot.age_and_bound & 3 {
            1 => Bound::Upper,
            2 => Bound::Lower,
            _ => Bound::Exact,
        };
        Some(Entry {
            mv: slot.mv,
            score: i32::from(slot.score),
            eval: i32::from(slot.eval),
            depth: i32::from(slot.depth),
            bound,
        })
    }

    /// Stores what was found; a deeper entry of the same position and search stays.
    pub(super) fn store(&mut self, key: u64, entry: &Entry) {
        let (age, index) = (self.age, self.index(key));
        let check = key as u32;
        let worth = |slot: &Slot| {
            let behind = (AGES + age - (slot.age_and_bound >> 2)) % AGES;
            if slot.age_and_bound & 3 == 0 { i32::MIN } else { i32::from(slot.depth) - 4 * i32::from(behind) }
        };
        let slots = &mut self.buckets[index].0;
        let same = slots.iter().position(|slot| slot.check == check && slot.age_and_bound & 3 != 0);
        let least = || (0..SLOTS).min_by_key(|&at| worth(&slots[at])).unwrap_or(0);
        let at = same.unwrap_or_else(least);
        let old = slots[at];
        if same.is_some()
            && entry.bound != Bound::Exact
            && old.age_and_bound >> 2 == age
            && i32::from(old.depth) > entry.depth + 3
        {
            return;
        }
        let keeps_move = same.is_some() && !entry.mv.is_some();
        slots[at] = Slot {
            check,
            mv: if keeps_move { old.mv } else { entry.mv },
            score: entry.score as i16,
            eval: entry.eval as i16,
            depth: entry.depth.clamp(0, 255) as u8,
            age_and_bound: age << 2 | entry.bound as u8,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(depth: i32, bound: Bound) -> Entry {
        Entry { mv: MoveCode::NONE, score: depth, eval: 0, depth, bound }
    }

    #[test]
    fn a_bucket_is_a_cache_line() {
        assert_eq!((size_of::<Slot>(), size_of::<Bucket>()), (12, 64));
    }

    #[test]
    fn stores_and_finds() {
        let mut table = TranspositionTable::new(1);
        assert!(table.probe(42).is_none());
        table.store(42, &entry(5, Bound::Exact));
        let found = table.probe(42).expect("stored");
        assert_eq!((found.score, found.depth, found.bound), (5, 5, Bound::Exact));
        assert!(table.probe(43).is_none());
        table.clear();
        assert!(table.probe(42).is_none());
    }

    /// Of more positions than a bucket holds, the deepest stay; entries of older searches go first.
    #[test]
    fn shallow_and_old_entries_are_replaced() {
        let mut table = TranspositionTable::new(1);
        for key in 1..=7u64 {
            table.store(key, &entry(key as i32, Bound::Lower));
        }
        assert!(table.probe(7).is_some() && table.probe(3).is_some() && table.probe(1).is_none());
        for _ in 0..10 {
            table.advance();
        }
        for key in 11..=15u64 {
            table.store(key, &entry(1, Bound::Lower));
        }
        assert!((11..=15).all(|key| table.probe(key).is_some()));
    }
}
