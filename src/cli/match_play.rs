//! `fsbench match`: plays matches between networks and UCI engines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::ValueHint;
use indicatif::ProgressBar;
use serde_json::json;

use super::engine_command::program_name;
use super::match_document::{MatchDocument, text};
use super::named_player::NamedPlayer;
use super::net::{FormatHints, load_player};
use super::print::{print_json, print_text};
use super::sprt::SprtArguments;
use super::{Failure, ResultFormat, interrupt, match_shard, progress_bar};
use crate::alpha_beta::search_digest;
use crate::pipeline::generation::BookSource;
use crate::pipeline::sample_openings;
use crate::pipeline::uci::EngineSpec;
use crate::play::{
    CostPlayer, CostRatio, Interval, MatchOptions, MatchSettings, MoveLimit, Pairs, PlayError, Player, PlayerKind,
    PlayerSetup, TournamentType, equal_cost, parse_time_control, play_match,
};
use crate::record::{keep_first_json, read_checked_json, write_json};
use crate::service::Shard;

/// Limits of a move other than --equal-cost.
const OTHER_LIMITS: [&str; 3] = ["nodes", "movetime", "tc"];
/// A heading of the help.
const LIMITS: &str = "Limits of a move";

/// Play matches between networks and UCI engines, and estimate Elo
///
/// Each opening is played twice with colours swapped; Elo and its 95% interval are computed from these pairs. With
/// --nodes the same match gives the same games, whatever --concurrency. A match with --out continues where it was
/// interrupted. Networks play with fsbench's own search; `uci:PROGRAM`, `'uci:PROGRAM ARGUMENTS'` or
/// `'uci:PROGRAM|Option=value|…'` names a UCI engine. An engine that ends, does not answer or gives no legal move loses
/// that game by forfeit; one that forfeits 32 games in a row, or the first 8 without a move, ends the match.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Network files, run folders, .nnue files, or UCI engines as 'uci:PROGRAM ARGUMENTS|Option=value'
    #[arg(value_name = "PLAYER", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    players: Vec<String>,
    /// Nodes per move: one number for all players, or one for each, as in 2000,1000
    #[arg(help_heading = LIMITS, long, value_name = "N,…", group = "limit", value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Vec<u64>,
    /// Nodes per move of the first player; the second gets as many as take the same processor time
    #[arg(help_heading = LIMITS, long, value_name = "N", group = "limit",
        value_parser = clap::value_parser!(u64).range(1..))]
    equal_cost: Option<u64>,
    /// Nanoseconds a move in which your own engine finds the features of both perspectives, for --equal-cost: of the
    /// first and of the second player, - as measured, as in 30,- (they take the place of fsbench's own time)
    #[arg(help_heading = LIMITS, long, value_name = "NS,NS", requires = "equal_cost",
        conflicts_with_all = ["node_cost", "nodes", "movetime", "tc"], allow_hyphen_values = true, value_parser = own_features)]
    own_features_ns: Option<FeatureTimes>,
    /// A node's cost of the second player in your own engine against the first's, for --equal-cost, as 1.15: nothing is
    /// measured
    #[arg(help_heading = LIMITS, long, value_name = "RATIO", requires = "equal_cost",
        conflicts_with_all = OTHER_LIMITS, value_parser = positive)]
    node_cost: Option<f64>,
    /// How much cost weighs, for --equal-cost: a player whose nodes cost twice as much gets 0.5^W of the nodes [default:
    /// 1, equal processor time]
    #[arg(help_heading = LIMITS, long, value_name = "W", requires = "equal_cost",
        conflicts_with_all = OTHER_LIMITS, value_parser = positive)]
    cost_weight: Option<f64>,
    /// Milliseconds per move
    #[arg(help_heading = LIMITS, long, value_name = "MS", group = "limit",
        value_parser = clap::value_parser!(u64).range(1..))]
    movetime: Option<u64>,
    /// Seconds per game and increment per move, as 8+0.08
    #[arg(help_heading = LIMITS, long, value_name = "S+INC", group = "limit", value_parser = parse_time_control)]
    tc: Option<MoveLimit>,
    /// Milliseconds of each move's time that a network leaves unused, for the overhead of sending moves
    #[arg(help_heading = LIMITS, long, value_name = "MS", default_value_t = 10)]
    overhead: u64,
    /// Longest wait for a UCI engine's answer in seconds, beyond its time for a move
    #[arg(help_heading = LIMITS, long, value_name = "SECONDS", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    patience: u64,
    /// A folder for games.pgn, match.json and the journal from which an interrupted match continues
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Play a part of the pairs only: shard I (from 0) of N, into --out. The same command without --shard takes over
    /// the games of all shards, plays those that are missing, and counts. A shard that earlier shards make superfluous
    /// by --sprt plays nothing
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<Shard>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    format: ResultFormat,
    #[command(flatten)]
    hints: FormatHints,
    #[command(flatten)]
    options: MatchOptions,
    /// Begin at the 960 start positions of Chess960, in place of a file of openings
    #[arg(long, help_heading = "Games", conflicts_with_all = ["openings", "double_chess960"])]
    chess960: bool,
    /// Begin at the 921,600 start positions of double Chess960, each side's drawn by itself
    #[arg(long, help_heading = "Games", conflicts_with = "openings")]
    double_chess960: bool,
    /// The first player meets each of the others; they do not meet each other
    #[arg(long)]
    gauntlet: bool,
    #[command(flatten)]
    sprt: SprtArguments,
}

/// Of both players the nanoseconds a move, or `None` as measured.
type FeatureTimes = [Option<f64>; 2];

fn own_features(text: &str) -> Result<FeatureTimes, String> {
    let wrong = || format!("{text:?} must be two numbers of nanoseconds, as in 30,45, or - for a measured one");
    let (first, second) = text.split_once(',').ok_or_else(wrong)?;
    let figure = |text: &str| match text.trim() {
        "-" => Ok(None),
        number => match number.parse::<f64>() {
            Ok(ns) if ns.is_finite() && ns >= 0.0 => Ok(Some(ns)),
            _ => Err(wrong()),
        },
    };
    Ok([figure(first)?, figure(second)?])
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(cost) if cost.is_finite() && cost > 0.0 => Ok(cost),
        _ => Err(format!("{text:?} must be a number above 0, as in 1.15")),
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.options.check().map_err(Failure::request)?;
    let mut players = Vec::new();
    for text in &arguments.players {
        players.push(player(text, arguments)?);
    }
    // Without a folder the journal lives as long as the match.
    let temporary = tempfile::tempdir().map_err(Failure::work)?;
    let folder = arguments.out.as_deref().unwrap_or(temporary.path());
    let made = std::fs::create_dir_all(folder);
    made.with_context(|| format!("cannot make the folder {}", full(folder).display())).map_err(Failure::Work)?;
    give_nodes(&mut players, &arguments.nodes)?;
    let cost = arguments.equal_cost.map(|nodes| cost(&mut players, nodes, arguments, folder)).transpose()?;
    let settings = settings(arguments)?;
    if let Some(shard) = arguments.shard {
        let played = match_shard::play(&players, &settings, shard, folder, arguments.format);
        return played?.map_err(|error| failure(error, arguments.out.as_deref()));
    }
    let result = {
        let _graceful = interrupt::gracefully();
        let bar = bar(players.len());
        let played = play_match(&players, &settings, folder, &interrupt::requested, &mut |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.games);
            bar.set_message(running(progress.first));
        });
        bar.finish_and_clear();
        played
    };
    let result = result.map_err(|error| failure(error, arguments.out.as_deref()))?;
    let limit = limit(&settings, arguments, cost.as_ref());
    let document = MatchDocument::new(result, &settings, limit, cost);
    if let Some(folder) = &arguments.out {
        write_json(&folder.join("match.json"), &document).map_err(Failure::work)?;
    }
    match arguments.format {
        ResultFormat::Json => print_json(&document)?,
        ResultFormat::Text => print_text(&text(&document, arguments.out.as_deref()))?,
    }
    Ok(())
}

/// The path from the root, if the current folder is known.
fn full(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The failure of a match, and how to continue it.
fn failure(error: PlayError, out: Option<&Path>) -> Failure {
    if error.is_request() {
        return Failure::request(error);
    }
    let next = match out {
        Some(folder) => format!("{} keeps the finished games: give the command again to continue", folder.display()),
        None => "give --out FOLDER to be able to continue a match".into(),
    };
    match error {
        PlayError::Stopped => Failure::Work(anyhow!("interrupted; {next}")),
        PlayError::Damaged { .. } => Failure::work(error),
        _ => Failure::Work(anyhow!("{error}\n{next}")),
    }
}

fn player(text: &str, arguments: &Arguments) -> Result<Player, Failure> {
    let refused = |why: String| Failure::Request(anyhow!("the player {text:?}: {why}"));
    match NamedPlayer::of_match(text).map_err(refused)? {
        NamedPlayer::Network(path) => load_player(&path, &arguments.hints),
        NamedPlayer::Engine(engine) => {
            let engine = EngineSpec { hash: arguments.options.hash, ..engine };
            Ok(Player { name: program_name(&engine), kind: PlayerKind::Engine(engine), nodes: None })
        }
    }
}

/// Gives each player its own nodes per move, if there are several numbers.
fn give_nodes(players: &mut [Player], nodes: &[u64]) -> Result<(), Failure> {
    match nodes.len() {
        0 | 1 => Ok(()),
        count if count == players.len() => {
            players.iter_mut().zip(nodes).for_each(|(player, nodes)| player.nodes = Some(*nodes));
            Ok(())
        }
        count => Err(Failure::Request(anyhow!(
            "--nodes has {count} numbers for {} players; give one for all, or one for each",
            players.len()
        ))),
    }
}

/// Finds the cost of a node and sets both players' nodes. A match that continues keeps the cost measured at its start.
fn cost(players: &mut [Player], nodes: u64, arguments: &Arguments, folder: &Path) -> Result<CostRatio, Failure> {
    let refused = |text: &str| Failure::Request(anyhow!("--equal-cost {text}"));
    let [first, second] = players else { return Err(refused("compares two players; give two")) };
    let (PlayerKind::Network(network), PlayerKind::Network(other)) = (&first.kind, &second.kind) else {
        return Err(refused("compares networks; give UCI engines --movetime or --tc"));
    };
    let ratio = match arguments.node_cost {
        Some(cost) => CostRatio::of_figures([1.0, cost]),
        None => {
            let own = arguments.own_features_ns.unwrap_or_default();
            let both = [
                CostPlayer { player: first, network, own_features_ns: own[0] },
                CostPlayer { player: second, network: other, own_features_ns: own[1] },
            ];
            measured_cost(both, nodes, arguments.options.hash, folder)?
        }
    };
    let ratio = CostRatio { weight: arguments.cost_weight.filter(|weight| *weight != 1.0), ..ratio };
    first.nodes = Some(nodes);
    second.nodes = Some(ratio.nodes_of_second(nodes));
    Ok(ratio)
}

fn measured_cost(players: [CostPlayer<'_>; 2], nodes: u64, hash: u32, folder: &Path) -> Result<CostRatio, Failure> {
    // Its own file for every request, so that a mistaken request does not replace the file that a match began with.
    // Shards of a match on several machines share it.
    let networks = players.map(|player| json!([player.network.hash, player.own_features_ns]));
    let request = json!([networks, nodes, hash, search_digest()]);
    let name = &blake3::hash(request.to_string().as_bytes()).to_hex()[..16];
    let path = folder.join(format!("cost-{name}.json"));
    if path.exists() {
        return read_checked_json(&path).map_err(Failure::work);
    }
    interrupt::on_exit_say(|| {
        "interrupted while measuring the cost of a node: give the command again to begin the match".into()
    });
    let bar = ProgressBar::new(0).with_message("measuring the cost of a node");
    let ratio = equal_cost(players, nodes, hash, |done, rounds| {
        bar.set_length(rounds as u64);
        bar.set_position(done as u64);
        true
    });
    bar.finish_and_clear();
    // Another shard of the match may have been faster: then its cost counts.
    keep_first_json(&path, ratio.map_err(Failure::request)?).map_err(Failure::work)
}

fn settings(arguments: &Arguments) -> Result<MatchSettings, Failure> {
    let limit = match (arguments.nodes.first().copied().or(arguments.equal_cost), arguments.movetime, arguments.tc) {
        (Some(nodes), ..) => MoveLimit::Nodes(nodes),
        (_, Some(time), _) => MoveLimit::MoveTime(Duration::from_millis(time)),
        (_, _, Some(clock)) => clock,
        _ => return Err(Failure::Request(anyhow!("give a limit: --nodes, --equal-cost, --movetime or --tc"))),
    };
    let options = &arguments.options;
    let openings = match &options.openings {
        _ if arguments.chess960 => BookSource::Chess960,
        _ if arguments.double_chess960 => BookSource::DoubleChess960,
        Some(path) => BookSource::File(path.clone()),
        None => BookSource::File(sample_openings().map_err(Failure::work)?),
    };
    let settings = options.settings(limit, openings);
    let tournament = if arguments.gauntlet { TournamentType::Gauntlet } else { TournamentType::RoundRobin };
    let patience = Duration::from_secs(arguments.patience);
    let overhead = Duration::from_millis(arguments.overhead);
    let setup = PlayerSetup { patience, overhead, ..settings.setup };
    Ok(MatchSettings { tournament, sprt: arguments.sprt.test()?, setup, ..settings })
}

pub(super) fn bar(players: usize) -> ProgressBar {
    let template = match players {
        2 => "{elapsed} {wide_bar} {pos}/{len} games, {left}; {msg}",
        _ => "{elapsed} {wide_bar} {pos}/{len} games, {left}",
    };
    ProgressBar::new(0).with_style(progress_bar::style(template))
}

/// The first pairing's Elo so far.
pub(super) fn running(pairs: Pairs) -> String {
    if pairs.total() == 0 {
        return String::new();
    }
    let Interval { value, low, high } = pairs.estimate().elo;
    format!("Elo {value:+.0} [{low:+.0}, {high:+.0}]")
}

/// The limit of every move in words, with each player's nodes where they differ.
fn limit(settings: &MatchSettings, arguments: &Arguments, cost: Option<&CostRatio>) -> String {
    match (cost, arguments.equal_cost, &arguments.nodes[..]) {
        (Some(cost), Some(nodes), _) => {
            let by_figures = if cost.is_by_figures() { " by your figures" } else { "" };
            let weight = cost.weight.map(|weight| format!(", cost weighs {weight}")).unwrap_or_default();
            let second = cost.nodes_of_second(nodes);
            format!("{nodes} and {second} nodes per move (equal processor time{by_figures}{weight})")
        }
        (_, _, [_, _, ..]) => {
            let nodes: Vec<String> = arguments.nodes.iter().map(u64::to_string).collect();
            format!("{} nodes per move", nodes.join(", "))
        }
        _ => settings.limit.describe(),
    }
}
