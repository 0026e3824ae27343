//! Counts and metadata of a file of games or samples.

use std::path::Path;

use serde::Serialize;

use super::Manifest;
use crate::data::formats::{Format, SampleReader, SkippedSamples, UnitOrigin, all_positions, detect, score_unit};
use crate::data::{DataError, Fsd, Header, Origin, ScoreUnit, Skipped};

/// Counts and metadata of a file of games or samples.
#[derive(Clone, Debug, Serialize)]
pub struct FileInfo {
    pub format: &'static str,
    pub compression: &'static str,
    /// Samples; for games the positions from which a move was played.
    pub samples: u64,
    /// Games to which the samples belong.
    pub games: u64,
    pub with_score: u64,
    pub with_result: u64,
    /// Unit of the scores.
    pub score_unit: ScoreUnit,
    /// Where that unit is recorded, or why it is assumed.
    pub unit_said_by: UnitOrigin,
    /// blake3 of the samples as records.
    pub hash: String,
    /// Broken games of a file of games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// Unreadable entries of other files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_samples: Option<SkippedSamples>,
    #[serde(skip)]
    pub header: Option<Header>,
    /// The manifest beside a `.fsd` file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
}

/// Reads a file to its end and counts its samples. `unit` is the unit of the scores where the file does not record it.
///
/// # Errors
/// When the file cannot be read to its end, is damaged, or records another unit than `unit`.
pub fn file_info(path: &Path, format: Option<Format>, unit: Option<ScoreUnit>) -> Result<FileInfo, DataError> {
    let format = format.map_or_else(|| detect(path), Ok)?;
    let scores = score_unit(path, Some(format), unit)?;
    let info = match format {
        Format::Fsd => fsd_info(path),
        Format::Pgn => games_info(path),
        format => samples_info(path, format),
    };
    Ok(FileInfo { score_unit: scores.unit, unit_said_by: scores.origin, ..info? })
}

/// Records read at once.
const CHUNK: usize = 1 << 18;

fn fsd_info(path: &Path) -> Result<FileInfo, DataError> {
    let fsd = Fsd::open(path)?;
    let (mut with_score, mut with_result) = (0, 0);
    // One bit per game number.
    let mut games = vec![0u64; (fsd.header().games as usize).div_ceil(64)];
    fsd.for_each_chunk(CHUNK, |records| {
        for record in records {
            let game = record.game() as usize;
            games.get_mut(game / 64).into_iter().for_each(|bits| *bits |= 1 << (game % 64));
        }
        with_score += records.iter().filter(|record| record.score().is_some()).count() as u64;
        with_result += records.iter().filter(|record| record.result().is_some()).count() as u64;
        Ok::<(), DataError>(())
    })?;
    let manifest = match Manifest::of(&fsd) {
        Ok(manifest) => Some(manifest),
        Err(DataError::Read { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(FileInfo {
        format: "fsd",
        compression: "plain",
        samples: fsd.header().samples,
        games: games.iter().map(|bits| u64::from(bits.count_ones())).sum(),
        with_score,
        with_result,
        score_unit: ScoreUnit::Centipawns,
        unit_said_by: UnitOrigin::File,
        hash: fsd.hash(),
        skipped: None,
        skipped_samples: None,
        header: Some(*fsd.header()),
        manifest,
    })
}

fn samples_info(path: &Path, format: Format) -> Result<FileInfo, DataError> {
    let mut reader = SampleReader::open(path, Some(format), None)?;
    let mut hasher = blake3::Hasher::new();
    let (mut samples, mut with_score, mut with_result) = (0, 0, 0);
    while let Some(block) = reader.next_block()? {
        hasher.update(bytemuck::cast_slice(&block));
        samples += block.len() as u64;
        with_score += block.iter().filter(|record| record.score().is_some()).count() as u64;
        with_result += block.iter().filter(|record| record.result().is_some()).count() as u64;
    }
    Ok(FileInfo {
        format: format.name(),
        compression: reader.compression(),
        samples,
        games: reader.games(),
        with_score,
        with_result,
        score_unit: ScoreUnit::Centipawns,
        unit_said_by: UnitOrigin::File,
        hash: hasher.finalize().to_hex().to_string(),
        skipped: None,
        skipped_samples: Some(reader.skipped()),
        header: None,
        manifest: None,
    })
}

fn games_info(path: &Path) -> Result<FileInfo, DataError> {
    let mut hasher = blake3::Hasher::new();
    let (mut with_score, mut with_result) = (0, 0);
    let found = all_positions(&Origin::of(path), |records| {
        hasher.update(bytemuck::cast_slice(records));
        with_score += records.iter().filter(|record| record.score().is_some()).count() as u64;
        with_result += records.iter().filter(|record| record.result().is_some()).count() as u64;
        Ok(true)
    })?;
    if found.games == 0 && found.skipped.total() > 0 {
        let first = found.skipped.examples.first().map(ToString::to_string).unwrap_or_default();
        let skipped = format!(" ({} broken games; the first: {first})", found.skipped.total());
        return Err(DataError::NoGames { path: path.into(), skipped });
    }
    Ok(FileInfo {
        format: "pgn",
        compression: found.compression,
        samples: found.positions,
        games: found.games,
        with_score,
        with_result,
        score_unit: ScoreUnit::Centipawns,
        unit_said_by: UnitOrigin::File,
        hash: hasher.finalize().to_hex().to_string(),
        skipped: Some(found.skipped),
        skipped_samples: None,
        header: None,
        manifest: None,
    })
}
