//! Which format a file is in: by its first bytes where the format has a signature, then by its name, then by its first
//! line.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;

use super::{Format, binpack, stream, text};
use crate::data::DataError;
use crate::data::input::head;
use crate::data::writer::MAGIC;

/// Longest first line that is looked at.
const LOOK_BYTES: u64 = 4096;

/// # Errors
/// When the file cannot be read.
pub fn detect(path: &Path) -> Result<Format, DataError> {
    let mut file = File::open(path).map_err(DataError::read(path))?;
    let head = head(&mut file).map_err(DataError::read(path))?;
    if head.as_slice() == MAGIC {
        return Ok(Format::Fsd);
    }
    if head.starts_with(binpack::MAGIC) {
        return Ok(Format::Binpack);
    }
    Ok(match by_name(path) {
        Some(format) => format,
        None if begins_with_sample(path) => Format::Text,
        None => Format::Pgn,
    })
}

/// What a file's ending says; also of a file that is still to be written.
pub(super) fn by_name(path: &Path) -> Option<Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "fsd" => Some(Format::Fsd),
        "binpack" => Some(Format::Binpack),
        "bullet" | "bin" | "data" | "bf" => Some(Format::Bullet),
        "txt" | "csv" | "text" => Some(Format::Text),
        "pgn" => Some(Format::Pgn),
        "zst" | "gz" | "bz2" => {
            by_name(Path::new(path.file_stem()?)).filter(|format| matches!(format, Format::Pgn | Format::Text))
        }
        _ => None,
    }
}

/// Whether the first line that is not empty looks like a sample's. Trouble is told when the file is read.
fn begins_with_sample(path: &Path) -> bool {
    let Ok(Ok((reader, _))) = File::open(path).map(stream::text) else { return false };
    let mut reader = reader.take(LOOK_BYTES);
    let mut line = Vec::new();
    while line.trim_ascii().is_empty() {
        line.clear();
        if !matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
            return false;
        }
    }
    text::looks_like(&line)
}
