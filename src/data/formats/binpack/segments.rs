//! Segments of a binpack, which can be decoded in any order. A segment is some thousand samples: complete chains of
//! complete games, unless the end of a chunk cuts a game. One pass over the file finds them, and counts the broken
//! parts.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::decoder::{ChunkDecoder, RecordSink};
use super::scan::{Scan, ScanProgress, scan_file};
use super::segment_cache;
use super::triplet::has_triplet;
use crate::data::formats::skipped::SkippedSamples;
use crate::data::{DataError, Method, Needs, Record};
use crate::system;

/// The segments of smaller files are not cached: scanning takes no time.
const MIN_CACHED_BYTES: u64 = 4 << 20;

/// Which samples a method can use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum UsableSamples {
    /// For eval: samples with these values.
    Eval(Needs),
    /// For pqr: samples with a move and another legal move.
    Pqr,
}

impl UsableSamples {
    /// The samples that `method` can use.
    #[must_use]
    pub const fn for_method(method: Method, needs: Needs) -> UsableSamples {
        match method {
            Method::Eval => UsableSamples::Eval(needs),
            Method::Pqr => UsableSamples::Pqr,
        }
    }

    /// A name for cache keys.
    pub(super) const fn name(self) -> &'static str {
        match self {
            UsableSamples::Pqr => "pqr",
            UsableSamples::Eval(Needs::Any) => "eval",
            UsableSamples::Eval(needs) => needs.name(),
        }
    }

    const fn method(self) -> Method {
        match self {
            UsableSamples::Eval(_) => Method::Eval,
            UsableSamples::Pqr => Method::Pqr,
        }
    }

    pub(super) fn accepts(self, record: &Record) -> bool {
        match self {
            UsableSamples::Eval(needs) => needs.met_by(record),
            UsableSamples::Pqr => has_triplet(record),
        }
    }
}

/// Consecutive chains of one chunk, all of them sound.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file.
    pub offset: u64,
    pub bytes: u32,
    /// Samples, including those that the method cannot use.
    pub samples: u32,
    /// Samples that the method can use.
    pub usable: u32,
}

/// The segments of a file, in file order.
#[derive(Debug)]
pub struct Segments {
    path: PathBuf,
    file: File,
    filter: UsableSamples,
    segments: Vec<Segment>,
    skipped: SkippedSamples,
    /// The number of each segment's first sample in the file.
    first_samples: Vec<u32>,
}

impl Segments {
    /// The file's segments from the folder `cache`, if they are there; otherwise scans the file and stores them.
    /// Without a folder, or if it cannot be written to, nothing is stored.
    ///
    /// # Errors
    /// As [`Segments::scan`].
    pub fn open(
        path: &Path,
        filter: UsableSamples,
        threads: usize,
        cache: Option<&Path>,
        progress: ScanProgress<'_>,
    ) -> Result<Segments, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        let Some(cache) = cache.filter(|_| length >= MIN_CACHED_BYTES) else {
            let scan = scan_file(path, &file, filter, threads, progress)?;
            return Segments::from_scan(path, file, filter, scan);
        };
        let key = segment_cache::Key::of(&file, filter).map_err(DataError::read(path))?;
        if let Some(scan) = segment_cache::load(cache, &key, length) {
            return Segments::from_scan(path, file, filter, scan);
        }
        let scan = scan_file(path, &file, filter, threads, progress)?;
        // A file that changed during the scan has another key. Storing is best effort.
        if segment_cache::Key::of(&file, filter).is_ok_and(|after| after == key) {
            let _ = segment_cache::store(cache, &key, &scan);
        }
        Segments::from_scan(path, file, filter, scan)
    }

    /// Scans the whole file on `threads` threads.
    ///
    /// # Errors
    /// When the file cannot be read, holds no usable sample, or more than 2^32 − 1 samples. Damage is no error: broken
    /// parts are [skipped](Segments::skipped).
    pub fn scan(
        path: &Path,
        filter: UsableSamples,
        threads: usize,
        progress: ScanProgress<'_>,
    ) -> Result<Segments, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        let scan = scan_file(path, &file, filter, threads, progress)?;
        Segments::from_scan(path, file, filter, scan)
    }

    fn from_scan(path: &Path, file: File, filter: UsableSamples, scan: Scan) -> Result<Segments, DataError> {
        let Scan { segments, skipped } = scan;
        let input = |reason: &str| DataError::Input { input: path.display().to_string(), reason: reason.into() };
        let mut first_samples = Vec::with_capacity(segments.len());
        let mut samples = 0u32;
        for segment in &segments {
            first_samples.push(samples);
            let sum = samples.checked_add(segment.samples);
            samples = sum.ok_or_else(|| input("it holds more than 2^32 − 1 samples; split it into smaller files"))?;
        }
        if segments.iter().all(|segment| segment.usable == 0) {
            let dropped = format!(": none of its {samples} samples can be used{}", skipped.describe());
            return Err(DataError::NoSamples { path: path.into(), method: filter.method(), dropped });
        }
        Ok(Segments { path: path.into(), file, filter, segments, skipped, first_samples })
    }

    /// The segments with their samples numbered after `samples` others.
    ///
    /// # Errors
    /// When there are more than 2^32 − 1 samples together.
    pub fn following(mut self, samples: u64) -> Result<Segments, DataError> {
        match u32::try_from(samples) {
            Ok(first) if samples + self.samples() <= u64::from(u32::MAX) => {
                self.first_samples.iter_mut().for_each(|sample| *sample += first);
                Ok(self)
            }
            _ => {
                let reason = "it and the files before it hold more than 2^32 − 1 samples together; give fewer".into();
                Err(DataError::Input { input: self.path.display().to_string(), reason })
            }
        }
    }

    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The number of a segment's first sample in the file, or in the data that it [follows](Segments::following).
    #[must_use]
    pub fn first_sample(&self, segment: usize) -> u32 {
        self.first_samples[segment]
    }

    /// The last segment that begins at or before the sample with this number.
    #[must_use]
    pub fn of_sample(&self, number: u32) -> Option<usize> {
        self.first_samples.partition_point(|first| *first <= number).checked_sub(1)
    }

    /// The broken parts of the file, which are left out.
    #[must_use]
    pub const fn skipped(&self) -> &SkippedSamples {
        &self.skipped
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Samples of the whole file.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.samples)).sum()
    }

    /// Decodes the usable samples of a segment into `out`, in file order; `bytes` is a buffer to reuse. A record's
    /// `game` is the sample's number in the file, not its game.
    ///
    /// # Errors
    /// When the file cannot be read, or has changed since it was scanned.
    pub fn decode(&self, segment: usize, bytes: &mut Vec<u8>, out: &mut Vec<Record>) -> Result<(), DataError> {
        let Segment { samples, usable, .. } = self.segments[segment];
        out.clear();
        out.reserve(samples as usize);
        self.decode_all(segment, bytes, out)?;
        if usable < samples {
            out.retain(|record| self.filter.accepts(record));
        }
        if out.len() == usable as usize { Ok(()) } else { Err(self.changed(segment)) }
    }

    /// As [`Segments::decode`] with all samples, including those that the method cannot use. `out` may get some more
    /// than the segment has, before the error.
    ///
    /// # Errors
    /// As [`Segments::decode`].
    pub fn decode_all(&self, segment: usize, bytes: &mut Vec<u8>, out: &mut impl RecordSink) -> Result<(), DataError> {
        let Segment { offset, bytes: length, samples, .. } = self.segments[segment];
        let mut segment_bytes = std::mem::take(bytes);
        segment_bytes.resize(length as usize, 0);
        system::read_exact_at(&self.file, &mut segment_bytes, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.changed(segment),
            _ => DataError::read(&self.path)(error),
        })?;
        let mut decoder = ChunkDecoder::unchecked(segment_bytes, self.first_samples[segment]);
        let broken = |problem| DataError::Chunk { path: self.path.clone(), chunk: offset, problem };
        // One more than expected, so that surplus samples show.
        let read = decoder.read(samples as usize + 1, out).map_err(broken)?;
        *bytes = decoder.into_bytes();
        if read == samples as usize { Ok(()) } else { Err(self.changed(segment)) }
    }

    fn changed(&self, segment: usize) -> DataError {
        let Segment { offset, bytes, .. } = self.segments[segment];
        let reason = format!("its bytes {offset} to {} changed while it was read", offset + u64::from(bytes));
        DataError::Input { input: self.path.display().to_string(), reason }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::HEADER_BYTES;
    use super::*;
    use crate::chess::{Chess, random_move};
    use crate::data::formats::{Format, SampleWriter};
    use crate::data::{GameResult, Provenance, Purpose, ScoreUnit};
    use crate::units::{Ply, Seed};
    use rand::RngExt;
    use shakmaty::Position;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn provenance(games: u64) -> Provenance {
        let purpose = Purpose::Any;
        let score_unit = ScoreUnit::Centipawns;
        Provenance { purpose, score_unit, seed: Seed(0), games: games as u32, sources: [0; 32] }
    }

    /// Writes random games as a binpack.
    pub(crate) fn games(path: &Path, count: u64) -> Vec<Record> {
        let mut all = Vec::new();
        for game in 0..count {
            let mut rng = Seed(3).stream("segments", game);
            let mut position = Chess::default();
            for ply in 0..100 {
                let Some(mv) = random_move(&position, &mut rng) else { break };
                let score = Some(rng.random_range(-500..500));
                let result = Some(if ply % 2 == 0 { GameResult::Win } else { GameResult::Loss });
                all.push(Record::of(&position, 0, Ply(ply), Some(mv), score, result).expect("fits"));
                position.play_unchecked(mv);
            }
        }
        let mut writer = SampleWriter::create(path, Format::Binpack, false).expect("writable");
        writer.push(&all).expect("writable");
        writer.finish(provenance(count)).expect("writable");
        all
    }

    #[test]
    fn segments_hold_every_sample_once_and_complete_games() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        let expected = games(&path, 300);
        let mut checked = ChunkDecoder::new(std::fs::read(&path).expect("just written")[HEADER_BYTES..].to_vec());
        let mut one = Vec::new();
        assert_eq!(checked.read(expected.len() + 1, &mut one), Ok(expected.len()));
        assert!(one == expected);
        for threads in [1, 3] {
            let segments =
                Segments::scan(&path, UsableSamples::Eval(Needs::Any), threads, &|_, _| {}).expect("a good file");
            assert!(segments.segments().len() > 3, "{}", segments.segments().len());
            assert_eq!(segments.samples(), expected.len() as u64);
            let mut bytes = Vec::new();
            let mut decoded = Vec::new();
            let mut all = Vec::new();
            for segment in 0..segments.segments().len() {
                segments.decode(segment, &mut bytes, &mut decoded).expect("as scanned");
                assert_eq!(decoded[0].ply(), Ply(0), "a segment begins with a game");
                assert_eq!(decoded[0].game() as usize, all.len());
                all.extend(decoded.iter().map(|record| record.with_game(0)));
            }
            assert!(all == expected);
        }
    }

    #[test]
    fn a_large_file_is_scanned_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        let cache = folder.path().join("cache");
        let one = games(&path, 300);
        let bytes = std::fs::read(&path).expect("just written");
        let times = MIN_CACHED_BYTES as usize / bytes.len() + 1;
        std::fs::write(&path, bytes.repeat(times)).expect("writable");
        let scanned = AtomicU64::new(0);
        let open = || {
            let count = |done, total| {
                scanned.fetch_max(done, Ordering::Relaxed);
                assert_eq!(total, (bytes.len() * times) as u64);
            };
            Segments::open(&path, UsableSamples::Eval(Needs::Any), 2, Some(&cache), &count).expect("a good file")
        };
        let first = open();
        assert_eq!(first.samples(), (one.len() * times) as u64);
        assert_eq!(scanned.swap(0, Ordering::Relaxed), (bytes.len() * times) as u64);
        let second = open();
        assert_eq!(scanned.load(Ordering::Relaxed), 0);
        assert_eq!((first.segments(), &first.first_samples), (second.segments(), &second.first_samples));
        let mut broken = bytes.repeat(times);
        *broken.last_mut().expect("not empty") ^= 0xff;
        std::fs::write(&path, &broken[..broken.len() - 1]).expect("writable");
        let open = || Segments::open(&path, UsableSamples::Eval(Needs::Any), 2, Some(&cache), &|_, _| {});
        let third = open().expect("the cut is counted");
        assert_eq!(third.skipped().by_reason_text(), "cut-off chunk: 1");
        let fourth = open().expect("as before");
        assert_eq!((third.segments(), third.skipped()), (fourth.segments(), fourth.skipped()));
    }

    #[test]
    fn damage_is_reported_with_its_location() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        games(&path, 20);
        let whole = std::fs::read(&path).expect("just written");
        let scan = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("writable");
            Segments::scan(&path, UsableSamples::Eval(Needs::Any), 2, &|_, _| {})
        };
        let check = |bytes: &[u8], expected: &str| {
            let segments = scan(bytes).expect("the rest is sound");
            assert!(segments.samples() > 0);
            let [first, ..] = &segments.skipped().examples[..] else { panic!("nothing is skipped") };
            assert!(first.to_string().contains(expected), "{first}");
        };
        check(&whole[..whole.len() - 1], "cut off");
        check(&[&whole[..], b"BI"].concat(), "cut off after 2 of 8 bytes");
        check(&[&whole[..], b"BINX0000"].concat(), "not a binpack");
        let refused = |bytes: &[u8], expected: &str| {
            let error = scan(bytes).expect_err("no sample").to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(b"", "yields no sample");
        refused(b"BINX0000", "broken chunk: 1; the first: chunk at byte 0: found");
        std::fs::write(&path, &whole).expect("writable");
        let segments = Segments::scan(&path, UsableSamples::Eval(Needs::Any), 1, &|_, _| {}).expect("whole again");
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("writable");
        let error =
            segments.decode(segments.segments().len() - 1, &mut Vec::new(), &mut Vec::new()).expect_err("cut off");
        assert!(error.to_string().contains("changed while it was read"), "{error}");
    }

    #[test]
    fn triplets_need_another_move() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        let all = games(&path, 100);
        let others = |record: &Record| record.position().expect("legal").legal_moves().len() - 1;
        let expected = all.iter().filter(|record| record.has_move() && others(record) > 0).count();
        assert!(expected < all.len() && expected > 0, "{expected} of {}", all.len());
        let segments = Segments::scan(&path, UsableSamples::Pqr, 2, &|_, _| {}).expect("a good file");
        let mut count = 0;
        for segment in 0..segments.segments().len() {
            let mut decoded = Vec::new();
            segments.decode(segment, &mut Vec::new(), &mut decoded).expect("as scanned");
            count += decoded.len();
        }
        assert_eq!(count, expected);
    }
}
