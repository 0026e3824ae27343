//! Samples on their way: a file without a name, of which only a block is in memory at a time. Nothing is left of it
//! when the process ends, however it ends.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::data::{DataError, Record};

/// Records being gathered.
pub struct TempSamplesWriter {
    output: PathBuf,
    file: BufWriter<File>,
    count: u64,
}

/// Gathered records.
pub struct TempSamples {
    output: PathBuf,
    file: File,
    count: u64,
}

/// Records read at once.
const BLOCK: usize = 1 << 15;

/// A file without a name in the folder of `output`.
pub fn unnamed(output: &Path) -> Result<File, DataError> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::tempfile_in(folder).map_err(DataError::write(output))
}

impl TempSamplesWriter {
    /// For samples that are to stand in `output` in the end.
    pub fn create(output: &Path) -> Result<TempSamplesWriter, DataError> {
        let file = BufWriter::with_capacity(1 << 18, unnamed(output)?);
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

    /// What the records are for.
    pub fn output(&self) -> &Path {
        &self.output
    }

    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Visits all records in order, a block at a time, with the number of the first.
    pub fn blocks(
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
    pub fn each(&mut self, mut visit: impl FnMut(u64, &Record)) -> Result<(), DataError> {
        self.blocks(|first, records| {
            records.iter().zip(first..).for_each(|(record, number)| visit(number, record));
            Ok(())
        })
    }

    /// The records that `map` gives back, in order.
    pub fn filter_map(mut self, mut map: impl FnMut(u64, Record) -> Option<Record>) -> Result<TempSamples, DataError> {
        let mut kept = TempSamplesWriter::create(&self.output)?;
        let mut some = Vec::with_capacity(BLOCK);
        self.blocks(|first, records| {
            some.clear();
            some.extend(records.iter().zip(first..).filter_map(|(record, number)| map(number, *record)));
            kept.push(&some)
        })?;
        kept.finish()
    }
}
