//! Writes finished games to a file: PGN, plain or compressed, or samples.

use std::io::Write;
use std::path::Path;

use super::{GenerateError, GenerateJob, GenerateSummary, pgn_of, samples_of};
use crate::data::formats::{
    Format, Omissions, SampleWriter, UnitConversion, format_by_name, has_compressed_name, rescale_scores,
};
use crate::data::{DataError, Method, Provenance, RecordError, ScoreUnit};
use crate::json;
use crate::output::OutputFile;
use crate::pipeline::build::GameDropReason;
use crate::pipeline::generation::Generation;
use crate::pipeline::{Manifest, manifest_path};
use crate::play::{PlayError, PlayedGame};
use crate::units::SortedMap;

/// The output's format, according to its name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// `.pgn`
    Pgn,
    /// `.pgn.zst`
    CompressedPgn,
    /// Any other format that is written.
    Samples(Format),
}

impl OutputFormat {
    pub fn of(output: &Path) -> Result<OutputFormat, GenerateError> {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".pgn.zst") {
            return Ok(OutputFormat::CompressedPgn);
        }
        match format_by_name(output).filter(|_| !has_compressed_name(output)) {
            Some(Format::Pgn) => Ok(OutputFormat::Pgn),
            Some(format) if format.is_written() => Ok(OutputFormat::Samples(format)),
            _ => {
                let endings = Format::written_endings();
                Err(GenerateError::Request(format!("the output's name must end in .pgn, .pgn.zst, {endings}")))
            }
        }
    }
}

/// Writes games to the output.
pub enum GameWriter {
    Pgn(OutputFile),
    CompressedPgn(zstd::Encoder<'static, OutputFile>),
    /// The last field counts the scores cut to the range of the format's unit.
    Samples(Format, Box<SampleWriter>, u64),
}

/// The highest level that keeps up with the engines.
const ZSTD_LEVEL: i32 = 19;

/// Facts about a written file of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSamples {
    pub samples: u64,
    /// Information that the format could not hold.
    pub omissions: Omissions,
    /// Unit of the scores.
    pub score_unit: ScoreUnit,
}

impl GameWriter {
    pub fn create(output: &Path) -> Result<GameWriter, GenerateError> {
        Ok(match OutputFormat::of(output)? {
            OutputFormat::Pgn => GameWriter::Pgn(OutputFile::create(output)?),
            OutputFormat::CompressedPgn => {
                let failed = DataError::write(output);
                let encoder = zstd::Encoder::new(OutputFile::create(output)?, ZSTD_LEVEL).and_then(|mut encoder| {
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                GameWriter::CompressedPgn(encoder.map_err(failed)?)
            }
            OutputFormat::Samples(format) => {
                GameWriter::Samples(format, Box::new(SampleWriter::create(output, format, false)?), 0)
            }
        })
    }

    /// Adds a game. `names` are the players' names, by number.
    pub fn push(&mut self, game: &PlayedGame, names: Option<&[String]>, output: &Path) -> Result<(), GenerateError> {
        match self {
            GameWriter::Pgn(file) => file.put(pgn_of(game, names).as_bytes())?,
            GameWriter::CompressedPgn(encoder) => {
                encoder.write_all(pgn_of(game, names).as_bytes()).map_err(DataError::write(output))?;
            }
            GameWriter::Samples(format, writer, cut) => {
                let damaged = |error: RecordError| PlayError::Damaged { game: game.number, reason: error.to_string() };
                let mut samples = samples_of(game).map_err(damaged)?;
                *cut += rescale_scores(
                    &mut samples,
                    UnitConversion { from: ScoreUnit::Centipawns, to: format.default_unit() },
                );
                writer.push(&samples)?;
            }
        }
        Ok(())
    }

    /// Moves the file of the first `games` games into place, with a manifest beside a `.fsd` file. Returns facts about a
    /// file of samples.
    pub fn finish(
        self,
        output: &Path,
        job: &GenerateJob,
        generation: &Generation,
        games: u64,
        summary: &GenerateSummary,
    ) -> Result<Option<WrittenSamples>, GenerateError> {
        // A game of random moves only has a place in PGN, but no sample.
        let is_empty = match &self {
            GameWriter::Samples(_, writer, _) => writer.samples() == 0,
            GameWriter::Pgn(_) | GameWriter::CompressedPgn(_) => summary.games == 0,
        };
        if is_empty {
            return Err(GenerateError::Request(no_positions(summary)));
        }
        match self {
            GameWriter::Pgn(file) => file.finish()?,
            GameWriter::CompressedPgn(encoder) => encoder.finish().map_err(DataError::write(output))?.finish()?,
            GameWriter::Samples(format, writer, cut) => {
                let mut written = finish_samples(format, *writer, output, job, generation, games, summary)?;
                written.omissions.clamped += cut;
                return Ok(Some(written));
            }
        }
        Ok(None)
    }
}

fn finish_samples(
    format: Format,
    writer: SampleWriter,
    output: &Path,
    job: &GenerateJob,
    generation: &Generation,
    games: u64,
    summary: &GenerateSummary,
) -> Result<WrittenSamples, GenerateError> {
    let method = Method::Eval;
    let score_unit = format.default_unit();
    let failed =
        |error: serde_json::Error| DataError::Manifest { path: manifest_path(output), reason: error.to_string() };
    let source = blake3::hash(&json::to_bytes(generation).map_err(failed)?);
    let (data, written) = writer.seal(Provenance {
        purpose: method.into(),
        score_unit,
        seed: generation.settings.seed,
        games: games as u32,
        sources: *blake3::hash(source.as_bytes()).as_bytes(),
    })?;
    if let (Format::Fsd, Some(hash)) = (format, written.hash) {
        let manifest = Manifest {
            fsbench: env!("CARGO_PKG_VERSION").into(),
            command: job.command.clone(),
            method: method.into(),
            score_unit,
            options: None,
            conversion: None,
            generated: Some(generation.clone()),
            labelling: None,
            sources: Vec::new(),
            games: u64::from(summary.games + summary.dropped_openings),
            spoiled_games: summary.dropped_games.clone(),
            positions: summary.positions,
            repeated: 0,
            kept: written.samples,
            dropped: SortedMap::new(),
            dropped_games: Some((GameDropReason::Opening, u64::from(summary.dropped_openings)))
                .filter(|(_, count)| *count > 0)
                .into_iter()
                .collect(),
            samples_hash: hash,
        };
        // The manifest comes first, so that no data file exists without one.
        manifest.seal(output)?.persist()?;
    }
    data.persist()?;
    Ok(WrittenSamples { samples: written.samples, omissions: written.omissions, score_unit })
}

/// Why a file would hold no position.
fn no_positions(summary: &GenerateSummary) -> String {
    match (summary.dropped_openings, summary.games) {
        (0, 0) => "no position is left: an engine failed in every game; mend it or take another".into(),
        (0, _) => "no position was searched: only random moves were played".into(),
        (dropped, _) => format!(
            "no position is left: {dropped} games were dropped, as their openings lie beyond the opening bound; raise \
             it, or take other openings"
        ),
    }
}
