//! Converts samples from one format to another.

use std::io::Read;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::manifest::{Manifest, SourceFile, original_formats};
use crate::data::formats::{
    FileUnit, Format, Omissions, SampleReader, SampleWriter, SkippedSamples, UnitConversion, UnitOrigin,
    format_by_name, rescale_scores,
};
use crate::data::{DataError, EvalOptions, PgnNotes, Provenance, Purpose, ScoreUnit, SkippedGames};
use crate::units::Seed;

/// How to convert. Missing options are derived from the files.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertOptions {
    pub from: Option<Format>,
    pub to: Option<Format>,
    /// Unit of the source's scores where the file does not record it; by default the usual unit of its format.
    pub from_unit: Option<ScoreUnit>,
    /// Unit of the target's scores; by default the source's unit for a `.fsd` file, else the usual unit of its format.
    pub to_unit: Option<ScoreUnit>,
    /// Writes samples without a result as draws where the format needs a result.
    pub unknown_is_draw: bool,
    /// How scores in PGN comments are read.
    pub evals: EvalOptions,
}

/// The facts about a conversion, for the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversion {
    pub from: Format,
    pub to: Format,
    pub score_units: UnitConversion,
    /// Where the unit of the source's scores comes from.
    pub unit_said_by: UnitOrigin,
    #[serde(flatten)]
    pub omissions: Omissions,
    pub skipped: SkippedSamples,
    /// The unusual features of the games of PGN.
    #[serde(default, skip_serializing_if = "PgnNotes::is_empty")]
    pub notes: PgnNotes,
}

/// A summary of a finished conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConvertSummary {
    /// Samples read.
    pub read: u64,
    /// Samples written.
    pub samples: u64,
    /// Games of the file that was read.
    pub games: u64,
    /// blake3 of the records of a `.fsd` file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    #[serde(flatten)]
    pub conversion: Conversion,
}

/// The progress of a conversion.
#[derive(Copy, Clone, Debug)]
pub struct ConvertProgress {
    pub samples: u64,
    pub bytes: u64,
    /// Length of the input; `None` for standard input.
    pub length: Option<u64>,
}

/// What to convert to.
#[derive(Copy, Clone, Debug)]
pub struct ConvertJob<'a> {
    pub output: &'a Path,
    pub options: &'a ConvertOptions,
    /// The command line, for the manifest of a `.fsd` file.
    pub command: &'a [String],
}

/// Converts `input`. A `.fsd` file gets a manifest beside it.
///
/// # Errors
/// When the input cannot be read to its end, the format can hold none of its samples, or the output cannot be written.
/// No file is left behind then.
pub fn convert(
    input: &Path,
    job: &ConvertJob<'_>,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, DataError> {
    let to = target_format(job)?;
    let ConvertOptions { from, from_unit, evals, .. } = *job.options;
    convert_samples(SampleReader::open_with(input, from, from_unit, evals)?, to, job, progress)
}

/// Converts a stream such as standard input. `options.from` must be binpack, bullet or text.
///
/// # Errors
/// As [`convert`], and when the format is not given or cannot be read from a stream.
pub fn convert_stream(
    input: Box<dyn Read + Send>,
    name: &Path,
    job: &ConvertJob<'_>,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, DataError> {
    let to = target_format(job)?;
    let ConvertOptions { from, from_unit, .. } = *job.options;
    let format = from.ok_or(DataError::NoStream { path: name.into(), format: "a file of unknown format" })?;
    convert_samples(SampleReader::from_reader(input, name, format, from_unit)?, to, job, progress)
}

fn target_format(job: &ConvertJob<'_>) -> Result<Format, DataError> {
    let ConvertJob { output, options, .. } = *job;
    let refuse = |why| DataError::OutputFormat { path: output.into(), why };
    let compressed = ["zst", "gz", "bz2"].iter().any(|ending| output.extension().is_some_and(|found| found == *ending));
    if compressed {
        return Err(refuse("fsbench does not write compressed files"));
    }
    options.to.or_else(|| format_by_name(output)).ok_or_else(|| refuse("its name names no known format"))
}

fn convert_samples(
    mut reader: SampleReader,
    to: Format,
    job: &ConvertJob<'_>,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, DataError> {
    let ConvertJob { output, options, command } = *job;
    let FileUnit { unit: from_unit, origin } = reader.unit();
    let default_unit = if to == Format::Fsd { from_unit } else { to.default_unit() };
    let units = UnitConversion { from: from_unit, to: options.to_unit.unwrap_or(default_unit) };
    let mut writer = SampleWriter::create(output, to, options.unknown_is_draw)?;
    let mut read = 0;
    let mut clamped = 0;
    while let Some(mut block) = reader.next_block()? {
        read += block.len() as u64;
        clamped += rescale_scores(&mut block, units);
        writer.push(&block)?;
        progress(ConvertProgress { samples: read, bytes: reader.bytes_read(), length: reader.length() });
    }
    let mut omissions = writer.omissions();
    omissions.clamped += clamped;
    let conversion = Conversion {
        from: reader.format(),
        to,
        score_units: units,
        unit_said_by: origin,
        omissions,
        skipped: reader.skipped(),
        notes: reader.notes(),
    };
    if writer.samples() == 0 {
        let why = describe_left_out(&conversion);
        return Err(DataError::Empty { path: reader.path().into(), format: to.name(), why });
    }
    let (bytes, source_hash) = reader.source_hash()?;
    let games = reader.games();
    let provenance = Provenance {
        purpose: Purpose::Any,
        score_unit: units.to,
        seed: Seed(0),
        games: games.min(u64::from(u32::MAX)) as u32,
        sources: *blake3::hash(source_hash.as_bytes()).as_bytes(),
    };
    let (file, written) = writer.seal(provenance)?;
    let source = SourceFile {
        path: reader.path().display().to_string(),
        format: reader.format(),
        made_from: original_formats(reader.path(), reader.format())?,
        bytes,
        blake3: source_hash.to_hex().to_string(),
        games,
        skipped: SkippedGames::default(),
        skipped_samples: conversion.skipped.clone(),
        notes: conversion.notes.clone(),
        weight: 1.0,
        score_unit: reader.unit(),
        scores_cut: clamped,
    };
    let summary = ConvertSummary { read, samples: written.samples, games, hash: written.hash, conversion };
    // The manifest comes first, so that no data file exists without one.
    if let Some(manifest) = manifest_of(&summary, source, command) {
        manifest.seal(output)?.persist()?;
    }
    file.persist()?;
    Ok(summary)
}

/// The manifest of a `.fsd` file; `None` for other formats.
fn manifest_of(summary: &ConvertSummary, source: SourceFile, command: &[String]) -> Option<Manifest> {
    Some(Manifest {
        fsbench: env!("CARGO_PKG_VERSION").into(),
        command: command.to_vec(),
        method: Purpose::Any,
        score_unit: summary.conversion.score_units.to,
        options: None,
        conversion: Some(summary.conversion.clone()),
        generated: None,
        labelling: None,
        sources: vec![source],
        games: summary.games,
        positions: summary.read,
        repeated: 0,
        kept: summary.samples,
        dropped: Default::default(),
        spoiled_games: Default::default(),
        dropped_games: Default::default(),
        samples_hash: summary.hash.clone()?,
    })
}

/// The samples left out and skipped, for an error message.
fn describe_left_out(conversion: &Conversion) -> String {
    let left_out = conversion.omissions.samples.iter().map(|(why, count)| format!("{count} {}", why.name()));
    let counts: Vec<String> = left_out.collect();
    let left_out = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    left_out + &conversion.skipped.describe()
}
