//! Reads samples of any format: one thread reads, all cores decode, and blocks arrive in file order.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, PoisonError};

use super::block_queue::{BLOCK_SAMPLES, BlockResult, BlockSender, HashingReader, ReaderState, SampleBlock, decoders};
use super::format_table::GameRule;
use super::game_numbers::GameNumbers;
use super::skipped::SkippedSamples;
use super::{FileUnit, Format, detect, pgn, resolve_unit};
use crate::data::input::hash_file;
use crate::data::{DataError, EvalOptions, Fsd, FsdHeader, PgnNotes, Record, ScoreUnit};

/// Decoded blocks that wait for the reader.
const QUEUE_BLOCKS: usize = 4;

/// The samples of a file, in file order, in blocks of at most 65,536. In formats without game numbers they follow from
/// the sequence of samples ([`GameNumbers`]). Every position and move is legal; the records of a `.fsd` file are not
/// validated again, only its checksums are.
pub struct SampleReader {
    path: PathBuf,
    format: Format,
    unit: FileUnit,
    header: Option<FsdHeader>,
    length: Option<u64>,
    state: Arc<ReaderState>,
    queue: Option<Receiver<BlockResult>>,
    games: u64,
}

/// Reads a whole file on the reading thread.
type ReadTask = Box<dyn FnOnce(&mut BlockSender) -> Result<(), DataError> + Send>;

impl SampleReader {
    /// Opens a file; the format is detected if none is given. The score unit is the file's own (.fsd, PGN), else the
    /// given one, else the default of the format.
    ///
    /// # Errors
    /// When the file cannot be read, is not in the given format, or has another unit than the given one.
    pub fn open(path: &Path, format: Option<Format>, unit: Option<ScoreUnit>) -> Result<SampleReader, DataError> {
        SampleReader::open_with(path, format, unit, EvalOptions::default())
    }

    /// As [`open`](SampleReader::open); `evals` says how scores in PGN comments are read.
    ///
    /// # Errors
    /// As [`open`](SampleReader::open).
    pub fn open_with(
        path: &Path,
        format: Option<Format>,
        unit: Option<ScoreUnit>,
        evals: EvalOptions,
    ) -> Result<SampleReader, DataError> {
        let format = format.map_or_else(|| detect(path), Ok)?;
        let file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        let owned = path.to_path_buf();
        let mut reader = match format {
            Format::Fsd => {
                let fsd = Fsd::open(path)?;
                let header = *fsd.header();
                let unit = resolve_unit(path, format, Some(header.score_unit), unit)?;
                let task = move |_| -> ReadTask { Box::new(move |sender| read_fsd(&fsd, sender)) };
                let mut reader = SampleReader::start(path, format, unit, task)?;
                reader.header = Some(header);
                reader
            }
            Format::Pgn => {
                let unit = resolve_unit(path, format, None, unit)?;
                SampleReader::start(path, format, unit, |_| Box::new(move |sender| pgn::read(&owned, evals, sender)))?
            }
            _ => SampleReader::from_reader(Box::new(file), path, format, unit)?,
        };
        reader.length = Some(length);
        Ok(reader)
    }

    /// Reads a stream such as standard input; messages call it `name`.
    ///
    /// # Errors
    /// When the format cannot be read from a stream (pgn, fsd).
    pub fn from_reader(
        reader: Box<dyn Read + Send>,
        name: &Path,
        format: Format,
        unit: Option<ScoreUnit>,
    ) -> Result<SampleReader, DataError> {
        let path = name.to_path_buf();
        let Some(read) = format.table().read else {
            return Err(DataError::NoStream { path, format: format.name() });
        };
        let unit = resolve_unit(name, format, None, unit)?;
        SampleReader::start(name, format, unit, |state| {
            let reader = Box::new(HashingReader::new(reader, state));
            Box::new(move |sender| read(reader, &path, sender))
        })
    }

    fn start(
        path: &Path,
        format: Format,
        unit: FileUnit,
        make_task: impl FnOnce(Arc<ReaderState>) -> ReadTask,
    ) -> Result<SampleReader, DataError> {
        let state = Arc::new(ReaderState::default());
        let (queue_sender, queue) = sync_channel(QUEUE_BLOCKS);
        let numbers = (format.table().games != GameRule::Recorded).then(GameNumbers::default);
        let task = make_task(Arc::clone(&state));
        let mut sender = BlockSender {
            path: path.into(),
            queue: queue_sender,
            state: Arc::clone(&state),
            decoders: decoders(path)?,
            numbers,
            games: 0,
        };
        std::thread::spawn(move || {
            let end = task(&mut sender).map(|()| SampleBlock { records: Vec::new(), games: sender.games });
            // The reader may have been dropped.
            let _ = sender.queue.send(end);
        });
        Ok(SampleReader {
            path: path.into(),
            format,
            unit,
            header: None,
            length: None,
            state,
            queue: Some(queue),
            games: 0,
        })
    }

    /// The next samples; `None` at the end. Safe to call on a worker of any rayon pool, because decoding has threads of
    /// its own.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged. The samples before that come first, and nothing comes after.
    pub fn next_block(&mut self) -> Result<Option<Vec<Record>>, DataError> {
        let Some(queue) = &self.queue else { return Ok(None) };
        match queue.recv() {
            Ok(Ok(SampleBlock { records, games })) => {
                self.games = games;
                if records.is_empty() {
                    self.queue = None;
                    return Ok(None);
                }
                Ok(Some(records))
            }
            Ok(Err(error)) => {
                self.queue = None;
                Err(error)
            }
            Err(_) => {
                self.queue = None;
                let cause = io::Error::other("the thread that reads it stopped");
                Err(DataError::Read { path: self.path.clone(), cause })
            }
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    #[must_use]
    pub const fn score_unit(&self) -> ScoreUnit {
        self.unit.unit
    }

    /// The unit of the scores and its origin.
    #[must_use]
    pub const fn unit(&self) -> FileUnit {
        self.unit
    }

    /// The header of a `.fsd` file.
    #[must_use]
    pub const fn header(&self) -> Option<&FsdHeader> {
        self.header.as_ref()
    }

    /// Games so far.
    #[must_use]
    pub const fn games(&self) -> u64 {
        self.games
    }

    /// Bytes of the file read so far. For a `.fsd` file, bytes delivered; for PGN, zero until the end.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.state.bytes_read.load(Ordering::Relaxed)
    }

    /// Length of the file; `None` for a stream.
    #[must_use]
    pub const fn length(&self) -> Option<u64> {
        self.length
    }

    /// The entries skipped so far.
    #[must_use]
    pub fn skipped(&self) -> SkippedSamples {
        self.state.skipped()
    }

    /// Unusual games of PGN; known only at the end.
    #[must_use]
    pub fn notes(&self) -> PgnNotes {
        self.state.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `plain`, `zstd`, `gzip` or `bzip2`; for PGN and text known only at the end.
    #[must_use]
    pub fn compression(&self) -> &'static str {
        self.state.compression.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or("plain")
    }

    /// Length and blake3 of the source as stored, once it is read.
    ///
    /// # Errors
    /// When the file must be read again and cannot be.
    pub fn source_hash(&self) -> Result<(u64, blake3::Hash), DataError> {
        let source = *self.state.source.lock().unwrap_or_else(PoisonError::into_inner);
        source.map_or_else(|| hash_file(&self.path), Ok)
    }
}

fn read_fsd(fsd: &Fsd, sender: &mut BlockSender) -> Result<(), DataError> {
    let sent = fsd.for_each_chunk(BLOCK_SAMPLES, |block| {
        sender.add_bytes(size_of_val(block) as u64);
        if sender.send(block.to_vec()).map_err(Some)? { Ok(()) } else { Err(None) }
    });
    if let Err(Some(error)) = sent {
        return Err(error);
    }
    sender.games = sender.games.max(u64::from(fsd.header().games));
    Ok(())
}
