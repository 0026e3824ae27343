//! Encodes samples as chains, and chains as chunks.

use rayon::prelude::*;

use super::bits::{BitWriter, signed_to_unsigned};
use super::bmi2::Portable;
use super::move_code::encode_move;
use super::position::Position;
use super::stem::{self, NO_SCORE};
use super::{HEADER_BYTES, MAGIC};
use crate::data::{GameResult, Record, RecordError};

/// Size at which a chunk is complete.
const CHUNK_BYTES: usize = 1 << 20;
/// Longest movetext of a chain, some 4,000 plies: as much as other writers of the format allow.
pub const MAX_MOVETEXT_BYTES: usize = 10 << 10;

/// The most bytes of a ply.
const PLY_BYTES: usize = 4;
/// Records encoded at once. A constant, so that the bytes do not depend on the number of threads.
const BATCH_RECORDS: usize = 1 << 17;
/// Records that one task encodes.
const TASK_RECORDS: usize = 1 << 13;

/// A record's score in a binpack.
fn score(record: &Record) -> i16 {
    match record.score() {
        None => NO_SCORE,
        // This score means none.
        Some(NO_SCORE) => NO_SCORE - 1,
        Some(score) => score,
    }
}

/// A record's result in a binpack, a draw if it is unknown: the caller decides whether such samples are written.
fn result(record: &Record) -> GameResult {
    record.result().unwrap_or(GameResult::Draw)
}

/// Appends the longest chain that begins with the first of `records`; returns the number of records in it.
fn append_chain(records: &[Record], out: &mut Vec<u8>) -> Result<usize, RecordError> {
    let Some((first, rest)) = records.split_first() else { return Ok(0) };
    let sample = first.unpack()?;
    out.extend(stem::write(&sample, first, score(first), result(first)));
    let mut position = Position::new(&sample.position, sample.ply)?;
    let mut movetext = BitWriter::default();
    let mut last = first;
    let mut plies = 0u16;
    if first.packed_move().is_some_and(|mv| position.play(mv)) {
        for record in rest {
            if plies == u16::MAX || movetext.len() + PLY_BYTES > MAX_MOVETEXT_BYTES || !is_next(&position, last, record)
            {
                break;
            }
            let Some(mv) = record.packed_move() else { break };
            let Some(code) = encode_move(&position, mv).filter(|_| position.play(mv)) else { break };
            movetext.put(code.value, code.bits);
            movetext.write_vle(signed_to_unsigned(score(record).wrapping_sub(score(last).wrapping_neg())));
            plies += 1;
            last = record;
        }
    }
    out.extend(plies.to_be_bytes());
    movetext.finish_into(out);
    Ok(1 + usize::from(plies))
}

/// Whether `record` is the sample after `last`, whose move leads to `position`.
fn is_next(position: &Position, last: &Record, record: &Record) -> bool {
    record.has_move()
        && result(record) == result(last).reversed()
        && Record::from_fields(position.fields(Portable), 0, record.packed_move(), record.score(), record.result())
            == record.with_game(0)
}

/// Whether `record` is the sample after `last`.
fn follows(last: &Record, record: &Record) -> bool {
    if last.ply().0.checked_add(1) != Some(record.ply().0) || last.turn() == record.turn() {
        return false;
    }
    let position = last.position().ok().and_then(|position| Position::new(&position, last.ply()).ok());
    let (Some(mut position), Some(mv)) = (position, last.packed_move()) else { return false };
    encode_move(&position, mv).is_some() && position.play(mv) && is_next(&position, last, record)
}

/// Encodes samples into chunks on all cores; the bytes depend on the samples alone.
#[derive(Debug, Default)]
pub struct ChunkEncoder {
    /// Samples still to be encoded; they begin with the beginning of a chain.
    pending: Vec<Record>,
    /// Number of the first of them.
    first: u64,
    /// The incomplete chunk: room for its header, then chains.
    chunk: Vec<u8>,
}

/// A sample that cannot be encoded, and its number in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSample {
    pub sample: u64,
    pub problem: RecordError,
}

impl ChunkEncoder {
    /// Appends complete chunks to `out`. Samples without a result count as draws; no ply may exceed
    /// [`MAX_PLY`](super::MAX_PLY).
    ///
    /// # Errors
    /// When a sample's position or move is illegal: the first such sample.
    pub fn push(&mut self, mut records: &[Record], out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        while !records.is_empty() {
            let (fitting, rest) = records.split_at((BATCH_RECORDS - self.pending.len()).min(records.len()));
            self.pending.extend_from_slice(fitting);
            records = rest;
            if self.pending.len() == BATCH_RECORDS {
                self.encode(false, out)?;
            }
        }
        Ok(())
    }

    /// Appends the last chunks.
    ///
    /// # Errors
    /// As [`ChunkEncoder::push`].
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        self.encode(true, out)?;
        self.close_chunk(out);
        Ok(())
    }

    fn encode(&mut self, at_end: bool, out: &mut Vec<u8>) -> Result<(), InvalidSample> {
        let records = self.pending.as_slice();
        let groups: Vec<Result<ChainGroup, (usize, RecordError)>> = (0..records.len().div_ceil(TASK_RECORDS))
            .into_par_iter()
            .map(|group| ChainGroup::encode(records, group * TASK_RECORDS, at_end))
            .collect();
        let mut open = None;
        for group in groups {
            let group = group.map_err(|(at, problem)| InvalidSample { sample: self.first + at as u64, problem })?;
            if self.chunk.is_empty() {
                self.chunk.resize(HEADER_BYTES, 0);
            }
            self.chunk.extend(group.chains);
            if self.chunk.len() >= CHUNK_BYTES {
                self.close_chunk(out);
            }
            open = open.or(group.open);
        }
        // A chain that reaches the end may continue with the next samples. Its movetext is bounded, so they are few.
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

/// The chains that begin within one task's records.
struct ChainGroup {
    chains: Vec<u8>,
    /// The beginning of the chain that reaches the end of all pending samples and is therefore not encoded yet.
    open: Option<usize>,
}

impl ChainGroup {
    /// Encodes the chains from record `begin` on. A line of play belongs to the task in which it begins, even if it is
    /// longer than a chain.
    fn encode(records: &[Record], begin: usize, at_end: bool) -> Result<ChainGroup, (usize, RecordError)> {
        let end = (begin + TASK_RECORDS).min(records.len());
        let continues = |at: usize| at > 0 && at < records.len() && follows(&records[at - 1], &records[at]);
        let mut group = ChainGroup { chains: Vec::new(), open: None };
        let Some(mut at) = (begin..end).find(|&at| !continues(at)) else { return Ok(group) };
        while at < end || continues(at) {
            let before = group.chains.len();
            let next = at + append_chain(&records[at..], &mut group.chains).map_err(|problem| (at, problem))?;
            if next == records.len() && !at_end {
                group.chains.truncate(before);
                group.open = Some(at);
                break;
            }
            at = next;
        }
        Ok(group)
    }
}
