//! Detects a file's format: by its content, which each format's table recognises, then by its name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::ValueEnum;

use super::{Format, foreign};
use crate::data::DataError;
use crate::data::fsd::MAGIC;
use crate::data::input::{Compression, LOOK_BYTES, check_text, head, unpacked};

/// The first bytes of a shard of a build (`pipeline::build`), which can only be merged.
pub(crate) const SHARD_MAGIC: &[u8; 8] = b"\x89FSH\r\n\x1a\n";

/// Detects the format of the file at `path`.
///
/// # Errors
/// When the file cannot be read, can be read only once (a pipe), or has an unsupported format.
pub fn detect(path: &Path) -> Result<Format, DataError> {
    let open = || File::open(path).map_err(DataError::read(path));
    let mut file = open()?;
    let about = file.metadata().map_err(DataError::read(path))?;
    if !about.is_file() && !about.is_dir() {
        let reason = "it cannot be read twice; give - for standard input, and --from with its format";
        return Err(DataError::Input { input: path.display().to_string(), reason: reason.into() });
    }
    let head = head(&mut file).map_err(DataError::read(path))?;
    if head.as_slice() == MAGIC {
        return Ok(Format::Fsd);
    }
    if head.as_slice() == SHARD_MAGIC {
        return Err(DataError::Unsupported { path: path.into(), what: "a shard of a build (see `dataset merge`)" });
    }
    let named = format_by_name(path);
    // The bytes of a binary format may look like a compression's signature.
    let is_plain = named.is_some_and(|format| !format.table().is_text) && !has_compressed_name(path);
    let mut beginning = Vec::new();
    if is_plain {
        open()?.take(LOOK_BYTES as u64).read_to_end(&mut beginning).map_err(DataError::read(path))?;
    } else {
        // Errors are reported when the file is read.
        let Ok(found) = unpacked(open()?) else { return Ok(named.unwrap_or(Format::Pgn)) };
        beginning = found.beginning;
    }
    if beginning.starts_with(MAGIC) {
        return Err(DataError::Unsupported { path: path.into(), what: "a compressed .fsd file (decompress it first)" });
    }
    if let Some(format) = Format::value_variants().iter().find(|format| (format.table().recognises)(&beginning)) {
        return Ok(*format);
    }
    if let Some(format) = foreign::of_beginning(&beginning) {
        return Err(DataError::Foreign { path: path.into(), format });
    }
    match named {
        Some(format) if !format.table().is_text => Ok(format),
        _ => check_text(&beginning, path).map(|()| named.unwrap_or(Format::Pgn)),
    }
}

/// The format by a file's ending; the file need not exist.
#[must_use]
pub fn format_by_name(path: &Path) -> Option<Format> {
    if has_compressed_name(path) {
        return format_by_name(Path::new(path.file_stem()?));
    }
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Format::value_variants().iter().find(|format| format.table().endings.contains(&ending.as_str())).copied()
}

/// Whether a file's name has the ending of a compressed file.
pub(crate) fn has_compressed_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| matches!(ending.as_str(), "zst" | "gz" | "bz2"))
}

/// Whether a file is compressed, by its content.
///
/// # Errors
/// When it cannot be read.
pub fn is_compressed(path: &Path) -> Result<bool, DataError> {
    let mut file = File::open(path).map_err(DataError::read(path))?;
    let head = head(&mut file).map_err(DataError::read(path))?;
    Ok(Compression::of(&head) != Compression::None)
}
