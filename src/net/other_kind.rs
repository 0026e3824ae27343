//! Names what often stands in a network's place: empty, compressed and downloaded files of other kinds.

use std::path::Path;

use super::NetError;
use super::nnue::NnueError;
use crate::data::{Compression, other_file};

/// Why `bytes`, which could not be read as a network, are none; `None` if they show nothing.
pub(super) fn other_kind(path: &Path, bytes: &[u8]) -> Option<NetError> {
    let what = |what: String| Some(NetError::NotNetwork { path: path.into(), what });
    if bytes.is_empty() {
        return what("an empty file".into());
    }
    let compression = Compression::of(bytes);
    if compression != Compression::None {
        return what(format!("a compressed file ({}; decompress it first)", compression.name()));
    }
    let beginning = &bytes[..bytes.len().min(4096)];
    if let Some(found) = other_file(beginning) {
        return what(found.into());
    }
    if beginning.len() > 8 && is_text(beginning) {
        return what("text".into());
    }
    let is_nnue = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("nnue"));
    let version = bytes.first_chunk().map(|version| u32::from_le_bytes(*version)).filter(|_| is_nnue)?;
    Some(NetError::Nnue { path: path.into(), reason: NnueError::Version(version) })
}

/// Whether bytes are UTF-8 without control characters but blanks and line ends.
fn is_text(bytes: &[u8]) -> bool {
    let has_control = bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
    !has_control && std::str::from_utf8(bytes).is_ok()
}
