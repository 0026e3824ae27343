//! Writes `.fsd` files, laid out as `header.rs` describes.

use std::path::Path;

use super::header::{FsdHeader, HEADER_BYTES};
use crate::data::{DataError, Purpose, Record, ScoreUnit};
use crate::output::{OutputFile, SealedFile};
use crate::units::Seed;

/// Samples per block.
const BLOCK_SAMPLES: u32 = 4096;

/// Writes samples to a `.fsd` file, which appears only once it is complete.
pub struct FsdWriter {
    file: OutputFile,
    hasher: blake3::Hasher,
    /// The samples of the incomplete block.
    block: Vec<Record>,
    checksums: Vec<u8>,
    samples: u64,
}

/// The header fields that the writer cannot derive from the samples.
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
        let block = Vec::with_capacity(BLOCK_SAMPLES as usize);
        Ok(FsdWriter { file, hasher: blake3::Hasher::new(), block, checksums: Vec::new(), samples: 0 })
    }

    /// # Errors
    /// When the disk is full or fails.
    pub fn push(&mut self, record: &Record) -> Result<(), DataError> {
        self.push_all(std::slice::from_ref(record))
    }

    /// # Errors
    /// When the disk is full or fails.
    pub fn push_all(&mut self, mut records: &[Record]) -> Result<(), DataError> {
        while !records.is_empty() {
            let room = BLOCK_SAMPLES as usize - self.block.len();
            let (fitting, rest) = records.split_at(room.min(records.len()));
            self.block.extend_from_slice(fitting);
            self.samples += fitting.len() as u64;
            records = rest;
            if self.block.len() == BLOCK_SAMPLES as usize {
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

    /// Completes the file, which is still to be given its name.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn seal(mut self, provenance: Provenance) -> Result<SealedFile, DataError> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let header = FsdHeader {
            samples: self.samples,
            samples_per_block: BLOCK_SAMPLES,
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
