//! `fsbench match` from outside: determinism, interruption, engines that behave and engines that do not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../engines/mod.rs"]
mod engines;

mod chess960;
mod shards;
mod trouble;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use engines::Script;
use fsbench::chess::{Chess, Square};
use fsbench::features::FeatureSet;
use fsbench::net::{NetFile, Origin, Scheme, quantise};
use fsbench::output::checked::without_line_sum;
use fsbench::pipeline::uci::{Engine, EngineSpec, SearchLimit, UciGame};
use serde_json::{Value, json};
use shakmaty::fen::Fen;
use shakmaty::{EnPassantMode, Position};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fsbench");

/// A folder with two networks and a book of 400 openings.
fn bench() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, seed) in [("a", 1), ("b", 2)] {
        let set = FeatureSet::shipped("piece").unwrap();
        let float = common::random_net(set.num_features(), 16, &[8], seed);
        let file = NetFile { origin: Origin::of(&set), net: quantise(&float, &Scheme::stockfish()).unwrap() };
        file.save(&folder.path().join(format!("{name}.safetensors"))).unwrap();
    }
    // The 400 positions after a move of each side.
    let mut book = String::new();
    let start = Chess::default();
    for first in start.legal_moves() {
        let mut position = start.clone();
        position.play_unchecked(first);
        for second in position.legal_moves() {
            let mut opening = position.clone();
            opening.play_unchecked(second);
            writeln!(book, "{}", Fen::from_position(&opening, EnPassantMode::Legal)).unwrap();
        }
    }
    fs::write(folder.path().join("book.epd"), book).unwrap();
    folder
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("match").args(arguments.split_ascii_whitespace()).args(["--openings", "book.epd"]);
    command.current_dir(folder).env("FSBENCH_CACHE", folder.join("cache"));
    command
}

fn run(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().unwrap()
}

fn json(folder: &Path, arguments: &str) -> Value {
    let output = run(folder, &format!("{arguments} --format json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str, status: i32, message: &str) {
    let output = run(folder, arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments}: {text}");
    assert!(text.contains(message), "{arguments}: {text:?} lacks {message:?}");
}

/// A PGN without the times in its comments.
fn timeless(folder: &Path, out: &str) -> String {
    let text = fs::read_to_string(folder.join(out).join("games.pgn")).unwrap();
    let mut kept = String::new();
    for part in text.split_inclusive('}') {
        match part.rsplit_once([' ', '{']) {
            Some((before, time)) if time.ends_with("s}") => kept += before,
            _ => kept += part,
        }
    }
    kept
}

const SHORT: &str = "a.safetensors b.safetensors --nodes 60 --pairs 4 --hash 1";

#[test]
fn a_match_at_a_node_limit_repeats_whatever_the_concurrency() {
    let folder = bench();
    let results: Vec<(Value, String)> = [1, 2, 4]
        .map(|concurrency| {
            let out = format!("out{concurrency}");
            let mut document = json(folder.path(), &format!("{SHORT} --concurrency {concurrency} --out {out}"));
            for player in document["players"].as_array_mut().unwrap() {
                assert!(player["nps"].as_f64().unwrap() > 0.0);
                player["nps"] = Value::Null;
            }
            (document, timeless(folder.path(), &out))
        })
        .into();
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    let (document, pgn) = &results[0];
    assert_eq!(pgn.matches("[Round ").count(), 8);
    assert!(pgn.contains("[White \"a\"]\n[Black \"b\"]") && pgn.contains("[White \"b\"]\n[Black \"a\"]"));
    let games = &document["games"];
    let count = |name: &str| games[name].as_u64().unwrap();
    assert_eq!(count("wins") + count("losses") + count("draws"), 8);
    // A search counts a move before it stops: no search exceeds its limit.
    assert!(document["players"][0]["nodes"].as_f64().unwrap() <= 60.0);
    // Another seed plays the openings in another order.
    json(folder.path(), &format!("{SHORT} --seed 5 --out other"));
    assert_ne!(&timeless(folder.path(), "other"), pgn);
}

#[test]
fn a_killed_match_continues_where_it_was() {
    let folder = bench();
    let arguments = "a.safetensors b.safetensors --nodes 2000 --pairs 4 --hash 1 --concurrency 2 --out";
    json(folder.path(), &format!("{arguments} whole"));
    let journal = folder.path().join("cut/games.journal");
    let lines = || fs::read_to_string(&journal).unwrap_or_default().matches('\n').count();
    for kill in 1..=3 {
        let mut command = command(folder.path(), &format!("{arguments} cut"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        // The first line describes the match.
        while lines() < 1 + kill && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "no game ended");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Whatever half a line it was writing.
        let mut text = fs::read(&journal).unwrap();
        text.extend_from_slice(br#"{"game":7,"wh"#);
        fs::write(&journal, text).unwrap();
    }
    json(folder.path(), &format!("{arguments} cut"));
    assert_eq!(timeless(folder.path(), "cut"), timeless(folder.path(), "whole"));
    // More pairs of the same match: the first eight games stay.
    let more = arguments.replace("--pairs 4", "--pairs 5");
    json(folder.path(), &format!("{more} cut"));
    assert!(timeless(folder.path(), "cut").starts_with(&timeless(folder.path(), "whole")));
    // Another match does not touch it.
    let other = arguments.replace("--nodes 2000", "--nodes 2001");
    refused(folder.path(), &format!("{other} cut"), 2, "about.limit.nodes was 2000, is now 2001");
}

#[test]
fn a_network_against_itself_is_even() {
    let folder = bench();
    let document = json(folder.path(), "a.safetensors a.safetensors --nodes 40 --pairs 8 --hash 1");
    // Both play the same moves with swapped colours: every pair is even.
    assert_eq!(document["pairs"]["wl_dd"], 8);
    assert!(document["elo"]["value"].as_f64().unwrap().abs() < 1e-6);
    assert_eq!(document["players"][0]["name"], "a #1");
}

#[test]
fn a_sequential_test_stops_the_match() {
    let folder = bench();
    // Against an engine that resigns at once: every game is won.
    let lost = r#"set -- $moves; echo "info depth 1 score mate -1"; echo "bestmove 0000""#;
    Script::new(lost).write(&folder.path().join("illegal"));
    refused(folder.path(), "a.safetensors uci:./illegal --nodes 40 --pairs 2 --out kept", 1, "that move is illegal");
    let document = json(
        folder.path(),
        "a.safetensors b.safetensors --nodes 40 --pairs 400 --sprt -200,0 --model logistic --concurrency 2 --hash 1 \
         --out test",
    );
    let pairs: u64 =
        ["ll", "ld", "wl_dd", "wd", "ww"].iter().map(|name| document["pairs"][name].as_u64().unwrap()).sum();
    let state = document["sprt"]["state"].as_str().unwrap();
    assert!(pairs < 400 && state.starts_with("accept"), "{pairs} {state}");
    assert_eq!(timeless(folder.path(), "test").matches("[Round ").count() as u64, 2 * pairs);
}

/// An engine's arguments, a path with a blank among them, and an option.
#[test]
fn engines_take_arguments() {
    let folder = bench();
    let path = folder.path();
    fs::rename(path.join("b.safetensors"), path.join("my net.safetensors")).unwrap();
    let play = |engine: &str, out: &str| {
        let mut command = command(path, &format!("--nodes 40 --pairs 1 --hash 1 --format json --out {out}"));
        let output = command.args(["a.safetensors", engine]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let engine = format!("uci:'{PROGRAM}' uci --net 'my net.safetensors'|SoftNodes=true");
    let (code, document, error) = play(&engine, "games");
    assert_eq!(code, Some(0), "{error}");
    let document: Value = serde_json::from_str(&document).unwrap();
    let identity = &document["players"][1]["identity"]["engine"]["engine"];
    assert_eq!(identity["arguments"], serde_json::json!(["uci", "--net", "my net.safetensors"]));
    assert_eq!(identity["options"], serde_json::json!({ "SoftNodes": "true" }));
    assert_eq!(document["players"][1]["name"], "fsbench");
    // Another network is another match.
    fs::copy(path.join("a.safetensors"), path.join("c.safetensors")).unwrap();
    let (code, _, error) = play(&format!("uci:{PROGRAM} uci --net c.safetensors|SoftNodes=true"), "games");
    assert_eq!(code, Some(2), "{error}");
    // So is another content of its file, and the same one is the same match.
    let (code, document, error) = play(&engine, "games");
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(serde_json::from_str::<Value>(&document).unwrap()["resumed"], 2);
    fs::copy(path.join("a.safetensors"), path.join("my net.safetensors")).unwrap();
    let (code, _, error) = play(&engine, "games");
    assert!(code == Some(2) && error.contains("engine.files.my net.safetensors: this file has changed"), "{error}");
    let (code, _, error) = play("uci:sf 'x", "other");
    assert!(code == Some(2) && error.contains("a quote is not closed"), "{error}");
}

/// Commands on the command line, and what OpenBench asks engines to do.
#[test]
fn uci_commands_can_be_arguments() {
    let folder = bench();
    let check = |arguments: &[&str], status: i32, expected: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["uci", "--net", "a.safetensors"]).args(arguments).current_dir(folder.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.code() == Some(status) && text.contains(expected), "{arguments:?}: {output:?}");
    };
    check(&["bench", "1"], 0, " nps\n");
    check(&["bench 1", "quit"], 0, " nps\n");
    check(&["position startpos moves e2e4", "go depth 2"], 0, "\nbestmove ");
    // A command that was not executed is told by the exit status, too.
    check(&["position fen bad"], 2, "info string error: position fen");
    check(&["genfens 5 seed 42 book none.epd", "quit"], 2, "info string error: cannot read none.epd");
    check(&["genfens 5 seed 42 books", "quit"], 2, "info string error: genfens does not know \"books\"");
    let mut command = Command::new(PROGRAM);
    let output = command.args(["uci", "bench", "5"]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && text.contains("a command was not executed"), "{output:?}");
}

/// Openings for OpenBench: by the seed alone, from a book or not, with the six fields of a FEN.
#[test]
fn openings_are_drawn_for_openbench() {
    let folder = bench();
    let book = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -\n";
    fs::write(folder.path().join("book.epd"), book).unwrap();
    let draw = |request: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["uci", "--net", "a.safetensors", request, "quit"]).current_dir(folder.path());
        let text = String::from_utf8(command.stdin(Stdio::null()).output().unwrap().stdout).unwrap();
        let openings = text.lines().filter_map(|line| line.strip_prefix("info string genfens "));
        openings.map(|fen| fsbench::chess::parse_fen(fen).unwrap()).collect::<Vec<_>>()
    };
    let plies =
        |position: &fsbench::chess::Chess| 2 * (position.fullmoves().get() - 1) + u32::from(position.turn().is_black());
    let openings = draw("genfens 12 seed 42 book None ");
    assert_eq!(openings.len(), 12);
    assert!(openings.iter().all(|position| (8..=9).contains(&plies(position))));
    assert_eq!(openings, draw("genfens 12 seed 42 book None"));
    assert_ne!(openings, draw("genfens 12 seed 43 book None"));
    let openings = draw("genfens 12 seed 42 book book.epd");
    assert_eq!(openings.len(), 12);
    assert!(openings.iter().all(|position| (1..=4).contains(&plies(position))));
    let openings = draw("genfens 3 seed 42 book None double-chess960");
    assert!(openings.iter().all(|position| (8..=9).contains(&plies(position))));
}

#[test]
fn uci_engines_play() {
    let folder = bench();
    let network = format!("#!/bin/sh\nexec {PROGRAM} uci --net b.safetensors\n");
    let engine = folder.path().join("engine");
    fs::write(&engine, network).unwrap();
    fs::set_permissions(&engine, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // Through UCI the same network plays the same moves.
    json(folder.path(), "a.safetensors b.safetensors --nodes 60 --pairs 2 --hash 1 --out inside");
    let document = json(folder.path(), "a.safetensors uci:./engine --nodes 60 --pairs 2 --hash 1 --out outside");
    let outside = timeless(folder.path(), "outside").replace("\"engine\"", "\"b\"");
    assert_eq!(outside, timeless(folder.path(), "inside"));
    assert_eq!(document["players"][1]["identity"]["engine"]["engine"]["hash"], 1);
    for limit in ["--movetime 20", "--tc 1+0.02"] {
        let document = json(folder.path(), &format!("a.safetensors uci:./engine {limit} --pairs 1 --concurrency 1"));
        let games = document["terminations"].as_array().unwrap().iter().map(|entry| entry["games"].as_u64().unwrap());
        assert_eq!(games.sum::<u64>(), 2);
    }
}

#[test]
fn equal_cost_gives_the_second_player_its_nodes() {
    let folder = bench();
    let arguments = "a.safetensors b.safetensors --equal-cost 500 --pairs 1 --hash 1 --out cost";
    let first = json(folder.path(), arguments);
    let cost = &first["equal_cost"];
    let number = |name: &str| cost[name].as_f64().unwrap();
    assert!(number("low") <= number("ratio") && number("ratio") <= number("high"), "{cost}");
    let nodes = first["players"][1]["identity"]["network"]["nodes"].as_u64().unwrap();
    assert_eq!(nodes, (500.0 * number("ratio")).round() as u64);
    // Measured costs stand: the same command continues the same match.
    assert_eq!(json(folder.path(), arguments)["equal_cost"], *cost);
    let text = String::from_utf8(run(folder.path(), arguments).stdout).unwrap();
    let nodes = format!("by the median of 15 rounds the second gets {:.3} [", number("ratio"));
    assert!(text.contains(&nodes) && text.contains("] times the nodes\n"), "{text}");
}

#[test]
fn figures_of_an_own_engine_give_the_nodes() {
    let folder = bench();
    let players = "a.safetensors b.safetensors --equal-cost 500 --pairs 1 --hash 1";
    let nodes = |document: &Value| document["players"][1]["identity"]["network"]["nodes"].as_u64().unwrap();
    let document = json(folder.path(), &format!("{players} --node-cost 1.25"));
    assert_eq!((nodes(&document), &document["equal_cost"]["own_node_costs"]), (400, &json!([1.0, 1.25])));
    assert!(document["limit"].as_str().unwrap().contains("by your figures"), "{}", document["limit"]);
    // A millisecond to find features leaves the second player hardly a node; the first player's time is measured.
    let document = json(folder.path(), &format!("{players} --own-features-ns -,1000000"));
    let cost = &document["equal_cost"];
    let [one, two] = [0, 1].map(|player| cost["nanoseconds_per_node"][player].as_f64().unwrap());
    let features = &cost["own_features"][1];
    let [own, moves] = ["own_ns", "moves_per_node"].map(|name| features[name].as_f64().unwrap());
    assert!(cost["own_features"][0].is_null() && own == 1e6 && (0.1..=1.5).contains(&moves), "{cost}");
    assert!(two > 0.9 * moves * own && one < 0.1 * two, "{cost}");
    assert_eq!(nodes(&document), ((500.0 * cost["ratio"].as_f64().unwrap()).round() as u64).max(1));
    for (wrong, message) in [
        ("--own-features-ns 30", "two numbers"),
        ("--own-features-ns 30,-1", "two numbers"),
        ("--node-cost 0", "above 0"),
        ("--node-cost 2 --own-features-ns 1,1", "cannot be used with"),
    ] {
        refused(folder.path(), &format!("{players} {wrong}"), 2, message);
    }
}

#[test]
fn each_player_may_have_its_own_nodes() {
    let folder = bench();
    let document = json(folder.path(), "a.safetensors a.safetensors --nodes 20,200 --pairs 2 --hash 1");
    assert_eq!(document["limit"], "20, 200 nodes per move");
    let searched = |player: usize| document["players"][player]["nodes"].as_f64().unwrap();
    assert!(searched(0) <= 20.0 && searched(1) > 20.0 && searched(1) <= 200.0, "{document}");
    refused(folder.path(), "a.safetensors a.safetensors --nodes 1,2,3", 2, "3 numbers for 2 players");
}

#[test]
fn several_players_are_rated() {
    let folder = bench();
    let document = json(
        folder.path(),
        "a.safetensors b.safetensors a.safetensors --nodes 40 --pairs 3 --hash 1 --gauntlet --out gauntlet",
    );
    assert_eq!(document["pairings"].as_array().unwrap().len(), 2);
    let ratings = document["ratings"].as_array().unwrap();
    assert_eq!(ratings.len(), 3);
    assert_eq!(ratings[0]["elo"]["value"].as_f64(), Some(0.0));
    assert_eq!(ratings[2]["elo"]["value"].as_f64().map(|elo| elo.abs() < 1e-3), Some(true));
}

#[test]
fn bad_requests_are_refused() {
    let folder = bench();
    let path = folder.path();
    refused(path, "a.safetensors b.safetensors --pairs 1", 2, "give a limit");
    refused(path, "a.safetensors missing.safetensors --nodes 10", 2, "missing.safetensors");
    refused(path, "a.safetensors uci: --nodes 10", 2, "names no program");
    refused(path, "a.safetensors uci:./nowhere --nodes 10", 2, "cannot start the engine ./nowhere");
    refused(path, "a.safetensors b.safetensors a.safetensors --nodes 10 --sprt 0,5", 2, "compares two players");
    refused(path, "a.safetensors uci:./nowhere --equal-cost 10", 2, "compares networks");
    refused(path, "a.safetensors b.safetensors --tc fast", 2, "8+0.08");
    refused(path, "a.safetensors b.safetensors --nodes 10 --pairs 401", 2, "book.epd has 400 openings");
    // A copy of an opening is no other opening.
    let book = fs::read_to_string(path.join("book.epd")).unwrap();
    fs::write(path.join("book.epd"), book.lines().next().unwrap().to_owned() + "\n" + &book).unwrap();
    refused(path, "a.safetensors b.safetensors --nodes 10 --pairs 401", 2, "book.epd has 400 openings");
    fs::remove_file(path.join("book.epd")).unwrap();
    refused(path, "a.safetensors b.safetensors --nodes 10", 2, "book.epd");
    fs::write(path.join("book.epd"), "no position\n").unwrap();
    refused(path, "a.safetensors b.safetensors --nodes 10", 2, "book.epd");
}

#[test]
fn engines_that_fail_are_named_and_games_kept() {
    let folder = bench();
    let path = folder.path();
    Script::new("sleep 60").write(&path.join("silent"));
    refused(path, "a.safetensors uci:./silent --nodes 10 --pairs 1 --patience 1", 1, "gave no answer within 1 s");
    refused(path, "a.safetensors uci:./silent --nodes 10 --pairs 1 --patience 1", 1, "raise --patience");
    Script::new("exit 3").write(&path.join("dies"));
    refused(path, "a.safetensors uci:./dies --nodes 10 --pairs 1", 1, "ended while searching");
    refused(path, "a.safetensors uci:./dies --nodes 10 --pairs 1", 1, "player dies: the engine ./dies");
    refused(path, "a.safetensors uci:./dies --nodes 10 --pairs 1", 1, "give --out FOLDER");
    refused(path, "a.safetensors uci:./dies --nodes 10 --pairs 1 --out kept", 1, "kept keeps the finished games");
    assert!(!path.join("games.journal").exists());
}

#[test]
fn an_engine_may_use_its_time_for_a_move_before_it_is_silent() {
    let folder = bench();
    let slow = Script::new(r#"sleep 1.2; echo "info depth 1 score cp 0"; echo "bestmove e2e4""#);
    let path = slow.write(&folder.path().join("slow"));
    let mut engine = Engine::start(&EngineSpec::new(path), Duration::from_secs(1)).unwrap();
    let position = Chess::default();
    let game = UciGame::new(&position);
    let limits = [SearchLimit::MoveTime(1000), SearchLimit::Clock { white: 1000, black: 0, increment: 0 }];
    for limit in limits {
        assert_eq!(engine.search(&game, &position, limit).unwrap().best.to(), Square::E4);
    }
    let error = engine.search(&game, &position, SearchLimit::Nodes(1)).unwrap_err();
    assert!(error.to_string().contains("no answer within 1 s"), "{error}");
}
