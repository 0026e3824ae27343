//! Reading samples of any format. A thread of its own reads, the cores decode, and the blocks come in file order.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, PoisonError};

use super::numbers::GameNumbers;
use super::sink::{BLOCK, Block, Message, Shared, Sink};
use super::skipped::SkippedSamples;
use super::stream::Tee;
use super::{FileUnit, Format, binpack, bullet, decoders, detect, file_unit, pgn, text};
use crate::data::input::hash_file;
use crate::data::{DataError, Fsd, Header, Record, ScoreUnit};

/// Blocks that wait to be taken.
const QUEUE: usize = 4;

/// The samples of a file, in file order, in blocks of 65,536 at most. Formats without game numbers get them from the
/// sequence of samples ([`GameNumbers`]). Every record is a legal position with a legal move, but those of a `.fsd` file
/// are taken as its checksums warrant them.
pub struct SampleReader {
    path: PathBuf,
    format: Format,
    unit: FileUnit,
    header: Option<Header>,
    length: Option<u64>,
    shared: Arc<Shared>,
    queue: Option<Receiver<Message>>,
    games: u64,
}

type Run = Box<dyn FnOnce(&mut Sink) -> Result<(), DataError> + Send>;

impl SampleReader {
    /// Opens a file; the format is detected where none is given. The score unit is the file's own (.fsd, PGN),
    /// else the one given, else the usual one of the format.
    ///
    /// # Errors
    /// When the file cannot be read, is no `.fsd` file though it should be one, or says another unit than the one given.
    pub fn open(path: &Path, format: Option<Format>, unit: Option<ScoreUnit>) -> Result<SampleReader, DataError> {
        let format = format.map_or_else(|| detect(path), Ok)?;
        let file = File::open(path).map_err(DataError::read(path))?;
        let length = file.metadata().map_err(DataError::read(path))?.len();
        let owned = path.to_path_buf();
        let mut reader = match format {
            Format::Fsd => {
                let fsd = Fsd::open(path)?;
                let header = *fsd.header();
                let unit = file_unit(path, format, Some(header.score_unit), unit)?;
                let run = move |_| -> Run { Box::new(move |sink| from_fsd(&fsd, sink)) };
                let mut reader = SampleReader::start(path, format, unit, run)?;
                reader.header = Some(header);
                reader
            }
            Format::Pgn => {
                let unit = file_unit(path, format, None, unit)?;
                SampleReader::start(path, format, unit, |_| Box::new(move |sink| pgn::run(&owned, sink)))?
            }
            Format::Binpack | Format::Bullet | Format::Text => {
                SampleReader::from_reader(Box::new(file), path, format, unit)?
            }
        };
        reader.length = Some(length);
        Ok(reader)
    }

    /// Reads from elsewhere, such as standard input; `name` is what messages call it.
    ///
    /// # Errors
    /// When the format can only be read from a file (pgn, fsd).
    pub fn from_reader(
        reader: Box<dyn Read + Send>,
        name: &Path,
        format: Format,
        unit: Option<ScoreUnit>,
    ) -> Result<SampleReader, DataError> {
        let path = name.to_path_buf();
        if matches!(format, Format::Fsd | Format::Pgn) {
            return Err(DataError::NoStream { path, format: format.name() });
        }
        let unit = file_unit(name, format, None, unit)?;
        SampleReader::start(name, format, unit, |shared| {
            let reader = Tee::new(reader, shared);
            match format {
                Format::Binpack => Box::new(move |sink| binpack::run(reader, &path, sink)),
                Format::Bullet => Box::new(move |sink| bullet::run(reader, &path, sink)),
                _ => Box::new(move |sink| text::run(reader, &path, sink)),
            }
        })
    }

    fn start(
        path: &Path,
        format: Format,
        unit: FileUnit,
        source: impl FnOnce(Arc<Shared>) -> Run,
    ) -> Result<SampleReader, DataError> {
        let shared = Arc::new(Shared::default());
        let (sender, queue) = sync_channel(QUEUE);
        let numbers = matches!(format, Format::Binpack | Format::Bullet | Format::Text).then(GameNumbers::default);
        let run = source(Arc::clone(&shared));
        let (decoders, sinks) = (decoders(path)?, Arc::clone(&shared));
        let mut sink = Sink { path: path.into(), queue: sender, shared: sinks, decoders, numbers, games: 0 };
        std::thread::spawn(move || {
            let end = run(&mut sink).map(|()| Block { records: Vec::new(), games: sink.games });
            // The reader may be gone.
            let _ = sink.queue.send(end);
        });
        Ok(SampleReader {
            path: path.into(),
            format,
            unit,
            header: None,
            length: None,
            shared,
            queue: Some(queue),
            games: 0,
        })
    }

    /// The next samples; none at the end. May be called on a worker of any rayon pool: the cores decode on threads of
    /// their own.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged; the samples before that come first. Nothing comes after an error.
    pub fn next_block(&mut self) -> Result<Option<Vec<Record>>, DataError> {
        let Some(queue) = &self.queue else { return Ok(None) };
        match queue.recv() {
            Ok(Ok(Block { records, games })) => {
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

    /// What the scores are measured in, and who says so.
    #[must_use]
    pub const fn unit(&self) -> FileUnit {
        self.unit
    }

    /// Of a `.fsd` file.
    #[must_use]
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Games so far.
    #[must_use]
    pub const fn games(&self) -> u64 {
        self.games
    }

    /// Bytes of the file read so far; of a `.fsd` file those delivered, of PGN none until the end.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes_read.load(Ordering::Relaxed)
    }

    /// Length of the file; none of standard input.
    #[must_use]
    pub const fn length(&self) -> Option<u64> {
        self.length
    }

    /// What was passed over so far.
    #[must_use]
    pub fn skipped(&self) -> SkippedSamples {
        self.shared.skipped()
    }

    /// `plain`, `zstd`, `gzip` or `bzip2`; of PGN and text not known before the end.
    #[must_use]
    pub fn compression(&self) -> &'static str {
        self.shared.compression.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or("plain")
    }

    /// Length and blake3 of the source as it is stored, once all of it was read.
    ///
    /// # Errors
    /// When the file cannot be read again, or not all was read.
    pub fn source_hash(&self) -> Result<(u64, blake3::Hash), DataError> {
        let told = *self.shared.source.lock().unwrap_or_else(PoisonError::into_inner);
        told.map_or_else(|| hash_file(&self.path), Ok)
    }
}

fn from_fsd(fsd: &Fsd, sink: &mut Sink) -> Result<(), DataError> {
    let delivered = fsd.each_chunk(BLOCK, |block| {
        sink.add_bytes(size_of_val(block) as u64);
        if sink.deliver(block.to_vec()).map_err(Some)? { Ok(()) } else { Err(None) }
    });
    if let Err(Some(error)) = delivered {
        return Err(error);
    }
    sink.games = sink.games.max(u64::from(fsd.header().games));
    Ok(())
}
