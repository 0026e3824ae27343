//! Reading: chunks one after the other, and the samples of a chunk.

use std::io::{self, Read};

use super::bits::{BitReader, unfold};
use super::cpu::{Cpu, Work, dispatch};
use super::error::{ChunkError, TextError};
use super::moves;
use super::position::Position;
use super::stem::{NO_SCORE, STEM_BYTES, Stem};
use super::{HEADER_BYTES, MAGIC, MAX_CHUNK_BYTES};
use crate::data::{GameResult, Record};

/// Where a chunk begins in the file, and its bytes behind the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// What is wrong with the chunk that begins there.
pub type Broken = (u64, ChunkError);

/// The chunks of a file, in order.
pub struct Chunks<R> {
    reader: R,
    offset: u64,
    /// Size of the chunk whose header was read.
    next: Option<u64>,
}

impl<R: Read> Chunks<R> {
    pub const fn new(reader: R) -> Chunks<R> {
        Chunks { reader, offset: 0, next: None }
    }

    /// Size of the next chunk, as its header has it; none at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or no header stands there.
    pub fn peek(&mut self) -> io::Result<Result<Option<u64>, Broken>> {
        if self.next.is_none() {
            let mut header = Vec::with_capacity(HEADER_BYTES);
            self.reader.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut header)?;
            if header.is_empty() {
                return Ok(Ok(None));
            }
            match size_in(&header) {
                Ok(size) => self.next = Some(size),
                Err(problem) => return Ok(Err((self.offset, problem))),
            }
        }
        Ok(Ok(self.next))
    }

    /// The next chunk; none at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or breaks off.
    pub fn next_chunk(&mut self) -> io::Result<Result<Option<Chunk>, Broken>> {
        let size = match self.peek()? {
            Ok(Some(size)) => size,
            Ok(None) => return Ok(Ok(None)),
            Err(broken) => return Ok(Err(broken)),
        };
        self.next = None;
        // What a header claims is not allocated before it is there.
        let mut bytes = Vec::new();
        self.reader.by_ref().take(size).read_to_end(&mut bytes)?;
        let offset = self.offset;
        self.offset += HEADER_BYTES as u64 + size;
        let left = bytes.len() as u64;
        Ok(if left == size {
            Ok(Some(Chunk { offset, bytes }))
        } else {
            Err((offset, ChunkError::CutOff { size, left }))
        })
    }
}

pub fn size_in(header: &[u8]) -> Result<u64, ChunkError> {
    let magic = &header[..header.len().min(MAGIC.len())];
    if magic != &MAGIC[..magic.len()] {
        return Err(ChunkError::Magic { found: magic.escape_ascii().to_string() });
    }
    let Some(size) = header.last_chunk::<4>().filter(|_| header.len() == HEADER_BYTES) else {
        return Err(ChunkError::Header { bytes: header.len() });
    };
    let size = u64::from(u32::from_le_bytes(*size));
    if size > MAX_CHUNK_BYTES {
        return Err(ChunkError::TooLarge { size, most: MAX_CHUNK_BYTES });
    }
    Ok(size)
}

/// Reads the samples of a chunk, as many at a time as are asked for.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Whether the bytes were decoded before, so that every position and move is legal.
    known: bool,
    /// The next sample's game, and what is added for the one after it.
    game: u32,
    step: u32,
    /// Where the next chain begins.
    at: usize,
    chain: Option<Chain>,
}

/// A chain behind its stem.
#[derive(Debug)]
struct Chain {
    /// Where its stem begins.
    start: usize,
    plies: u16,
    left: u16,
    text: BitReader,
    position: Position,
    score: i16,
    result: GameResult,
}

impl Decoder {
    /// Of a chunk's bytes behind its header.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Decoder {
        Decoder { bytes, known: false, game: 0, step: 0, at: 0, chain: None }
    }

    /// Of bytes that were decoded before: what was found legal then is not looked at again. Bytes that have changed since
    /// give errors or samples of no use. Instead of their game, samples have their number, from `first` on.
    #[must_use]
    pub const fn known(bytes: Vec<u8>, first: u32) -> Decoder {
        Decoder { bytes, known: true, game: first, step: 1, at: 0, chain: None }
    }

    /// Appends the next samples, `most` at most; fewer at the chunk's end, and none behind it. All games are 0 where they are
    /// not counted.
    ///
    /// # Errors
    /// When the bytes are no chains of legal positions and moves.
    pub fn read(&mut self, most: usize, out: &mut Vec<Record>) -> Result<usize, ChunkError> {
        dispatch(Reading { decoder: self, most, out })
    }

    #[inline(always)]
    fn read_by(&mut self, cpu: impl Cpu, most: usize, out: &mut Vec<Record>) -> Result<usize, ChunkError> {
        let before = out.len();
        while out.len() - before < most {
            if let Some(chain) = &mut self.chain {
                let room = most - (out.len() - before);
                let numbers = (self.game, self.step);
                let read = match self.known {
                    false => chain.read::<true>(cpu, &self.bytes, numbers, room, out)?,
                    true => chain.read::<false>(cpu, &self.bytes, numbers, room, out)?,
                };
                self.game = self.game.wrapping_add(self.step.wrapping_mul(read));
                if chain.left == 0 {
                    self.at = chain.text.byte();
                    self.chain = None;
                }
            } else if self.at < self.bytes.len() {
                out.push(self.begin(cpu)?);
                self.game = self.game.wrapping_add(self.step);
            } else {
                break;
            }
        }
        Ok(out.len() - before)
    }

    /// Appends the samples of the next chain, all of them, and gives the byte its stem begins at; none at the chunk's end.
    ///
    /// # Errors
    /// As [`Decoder::read`].
    pub fn read_chain(&mut self, out: &mut Vec<Record>) -> Result<Option<usize>, ChunkError> {
        let start = self.at;
        if self.read(1, out)? == 0 {
            return Ok(None);
        }
        let plies = self.chain.as_ref().map_or(0, |chain| usize::from(chain.left));
        self.read(plies, out)?;
        Ok(Some(start))
    }

    /// Where the next chain begins, once the one before is read.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The chunk's bytes, for the next one.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Reads a stem.
    #[inline(always)]
    fn begin(&mut self, cpu: impl Cpu) -> Result<Record, ChunkError> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let (Some(stem), Some(plies)) = (rest.first_chunk(), rest.get(STEM_BYTES..STEM_BYTES + 2)) else {
            return Err(ChunkError::Stem { at: start, left: rest.len() });
        };
        let plies = u16::from_be_bytes([plies[0], plies[1]]);
        let broken = |problem| ChunkError::Position { at: start, problem };
        let stem = if self.known { Stem::known(stem) } else { Stem::read(stem) };
        let (stem, mut position) = stem.map_err(broken)?;
        let record = Record::from_parts(position.situation(cpu), stem.mv, score(stem.score), Some(stem.result));
        let record = record.with_game(self.game);
        self.at += STEM_BYTES + 2;
        if plies > 0 {
            let broken = |problem| ChunkError::Text { at: start, ply: 1, problem };
            if u32::from(stem.ply.0) + u32::from(plies) > u32::from(u16::MAX) {
                return Err(broken(TextError::Ply));
            }
            let mv = stem.mv.ok_or_else(|| broken(TextError::NoMove))?;
            if self.known {
                position.follow(mv);
            } else if !position.play(mv) {
                return Err(broken(TextError::Illegal));
            }
            let text = BitReader::new(self.at);
            let (score, result) = (stem.score, stem.result);
            self.chain = Some(Chain { start, plies, left: plies, text, position, score, result });
        }
        Ok(record)
    }
}

/// A call of [`Decoder::read`].
struct Reading<'a> {
    decoder: &'a mut Decoder,
    most: usize,
    out: &'a mut Vec<Record>,
}

impl Work for Reading<'_> {
    type Output = Result<usize, ChunkError>;

    #[inline(always)]
    fn run(self, cpu: impl Cpu) -> Self::Output {
        self.decoder.read_by(cpu, self.most, self.out)
    }
}

impl Chain {
    /// `game`: the first sample's, and what is added for the one after it. The number of samples read.
    #[inline(always)]
    fn read<const CHECKED: bool>(
        &mut self,
        cpu: impl Cpu,
        bytes: &[u8],
        (mut game, step): (u32, u32),
        most: usize,
        out: &mut Vec<Record>,
    ) -> Result<u32, ChunkError> {
        let count = most.min(usize::from(self.left));
        out.reserve(count);
        for _ in 0..count {
            match self.next::<CHECKED>(cpu, bytes) {
                Ok(record) => out.push(record.with_game(game)),
                Err(problem) => {
                    return Err(ChunkError::Text { at: self.start, ply: self.plies - self.left + 1, problem });
                }
            }
            game = game.wrapping_add(step);
            self.left -= 1;
        }
        Ok(count as u32)
    }

    #[inline(always)]
    fn next<const CHECKED: bool>(&mut self, cpu: impl Cpu, bytes: &[u8]) -> Result<Record, TextError> {
        let mut window = self.text.window(bytes);
        let mv = moves::read(&self.position, &mut window, cpu)?;
        let change = window.variable().ok_or(TextError::Score)?;
        if !self.text.advance(&window, bytes) {
            return Err(TextError::End);
        }
        self.score = self.score.wrapping_neg().wrapping_add(unfold(change));
        self.result = self.result.reversed();
        let record = Record::from_parts(self.position.situation(cpu), Some(mv), score(self.score), Some(self.result));
        if CHECKED {
            return if self.position.play(mv) { Ok(record) } else { Err(TextError::Illegal) };
        }
        self.position.follow(mv);
        Ok(record)
    }
}

/// As records have it.
fn score(score: i16) -> Option<i16> {
    (score != NO_SCORE && score != i16::MIN).then_some(score)
}
