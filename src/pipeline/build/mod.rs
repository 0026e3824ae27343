//! From games to a `.fsd` file: which positions become samples, and what is recorded of them.
//!
//! A sample is a position, the move played in it, and the score of that position: the evaluation written after the move
//! before it. The first position of a game therefore never has one.
//!
//! Positions pass a [`SampleFilter`](filter::SampleFilter) on all cores and then, in order, a [`Sampler`] that draws. What needs to know
//! all samples first ([`later`]) works on a file without a name, so that memory does not grow with the data.

mod buckets;
mod drop_reason;
mod engine_scores;
mod filter;
mod later;
mod options;
mod sampler;
mod source;
mod temp_samples;
mod win_rate_model;

use std::path::Path;

use thiserror::Error;

use super::inputs::WeightedInput;
use super::label::{LabelError, LabelSettings, Labels};
use super::manifest::{Manifest, SourceFile};
use super::uci::Workers;
use crate::data::{DataError, FsdWriter, Provenance, Record, ScoreUnit};
use drop_reason::BuildCounts;
use sampler::{Sampler, Sink};
use source::{SampleSource, ahead};
use temp_samples::{TempSamples, TempSamplesWriter};

pub use drop_reason::{DropReason, GameDropReason};
pub use options::{Balance, BalanceBy, BuildOptions, Dedup, Filter, GameSplit, PerGame};
pub use source::input_unit;
pub use win_rate_model::result_probability;

/// What to build.
#[derive(Clone, Debug)]
pub struct BuildJob<'a> {
    pub inputs: &'a [WeightedInput],
    pub output: &'a Path,
    pub options: &'a BuildOptions,
    /// Scores by an engine, instead of those the inputs hold.
    pub labels: Option<&'a LabelJob>,
    /// For the manifest.
    pub command: &'a [String],
}

impl<'a> BuildJob<'a> {
    /// Without an engine, and for a manifest without a command.
    #[must_use]
    pub const fn new(inputs: &'a [WeightedInput], output: &'a Path, options: &'a BuildOptions) -> BuildJob<'a> {
        BuildJob { inputs, output, options, labels: None, command: &[] }
    }
}

/// How an engine scores the positions.
#[derive(Clone, Debug)]
pub struct LabelJob {
    pub settings: LabelSettings,
    pub workers: Workers,
}

/// What a build is doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BuildPhase {
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
pub struct BuildProgress {
    pub phase: BuildPhase,
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

/// Builds a `.fsd` file and its manifest.
///
/// # Errors
/// When an input cannot be read to its end, nothing is left to write, or the output cannot be written; then nothing is
/// left behind.
pub fn build(job: &BuildJob<'_>, progress: &mut dyn FnMut(BuildProgress)) -> Result<Manifest, BuildError> {
    let options = job.options;
    let labels = job.labels;
    let sink = match options.two_passes() || labels.is_some() {
        true => Sink::TempSamplesWriter(TempSamplesWriter::create(job.output)?),
        false => Sink::File(Box::new(FsdWriter::create(job.output)?)),
    };
    let mut flow = Sampler::new(options, labels.is_some(), sink);
    let (sources, mut score_unit) = read(job, &mut flow, progress)?;
    if labels.is_some() {
        score_unit = ScoreUnit::Centipawns;
    }
    let Sampler { mut tally, kept, sink, .. } = flow;
    let mut state =
        BuildProgress { phase: BuildPhase::Arranging, bytes: total(&sources), games: tally.games, samples: kept };
    progress(state);
    let (writer, found) = match sink {
        Sink::File(writer) => (*writer, None),
        Sink::TempSamplesWriter(spool) => {
            let mut samples = early(spool.finish()?, options, &mut tally)?;
            let mut found = None;
            if let Some(by) = labels {
                let mut told = |phase| progress(BuildProgress { phase, ..state });
                let (scored, labels) = engine_scores::score(samples, by, options, &mut tally, &mut told)?;
                (samples, found) = (scored, Some(labels));
            }
            state.samples = samples.count();
            progress(state);
            (late(samples, options, &mut tally, FsdWriter::create(job.output)?)?, found)
        }
    };
    let manifest = finish(job, writer, sources, score_unit, found.as_ref(), &tally)?;
    // Only now nobody needs it any more.
    found.map_or(Ok(()), |labels| labels.remove_journal().map_err(LabelError::from))?;
    Ok(manifest)
}

fn total(sources: &[SourceFile]) -> u64 {
    sources.iter().map(|source| source.bytes).sum()
}

/// Sends the samples of all inputs through `flow`; what they were read from, and the unit of their scores.
fn read(
    job: &BuildJob<'_>,
    flow: &mut Sampler,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<(Vec<SourceFile>, ScoreUnit), DataError> {
    let mut sources: Vec<SourceFile> = Vec::new();
    let unit = common_unit(job.inputs)?;
    for input in job.inputs {
        let supply = SampleSource::open(input, unit, job.options, job.labels.is_some())?;
        flow.begin(input.weight, unit);
        let before = total(&sources);
        let supply = ahead(supply, |batch, bytes| {
            batch.into_iter().try_for_each(|(number, sifted)| flow.add(number, sifted))?;
            let (bytes, games, samples) = (before + bytes, flow.tally.games, flow.kept);
            progress(BuildProgress { phase: BuildPhase::Reading, bytes, games, samples });
            Ok(())
        })?;
        flow.finish(supply.games())?;
        sources.push(supply.source()?);
    }
    Ok((sources, unit))
}

/// The unit of what is built: that of all inputs; centipawns where they differ.
fn common_unit(inputs: &[WeightedInput]) -> Result<ScoreUnit, DataError> {
    let units = inputs.iter().map(|input| Ok(input_unit(input)?.unit)).collect::<Result<Vec<_>, DataError>>()?;
    let same = units.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(units.first().copied().filter(|_| same).unwrap_or(ScoreUnit::Centipawns))
}

/// What needs all samples, but not their scores.
fn early(mut samples: TempSamples, options: &BuildOptions, tally: &mut BuildCounts) -> Result<TempSamples, DataError> {
    if let Some(quantile) = options.min_moves_quantile {
        samples = later::above_quantile(samples, quantile, tally)?;
    }
    if let Some(dedup) = options.dedup {
        samples = later::unique(samples, dedup, tally)?;
    }
    Ok(samples)
}

/// What is left to decide; then writes the samples.
fn late(
    mut samples: TempSamples,
    options: &BuildOptions,
    tally: &mut BuildCounts,
    mut writer: FsdWriter,
) -> Result<FsdWriter, DataError> {
    if options.balance.is_some() || options.samples.is_some() {
        samples = later::thin(samples, options.balance.as_ref(), options.samples, options.seed, tally)?;
    }
    later::in_order(samples, options.shuffle.then_some(options.seed), |records| {
        let records: Vec<Record> = records.iter().map(|record| record.with_scratch(0)).collect();
        writer.push_all(&records)
    })?;
    Ok(writer)
}

fn finish(
    job: &BuildJob<'_>,
    writer: FsdWriter,
    sources: Vec<SourceFile>,
    score_unit: ScoreUnit,
    labels: Option<&Labels>,
    tally: &BuildCounts,
) -> Result<Manifest, DataError> {
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
    Ok(manifest)
}

fn describe_skipped(sources: &[SourceFile]) -> String {
    let total: u64 = sources.iter().map(|source| source.skipped.total()).sum();
    let first = sources.iter().find_map(|source| source.skipped.examples.first());
    match first {
        Some(first) => format!(" ({total} broken games; the first: {first})"),
        None => String::new(),
    }
}

fn describe_dropped(tally: &BuildCounts) -> String {
    let positions = tally.dropped().into_iter().map(|(why, count)| format!("{count} {}", why.name()));
    let games = tally.dropped_games().into_iter().map(|(why, count)| format!("{count} games: {}", why.name()));
    let parts: Vec<String> = positions.chain(games).collect();
    if parts.is_empty() { String::new() } else { format!(" (dropped: {})", parts.join(", ")) }
}
