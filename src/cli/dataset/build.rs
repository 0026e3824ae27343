//! `fsbench dataset build`: a file of games to a `.fsd` file.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::{failure, progress};
use crate::cli::{Failure, Format};
use crate::data::{self, DataError, Filter, Manifest, Method, Options, PerGame};
use crate::units::Seed;

/// Build a .fsd file from games
///
/// A sample is a position, the move played in it and, where the games carry `[%eval]` comments, its score: the one
/// written after the move before. The same games, options and seed give the same samples.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// PGN: plain, .zst, .gz or .bz2
    games: PathBuf,
    /// What the samples are for: positions with a score, or with a choice of moves
    #[arg(long, value_enum)]
    method: Method,
    /// The file to write; its manifest goes beside it as FILE.json
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seed of every random choice
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Samples a game: `all`, or so many drawn at random
    #[arg(long, default_value = "all", value_parser = per_game)]
    per_game: PerGame,
    /// Leave out positions before this ply [default: 20 for eval, 0 for pqr]
    #[arg(long, value_name = "PLY")]
    min_ply: Option<u16>,
    /// `quiet` leaves out positions in check and those whose move captures or promotes
    #[arg(long, value_enum, default_value = "none")]
    filter: Filter,
    /// Leave out positions with fewer legal moves [default: 0 for eval, 2 for pqr]
    #[arg(long, value_name = "N")]
    min_moves: Option<u16>,
    /// Replace FILE where it exists
    #[arg(long)]
    force: bool,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn per_game(text: &str) -> Result<PerGame, String> {
    match text {
        "all" => Ok(PerGame::All),
        _ => match text.parse() {
            Ok(count) if count > 0 => Ok(PerGame::At(count)),
            _ => Err("give `all` or a number from 1 on".into()),
        },
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let defaults = Options::new(arguments.method);
    let options = Options {
        method: arguments.method,
        seed: Seed(arguments.seed),
        per_game: arguments.per_game,
        min_ply: arguments.min_ply.unwrap_or(defaults.min_ply),
        filter: arguments.filter,
        min_moves: arguments.min_moves.unwrap_or(defaults.min_moves),
    };
    check(arguments, &options)?;
    let bar = progress(None, "{spinner} {elapsed} {msg}");
    let command: Vec<String> = std::env::args().collect();
    let built = data::build(&arguments.games, &arguments.out, &options, &command, &mut |progress| {
        bar.set_message(format!("{} games, {} samples", progress.games, progress.samples));
    });
    bar.finish_and_clear();
    let manifest = built.map_err(failure)?.manifest;
    warn_skipped(&manifest);
    match arguments.format {
        Format::Text => println!("{}", text(&manifest, &arguments.out)),
        Format::Json => println!("{:#}", json(&manifest, &arguments.out)),
    }
    Ok(())
}

fn check(arguments: &Arguments, options: &Options) -> Result<(), Failure> {
    if options.method == Method::Pqr && options.min_moves < 2 {
        let why = "--min-moves must be at least 2 for pqr: R needs a legal move beside the one played";
        return Err(Failure::request(anyhow!(why)));
    }
    if arguments.out.file_name().is_none() {
        return Err(Failure::request(anyhow!("--out {} names no file", arguments.out.display())));
    }
    if arguments.out.exists() && !arguments.force {
        return Err(failure(DataError::Exists { path: arguments.out.clone() }));
    }
    Ok(())
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
    for (reason, count) in manifest.sources.iter().flat_map(|source| &source.skipped.by_reason) {
        lines.push(format!("skipped    {count} games: {reason}"));
    }
    lines.push(format!("hash       {}", manifest.samples_hash));
    lines.join("\n")
}
