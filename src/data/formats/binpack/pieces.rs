//! A binpack as pieces that are decoded in any order: some thousand samples each, whole chains, of whole games but
//! for those that a chunk's end cuts: what follows it is another piece. Finding them takes one pass over the file, which
//! also tells whether all of it can be read.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::choice::has_triplet;
use super::read::{Chunk, Decoder};
use super::{ChunkError, HEADER_BYTES, index};
use crate::data::formats::numbers::GameNumbers;
use crate::data::{DataError, Method, Needs, Record};

/// Samples after which a piece ends at the next game.
const PIECE_SAMPLES: usize = 4_096;

/// Pieces of smaller files are not kept: finding them takes no time.
const KEPT_FROM_BYTES: u64 = 4 << 20;

/// What makes a sample usable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Usable {
    /// For eval: what it must hold.
    Eval(Needs),
    /// For pqr: a move and another legal one.
    Pqr,
}

impl Usable {
    /// By `method`.
    #[must_use]
    pub const fn for_method(method: Method, needs: Needs) -> Usable {
        match method {
            Method::Eval => Usable::Eval(needs),
            Method::Pqr => Usable::Pqr,
        }
    }

    /// Names it in the key of an index.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Usable::Pqr => "pqr",
            Usable::Eval(Needs::Any) => "eval",
            Usable::Eval(needs) => needs.name(),
        }
    }

    const fn method(self) -> Method {
        match self {
            Usable::Eval(_) => Method::Eval,
            Usable::Pqr => Method::Pqr,
        }
    }

    fn holds(self, record: &Record) -> bool {
        match self {
            Usable::Eval(needs) => needs.met_by(record),
            Usable::Pqr => has_triplet(record),
        }
    }
}

/// Called with the bytes scanned and those of the whole file.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Chains that stand together in one chunk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Of the file.
    pub offset: u64,
    pub bytes: u32,
    /// Samples, those that the method cannot use among them.
    pub samples: u32,
    /// Samples that the method can use.
    pub usable: u32,
}

/// The pieces of one file, in its order.
#[derive(Debug)]
pub struct Pieces {
    path: PathBuf,
    file: File,
    wanted: Usable,
    pieces: Vec<Piece>,
    /// Number of each piece's first sample in the file.
    first: Vec<u32>,
}

/// A chunk's place in the file.
#[derive(Copy, Clone, Debug)]
struct Place {
    offset: u64,
    bytes: u32,
}

impl Pieces {
    /// The pieces as they were found the last time, where `cache` still has them; scans the file otherwise and keeps what
    /// it finds there. Without a folder, or where it cannot be written to, nothing is kept.
    ///
    /// # Errors
    /// As [`Pieces::scan`].
    pub fn open(
        path: &Path,
        wanted: Usable,
        threads: usize,
        cache: Option<&Path>,
        progress: Progress<'_>,
    ) -> Result<Pieces, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        let Some(cache) = cache.filter(|_| length >= KEPT_FROM_BYTES) else {
            return Pieces::found(path, file, wanted, threads, progress);
        };
        let key = index::Key::of(&file, wanted).map_err(DataError::read(path))?;
        if let Some(known) = index::load(cache, &key, length) {
            return Pieces::of(path, file, wanted, known);
        }
        let pieces = Pieces::found(path, file, wanted, threads, progress)?;
        // A file that changed meanwhile has another key. Pieces that cannot be kept are found anew.
        if index::Key::of(&pieces.file, wanted).is_ok_and(|after| after == key) {
            let _ = index::store(cache, &key, &pieces.pieces);
        }
        Ok(pieces)
    }

    /// Reads the whole file once, on `threads` threads.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged, holds nothing that can be used, or more than 2^32 − 1 samples.
    pub fn scan(path: &Path, wanted: Usable, threads: usize, progress: Progress<'_>) -> Result<Pieces, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        Pieces::found(path, file, wanted, threads, progress)
    }

    fn found(
        path: &Path,
        file: File,
        wanted: Usable,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<Pieces, DataError> {
        let places = places(&file, path)?;
        let mut pieces: Vec<Piece> = Vec::new();
        for scanned in each_chunk(&file, path, wanted, &places, threads, progress) {
            pieces.extend(scanned?);
        }
        Pieces::of(path, file, wanted, pieces)
    }

    fn of(path: &Path, file: File, wanted: Usable, pieces: Vec<Piece>) -> Result<Pieces, DataError> {
        let input = |reason: &str| DataError::Input { input: path.display().to_string(), reason: reason.into() };
        let mut first = Vec::with_capacity(pieces.len());
        let mut samples = 0u32;
        for piece in &pieces {
            first.push(samples);
            let sum = samples.checked_add(piece.samples);
            samples = sum.ok_or_else(|| input("it holds more than 2^32 − 1 samples; split it into smaller files"))?;
        }
        if pieces.iter().all(|piece| piece.usable == 0) {
            let dropped = format!(": none of its {samples} samples can be used");
            return Err(DataError::NoSamples { path: path.into(), method: wanted.method(), dropped });
        }
        Ok(Pieces { path: path.into(), file, wanted, pieces, first })
    }

    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Samples of the whole file.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.samples)).sum()
    }

    /// Puts the usable samples of a piece into `out`, in the file's order; `bytes` is scratch. Instead of its game a
    /// record's `game` is its sample's number in the file.
    ///
    /// # Errors
    /// When the file cannot be read, or is no longer what was scanned.
    pub fn decode(&self, piece: usize, bytes: &mut Vec<u8>, out: &mut Vec<Record>) -> Result<(), DataError> {
        let Piece { offset, bytes: length, samples, usable } = self.pieces[piece];
        let mut taken = std::mem::take(bytes);
        taken.resize(length as usize, 0);
        let changed = || {
            let reason = format!("its bytes {offset} to {} changed while it was read", offset + u64::from(length));
            DataError::Input { input: self.path.display().to_string(), reason }
        };
        self.file.read_exact_at(&mut taken, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => changed(),
            _ => DataError::read(&self.path)(error),
        })?;
        let mut decoder = Decoder::known(taken, self.first[piece]);
        out.clear();
        out.reserve(samples as usize);
        let broken = |problem| DataError::Chunk { path: self.path.clone(), chunk: offset, problem };
        // One more than there should be, to notice it.
        let read = decoder.read(samples as usize + 1, out).map_err(broken)?;
        *bytes = decoder.into_bytes();
        if usable < samples {
            out.retain(|record| self.wanted.holds(record));
        }
        if (read, out.len()) == (samples as usize, usable as usize) {
            return Ok(());
        }
        Err(changed())
    }
}

/// Where the chunks stand. What headers claim is compared with the file's length.
fn places(file: &File, path: &Path) -> Result<Vec<Place>, DataError> {
    let length = file.metadata().map_err(DataError::read(path))?.len();
    let mut places = Vec::new();
    let mut at = 0;
    while at < length {
        let broken = |problem| DataError::Chunk { path: path.into(), chunk: at, problem };
        let mut header = [0; HEADER_BYTES];
        let there = (length - at).min(HEADER_BYTES as u64) as usize;
        file.read_exact_at(&mut header[..there], at).map_err(DataError::read(path))?;
        let size = super::read::size_in(&header[..there]).map_err(broken)?;
        let (offset, left) = (at + HEADER_BYTES as u64, length - at - HEADER_BYTES as u64);
        if size > left {
            return Err(broken(ChunkError::CutOff { size, left }));
        }
        places.push(Place { offset, bytes: size as u32 });
        at = offset + size;
    }
    Ok(places)
}

type Scanned = Result<Vec<Piece>, DataError>;

/// Scans every chunk, on `threads` threads, each with one chunk in memory.
fn each_chunk(
    file: &File,
    path: &Path,
    wanted: Usable,
    places: &[Place],
    threads: usize,
    progress: Progress<'_>,
) -> Vec<Scanned> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let bytes = |place: &Place| HEADER_BYTES as u64 + u64::from(place.bytes);
    let total = places.iter().map(bytes).sum();
    let found: Vec<Mutex<Option<Scanned>>> = places.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, places.len().max(1)) {
            scope.spawn(|| {
                let mut scratch = Vec::new();
                while let Some((place, slot)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    places.get(number).zip(found.get(number))
                } {
                    let pieces = scan_chunk(file, path, wanted, *place, &mut scratch);
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(pieces);
                    progress(done.fetch_add(bytes(place), Ordering::Relaxed) + bytes(place), total);
                }
            });
        }
    });
    found.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn scan_chunk(file: &File, path: &Path, wanted: Usable, place: Place, records: &mut Vec<Record>) -> Scanned {
    let mut chunk = Chunk { offset: place.offset, bytes: vec![0; place.bytes as usize] };
    file.read_exact_at(&mut chunk.bytes, place.offset).map_err(DataError::read(path))?;
    let broken = |problem| DataError::Chunk { path: path.into(), chunk: place.offset - HEADER_BYTES as u64, problem };
    let mut decoder = Decoder::new(chunk.bytes);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut games = GameNumbers::default();
    loop {
        records.clear();
        let Some(at) = decoder.read_chain(records).map_err(broken)? else { return Ok(pieces) };
        let begins = records.first().is_some_and(|record| games.begins(record));
        if let Some(last) = records.last() {
            games.begins(last);
        }
        let full = pieces.last().is_none_or(|piece| piece.samples as usize >= PIECE_SAMPLES && begins);
        if full {
            pieces.push(Piece { offset: place.offset + at as u64, bytes: 0, samples: 0, usable: 0 });
        }
        if let Some(piece) = pieces.last_mut() {
            piece.bytes += (decoder.at() - at) as u32;
            piece.samples += records.len() as u32;
            piece.usable += records.iter().filter(|record| wanted.holds(record)).count() as u32;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::chess::Chess;
    use crate::data::formats::{Format, SampleWriter};
    use crate::data::{GameResult, Provenance, Purpose, ScoreUnit};
    use crate::units::{Ply, Seed};
    use rand::RngExt;
    use shakmaty::Position;

    fn provenance(games: u64) -> Provenance {
        let (purpose, score_unit) = (Purpose::Any, ScoreUnit::Centipawns);
        Provenance { purpose, score_unit, seed: Seed(0), games: games as u32, sources: [0; 32] }
    }

    /// Random games, written as a binpack.
    pub(crate) fn games(path: &Path, count: u64) -> Vec<Record> {
        let mut all = Vec::new();
        for game in 0..count {
            let mut rng = Seed(3).stream("pieces", game);
            let mut position = Chess::default();
            for ply in 0..100 {
                let moves = position.legal_moves();
                if moves.is_empty() {
                    break;
                }
                let mv = moves[rng.random_range(0..moves.len())];
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
    fn pieces_hold_every_sample_once_and_whole_games() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        let expected = games(&path, 300);
        let mut checked = Decoder::new(std::fs::read(&path).expect("just written")[HEADER_BYTES..].to_vec());
        let mut one = Vec::new();
        assert_eq!(checked.read(expected.len() + 1, &mut one), Ok(expected.len()));
        assert!(one == expected);
        for threads in [1, 3] {
            let pieces = Pieces::scan(&path, Usable::Eval(Needs::Any), threads, &|_, _| {}).expect("a good file");
            assert!(pieces.pieces().len() > 3, "{}", pieces.pieces().len());
            assert_eq!(pieces.samples(), expected.len() as u64);
            let (mut bytes, mut decoded, mut all) = (Vec::new(), Vec::new(), Vec::new());
            for piece in 0..pieces.pieces().len() {
                pieces.decode(piece, &mut bytes, &mut decoded).expect("as scanned");
                assert_eq!(decoded[0].ply(), Ply(0), "a piece begins with a game");
                assert_eq!(decoded[0].game() as usize, all.len());
                all.extend(decoded.iter().map(|record| record.with_game(0)));
            }
            assert!(all == expected);
        }
    }

    #[test]
    fn a_large_file_is_scanned_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, cache) = (folder.path().join("games.binpack"), folder.path().join("cache"));
        let one = games(&path, 300);
        let bytes = std::fs::read(&path).expect("just written");
        let times = KEPT_FROM_BYTES as usize / bytes.len() + 1;
        std::fs::write(&path, bytes.repeat(times)).expect("writable");
        let scanned = AtomicU64::new(0);
        let open = || {
            let count = |done, total| {
                scanned.fetch_max(done, Ordering::Relaxed);
                assert_eq!(total, (bytes.len() * times) as u64);
            };
            Pieces::open(&path, Usable::Eval(Needs::Any), 2, Some(&cache), &count).expect("a good file")
        };
        let first = open();
        assert_eq!(first.samples(), (one.len() * times) as u64);
        assert_eq!(scanned.swap(0, Ordering::Relaxed), (bytes.len() * times) as u64);
        let second = open();
        assert_eq!(scanned.load(Ordering::Relaxed), 0);
        assert_eq!((first.pieces(), &first.first), (second.pieces(), &second.first));
        let mut broken = bytes.repeat(times);
        *broken.last_mut().expect("not empty") ^= 0xff;
        std::fs::write(&path, &broken[..broken.len() - 1]).expect("writable");
        assert!(Pieces::open(&path, Usable::Eval(Needs::Any), 2, Some(&cache), &|_, _| {}).is_err());
    }

    #[test]
    fn damage_is_told_with_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("games.binpack");
        games(&path, 20);
        let whole = std::fs::read(&path).expect("just written");
        let check = |bytes: &[u8], expected: &str| {
            std::fs::write(&path, bytes).expect("writable");
            let error = Pieces::scan(&path, Usable::Eval(Needs::Any), 2, &|_, _| {}).expect_err("damaged").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&whole[..whole.len() - 1], "cut off");
        check(&[&whole[..], b"BI"].concat(), "cut off after 2 of 8 bytes");
        check(&[&whole[..], b"BINX0000"].concat(), "no binpack");
        check(b"", "yields no sample");
        std::fs::write(&path, &whole).expect("writable");
        let pieces = Pieces::scan(&path, Usable::Eval(Needs::Any), 1, &|_, _| {}).expect("whole again");
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("writable");
        let error = pieces.decode(pieces.pieces().len() - 1, &mut Vec::new(), &mut Vec::new()).expect_err("cut off");
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
        let pieces = Pieces::scan(&path, Usable::Pqr, 2, &|_, _| {}).expect("a good file");
        let mut found = 0;
        for piece in 0..pieces.pieces().len() {
            let mut decoded = Vec::new();
            pieces.decode(piece, &mut Vec::new(), &mut decoded).expect("as scanned");
            found += decoded.len();
        }
        assert_eq!(found, expected);
    }
}
