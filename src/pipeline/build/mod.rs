//! Builds a `.fsd` file from games and samples: decides which positions become samples, and which of their facts are
//! recorded.
//!
//! A sample is a position, the move played in it, and the position's score: the evaluation written after the previous
//! move. The first position of a game has a score only where one is written before the first move, as in games that
//! fsbench generates.
//!
//! All cores read and filter positions (`source`, `filter`); a `Sampler` then draws from them in order. Decisions
//! that need all samples (`quantile`, `dedup`, `balance`, `shuffle`) are made in further passes over a temporary
//! file, so that memory does not grow with the data.

mod assembly;
mod balance;
mod buckets;
mod dedup;
mod drop_reason;
mod engine_scores;
mod filter;
mod options;
mod quantile;
mod sampler;
mod shard;
mod shard_error;
mod shard_file;
mod shuffle;
mod source;
mod temp_samples;
mod win_rate_model;

use std::path::Path;

use thiserror::Error;

use super::inputs::WeightedInput;
use super::label::{LabelError, LabelScorer};
use super::manifest::{Manifest, SourceFile};
use crate::data::{DataError, ScoreUnit};
use assembly::Assembly;
use sampler::Sampler;
use source::{SampleSource, read_ahead};

pub use drop_reason::{DropReason, GameDropReason};
pub use options::{Balance, BalanceBy, BuildOptions, Dedup, Filter, GameSplit, PerGame};
pub use shard::{MergeJob, ShardJob, ShardSummary, build_shard, merge_shards};
pub use shard_error::ShardError;
pub use source::{input_unit, set_units};
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

/// How an engine or a network scores the positions.
#[derive(Clone, Debug)]
pub struct LabelJob {
    pub scorer: LabelScorer,
    /// Share of the inputs' scores in the scores, from 0 to below 1; samples without a score get the new one.
    pub keep_score: f64,
    /// Fits the expected result by the new scores, for the manifest.
    pub fits_results: bool,
}

impl LabelJob {
    /// A job that replaces the inputs' scores.
    #[must_use]
    pub const fn new(scorer: LabelScorer) -> LabelJob {
        LabelJob { scorer, keep_score: 0.0, fits_results: false }
    }
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
    #[error(transparent)]
    Shard(#[from] ShardError),
}

impl BuildError {
    /// Whether the request was wrong; otherwise the work failed on the way.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        match self {
            BuildError::Data(error) => error.is_request(),
            BuildError::Label(error) => error.is_request(),
            BuildError::Shard(error) => error.is_request(),
        }
    }
}

/// Builds a `.fsd` file and its manifest.
///
/// # Errors
/// When an input cannot be read to its end, no sample is left, or the output cannot be written. No file is left behind
/// then.
pub fn build(job: &BuildJob<'_>, progress: &mut dyn FnMut(BuildProgress)) -> Result<Manifest, BuildError> {
    let BuildJob { output, options, labels, command, .. } = *job;
    let assembly = Assembly { output, options, labels, command };
    let mut sampler = assembly.sampler()?;
    let (sources, score_unit) = read_inputs(job, &mut sampler, progress)?;
    assembly.complete(sampler, sources, score_unit, progress)
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
            let bytes = earlier_bytes + bytes;
            let games = sampler.counts.games;
            let samples = sampler.samples;
            progress(BuildProgress { phase: BuildPhase::Reading, bytes, games, samples });
            Ok(())
        })?;
        sampler.finish_source(source.games())?;
        sources.push(source.source_file()?);
    }
    Ok((sources, unit))
}

/// The unit of the built file's scores: the inputs' unit, or centipawns where they differ.
fn common_unit(inputs: &[WeightedInput]) -> Result<ScoreUnit, DataError> {
    let units = inputs.iter().map(|input| Ok(input_unit(input)?.unit)).collect::<Result<Vec<_>, DataError>>()?;
    let same = units.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(units.first().copied().filter(|_| same).unwrap_or(ScoreUnit::Centipawns))
}
