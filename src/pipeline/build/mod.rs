//! Builds a `.fsd` file from games and samples: decides which positions become samples, and what is recorded of them.
//!
//! A sample is a position, the move played in it, and the position's score: the evaluation written after the move
//! before. The first position of a game therefore never has a score.
//!
//! All cores read and filter positions (`source`, `filter`); a `Sampler` then draws from them in order. Decisions
//! that need all samples (`quantile`, `dedup`, `balance`, `shuffle`) are made in further passes over a temporary
//! file, so that memory does not grow with the data.

mod balance;
mod buckets;
mod dedup;
mod drop_reason;
mod engine_scores;
mod filter;
mod options;
mod quantile;
mod sampler;
mod shuffle;
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
use sampler::{SampleSink, Sampler};
use source::{SampleSource, read_ahead};
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
    /// Has an engine score the samples, instead of taking the scores of the inputs.
    pub labels: Option<&'a LabelJob>,
    /// The command line, for the manifest.
    pub command: &'a [String],
}

impl<'a> BuildJob<'a> {
    /// A build without an engine and without a command in the manifest.
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

/// The present step of a build.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BuildPhase {
    Reading,
    /// Passes over all samples, and writing.
    Arranging,
    /// The engine searches positions; `done` includes the `failed` ones.
    Labelling {
        done: u64,
        total: u64,
        failed: u64,
    },
}

/// The progress of a build.
#[derive(Copy, Clone, Debug)]
pub struct BuildProgress {
    pub phase: BuildPhase,
    /// Bytes read of the inputs, as stored.
    pub bytes: u64,
    pub games: u64,
    pub samples: u64,
}

/// Why a build failed.
#[derive(Debug, Error)]
pub enum BuildError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Label(#[from] LabelError),
}

impl BuildError {
    /// Whether the request was wrong; otherwise the work failed on the way.
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
/// When an input cannot be read to its end, no sample is left, or the output cannot be written. No file is left behind
/// then.
pub fn build(job: &BuildJob<'_>, progress: &mut dyn FnMut(BuildProgress)) -> Result<Manifest, BuildError> {
    let options = job.options;
    let sink = match options.needs_all_samples() || job.labels.is_some() {
        true => SampleSink::TempFile(TempSamplesWriter::create(job.output)?),
        false => SampleSink::File(Box::new(FsdWriter::create(job.output)?)),
    };
    let mut sampler = Sampler::new(options, job.labels.is_some(), sink);
    let (sources, mut score_unit) = read_inputs(job, &mut sampler, progress)?;
    if job.labels.is_some() {
        score_unit = ScoreUnit::Centipawns;
    }
    let Sampler { mut counts, samples: kept, sink, .. } = sampler;
    let bytes = total_bytes(&sources);
    let mut state = BuildProgress { phase: BuildPhase::Arranging, bytes, games: counts.games, samples: kept };
    progress(state);
    let (writer, labels) = match sink {
        SampleSink::File(writer) => (*writer, None),
        SampleSink::TempFile(writer) => {
            let mut samples = drop_before_scoring(writer.finish()?, options, &mut counts)?;
            let mut labels = None;
            if let Some(label_job) = job.labels {
                let mut report = |phase| progress(BuildProgress { phase, ..state });
                let (scored, found) = engine_scores::score(samples, label_job, options, &mut counts, &mut report)?;
                (samples, labels) = (scored, Some(found));
            }
            state.samples = samples.count();
            progress(state);
            (write_samples(samples, options, &mut counts, FsdWriter::create(job.output)?)?, labels)
        }
    };
    let manifest = finish(job, writer, sources, score_unit, labels.as_ref(), &counts)?;
    // The journal is removed last, so that a failure on the way loses no scores.
    if let Some(labels) = labels {
        labels.remove_journal();
    }
    Ok(manifest)
}

fn total_bytes(sources: &[SourceFile]) -> u64 {
    sources.iter().map(|source| source.bytes).sum()
}

/// Sends the samples of all inputs through `sampler`; returns the sources and the unit of their scores.
fn read_inputs(
    job: &BuildJob<'_>,
    sampler: &mut Sampler,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<(Vec<SourceFile>, ScoreUnit), DataError> {
    let mut sources: Vec<SourceFile> = Vec::new();
    let unit = common_unit(job.inputs)?;
    for input in job.inputs {
        let source = SampleSource::open(input, unit, job.options, job.labels.is_some())?;
        sampler.begin_source(input.weight, unit);
        let earlier_bytes = total_bytes(&sources);
        let source = read_ahead(source, |batch, bytes| {
            batch.into_iter().try_for_each(|(number, filtered)| sampler.add(number, filtered))?;
            let (bytes, games, samples) = (earlier_bytes + bytes, sampler.counts.games, sampler.samples);
            progress(BuildProgress { phase: BuildPhase::Reading, bytes, games, samples });
            Ok(())
        })?;
        sampler.finish_source(source.games())?;
        sources.push(source.source_file()?);
    }
    Ok((sources, unit))
}

/// The unit of the built file's scores: that of all inputs, or centipawns where they differ.
fn common_unit(inputs: &[WeightedInput]) -> Result<ScoreUnit, DataError> {
    let units = inputs.iter().map(|input| Ok(input_unit(input)?.unit)).collect::<Result<Vec<_>, DataError>>()?;
    let same = units.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(units.first().copied().filter(|_| same).unwrap_or(ScoreUnit::Centipawns))
}

/// The passes over all samples that do not need their scores.
fn drop_before_scoring(
    mut samples: TempSamples,
    options: &BuildOptions,
    counts: &mut BuildCounts,
) -> Result<TempSamples, DataError> {
    if let Some(quantile) = options.min_moves_quantile {
        samples = quantile::drop_below_quantile(samples, quantile, counts)?;
    }
    if let Some(dedup) = options.dedup {
        samples = dedup::dedup(samples, dedup, counts)?;
    }
    Ok(samples)
}

/// Thins the samples, puts them in their final order and writes them.
fn write_samples(
    mut samples: TempSamples,
    options: &BuildOptions,
    counts: &mut BuildCounts,
    mut writer: FsdWriter,
) -> Result<FsdWriter, DataError> {
    if options.balance.is_some() || options.samples.is_some() {
        samples = balance::thin(samples, options.balance.as_ref(), options.samples, options.seed, counts)?;
    }
    let mut write = |records: &[Record]| {
        let records: Vec<Record> = records.iter().map(|record| record.with_scratch(0)).collect();
        writer.push_all(&records)
    };
    if options.shuffle {
        shuffle::shuffled(samples, options.seed, write)?;
    } else {
        samples.for_each_block(|_, records| write(records))?;
    }
    Ok(writer)
}

fn finish(
    job: &BuildJob<'_>,
    writer: FsdWriter,
    sources: Vec<SourceFile>,
    score_unit: ScoreUnit,
    labels: Option<&Labels>,
    counts: &BuildCounts,
) -> Result<Manifest, DataError> {
    let options = job.options;
    let names = || sources.iter().map(|source| source.path.as_str()).collect::<Vec<_>>().join(", ").into();
    if counts.games == 0 {
        return Err(DataError::NoGames { path: names(), skipped: describe_skipped(&sources) });
    }
    if writer.samples() == 0 {
        return Err(DataError::NoSamples { path: names(), method: options.method, dropped: describe_dropped(counts) });
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
        games: counts.games,
        positions: counts.positions,
        kept: writer.samples(),
        dropped: counts.dropped(),
        dropped_games: counts.dropped_games(),
        samples_hash: blake3::Hash::from_bytes(writer.hash()).to_hex().to_string(),
    };
    let data = writer.seal(Provenance {
        purpose: options.method.into(),
        score_unit,
        seed: options.seed,
        games: counts.games.min(u64::from(u32::MAX)) as u32,
        sources: *hasher.finalize().as_bytes(),
    })?;
    // The manifest comes first, so that no data file exists without one.
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

fn describe_dropped(counts: &BuildCounts) -> String {
    let positions = counts.dropped().into_iter().map(|(reason, count)| format!("{count} {}", reason.name()));
    let games = counts.dropped_games().into_iter().map(|(reason, count)| format!("{count} games: {}", reason.name()));
    let reasons: Vec<String> = positions.chain(games).collect();
    if reasons.is_empty() {
        return String::new();
    }
    let hint = match counts.dropped().contains_key(&DropReason::NoScore) {
        true => "; to learn from results alone, give --needs result, and --lambda 0 to `train`",
        false => "",
    };
    format!(" (dropped: {}){hint}", reasons.join(", "))
}
