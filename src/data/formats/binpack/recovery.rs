//! Reads the sound chains of a chunk: a broken one is left out, and the next one is found behind it.
//!
//! A chain's length follows from its moves alone, so where one is broken, the next is searched byte by byte: a legal
//! position with a legal move whose chain can be read to its end. A chain whose damage gives other legal moves is
//! noticed if it does not end where the next one begins.

use super::bmi2::{BitInstructions, BitTask, dispatch};
use super::decoder::{ChunkDecoder, RecordSink};
use super::error::ChunkError;
use super::stem::{STEM_BYTES, Stem};
use crate::data::Record;

/// The least bytes of a chain: its stem and its number of plies.
const LEAST_BYTES: usize = STEM_BYTES + 2;

/// A chain that was read; offsets are in the chunk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ChainSpan {
    pub at: usize,
    pub end: usize,
    pub samples: usize,
}

/// A part of a chunk that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenChain {
    /// From here to `end`, where the next sound chain begins or the chunk ends.
    pub at: usize,
    pub end: usize,
    pub problem: ChunkError,
}

/// What [`ChunkDecoder::read_sound`] found.
#[derive(Debug, Default)]
pub struct ChainLog {
    /// The chains of the last call.
    pub chains: Vec<ChainSpan>,
    /// The broken ones of all calls.
    pub broken: Vec<BrokenChain>,
}

impl ChunkDecoder {
    /// Appends the samples of whole chains until there are `most` or more, and returns their number: 0 only at the end
    /// of the chunk. Broken chains are left out.
    pub fn read_sound(&mut self, most: usize, out: &mut Vec<Record>, log: &mut ChainLog) -> usize {
        dispatch(ReadSound { decoder: self, most, out, log })
    }

    #[inline(always)]
    fn read_sound_with(
        &mut self,
        bits: impl BitInstructions,
        most: usize,
        out: &mut Vec<Record>,
        log: &mut ChainLog,
    ) -> usize {
        let before = out.len();
        log.chains.clear();
        while self.at < self.bytes.len() {
            // Where no chain follows, the last one is in doubt and must not be given away yet.
            if out.len() - before >= most && self.stem_at(self.at).is_some() {
                break;
            }
            let at = self.at;
            let samples = out.len();
            match self.read_whole_chain(bits, out) {
                Ok(()) => log.chains.push(ChainSpan { at, end: self.at, samples: out.len() - samples }),
                Err(problem) => {
                    out.truncate(samples);
                    self.skip_broken(at, problem, out, log);
                }
            }
        }
        out.len() - before
    }

    /// Goes on after the broken chain at `at`; `out` ends with the chain before it.
    #[cold]
    #[inline(never)]
    fn skip_broken(&mut self, at: usize, problem: ChunkError, out: &mut Vec<Record>, log: &mut ChainLog) {
        let before = log.chains.last().copied().filter(|chain| chain.end == at);
        // If not even a first position stands here, the chain before may have been misread.
        let in_doubt = before.filter(|_| matches!(problem, ChunkError::Stem { .. } | ChunkError::Position { .. }));
        let next = self.find_chain(in_doubt.map_or(at, |chain| chain.at) + LEAST_BYTES);
        self.at = next;
        match in_doubt {
            Some(chain) if next < (at + LEAST_BYTES).min(self.bytes.len()) => {
                out.truncate(out.len() - chain.samples);
                log.chains.pop();
                let problem = ChunkError::Overrun { at: chain.at, next };
                log.broken.push(BrokenChain { at: chain.at, end: next, problem });
            }
            _ => log.broken.push(BrokenChain { at, end: next, problem }),
        }
    }

    /// Offset of the first sound chain from `from` on, or the chunk's length.
    fn find_chain(&mut self, from: usize) -> usize {
        let last = self.bytes.len().saturating_sub(LEAST_BYTES);
        (from..=last).find(|at| self.begins_chain(*at)).unwrap_or(self.bytes.len())
    }

    /// Whether a sound chain begins at an offset. One without a move has nothing but a position, so a further chain or
    /// the end of the chunk must follow.
    fn begins_chain(&mut self, at: usize) -> bool {
        if !has_two_kings(&self.bytes[at..]) {
            return false;
        }
        let Some(stem) = self.stem_at(at) else { return false };
        let end = dispatch(SkipChain { decoder: self, at });
        end.is_some_and(|end| stem.mv.is_some() || end == self.bytes.len() || self.stem_at(end).is_some())
    }

    fn stem_at(&self, at: usize) -> Option<Stem> {
        let stem = self.bytes.get(at..)?.first_chunk()?;
        Stem::read(stem).ok().map(|(stem, _)| stem)
    }
}

/// A quick look at a stem: 2 to 32 pieces, one king of each side.
fn has_two_kings(bytes: &[u8]) -> bool {
    let (Some(occupied), Some(nibbles)) = (bytes.first_chunk::<8>(), bytes.get(8..24)) else { return false };
    let pieces = u64::from_be_bytes(*occupied).count_ones() as usize;
    if !(2..=32).contains(&pieces) {
        return false;
    }
    let mut kings = [0, 0];
    for nibble in nibbles.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(pieces) {
        kings[0] += u32::from(nibble == 10);
        kings[1] += u32::from(matches!(nibble, 11 | 15));
    }
    kings == [1, 1]
}

/// A call of [`ChunkDecoder::read_sound`].
struct ReadSound<'a> {
    decoder: &'a mut ChunkDecoder,
    most: usize,
    out: &'a mut Vec<Record>,
    log: &'a mut ChainLog,
}

impl BitTask for ReadSound<'_> {
    type Output = usize;
    const PACKS_CODES: bool = true;

    #[inline(always)]
    fn run(self, bits: impl BitInstructions) -> usize {
        self.decoder.read_sound_with(bits, self.most, self.out, self.log)
    }
}

/// Finds the end of the chain at an offset, if it can be read.
struct SkipChain<'a> {
    decoder: &'a mut ChunkDecoder,
    at: usize,
}

impl BitTask for SkipChain<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self, bits: impl BitInstructions) -> Option<usize> {
        let SkipChain { decoder, at } = self;
        let before = std::mem::replace(&mut decoder.at, at);
        let end = decoder.read_whole_chain(bits, &mut Uncounted).ok().map(|()| decoder.at);
        decoder.at = before;
        end
    }
}

/// Drops the samples.
struct Uncounted;

impl RecordSink for Uncounted {
    fn count(&self) -> usize {
        0
    }

    fn push(&mut self, _: Record) {}

    fn pop(&mut self) {}
}

#[cfg(test)]
mod tests;
