//! `fsbench dataset generate`: has engines play games, against each other or one against itself.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::engine::EngineArguments;
use super::{failure, warn_of_journal};
use crate::cli::progress_bar::progress;
use crate::cli::{Failure, ResultFormat, interrupt, print_json};
use crate::data::DataError;
use crate::generate::{EngineScore, GenerateError, GenerateJob, GenerateSummary, generate};
use crate::pipeline::generation::GenerateSettings;
use crate::pipeline::journal_path;
use crate::pipeline::uci::SearchLimit;

/// Have UCI engines play games
///
/// PGN output has `[%eval]` comments: White's view, in pawns, of the position after the move. In .fsd and .binpack
/// output each searched position is a sample: the engine's best move, its score and the game's result. The same
/// engines, settings and seed give the same file with any --concurrency. An interrupted run resumes when the command is
/// given again. A game in which an engine fails (it ends, does not answer, or gives no legal move with a score) is
/// played again by new engines, and dropped if one fails again; 8 such games before the first finished one, or 32 in a
/// row, end the run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A UCI engine: PROGRAM, 'PROGRAM ARGUMENTS' or 'PROGRAM|Option=value'; can be repeated: then each pair plays
    /// every opening with both colours
    #[arg(long, value_name = "ENGINE", default_value = "stockfish")]
    engine: Vec<String>,
    #[command(flatten)]
    engines: EngineArguments,
    /// Nodes per search
    #[arg(long, conflicts_with = "depth", required_unless_present = "depth")]
    nodes: Option<u64>,
    /// Depth of each search in plies
    #[arg(long)]
    depth: Option<u32>,
    /// Number of games
    #[arg(long)]
    games: u32,
    /// The file to write: .pgn, .pgn.zst, or any format of samples that is written (.fsd, .binpack, .vf, …)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    settings: GenerateSettings,
    /// Number of random moves after the opening, drawn from A to B for each game [default: 4..10, or 0 with a book]
    #[arg(long, value_name = "A..B", value_parser = range, help_heading = "Games")]
    random_plies: Option<(u16, u16)>,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    /// How to print the summary
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
}

/// Parses `A..B`, or `A` for `A..A`.
fn range(text: &str) -> Result<(u16, u16), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) => Ok((least, most)),
        _ => Err("give two numbers as A..B".into()),
    }
}

/// The games that engines played.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// Path of the file that was written.
    out: &'a Path,
    #[serde(flatten)]
    summary: &'a GenerateSummary,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.out.exists() && !arguments.force {
        return Err(failure(DataError::Exists { path: arguments.out.clone() }));
    }
    let specs = arguments.engines.specs(&arguments.engine)?;
    let job = GenerateJob {
        workers: arguments.engines.workers(),
        command: std::env::args().collect(),
        ..GenerateJob::new(specs, arguments.games)
    };
    let journal = journal_path(&arguments.out);
    interrupt::on_exit_say(move || {
        if journal.exists() {
            format!("interrupted; {} keeps the finished games: give the command again to go on", journal.display())
        } else {
            "interrupted before the first game was begun".into()
        }
    });
    let template = "{elapsed} {wide_bar} {pos}/{len} games, {per_sec}, {left}";
    let bar = progress(Some(u64::from(arguments.games)), template);
    let summary = generate(&settings(arguments), &job, &arguments.out, &mut |done| {
        bar.set_position(u64::from(done));
    });
    bar.finish_and_clear();
    let summary = summary.map_err(generate_failure)?;
    warn_of_journal(&arguments.out);
    match arguments.format {
        ResultFormat::Text => outln!("{}", text(&summary, arguments))?,
        ResultFormat::Json => print_json(&Document { out: &arguments.out, summary: &summary })?,
    }
    Ok(())
}

fn settings(arguments: &Arguments) -> GenerateSettings {
    let settings = arguments.settings.clone();
    let usual = if settings.book.is_some() { (0, 0) } else { GenerateSettings::RANDOM_PLIES };
    GenerateSettings {
        limit: arguments.depth.map_or(SearchLimit::Nodes(arguments.nodes.unwrap_or(0)), SearchLimit::Depth),
        random_plies: arguments.random_plies.unwrap_or(usual),
        ..settings
    }
}

fn generate_failure(error: GenerateError) -> Failure {
    match error {
        GenerateError::Data(error) => failure(error),
        _ if error.is_request() => Failure::request(error),
        _ => Failure::work(error),
    }
}

fn text(summary: &GenerateSummary, arguments: &Arguments) -> String {
    let mut lines = vec![
        format!("{}: {} games by {}", arguments.out.display(), summary.games, summary.engine),
        format!("plies      {}", summary.plies),
    ];
    let dropped = summary.dropped_games.iter();
    lines.extend(dropped.map(|(why, count)| format!("dropped    {count} games: {}", why.name())));
    lines.extend(summary.samples.map(|samples| format!("samples    {samples}")));
    lines.extend(summary.score_unit.map(|unit| format!("scores     {}", unit.describe())));
    if summary.resumed > 0 {
        lines.push(format!("resumed    {} games of an interrupted run", summary.resumed));
    }
    if summary.unused > 0 {
        let journal = journal_path(&arguments.out);
        lines.push(format!("unused     {} more games, which stay in {}", summary.unused, journal.display()));
    }
    if summary.replayed > 0 {
        lines.push(format!("replayed   {} games in which an engine failed", summary.replayed));
    }
    if let Some(omissions) = &summary.omissions {
        let left_out = omissions.samples.iter().map(|(why, count)| format!("left out   {count} {}", why.name()));
        let lost =
            omissions.fields.iter().map(|(what, count)| format!("lost       {} of {count} samples", what.name()));
        lines.extend(left_out.chain(lost));
    }
    if let Some(book) = summary.book.as_ref() {
        lines.push(format!("book       {} openings, {} skipped", book.openings, book.skipped));
    }
    lines.extend(summary.results.iter().map(|(result, count)| format!("{result:<10} {count}")));
    let score = |score: &EngineScore| format!("{}: +{} ={} -{}", score.engine, score.wins, score.draws, score.losses);
    lines.extend(summary.scores.iter().map(score));
    lines.join("\n")
}
