//! From games to a `.fsd` file: which positions become samples, and what is recorded of them.
//!
//! A sample is a position, the move played in it, and the score of that position: the evaluation written after the move
//! before it. The first position of a game therefore never has one.
//!
//! Positions pass a [`Sieve`](sieve::Sieve) on all cores and then, in order, a [`Flow`] that draws. What needs to know
//! all samples first ([`later`]) works on a file without a name, so that memory does not grow with the data.

mod buckets;
mod flow;
mod labelled;
mod later;
mod options;
mod sieve;
mod spool;
mod supply;
mod tally;
mod unlikely;

use std::path::Path;

use thiserror::Error;

use super::inputs::Weighted;
use super::label::{self, LabelError, Labels};
use super::manifest::{Manifest, Source};
use crate::data::{DataError, FsdWriter, Provenance, Record, ScoreUnit};
use flow::{Flow, Sink};
use spool::{Spool, Spooled};
use supply::{Supply, ahead};
use tally::Tally;

pub use options::{Balance, Dedup, Filter, Options, Part, PerGame, Target};
pub use supply::unit_of;
pub use tally::{Dropped, GameDropped};
pub use unlikely::probability;

/// What to build.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    pub inputs: &'a [Weighted],
    pub output: &'a Path,
    pub options: &'a Options,
    /// Scores by an engine, instead of those the inputs hold.
    pub labels: Option<&'a LabelJob>,
    /// For the manifest.
    pub command: &'a [String],
}

impl<'a> Job<'a> {
    /// Without an engine, and for a manifest without a command.
    #[must_use]
    pub const fn new(inputs: &'a [Weighted], output: &'a Path, options: &'a Options) -> Job<'a> {
        Job { inputs, output, options, labels: None, command: &[] }
    }
}

/// How an engine scores the positions.
#[derive(Clone, Debug)]
pub struct LabelJob {
    pub settings: label::Settings,
    pub work: label::Work,
}

/// What a build is doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    Reading,
    /// Deciding what needs all samples, and writing.
    Arranging,
    /// The engine searches: so many positions of so many, so many without success.
    Labelling {
        done: u64,
        total: u64,
        failed: u64,
    },
}

/// How far a build is.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    pub phase: Phase,
    /// Bytes of the inputs as they are stored.
    pub bytes: u64,
    pub games: u64,
    pub samples: u64,
}

/// Why nothing was built.
#[derive(Debug, Error)]
pub enum BuildError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Label(#[from] LabelError),
}

impl BuildError {
    /// Whether the request was wrong, rather than the work having failed on the way.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        match self {
            BuildError::Data(error) => error.is_request(),
            BuildError::Label(error) => error.is_request(),
        }
    }
}

/// A finished build.
#[derive(Clone, Debug)]
pub struct Built {
    pub manifest: Manifest,
}

/// Builds a `.fsd` file and its manifest.
///
/// # Errors
/// When an input cannot be read to its end, nothing is left to write, or the output cannot be written; then nothing is
/// left behind.
pub fn build(job: &Job<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Built, BuildError> {
    let options = job.options;
    let labels = job.labels;
    let sink = match options.two_passes() || labels.is_some() {
        true => Sink::Spool(Spool::create(job.output)?),
        false => Sink::File(Box::new(FsdWriter::create(job.output)?)),
    };
    let mut flow = Flow::new(options, labels.is_some(), sink);
    let (sources, mut score_unit) = read(job, &mut flow, progress)?;
    if labels.is_some() {
        score_unit = ScoreUnit::Centipawns;
    }
    let Flow { mut tally, kept, sink, .. } = flow;
    let mut state = Progress { phase: Phase::Arranging, bytes: total(&sources), games: tally.games, samples: kept };
    progress(state);
    let (writer, found) = match sink {
        Sink::File(writer) => (*writer, None),
        Sink::Spool(spool) => {
            let mut spooled = early(spool.finish()?, options, &mut tally)?;
            let mut found = None;
            if let Some(by) = labels {
                let mut told = |phase| progress(Progress { phase, ..state });
                let (scored, labels) = labelled::score(spooled, by, options, &mut tally, &mut told)?;
                (spooled, found) = (scored, Some(labels));
            }
            state.samples = spooled.count();
            progress(state);
            (late(spooled, options, &mut tally, FsdWriter::create(job.output)?)?, found)
        }
    };
    let built = finish(job, writer, sources, score_unit, found.as_ref(), &tally)?;
    // Only now nobody needs it any more.
    found.map_or(Ok(()), |labels| labels.remove_journal().map_err(LabelError::from))?;
    Ok(built)
}

fn total(sources: &[Source]) -> u64 {
    sources.iter().map(|source| source.bytes).sum()
}

/// Sends the samples of all inputs through `flow`; what they were read from, and the unit of their scores.
fn read(
    job: &Job<'_>,
    flow: &mut Flow,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Vec<Source>, ScoreUnit), DataError> {
    let mut sources: Vec<Source> = Vec::new();
    let unit = common_unit(job.inputs)?;
    for input in job.inputs {
        let supply = Supply::open(input, unit, job.options, job.labels.is_some())?;
        flow.begin(input.weight, unit);
        let before = total(&sources);
        let supply = ahead(supply, |batch, bytes| {
            batch.into_iter().try_for_each(|(number, sifted)| flow.add(number, sifted))?;
            let (bytes, games, samples) = (before + bytes, flow.tally.games, flow.kept);
            progress(Progress { phase: Phase::Reading, bytes, games, samples });
            Ok(())
        })?;
        flow.finish(supply.games())?;
        sources.push(supply.source()?);
    }
    Ok((sources, unit))
}

/// The unit of what is built: that of all inputs; centipawns where they differ.
fn common_unit(inputs: &[Weighted]) -> Result<ScoreUnit, DataError> {
    let units = inputs.iter().map(|input| Ok(unit_of(input)?.unit)).collect::<Result<Vec<_>, DataError>>()?;
    let same = units.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(units.first().copied().filter(|_| same).unwrap_or(ScoreUnit::Centipawns))
}

/// What needs all samples, but not their scores.
fn early(mut spooled: Spooled, options: &Options, tally: &mut Tally) -> Result<Spooled, DataError> {
    if let Some(quantile) = options.min_moves_quantile {
        spooled = later::above_quantile(spooled, quantile, tally)?;
    }
    if let Some(dedup) = options.dedup {
        spooled = later::unique(spooled, dedup, tally)?;
    }
    Ok(spooled)
}

/// What is left to decide; then writes the samples.
fn late(
    mut spooled: Spooled,
    options: &Options,
    tally: &mut Tally,
    mut writer: FsdWriter,
) -> Result<FsdWriter, DataError> {
    if options.balance.is_some() || options.samples.is_some() {
        spooled = later::thin(spooled, options.balance.as_ref(), options.samples, options.seed, tally)?;
    }
    later::in_order(spooled, options.shuffle.then_some(options.seed), |records| {
        let records: Vec<Record> = records.iter().map(|record| record.with_scratch(0)).collect();
        writer.push_all(&records)
    })?;
    Ok(writer)
}

fn finish(
    job: &Job<'_>,
    writer: FsdWriter,
    sources: Vec<Source>,
    score_unit: ScoreUnit,
    labels: Option<&Labels>,
    tally: &Tally,
) -> Result<Built, DataError> {
    let options = job.options;
    let name = || sources.iter().map(|source| source.path.as_str()).collect::<Vec<_>>().join(", ").into();
    if tally.games == 0 {
        return Err(DataError::NoGames { path: name(), skipped: describe_skipped(&sources) });
    }
    if writer.samples() == 0 {
        return Err(DataError::NoSamples { path: name(), method: options.method, dropped: describe_dropped(tally) });
    }
    let mut hasher = blake3::Hasher::new();
    for source in &sources {
        let hash = blake3::Hash::from_hex(&source.blake3).map_err(|error| DataError::Manifest {
            path: job.output.into(),
            reason: format!("the hash of {}: {error}", source.path),
        })?;
        hasher.update(hash.as_bytes());
    }
    let manifest = Manifest {
        fsbench: env!("CARGO_PKG_VERSION").into(),
        command: job.command.to_vec(),
        method: options.method.into(),
        score_unit,
        options: Some(options.clone()),
        conversion: None,
        labelling: labels.map(|labels| labels.labelling.clone()),
        generated: None,
        sources,
        games: tally.games,
        positions: tally.positions,
        kept: writer.samples(),
        dropped: tally.dropped(),
        dropped_games: tally.dropped_games(),
        samples_hash: blake3::Hash::from_bytes(writer.hash()).to_hex().to_string(),
    };
    let data = writer.seal(Provenance {
        purpose: options.method.into(),
        score_unit,
        seed: options.seed,
        games: tally.games.min(u64::from(u32::MAX)) as u32,
        sources: *hasher.finalize().as_bytes(),
    })?;
    // The manifest first: where the data stands, its manifest does too.
    manifest.seal(job.output)?.persist()?;
    data.persist()?;
    Ok(Built { manifest })
}

fn describe_skipped(sources: &[Source]) -> String {
    let total: u64 = sources.iter().map(|source| source.skipped.total()).sum();
    let first = sources.iter().find_map(|source| source.skipped.examples.first());
    match first {
        Some(first) => format!(" ({total} broken games; the first: {first})"),
        None => String::new(),
    }
}

fn describe_dropped(tally: &Tally) -> String {
    let positions = tally.dropped().into_iter().map(|(why, count)| format!("{count} {}", why.name()));
    let games = tally.dropped_games().into_iter().map(|(why, count)| format!("{count} games: {}", why.name()));
    let parts: Vec<String> = positions.chain(games).collect();
    if parts.is_empty() { String::new() } else { format!(" (dropped: {})", parts.join(", ")) }
}
