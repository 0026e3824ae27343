//! Reads any input as filtered samples by game, in order.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::filter::{FilteredSamples, SampleFilter};
use super::options::{BuildOptions, PerGame};
use crate::data::formats::{
    FileUnit, Format, SampleReader, UnitConversion, UnitOrigin, decoders, detect, rescale_scores, resolve_unit,
    score_unit,
};
use crate::data::{DataError, GameReader, Input, InputPath, PgnNotes, Record, RecordError, ScoreUnit, SkippedGames};
use crate::pipeline::inputs::WeightedInput;
use crate::pipeline::manifest::{SourceFile, original_formats};

/// Samples with the number of their game, in order. The samples of one game may come in several consecutive entries.
pub type SourceBatch = Vec<(u64, FilteredSamples)>;

/// An input that is being read and filtered.
pub struct SampleSource {
    reader: InputReader,
    filter: SampleFilter,
    unit: FileUnit,
    rescale: UnitConversion,
    /// Scores cut to the range of the target unit.
    scores_cut: u64,
    weight: f64,
    /// The formats that a `.fsd` file was made from.
    made_from: Vec<Format>,
}

/// The unit of an input's scores.
///
/// # Errors
/// When the input cannot be read, or names another unit than the one given.
pub fn input_unit(input: &WeightedInput) -> Result<FileUnit, DataError> {
    match &input.origin {
        InputPath::File(path) => score_unit(path, input.format, input.unit),
        InputPath::Stdin => resolve_unit(&input.origin.path(), input.format.unwrap_or(Format::Pgn), None, input.unit),
    }
}

/// Sets the unit of the inputs that do not record it. Where all inputs record it, sets it for all, so that a
/// contradiction is refused when they are read.
///
/// # Errors
/// When an input cannot be read.
pub fn set_units(inputs: &mut [WeightedInput], unit: Option<ScoreUnit>) -> Result<(), DataError> {
    let mut lacks_unit = Vec::with_capacity(inputs.len());
    for input in &*inputs {
        lacks_unit.push(input_unit(input)?.origin == UnitOrigin::FormatDefault);
    }
    let set_all = !lacks_unit.contains(&true);
    for (input, _) in inputs.iter_mut().zip(lacks_unit).filter(|(_, lacks_unit)| set_all || *lacks_unit) {
        input.unit = unit;
    }
    Ok(())
}

enum InputReader {
    Games { reading: Box<GameReader<SampleFilter>>, read: u64, decoders: &'static ThreadPool },
    Samples { reader: Box<SampleReader>, read: u64, order: GameOrder },
}

/// Where samples are drawn by game, a check that every game's samples are adjacent, as they are unless they were
/// shuffled.
struct GameOrder {
    is_needed: bool,
    last_game: u32,
}

impl GameOrder {
    fn check(&mut self, block: &[Record], path: &Path) -> Result<(), DataError> {
        if !self.is_needed {
            return Ok(());
        }
        for record in block {
            if record.game() < self.last_game {
                let reason = "its samples are shuffled, so --per-game cannot see which belong to one game; take the \
                              file that was shuffled, or leave --per-game out";
                return Err(DataError::Input { input: path.display().to_string(), reason: reason.into() });
            }
            self.last_game = record.game();
        }
        Ok(())
    }
}

impl SampleSource {
    /// Opens an input; its scores are converted to `unit`.
    ///
    /// # Errors
    /// When the input cannot be read or its format is not supported.
    pub fn open(
        input: &WeightedInput,
        unit: ScoreUnit,
        options: &BuildOptions,
        scores_later: bool,
    ) -> Result<SampleSource, DataError> {
        let origin = &input.origin;
        let format = match (input.format, origin) {
            (Some(format), _) => format,
            (None, InputPath::File(path)) => detect(path)?,
            // A stream cannot be inspected first; `GameReader` refuses other formats.
            (None, InputPath::Stdin) => Format::Pgn,
        };
        let made_from = match origin {
            InputPath::File(path) => original_formats(path, format)?,
            InputPath::Stdin => Vec::new(),
        };
        let without_plies = made_from.iter().copied().chain([format]).find(|format| !format.has_ply());
        if let (Some(option), Some(without_plies)) = (options.needs_plies(), without_plies) {
            let name = without_plies.name();
            let made = if without_plies == format { "" } else { "it was made from a file without plies: " };
            let reason = format!("{made}{name} records no plies, which {option} needs; leave it out");
            return Err(DataError::Input { input: origin.path().display().to_string(), reason });
        }
        let options = if without_plies.is_none() { options.clone() } else { options.without_ply_filters() };
        let is_drawn_by_game = matches!(options.per_game, PerGame::AtMost(_));
        let own_unit = input_unit(input)?;
        let rescale = UnitConversion { from: own_unit.unit, to: unit };
        let filter = SampleFilter::new(options, scores_later, unit);
        let order = GameOrder { is_needed: is_drawn_by_game, last_game: 0 };
        let reader = match origin {
            _ if format == Format::Pgn => {
                let reading = Box::new(GameReader::new(Input::open(origin)?, filter.clone(), input.evals));
                InputReader::Games { reading, read: 0, decoders: decoders(&origin.path())? }
            }
            InputPath::File(path) => {
                let reader = Box::new(SampleReader::open(path, Some(format), input.unit)?);
                InputReader::Samples { reader, read: 0, order }
            }
            InputPath::Stdin => {
                let stdin = Box::new(std::io::stdin());
                let reader = SampleReader::from_reader(stdin, &origin.path(), format, input.unit)?;
                InputReader::Samples { reader: Box::new(reader), read: 0, order }
            }
        };
        let weight = input.weight;
        Ok(SampleSource { reader, filter, unit: own_unit, rescale, scores_cut: 0, weight, made_from })
    }

    /// The next samples, or `None` at the end.
    ///
    /// # Errors
    /// When the input ends early or is damaged.
    pub fn next_batch(&mut self) -> Result<Option<SourceBatch>, DataError> {
        match &mut self.reader {
            InputReader::Games { reading, read, decoders } => {
                let Some(games) = decoders.install(|| reading.next_batch())? else { return Ok(None) };
                let first = *read;
                *read += games.len() as u64;
                Ok(Some((first..).zip(games).collect()))
            }
            InputReader::Samples { reader, read, order } => {
                let Some(mut block) = reader.next_block()? else { return Ok(None) };
                order.check(&block, reader.path())?;
                self.scores_cut += rescale_scores(&mut block, self.rescale);
                let games = filter_by_game(&self.filter, &block);
                let first = *read;
                *read += block.len() as u64;
                let broken = |(index, problem)| DataError::BrokenSample {
                    path: reader.path().into(),
                    sample: first + index as u64,
                    problem,
                };
                games.map(Some).map_err(broken)
            }
        }
    }

    /// Games read so far, including games without samples.
    pub fn games(&self) -> u64 {
        match &self.reader {
            InputReader::Games { read, .. } => *read,
            InputReader::Samples { reader, .. } => reader.games(),
        }
    }

    /// Bytes read so far, as stored.
    pub fn bytes(&self) -> u64 {
        match &self.reader {
            InputReader::Games { reading, .. } => reading.input().meter.bytes(),
            InputReader::Samples { reader, .. } => reader.bytes_read(),
        }
    }

    /// The input's name in messages and in the manifest.
    pub fn path(&self) -> PathBuf {
        match &self.reader {
            InputReader::Games { reading, .. } => reading.input().origin.path(),
            InputReader::Samples { reader, .. } => reader.path().into(),
        }
    }

    /// The manifest's entry for this input, once it is read to its end.
    ///
    /// # Errors
    /// When the file must be read again for its hash and cannot be.
    pub fn source_file(&self) -> Result<SourceFile, DataError> {
        let (format, (bytes, hash)) = match &self.reader {
            InputReader::Games { reading, .. } => {
                let meter = &reading.input().meter;
                (Format::Pgn, (meter.bytes(), meter.hash()))
            }
            InputReader::Samples { reader, .. } => (reader.format(), reader.source_hash()?),
        };
        let (skipped, skipped_samples, notes) = match &self.reader {
            InputReader::Games { reading, .. } => (reading.skipped.clone(), Default::default(), reading.notes()),
            InputReader::Samples { reader, .. } => (SkippedGames::default(), reader.skipped(), PgnNotes::default()),
        };
        Ok(SourceFile {
            path: self.path().display().to_string(),
            format,
            made_from: self.made_from.clone(),
            bytes,
            blake3: hash.to_hex().to_string(),
            games: self.games(),
            skipped,
            skipped_samples,
            notes,
            weight: self.weight,
            score_unit: self.unit,
            scores_cut: self.scores_cut,
        })
    }
}

/// Least number of records filtered by one task.
const TASK_RECORDS: usize = 4096;

/// Cuts a block into games and filters them on all cores.
fn filter_by_game(filter: &SampleFilter, block: &[Record]) -> Result<SourceBatch, (usize, RecordError)> {
    let games: Vec<&[Record]> = block.chunk_by(|a, b| a.game() == b.game()).collect();
    let offset = |game: &[Record]| game.as_ptr_range().start.addr() - block.as_ptr_range().start.addr();
    let filter_game = |game: &&[Record]| {
        let filtered = filter.filter(game).map_err(|(index, error)| (offset(game) / Record::BYTES + index, error))?;
        Ok((u64::from(game[0].game()), filtered))
    };
    let games_per_task = (TASK_RECORDS * games.len()).div_ceil(block.len().max(1)).max(1);
    games.par_iter().with_min_len(games_per_task).map(filter_game).collect()
}

/// Hands every batch and the bytes read so far to `visit`, while another thread reads and filters the next batch.
/// Returns the source, read to its end.
///
/// # Errors
/// The first error of the source or of `visit`.
pub fn read_ahead(
    mut source: SampleSource,
    mut visit: impl FnMut(SourceBatch, u64) -> Result<(), DataError>,
) -> Result<SampleSource, DataError> {
    let path = source.path();
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(1);
        let reader = scope.spawn(move || {
            loop {
                let next = source.next_batch().map(|batch| batch.map(|batch| (batch, source.bytes())));
                let ended = !matches!(next, Ok(Some(_)));
                // Sending fails when `visit` has failed and the receiver is gone.
                if sender.send(next).is_err() || ended {
                    return source;
                }
            }
        });
        for next in batches {
            let Some((batch, bytes)) = next? else { break };
            visit(batch, bytes)?;
        }
        reader.join().map_err(|_| DataError::read(&path)(io::Error::other("the thread that reads it stopped")))
    })
}
