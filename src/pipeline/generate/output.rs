//! GameJournal games to a file: PGN, plain or compressed, or records.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::finished_game::{FinishedGame, samples_of};
use super::{GenerateError, GenerateJob, Generation};
use crate::data::formats::{Account, Format, Rescale, SampleWriter, rescale};
use crate::data::{DataError, Method, Provenance, ScoreUnit};
use crate::output::OutputFile;
use crate::pipeline::{Manifest, manifest_path};

/// What is written, by the output's name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `.pgn`
    Pgn,
    /// `.pgn.zst`
    CompressedPgn,
    /// `.fsd` or `.binpack`
    Samples(Format),
}

impl Kind {
    pub fn of(output: &Path) -> Result<Kind, GenerateError> {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let kinds = [
            (".pgn", Kind::Pgn),
            (".pgn.zst", Kind::CompressedPgn),
            (".fsd", Kind::Samples(Format::Fsd)),
            (".binpack", Kind::Samples(Format::Binpack)),
        ];
        let kind = kinds.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| kind);
        let wrong = || GenerateError::Request("the output's name must end in .pgn, .pgn.zst, .fsd or .binpack".into());
        kind.ok_or_else(wrong)
    }
}

/// The file being written.
pub enum Sink {
    Pgn(OutputFile),
    CompressedPgn(zstd::Encoder<'static, OutputFile>),
    /// And how many scores were cut to what fits the format's unit.
    Samples(Format, Box<SampleWriter>, u64),
}

/// The strongest that is no slower than engines play.
const ZSTD_LEVEL: i32 = 19;

/// What was written to a file of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub samples: u64,
    /// What the format could not hold.
    pub account: Account,
    /// What the scores are measured in.
    pub score_unit: ScoreUnit,
}

impl Sink {
    pub fn create(output: &Path) -> Result<Sink, GenerateError> {
        Ok(match Kind::of(output)? {
            Kind::Pgn => Sink::Pgn(OutputFile::create(output)?),
            Kind::CompressedPgn => {
                let failed = DataError::write(output);
                let encoder = zstd::Encoder::new(OutputFile::create(output)?, ZSTD_LEVEL).and_then(|mut encoder| {
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                Sink::CompressedPgn(encoder.map_err(failed)?)
            }
            Kind::Samples(format) => Sink::Samples(format, Box::new(SampleWriter::create(output, format, false)?), 0),
        })
    }

    /// Adds a game. `names` are the players'.
    pub fn put(&mut self, game: &FinishedGame, names: Option<&[String]>, output: &Path) -> Result<(), GenerateError> {
        match self {
            Sink::Pgn(file) => file.put(game.pgn(names).as_bytes())?,
            Sink::CompressedPgn(encoder) => {
                encoder.write_all(game.pgn(names).as_bytes()).map_err(DataError::write(output))?;
            }
            Sink::Samples(format, writer, cut) => {
                let broken = |reason: String| GenerateError::Game { game: game.number, reason };
                let mut samples = samples_of(game).map_err(|error| broken(error.to_string()))?;
                *cut += rescale(&mut samples, Rescale { from: ScoreUnit::Centipawns, to: format.usual_unit() });
                writer.push(&samples)?;
            }
        }
        Ok(())
    }

    /// Puts the file in its place, and a manifest beside a `.fsd` file; what a file of samples holds.
    pub fn finish(self, output: &Path, job: &GenerateJob, facts: &Facts) -> Result<Option<Written>, GenerateError> {
        match self {
            Sink::Pgn(file) => file.finish()?,
            Sink::CompressedPgn(encoder) => encoder.finish().map_err(DataError::write(output))?.finish()?,
            Sink::Samples(format, writer, cut) => {
                let mut written = finish_samples(format, *writer, output, job, facts)?;
                written.account.clamped += cut;
                return Ok(Some(written));
            }
        }
        Ok(None)
    }
}

/// What the games were, for the manifest.
pub struct Facts<'a> {
    pub generated: &'a Generation,
    /// Moves played.
    pub plies: u64,
}

fn finish_samples(
    format: Format,
    writer: SampleWriter,
    output: &Path,
    job: &GenerateJob,
    facts: &Facts,
) -> Result<Written, GenerateError> {
    if writer.samples() == 0 {
        return Err(GenerateError::Request("no position was searched: nothing but random moves was played".into()));
    }
    let (method, score_unit) = (Method::Eval, format.usual_unit());
    let failed =
        |error: serde_json::Error| DataError::Manifest { path: manifest_path(output), reason: error.to_string() };
    let source = blake3::hash(&serde_json::to_vec(facts.generated).map_err(failed)?);
    let (data, written) = writer.seal(Provenance {
        purpose: method.into(),
        score_unit,
        seed: facts.generated.settings.seed,
        games: job.games,
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
            generated: Some(facts.generated.clone()),
            labelling: None,
            sources: Vec::new(),
            games: job.games.into(),
            positions: facts.plies,
            kept: written.samples,
            dropped: BTreeMap::new(),
            dropped_games: BTreeMap::new(),
            samples_hash: hash,
        };
        // The manifest first: where the data stands, its manifest does too.
        manifest.seal(output)?.persist()?;
    }
    data.persist()?;
    Ok(Written { samples: written.samples, account: written.account, score_unit })
}
