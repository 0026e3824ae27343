//! `fsbench dataset build`: games and samples to a `.fsd` file.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use indicatif::ProgressBar;

use super::filters::Filters;
use super::{failure, progress};
use crate::cli::{Failure, Format};
use crate::data::{self, DataError, Job, Manifest, Method, Origin, Phase, Progress, Weighted};
use crate::units::Seed;

/// Build a .fsd file from games
///
/// A sample is a position, the move played in it and, where the games carry `[%eval]` comments, its score: the one
/// written after the move before. The same games, options and seed give the same samples.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// PGN (plain, .zst, .gz or .bz2): files, 'globs*' in quotes, or - for standard input; FILE@0.25 takes a quarter of
    /// its games, FILE@2 every game twice
    #[arg(required = true, value_name = "FILE")]
    games: Vec<String>,
    /// What the samples are for: positions with a score, or with a choice of moves
    #[arg(long, value_enum)]
    method: Method,
    /// The file to write; its manifest goes beside it as FILE.json
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seed of every random choice
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    filters: Filters,
    /// Replace FILE where it exists
    #[arg(long)]
    force: bool,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = arguments.filters.options(arguments.method, Seed(arguments.seed)).map_err(Failure::Request)?;
    check(arguments)?;
    let inputs = data::inputs(&arguments.games).map_err(failure)?;
    let command: Vec<String> = std::env::args().collect();
    let job = Job { inputs: &inputs, output: &arguments.out, options: &options, command: &command };
    let bar = bar(&inputs);
    let built = data::build(&job, &mut |done| show(&bar, done));
    bar.finish_and_clear();
    let manifest = built.map_err(failure)?.manifest;
    warn_skipped(&manifest);
    match arguments.format {
        Format::Text => println!("{}", text(&manifest, &arguments.out)),
        Format::Json => println!("{:#}", json(&manifest, &arguments.out)),
    }
    Ok(())
}

fn check(arguments: &Arguments) -> Result<(), Failure> {
    let out = &arguments.out;
    if out.file_name().is_none() {
        return Err(Failure::request(anyhow!("--out {} names no file", out.display())));
    }
    if out.exists() && !arguments.force {
        return Err(failure(DataError::Exists { path: out.clone() }));
    }
    Ok(())
}

/// Goes by bytes read where the inputs' sizes are known.
fn bar(inputs: &[Weighted]) -> ProgressBar {
    let length: Option<u64> = inputs.iter().map(|input: &Weighted| Origin::length(&input.origin)).sum();
    match length {
        Some(length) => progress(Some(length), "{elapsed} {wide_bar} {bytes}/{total_bytes}, {eta} left; {msg}"),
        None => progress(None, "{spinner} {elapsed} {bytes} ({bytes_per_sec}); {msg}"),
    }
}

fn show(bar: &ProgressBar, done: Progress) {
    bar.set_position(done.bytes);
    let doing = match done.phase {
        Phase::Reading => "",
        Phase::Arranging => ", arranging",
    };
    bar.set_message(format!("{} games, {} samples{doing}", done.games, done.samples));
}

fn warn_skipped(manifest: &Manifest) {
    for source in &manifest.sources {
        if source.skipped.total() > 0 {
            eprintln!("warning: {} games of {} were skipped", source.skipped.total(), source.path);
            for game in &source.skipped.examples {
                eprintln!("  {game}");
            }
        }
    }
}

fn json(manifest: &Manifest, out: &Path) -> serde_json::Value {
    let skipped: Vec<_> = manifest.sources.iter().map(|source| &source.skipped).collect();
    serde_json::json!({
        "out": out,
        "format": "fsd",
        "method": manifest.method,
        "samples": manifest.kept,
        "games": manifest.games,
        "positions": manifest.positions,
        "dropped": manifest.dropped,
        "dropped_games": manifest.dropped_games,
        "skipped_games": manifest.sources.iter().map(|source| source.skipped.total()).sum::<u64>(),
        "skipped": skipped,
        "hash": manifest.samples_hash,
    })
}

fn text(manifest: &Manifest, out: &Path) -> String {
    let mut lines = vec![
        format!("{}: {} samples for {}", out.display(), manifest.kept, manifest.method.name()),
        format!("games      {}", manifest.games),
        format!("positions  {}", manifest.positions),
    ];
    lines.extend(manifest.dropped.iter().map(|(why, count)| format!("dropped    {count} {}", why.name())));
    let games = manifest.dropped_games.iter();
    lines.extend(games.map(|(why, count)| format!("left out   {count} games: {}", why.name())));
    for (reason, count) in manifest.sources.iter().flat_map(|source| &source.skipped.by_reason) {
        lines.push(format!("skipped    {count} games: {reason}"));
    }
    lines.push(format!("hash       {}", manifest.samples_hash));
    lines.join("\n")
}
