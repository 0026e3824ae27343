//! Brings samples from a file to its [`SampleReader`](super::SampleReader): counts and hashes bytes, decodes them on a
//! thread pool of its own, and queues numbered blocks.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::detect::has_compressed_name;
use super::format_table::FormatTable;
use super::game_numbers::GameNumbers;
use super::skipped::{SkippedSample, SkippedSamples};
use crate::data::input::{self, Compression, Unpacked};
use crate::data::{DataError, PgnNotes, Record};

/// Samples per block.
pub const BLOCK_SAMPLES: usize = 1 << 16;

/// The state of a file that is being read, for its [`SampleReader`](super::SampleReader).
#[derive(Debug, Default)]
pub struct ReaderState {
    /// For progress; relaxed, since blocks come by the queue.
    pub bytes_read: AtomicU64,
    pub skipped: Mutex<SkippedSamples>,
    /// Unusual games, set at the end of PGN.
    pub notes: Mutex<PgnNotes>,
    /// Length and blake3 of the file as stored, set at its end.
    pub source: Mutex<Option<(u64, blake3::Hash)>>,
    /// Set for PGN and text.
    pub compression: Mutex<Option<&'static str>>,
}

impl ReaderState {
    pub fn skipped(&self) -> SkippedSamples {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A message of the queue.
pub type BlockResult = Result<SampleBlock, DataError>;

/// Samples in file order; the last block of a file is empty.
#[derive(Debug)]
pub struct SampleBlock {
    pub records: Vec<Record>,
    /// Games up to and including this block.
    pub games: u64,
}

/// The sending end of the queue.
pub struct BlockSender {
    pub path: PathBuf,
    pub queue: SyncSender<BlockResult>,
    pub state: Arc<ReaderState>,
    pub decoders: &'static ThreadPool,
    /// `None` if the samples have game numbers already.
    pub numbers: Option<GameNumbers>,
    /// The largest game number plus one.
    pub games: u64,
}

impl BlockSender {
    /// Sends a block; false when the reader was dropped.
    ///
    /// # Errors
    /// When there are more games than numbers.
    pub fn send(&mut self, mut records: Vec<Record>) -> Result<bool, DataError> {
        if records.is_empty() {
            return Ok(true);
        }
        if let Some(numbers) = &mut self.numbers {
            for record in &mut records {
                numbers.begins_game(record);
                *record = record.with_game((numbers.games() - 1) as u32);
            }
            self.games = numbers.games();
            if self.games > u64::from(u32::MAX) {
                return Err(DataError::TooManyGames { path: self.path.clone() });
            }
        } else {
            let largest = records.iter().map(|record| u64::from(record.game()) + 1).max();
            self.games = self.games.max(largest.unwrap_or(0));
        }
        Ok(self.queue.send(Ok(SampleBlock { records, games: self.games })).is_ok())
    }

    pub fn skip(&self, reason: &str, sample: SkippedSample) {
        self.state.skipped.lock().unwrap_or_else(PoisonError::into_inner).add(reason, || sample);
    }

    pub fn skip_all(&self, skipped: SkippedSamples) {
        self.state.skipped.lock().unwrap_or_else(PoisonError::into_inner).extend(skipped);
    }

    pub fn add_bytes(&self, bytes: u64) {
        self.state.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Counts and hashes the bytes of a file, and stores both in a [`ReaderState`] at the end.
pub struct HashingReader<R> {
    reader: R,
    hasher: blake3::Hasher,
    state: Arc<ReaderState>,
}

impl<R: Read> HashingReader<R> {
    pub fn new(reader: R, state: Arc<ReaderState>) -> HashingReader<R> {
        HashingReader { reader, hasher: blake3::Hasher::new(), state }
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.state.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        if count == 0 && !buffer.is_empty() {
            let source = (self.hasher.count(), self.hasher.finalize());
            *self.state.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
        }
        Ok(count)
    }
}

/// As [`input::unpacked`]; stores the compression in `state`.
///
/// # Errors
/// When the stream cannot be read.
pub fn unpacked(reader: impl Read + Send + 'static, state: &ReaderState) -> io::Result<Unpacked> {
    let unpacked = input::unpacked(reader)?;
    *state.compression.lock().unwrap_or_else(PoisonError::into_inner) = Some(unpacked.compression.name());
    Ok(unpacked)
}

/// As [`unpacked`], for binary formats without a signature, whose bytes may look like a compression's: only the name
/// counts.
///
/// # Errors
/// When the stream cannot be read.
pub fn unpacked_by_name(
    reader: Box<dyn Read + Send>,
    path: &Path,
    state: &ReaderState,
) -> io::Result<Box<dyn Read + Send>> {
    if has_compressed_name(path) { Ok(Box::new(unpacked(reader, state)?.reader)) } else { Ok(reader) }
}

/// Refuses a stream that [`unpacked_by_name`] left compressed; its `beginning` holds no sample of `format`.
///
/// # Errors
/// When it begins as a compressed stream and its name does not say so.
pub fn check_not_compressed(beginning: &[u8], path: &Path, format: &FormatTable) -> Result<(), DataError> {
    let compression = Compression::of(beginning);
    if compression == Compression::None || has_compressed_name(path) {
        return Ok(());
    }
    Err(DataError::CompressedName {
        path: path.into(),
        format: format.name,
        compression: compression.name(),
        ending: format!(".{}{}", format.endings[0], compression.ending()),
    })
}

/// Tasks that wait for a block must not run on this pool: the block might be decoded by the waiting thread itself,
/// further down its stack. Workers of other pools may wait.
static DECODERS: LazyLock<Decoders> = LazyLock::new(|| {
    let named = ThreadPoolBuilder::new().thread_name(|number| format!("decoder {number}"));
    let pool = named.num_threads(rayon::current_num_threads()).build().map_err(|error| error.to_string());
    Decoders { pool, process: std::process::id() }
});

/// The decoders' pool and the process that has its threads.
struct Decoders {
    pool: Result<ThreadPool, String>,
    process: u32,
}

/// The pool that decodes samples, as large as rayon's global one. Errors name `path`, the file to decode.
///
/// # Errors
/// When its threads could not be started, or belong to the process from which this one was forked.
pub fn decoders(path: &Path) -> Result<&'static ThreadPool, DataError> {
    let failed = |why: String| DataError::Read { path: path.into(), cause: io::Error::other(why) };
    if DECODERS.process != std::process::id() {
        let why = "a forked process cannot decode it, because its parent has the threads for that; let the parent open \
                   it first, or spawn processes instead of forking them";
        return Err(failed(why.to_owned()));
    }
    let pool = DECODERS.pool.as_ref();
    pool.map_err(|error| failed(format!("the threads that decode it could not be started: {error}")))
}
