//! Reads formats that are nothing but positions of 32 bytes, one after another.

use std::io::Read;
use std::path::Path;

use rayon::prelude::*;

use super::block_queue::{self, BLOCK_SAMPLES, BlockSender};
use super::format_table::FormatTable;
use super::skipped::SkippedSample;
use crate::data::{DataError, Record};

pub const BYTES: usize = 32;
pub type Entry = [u8; BYTES];

/// A file whose first entries, this many or more, include no position is of another format.
const PROBED_ENTRIES: usize = 16;

/// Why 32 bytes are not a position.
pub struct EntryError {
    pub reason: &'static str,
    pub message: String,
}

/// Sends the positions of a file of `format`; those that cannot be decoded are skipped and counted.
///
/// # Errors
/// When the file cannot be read to its end, is no multiple of 32 bytes long, begins without any position, or is
/// compressed and its name does not say so.
pub fn read(
    reader: Box<dyn Read + Send>,
    path: &Path,
    sender: &mut BlockSender,
    format: &FormatTable,
    decode: fn(&Entry) -> Result<Record, EntryError>,
) -> Result<(), DataError> {
    let mut reader = block_queue::unpacked_by_name(reader, path, &sender.state).map_err(DataError::read(path))?;
    let mut bytes = Vec::new();
    let mut first = 0;
    loop {
        bytes.clear();
        reader.by_ref().take((BLOCK_SAMPLES * BYTES) as u64).read_to_end(&mut bytes).map_err(DataError::read(path))?;
        let (entries, rest) = bytes.as_chunks::<BYTES>();
        let decoded: Vec<Result<Record, EntryError>> =
            sender.decoders.install(|| entries.par_iter().map(decode).collect());
        if first == 0 && decoded.iter().all(Result::is_err) {
            block_queue::check_not_compressed(&bytes, path, format)?;
        }
        let mut records = Vec::with_capacity(entries.len());
        for (entry, index) in decoded.into_iter().zip(first..) {
            match entry {
                Ok(record) => records.push(record),
                Err(error) => {
                    let location = format!("position {index} (byte {})", index * BYTES as u64);
                    sender.skip(error.reason, SkippedSample { location, message: error.message });
                }
            }
        }
        if first == 0 && entries.len() >= PROBED_ENTRIES && records.is_empty() {
            return Err(DataError::NoEntries { path: path.into(), format: format.name, entries: entries.len() });
        }
        first += entries.len() as u64;
        if !sender.send(records)? {
            return Ok(());
        }
        if !rest.is_empty() {
            let bytes = first * BYTES as u64 + rest.len() as u64;
            let format = format.name;
            return Err(DataError::PartialEntry { path: path.into(), format, bytes, each: BYTES as u64 });
        }
        if entries.len() < BLOCK_SAMPLES {
            return Ok(());
        }
    }
}
