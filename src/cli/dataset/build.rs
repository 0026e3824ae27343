//! `fsbench dataset build`: builds a `.fsd` file from games and samples.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use indicatif::ProgressBar;
use schemars::JsonSchema;
use serde::Serialize;

use super::labels::LabelOptions;
use super::stats::curve;
use super::{
    Threads, check_inputs, check_manifest, check_names_file, failure, warn_of_journal, warn_of_scores, warn_of_sources,
};
use crate::cli::print::percent;
use crate::cli::progress_bar::{progress, style};
use crate::cli::sample::FileHints;
use crate::cli::score_unit::note_assumed;
use crate::cli::skipped::warn_skipped_samples;
use crate::cli::{Failure, ResultFormat, interrupt, print_json};
use crate::data::formats::{FileUnit, Format, SkippedSamples, format_by_name};
use crate::data::{DataError, InputPath, PgnNotes, Purpose, ScoreUnit, SkippedGames};
use crate::pipeline::build::{
    BuildPhase, BuildProgress, DropReason, GameDropReason, LabelJob, ShardJob, ShardSummary, build_shard, set_units,
};
use crate::pipeline::label::Labelling;
use crate::pipeline::manifest::SourceFile;
use crate::pipeline::{self, BuildJob, BuildOptions, Manifest, WeightedInput, journal_path};
use crate::units::{Shard, SortedMap};

/// Build a .fsd file from games and samples
///
/// A sample is a position, the move played in it and, where the games have scores in their comments, the score of the
/// position: the `[%eval]` after the previous move or, by cutechess, fastchess and others, the score after the move
/// itself. Scores in different units are converted to centipawns. The same games, options and seed give the same
/// samples.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Games or samples in any format: files, 'globs*' in quotes, or - for
    /// standard input (PGN unless --from is given); FILE@0.25 takes a quarter of its games, FILE@2 every game twice
    #[arg(required = true, value_name = "FILE")]
    games: Vec<String>,
    /// The file to write; its manifest is written beside it as FILE.json
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    hints: FileHints,
    /// Read every N-th input only, from input I on, and write a shard. Run all shards 0/N to (N-1)/N with otherwise the
    /// same command, each with its own --out, then `fsbench dataset merge` makes the file that one build makes
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    threads: Threads,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    options: BuildOptions,
    #[command(flatten)]
    labels: LabelOptions,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.threads.start()?;
    let options = &arguments.options;
    options.check().map_err(Failure::request)?;
    check_output(&arguments.out, arguments.force)?;
    if arguments.shard.is_none() {
        check_manifest(&arguments.out, arguments.force)?;
    }
    let mut inputs = pipeline::inputs(&arguments.games).map_err(failure)?;
    check_inputs(inputs.iter().map(|input| input.origin.path()), &arguments.out)?;
    for input in &mut inputs {
        input.format = arguments.hints.from;
        input.evals = arguments.hints.evals;
    }
    set_units(&mut inputs, arguments.hints.from_unit).map_err(failure)?;
    let labels = arguments.labels.job()?;
    if let Some(shard) = arguments.shard {
        let output = &arguments.out;
        let scores_later = labels.is_some();
        return run_shard(&ShardJob { inputs: &inputs, output, options, shard, scores_later }, arguments);
    }
    let command: Vec<String> = std::env::args().collect();
    let job =
        BuildJob { labels: labels.as_ref(), command: &command, ..BuildJob::new(&inputs, &arguments.out, options) };
    if labels.is_some() {
        let journal = journal_path(&arguments.out);
        interrupt::on_exit_say(move || {
            if journal.exists() {
                format!("interrupted; {} keeps the scores: give the command again to go on", journal.display())
            } else {
                "interrupted before the first position was scored".into()
            }
        });
    }
    let bar = bar(&inputs);
    let built = pipeline::build(&job, &mut |done| show(&bar, done));
    bar.finish_and_clear();
    let manifest = built.map_err(failure)?;
    warn_without_fit(labels.as_ref(), &manifest);
    print_built(&manifest, &arguments.out, arguments.format)
}

/// Warns where a curve was asked for that the samples do not determine.
pub(super) fn warn_without_fit(labels: Option<&LabelJob>, manifest: &Manifest) {
    let is_fitted = manifest.labelling.as_ref().is_some_and(|labelling| labelling.wdl.is_some());
    if labels.is_some_and(|labels| labels.fits_results) && !is_fitted {
        note!(
            "warning: no curve of results by score was fitted: too few samples have a result, or results do not follow \
             the scores"
        );
    }
}

/// Prints the result of a build or a merge.
pub(super) fn print_built(manifest: &Manifest, out: &Path, format: ResultFormat) -> Result<(), Failure> {
    if manifest.labelling.is_some() {
        warn_of_journal(out);
    }
    warn_skipped(&manifest.sources, manifest.labelling.is_none());
    warn_of_sources(manifest);
    match format {
        ResultFormat::Text => outln!("{}", text(manifest, out))?,
        ResultFormat::Json => print_json(&BuildDocument::of(manifest, out))?,
    }
    Ok(())
}

fn run_shard(job: &ShardJob<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let own = job.inputs.iter().enumerate().filter(|(number, _)| job.shard.contains(*number));
    let bar = bar(&own.map(|(_, input)| input.clone()).collect::<Vec<_>>());
    let built = build_shard(job, &mut |done| show(&bar, done));
    bar.finish_and_clear();
    let summary = built.map_err(failure)?;
    warn_skipped(&summary.sources, !job.scores_later);
    if summary.sources.is_empty() {
        note!("warning: shard {} holds no input: there are {}", job.shard, job.inputs.len());
    }
    let shard = job.shard;
    let out = job.output;
    match arguments.format {
        ResultFormat::Text => outln!(
            "{}: shard {shard} with {} samples of {} games from {} of {} inputs; merge all shards with `fsbench \
             dataset merge`",
            out.display(),
            summary.samples,
            summary.games,
            summary.sources.len(),
            job.inputs.len()
        )?,
        ResultFormat::Json => print_json(&ShardDocument { shard: shard.to_string(), out, summary: &summary })?,
    }
    Ok(())
}

pub(super) fn check_output(out: &Path, force: bool) -> Result<(), Failure> {
    check_names_file(out)?;
    if out.exists() && !force {
        return Err(failure(DataError::Exists { path: out.into() }));
    }
    if let Some(other) = format_by_name(out).filter(|format| *format != Format::Fsd) {
        let name = other.name();
        return Err(Failure::request(anyhow!(
            "--out {}: what is built is .fsd, not {name}; name it so, and make other formats of it by `dataset convert`",
            out.display()
        )));
    }
    Ok(())
}

/// A bar over the bytes read where the inputs' sizes are known, else a spinner.
pub(super) fn bar(inputs: &[WeightedInput]) -> ProgressBar {
    let length: Option<u64> = inputs.iter().map(|input: &WeightedInput| InputPath::length(&input.origin)).sum();
    match length {
        Some(length) => progress(Some(length), "{elapsed} {wide_bar} {bytes}/{total_bytes}, {left}; {msg}"),
        None => progress(None, "{spinner} {elapsed} {bytes} ({bytes_per_sec}); {msg}"),
    }
}

pub(super) fn show(bar: &ProgressBar, done: BuildProgress) {
    let counts = format!("{} games, {} samples", done.games, done.samples);
    let (position, message) = match done.phase {
        BuildPhase::Reading => (done.bytes, counts),
        BuildPhase::Arranging => (done.bytes, format!("{counts}, arranging")),
        BuildPhase::Labelling { done, total, failed } => {
            if bar.length() != Some(total) {
                bar.reset();
                bar.set_length(total);
                bar.set_style(style("{elapsed} {wide_bar} {pos}/{len} positions, {per_sec}, {left}; {msg}"));
            }
            (done, format!("{failed} failed"))
        }
    };
    bar.set_position(position);
    bar.set_message(message);
}

/// Warns about skipped input, and names formats that the inputs' names do not; `with_units`: also names units of scores
/// that were assumed.
fn warn_skipped(sources: &[SourceFile], with_units: bool) {
    for source in sources {
        let path = Path::new(&source.path);
        if format_by_name(path) != Some(source.format) && path != InputPath::Stdin.path() {
            note!("note: {} was read as {}", source.path, source.format.name());
        }
        if with_units {
            note_assumed(path, source.score_unit);
            warn_of_scores(path, &source.notes);
        }
        if source.scores_cut > 0 {
            note!("warning: {} scores of {} were cut to the range that can be stored", source.scores_cut, source.path);
        }
        if source.skipped.total() > 0 {
            note!("warning: {} games of {} were skipped", source.skipped.total(), source.path);
            for game in &source.skipped.examples {
                note!("  {game}");
            }
        }
        warn_skipped_samples(&source.path, &source.skipped_samples);
    }
}

/// The `.fsd` file that a build or a merge made.
#[derive(Serialize, JsonSchema)]
pub struct BuildDocument<'a> {
    /// Path of the file that was written.
    out: &'a Path,
    /// `fsd`.
    format: &'static str,
    /// The method for which the samples were drawn.
    method: Purpose,
    /// Samples that were kept.
    samples: u64,
    /// Games read, without the games that were left out.
    games: u64,
    /// Games of the inputs.
    games_read: u64,
    /// Positions of these games from which a move was played.
    positions: u64,
    /// Positions of these games.
    positions_read: u64,
    /// Samples that come once more because of a weight above 1.
    repeated: u64,
    /// Positions, and repeats of samples, that gave no sample, by reason.
    dropped: &'a SortedMap<DropReason, u64>,
    /// Valid games that gave no samples, by reason.
    dropped_games: &'a SortedMap<GameDropReason, u64>,
    /// Broken games.
    skipped_games: u64,
    /// Broken games of each source.
    skipped: Vec<&'a SkippedGames>,
    /// What was unusual in the games of each source.
    notes: Vec<&'a PgnNotes>,
    /// Unreadable samples of each source.
    skipped_samples: Vec<&'a SkippedSamples>,
    /// How an engine scored the samples; null if none did.
    labelling: Option<&'a Labelling>,
    /// Unit of the samples' scores.
    score_unit: ScoreUnit,
    /// Unit of the scores of each source.
    source_units: Vec<FileUnit>,
    /// blake3 of the samples, in hexadecimal.
    hash: &'a str,
}

impl BuildDocument<'_> {
    fn of<'a>(manifest: &'a Manifest, out: &'a Path) -> BuildDocument<'a> {
        let sources = &manifest.sources;
        BuildDocument {
            out,
            format: "fsd",
            method: manifest.method,
            samples: manifest.kept,
            games: manifest.games_used(),
            games_read: manifest.games,
            positions: manifest.positions_used(),
            positions_read: manifest.positions,
            repeated: manifest.repeated,
            dropped: &manifest.dropped,
            dropped_games: &manifest.dropped_games,
            skipped_games: sources.iter().map(|source| source.skipped.total()).sum(),
            skipped: sources.iter().map(|source| &source.skipped).collect(),
            notes: sources.iter().map(|source| &source.notes).collect(),
            skipped_samples: sources.iter().map(|source| &source.skipped_samples).collect(),
            labelling: manifest.labelling.as_ref(),
            score_unit: manifest.score_unit,
            source_units: sources.iter().map(|source| source.score_unit).collect(),
            hash: &manifest.samples_hash,
        }
    }
}

/// A shard of a build.
#[derive(Serialize, JsonSchema)]
pub struct ShardDocument<'a> {
    /// `I/N`: number I, from 0, of N shards.
    shard: String,
    /// Path of the shard's file.
    out: &'a Path,
    #[serde(flatten)]
    summary: &'a ShardSummary,
}

/// A number of used items, and of items read where that is more.
fn used_of_read(used: u64, read: u64) -> String {
    if used == read { read.to_string() } else { format!("{used} of {read} read") }
}

fn text(manifest: &Manifest, out: &Path) -> String {
    let mut lines = vec![
        format!("{}: {} samples for {}", out.display(), manifest.kept, manifest.method.name()),
        format!("games      {}", used_of_read(manifest.games_used(), manifest.games)),
        format!("positions  {}", used_of_read(manifest.positions_used(), manifest.positions)),
        format!("scores     {}", manifest.score_unit.describe()),
    ];
    let dropped = manifest.dropped.iter().filter(|(why, _)| **why != DropReason::GameLeftOut);
    lines.extend(dropped.map(|(why, count)| format!("dropped    {count} {}", why.name())));
    if manifest.repeated > 0 {
        lines.push(format!("repeated   {} samples, by weight", manifest.repeated));
    }
    if let Some(labels) = &manifest.labelling {
        let engine = labels.engine.describe();
        let positions = labels.positions;
        let repeated = labels.repeated;
        let repeats = match labels.limit {
            Some(_) => format!("; {repeated} samples repeat one of them"),
            None => ", without a search".into(),
        };
        lines.push(format!("scored     {positions} positions by {engine}{repeats}"));
        if labels.keep_score > 0.0 {
            lines.push(format!("kept       {} of the inputs' scores", percent(labels.keep_score)));
        }
        lines.extend(labels.wdl.as_ref().map(|fit| format!("results    {}", curve(fit))));
        lines.extend(labels.failed.iter().map(|(why, count)| format!("failed     {count} positions: {}", why.name())));
        lines.extend(labels.examples.iter().map(|failed| format!("  {}: {}", failed.fen, failed.message)));
    }
    let games = manifest.dropped_games.iter();
    lines.extend(games.map(|(why, count)| format!("left out   {count} games: {}", why.name())));
    for (reason, count) in manifest.sources.iter().flat_map(|source| &source.skipped.by_reason) {
        lines.push(format!("skipped    {count} games: {reason}"));
    }
    for source in &manifest.sources {
        lines.extend(source.notes.lines().into_iter().map(|line| format!("note       {}: {line}", source.path)));
    }
    lines.push(format!("hash       {}", manifest.samples_hash));
    lines.join("\n")
}
