//! Any input as sifted samples by game, in order.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::filter::{FilteredSamples, SampleFilter};
use super::options::BuildOptions;
use crate::data::formats::{FileUnit, Format, Rescale, SampleReader, decoders, detect, file_unit, rescale, score_unit};
use crate::data::{DataError, Input, Origin, Reading, Record, ScoreUnit, Skipped};
use crate::pipeline::inputs::WeightedInput;
use crate::pipeline::manifest::SourceFile;

/// Samples with the number of their game, in order. Samples of one game may come in several pieces, one after the other.
pub type Batch = Vec<(u64, FilteredSamples)>;

/// An input being read and sifted.
pub struct SampleSource {
    content: Content,
    sieve: SampleFilter,
    unit: FileUnit,
    rescale: Rescale,
    /// Scores that were cut by that.
    cut: u64,
    weight: f64,
}

/// What an input's scores are measured in.
///
/// # Errors
/// When the input cannot be read, or says another unit than the one given.
pub fn input_unit(input: &WeightedInput) -> Result<FileUnit, DataError> {
    match &input.origin {
        Origin::File(path) => score_unit(path, input.format, input.unit),
        Origin::Stdin => file_unit(&input.origin.path(), input.format.unwrap_or(Format::Pgn), None, input.unit),
    }
}

enum Content {
    Games { reading: Box<Reading<SampleFilter>>, read: u64, decoders: &'static ThreadPool },
    Samples { reader: Box<SampleReader>, read: u64 },
}

impl SampleSource {
    /// `to`: the unit that scores are brought into.
    ///
    /// # Errors
    /// When the input cannot be read or is of no kind that is supported.
    pub fn open(
        input: &WeightedInput,
        to: ScoreUnit,
        options: &BuildOptions,
        scores_later: bool,
    ) -> Result<SampleSource, DataError> {
        let origin = &input.origin;
        let format = match (input.format, origin) {
            (Some(format), _) => format,
            (None, Origin::File(path)) => detect(path)?,
            // What it is shows when it is read.
            (None, Origin::Stdin) => Format::Pgn,
        };
        let options = if format.has_ply() { options.clone() } else { options.of_any_ply() };
        let unit = input_unit(input)?;
        let rescale = Rescale { from: unit.unit, to };
        let sieve = SampleFilter::new(options, scores_later, to);
        let content = match origin {
            _ if format == Format::Pgn => {
                let reading = Box::new(Reading::new(Input::open(origin)?, sieve.clone()));
                Content::Games { reading, read: 0, decoders: decoders(&origin.path())? }
            }
            Origin::File(path) => {
                Content::Samples { reader: Box::new(SampleReader::open(path, Some(format), input.unit)?), read: 0 }
            }
            Origin::Stdin => {
                let stdin = Box::new(std::io::stdin());
                let reader = SampleReader::from_reader(stdin, &origin.path(), format, input.unit)?;
                Content::Samples { reader: Box::new(reader), read: 0 }
            }
        };
        Ok(SampleSource { content, sieve, unit, rescale, cut: 0, weight: input.weight })
    }

    /// The next samples; none at the end.
    ///
    /// # Errors
    /// When the input breaks off or is damaged.
    pub fn batch(&mut self) -> Result<Option<Batch>, DataError> {
        match &mut self.content {
            Content::Games { reading, read, decoders } => {
                let Some(games) = decoders.install(|| reading.batch())? else { return Ok(None) };
                let first = *read;
                *read += games.len() as u64;
                Ok(Some((first..).zip(games).collect()))
            }
            Content::Samples { reader, read } => {
                let Some(mut block) = reader.next_block()? else { return Ok(None) };
                self.cut += rescale(&mut block, self.rescale);
                let games = sift(&self.sieve, &block);
                let first = *read;
                *read += block.len() as u64;
                let damaged = |(place, problem)| DataError::BrokenSample {
                    path: reader.path().into(),
                    sample: first + place as u64,
                    problem,
                };
                games.map(Some).map_err(damaged)
            }
        }
    }

    /// Games so far, of samples also those that gave none.
    pub fn games(&self) -> u64 {
        match &self.content {
            Content::Games { read, .. } => *read,
            Content::Samples { reader, .. } => reader.games(),
        }
    }

    /// Bytes read, as stored.
    pub fn bytes(&self) -> u64 {
        match &self.content {
            Content::Games { reading, .. } => reading.input().meter.bytes(),
            Content::Samples { reader, .. } => reader.bytes_read(),
        }
    }

    pub fn skipped(&self) -> Skipped {
        match &self.content {
            Content::Games { reading, .. } => reading.skipped.clone(),
            Content::Samples { .. } => Skipped::default(),
        }
    }

    /// Length and blake3 of the source as it is stored, once it is read.
    ///
    /// # Errors
    /// When it has to be read again and cannot.
    pub fn stored(&self) -> Result<(u64, blake3::Hash), DataError> {
        match &self.content {
            Content::Games { reading, .. } => {
                let meter = &reading.input().meter;
                Ok((meter.bytes(), meter.hash()))
            }
            Content::Samples { reader, .. } => reader.source_hash(),
        }
    }

    pub fn format(&self) -> Format {
        match &self.content {
            Content::Games { .. } => Format::Pgn,
            Content::Samples { reader, .. } => reader.format(),
        }
    }

    /// What messages and the manifest call it.
    pub fn path(&self) -> PathBuf {
        match &self.content {
            Content::Games { reading, .. } => reading.input().origin.path(),
            Content::Samples { reader, .. } => reader.path().into(),
        }
    }

    /// What the manifest says of it, once it is read.
    ///
    /// # Errors
    /// As [`stored`](SampleSource::stored).
    pub fn source(&self) -> Result<SourceFile, DataError> {
        let (bytes, hash) = self.stored()?;
        let skipped_samples = match &self.content {
            Content::Games { .. } => Default::default(),
            Content::Samples { reader, .. } => reader.skipped(),
        };
        Ok(SourceFile {
            path: self.path().display().to_string(),
            format: Some(self.format()),
            bytes,
            blake3: hash.to_hex().to_string(),
            games: self.games(),
            skipped: self.skipped(),
            skipped_samples,
            weight: self.weight,
            score_unit: Some(self.unit),
            scores_cut: self.cut,
        })
    }
}

/// Records sifted at once by one core.
const PIECE: usize = 4096;

/// Sifts a block, on all cores, and cuts it into games.
fn sift(
    sieve: &SampleFilter,
    block: &[Record],
) -> Result<Vec<(u64, FilteredSamples)>, (usize, crate::data::RecordError)> {
    let games: Vec<&[Record]> = block.chunk_by(|a, b| a.game() == b.game()).collect();
    let offset = |game: &[Record]| game.as_ptr_range().start.addr() - block.as_ptr_range().start.addr();
    let one = |game: &&[Record]| {
        let sifted = sieve.sift(game).map_err(|(place, error)| (offset(game) / Record::BYTES + place, error))?;
        Ok((u64::from(game[0].game()), sifted))
    };
    let pieces = (PIECE * games.len()).div_ceil(block.len().max(1)).max(1);
    games.par_iter().with_min_len(pieces).map(one).collect()
}

/// Hands every batch and the bytes read so far to `each` while the next batch is read and sifted on a thread of its own;
/// gives the supply back, read to its end.
///
/// # Errors
/// The first failure of the supply or of `each`.
pub fn ahead(
    mut supply: SampleSource,
    mut each: impl FnMut(Batch, u64) -> Result<(), DataError>,
) -> Result<SampleSource, DataError> {
    let path = supply.path();
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(1);
        let reading = scope.spawn(move || {
            loop {
                let next = supply.batch().map(|batch| batch.map(|batch| (batch, supply.bytes())));
                let ended = !matches!(next, Ok(Some(_)));
                // Whoever takes them may have failed.
                if sender.send(next).is_err() || ended {
                    return supply;
                }
            }
        });
        for next in batches {
            let Some((batch, bytes)) = next? else { break };
            each(batch, bytes)?;
        }
        reading.join().map_err(|_| DataError::read(&path)(io::Error::other("the thread that reads it stopped")))
    })
}
