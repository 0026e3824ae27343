//! The transposition table: results of earlier searches by Zobrist key.

use std::hint::black_box;

use bytemuck::{Pod, Zeroable};
use thiserror::Error;

use crate::chess::PackedMove;
use crate::cpu;
use crate::engine::HugePageTable;

use super::node::Node;
use super::score::{LARGEST_EVAL, from_table};

/// How a stored score relates to the true one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum ScoreBound {
    Upper = 1,
    Lower = 2,
    Exact = 3,
}

impl ScoreBound {
    pub(super) const fn is_lower(self) -> bool {
        matches!(self, ScoreBound::Lower | ScoreBound::Exact)
    }

    pub(super) const fn is_upper(self) -> bool {
        matches!(self, ScoreBound::Upper | ScoreBound::Exact)
    }
}

/// A search result of one position.
#[derive(Copy, Clone, Debug)]
pub(super) struct TableEntry {
    pub(super) mv: PackedMove,
    /// As converted by [`super::score::to_table`].
    pub(super) score: i32,
    /// Static evaluation, or [`super::score::NO_EVAL`].
    pub(super) eval: i32,
    pub(super) depth: i32,
    pub(super) bound: ScoreBound,
    /// Whether the position was on a principal variation.
    pub(super) was_pv: bool,
}

impl TableEntry {
    /// The stored value if its bound decides the node's window.
    pub(super) fn cutoff(&self, node: Node<'_>) -> Option<i32> {
        let value = from_table(self.score, node.ply);
        let decides = match self.bound {
            ScoreBound::Exact => true,
            ScoreBound::Lower => value >= node.beta,
            ScoreBound::Upper => value <= node.alpha,
        };
        decides.then_some(value)
    }

    /// The static evaluation, or the stored score if that is a tighter bound.
    pub(super) fn refine(&self, eval: i32, ply: usize) -> i32 {
        let value = from_table(self.score, ply);
        let is_tighter = if value > eval { self.bound.is_lower() } else { self.bound.is_upper() };
        if is_tighter && value.abs() <= LARGEST_EVAL { value } else { eval }
    }
}

/// An entry as stored, in 12 bytes.
#[derive(Copy, Clone, Pod, Zeroable)]
#[repr(C)]
struct PackedEntry {
    /// Lower half of the position's key. The upper half determines the bucket.
    key_half: u32,
    mv: PackedMove,
    score: i16,
    eval: i16,
    depth: u8,
    /// Age in the upper five bits, then whether the position was on a principal variation, bound in the lower two.
    /// Bound 0 marks an empty entry.
    age_and_bound: u8,
}

impl PackedEntry {
    const fn is_empty(&self) -> bool {
        self.age_and_bound & 3 == 0
    }

    const fn age(&self) -> u8 {
        self.age_and_bound >> 3
    }
}

const BUCKET_ENTRIES: usize = 5;
const AGES: u8 = 32;

/// The entries with one table index: one cache line.
#[derive(Copy, Clone, Pod, Zeroable)]
#[repr(C, align(64))]
struct TableBucket {
    entries: [PackedEntry; BUCKET_ENTRIES],
    padding: u32,
}

/// The system has no memory for a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no memory for a hash table of {megabytes} MiB: take a smaller one")]
pub struct NoHashMemory {
    megabytes: usize,
}

/// A hash table of fixed size. Entries of older searches and of lower depth are replaced first.
pub struct TranspositionTable {
    buckets: HugePageTable<TableBucket>,
    age: u8,
}

impl TranspositionTable {
    /// Default size.
    pub const DEFAULT_MEGABYTES: usize = 16;
    /// Largest size.
    pub const MAX_MEGABYTES: usize = 65_536;

    /// An empty table; `megabytes` is clamped to 1 to [`Self::MAX_MEGABYTES`]. Ends the process if there is no memory
    /// for it, which [`Self::check_memory`] says.
    #[must_use]
    pub fn new(megabytes: usize) -> TranspositionTable {
        TranspositionTable { buckets: HugePageTable::zeroed(Self::buckets(megabytes)), age: 0 }
    }

    /// Reserves the memory of a table, and gives it back at once.
    ///
    /// # Errors
    /// When the system does not have so much.
    pub fn check_memory(megabytes: usize) -> Result<(), NoHashMemory> {
        let mut buckets: Vec<TableBucket> = Vec::new();
        let reserved = buckets.try_reserve_exact(Self::buckets(megabytes));
        // Memory that is not used would not be reserved.
        black_box(&mut buckets);
        reserved.map_err(|_| NoHashMemory { megabytes })
    }

    fn buckets(megabytes: usize) -> usize {
        megabytes.clamp(1, Self::MAX_MEGABYTES) * (1 << 20) / size_of::<TableBucket>()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.buckets.fill(TableBucket::zeroed());
        self.age = 0;
    }

    /// Starts a new search: all present entries become older.
    pub(super) fn advance_age(&mut self) {
        self.age = (self.age + 1) % AGES;
    }

    /// Entries that the current search wrote, in thousandths, from a sample of the first buckets.
    #[must_use]
    pub fn hashfull(&self) -> u32 {
        let sample = &self.buckets[..self.buckets.len().min(200)];
        let is_current = |entry: &&PackedEntry| !entry.is_empty() && entry.age() == self.age;
        let used = sample.iter().flat_map(|bucket| &bucket.entries).filter(is_current).count();
        (used * 1000 / (sample.len() * BUCKET_ENTRIES)) as u32
    }

    fn index(&self, key: u64) -> usize {
        ((u128::from(key) * self.buckets.len() as u128) >> 64) as usize
    }

    /// Prefetches the entries of the position with this key.
    pub(super) fn prefetch(&self, key: u64) {
        cpu::prefetch(&self.buckets[self.index(key)]);
    }

    /// The entry of the position with this key.
    pub(super) fn probe(&self, key: u64) -> Option<TableEntry> {
        let bucket = &self.buckets[self.index(key)];
        let entry = bucket.entries.iter().find(|entry| entry.key_half == key as u32 && !entry.is_empty())?;
        let bound = match entry.age_and_bound & 3 {
            1 => ScoreBound::Upper,
            2 => ScoreBound::Lower,
            _ => ScoreBound::Exact,
        };
        Some(TableEntry {
            mv: entry.mv,
            score: i32::from(entry.score),
            eval: i32::from(entry.eval),
            depth: i32::from(entry.depth),
            bound,
            was_pv: entry.age_and_bound & 4 != 0,
        })
    }

    /// Stores an entry, unless it is a bound and the same search has stored the position with a clearly greater depth.
    pub(super) fn store(&mut self, key: u64, entry: &TableEntry) {
        let age = self.age;
        let index = self.index(key);
        let key_half = key as u32;
        let replacement_value = |entry: &PackedEntry| {
            let age_difference = (AGES + age - entry.age()) % AGES;
            if entry.is_empty() { i32::MIN } else { i32::from(entry.depth) - 4 * i32::from(age_difference) }
        };
        let entries = &mut self.buckets[index].entries;
        let same = entries.iter().position(|stored| stored.key_half == key_half && !stored.is_empty());
        let least_valuable = || (0..BUCKET_ENTRIES).min_by_key(|&at| replacement_value(&entries[at])).unwrap_or(0);
        let at = same.unwrap_or_else(least_valuable);
        let old = entries[at];
        if same.is_some()
            && entry.bound != ScoreBound::Exact
            && old.age() == age
            && i32::from(old.depth) > entry.depth + 3
        {
            return;
        }
        let keep_move = same.is_some() && !entry.mv.is_some();
        entries[at] = PackedEntry {
            key_half,
            mv: if keep_move { old.mv } else { entry.mv },
            score: entry.score as i16,
            eval: entry.eval as i16,
            depth: entry.depth.clamp(0, 255) as u8,
            age_and_bound: age << 3 | u8::from(entry.was_pv) << 2 | entry.bound as u8,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(depth: i32, bound: ScoreBound) -> TableEntry {
        TableEntry { mv: PackedMove::NONE, score: depth, eval: 0, depth, bound, was_pv: false }
    }

    #[test]
    fn a_bucket_is_a_cache_line() {
        assert_eq!((size_of::<PackedEntry>(), size_of::<TableBucket>()), (12, cpu::CACHE_LINE));
    }

    #[test]
    fn memory_can_be_checked() {
        assert_eq!(TranspositionTable::check_memory(1), Ok(()));
        let error = NoHashMemory { megabytes: 60_000 };
        assert_eq!(error.to_string(), "there is no memory for a hash table of 60000 MiB: take a smaller one");
    }

    #[test]
    fn stored_entries_are_found() {
        let mut table = TranspositionTable::new(1);
        assert!(table.probe(42).is_none());
        table.store(42, &entry(5, ScoreBound::Exact));
        let found = table.probe(42).expect("stored");
        assert_eq!((found.score, found.depth, found.bound), (5, 5, ScoreBound::Exact));
        assert!(table.probe(43).is_none());
        table.clear();
        assert!(table.probe(42).is_none());
    }

    /// A full bucket replaces its shallowest entries, and entries of older searches before entries of the current one.
    #[test]
    fn shallow_and_old_entries_are_replaced() {
        let mut table = TranspositionTable::new(1);
        for key in 1..=7u64 {
            table.store(key, &entry(key as i32, ScoreBound::Lower));
        }
        assert!(table.probe(7).is_some() && table.probe(3).is_some() && table.probe(1).is_none());
        for _ in 0..10 {
            table.advance_age();
        }
        for key in 11..=15u64 {
            table.store(key, &entry(1, ScoreBound::Lower));
        }
        assert!((11..=15).all(|key| table.probe(key).is_some()));
    }
}
