//! The header of a `.fsd` file, and the layout of the whole file. All numbers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | magic `\x89FSD\r\n\x1a\n` |
//! | 8–11 | version, 1 |
//! | 12–15 | bytes per record, 40 |
//! | 16–23 | number of samples, n |
//! | 24–27 | samples per block, b |
//! | 28–31 | number of games read; game numbers are smaller |
//! | 32 | purpose of the samples: 0 eval, 1 pqr, 2 any (a conversion, not filtered for a method) |
//! | 33 | score unit: 0 centipawns, 1 an engine's internal units |
//! | 34–35 | value of a pawn in the score unit (100 for centipawns) |
//! | 36–43 | seed |
//! | 44–47 | zero |
//! | 48–79 | blake3 of the records |
//! | 80–111 | blake3 over the blake3 hashes of the sources, in order |
//! | 112–251 | zero |
//! | 252–255 | crc32 of bytes 0–251 |
//! | 256 … | n records of 40 bytes (layout in `record.rs`), game by game unless shuffled |
//! | then | crc32 of each block of b records; the last block may be shorter |
//!
//! Nothing follows, so the length shows whether the file is complete.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::data::{DataError, Purpose, Record, ScoreUnit};
use crate::units::Seed;

pub const MAGIC: &[u8; 8] = b"\x89FSD\r\n\x1a\n";
pub const VERSION: u32 = 1;
pub const HEADER_BYTES: usize = 256;

/// The fields of a `.fsd` file's header.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FsdHeader {
    pub samples: u64,
    pub samples_per_block: u32,
    pub games: u32,
    pub purpose: Purpose,
    pub score_unit: ScoreUnit,
    pub seed: Seed,
    /// blake3 of the records: identifies the samples.
    pub hash: [u8; 32],
    /// blake3 over the blake3 hashes of the sources.
    pub sources: [u8; 32],
}

impl FsdHeader {
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

    /// Reads only the header of a file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a `.fsd` file of this version.
    pub fn load(path: &Path) -> Result<FsdHeader, DataError> {
        let mut file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        if length < HEADER_BYTES as u64 {
            return Err(DataError::NotFsd { path: path.into(), reason: format!("it is {length} bytes long") });
        }
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(DataError::read(path))?;
        FsdHeader::from_bytes(&bytes, path)
    }

    /// Decodes and checks a header; errors name `path`.
    ///
    /// # Errors
    /// When the bytes are not a header of this version.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES], path: &Path) -> Result<FsdHeader, DataError> {
        let not_fsd = |reason: String| DataError::NotFsd { path: path.into(), reason };
        let array = |at: usize| -> [u8; 4] { [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]] };
        let u32_at = |at: usize| u32::from_le_bytes(array(at));
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let hash_at = |at: usize| -> [u8; 32] { std::array::from_fn(|i| bytes[at + i]) };
        if &bytes[..8] != MAGIC {
            return Err(not_fsd("it does not begin with the .fsd signature".into()));
        }
        if u32_at(8) != VERSION {
            return Err(DataError::Version { path: path.into(), found: u32_at(8), expected: VERSION });
        }
        if u32_at(252) != crc32fast::hash(&bytes[..252]) {
            return Err(DataError::Checksum { path: path.into(), part: "the header".into(), first: 0, last: 255 });
        }
        if u32_at(12) as usize != Record::BYTES || u32_at(24) == 0 {
            return Err(not_fsd(format!("records of {} bytes in blocks of {}", u32_at(12), u32_at(24))));
        }
        let purpose = match bytes[32] {
            0 => Purpose::Eval,
            1 => Purpose::Pqr,
            2 => Purpose::Any,
            other => return Err(not_fsd(format!("byte 32, the purpose of its samples, is {other}"))),
        };
        let pawn = u16::from_le_bytes([bytes[34], bytes[35]]);
        let score_unit = match bytes[33] {
            0 => ScoreUnit::Centipawns,
            1 if pawn > 0 => ScoreUnit::Internal { pawn },
            other => return Err(not_fsd(format!("bytes 33–35 give score unit {other} with a pawn of {pawn}"))),
        };
        Ok(FsdHeader {
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

    /// Length of the whole file; `None` if it exceeds 64 bits.
    #[must_use]
    pub fn file_bytes(&self) -> Option<u64> {
        let records = self.samples.checked_mul(Record::BYTES as u64)?;
        let checksums = self.samples.div_ceil(u64::from(self.samples_per_block)).checked_mul(4)?;
        records.checked_add(checksums)?.checked_add(HEADER_BYTES as u64)
    }
}
