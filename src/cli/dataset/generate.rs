//! `fsbench dataset generate`: has networks and engines play games, against each other or one against itself.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use schemars::JsonSchema;
use serde::Serialize;

use super::engine::EngineArguments;
use super::{failure, warn_of_journal};
use crate::cli::net::FormatHints;
use crate::cli::progress_bar::progress;
use crate::cli::{Failure, ResultFormat, engine_command, interrupt, print_json};
use crate::data::DataError;
use crate::generate::{
    EngineScore, GenerateError, GenerateGoal, GenerateJob, GenerateProgress, GenerateSpeed, GenerateSummary, generate,
};
use crate::pipeline::generation::{BookSpec, GenerateSettings};
use crate::pipeline::journal_path;
use crate::pipeline::uci::{EngineSpec, SearchLimit};
use crate::play::{PlayError, Player, PlayerKind};

/// Have a network or UCI engines play games
///
/// A network plays both sides by fsbench's own search in this process, one thread a game. PGN output has `[%eval]`
/// comments: White's view, in pawns, of the position at which each stands. In .fsd and .binpack output each searched
/// position is a sample: the engine's best move, its score and the game's result. The same players, settings and seed
/// give the same file with any --concurrency. An interrupted run resumes when the command is given again. A game is
/// dropped and counted where the first search after its opening scores it beyond --opening-bound. A game in which an
/// engine fails (it ends, does not answer, or gives no legal move with a score) is played again by new engines, and
/// dropped if one fails again; 8 such games before the first finished one, or 32 in a row, end the run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A network (a .safetensors or .nnue file, or a run's folder) or a UCI engine: PROGRAM, 'PROGRAM ARGUMENTS' or
    /// 'PROGRAM|Option=value', also with uci: before it; can be repeated: then each pair plays every opening with both
    /// colours
    #[arg(long, value_name = "ENGINE", default_value = "stockfish")]
    engine: Vec<String>,
    #[command(flatten)]
    engines: EngineArguments,
    /// Nodes per search, at most
    #[arg(long, value_name = "N", group = "limit", required_unless_present_any = ["soft_nodes", "depth"])]
    nodes: Option<u64>,
    /// Nodes per search after which a network begins no deeper iteration; one that takes more than 8 times as many is
    /// cut short
    #[arg(long, value_name = "N", group = "limit")]
    soft_nodes: Option<u64>,
    /// Depth of each search in plies
    #[arg(long, value_name = "PLIES", group = "limit")]
    depth: Option<u32>,
    /// Number of games, those included that are dropped
    #[arg(long, value_name = "N", required_unless_present = "positions")]
    games: Option<u32>,
    /// Number of searched positions, in place of a number of games: the game that reaches it is the last one
    #[arg(long, value_name = "N", conflicts_with = "games")]
    positions: Option<u64>,
    /// The file to write: .pgn, .pgn.zst, or any format of samples that is written (.fsd, .binpack, .vf, …)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    /// Begin each game at an opening that a UCI engine draws by its command `genfens`, as for OpenBench: PROGRAM or
    /// 'PROGRAM ARGUMENTS', without options
    #[arg(long, value_name = "ENGINE", group = "openings", help_heading = "Games")]
    genfens: Option<String>,
    #[command(flatten)]
    hints: FormatHints,
    #[command(flatten)]
    settings: GenerateSettings,
    /// Number of random moves after the opening, drawn from A to B for each game [default: 8..9, or 0 after a book];
    /// moves that lose material at once are drawn again
    #[arg(long, value_name = "A..B", value_parser = range, help_heading = "Games")]
    random_plies: Option<(u16, u16)>,
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
pub struct GenerateDocument<'a> {
    /// Path of the file that was written.
    out: &'a Path,
    #[serde(flatten)]
    summary: &'a GenerateSummary,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.out.exists() && !arguments.force {
        return Err(failure(DataError::Exists { path: arguments.out.clone() }));
    }
    let players = arguments.engines.players(&arguments.engine, &arguments.hints)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let concurrency = if players.iter().all(Player::is_network) { cores } else { 1 };
    let goal = match (arguments.positions, arguments.games) {
        (Some(positions), _) => GenerateGoal::Positions(positions),
        (None, games) => GenerateGoal::Games(games.unwrap_or(0)),
    };
    let job = GenerateJob {
        workers: arguments.engines.workers(concurrency),
        hash: arguments.engines.hash(),
        openings_engine: arguments.genfens.as_deref().map(openings_engine).transpose()?,
        command: std::env::args().collect(),
        ..GenerateJob::new(players, goal)
    };
    let journal = journal_path(&arguments.out);
    // For a second signal, which ends the process at once.
    interrupt::on_exit_say(move || interruption(&journal));
    let (length, unit) = match goal {
        GenerateGoal::Games(games) => (games.into(), "games"),
        GenerateGoal::Positions(positions) => (positions, "positions"),
    };
    let bar = progress(Some(length), &format!("{{elapsed}} {{wide_bar}} {{pos}}/{{len}} {unit}, {{left}}; {{msg}}"));
    let summary = {
        let _graceful = interrupt::gracefully();
        generate(&settings(arguments), &job, &arguments.out, &interrupt::requested, &mut |progress| {
            bar.set_position(match goal {
                GenerateGoal::Games(_) => progress.done().into(),
                GenerateGoal::Positions(_) => progress.positions,
            });
            bar.set_message(running(progress));
        })
    };
    bar.finish_and_clear();
    let summary = summary.map_err(|error| generate_failure(error, &journal_path(&arguments.out)))?;
    warn_of_repeats(&settings(arguments), &job, &summary);
    if summary.unused == 0 {
        warn_of_journal(&arguments.out);
    }
    match arguments.format {
        ResultFormat::Text => outln!("{}", text(&summary, arguments))?,
        ResultFormat::Json => print_json(&GenerateDocument { out: &arguments.out, summary: &summary })?,
    }
    Ok(())
}

/// What an interruption leaves, and how to go on.
fn interruption(journal: &Path) -> String {
    if journal.exists() {
        format!("interrupted; {} keeps the finished games: give the command again to go on", journal.display())
    } else {
        "interrupted before the first game was begun".into()
    }
}

/// Warns where a network played openings again: it plays the same game from them.
fn warn_of_repeats(settings: &GenerateSettings, job: &GenerateJob, summary: &GenerateSummary) {
    let has_random_moves = settings.random_plies.1 > 0 || settings.random_move_rate > 0.0;
    let [Player { kind: PlayerKind::Network(_), .. }] = &job.players[..] else { return };
    if has_random_moves || job.openings_engine.is_some() {
        return;
    }
    let openings = summary.book.as_ref().map_or(1, |book| book.openings);
    if u64::from(summary.games) > openings {
        let openings = if openings == 1 { "one opening".into() } else { format!("{openings} openings") };
        note!(
            "warning: {} games from {openings} without random moves: a network plays the same game again; give \
             --random-plies 1..4 or a larger book",
            summary.games
        );
    }
}

fn openings_engine(text: &str) -> Result<EngineSpec, Failure> {
    let command = text.strip_prefix("uci:").unwrap_or(text);
    let refused = |why: &str| Failure::request(anyhow!("--genfens {text:?}: {why}"));
    let engine = engine_command::parse(command).map_err(|why| refused(&why))?;
    if engine.options.is_empty() {
        Ok(engine)
    } else {
        Err(refused("an engine draws openings before it is given options; leave them out"))
    }
}

/// The games so far, beside a bar.
fn running(progress: &GenerateProgress) -> String {
    let GenerateProgress { games, plies, draws, phases, speed, .. } = progress;
    let mut parts = vec![format!("{:.0} positions/s", speed.positions_per_second())];
    if *games > 0 {
        let percent = f64::from(*draws) * 100.0 / f64::from(*games);
        parts.push(format!("{percent:.0}% draws, {:.0} plies a game", *plies as f64 / f64::from(*games)));
    }
    parts.extend(phases.describe());
    parts.join(", ")
}

fn settings(arguments: &Arguments) -> GenerateSettings {
    let settings = arguments.settings.clone();
    let has_openings = arguments.genfens.is_some() || settings.book.as_ref().is_some_and(BookSpec::has_openings);
    let usual = if has_openings { (0, 0) } else { GenerateSettings::RANDOM_PLIES };
    let limit = match (arguments.depth, arguments.soft_nodes) {
        (Some(depth), _) => SearchLimit::Depth(depth),
        (None, Some(nodes)) => SearchLimit::SoftNodes(nodes),
        (None, None) => SearchLimit::Nodes(arguments.nodes.unwrap_or(0)),
    };
    GenerateSettings { limit, random_plies: arguments.random_plies.unwrap_or(usual), ..settings }
}

fn generate_failure(error: GenerateError, journal: &Path) -> Failure {
    match error {
        GenerateError::Data(error) => failure(error),
        GenerateError::Play(PlayError::Stopped) => Failure::Work(anyhow!(interruption(journal))),
        _ if error.is_request() => Failure::request(error),
        _ => Failure::work(error),
    }
}

fn text(summary: &GenerateSummary, arguments: &Arguments) -> String {
    let mut lines = vec![
        format!("{}: {} games by {}", arguments.out.display(), summary.games, summary.engine),
        format!("plies      {}, of which {} were searched", summary.plies, summary.positions),
    ];
    lines.extend(summary.phases.describe().map(|phases| format!("phases     {phases}")));
    if let Some(speed) = &summary.speed {
        let GenerateSpeed { seconds, .. } = *speed;
        let [positions, nodes] = [speed.positions_per_second(), speed.nodes_per_second()];
        lines.push(format!("speed      {positions:.0} positions/s, {nodes:.0} nodes/s over {seconds:.1} s"));
    }
    if summary.dropped_openings > 0 {
        let bound = arguments.settings.opening_bound;
        lines.push(format!("dropped    {} games: opening beyond ±{bound} cp", summary.dropped_openings));
    }
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
        let repeated = if book.repeated > 0 { format!(", {} as repeats", book.repeated) } else { String::new() };
        lines.push(format!("book       {} openings, {} skipped{repeated}", book.openings, book.skipped));
    }
    lines.extend(summary.results.iter().map(|(result, count)| format!("{result:<10} {count}")));
    let score = |score: &EngineScore| format!("{}: +{} ={} -{}", score.engine, score.wins, score.draws, score.losses);
    lines.extend(summary.scores.iter().map(score));
    lines.join("\n")
}
