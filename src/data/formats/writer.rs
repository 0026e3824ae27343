//! Writes samples in any format but PGN. The file appears only once it is complete.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::Format;
use super::binpack::InvalidSample;
use super::format_table::SampleEncoder;
use super::omissions::{GameBoundaries, OmissionCounter, Omissions, adapt};
use crate::data::{DataError, FsdWriter, Provenance, Record};
use crate::output::{OutputFile, SealedFile};

/// Samples formatted by one task.
pub const TASK_SAMPLES: usize = 1 << 12;

/// Writes samples to a file and counts the information that its format cannot hold.
pub struct SampleWriter {
    path: PathBuf,
    format: Format,
    unknown_is_draw: bool,
    writer: FormatWriter,
    counter: OmissionCounter,
    boundaries: GameBoundaries,
    samples: u64,
}

enum FormatWriter {
    Fsd(Box<FsdWriter>),
    Stream(OutputFile, Box<dyn SampleEncoder>),
}

/// The totals of a written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteSummary {
    pub samples: u64,
    pub omissions: Omissions,
    /// blake3 of the records of a `.fsd` file, in hexadecimal.
    pub hash: Option<String>,
}

impl SampleWriter {
    /// With `unknown_is_draw`, samples without a result are written as draws in formats that need a result; otherwise
    /// they are omitted.
    ///
    /// # Errors
    /// When the folder cannot be written to, or the format is PGN.
    pub fn create(path: &Path, format: Format, unknown_is_draw: bool) -> Result<SampleWriter, DataError> {
        let writer = if format == Format::Fsd {
            FormatWriter::Fsd(Box::new(FsdWriter::create(path)?))
        } else {
            let Some(encoder) = format.table().encoder else {
                return Err(DataError::OutputFormat { path: path.into(), why: format.why_not_written() });
            };
            FormatWriter::Stream(OutputFile::create(path)?, encoder())
        };
        let counter = OmissionCounter::default();
        let boundaries = GameBoundaries::default();
        Ok(SampleWriter { path: path.into(), format, unknown_is_draw, writer, counter, boundaries, samples: 0 })
    }

    /// # Errors
    /// When the disk is full or fails, or a sample's position or move is illegal.
    pub fn push(&mut self, records: &[Record]) -> Result<(), DataError> {
        if let FormatWriter::Fsd(writer) = &mut self.writer {
            self.samples += records.len() as u64;
            return writer.push_all(records);
        }
        let adapted = self.adapt_all(records);
        if let FormatWriter::Stream(file, encoder) = &mut self.writer {
            let mut bytes = Vec::new();
            encoder.push(&adapted, &mut bytes).map_err(invalid_sample(&self.path))?;
            file.put(&bytes)?;
        }
        self.samples += adapted.len() as u64;
        Ok(())
    }

    /// The samples as the format holds them.
    fn adapt_all(&mut self, records: &[Record]) -> Vec<Record> {
        let format = self.format;
        let unknown_is_draw = self.unknown_is_draw;
        let parts: Vec<(Vec<Record>, OmissionCounter)> = records
            .par_chunks(TASK_SAMPLES)
            .map(|records| {
                let mut counter = OmissionCounter::default();
                let fit = |record| adapt(record, format, unknown_is_draw, &mut counter);
                (records.iter().filter_map(fit).collect(), counter)
            })
            .collect();
        let mut adapted = Vec::with_capacity(records.len());
        for (records, counter) in parts {
            self.counter.add(&counter);
            adapted.extend(records);
        }
        for record in &adapted {
            self.boundaries.add(record, format, &mut self.counter);
        }
        adapted
    }

    /// Completes the file and gives it its name. `provenance` goes into a `.fsd` file's header.
    ///
    /// # Errors
    /// When the disk is full or fails, or a sample's position or move is illegal.
    pub fn finish(self, provenance: Provenance) -> Result<WriteSummary, DataError> {
        let (file, written) = self.seal(provenance)?;
        file.persist()?;
        Ok(written)
    }

    /// As [`finish`](SampleWriter::finish), but the file is still to be given its name.
    pub(crate) fn seal(self, provenance: Provenance) -> Result<(SealedFile, WriteSummary), DataError> {
        let omissions = self.omissions();
        let mut hash = None;
        let file = match self.writer {
            FormatWriter::Fsd(writer) => {
                hash = Some(blake3::Hash::from_bytes(writer.hash()).to_hex().to_string());
                writer.seal(provenance)?
            }
            FormatWriter::Stream(mut file, mut encoder) => {
                let mut bytes = Vec::new();
                encoder.finish(&mut bytes).map_err(invalid_sample(&self.path))?;
                file.put(&bytes)?;
                file.seal()?
            }
        };
        Ok((file, WriteSummary { samples: self.samples, omissions, hash }))
    }

    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Information that the format could not hold so far.
    #[must_use]
    pub fn omissions(&self) -> Omissions {
        let mut counter = self.counter.clone();
        if let FormatWriter::Stream(_, encoder) = &self.writer {
            counter.split_games(encoder.split_games());
        }
        counter.omissions()
    }
}

fn invalid_sample(path: &Path) -> impl Fn(InvalidSample) -> DataError + '_ {
    |InvalidSample { sample, problem }| DataError::InvalidSample { path: path.into(), sample, problem }
}
