//! Decodes the samples of a chunk.

use super::bits::{BitReader, unsigned_to_signed};
use super::bmi2::{BitInstructions, BitTask, dispatch};
use super::error::{ChunkError, MovetextError};
use super::move_code;
use super::position::Position;
use super::stem::{NO_SCORE, STEM_BYTES, Stem};
use crate::data::{GameResult, Record};

/// Takes the samples that a [`ChunkDecoder`] reads.
pub trait RecordSink {
    /// The number of samples taken.
    fn count(&self) -> usize;
    fn push(&mut self, record: Record);
    /// Takes the last one back.
    fn pop(&mut self);
    fn expect(&mut self, _more: usize) {}
}

impl RecordSink for Vec<Record> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn push(&mut self, record: Record) {
        self.push(record);
    }

    fn pop(&mut self) {
        self.pop();
    }

    fn expect(&mut self, more: usize) {
        self.reserve(more);
    }
}

/// Decodes the samples of a chunk in portions.
#[derive(Debug)]
pub struct ChunkDecoder {
    pub(super) bytes: Vec<u8>,
    /// Whether every position and move is known to be legal.
    unchecked: bool,
    /// The next sample's `game`, and the increment from sample to sample.
    game: u32,
    step: u32,
    /// Offset of the next chain.
    pub(super) at: usize,
    chain: Option<Chain>,
}

/// The plies of a chain after its stem.
#[derive(Debug)]
struct Chain {
    /// Offset of its stem.
    start: usize,
    plies: u16,
    left: u16,
    movetext: BitReader,
    position: Position,
    score: i16,
    result: GameResult,
}

impl ChunkDecoder {
    /// Decodes a chunk's bytes after the header; all games are 0.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> ChunkDecoder {
        ChunkDecoder { bytes, unchecked: false, game: 0, step: 0, at: 0, chain: None }
    }

    /// Decodes bytes that were decoded before, without checking legality again. Bytes that changed since give errors or
    /// meaningless samples. Instead of a game, each record holds its sample's number, counted from `first`.
    #[must_use]
    pub const fn unchecked(bytes: Vec<u8>, first: u32) -> ChunkDecoder {
        ChunkDecoder { bytes, unchecked: true, game: first, step: 1, at: 0, chain: None }
    }

    /// Appends up to `most` samples and returns their number, which is smaller only at the end of the chunk.
    ///
    /// # Errors
    /// When the bytes are not chains of legal positions and moves.
    pub fn read(&mut self, most: usize, out: &mut impl RecordSink) -> Result<usize, ChunkError> {
        dispatch(DecodeSamples { decoder: self, most, out })
    }

    #[inline(always)]
    fn read_with(
        &mut self,
        bits: impl BitInstructions,
        most: usize,
        out: &mut impl RecordSink,
    ) -> Result<usize, ChunkError> {
        let before = out.count();
        while out.count() - before < most {
            if let Some(chain) = &mut self.chain {
                let room = most - (out.count() - before);
                let numbers = (self.game, self.step);
                let read = if self.unchecked {
                    chain.read::<false>(bits, &self.bytes, numbers, room, out)?
                } else {
                    chain.read::<true>(bits, &self.bytes, numbers, room, out)?
                };
                self.game = self.game.wrapping_add(self.step.wrapping_mul(read));
                if chain.left == 0 {
                    self.at = chain.movetext.end_byte();
                    self.chain = None;
                }
            } else if self.at < self.bytes.len() {
                out.push(self.begin_chain(bits)?);
                self.game = self.game.wrapping_add(self.step);
            } else {
                break;
            }
        }
        Ok(out.count() - before)
    }

    /// Appends all samples of the next chain of a chunk that is read chain by chain. After an error `at` is where the
    /// chain begins, and some of its samples are in `out`.
    #[inline(always)]
    pub(super) fn read_whole_chain(
        &mut self,
        bits: impl BitInstructions,
        out: &mut impl RecordSink,
    ) -> Result<(), ChunkError> {
        let start = self.at;
        let numbers = (self.game, self.step);
        let read = self.begin_chain(bits).and_then(|first| {
            out.push(first);
            let Some(mut chain) = self.chain.take() else { return Ok(self.at) };
            chain.read::<true>(bits, &self.bytes, numbers, usize::MAX, out)?;
            Ok(chain.movetext.end_byte())
        });
        self.at = *read.as_ref().unwrap_or(&start);
        read.map(|_| ())
    }

    /// The chunk's allocation, for reuse.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Decodes the stem of the next chain.
    #[inline(always)]
    fn begin_chain(&mut self, bits: impl BitInstructions) -> Result<Record, ChunkError> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let (Some(stem), Some(plies)) = (rest.first_chunk(), rest.get(STEM_BYTES..STEM_BYTES + 2)) else {
            return Err(ChunkError::Stem { at: start, left: rest.len() });
        };
        let plies = u16::from_be_bytes([plies[0], plies[1]]);
        let broken = |problem| ChunkError::Position { at: start, problem };
        let stem = if self.unchecked { Stem::read_unchecked(stem) } else { Stem::read(stem) };
        let (stem, mut position) = stem.map_err(broken)?;
        let score = record_score(stem.score);
        let result = Some(stem.result);
        let record = Record::from_fields(position.fields(bits), self.game, stem.mv, score, result);
        self.at += STEM_BYTES + 2;
        if plies > 0 {
            let broken = |problem| ChunkError::Movetext { at: start, ply: 1, problem };
            if u32::from(stem.ply.0) + u32::from(plies) > u32::from(u16::MAX) {
                return Err(broken(MovetextError::Ply));
            }
            let mv = stem.mv.ok_or_else(|| broken(MovetextError::NoMove))?;
            if self.unchecked {
                position.play_standard::<false>(mv);
            } else if !position.play_standard::<true>(mv) {
                return Err(broken(MovetextError::Illegal));
            }
            let movetext = BitReader::new(self.at);
            let score = stem.score;
            let result = stem.result;
            self.chain = Some(Chain { start, plies, left: plies, movetext, position, score, result });
        }
        Ok(record)
    }
}

/// A call of [`ChunkDecoder::read`].
struct DecodeSamples<'a, S> {
    decoder: &'a mut ChunkDecoder,
    most: usize,
    out: &'a mut S,
}

impl<S: RecordSink> BitTask for DecodeSamples<'_, S> {
    type Output = Result<usize, ChunkError>;
    const PACKS_CODES: bool = true;

    #[inline(always)]
    fn run(self, bits: impl BitInstructions) -> Self::Output {
        self.decoder.read_with(bits, self.most, self.out)
    }
}

impl Chain {
    /// Appends up to `most` samples and returns their number. `game` and `step` are as in [`ChunkDecoder`].
    #[inline(always)]
    fn read<const CHECKED: bool>(
        &mut self,
        bits: impl BitInstructions,
        bytes: &[u8],
        (mut game, step): (u32, u32),
        most: usize,
        out: &mut impl RecordSink,
    ) -> Result<u32, ChunkError> {
        let count = most.min(usize::from(self.left));
        out.expect(count);
        for _ in 0..count {
            if let Err(problem) = self.next::<CHECKED>(bits, bytes, game, out) {
                return Err(ChunkError::Movetext { at: self.start, ply: self.plies - self.left + 1, problem });
            }
            game = game.wrapping_add(step);
            self.left -= 1;
        }
        Ok(count as u32)
    }

    /// Appends the next ply's sample, if it has no error.
    #[inline(always)]
    fn next<const CHECKED: bool>(
        &mut self,
        bits: impl BitInstructions,
        bytes: &[u8],
        game: u32,
        out: &mut impl RecordSink,
    ) -> Result<(), MovetextError> {
        let mut window = self.movetext.window(bytes);
        let mv = move_code::decode_move(&self.position, &mut window, bits)?;
        let change = window.read_vle().ok_or(MovetextError::Score)?;
        if !self.movetext.advance(&window, bytes) {
            return Err(MovetextError::End);
        }
        self.score = self.score.wrapping_neg().wrapping_add(unsigned_to_signed(change));
        self.result = self.result.reversed();
        let score = record_score(self.score);
        let result = Some(self.result);
        out.push(Record::from_fields(self.position.fields(bits), game, Some(mv), score, result));
        if !self.position.play_standard::<CHECKED>(mv) && CHECKED {
            out.pop();
            return Err(MovetextError::Illegal);
        }
        Ok(())
    }
}

/// The score as records store it.
fn record_score(score: i16) -> Option<i16> {
    (score != NO_SCORE && score != i16::MIN).then_some(score)
}
