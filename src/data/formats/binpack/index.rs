//! A binpack's pieces as they were found, kept in a folder so that a large file is scanned once. What is kept is only
//! taken for a file of the same length, time of change and content as far as some blocks tell; anything else, and
//! whatever is damaged, counts as not there.
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | magic `FSBPIECE` |
//! | 8–39 | the [`Key`] |
//! | 40–43 | number n of pieces |
//! | 44 … 44+20n−1 | pieces: offset in the file (64 bits), bytes, samples, usable samples (32 bits each) |
//! | 4 more | CRC-32 of everything before |
//!
//! All numbers are little-endian.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{Piece, Usable};
use crate::data::DataError;
use crate::output::OutputFile;

const MAGIC: &[u8; 8] = b"FSBPIECE";
const HEAD_BYTES: usize = 44;
const PIECE_BYTES: usize = 20;
/// Raised whenever the same file would be cut into other pieces or other samples would count as usable.
const VERSION: u32 = 1;
/// Blocks of the file that the key looks at, and their length.
const LOOKS: u64 = 64;
const LOOK_BYTES: u64 = 4_096;

/// What pieces are known by: a hash of the file's length, its time of change, blocks from all over it, what is usable and
/// [`VERSION`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Key(blake3::Hash);

impl Key {
    /// # Errors
    /// When the file cannot be read.
    pub fn of(file: &File, usable: Usable) -> io::Result<Key> {
        let about = file.metadata()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&VERSION.to_le_bytes());
        hasher.update(usable.name().as_bytes());
        let length = about.len();
        for number in [length.cast_signed(), about.mtime(), about.mtime_nsec()] {
            hasher.update(&number.to_le_bytes());
        }
        let mut block = vec![0; LOOK_BYTES.min(length) as usize];
        let last = length - block.len() as u64;
        for look in 0..LOOKS {
            let at = (u128::from(last) * u128::from(look) / u128::from(LOOKS - 1)) as u64;
            file.read_exact_at(&mut block, at)?;
            hasher.update(&block);
        }
        Ok(Key(hasher.finalize()))
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.pieces", &self.0.to_hex()[..32]))
    }
}

/// The pieces of the file of `length` bytes that has this key, if they are known.
pub fn load(folder: &Path, key: &Key, length: u64) -> Option<Vec<Piece>> {
    let bytes = fs::read(key.path(folder)).ok()?;
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    let (head, pieces) = body.split_at_checked(HEAD_BYTES)?;
    let proper = head.starts_with(MAGIC)
        && head[8..40] == *key.0.as_bytes()
        && crc32fast::hash(body).to_le_bytes() == *sum
        && pieces.len() / PIECE_BYTES == word(head, 40) as usize
        && pieces.len().is_multiple_of(PIECE_BYTES);
    let pieces: Vec<Piece> = pieces.chunks_exact(PIECE_BYTES).map(piece).collect();
    let ends = |piece: &Piece| piece.offset.checked_add(u64::from(piece.bytes));
    let in_order = pieces.windows(2).all(|pair| ends(&pair[0]).is_some_and(|end| end <= pair[1].offset));
    let inside = pieces.last().and_then(ends).is_some_and(|end| end <= length);
    let sound = pieces.iter().all(|piece| piece.usable <= piece.samples);
    (proper && in_order && inside && sound).then_some(pieces)
}

fn piece(bytes: &[u8]) -> Piece {
    let offset = u64::from(word(bytes, 0)) | u64::from(word(bytes, 4)) << 32;
    Piece { offset, bytes: word(bytes, 8), samples: word(bytes, 12), usable: word(bytes, 16) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

/// Keeps pieces for the next time.
///
/// # Errors
/// When the folder cannot be written to.
pub fn store(folder: &Path, key: &Key, pieces: &[Piece]) -> Result<(), DataError> {
    fs::create_dir_all(folder).map_err(DataError::write(folder))?;
    let mut bytes = Vec::with_capacity(HEAD_BYTES + PIECE_BYTES * pieces.len() + 4);
    bytes.extend(MAGIC);
    bytes.extend(key.0.as_bytes());
    bytes.extend((pieces.len() as u32).to_le_bytes());
    for piece in pieces {
        bytes.extend(piece.offset.to_le_bytes());
        bytes.extend([piece.bytes, piece.samples, piece.usable].map(u32::to_le_bytes).as_flattened());
    }
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    let mut out = OutputFile::create(&key.path(folder))?;
    out.put(&bytes)?;
    Ok(out.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Needs;

    fn pieces() -> Vec<Piece> {
        (0..9).map(|n| Piece { offset: 8 + 100 * n, bytes: 100, samples: 40, usable: 30 + n as u32 }).collect()
    }

    #[test]
    fn pieces_come_back_for_the_same_file_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        fs::write(&path, vec![7; 1_000_000]).expect("writable");
        let open = || File::open(&path).expect("just written");
        let (cache, key) =
            (folder.path().join("not/there/yet"), Key::of(&open(), Usable::Eval(Needs::Any)).expect("readable"));
        assert_eq!(load(&cache, &key, 1_000_000), None);
        store(&cache, &key, &pieces()).expect("writable");
        assert_eq!(load(&cache, &key, 1_000_000), Some(pieces()));
        assert_eq!(Key::of(&open(), Usable::Eval(Needs::Any)).expect("readable"), key);
        for other in [Usable::Pqr, Usable::Eval(Needs::Score), Usable::Eval(Needs::Result), Usable::Eval(Needs::Both)] {
            assert_ne!(Key::of(&open(), other).expect("readable"), key);
        }
        let changed = open().metadata().expect("readable").modified().expect("a time");
        let rewrite = |bytes: Vec<u8>, modified| {
            fs::write(&path, bytes).expect("writable");
            File::options().append(true).open(&path).and_then(|file| file.set_modified(modified)).expect("writable");
            Key::of(&open(), Usable::Eval(Needs::Any)).expect("readable")
        };
        assert_eq!(rewrite(vec![7; 1_000_000], changed), key);
        assert_ne!(rewrite(vec![7; 1_000_000], changed + std::time::Duration::from_nanos(1)), key);
        assert_ne!(rewrite(vec![7; 1_000_001], changed), key);
        assert_ne!(rewrite(vec![8; 1_000_000], changed), key);
        assert_ne!(rewrite(Vec::new(), changed), key);
    }

    #[test]
    fn damage_counts_as_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        fs::write(&path, b"BINP").expect("writable");
        let key = Key::of(&File::open(&path).expect("just written"), Usable::Eval(Needs::Any)).expect("readable");
        store(folder.path(), &key, &pieces()).expect("writable");
        let stored = key.path(folder.path());
        let good = fs::read(&stored).expect("just written");
        let check = |bytes: &[u8], length, expected: Option<Vec<Piece>>| {
            fs::write(&stored, bytes).expect("writable");
            assert_eq!(load(folder.path(), &key, length), expected);
        };
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            check(&bytes, 908, None);
            check(&good[..at], 908, None);
        }
        check(&good, 907, None);
        check(&good, 908, Some(pieces()));
        // Pieces that lie in one another are refused though their sum is right.
        store(folder.path(), &key, &[pieces()[0], pieces()[0]]).expect("writable");
        assert_eq!(load(folder.path(), &key, 908), None);
    }
}
