//! `fsbench dataset generate`: games of an engine against itself.

use std::path::PathBuf;
use std::time::Duration;

use super::{failure, progress};
use crate::cli::{Failure, Format};
use crate::data::DataError;
use crate::data::generate::{Adjudication, GenerateError, Settings, Summary, Work, generate};
use crate::data::uci::{EngineSpec, Limit};
use crate::units::Seed;

/// Have a UCI engine play games against itself
///
/// The games carry `[%eval]` comments: White's view, in pawns, of the position after the move. The same settings and
/// seed give the same file whatever the concurrency. An interrupted run goes on when the command is given again.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The engine: a UCI program, by name or path
    #[arg(long, default_value = "stockfish")]
    engine: PathBuf,
    /// Nodes a search
    #[arg(long, conflicts_with = "depth", required_unless_present = "depth")]
    nodes: Option<u64>,
    /// Depth of a search in plies
    #[arg(long)]
    depth: Option<u32>,
    /// How many games
    #[arg(long)]
    games: u32,
    /// The file to write: .pgn or .pgn.zst
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Random moves each game begins with, drawn from A to B
    #[arg(long, value_name = "A..B", default_value = "4..10", value_parser = range)]
    random_plies: (u16, u16),
    /// Chance of a random move after that; the position is searched all the same
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    random_move_rate: f64,
    /// Seed of every random choice
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Games played at once, an engine each
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
    /// The engine's hash table in MiB
    #[arg(long, default_value_t = 8)]
    hash: u32,
    /// Longer games are draws
    #[arg(long, default_value_t = Adjudication::default().max_plies)]
    max_plies: u16,
    /// Centipawns from which on a game counts as won
    #[arg(long, default_value_t = Adjudication::default().win_score)]
    win_score: u16,
    /// So many scores in a row must say so
    #[arg(long, default_value_t = Adjudication::default().win_plies)]
    win_plies: u16,
    /// Centipawns up to which a game counts as drawn
    #[arg(long, default_value_t = Adjudication::default().draw_score)]
    draw_score: u16,
    /// So many scores in a row must say so
    #[arg(long, default_value_t = Adjudication::default().draw_plies)]
    draw_plies: u16,
    /// First ply at which a game can be called drawn
    #[arg(long, default_value_t = Adjudication::default().draw_from)]
    draw_from: u16,
    /// Longest wait for an answer of the engine, in seconds
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// Replace FILE where it exists
    #[arg(long)]
    force: bool,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn range(text: &str) -> Result<(u16, u16), String> {
    let (fewest, most) = text.split_once("..").unwrap_or((text, text));
    match (fewest.parse(), most.parse()) {
        (Ok(fewest), Ok(most)) => Ok((fewest, most)),
        _ => Err("give two numbers as A..B".into()),
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.out.exists() && !arguments.force {
        return Err(failure(DataError::Exists { path: arguments.out.clone() }));
    }
    let bar = progress(Some(u64::from(arguments.games)), "{elapsed} {wide_bar} {pos}/{len} games, {eta} left");
    let made = generate(&settings(arguments), &work(arguments), &arguments.out, &mut |done| {
        bar.set_position(u64::from(done));
    });
    bar.finish_and_clear();
    let summary = made.map_err(generate_failure)?;
    match arguments.format {
        Format::Text => println!("{}", text(&summary, arguments)),
        Format::Json => {
            let mut document = serde_json::to_value(&summary).map_err(Failure::work)?;
            document["out"] = serde_json::json!(arguments.out);
            println!("{document:#}");
        }
    }
    Ok(())
}

fn settings(arguments: &Arguments) -> Settings {
    Settings {
        limit: arguments.depth.map_or(Limit::Nodes(arguments.nodes.unwrap_or(0)), Limit::Depth),
        seed: Seed(arguments.seed),
        random_plies: arguments.random_plies,
        random_move_rate: arguments.random_move_rate,
        hash: arguments.hash,
        adjudication: Adjudication {
            max_plies: arguments.max_plies,
            win_score: arguments.win_score,
            win_plies: arguments.win_plies,
            draw_score: arguments.draw_score,
            draw_plies: arguments.draw_plies,
            draw_from: arguments.draw_from,
        },
    }
}

fn work(arguments: &Arguments) -> Work {
    Work {
        engine: EngineSpec { path: arguments.engine.clone(), options: Vec::new(), hash: arguments.hash },
        games: arguments.games,
        concurrency: arguments.concurrency,
        patience: Duration::from_secs(arguments.patience),
    }
}

fn generate_failure(error: GenerateError) -> Failure {
    match error {
        GenerateError::Data(error) => failure(error),
        GenerateError::Engine { error: ref cause, .. } if cause.is_request() => Failure::request(error),
        GenerateError::Journal(ref cause) if cause.is_request() => Failure::request(error),
        GenerateError::Request(_) => Failure::request(error),
        GenerateError::Engine { .. } | GenerateError::Journal(_) => Failure::work(error),
    }
}

fn text(summary: &Summary, arguments: &Arguments) -> String {
    let mut lines = vec![
        format!("{}: {} games by {}", arguments.out.display(), summary.games, summary.engine),
        format!("plies      {}", summary.plies),
    ];
    if summary.resumed > 0 {
        lines.push(format!("resumed    {} games of an interrupted run", summary.resumed));
    }
    lines.extend(summary.results.iter().map(|(result, count)| format!("{result:<10} {count}")));
    lines.join("\n")
}
