//! Counts and metadata of a file of games or samples.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::Manifest;
use crate::data::formats::{Format, SampleReader, SkippedSamples, UnitOrigin, all_positions, detect, score_unit};
use crate::data::{
    DataError, EvalOptions, Fsd, GameSet, InputPath, PgnNotes, Purpose, Record, ScoreUnit, SkippedGames,
};
use crate::units::Seed;

/// Counts and metadata of a file of games or samples.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileInfo {
    /// Format of the samples or games.
    pub format: &'static str,
    /// Compression of the file.
    pub compression: &'static str,
    /// Samples; for games the positions from which a move was played.
    pub samples: u64,
    /// Games to which the samples belong.
    pub games: u64,
    /// Samples that have a score.
    pub with_score: u64,
    /// Samples that have their game's result.
    pub with_result: u64,
    /// Unit of the scores.
    pub score_unit: ScoreUnit,
    /// Where that unit is recorded, or why it is assumed.
    pub unit_said_by: UnitOrigin,
    /// blake3 of the samples as records.
    pub hash: String,
    /// Broken games of a file of games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkippedGames>,
    /// Unreadable entries of other files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_samples: Option<SkippedSamples>,
    /// The unusual features of the games of PGN.
    #[serde(skip_serializing_if = "PgnNotes::is_empty")]
    pub notes: PgnNotes,
    /// The method for which a `.fsd` file's samples were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Purpose>,
    /// The seed with which a `.fsd` file's samples were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// The manifest beside a `.fsd` file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
}

/// Reads a file to its end and counts its samples. `unit` is the unit of the scores where the file does not record it.
///
/// # Errors
/// When the file cannot be read to its end, holds nothing but broken entries, or records another unit than `unit`.
pub fn file_info(
    path: &Path,
    format: Option<Format>,
    unit: Option<ScoreUnit>,
    evals: EvalOptions,
) -> Result<FileInfo, DataError> {
    let format = format.map_or_else(|| detect(path), Ok)?;
    let scores = score_unit(path, Some(format), unit)?;
    let mut info = FileInfo {
        format: format.name(),
        compression: "plain",
        samples: 0,
        games: 0,
        with_score: 0,
        with_result: 0,
        score_unit: scores.unit,
        unit_said_by: scores.origin,
        hash: String::new(),
        skipped: None,
        skipped_samples: None,
        notes: PgnNotes::default(),
        method: None,
        seed: None,
        manifest: None,
    };
    match format {
        Format::Fsd => read_fsd(path, &mut info)?,
        Format::Pgn => read_games(path, evals, &mut info)?,
        format => read_samples(path, format, &mut info)?,
    }
    Ok(info)
}

impl FileInfo {
    fn count(&mut self, records: &[Record]) {
        self.samples += records.len() as u64;
        self.with_score += records.iter().filter(|record| record.score().is_some()).count() as u64;
        self.with_result += records.iter().filter(|record| record.result().is_some()).count() as u64;
    }
}

/// Records read at once.
const CHUNK: usize = 1 << 18;

fn read_fsd(path: &Path, info: &mut FileInfo) -> Result<(), DataError> {
    let fsd = Fsd::open(path)?;
    let mut games = GameSet::of(fsd.header());
    fsd.for_each_chunk(CHUNK, |records| {
        records.iter().for_each(|record| games.add(record));
        info.count(records);
        Ok::<(), DataError>(())
    })?;
    info.games = games.count();
    info.hash = fsd.hash();
    info.method = Some(fsd.header().purpose);
    info.seed = Some(fsd.header().seed);
    info.manifest = match Manifest::of(&fsd) {
        Ok(manifest) => Some(manifest),
        Err(DataError::Read { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(())
}

fn read_samples(path: &Path, format: Format, info: &mut FileInfo) -> Result<(), DataError> {
    let mut reader = SampleReader::open(path, Some(format), None)?;
    let mut hasher = blake3::Hasher::new();
    while let Some(block) = reader.next_block()? {
        hasher.update(bytemuck::cast_slice(&block));
        info.count(&block);
    }
    let skipped = reader.skipped();
    if info.samples == 0 && skipped.total() > 0 {
        return Err(DataError::NoGames { path: path.into(), skipped: skipped.describe() });
    }
    info.compression = reader.compression();
    info.games = reader.games();
    info.hash = hasher.finalize().to_hex().to_string();
    info.skipped_samples = Some(skipped);
    Ok(())
}

fn read_games(path: &Path, evals: EvalOptions, info: &mut FileInfo) -> Result<(), DataError> {
    let mut hasher = blake3::Hasher::new();
    let found = all_positions(&InputPath::of(path), evals, |records| {
        hasher.update(bytemuck::cast_slice(records));
        info.count(records);
        Ok(true)
    })?;
    if found.games == 0 && found.skipped.total() > 0 {
        let first = found.skipped.examples.first().map(ToString::to_string).unwrap_or_default();
        let skipped = format!(" ({} broken games; the first: {first})", found.skipped.total());
        return Err(DataError::NoGames { path: path.into(), skipped });
    }
    info.compression = found.compression;
    info.games = found.games;
    info.hash = hasher.finalize().to_hex().to_string();
    info.skipped = Some(found.skipped);
    info.notes = found.notes;
    Ok(())
}
