//! Samples in a temporary file without a name, of which only one block at a time is in memory. The file disappears when
//! the process ends, however it ends.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::drop_reason::{BuildCounts, DropReason};
use crate::data::{DataError, Record};

/// Writes samples to a temporary file.
pub struct TempSamplesWriter {
    output: PathBuf,
    file: BufWriter<File>,
    count: u64,
}

/// The samples in a temporary file.
pub struct TempSamples {
    output: PathBuf,
    file: File,
    count: u64,
}

/// Records read at once.
const BLOCK: usize = 1 << 15;

/// Creates a file without a name in the folder of `output`.
pub fn unnamed_file(output: &Path) -> Result<File, DataError> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::tempfile_in(folder).map_err(DataError::write(output))
}

impl TempSamplesWriter {
    /// `output` is the file that the samples will finally be written to: the temporary file lies in its folder, and
    /// errors name it.
    pub fn create(output: &Path) -> Result<TempSamplesWriter, DataError> {
        let file = BufWriter::with_capacity(1 << 18, unnamed_file(output)?);
        Ok(TempSamplesWriter { output: output.into(), file, count: 0 })
    }

    pub fn push(&mut self, records: &[Record]) -> Result<(), DataError> {
        self.count += records.len() as u64;
        self.file.write_all(bytemuck::cast_slice(records)).map_err(DataError::write(&self.output))
    }

    pub fn finish(self) -> Result<TempSamples, DataError> {
        let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error);
        let file = file.map_err(DataError::write(&self.output))?;
        Ok(TempSamples { output: self.output, file, count: self.count })
    }
}

impl TempSamples {
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The file that the samples will finally be written to.
    pub fn output(&self) -> &Path {
        &self.output
    }

    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Visits all records in order, one block at a time, with the number of the block's first record.
    pub fn for_each_block(
        &mut self,
        mut visit: impl FnMut(u64, &mut [Record]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut block = vec![bytemuck::Zeroable::zeroed(); BLOCK];
        self.file.seek(SeekFrom::Start(0)).map_err(DataError::read(&self.output))?;
        let mut first = 0;
        while first < self.count {
            let records = &mut block[..(self.count - first).min(BLOCK as u64) as usize];
            self.file.read_exact(bytemuck::cast_slice_mut(records)).map_err(DataError::read(&self.output))?;
            visit(first, records)?;
            first += records.len() as u64;
        }
        Ok(())
    }

    /// Visits all records in order, with their numbers.
    pub fn for_each(&mut self, mut visit: impl FnMut(u64, &Record)) -> Result<(), DataError> {
        self.for_each_block(|first, records| {
            records.iter().zip(first..).for_each(|(record, number)| visit(number, record));
            Ok(())
        })
    }

    /// The records that `map` returns, in order.
    pub fn filter_map(mut self, mut map: impl FnMut(u64, Record) -> Option<Record>) -> Result<TempSamples, DataError> {
        let mut kept = TempSamplesWriter::create(&self.output)?;
        let mut mapped = Vec::with_capacity(BLOCK);
        self.for_each_block(|first, records| {
            mapped.clear();
            mapped.extend(records.iter().zip(first..).filter_map(|(record, number)| map(number, *record)));
            kept.push(&mapped)
        })?;
        kept.finish()
    }

    /// The records for which `keep` returns true; the others are counted as dropped for `reason`.
    pub fn retain(
        self,
        reason: DropReason,
        counts: &mut BuildCounts,
        mut keep: impl FnMut(u64, &Record) -> bool,
    ) -> Result<TempSamples, DataError> {
        let before = self.count();
        let kept = self.filter_map(|number, record| keep(number, &record).then_some(record))?;
        counts.drop(reason, before - kept.count());
        Ok(kept)
    }
}
