//! The records of mapped files that make samples: records of the requested split that the method can use.

use std::ops::Range;
use std::thread;

use super::mapped_files::{MappedFile, MappedFiles};
use super::serve::worker_panicked;
use super::{Request, ServiceError};
use crate::data::{Method, Record, Split, SplitRule};
use crate::pipeline::build::GameSplit;

/// Records scanned at once.
const SCAN_CHUNK: usize = 1 << 19;

/// The set of records that make samples, one bit per record.
#[derive(Clone, Debug)]
pub struct EligibleRecords {
    bits: Vec<u64>,
    count: u64,
}

impl EligibleRecords {
    /// Record i is eligible if bit i % 64 of word i / 64 is set.
    #[must_use]
    pub fn new(bits: Vec<u64>) -> EligibleRecords {
        let count = count_ones(&bits) as u64;
        EligibleRecords { bits, count }
    }

    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Indices of about `count` records spread evenly over the data, ascending.
    pub fn spread(&self, count: usize) -> impl Iterator<Item = u32> {
        self.in_range(0..64 * self.bits.len()).step_by((self.count / count.max(1) as u64).max(1) as usize)
    }

    /// The eligible records in a range whose bounds are multiples of 64, ascending.
    pub(super) fn in_range(&self, records: Range<usize>) -> impl Iterator<Item = u32> {
        let words = records.start / 64..(records.end / 64).min(self.bits.len());
        words.flat_map(|word| {
            let mut remaining = self.bits[word];
            std::iter::from_fn(move || {
                let bit = remaining.trailing_zeros();
                remaining &= remaining.wrapping_sub(1);
                (bit < 64).then_some(64 * word as u32 + bit)
            })
        })
    }

    /// The number of eligible records in each block of `block` records, a multiple of 64.
    pub(super) fn count_per_block(&self, block: usize) -> impl Iterator<Item = u32> {
        self.bits.chunks(block / 64).map(|words| count_ones(words) as u32)
    }
}

/// How many different samples a stream has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamSamples {
    pub(super) read: u64,
    /// With the samples of training games beyond the share that is read.
    pub(super) of_split: u64,
}

/// The records that are served, and how many there are beside them.
pub(super) struct ServedRecords {
    pub(super) eligible: EligibleRecords,
    /// Records of the split that make no sample.
    pub(super) unusable: usize,
    pub(super) samples: StreamSamples,
}

/// The records of the split that make a sample, of the share of the training games that is read.
pub(super) fn served_records(request: &Request, files: &MappedFiles) -> Result<ServedRecords, ServiceError> {
    let refused = |text: String| Err(ServiceError::Request(text));
    let data = &request.data;
    let records = files.len();
    let mut split = SplitScan::new(request);
    let rule = request.split_rule();
    let mut of_split = 0;
    let mut bits = BitList::with_capacity(records);
    let mut in_split = 0;
    for mapped in files.files() {
        let MappedFile { file, first_record, first_game, .. } = mapped;
        let needs = request.needs_of(file.header().purpose);
        let mut scanned = 0;
        let mut unsound = None;
        file.for_each_checked_chunk(SCAN_CHUNK, |chunk| {
            let mut words = vec![0u64; chunk.len().div_ceil(64)];
            for (number, record) in chunk.iter().enumerate() {
                let game = first_game.wrapping_add(record.game());
                words[number / 64] |= u64::from(split.contains(game)) << (number % 64);
                if !record.board().is_sound() {
                    unsound = unsound.or(Some(scanned + number));
                }
            }
            in_split += count_ones(&words);
            match request.method {
                Method::Eval => retain(chunk, &mut words, |_, record| Ok(needs.met_by(record)))?,
                Method::Pqr if mapped.has_triplets() => {}
                Method::Pqr => retain_with_triplet(chunk, first_record + scanned as u32, &mut words, request.threads)?,
            }
            of_split += count_ones(&words) as u64;
            if request.reading.training_share.is_some() {
                let is_read =
                    |_, record: &Record| Ok(rule.contains(first_game.wrapping_add(record.game()), request.split));
                retain(chunk, &mut words, is_read)?;
            }
            scanned += chunk.len();
            bits.append(&words, chunk.len());
            Ok::<(), ServiceError>(())
        })?;
        if let Some(index) = unsound {
            return refused(format!(
                "sample {index} of {} has a damaged board: a square holds an invalid piece; build the data anew",
                file.path().display()
            ));
        }
    }
    if in_split == 0 {
        return refused(why_none_in_split(request, files));
    }
    let eligible = EligibleRecords::new(bits.words);
    if of_split > 0 && eligible.count() == 0 {
        let share = request.reading.training_share.unwrap_or(1.0);
        return refused(format!("the share {share} of the training games of {data} has no game; give a larger one"));
    }
    if eligible.count() == 0 {
        return refused(match request.method {
            Method::Eval => format!("none of the {in_split} samples of {data} has {}", request.required()),
            Method::Pqr => format!("none of the {in_split} samples of {data} has a played move and another legal one"),
        });
    }
    let samples = StreamSamples { read: eligible.count(), of_split };
    Ok(ServedRecords { eligible, unusable: in_split - of_split as usize, samples })
}

/// Why no record belongs to the request's split.
fn why_none_in_split(request: &Request, files: &MappedFiles) -> String {
    let data = &request.data;
    let share = request.validation;
    if request.split == Split::All || files.is_empty() {
        return format!("{data} holds no samples");
    }
    let wanted = GameSplit { split: request.split, validation: share, seed: request.split_seed };
    let of_the_other_side = files.files().first().and_then(|file| file.why_none_in(&wanted));
    let (split, advice) = match request.split {
        Split::Validation => ("validation", "a larger"),
        Split::Train | Split::All => ("training", "a smaller"),
    };
    of_the_other_side.unwrap_or_else(|| {
        format!(
            "no game of {data} falls into the {split} split ({} samples of {} games, validation share {share}); give \
             {advice} --validation",
            files.len(),
            files.games()
        )
    })
}

/// Bits that grow at the end.
struct BitList {
    words: Vec<u64>,
    length: usize,
}

impl BitList {
    fn with_capacity(bits: usize) -> BitList {
        BitList { words: Vec::with_capacity(bits.div_ceil(64)), length: 0 }
    }

    /// Appends the first `count` bits of `words`; the bits after them are 0.
    fn append(&mut self, words: &[u64], count: usize) {
        let shift = self.length % 64;
        self.length += count;
        if shift == 0 {
            self.words.extend_from_slice(words);
            return;
        }
        for word in words {
            if let Some(last) = self.words.last_mut() {
                *last |= word << shift;
            }
            self.words.push(word >> (64 - shift));
        }
        self.words.truncate(self.length.div_ceil(64));
    }
}

/// Decides game by game whether records belong to the split; the records of a game are adjacent.
struct SplitScan {
    rule: SplitRule,
    split: Split,
    current: Option<(u32, bool)>,
}

impl SplitScan {
    fn new(request: &Request) -> SplitScan {
        let rule = SplitRule::new(request.split_seed, request.validation);
        SplitScan { rule, split: request.split, current: None }
    }

    #[inline]
    fn contains(&mut self, game: u32) -> bool {
        match self.current {
            Some((current, contained)) if current == game => contained,
            _ => {
                let contained = self.rule.contains(game, self.split);
                self.current = Some((game, contained));
                contained
            }
        }
    }
}

fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Clears the bits of the records that `keep`, called with a record's index in `records`, rejects.
fn retain(
    records: &[Record],
    words: &mut [u64],
    keep: impl Fn(usize, &Record) -> Result<bool, ServiceError>,
) -> Result<(), ServiceError> {
    for (number, word) in words.iter_mut().enumerate() {
        let mut remaining = *word;
        while remaining != 0 {
            let index = 64 * number + remaining.trailing_zeros() as usize;
            if !keep(index, &records[index])? {
                *word ^= remaining & remaining.wrapping_neg();
            }
            remaining &= remaining - 1;
        }
    }
    Ok(())
}

/// Keeps the records with a played move and at least one other legal move. `first` is the index of `records[0]` in the
/// data.
fn retain_with_triplet(records: &[Record], first: u32, words: &mut [u64], threads: usize) -> Result<(), ServiceError> {
    use shakmaty::Position;
    let has_triplet = |index: u32, record: &Record| {
        let position = record.position().map_err(|source| ServiceError::Record { index, source })?;
        Ok(record.has_move() && position.legal_moves().len() > 1)
    };
    let words_per_thread = words.len().div_ceil(threads).max(1);
    let records_per_thread = 64 * words_per_thread;
    thread::scope(|scope| {
        let shares = records.chunks(records_per_thread).zip(words.chunks_mut(words_per_thread));
        let workers: Vec<_> = (first..)
            .step_by(records_per_thread)
            .zip(shares)
            .map(|(first, (records, words))| {
                scope.spawn(move || retain(records, words, |index, record| has_triplet(first + index as u32, record)))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|panic| worker_panicked(&*panic))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_appended_at_any_place() {
        let bits: Vec<bool> = (0..1000u64).map(|bit| bit.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1).collect();
        let mut list = BitList::with_capacity(bits.len());
        let mut rest = &bits[..];
        for count in [1, 63, 64, 65, 128, 7, 200, 0, 472] {
            let (next, after) = rest.split_at(count);
            let mut words = vec![0u64; count.div_ceil(64)];
            next.iter().enumerate().for_each(|(bit, set)| words[bit / 64] |= u64::from(*set) << (bit % 64));
            list.append(&words, count);
            rest = after;
        }
        assert!(rest.is_empty() && list.words.len() == bits.len().div_ceil(64));
        let found = (0..bits.len()).map(|bit| list.words[bit / 64] >> (bit % 64) & 1 == 1);
        assert!(found.eq(bits.iter().copied()));
    }
}
