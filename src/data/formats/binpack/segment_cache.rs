//! A cache of the segments of large binpacks, so that each file is scanned once. An entry is used only for a file of
//! the same length, modification time and content, as far as sampled blocks show; otherwise, and when it is damaged, it
//! is ignored.
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | magic `FSBPIECE` |
//! | 8–39 | the [`Key`] |
//! | 40–43 | number n of segments |
//! | 44 … 44+20n−1 | segments: offset in the file (64 bits), bytes, samples, usable samples (32 bits each) |
//! | … | what is broken in the file, as JSON |
//! | 4 more | CRC-32 of everything before |
//!
//! All numbers are little-endian.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::scan::Scan;
use super::{Segment, UsableSamples};
use crate::data::DataError;
use crate::json;
use crate::output::OutputFile;
use crate::system;

const MAGIC: &[u8; 8] = b"FSBPIECE";
const HEAD_BYTES: usize = 44;
const SEGMENT_BYTES: usize = 20;
/// Raised when segments are cut differently or other samples become usable.
const VERSION: u32 = 2;
/// Blocks of the file that enter the key, and their length.
const LOOKS: u64 = 64;
const LOOK_BYTES: u64 = 4_096;

/// Key of a cache entry: a hash of the file's length, its modification time, blocks from all over it, the sample filter
/// and [`VERSION`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Key(blake3::Hash);

impl Key {
    /// # Errors
    /// When the file cannot be read.
    pub fn of(file: &File, usable: UsableSamples) -> io::Result<Key> {
        let about = file.metadata()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&VERSION.to_le_bytes());
        hasher.update(usable.name().as_bytes());
        let length = about.len();
        let modified = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_else(|before| before.duration());
        for number in [length, modified.as_secs(), u64::from(modified.subsec_nanos())] {
            hasher.update(&number.to_le_bytes());
        }
        let mut block = vec![0; LOOK_BYTES.min(length) as usize];
        let last = length - block.len() as u64;
        for look in 0..LOOKS {
            let at = (u128::from(last) * u128::from(look) / u128::from(LOOKS - 1)) as u64;
            system::read_exact_at(file, &mut block, at)?;
            hasher.update(&block);
        }
        Ok(Key(hasher.finalize()))
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.pieces", &self.0.to_hex()[..32]))
    }
}

/// The cached scan of the file of `length` bytes with this key.
pub fn load(folder: &Path, key: &Key, length: u64) -> Option<Scan> {
    let bytes = fs::read(key.path(folder)).ok()?;
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    let (head, rest) = body.split_at_checked(HEAD_BYTES)?;
    let proper =
        head.starts_with(MAGIC) && head[8..40] == *key.0.as_bytes() && crc32fast::hash(body).to_le_bytes() == *sum;
    let (segments, skipped) = rest.split_at_checked((word(head, 40) as usize).checked_mul(SEGMENT_BYTES)?)?;
    let skipped = json::from_bytes(skipped).ok()?;
    let segments: Vec<Segment> = segments.chunks_exact(SEGMENT_BYTES).map(segment).collect();
    let ends = |segment: &Segment| segment.offset.checked_add(u64::from(segment.bytes));
    let in_order = segments.windows(2).all(|pair| ends(&pair[0]).is_some_and(|end| end <= pair[1].offset));
    let inside = segments.last().and_then(ends).is_some_and(|end| end <= length);
    let sound = segments.iter().all(|segment| segment.usable <= segment.samples);
    (proper && in_order && inside && sound).then_some(Scan { segments, skipped })
}

fn segment(bytes: &[u8]) -> Segment {
    let offset = u64::from(word(bytes, 0)) | u64::from(word(bytes, 4)) << 32;
    Segment { offset, bytes: word(bytes, 8), samples: word(bytes, 12), usable: word(bytes, 16) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

/// Stores a scan in the cache.
///
/// # Errors
/// When the folder cannot be written to.
pub fn store(folder: &Path, key: &Key, scan: &Scan) -> Result<(), DataError> {
    let Scan { segments, skipped } = scan;
    let skipped = json::to_bytes(skipped).map_err(|error| DataError::write(folder)(error.into()))?;
    fs::create_dir_all(folder).map_err(DataError::write(folder))?;
    let mut bytes = Vec::with_capacity(HEAD_BYTES + SEGMENT_BYTES * segments.len() + 4);
    bytes.extend(MAGIC);
    bytes.extend(key.0.as_bytes());
    bytes.extend((segments.len() as u32).to_le_bytes());
    for segment in segments {
        bytes.extend(segment.offset.to_le_bytes());
        bytes.extend([segment.bytes, segment.samples, segment.usable].map(u32::to_le_bytes).as_flattened());
    }
    bytes.extend(skipped);
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
    use crate::data::formats::skipped::{SkippedSample, SkippedSamples};

    fn segments(numbers: &[u64]) -> Scan {
        let segment = |n: &u64| Segment { offset: 8 + 100 * n, bytes: 100, samples: 40, usable: 30 + *n as u32 };
        let mut skipped = SkippedSamples::default();
        skipped.add("broken chain", || SkippedSample { location: "chunk at byte 0".into(), message: "odd".into() });
        Scan { segments: numbers.iter().map(segment).collect(), skipped }
    }

    fn scan() -> Scan {
        segments(&[0, 1, 2, 3, 4, 5, 6, 7, 8])
    }

    #[test]
    fn segments_are_loaded_for_the_same_file_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        fs::write(&path, vec![7; 1_000_000]).expect("writable");
        let open = || File::open(&path).expect("just written");
        let cache = folder.path().join("not/there/yet");
        let key = Key::of(&open(), UsableSamples::Eval(Needs::Any)).expect("readable");
        assert_eq!(load(&cache, &key, 1_000_000), None);
        store(&cache, &key, &scan()).expect("writable");
        assert_eq!(load(&cache, &key, 1_000_000), Some(scan()));
        assert_eq!(Key::of(&open(), UsableSamples::Eval(Needs::Any)).expect("readable"), key);
        for other in [
            UsableSamples::Pqr,
            UsableSamples::Eval(Needs::Score),
            UsableSamples::Eval(Needs::Result),
            UsableSamples::Eval(Needs::Both),
        ] {
            assert_ne!(Key::of(&open(), other).expect("readable"), key);
        }
        let changed = open().metadata().expect("readable").modified().expect("a time");
        let rewrite = |bytes: Vec<u8>, modified| {
            fs::write(&path, bytes).expect("writable");
            File::options().append(true).open(&path).and_then(|file| file.set_modified(modified)).expect("writable");
            Key::of(&open(), UsableSamples::Eval(Needs::Any)).expect("readable")
        };
        assert_eq!(rewrite(vec![7; 1_000_000], changed), key);
        assert_ne!(rewrite(vec![7; 1_000_000], changed + std::time::Duration::from_nanos(1)), key);
        assert_ne!(rewrite(vec![7; 1_000_001], changed), key);
        assert_ne!(rewrite(vec![8; 1_000_000], changed), key);
        assert_ne!(rewrite(Vec::new(), changed), key);
    }

    #[test]
    fn damaged_entries_are_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        fs::write(&path, b"BINP").expect("writable");
        let key =
            Key::of(&File::open(&path).expect("just written"), UsableSamples::Eval(Needs::Any)).expect("readable");
        store(folder.path(), &key, &scan()).expect("writable");
        let stored = key.path(folder.path());
        let good = fs::read(&stored).expect("just written");
        let check = |bytes: &[u8], length, expected: Option<Scan>| {
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
        check(&good, 908, Some(scan()));
        // Overlapping segments are refused although the checksum is right.
        store(folder.path(), &key, &segments(&[0, 0])).expect("writable");
        assert_eq!(load(folder.path(), &key, 908), None);
    }
}
