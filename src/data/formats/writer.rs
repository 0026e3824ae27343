//! Writing samples in any format but PGN. The file appears when it is finished, whole or not at all.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::binpack::{Encoder, Unfit};
use super::losses::{Account, Boundaries, Ledger, fit};
use super::{Format, bullet, text};
use crate::data::{DataError, FsdWriter, Provenance, Record};
use crate::output::{OutputFile, SealedFile};

/// Samples formatted by one task.
const TASK: usize = 1 << 12;

/// Takes samples and writes them, counting what the format cannot hold.
pub struct SampleWriter {
    path: PathBuf,
    format: Format,
    unknown_is_draw: bool,
    target: Target,
    ledger: Ledger,
    boundaries: Boundaries,
    samples: u64,
}

enum Target {
    Fsd(Box<FsdWriter>),
    Binpack(OutputFile, Encoder),
    Bullet(OutputFile),
    Text(OutputFile),
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub samples: u64,
    pub account: Account,
    /// blake3 of the records, in hexadecimal; of a `.fsd` file.
    pub hash: Option<String>,
}

impl SampleWriter {
    /// `unknown_is_draw`: samples without a result go into formats that want one as draws instead of being left out.
    ///
    /// # Errors
    /// When the folder cannot be written to, or the format is PGN.
    pub fn create(path: &Path, format: Format, unknown_is_draw: bool) -> Result<SampleWriter, DataError> {
        let target = match format {
            Format::Pgn => {
                return Err(DataError::Target { path: path.into(), why: "samples are no games and make no PGN" });
            }
            Format::Fsd => Target::Fsd(Box::new(FsdWriter::create(path)?)),
            Format::Binpack => Target::Binpack(OutputFile::create(path)?, Encoder::default()),
            Format::Bullet => Target::Bullet(OutputFile::create(path)?),
            Format::Text => Target::Text(OutputFile::create(path)?),
        };
        let (ledger, boundaries) = (Ledger::default(), Boundaries::default());
        Ok(SampleWriter { path: path.into(), format, unknown_is_draw, target, ledger, boundaries, samples: 0 })
    }

    /// # Errors
    /// When the disk is full or breaks, or a sample is no legal position and move.
    pub fn push(&mut self, records: &[Record]) -> Result<(), DataError> {
        if let Target::Fsd(writer) = &mut self.target {
            self.samples += records.len() as u64;
            return writer.push_all(records);
        }
        let fitting = self.fitting(records);
        match &mut self.target {
            Target::Fsd(_) => {}
            Target::Binpack(file, encoder) => {
                let mut chunks = Vec::new();
                encoder.push(&fitting, &mut chunks).map_err(unfit(&self.path))?;
                file.put(&chunks)?;
            }
            Target::Bullet(file) => {
                let entries: Vec<_> = fitting.par_iter().with_min_len(TASK).filter_map(bullet::write).collect();
                file.put(entries.as_flattened())?;
            }
            Target::Text(file) => {
                let lines: Vec<Result<String, Unfit>> = fitting
                    .par_chunks(TASK)
                    .enumerate()
                    .map(|(task, records)| lines(records, self.samples + (task * TASK) as u64))
                    .collect();
                for lines in lines {
                    file.put(lines.map_err(unfit(&self.path))?.as_bytes())?;
                }
            }
        }
        self.samples += fitting.len() as u64;
        Ok(())
    }

    /// The samples as the format holds them.
    fn fitting(&mut self, records: &[Record]) -> Vec<Record> {
        let (format, unknown_is_draw) = (self.format, self.unknown_is_draw);
        let parts: Vec<(Vec<Record>, Ledger)> = records
            .par_chunks(TASK)
            .map(|records| {
                let mut ledger = Ledger::default();
                let fit = |record| fit(record, format, unknown_is_draw, &mut ledger);
                (records.iter().filter_map(fit).collect(), ledger)
            })
            .collect();
        let mut fitting = Vec::with_capacity(records.len());
        for (records, ledger) in parts {
            self.ledger.add(&ledger);
            fitting.extend(records);
        }
        for record in &fitting {
            self.boundaries.add(record, format, &mut self.ledger);
        }
        fitting
    }

    /// Puts the file in its place. `provenance` goes into a `.fsd` file's header.
    ///
    /// # Errors
    /// When the disk is full or breaks, or a sample is no legal position and move.
    pub fn finish(self, provenance: Provenance) -> Result<Written, DataError> {
        let (file, written) = self.seal(provenance)?;
        file.persist()?;
        Ok(written)
    }

    /// As [`finish`](SampleWriter::finish); the file still needs its name.
    pub(crate) fn seal(self, provenance: Provenance) -> Result<(SealedFile, Written), DataError> {
        let mut hash = None;
        let file = match self.target {
            Target::Fsd(writer) => {
                hash = Some(blake3::Hash::from_bytes(writer.hash()).to_hex().to_string());
                writer.seal(provenance)?
            }
            Target::Binpack(mut file, encoder) => {
                let mut chunks = Vec::new();
                encoder.finish(&mut chunks).map_err(unfit(&self.path))?;
                file.put(&chunks)?;
                file.seal()?
            }
            Target::Bullet(file) | Target::Text(file) => file.seal()?,
        };
        Ok((file, Written { samples: self.samples, account: self.ledger.account(), hash }))
    }

    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// What could not be held so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.ledger.account()
    }
}

fn unfit(path: &Path) -> impl Fn(Unfit) -> DataError + '_ {
    |(sample, problem)| DataError::Sample { path: path.into(), sample, problem }
}

fn lines(records: &[Record], first: u64) -> Result<String, Unfit> {
    let mut lines = String::with_capacity(80 * records.len());
    for (record, number) in records.iter().zip(first..) {
        text::write(record, &mut lines).map_err(|problem| (number, problem))?;
    }
    Ok(lines)
}
