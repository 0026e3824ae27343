//! The `.fsd` file, and writing one. All numbers little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | magic `\x89FSD\r\n\x1a\n` |
//! | 8–11 | version, 1 |
//! | 12–15 | bytes a record, 40 |
//! | 16–23 | number of samples, n |
//! | 24–27 | samples a block, b |
//! | 28–31 | number of games read; game numbers lie below it |
//! | 32 | what the samples were selected for: 0 eval, 1 pqr, 2 any (samples as they came) |
//! | 33 | score unit: 0 centipawns, 1 an engine's internal units |
//! | 34–35 | value of a pawn in the score unit (100 for centipawns) |
//! | 36–43 | seed |
//! | 44–47 | zero |
//! | 48–79 | blake3 of the records |
//! | 80–111 | blake3 over the blake3 hashes of the sources, in order |
//! | 112–251 | zero |
//! | 252–255 | crc32 of bytes 0–251 |
//! | 256 … | n records (`record.rs`), game by game |
//! | then | crc32 of each block of b records, the last one may be short |
//!
//! Nothing follows: the length tells whether the file is whole.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DataError, Eval, Purpose, Record};
use crate::output::{OutputFile, SealedFile};
use crate::units::Seed;

pub const MAGIC: &[u8; 8] = b"\x89FSD\r\n\x1a\n";
pub const VERSION: u32 = 1;
pub const HEADER_BYTES: usize = 256;
pub const BLOCK: u32 = 4096;

/// What the scores are measured in.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreUnit {
    Centipawns,
    /// An engine's internal units, so many a pawn.
    Internal {
        pawn: u16,
    },
}

impl ScoreUnit {
    /// Stockfish's internal units up to version 15 (its PawnValueEg), in which its training data are written.
    pub const STOCKFISH: ScoreUnit = ScoreUnit::Internal { pawn: 208 };

    /// Units a pawn.
    #[must_use]
    pub const fn pawn(self) -> u16 {
        match self {
            ScoreUnit::Centipawns => 100,
            ScoreUnit::Internal { pawn } => pawn,
        }
    }

    /// Factor from the unit to centipawns.
    #[must_use]
    pub fn centipawns(self) -> f32 {
        100.0 / f32::from(self.pawn())
    }

    /// A score of this unit in centipawns. Mates, which lie beyond [`Eval::LARGEST`], are the same in every unit.
    #[inline]
    #[must_use]
    pub fn in_centipawns(self, score: i16) -> f32 {
        let factor = if i32::from(score).abs() > Eval::LARGEST { 1.0 } else { self.centipawns() };
        f32::from(score) * factor
    }

    /// The unit in words.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            ScoreUnit::Centipawns => "centipawns".into(),
            ScoreUnit::Internal { pawn } => format!("internal units, {pawn} a pawn"),
        }
    }
}

/// As the command line spells it: `cp`, `internal:208`.
impl fmt::Display for ScoreUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScoreUnit::Centipawns => f.write_str("cp"),
            ScoreUnit::Internal { pawn } => write!(f, "internal:{pawn}"),
        }
    }
}

impl FromStr for ScoreUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<ScoreUnit, String> {
        let pawn = text.strip_prefix("internal:").and_then(|pawn| pawn.parse().ok()).filter(|pawn| *pawn > 0);
        match (text, pawn) {
            ("cp", _) => Ok(ScoreUnit::Centipawns),
            (_, Some(pawn)) => Ok(ScoreUnit::Internal { pawn }),
            _ => Err("give `cp`, or `internal:PAWN` with the value of a pawn, 1 to 65535".into()),
        }
    }
}

/// What the first 256 bytes of a `.fsd` file say.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub samples: u64,
    pub samples_per_block: u32,
    pub games: u32,
    pub purpose: Purpose,
    pub score_unit: ScoreUnit,
    pub seed: Seed,
    /// blake3 of the records: names the samples, however the file around them looks.
    pub hash: [u8; 32],
    /// blake3 over the sources' hashes.
    pub sources: [u8; 32],
}

impl Header {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(Record::BYTES as u32).to_le_bytes());
        put(16, &self.samples.to_le_bytes());
        put(24, &self.samples_per_block.to_le_bytes());
        put(28, &self.games.to_le_bytes());
        let purpose = match self.purpose {
            Purpose::Eval => 0,
            Purpose::Pqr => 1,
            Purpose::Any => 2,
        };
        put(32, &[purpose]);
        put(33, &[u8::from(matches!(self.score_unit, ScoreUnit::Internal { .. }))]);
        put(34, &self.score_unit.pawn().to_le_bytes());
        put(36, &self.seed.0.to_le_bytes());
        put(48, &self.hash);
        put(80, &self.sources);
        let checksum = crc32fast::hash(&bytes[..252]);
        bytes[252..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header of a file, and nothing else of it.
    ///
    /// # Errors
    /// When the file cannot be read or is no `.fsd` file of this version.
    pub fn load(path: &Path) -> Result<Header, DataError> {
        let mut file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        if length < HEADER_BYTES as u64 {
            return Err(DataError::NotFsd { path: path.into(), reason: format!("it is {length} bytes long") });
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(DataError::read(path))?;
        Header::from_bytes(&bytes, path)
    }

    /// # Errors
    /// When the bytes are no header of this version.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES], path: &Path) -> Result<Header, DataError> {
        let not = |reason: String| DataError::NotFsd { path: path.into(), reason };
        let array = |at: usize| -> [u8; 4] { [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]] };
        let u32_at = |at: usize| u32::from_le_bytes(array(at));
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let hash_at = |at: usize| -> [u8; 32] { std::array::from_fn(|i| bytes[at + i]) };
        if &bytes[..8] != MAGIC {
            return Err(not("it does not begin with the .fsd signature".into()));
        }
        if u32_at(8) != VERSION {
            return Err(DataError::Version { path: path.into(), found: u32_at(8), expected: VERSION });
        }
        if u32_at(252) != crc32fast::hash(&bytes[..252]) {
            return Err(DataError::Checksum { path: path.into(), part: "the header".into(), first: 0, last: 255 });
        }
        if u32_at(12) as usize != Record::BYTES || u32_at(24) == 0 {
            return Err(not(format!("records of {} bytes in blocks of {}", u32_at(12), u32_at(24))));
        }
        let purpose = match bytes[32] {
            0 => Purpose::Eval,
            1 => Purpose::Pqr,
            2 => Purpose::Any,
            other => return Err(not(format!("byte 32, what its samples are for, is {other}"))),
        };
        let pawn = u16::from_le_bytes([bytes[34], bytes[35]]);
        let score_unit = match bytes[33] {
            0 => ScoreUnit::Centipawns,
            1 if pawn > 0 => ScoreUnit::Internal { pawn },
            other => return Err(not(format!("bytes 33–35 give score unit {other} with a pawn of {pawn}"))),
        };
        Ok(Header {
            samples: u64_at(16),
            samples_per_block: u32_at(24),
            games: u32_at(28),
            purpose,
            score_unit,
            seed: Seed(u64_at(36)),
            hash: hash_at(48),
            sources: hash_at(80),
        })
    }

    /// Length of the whole file; none where no file can be that long.
    #[must_use]
    pub fn file_bytes(&self) -> Option<u64> {
        let records = self.samples.checked_mul(Record::BYTES as u64)?;
        let checksums = self.samples.div_ceil(u64::from(self.samples_per_block)).checked_mul(4)?;
        records.checked_add(checksums)?.checked_add(HEADER_BYTES as u64)
    }
}

/// Writes samples to a `.fsd` file that appears when it is finished.
pub struct FsdWriter {
    file: OutputFile,
    hasher: blake3::Hasher,
    /// Samples of the block that is not full yet.
    block: Vec<Record>,
    checksums: Vec<u8>,
    samples: u64,
}

/// What the writer cannot know by itself.
#[derive(Copy, Clone, Debug)]
pub struct Provenance {
    pub purpose: Purpose,
    pub score_unit: ScoreUnit,
    pub seed: Seed,
    pub games: u32,
    pub sources: [u8; 32],
}

impl FsdWriter {
    /// # Errors
    /// When the folder cannot be written to.
    pub fn create(path: &Path) -> Result<FsdWriter, DataError> {
        let mut file = OutputFile::create(path)?;
        file.put(&[0; HEADER_BYTES])?;
        let block = Vec::with_capacity(BLOCK as usize);
        Ok(FsdWriter { file, hasher: blake3::Hasher::new(), block, checksums: Vec::new(), samples: 0 })
    }

    /// # Errors
    /// When the disk is full or breaks.
    pub fn push(&mut self, record: &Record) -> Result<(), DataError> {
        self.push_all(std::slice::from_ref(record))
    }

    /// # Errors
    /// When the disk is full or breaks.
    pub fn push_all(&mut self, mut records: &[Record]) -> Result<(), DataError> {
        while !records.is_empty() {
            let room = BLOCK as usize - self.block.len();
            let (now, later) = records.split_at(room.min(records.len()));
            self.block.extend_from_slice(now);
            self.samples += now.len() as u64;
            records = later;
            if self.block.len() == BLOCK as usize {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), DataError> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.block);
        self.hasher.update(bytes);
        self.checksums.extend(crc32fast::hash(bytes).to_le_bytes());
        self.file.put(bytes)?;
        self.block.clear();
        Ok(())
    }

    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// blake3 of the records so far.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = self.hasher.clone();
        hasher.update(bytemuck::cast_slice(&self.block));
        *hasher.finalize().as_bytes()
    }

    /// Writes what is left and checksums; the file still needs its name.
    ///
    /// # Errors
    /// When the disk is full or breaks.
    pub fn seal(mut self, provenance: Provenance) -> Result<SealedFile, DataError> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let header = Header {
            samples: self.samples,
            samples_per_block: BLOCK,
            games: provenance.games,
            purpose: provenance.purpose,
            score_unit: provenance.score_unit,
            seed: provenance.seed,
            hash: self.hash(),
            sources: provenance.sources,
        };
        self.file.put(&self.checksums)?;
        self.file.put_front(&header.to_bytes())?;
        Ok(self.file.seal()?)
    }
}
