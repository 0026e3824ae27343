//! Reads `.fsd` files, laid out as `header.rs` describes, by mapping them into memory.
#![allow(unsafe_code, reason = "maps the file into memory")]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use rayon::prelude::*;

use super::header::{FsdHeader, HEADER_BYTES};
use crate::data::{DataError, Method, Purpose, Record};
use crate::system;

/// Touching a page also maps the pages up to this far on either side.
const FAULT_AROUND_BYTES: usize = 64 << 10;

/// Bytes that all cores check at once.
const GROUP_BYTES: usize = 32 << 20;

/// A `.fsd` file mapped into memory. Opening it checks the length and every checksum. The file must not be truncated
/// while it is open: reading missing pages ends the process
/// ([`install_truncation_handler`](crate::data::install_truncation_handler)).
#[derive(Debug)]
pub struct Fsd {
    path: PathBuf,
    header: FsdHeader,
    map: Mmap,
    /// Offset of the end of the records.
    records_end: usize,
}

impl Fsd {
    /// Opens a file and checks its checksums.
    ///
    /// # Errors
    /// When the file is missing, is not a `.fsd` file of this version, was cut off, or is damaged.
    pub fn open(path: &Path) -> Result<Fsd, DataError> {
        let fsd = Fsd::open_unchecked(path)?;
        fsd.verify()?;
        Ok(fsd)
    }

    /// As [`open`](Fsd::open), without checking the checksums.
    pub(crate) fn open_unchecked(path: &Path) -> Result<Fsd, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        if length < HEADER_BYTES as u64 {
            return Err(DataError::NotFsd { path: path.into(), reason: format!("it is {length} bytes long") });
        }
        // SAFETY: `.fsd` files are written elsewhere and renamed into place, never changed in place, so the mapped
        // pages do not change.
        let map = unsafe { Mmap::map(&file) }.map_err(DataError::read(path))?;
        let Some((head, _)) = map.split_first_chunk::<HEADER_BYTES>() else {
            return Err(DataError::NotFsd { path: path.into(), reason: "it has no header".into() });
        };
        let header = FsdHeader::from_bytes(head, path)?;
        let expected = header.file_bytes().unwrap_or(u64::MAX);
        if expected != map.len() as u64 {
            return Err(DataError::Length { path: path.into(), found: map.len() as u64, expected });
        }
        let records_end = HEADER_BYTES + header.samples as usize * Record::BYTES;
        Ok(Fsd { path: path.into(), header, map, records_end })
    }

    /// Opens a file that was built for `method`, or is a conversion and holds samples for any.
    ///
    /// # Errors
    /// As `open`, or when the file was built for another method.
    pub fn open_for(path: &Path, method: Method) -> Result<Fsd, DataError> {
        let fsd = Fsd::open_for_unchecked(path, method)?;
        fsd.verify()?;
        Ok(fsd)
    }

    /// As [`open_for`](Fsd::open_for), without checking the checksums, for readers that use
    /// [`for_each_checked_chunk`](Fsd::for_each_checked_chunk) first.
    pub(crate) fn open_for_unchecked(path: &Path, method: Method) -> Result<Fsd, DataError> {
        let fsd = Fsd::open_unchecked(path)?;
        if [method.into(), Purpose::Any].contains(&fsd.header.purpose) {
            Ok(fsd)
        } else {
            Err(DataError::Method { path: path.into(), found: fsd.header.purpose, wanted: method })
        }
    }

    /// Checks every block's checksum.
    ///
    /// # Errors
    /// Names the first damaged block.
    pub fn verify(&self) -> Result<(), DataError> {
        self.damaged_blocks(1).pop().map_or(Ok(()), |block| Err(self.damage_error(block)))
    }

    /// An error for every damaged block, in order.
    pub(crate) fn damage_errors(&self) -> Vec<DataError> {
        self.damaged_blocks(usize::MAX).into_iter().map(|block| self.damage_error(block)).collect()
    }

    /// The first `most` damaged blocks.
    fn damaged_blocks(&self, most: usize) -> Vec<usize> {
        let mut damaged = Vec::new();
        let mut first = 0;
        let group = GROUP_BYTES.div_ceil(self.block_bytes());
        let mut sums = self.map[self.records_end..].chunks(4 * group);
        let _ = self.for_each_chunk(group * self.header.samples_per_block as usize, |records| {
            let blocks = bytemuck::cast_slice::<Record, u8>(records).par_chunks(self.block_bytes());
            let sums = sums.next().unwrap_or(&[]).par_chunks_exact(4);
            let count = blocks.len();
            let bad = blocks.zip(sums).enumerate().filter(|(_, (block, sum))| is_damaged(block, sum));
            damaged.extend(bad.map(|(block, _)| first + block).collect::<Vec<_>>());
            first += count;
            if damaged.len() < most { Ok(()) } else { Err(()) }
        });
        damaged.truncate(most);
        damaged
    }

    fn block_bytes(&self) -> usize {
        self.header.samples_per_block as usize * Record::BYTES
    }

    /// Visits all records in order, `count` at a time, until an error. Visited pages are released and read from the
    /// file again when needed.
    ///
    /// # Errors
    /// The errors that `visit` returns.
    pub fn for_each_chunk<E>(&self, count: usize, mut visit: impl FnMut(&[Record]) -> Result<(), E>) -> Result<(), E> {
        let mut at = HEADER_BYTES;
        for (number, records) in self.records().chunks(count).enumerate() {
            // The disk reads the next chunk meanwhile.
            self.prefetch((number + 1) * count..(number + 2) * count);
            visit(records)?;
            let bytes = size_of_val(records);
            // SAFETY: the pages map a file that is never changed in place, so they are read back unchanged.
            unsafe { system::release_pages(&self.map, at, bytes) };
            at += bytes;
        }
        Ok(())
    }

    /// As [`for_each_chunk`](Fsd::for_each_chunk), and checks the checksums of a chunk before it is visited. A chunk
    /// holds whole blocks, so it may be longer than `count`.
    ///
    /// # Errors
    /// The errors that `visit` returns, and the first damaged block.
    pub(crate) fn for_each_checked_chunk<E: From<DataError>>(
        &self,
        count: usize,
        mut visit: impl FnMut(&[Record]) -> Result<(), E>,
    ) -> Result<(), E> {
        let blocks = count.div_ceil(self.header.samples_per_block as usize).max(1);
        let mut sums = self.map[self.records_end..].chunks(4 * blocks);
        let mut first = 0;
        self.for_each_chunk(blocks * self.header.samples_per_block as usize, |records| {
            let sums = sums.next().unwrap_or(&[]).par_chunks_exact(4);
            let bytes = bytemuck::cast_slice::<Record, u8>(records).par_chunks(self.block_bytes());
            let is_bad = |(block, sum): (&[u8], &[u8])| is_damaged(block, sum);
            if let Some(bad) = bytes.zip(sums).position_first(is_bad) {
                return Err(self.damage_error(first + bad).into());
            }
            first += blocks;
            visit(records)
        })
    }

    /// Starts reading these records from the disk.
    pub fn prefetch(&self, records: Range<usize>) {
        let (at, bytes) = self.byte_range(records);
        system::will_need(&self.map, at, bytes);
    }

    /// Releases the memory of these records, which are read from the file again when needed.
    pub fn release(&self, records: Range<usize>) {
        let (at, bytes) = self.byte_range(records);
        let end = (at + bytes + FAULT_AROUND_BYTES).min(self.map.len());
        let start = at.saturating_sub(FAULT_AROUND_BYTES);
        // SAFETY: as in `for_each_chunk`.
        unsafe { system::release_pages(&self.map, start, end - start) };
    }

    /// Offset and length in bytes of the records of this range that exist.
    fn byte_range(&self, records: Range<usize>) -> (usize, usize) {
        let count = self.header.samples as usize;
        let first = records.start.min(count);
        let end = records.end.min(count);
        (HEADER_BYTES + first * Record::BYTES, end.saturating_sub(first) * Record::BYTES)
    }

    fn damage_error(&self, block: usize) -> DataError {
        let first = HEADER_BYTES + block * self.block_bytes();
        let last = (first + self.block_bytes()).min(self.records_end) - 1;
        let part = format!("block {block} of the records");
        DataError::Checksum { path: self.path.clone(), part, first: first as u64, last: last as u64 }
    }

    /// Offset of a record in the file.
    pub(crate) const fn record_offset(record: usize) -> u64 {
        HEADER_BYTES as u64 + record as u64 * Record::BYTES as u64
    }

    #[must_use]
    pub fn records(&self) -> &[Record] {
        bytemuck::cast_slice(&self.map[HEADER_BYTES..self.records_end])
    }

    /// The number of games that some record belongs to; a file may hold a part of the games that its header counts.
    #[must_use]
    pub fn count_games(&self) -> u64 {
        let mut games = GameSet::of(&self.header);
        self.records().iter().for_each(|record| games.add(record));
        games.count()
    }

    #[must_use]
    pub const fn header(&self) -> &FsdHeader {
        &self.header
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// blake3 of the samples, in hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        blake3::Hash::from_bytes(self.header.hash).to_hex().to_string()
    }
}

/// The games that records belong to: one bit per game number.
pub(crate) struct GameSet(Vec<u64>);

impl GameSet {
    pub(crate) fn of(header: &FsdHeader) -> GameSet {
        GameSet(vec![0; (header.games as usize).div_ceil(64)])
    }

    pub(crate) fn add(&mut self, record: &Record) {
        let game = record.game() as usize;
        self.0.get_mut(game / 64).into_iter().for_each(|bits| *bits |= 1 << (game % 64));
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }
}

fn is_damaged(block: &[u8], sum: &[u8]) -> bool {
    crc32fast::hash(block).to_le_bytes() != sum
}
