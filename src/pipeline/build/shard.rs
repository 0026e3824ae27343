//! A build in shards: several processes, on any machines, each read and filter some of the inputs; a merge then does
//! the work that needs the samples of all inputs. The result equals one build's, byte for byte.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::assembly::Assembly;
use super::shard_error::ShardError;
use super::shard_file::{ShardHeader, ShardInput, ShardReader, ShardWriter};
use super::source::{SampleSource, read_ahead};
use super::{BuildError, BuildOptions, BuildPhase, BuildProgress, LabelJob, common_unit, input_unit};
use crate::data::formats::detect;
use crate::data::{DataError, InputPath};
use crate::json;
use crate::pipeline::inputs::WeightedInput;
use crate::pipeline::journal::differences;
use crate::pipeline::manifest::{Manifest, SourceFile};
use crate::units::{Shard, sort_by_key};

/// A shard to build. Every shard of a build gets the same inputs and options.
#[derive(Clone, Debug)]
pub struct ShardJob<'a> {
    /// All inputs of the build: input i belongs to shard i mod N.
    pub inputs: &'a [WeightedInput],
    pub output: &'a Path,
    pub options: &'a BuildOptions,
    pub shard: Shard,
    /// An engine will score the samples when the shards are merged.
    pub scores_later: bool,
}

/// The contents of a shard.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShardSummary {
    /// Samples that passed the filters that look at one position or game.
    pub samples: u64,
    /// Games of this shard's inputs.
    pub games: u64,
    /// This shard's inputs.
    pub sources: Vec<SourceFile>,
}

/// Shards to be merged, in any order.
#[derive(Clone, Debug)]
pub struct MergeJob<'a> {
    pub shards: &'a [PathBuf],
    pub output: &'a Path,
    /// Has an engine score the samples; the shards must be built for that.
    pub labels: Option<&'a LabelJob>,
    /// The command line, for the manifest.
    pub command: &'a [String],
}

/// Builds one shard. The file appears when it is complete.
///
/// # Errors
/// When an input cannot be read to its end, is standard input, or the file cannot be written.
pub fn build_shard(job: &ShardJob<'_>, progress: &mut dyn FnMut(BuildProgress)) -> Result<ShardSummary, BuildError> {
    let score_unit = common_unit(job.inputs)?;
    let header = ShardHeader {
        version: ShardHeader::VERSION,
        fsbench: env!("CARGO_PKG_VERSION").into(),
        shard: job.shard,
        options: job.options.clone(),
        scores_later: job.scores_later,
        score_unit,
        inputs: job.inputs.iter().map(shard_input).collect::<Result<_, _>>()?,
    };
    let mut writer = ShardWriter::create(job.output, &header)?;
    let mut summary = ShardSummary { samples: 0, games: 0, sources: Vec::new() };
    let inputs = job.inputs.iter().enumerate().filter(|(number, _)| job.shard.contains(*number));
    for (_, input) in inputs {
        let source = SampleSource::open(input, score_unit, job.options, job.scores_later)?;
        let earlier_bytes: u64 = summary.sources.iter().map(|source| source.bytes).sum();
        let mut newest = 0;
        let source = read_ahead(source, |batch, bytes| {
            for (number, filtered) in &batch {
                writer.add(*number, filtered)?;
                newest = number + 1;
            }
            let bytes = earlier_bytes + bytes;
            let games = summary.games + newest;
            progress(BuildProgress { phase: BuildPhase::Reading, bytes, games, samples: writer.samples });
            Ok(())
        })?;
        summary.games += source.games();
        let source = source.source_file()?;
        writer.end_source(&source)?;
        summary.sources.push(source);
    }
    summary.samples = writer.samples;
    writer.seal()?.persist().map_err(DataError::from)?;
    Ok(summary)
}

fn shard_input(input: &WeightedInput) -> Result<ShardInput, ShardError> {
    let (InputPath::File(path), Some(bytes)) = (&input.origin, input.origin.length()) else {
        return Err(match &input.origin {
            InputPath::Stdin => ShardError::Stdin,
            InputPath::File(path) => {
                let reason = "it is not a file, so its length is not known".to_owned();
                DataError::Input { input: path.display().to_string(), reason }.into()
            }
        });
    };
    let format = input.format.map_or_else(|| detect(path), Ok)?;
    Ok(ShardInput { path: path.display().to_string(), bytes, weight: input.weight, format, unit: input_unit(input)? })
}

/// Merges all shards of a build into the `.fsd` file that one build of all inputs makes, with its manifest.
///
/// # Errors
/// When a shard is missing, given twice, damaged or of another build, no sample is left, or the output cannot be
/// written. No file is left behind then.
pub fn merge_shards(job: &MergeJob<'_>, progress: &mut dyn FnMut(BuildProgress)) -> Result<Manifest, BuildError> {
    let mut shards = open_all(job)?;
    let ShardHeader { options, score_unit, inputs, .. } = shards[0].header.clone();
    let assembly = Assembly { output: job.output, options: &options, labels: job.labels, command: job.command };
    let mut sampler = assembly.sampler()?;
    let mut sources = Vec::with_capacity(inputs.len());
    let of = shards.len();
    for (number, input) in inputs.iter().enumerate() {
        sampler.begin_source(input.weight, score_unit);
        let source = shards[number % of].source(|game, filtered| Ok::<_, BuildError>(sampler.add(game, filtered)?))?;
        sampler.finish_source(source.games)?;
        sources.push(source);
        let bytes = shards.iter().map(ShardReader::bytes).sum();
        let games = sampler.counts.games;
        let samples = sampler.samples;
        progress(BuildProgress { phase: BuildPhase::Reading, bytes, games, samples });
    }
    shards.iter_mut().try_for_each(ShardReader::end)?;
    assembly.complete(sampler, sources, score_unit, progress)
}

/// Opens the shards of a build, ordered by number.
fn open_all(job: &MergeJob<'_>) -> Result<Vec<ShardReader>, ShardError> {
    let mut shards = job.shards.iter().map(|path| ShardReader::open(path)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = shards.first() else { return Err(ShardError::None) };
    let comparable = |header: &ShardHeader| {
        let mut header = json::to_value(header).unwrap_or_default();
        header["shard"] = header["shard"]["of"].take();
        header
    };
    for shard in &shards[1..] {
        let differences = differences_of(&comparable(&first.header), &comparable(&shard.header));
        if !differences.is_empty() {
            let path = shard.path().into();
            let other = first.path().into();
            return Err(ShardError::Foreign { path, other, differences });
        }
    }
    let path = first.path().to_path_buf();
    let other = first.path().to_path_buf();
    match (first.header.scores_later, job.labels) {
        (true, None) => return Err(ShardError::NeedsEngine { path }),
        (false, Some(_)) => return Err(ShardError::HasScores { path }),
        _ => {}
    }
    sort_by_key(&mut shards, &|shard| shard.header.shard.index);
    if let Some(pair) = shards.windows(2).find(|pair| pair[0].header.shard == pair[1].header.shard) {
        let path = pair[1].path().into();
        let other = pair[0].path().into();
        return Err(ShardError::Repeated { path, other, shard: pair[0].header.shard });
    }
    let ShardHeader { shard: Shard { of, .. }, inputs, .. } = &shards[0].header;
    let is_given = |index: &u32| shards.binary_search_by_key(index, |shard| shard.header.shard.index).is_ok();
    let missing = (0..*of).filter(|index| !is_given(index)).map(|index| {
        let shard = Shard { index, of: *of };
        let own = inputs.iter().enumerate().filter(|(number, _)| shard.contains(*number));
        (shard, own.map(|(_, input)| input.path.clone()).collect())
    });
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() { Ok(shards) } else { Err(ShardError::Missing { missing, other }) }
}

/// The differences between the headers of two shards; a few words each.
fn differences_of(first: &Value, other: &Value) -> Vec<String> {
    const SHOWN: usize = 4;
    let mut found = Vec::new();
    for (name, first, other) in differences(first, other) {
        found.push(match name.as_str() {
            "shard" => format!("it is one of {other} shards, not of {first}"),
            "inputs" => inputs_differ(first, other),
            name => format!("{name} is {other}, not {first}"),
        });
    }
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    found.extend((more > 0).then(|| format!("and {more} more")));
    found
}

/// The first input that differs.
fn inputs_differ(first: &Value, other: &Value) -> String {
    let list = |inputs: &Value| inputs.as_array().cloned().unwrap_or_default();
    let first = list(first);
    let other = list(other);
    if first.len() != other.len() {
        return format!("it has {} inputs, not {}", other.len(), first.len());
    }
    let pair = first.iter().zip(&other).enumerate().find(|(_, (first, other))| first != other);
    let Some((number, (first, other))) = pair else { return String::new() };
    let fields =
        differences(first, other).into_iter().map(|(field, first, other)| format!("{field} {other}, not {first}"));
    format!("its input {} has {}", number + 1, fields.collect::<Vec<_>>().join(" and "))
}
