//! Which records of a mapped file make samples: those of the split that the method can use.

use std::ops::Range;
use std::thread;

use super::serve::worker_panicked;
use super::{Request, ServiceError};
use crate::data::{Fsd, Method, Needs, Record, Split, SplitRule};

/// Records whose place in the split is looked at together; a multiple of 64.
const LOOKED_AT: usize = 1 << 19;

/// The records that make samples, one bit each.
#[derive(Clone, Debug)]
pub struct Eligible {
    bits: Vec<u64>,
    count: u64,
}

impl Eligible {
    /// Bit i % 64 of word i / 64: whether record i makes one.
    #[must_use]
    pub fn new(bits: Vec<u64>) -> Eligible {
        let count = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Eligible { bits, count }
    }

    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Indices of about `count` records from all over the data, ascending.
    pub fn some(&self, count: usize) -> impl Iterator<Item = u32> {
        self.within(0..64 * self.bits.len()).step_by((self.count / count.max(1) as u64).max(1) as usize)
    }

    /// Those among some records; the range begins and ends at multiples of 64.
    pub(super) fn within(&self, records: Range<usize>) -> impl Iterator<Item = u32> {
        let words = records.start / 64..(records.end / 64).min(self.bits.len());
        words.flat_map(|word| {
            let mut left = self.bits[word];
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(64 * word as u32 + bit)
            })
        })
    }

    /// How many there are among each so many records, a multiple of 64.
    pub(super) fn blocks(&self, records: usize) -> impl Iterator<Item = u32> {
        self.bits.chunks(records / 64).map(|words| words.iter().map(|word| word.count_ones()).sum())
    }
}

/// Records of the split that make a sample, and the number of those that do not.
pub(super) fn eligible(request: &Request, file: &Fsd, triplets: bool) -> Result<(Eligible, usize), ServiceError> {
    let bad = |text: String| Err(ServiceError::Request(text));
    let (data, records) = (request.data.display(), file.records().len());
    if records > u32::MAX as usize {
        return bad(format!("{data} has {records} samples; one service reads 2^32-1 at most"));
    }
    let needs = request.needs.unwrap_or(Needs::Any);
    let rule = SplitRule::new(request.split_seed, request.validation);
    let mut bits: Vec<u64> = Vec::with_capacity(records.div_ceil(64));
    let (mut total, mut games, mut last, mut broken) = (0, 0usize, None, None);
    let mut chunks = 0;
    file.each_chunk(LOOKED_AT, |part| {
        let mut words = vec![0u64; part.len().div_ceil(64)];
        for (number, (word, part)) in words.iter_mut().zip(part.chunks(64)).enumerate() {
            for (bit, record) in part.iter().enumerate() {
                let game = record.game();
                let inside = last.filter(|(known, _)| *known == game).map_or_else(
                    || {
                        games += 1;
                        rule.contains(game, request.split)
                    },
                    |(_, inside)| inside,
                );
                last = Some((game, inside));
                *word |= u64::from(inside) << bit;
                if !record.board().is_sound() {
                    broken = broken.or(Some(LOOKED_AT * chunks + 64 * number + bit));
                }
            }
        }
        total += ones(&words);
        match request.method {
            Method::Eval => {
                keep(part, &mut words, |_, record| Ok(needs.met_by(record)))?;
            }
            Method::Pqr if triplets => {}
            Method::Pqr => keep_with_two_moves(part, (64 * bits.len()) as u32, &mut words, request.threads)?,
        }
        chunks += 1;
        bits.append(&mut words);
        Ok::<(), ServiceError>(())
    })?;
    if let Some(index) = broken {
        return bad(format!(
            "sample {index} of {data} has no board: a square holds what is no piece; build the data anew"
        ));
    }
    if total == 0 {
        let share = request.validation;
        return bad(match request.split {
            Split::All => format!("{data} holds no samples"),
            Split::Train | Split::Validation => format!(
                "no game of {data} falls into the split asked for ({records} samples of {games} games, validation \
                 share {share}); change --validation, or ask for --split all"
            ),
        });
    }
    let usable = Eligible::new(bits);
    if usable.count() == 0 {
        return bad(match request.method {
            Method::Eval => format!("none of {data}'s {total} samples has {}", needs.describe()),
            Method::Pqr => format!("none of {data}'s {total} samples has a move played and another legal one"),
        });
    }
    let unusable = total - usable.count() as usize;
    Ok((usable, unusable))
}

fn ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Clears the bits of records that are not to be kept; `keep` gets a record's place.
fn keep(
    records: &[Record],
    words: &mut [u64],
    keep: impl Fn(usize, &Record) -> Result<bool, ServiceError>,
) -> Result<(), ServiceError> {
    for (number, word) in words.iter_mut().enumerate() {
        let mut left = *word;
        while left != 0 {
            let at = 64 * number + left.trailing_zeros() as usize;
            if !keep(at, &records[at])? {
                *word ^= left & left.wrapping_neg();
            }
            left &= left - 1;
        }
    }
    Ok(())
}

/// Keeps the records with a move and at least one other legal move. `first`: the first one's place in the data.
fn keep_with_two_moves(records: &[Record], first: u32, words: &mut [u64], threads: usize) -> Result<(), ServiceError> {
    use shakmaty::Position;
    let two_moves = |index: u32, record: &Record| {
        let position = record.position().map_err(|source| ServiceError::Record { index, source })?;
        Ok(record.has_move() && position.legal_moves().len() > 1)
    };
    let share = words.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts = (first..).step_by(64 * share).zip(records.chunks(64 * share)).zip(words.chunks_mut(share));
        let parts: Vec<_> = parts
            .map(|((first, records), words)| {
                scope.spawn(move || keep(records, words, |at, record| two_moves(first + at as u32, record)))
            })
            .collect();
        parts.into_iter().try_for_each(|part| part.join().map_err(|panic| worker_panicked(&*panic))?)
    })
}
