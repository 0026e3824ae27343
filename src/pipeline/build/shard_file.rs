//! The file of a shard: the filtered samples of some of a build's inputs, before any decision that needs the inputs
//! before them (game numbers, and all draws that depend on these).
//!
//! The file begins with 8 bytes ([`SHARD_MAGIC`]); frames follow. A frame is its kind (u32), the length of its payload
//! (u64), the payload, and the crc32 of all these, all numbers little-endian. First comes the [`ShardHeader`] as JSON;
//! then, for each input, frames of games and one with its [`SourceFile`] as JSON; an empty frame ends the file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use bytemuck::Zeroable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::drop_reason::BuildCounts;
use super::filter::FilteredSamples;
use super::options::BuildOptions;
use super::shard_error::ShardError;
use crate::data::formats::{FileUnit, Format, SHARD_MAGIC};
use crate::data::{DataError, Record, ScoreUnit};
use crate::json;
use crate::output::{OutputFile, SealedFile};
use crate::pipeline::manifest::SourceFile;
use crate::units::Shard;

/// Everything that the samples of a shard depend on. Shards of one build differ in `shard` only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardHeader {
    pub version: u32,
    pub fsbench: String,
    pub shard: Shard,
    pub options: BuildOptions,
    /// An engine scores the samples after the merge.
    pub scores_later: bool,
    /// Unit of the samples' scores.
    pub score_unit: ScoreUnit,
    /// All inputs of the build, also of the other shards.
    pub inputs: Vec<ShardInput>,
}

/// An input of the build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardInput {
    pub path: String,
    /// As stored.
    pub bytes: u64,
    pub weight: f64,
    pub format: Format,
    pub unit: FileUnit,
}

impl ShardHeader {
    pub const VERSION: u32 = 1;
}

#[derive(Copy, Clone, PartialEq, Eq)]
#[repr(u32)]
enum FrameKind {
    Header = 1,
    Games = 2,
    Source = 3,
    End = 4,
}

/// Payload of a frame of games, but for its last game.
const FRAME_BYTES: usize = 1 << 20;

/// Writes a shard, which appears only once it is complete.
pub struct ShardWriter {
    file: OutputFile,
    games: Vec<u8>,
    pub samples: u64,
}

impl ShardWriter {
    pub fn create(path: &Path, header: &ShardHeader) -> Result<ShardWriter, DataError> {
        let mut file = OutputFile::create(path)?;
        file.put(SHARD_MAGIC)?;
        let mut writer = ShardWriter { file, games: Vec::new(), samples: 0 };
        writer.frame(FrameKind::Header, json(header).as_bytes())?;
        Ok(writer)
    }

    /// Adds samples of the present input's game `number`, as the sampler would receive them.
    pub fn add(&mut self, number: u64, filtered: &FilteredSamples) -> Result<(), DataError> {
        self.samples += filtered.records.len() as u64;
        self.games.extend(number.to_le_bytes());
        filtered.counts.write(&mut self.games);
        self.games.extend((filtered.records.len() as u64).to_le_bytes());
        self.games.extend_from_slice(bytemuck::cast_slice(&filtered.records));
        if self.games.len() >= FRAME_BYTES { self.end_games() } else { Ok(()) }
    }

    pub fn end_source(&mut self, source: &SourceFile) -> Result<(), DataError> {
        self.end_games()?;
        self.frame(FrameKind::Source, json(source).as_bytes())
    }

    pub fn seal(mut self) -> Result<SealedFile, DataError> {
        self.frame(FrameKind::End, &[])?;
        Ok(self.file.seal()?)
    }

    fn end_games(&mut self) -> Result<(), DataError> {
        let mut games = std::mem::take(&mut self.games);
        if !games.is_empty() {
            self.frame(FrameKind::Games, &games)?;
        }
        games.clear();
        self.games = games;
        Ok(())
    }

    fn frame(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), DataError> {
        let head = frame_head(kind as u32, payload.len() as u64);
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head);
        sum.update(payload);
        self.file.put(&head)?;
        self.file.put(payload)?;
        Ok(self.file.put(&sum.finalize().to_le_bytes())?)
    }
}

fn json(value: &impl Serialize) -> String {
    json::to_text(value).expect("numbers, strings and maps with string or number keys are always JSON")
}

fn frame_head(kind: u32, length: u64) -> [u8; 12] {
    let mut head = [0; 12];
    head[..4].copy_from_slice(&kind.to_le_bytes());
    head[4..].copy_from_slice(&length.to_le_bytes());
    head
}

/// Reads a shard from its beginning to its end.
pub struct ShardReader {
    frames: Frames,
    pub header: ShardHeader,
}

impl ShardReader {
    /// Opens a shard and reads its header.
    pub fn open(path: &Path) -> Result<ShardReader, ShardError> {
        let mut file = BufReader::new(File::open(path).map_err(DataError::read(path))?);
        let mut magic = [0; SHARD_MAGIC.len()];
        let is_shard = file.read_exact(&mut magic).is_ok() && magic == *SHARD_MAGIC;
        if !is_shard {
            return Err(ShardError::NotShard { path: path.into() });
        }
        let mut frames = Frames { path: path.into(), file, at: magic.len() as u64, payload: Vec::new() };
        frames.expect(FrameKind::Header)?;
        // In another version, the rest of the header may mean something else.
        let [version, fsbench] = ["version", "fsbench"].map(|name| {
            let header: serde_json::Value = frames.json().unwrap_or_default();
            header[name].as_str().map_or_else(|| header[name].to_string(), str::to_owned)
        });
        if version != ShardHeader::VERSION.to_string() || fsbench != env!("CARGO_PKG_VERSION") {
            return Err(ShardError::Version { path: path.into(), found: fsbench });
        }
        let header: ShardHeader = frames.json()?;
        if header.shard.index >= header.shard.of {
            return Err(frames.damaged("its header names a shard that cannot be"));
        }
        Ok(ShardReader { frames, header })
    }

    pub fn path(&self) -> &Path {
        &self.frames.path
    }

    /// Bytes read so far.
    pub const fn bytes(&self) -> u64 {
        self.frames.at
    }

    /// Hands the samples of the next input to `visit`; returns the manifest's entry for it.
    pub fn source<E: From<ShardError>>(
        &mut self,
        mut visit: impl FnMut(u64, FilteredSamples) -> Result<(), E>,
    ) -> Result<SourceFile, E> {
        let frames = &mut self.frames;
        loop {
            match frames.next()? {
                FrameKind::Games => {
                    let mut rest = &frames.payload[..];
                    while !rest.is_empty() {
                        let game = take_game(&mut rest).ok_or_else(|| frames.damaged("its games cannot be read"))?;
                        visit(game.0, game.1)?;
                    }
                }
                FrameKind::Source => return Ok(frames.json()?),
                FrameKind::Header | FrameKind::End => {
                    return Err(frames.damaged("it ends before its inputs do").into());
                }
            }
        }
    }

    /// Checks that the file ends here.
    pub fn end(&mut self) -> Result<(), ShardError> {
        self.frames.expect(FrameKind::End)?;
        self.frames.end()
    }
}

/// The frames of a shard, one after another.
struct Frames {
    path: PathBuf,
    file: BufReader<File>,
    /// Bytes read so far.
    at: u64,
    /// The payload of the newest frame.
    payload: Vec<u8>,
}

impl Frames {
    /// Reads the next frame, which must be of this kind.
    fn expect(&mut self, kind: FrameKind) -> Result<(), ShardError> {
        if self.next()? == kind { Ok(()) } else { Err(self.damaged("its parts are in the wrong order")) }
    }

    fn next(&mut self) -> Result<FrameKind, ShardError> {
        let mut head = [0; 12];
        self.read_exact(&mut head)?;
        let [a, b, c, d, length @ ..] = head;
        let kind = u32::from_le_bytes([a, b, c, d]);
        let length = u64::from_le_bytes(length);
        self.payload.clear();
        // Grows as far as the file goes, so that a damaged length costs no memory.
        let read = (&mut self.file).take(length).read_to_end(&mut self.payload);
        if (read.map_err(DataError::read(&self.path))? as u64) < length {
            return Err(self.damaged("it was cut off"));
        }
        let mut sum = [0; 4];
        self.read_exact(&mut sum)?;
        let mut found = crc32fast::Hasher::new();
        found.update(&head);
        found.update(&self.payload);
        if found.finalize().to_le_bytes() != sum {
            return Err(self.damaged("a checksum does not match"));
        }
        self.at += (head.len() + sum.len()) as u64 + length;
        let kinds = [FrameKind::Header, FrameKind::Games, FrameKind::Source, FrameKind::End];
        kinds.into_iter().find(|known| *known as u32 == kind).ok_or_else(|| self.damaged("a part is of no known kind"))
    }

    fn end(&mut self) -> Result<(), ShardError> {
        let more = self.file.read(&mut [0]).map_err(DataError::read(&self.path))?;
        if more == 0 && self.payload.is_empty() { Ok(()) } else { Err(self.damaged("something follows its end")) }
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, ShardError> {
        json::from_bytes(&self.payload).map_err(|error| self.damaged(&error.to_string()))
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), ShardError> {
        match self.file.read_exact(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.damaged("it was cut off")),
            read => Ok(read.map_err(DataError::read(&self.path))?),
        }
    }

    fn damaged(&self, reason: &str) -> ShardError {
        ShardError::Damaged { path: self.path.clone(), at: self.at, reason: reason.into() }
    }
}

/// Removes the first game of a frame.
fn take_game(bytes: &mut &[u8]) -> Option<(u64, FilteredSamples)> {
    let number = take_u64(bytes)?;
    let counts = BuildCounts::read(bytes)?;
    let count = usize::try_from(take_u64(bytes)?).ok()?;
    let (records, rest) = bytes.split_at_checked(count.checked_mul(Record::BYTES)?)?;
    *bytes = rest;
    let mut filtered = FilteredSamples { records: vec![Record::zeroed(); count], counts };
    bytemuck::cast_slice_mut::<Record, u8>(&mut filtered.records).copy_from_slice(records);
    Some((number, filtered))
}

/// Removes a number from the front.
pub fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}
