//! Which format a file is in: by its first bytes where the format has a signature, then by its name, then by its first
//! line. The one place that tells; what it takes for text is looked at again by those who read it.

use std::fs::File;
use std::path::Path;

use super::{Format, binpack, text};
use crate::data::DataError;
use crate::data::input::{Compression, Unpacked, check_text, head, unpacked};
use crate::data::writer::MAGIC;

/// # Errors
/// When the file cannot be read, can be read only once (a pipe), or is of a kind that is not read here.
pub fn detect(path: &Path) -> Result<Format, DataError> {
    let open = || File::open(path).map_err(DataError::read(path));
    let mut file = open()?;
    let about = file.metadata().map_err(DataError::read(path))?;
    if !about.is_file() && !about.is_dir() {
        let reason = "it is no file that can be read twice; give - for standard input, and --from with its format";
        return Err(DataError::Input { input: path.display().to_string(), reason: reason.into() });
    }
    let head = head(&mut file).map_err(DataError::read(path))?;
    if head.as_slice() == MAGIC {
        return Ok(Format::Fsd);
    }
    if head.starts_with(binpack::MAGIC) {
        return Ok(Format::Binpack);
    }
    let named = by_name(path);
    if let Some(format @ (Format::Fsd | Format::Binpack | Format::Bullet)) = named
        && !named_compressed(path)
    {
        return Ok(format);
    }
    // Trouble is told when the file is read.
    let Ok(Unpacked { beginning, .. }) = unpacked(open()?) else { return Ok(named.unwrap_or(Format::Pgn)) };
    match named {
        _ if beginning.starts_with(MAGIC) => {
            Err(DataError::Unsupported { path: path.into(), what: "a compressed .fsd file (decompress it first)" })
        }
        _ if beginning.starts_with(binpack::MAGIC) => Ok(Format::Binpack),
        Some(format @ (Format::Fsd | Format::Binpack | Format::Bullet)) => Ok(format),
        _ => {
            check_text(&beginning, path)?;
            Ok(named.unwrap_or_else(|| if begins_with_sample(&beginning) { Format::Text } else { Format::Pgn }))
        }
    }
}

/// What a file's ending says; also of a file that is still to be written.
pub(crate) fn by_name(path: &Path) -> Option<Format> {
    if named_compressed(path) {
        return by_name(Path::new(path.file_stem()?));
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

/// Whether a file's name ends as compressed files' do.
pub(super) fn named_compressed(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| matches!(ending.as_str(), "zst" | "gz" | "bz2"))
}

/// Whether a file is compressed, whatever its name.
///
/// # Errors
/// When it cannot be read.
pub fn is_compressed(path: &Path) -> Result<bool, DataError> {
    let mut file = File::open(path).map_err(DataError::read(path))?;
    let head = head(&mut file).map_err(DataError::read(path))?;
    Ok(Compression::of(&head) != Compression::None)
}

/// Whether the first line that is not empty looks like a sample's.
fn begins_with_sample(beginning: &[u8]) -> bool {
    let line = beginning.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    line.is_some_and(text::looks_like)
}
