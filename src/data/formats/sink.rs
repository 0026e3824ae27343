//! Where the sources of samples deliver: numbered blocks go to the reader's queue.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::ThreadPool;

use super::numbers::GameNumbers;
use super::skipped::{SkippedSample, SkippedSamples};
use crate::data::{DataError, Record};

/// Samples a block.
pub const BLOCK: usize = 1 << 16;

/// What the reader can ask for while its source runs.
#[derive(Debug, Default)]
pub struct Shared {
    pub bytes_read: AtomicU64,
    pub skipped: Mutex<SkippedSamples>,
    /// blake3 and length of what was read, once all was.
    pub source: Mutex<Option<(u64, blake3::Hash)>>,
    /// Of PGN and text.
    pub compression: Mutex<Option<&'static str>>,
}

impl Shared {
    pub fn skipped(&self) -> SkippedSamples {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What comes through the reader's queue.
pub type Message = Result<Block, DataError>;

/// Samples in file order; none at the end.
#[derive(Debug)]
pub struct Block {
    pub records: Vec<Record>,
    /// Games up to and with these.
    pub games: u64,
}

pub struct Sink {
    pub path: PathBuf,
    pub queue: SyncSender<Message>,
    pub shared: Arc<Shared>,
    pub decoders: &'static ThreadPool,
    /// None where the samples come with numbers.
    pub numbers: Option<GameNumbers>,
    /// One more than the largest number.
    pub games: u64,
}

impl Sink {
    /// Hands on a block; false when nobody wants more.
    ///
    /// # Errors
    /// When there are more games than numbers.
    pub fn deliver(&mut self, mut records: Vec<Record>) -> Result<bool, DataError> {
        if records.is_empty() {
            return Ok(true);
        }
        if let Some(numbers) = &mut self.numbers {
            for record in &mut records {
                numbers.begins(record);
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
        Ok(self.queue.send(Ok(Block { records, games: self.games })).is_ok())
    }

    pub fn skip(&self, reason: &str, sample: SkippedSample) {
        self.shared.skipped.lock().unwrap_or_else(PoisonError::into_inner).add(reason, sample);
    }

    pub fn add_bytes(&self, bytes: u64) {
        self.shared.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }
}
