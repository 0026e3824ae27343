//! From one format to another.

use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::manifest::{Manifest, SourceFile};
use crate::data::formats::{
    Account, FileUnit, Format, Rescale, SaidBy, SampleReader, SampleWriter, SkippedSamples, by_name, rescale,
};
use crate::data::{DataError, Provenance, Purpose, ScoreUnit, Skipped};
use crate::units::Seed;

/// How to convert. What is not given is taken from the files.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertOptions {
    pub from: Option<Format>,
    pub to: Option<Format>,
    /// Unit of the source's scores, where the file does not say it itself; the usual one of its format.
    pub from_unit: Option<ScoreUnit>,
    /// Unit of the target's scores; of a `.fsd` file the source's, else the usual one of its format.
    pub to_unit: Option<ScoreUnit>,
    /// Samples without a result count as draws where the format wants a result.
    pub unknown_is_draw: bool,
}

/// What a manifest tells of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversion {
    pub from: Format,
    pub to: Format,
    pub score_units: Rescale,
    /// Who says what the source's scores are measured in; none of older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_said_by: Option<SaidBy>,
    #[serde(flatten)]
    pub account: Account,
    pub skipped: SkippedSamples,
}

/// A finished conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConvertSummary {
    /// Samples read and written.
    pub read: u64,
    pub samples: u64,
    pub games: u64,
    /// blake3 of the records, of a `.fsd` file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    #[serde(flatten)]
    pub conversion: Conversion,
}

/// How far a conversion is.
#[derive(Copy, Clone, Debug)]
pub struct ConvertProgress {
    pub samples: u64,
    pub bytes: u64,
    /// Of standard input it is not known.
    pub length: Option<u64>,
}

/// Converts `input` into `output`; a `.fsd` file gets a manifest beside it, with `command` in it.
///
/// # Errors
/// When the input cannot be read to its end, no sample of it can be held, or the output cannot be written; then nothing
/// is left.
pub fn convert(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    command: &[String],
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, DataError> {
    let to = target(output, options)?;
    run(SampleReader::open(input, options.from, options.from_unit)?, output, to, options, command, progress)
}

/// As [`convert`], from a stream such as standard input. `options.from` must be given: binpack, bullet or text.
///
/// # Errors
/// As [`convert`], and when the format is not given or cannot be read from a stream.
pub fn convert_stream(
    input: Box<dyn Read + Send>,
    name: &Path,
    output: &Path,
    options: &ConvertOptions,
    command: &[String],
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, DataError> {
    let to = target(output, options)?;
    let format = options.from.ok_or(DataError::NoStream { path: name.into(), format: "a file of unknown format" })?;
    let reader = SampleReader::from_reader(input, name, format, options.from_unit)?;
    run(reader, output, to, options, command, progress)
}

fn target(output: &Path, options: &ConvertOptions) -> Result<Format, DataError> {
    let refuse = |why| DataError::Target { path: output.into(), why };
    let compressed = ["zst", "gz", "bz2"].iter().any(|ending| output.extension().is_some_and(|found| found == *ending));
    if compressed {
        return Err(refuse("compressed files are not written"));
    }
    options.to.or_else(|| by_name(output)).ok_or_else(|| refuse("its name tells no format"))
}

fn run(
    mut reader: SampleReader,
    output: &Path,
    to: Format,
    options: &ConvertOptions,
    command: &[String],
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<ConvertSummary, DataError> {
    let FileUnit { unit: from_unit, said_by } = reader.unit();
    let own = if to == Format::Fsd { from_unit } else { to.usual_unit() };
    let units = Rescale { from: from_unit, to: options.to_unit.unwrap_or(own) };
    let mut writer = SampleWriter::create(output, to, options.unknown_is_draw)?;
    let (mut read, mut clamped) = (0, 0);
    while let Some(mut block) = reader.next_block()? {
        read += block.len() as u64;
        clamped += rescale(&mut block, units);
        writer.push(&block)?;
        progress(ConvertProgress { samples: read, bytes: reader.bytes_read(), length: reader.length() });
    }
    let mut account = writer.account();
    account.clamped += clamped;
    let conversion = Conversion {
        from: reader.format(),
        to,
        score_units: units,
        unit_said_by: Some(said_by),
        account,
        skipped: reader.skipped(),
    };
    if writer.samples() == 0 {
        let why = describe(&conversion);
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
    if let Some(hash) = &written.hash {
        let source = SourceFile {
            path: reader.path().display().to_string(),
            format: Some(reader.format()),
            bytes,
            blake3: source_hash.to_hex().to_string(),
            games,
            skipped: Skipped::default(),
            skipped_samples: conversion.skipped.clone(),
            weight: 1.0,
            score_unit: Some(reader.unit()),
            scores_cut: clamped,
        };
        let manifest = Manifest {
            fsbench: env!("CARGO_PKG_VERSION").into(),
            command: command.to_vec(),
            method: Purpose::Any,
            score_unit: units.to,
            options: None,
            conversion: Some(conversion.clone()),
            generated: None,
            labelling: None,
            sources: vec![source],
            games,
            positions: read,
            kept: written.samples,
            dropped: Default::default(),
            dropped_games: Default::default(),
            samples_hash: hash.clone(),
        };
        // The manifest first: where the data stands, its manifest does too.
        manifest.seal(output)?.persist()?;
    }
    file.persist()?;
    Ok(ConvertSummary { read, samples: written.samples, games, hash: written.hash, conversion })
}

fn describe(conversion: &Conversion) -> String {
    let left_out = conversion.account.left_out.iter().map(|(why, count)| format!("{count} {}", why.name()));
    let skipped = conversion.skipped.by_reason.iter().map(|(reason, count)| format!("{count} skipped: {reason}"));
    let parts: Vec<String> = left_out.chain(skipped).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}
