//! Finished games to a file: PGN, plain or compressed, or records.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::played::{Played, samples_of};
use super::{GenerateError, Settings, Work};
use crate::data::output::OutputFile;
use crate::data::writer::Provenance;
use crate::data::{DataError, FsdWriter, Manifest, Method, Options, ScoreUnit, manifest_path};

/// What is written, by the output's name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `.pgn`
    Pgn,
    /// `.pgn.zst`
    CompressedPgn,
    /// `.fsd`
    Fsd,
}

impl Kind {
    pub fn of(output: &Path) -> Result<Kind, GenerateError> {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let kinds = [(".pgn", Kind::Pgn), (".pgn.zst", Kind::CompressedPgn), (".fsd", Kind::Fsd)];
        let kind = kinds.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| kind);
        kind.ok_or_else(|| GenerateError::Request("the output's name must end in .pgn, .pgn.zst or .fsd".into()))
    }
}

/// The file being written.
pub enum Sink {
    Pgn(OutputFile),
    CompressedPgn(zstd::Encoder<'static, OutputFile>),
    Fsd(Box<FsdWriter>),
}

/// The strongest that is no slower than engines play.
const ZSTD_LEVEL: i32 = 19;

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
            Kind::Fsd => Sink::Fsd(Box::new(FsdWriter::create(output)?)),
        })
    }

    /// Adds a game; the samples it gave, for a file of samples. `names` are the players'.
    pub fn put(&mut self, game: &Played, names: Option<&[String]>, output: &Path) -> Result<u64, GenerateError> {
        match self {
            Sink::Pgn(file) => file.put(game.pgn(names).as_bytes())?,
            Sink::CompressedPgn(encoder) => {
                encoder.write_all(game.pgn(names).as_bytes()).map_err(DataError::write(output))?;
            }
            Sink::Fsd(writer) => {
                let samples = samples_of(game)
                    .map_err(|error| GenerateError::Game { game: game.number, reason: error.to_string() })?;
                samples.iter().try_for_each(|record| writer.push(record))?;
                return Ok(samples.len() as u64);
            }
        }
        Ok(0)
    }

    /// Puts the file in its place, and a manifest beside a file of samples.
    pub fn finish(self, output: &Path, settings: &Settings, work: &Work, facts: &Facts) -> Result<(), GenerateError> {
        match self {
            Sink::Pgn(file) => file.finish()?,
            Sink::CompressedPgn(encoder) => encoder.finish().map_err(DataError::write(output))?.finish()?,
            Sink::Fsd(writer) => finish_samples(*writer, output, settings, work, facts)?,
        }
        Ok(())
    }
}

/// What the games were, for the manifest.
pub struct Facts<'a> {
    /// How they came about: engines, settings and book.
    pub about: &'a Value,
    /// Moves played.
    pub plies: u64,
    pub samples: u64,
}

/// The manifest of a file of samples, and how its games came about.
#[derive(Serialize)]
struct GeneratedManifest<'a> {
    #[serde(flatten)]
    manifest: Manifest,
    generated: &'a Value,
}

fn finish_samples(
    writer: FsdWriter,
    output: &Path,
    settings: &Settings,
    work: &Work,
    facts: &Facts,
) -> Result<(), GenerateError> {
    if facts.samples == 0 {
        return Err(GenerateError::Request("no position was searched: nothing but random moves was played".into()));
    }
    let (method, score_unit) = (Method::Eval, ScoreUnit::Centipawns);
    let manifest = Manifest {
        fsbench: env!("CARGO_PKG_VERSION").into(),
        command: work.command.clone(),
        method,
        score_unit,
        options: Options { seed: settings.seed, min_ply: 0, ..Options::new(method) },
        sources: Vec::new(),
        games: work.games.into(),
        positions: facts.plies,
        kept: facts.samples,
        dropped: BTreeMap::new(),
        dropped_games: BTreeMap::new(),
        samples_hash: blake3::Hash::from_bytes(writer.hash()).to_hex().to_string(),
    };
    let source = blake3::hash(facts.about.to_string().as_bytes());
    let data = writer.seal(Provenance {
        method,
        score_unit,
        seed: settings.seed,
        games: work.games,
        sources: *blake3::hash(source.as_bytes()).as_bytes(),
    })?;
    let path = manifest_path(output);
    let text = serde_json::to_string_pretty(&GeneratedManifest { manifest, generated: facts.about })
        .map_err(|error| DataError::Manifest { path: path.clone(), reason: error.to_string() })?;
    let mut file = OutputFile::create(&path)?;
    file.put(text.as_bytes())?;
    file.put(b"\n")?;
    // The manifest first: where the data stands, its manifest does too.
    file.finish()?;
    data.persist()?;
    Ok(())
}
