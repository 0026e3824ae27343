//! A `.fsd` file mapped into memory. The layout stands in `writer.rs`.
#![allow(unsafe_code, reason = "maps the file into memory")]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::{Advice, Mmap, UncheckedAdvice};
use rayon::prelude::*;

use super::writer::HEADER_BYTES;
use super::{DataError, Header, Method, Record};

/// Touching a page maps those around it, too, so far on either side.
const AROUND: usize = 64 << 10;

/// Bytes checked at once by all cores.
const GROUP_BYTES: usize = 32 << 20;

/// The samples of a `.fsd` file, whole and undamaged: opening checks the length and every checksum. As long as it is open
/// nobody may shorten the file: reading what is gone ends the process ([`tell_when_cut_off`](super::tell_when_cut_off)).
#[derive(Debug)]
pub struct Fsd {
    path: PathBuf,
    header: Header,
    map: Mmap,
    /// Where the records end in `map`.
    records_end: usize,
}

impl Fsd {
    /// # Errors
    /// When the file is missing, is no `.fsd` file of this version, was cut off, or is damaged.
    pub fn open(path: &Path) -> Result<Fsd, DataError> {
        let fsd = Fsd::open_unchecked(path)?;
        fsd.verify()?;
        Ok(fsd)
    }

    /// As [`open`](Fsd::open), but the records may be damaged.
    pub(crate) fn open_unchecked(path: &Path) -> Result<Fsd, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        if length < HEADER_BYTES as u64 {
            return Err(DataError::NotFsd { path: path.into(), reason: format!("it is {length} bytes long") });
        }
        // SAFETY: `.fsd` files are written elsewhere and renamed into place, never changed where they stand, so nothing
        // shortens or alters the mapped pages.
        let map = unsafe { Mmap::map(&file) }.map_err(DataError::read(path))?;
        let Some((head, _)) = map.split_first_chunk::<HEADER_BYTES>() else {
            return Err(DataError::NotFsd { path: path.into(), reason: "it has no header".into() });
        };
        let header = Header::from_bytes(head, path)?;
        let expected = header.file_bytes().unwrap_or(u64::MAX);
        if expected != map.len() as u64 {
            return Err(DataError::Length { path: path.into(), found: map.len() as u64, expected });
        }
        let records_end = HEADER_BYTES + header.samples as usize * Record::BYTES;
        Ok(Fsd { path: path.into(), header, map, records_end })
    }

    /// As [`open`](Fsd::open), and built for `method`.
    ///
    /// # Errors
    /// As `open`, or when the file was built for another method.
    pub fn open_for(path: &Path, method: Method) -> Result<Fsd, DataError> {
        let fsd = Fsd::open(path)?;
        if fsd.header.purpose == method.into() {
            Ok(fsd)
        } else {
            Err(DataError::Method { path: path.into(), found: fsd.header.purpose, wanted: method })
        }
    }

    /// Checks every block's checksum.
    ///
    /// # Errors
    /// The first damaged block.
    pub fn verify(&self) -> Result<(), DataError> {
        self.damaged(1).pop().map_or(Ok(()), |block| Err(self.damage(block)))
    }

    /// Every damaged block, in order.
    pub(crate) fn damages(&self) -> Vec<DataError> {
        self.damaged(usize::MAX).into_iter().map(|block| self.damage(block)).collect()
    }

    /// The first `most` damaged blocks.
    fn damaged(&self, most: usize) -> Vec<usize> {
        let mut damaged = Vec::new();
        let mut before = 0;
        let group = GROUP_BYTES.div_ceil(self.block_bytes());
        let mut sums = self.map[self.records_end..].chunks(4 * group);
        let _ = self.each_chunk(group * self.header.samples_per_block as usize, |records| {
            let blocks = bytemuck::cast_slice::<Record, u8>(records).par_chunks(self.block_bytes());
            let sums = sums.next().unwrap_or(&[]).par_chunks_exact(4);
            let count = blocks.len();
            let bad = blocks.zip(sums).enumerate().filter(|(_, (block, sum))| is_damaged(block, sum));
            damaged.extend(bad.map(|(block, _)| before + block).collect::<Vec<_>>());
            before += count;
            if damaged.len() < most { Ok(()) } else { Err(()) }
        });
        damaged.truncate(most);
        damaged
    }

    fn block_bytes(&self) -> usize {
        self.header.samples_per_block as usize * Record::BYTES
    }

    /// Visits all records in order, `count` at a time, until an error. What was visited takes no memory any more: it
    /// comes from the file again when it is needed.
    ///
    /// # Errors
    /// What `visit` returns.
    pub fn each_chunk<E>(&self, count: usize, mut visit: impl FnMut(&[Record]) -> Result<(), E>) -> Result<(), E> {
        let mut at = HEADER_BYTES;
        for records in self.records().chunks(count) {
            visit(records)?;
            let bytes = size_of_val(records);
            // SAFETY: the pages are a read-only view of a file that never changes where it stands, so they come back
            // as they were. Advice that cannot be followed is none.
            let _ = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, at, bytes) };
            at += bytes;
        }
        Ok(())
    }

    /// Says that these records will soon be read, so that they come from the disk together.
    pub fn will_need(&self, records: Range<usize>) {
        let (at, bytes) = self.bytes_of(records);
        // Advice that cannot be followed is none.
        let _ = self.map.advise_range(Advice::WillNeed, at, bytes);
    }

    /// Says that these records will not be read for a while: they take no memory any more, and come from the file again.
    pub fn let_go(&self, records: Range<usize>) {
        let (at, bytes) = self.bytes_of(records);
        let end = (at + bytes + AROUND).min(self.map.len());
        let (at, bytes) = (at.saturating_sub(AROUND), end - at.saturating_sub(AROUND));
        // SAFETY: as in `each_chunk`.
        let _ = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, at, bytes) };
    }

    /// Where records stand in the file, and how long they are; those beyond the last one left out.
    fn bytes_of(&self, records: Range<usize>) -> (usize, usize) {
        let count = self.header.samples as usize;
        let (first, end) = (records.start.min(count), records.end.min(count));
        (HEADER_BYTES + first * Record::BYTES, end.saturating_sub(first) * Record::BYTES)
    }

    fn damage(&self, block: usize) -> DataError {
        let first = HEADER_BYTES + block * self.block_bytes();
        let last = (first + self.block_bytes()).min(self.records_end) - 1;
        let part = format!("block {block} of the records");
        DataError::Checksum { path: self.path.clone(), part, first: first as u64, last: last as u64 }
    }

    /// Where a record stands in the file.
    pub(crate) const fn offset(record: usize) -> u64 {
        HEADER_BYTES as u64 + record as u64 * Record::BYTES as u64
    }

    #[must_use]
    pub fn records(&self) -> &[Record] {
        bytemuck::cast_slice(&self.map[HEADER_BYTES..self.records_end])
    }

    #[must_use]
    pub const fn header(&self) -> &Header {
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

fn is_damaged(block: &[u8], sum: &[u8]) -> bool {
    crc32fast::hash(block).to_le_bytes() != sum
}
