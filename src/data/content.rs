//! A hash of a file's contents, whatever its name and folder.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::fsd::MAGIC;
use super::input::{hash_file, head};
use super::{DataError, FsdHeader};

/// Files up to this size are hashed completely.
const FULL_HASH_BYTES: u64 = 256 << 20;
/// Number of stretches hashed of a larger file; they are evenly spread and include its first and last byte.
const STRETCHES: u64 = 64;
/// Length of a stretch.
const STRETCH_BYTES: u64 = 1 << 20;

/// A hash of a file's contents, in hexadecimal. For a `.fsd` file it is the hash of its samples, for other files blake3
/// of the bytes; above 256 MiB, of the length and of 64 MiB evenly spread.
///
/// # Errors
/// When the file cannot be read.
pub fn content_hash(path: &Path) -> Result<String, DataError> {
    let mut file = File::open(path).map_err(DataError::read(path))?;
    if head(&mut file).map_err(DataError::read(path))? == MAGIC {
        return Ok(blake3::Hash::from_bytes(FsdHeader::load(path)?.hash).to_hex().to_string());
    }
    let length = path.metadata().map_err(DataError::read(path))?.len();
    let hash = if length <= FULL_HASH_BYTES { hash_file(path)?.1 } else { hash_stretches(path, length)? };
    Ok(hash.to_hex().to_string())
}

fn hash_stretches(path: &Path, length: u64) -> Result<blake3::Hash, DataError> {
    let mut file = File::open(path).map_err(DataError::read(path))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&length.to_le_bytes());
    for stretch in 0..STRETCHES {
        let start = (length - STRETCH_BYTES) / (STRETCHES - 1) * stretch;
        let start = if stretch + 1 == STRETCHES { length - STRETCH_BYTES } else { start };
        file.seek(SeekFrom::Start(start)).map_err(DataError::read(path))?;
        hasher.update_reader(file.by_ref().take(STRETCH_BYTES)).map_err(DataError::read(path))?;
    }
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_changes_nothing_and_a_byte_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, length: u64, odd: u64| {
            let path = folder.path().join(name);
            let mut file = File::create(&path).expect("created");
            // The file is sparse: only the odd byte takes space.
            file.set_len(length).expect("grown");
            file.seek(SeekFrom::Start(odd)).expect("sought");
            std::io::Write::write_all(&mut file, b"x").expect("written");
            content_hash(&path).expect("hashed")
        };
        let small = file("a.pgn", 1000, 10);
        assert_eq!(file("b.pgn", 1000, 10), small);
        assert_ne!(file("c.pgn", 1000, 11), small);
        let large = file("d.pgn", FULL_HASH_BYTES + 5, 0);
        assert_eq!(file("e.pgn", FULL_HASH_BYTES + 5, 0), large);
        assert_ne!(file("f.pgn", FULL_HASH_BYTES + 5, FULL_HASH_BYTES + 4), large);
        assert_ne!(file("g.pgn", FULL_HASH_BYTES + 6, 0), large);
    }
}
