//! Writing: samples to chains, chains to chunks.

use rayon::prelude::*;

use super::bits::{BitWriter, fold};
use super::cpu::Portable;
use super::moves::numbers;
use super::position::Position;
use super::stem::{self, NO_SCORE};
use super::{HEADER_BYTES, MAGIC};
use crate::data::{GameResult, Record, RecordError};

/// A chunk is closed when it has grown to this.
const CHUNK_BYTES: usize = 1 << 20;
/// Longest text of a chain: what other writers of the format reserve for one, some 4,000 plies.
pub const MAX_TEXT_BYTES: usize = 10 << 10;

/// Most bytes a ply takes.
const PLY_BYTES: usize = 4;
/// Records encoded at once; depends on nothing, so that the bytes do not either.
const BATCH: usize = 1 << 17;
/// Records one task encodes.
const GROUP: usize = 1 << 13;

/// What a record means in a binpack: its score and result, known or not.
fn score(record: &Record) -> i16 {
    match record.score() {
        None => NO_SCORE,
        // Would be taken for none.
        Some(NO_SCORE) => NO_SCORE - 1,
        Some(score) => score,
    }
}

/// A result that is not known counts as a draw: who writes decides whether such samples come here.
fn result(record: &Record) -> GameResult {
    record.result().unwrap_or(GameResult::Draw)
}

/// Writes the chain that begins with the first of `records`, as long as it goes; the number of records it takes.
fn chain(records: &[Record], out: &mut Vec<u8>) -> Result<usize, RecordError> {
    let Some((first, rest)) = records.split_first() else { return Ok(0) };
    let sample = first.unpack()?;
    out.extend(stem::write(&sample, first, score(first), result(first)));
    let mut position = Position::new(&sample.position, sample.ply)?;
    let mut text = BitWriter::default();
    let mut last = first;
    let mut plies = 0u16;
    if first.packed_move().is_some_and(|mv| position.play(mv)) {
        for record in rest {
            if plies == u16::MAX || text.len() + PLY_BYTES > MAX_TEXT_BYTES || !is_next(&position, last, record) {
                break;
            }
            let Some(mv) = record.packed_move() else { break };
            let Some(numbers) = numbers(&position, mv).filter(|_| position.play(mv)) else { break };
            text.put(numbers.value, numbers.bits);
            text.put_variable(fold(score(record).wrapping_sub(score(last).wrapping_neg())));
            plies += 1;
            last = record;
        }
    }
    out.extend(plies.to_be_bytes());
    text.finish_into(out);
    Ok(1 + usize::from(plies))
}

/// Whether `record` is what follows `last`, after whose move `position` stands.
fn is_next(position: &Position, last: &Record, record: &Record) -> bool {
    record.has_move()
        && result(record) == result(last).reversed()
        && Record::from_parts(position.situation(Portable), record.packed_move(), record.score(), record.result())
            == record.with_game(0)
}

/// Whether `record` goes on where `last` ends.
fn follows(last: &Record, record: &Record) -> bool {
    if last.ply().0.checked_add(1) != Some(record.ply().0) || last.turn() == record.turn() {
        return false;
    }
    let position = last.position().ok().and_then(|position| Position::new(&position, last.ply()).ok());
    let (Some(mut position), Some(mv)) = (position, last.packed_move()) else { return false };
    numbers(&position, mv).is_some() && position.play(mv) && is_next(&position, last, record)
}

/// Encodes samples into chunks, all cores at work; the bytes depend on the samples alone.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Samples still to be encoded, from the beginning of a chain on.
    pending: Vec<Record>,
    /// Number of the first of them.
    first: u64,
    /// Chains of the chunk that is still growing, behind room for its header.
    chunk: Vec<u8>,
}

/// A record that cannot be encoded, and its number in the order they came.
pub type Unfit = (u64, RecordError);

impl Encoder {
    /// Appends finished chunks to `out`. Samples without a result are taken for draws; plies must not exceed
    /// [`MAX_PLY`](super::MAX_PLY).
    ///
    /// # Errors
    /// The first record that is no legal position and move.
    pub fn push(&mut self, mut records: &[Record], out: &mut Vec<u8>) -> Result<(), Unfit> {
        while !records.is_empty() {
            let (now, later) = records.split_at((BATCH - self.pending.len()).min(records.len()));
            self.pending.extend_from_slice(now);
            records = later;
            if self.pending.len() == BATCH {
                self.encode(false, out)?;
            }
        }
        Ok(())
    }

    /// Appends the last chunks.
    ///
    /// # Errors
    /// As [`Encoder::push`].
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), Unfit> {
        self.encode(true, out)?;
        self.close_chunk(out);
        Ok(())
    }

    fn encode(&mut self, last: bool, out: &mut Vec<u8>) -> Result<(), Unfit> {
        let records = self.pending.as_slice();
        let groups: Vec<Result<Group, (usize, RecordError)>> = (0..records.len().div_ceil(GROUP))
            .into_par_iter()
            .map(|group| Group::encode(records, group * GROUP, last))
            .collect();
        let mut open = None;
        for group in groups {
            let group = group.map_err(|(at, problem)| (self.first + at as u64, problem))?;
            if self.chunk.is_empty() {
                self.chunk.resize(HEADER_BYTES, 0);
            }
            self.chunk.extend(group.chains);
            if self.chunk.len() >= CHUNK_BYTES {
                self.close_chunk(out);
            }
            open = open.or(group.open);
        }
        // A chain that reaches the end may go on with the next samples. Its text is bounded, so it is a small part.
        let done = open.unwrap_or(self.pending.len());
        self.first += done as u64;
        self.pending.drain(..done);
        Ok(())
    }

    fn close_chunk(&mut self, out: &mut Vec<u8>) {
        if self.chunk.len() > HEADER_BYTES {
            let size = (self.chunk.len() - HEADER_BYTES) as u32;
            self.chunk[..4].copy_from_slice(MAGIC);
            self.chunk[4..HEADER_BYTES].copy_from_slice(&size.to_le_bytes());
            out.append(&mut self.chunk);
        }
    }
}

/// The chains that begin in a part of the pending samples.
struct Group {
    chains: Vec<u8>,
    /// Where the chain begins that reaches the end of all pending samples and so is not among them.
    open: Option<usize>,
}

impl Group {
    /// A sample that goes on where the one before it ends belongs to the group in which that line begins, even where
    /// its chain must be cut.
    fn encode(records: &[Record], begin: usize, last: bool) -> Result<Group, (usize, RecordError)> {
        let end = (begin + GROUP).min(records.len());
        let goes_on = |at: usize| at > 0 && at < records.len() && follows(&records[at - 1], &records[at]);
        let mut group = Group { chains: Vec::new(), open: None };
        let Some(mut at) = (begin..end).find(|&at| !goes_on(at)) else { return Ok(group) };
        while at < end || goes_on(at) {
            let before = group.chains.len();
            let next = at + chain(&records[at..], &mut group.chains).map_err(|problem| (at, problem))?;
            if next == records.len() && !last {
                group.chains.truncate(before);
                group.open = Some(at);
                break;
            }
            at = next;
        }
        Ok(group)
    }
}
