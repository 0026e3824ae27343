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

/// Records read at once: 320 KB, which stay in the cache while they are worked on.
const BLOCK: usize = 1 << 13;

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
        let mut block = Vec::new();
        let mut first = 0;
        while first < self.count {
            self.read_block(first, &mut block)?;
            visit(first, &mut block)?;
            first += block.len() as u64;
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

    /// Lets `edit` change records and drop some, one block at a time, in order, with the number of the block's first
    /// record. It must not add records: those that it keeps are written back to the front of the same file.
    pub fn edit_blocks(&mut self, mut edit: impl FnMut(u64, &mut Vec<Record>)) -> Result<(), DataError> {
        let mut block = Vec::new();
        let mut first = 0;
        let mut kept = 0;
        while first < self.count {
            self.read_block(first, &mut block)?;
            let read = block.len() as u64;
            edit(first, &mut block);
            assert!(block.len() as u64 <= read, "records were added");
            self.seek(kept)?;
            self.file.write_all(bytemuck::cast_slice(&block)).map_err(DataError::write(&self.output))?;
            first += read;
            kept += block.len() as u64;
        }
        self.count = kept;
        Ok(())
    }

    /// The records for which `keep` returns true; the others are counted as dropped for `reason`.
    pub fn retain(
        mut self,
        reason: DropReason,
        counts: &mut BuildCounts,
        mut keep: impl FnMut(u64, &Record) -> bool,
    ) -> Result<TempSamples, DataError> {
        let before = self.count();
        self.edit_blocks(|first, records| {
            let mut numbers = first..;
            records.retain(|record| numbers.next().is_some_and(|number| keep(number, record)));
        })?;
        counts.drop(reason, before - self.count());
        Ok(self)
    }

    /// Reads the records from number `first` on, as many as a block has.
    fn read_block(&mut self, first: u64, block: &mut Vec<Record>) -> Result<(), DataError> {
        self.seek(first)?;
        block.resize((self.count - first).min(BLOCK as u64) as usize, bytemuck::Zeroable::zeroed());
        self.file.read_exact(bytemuck::cast_slice_mut(block)).map_err(DataError::read(&self.output))
    }

    fn seek(&mut self, record: u64) -> Result<(), DataError> {
        let place = SeekFrom::Start(record * Record::BYTES as u64);
        self.file.seek(place).map_err(DataError::read(&self.output))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_changed_and_dropped_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = TempSamplesWriter::create(&folder.path().join("x.fsd")).expect("created");
        let blank: Record = bytemuck::Zeroable::zeroed();
        let many = 2 * BLOCK as u32 + 100;
        let written: Vec<Record> = (0..many).map(|number| blank.with_game(number)).collect();
        written.chunks(1000).for_each(|chunk| writer.push(chunk).expect("written"));
        let mut samples = writer.finish().expect("finished");
        let score_of = |number: u64| (number % 1000) as i16;
        let mut edit = |first: u64, records: &mut Vec<Record>| {
            for (record, number) in records.iter_mut().zip(first..) {
                record.set_score(Some(score_of(number)));
            }
            records.retain(|record| !record.game().is_multiple_of(3));
        };
        samples.edit_blocks(&mut edit).expect("edited");
        let mut counts = BuildCounts::default();
        let is_kept = |_: u64, record: &Record| !record.game().is_multiple_of(5);
        let mut samples = samples.retain(DropReason::Thinned, &mut counts, is_kept).expect("retained");
        let not_of_three = (0..many).filter(|game| !game.is_multiple_of(3));
        let (of_five, expected): (Vec<u32>, Vec<u32>) = not_of_three.partition(|game| game.is_multiple_of(5));
        let of_five = of_five.len() as u64;
        assert_eq!(counts.dropped(), [(DropReason::Thinned, of_five)].into());
        assert_eq!(samples.count(), expected.len() as u64);
        let mut found = Vec::new();
        samples
            .for_each(|number, record| {
                assert_eq!((number, record.score()), (found.len() as u64, Some(score_of(u64::from(record.game())))));
                found.push(record.game());
            })
            .expect("read");
        assert_eq!(found, expected);
    }
}
