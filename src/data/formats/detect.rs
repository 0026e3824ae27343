//! Detects a file's format: by its signature, then by its name, then by its first line. Text found here is checked
//! again when it is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{ForeignFormat, Format, binpack, foreign, text};
use crate::data::DataError;
use crate::data::fsd::MAGIC;
use crate::data::input::{Compression, LOOK_BYTES, Unpacked, check_text, head, unpacked};

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
    if head.starts_with(binpack::MAGIC) {
        return Ok(Format::Binpack);
    }
    let named = format_by_name(path);
    if let Some(format @ (Format::Fsd | Format::Binpack | Format::Bullet)) = named
        && !has_compressed_name(path)
    {
        let mut beginning = Vec::new();
        open()?.take(LOOK_BYTES as u64).read_to_end(&mut beginning).map_err(DataError::read(path))?;
        return refuse_foreign(foreign::of_binary(&beginning), path).map(|()| format);
    }
    // Errors are reported when the file is read.
    let Ok(Unpacked { beginning, .. }) = unpacked(open()?) else { return Ok(named.unwrap_or(Format::Pgn)) };
    match named {
        _ if beginning.starts_with(MAGIC) => {
            Err(DataError::Unsupported { path: path.into(), what: "a compressed .fsd file (decompress it first)" })
        }
        _ if beginning.starts_with(binpack::MAGIC) => Ok(Format::Binpack),
        Some(format @ (Format::Fsd | Format::Binpack | Format::Bullet)) => {
            refuse_foreign(foreign::of_binary(&beginning), path).map(|()| format)
        }
        _ => {
            refuse_foreign(foreign::of_binary(&beginning), path)?;
            check_text(&beginning, path)?;
            refuse_foreign(foreign::of_text(&beginning), path)?;
            Ok(named.unwrap_or_else(|| if begins_with_sample(&beginning) { Format::Text } else { Format::Pgn }))
        }
    }
}

fn refuse_foreign(found: Option<ForeignFormat>, path: &Path) -> Result<(), DataError> {
    found.map_or(Ok(()), |format| Err(DataError::Foreign { path: path.into(), format }))
}

/// The format by a file's ending; the file need not exist.
pub(crate) fn format_by_name(path: &Path) -> Option<Format> {
    if has_compressed_name(path) {
        return format_by_name(Path::new(path.file_stem()?));
    }
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "fsd" => Some(Format::Fsd),
        "binpack" => Some(Format::Binpack),
        "bullet" | "bin" | "data" | "bf" => Some(Format::Bullet),
        "txt" | "csv" | "text" => Some(Format::Text),
        "pgn" => Some(Format::Pgn),
        _ => None,
    }
}

/// Whether a file's name has the ending of a compressed file.
pub(super) fn has_compressed_name(path: &Path) -> bool {
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

/// Whether the first line that is not empty looks like a sample.
fn begins_with_sample(beginning: &[u8]) -> bool {
    let line = beginning.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    line.is_some_and(text::looks_like_sample)
}
