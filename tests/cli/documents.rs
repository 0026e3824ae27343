//! Checks the JSON documents of all commands against the schemas that `fsbench schema` prints.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use super::common::{pgn, random_game, random_net};
use super::schema::Schema;
use super::workspace::Workspace;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("games.pgn", &pgn(&(0..40).map(|game| random_game(game, 60)).collect::<Vec<_>>()));
    // A game with scores and a result, and a game with an illegal move.
    workspace.write(
        "scored.pgn",
        "[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 { [%eval 0.2] } e5 { [%eval 0.3] } 2. Nf3 { [%eval 0.25] } Nc6 \
         { [%eval #5] } 3. Bb5 { [%eval ?] } 1-0\n\n[Event \"b\"]\n[Result \"*\"]\n\n1. e5 *\n\n",
    );
    workspace
}

fn schema(name: &str) -> Schema {
    Schema::parse(&Workspace::new().stdout(&["schema", name]))
}

/// Runs a command with `--format json` and checks its document against a schema.
fn check(workspace: &Workspace, schema: &str, arguments: &[&str]) -> Value {
    let text = workspace.stdout(&[arguments, &["--format", "json"]].concat());
    let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{text}"));
    check_document(schema, &document, arguments);
    document
}

fn check_document(schema: &str, document: &Value, arguments: &[&str]) {
    let problems = self::schema(schema).problems(document);
    assert!(problems.is_empty(), "{arguments:?} against {schema}:\n  {}", problems.join("\n  "));
}

#[test]
fn documents_about_feature_sets() {
    let workspace = workspace();
    check(&workspace, "define", &["define", "compact", "--list-dead", "--witnesses"]);
    check(&workspace, "define", &["define", "half-ka-v2-hm"]);
    check(&workspace, "define-list", &["define", "--list"]);
    check(&workspace, "explain", &["explain", "compact", "3", "100"]);
    check(&workspace, "encode", &["encode", "compact", "--fen", START]);
    check(&workspace, "delta", &["delta", "compact", "--fen", START, "--move", "e2e4"]);
    check(&workspace, "show", &["show", "compact", "--fen", START, "--move", "e2e4", "--out", "board.svg"]);
    check(&workspace, "select", &["select", "piece", "--top", "4", "--data", "games.pgn", "--out", "top.idx"]);
    check(&workspace, "measure-updates", &["measure", "updates", "compact", "--data", "games.pgn"]);
    check(&workspace, "measure-updates", &["measure", "updates", "compact", "--data", "games.pgn", "--legal"]);
    check(&workspace, "elo", &["elo", "--pairs", "1,2,30,4,2"]);
    check(&workspace, "elo", &["elo", "--pairs", "1,2,30,4,2", "--sprt", "0,5"]);
    // One document per input line.
    let check_lines = |schema: &str, arguments: &[&str], line: &str| {
        let mut child = workspace.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{line}\n{line}").unwrap();
        let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let documents = output.lines().map(|line| serde_json::from_str(line).unwrap());
        assert_eq!(documents.map(|document| check_document(schema, &document, arguments)).count(), 2);
    };
    check_lines("encode", &["encode", "compact", "--fens", "-"], START);
    check_lines("delta", &["delta", "compact", "--moves", "-"], &format!("{START}|e2e4"));
}

#[test]
fn documents_about_data() {
    let workspace = workspace();
    check(
        &workspace,
        "dataset-build",
        &["dataset", "build", "scored.pgn", "--method", "eval", "--min-ply", "0", "--out", "a.fsd"],
    );
    check(&workspace, "dataset-build", &["dataset", "build", "games.pgn", "--method", "pqr", "--out", "b.fsd"]);
    let shard = ["dataset", "build", "games.pgn", "--method", "pqr", "--shard", "0/1", "--out", "b.shard"];
    check(&workspace, "dataset-shard", &shard);
    check(&workspace, "dataset-build", &["dataset", "merge", "b.shard", "--out", "merged.fsd"]);
    check(&workspace, "dataset-convert", &["dataset", "convert", "scored.pgn", "c.binpack"]);
    check(&workspace, "dataset-convert", &["dataset", "convert", "b.fsd", "d.fsd"]);
    for file in ["scored.pgn", "a.fsd", "b.fsd", "c.binpack"] {
        check(&workspace, "dataset-info", &["dataset", "info", file]);
        check(&workspace, "dataset-stats", &["dataset", "stats", file]);
    }
    for file in ["games.pgn", "a.fsd", "c.binpack"] {
        check(&workspace, "dataset-verify", &["dataset", "verify", file]);
    }
    // For a file with errors the document is printed too, and the exit status is 1.
    let broken = workspace.run(&["dataset", "verify", "scored.pgn", "--format", "json"]);
    assert_eq!(broken.status.code(), Some(1));
    check_document(
        "dataset-verify",
        &serde_json::from_slice(&broken.stdout).unwrap(),
        &["dataset verify of a broken file"],
    );
    check(&workspace, "service-bench", &["samples-service", "--data", "b.fsd", "--method", "pqr", "--bench"]);
    for (data, method) in [("a.fsd", "eval"), ("b.fsd", "pqr")] {
        let arguments = ["samples-service", "--data", data, "--method", method, "--validation", "0"];
        let mut command = workspace.command(&arguments);
        let mut service = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(service.stdout.take().unwrap()).read_line(&mut line).unwrap();
        drop(service.stdin.take());
        service.wait().unwrap();
        check_document("samples-service", &serde_json::from_str(&line).unwrap(), &arguments);
    }
}

#[cfg(unix)]
#[test]
fn documents_about_generated_games() {
    /// Moves knights out and back, so that positions repeat.
    const SHUFFLE: &str = r#"set -- $moves
    case $(($# % 4)) in 0) m=g1f3;; 1) m=g8f6;; 2) m=f3g1;; *) m=f6g8;; esac
    echo "info depth 1 score cp 20"; echo "bestmove $m""#;
    let workspace = workspace();
    for name in ["one", "two"] {
        super::engines::Script::new(SHUFFLE).write(&workspace.path(name));
    }
    workspace.write("book.epd", &format!("{START}\n"));
    let common = ["dataset", "generate", "--engine", "./one", "--nodes", "5", "--games", "2", "--random-plies", "0..0"];
    check(&workspace, "dataset-generate", &[&common[..], &["--out", "games.binpack"]].concat());
    let pair = ["--engine", "./two", "--book", "book.epd", "--out", "pair.pgn"];
    let document = check(&workspace, "dataset-generate", &[&common[..], &pair].concat());
    assert_eq!(document["scores"].as_array().unwrap().len(), 2);
}

#[test]
fn documents_about_networks() {
    use fsbench::features::FeatureSet;
    use fsbench::net::{NetFile, Origin, Scheme, quantise};
    let workspace = workspace();
    let set = FeatureSet::shipped("piece").unwrap();
    let float = random_net(set.num_features(), 16, &[8], 1);
    let file = NetFile { origin: Origin::of(&set), net: quantise(&float, &Scheme::stockfish()).unwrap() };
    file.save(&workspace.path("net.safetensors")).unwrap();
    check(&workspace, "net-info", &["net", "info", "net.safetensors"]);
    check(&workspace, "net-convert", &["net", "convert", "net.safetensors", "copy.safetensors", "--pawn", "200"]);
    check(&workspace, "bench", &["bench", "--net", "net.safetensors", "--depth", "2"]);
    let book = ["--plies", "4", "--count", "3", "--depth", "1", "--max-score", "2000", "--out", "book.epd"];
    check(&workspace, "openings", &[&["openings", "--net", "net.safetensors"], &book[..]].concat());
    let players = ["match", "net.safetensors", "net.safetensors", "copy.safetensors", "--openings", "book.epd"];
    let short = ["--nodes", "10", "--pairs", "1", "--hash", "1"];
    check(&workspace, "match", &[&players[..], &short].concat());
    let two = ["match", "net.safetensors", "copy.safetensors", "--openings", "book.epd", "--pairs", "1", "--hash", "1"];
    check(&workspace, "match", &[&two[..], &["--equal-cost", "20", "--sprt", "0,10"]].concat());
    check(&workspace, "match-shard", &[&two[..], &["--nodes", "20", "--shard", "0/1", "--out", "m"]].concat());
    check(&workspace, "eval", &["eval", "--net", "net.safetensors", "--fen", START]);
    check(&workspace, "measure-activity", &["measure", "activity", "--net", "net.safetensors", "--data", "games.pgn"]);
    check(&workspace, "measure-loss", &["measure", "loss", "net.safetensors", "--data", "scored.pgn"]);
    let importance = ["measure", "importance", "net.safetensors", "--data", "scored.pgn", "--keep", "kept.idx"];
    let document = check(&workspace, "measure-importance", &importance);
    let kept = std::fs::read_to_string(workspace.path("kept.idx")).unwrap().lines().count() as u64;
    let rows = |count: &str| document["rows"][count].as_u64().unwrap();
    assert_eq!(kept + rows("never_active") + rows("without_effect"), rows("total"));
    check(&workspace, "show-network", &["show", "net.safetensors", "--best", "2", "--out", "neurons.html"]);
    check(&workspace, "show-network", &["show", "net.safetensors", "--neuron", "3", "--at", "role(P)=pawn"]);
    check(&workspace, "export", &["export", "piece", "--lang", "rust", "--out", "exported"]);
    check(&workspace, "show-position", &["show", "net.safetensors", "--position", START]);
    let speed = ["--repetitions", "2", "--seconds", "0.001", "--positions", "200"];
    let arguments = [&["measure", "speed", "--net", "net.safetensors", "--data", "games.pgn"], &speed[..]].concat();
    check(&workspace, "measure-speed", &arguments);
}

#[test]
fn documents_about_trainings_and_experiments() {
    let workspace = super::experiment::workspace();
    let small = ["--l1", "8", "--batch-size", "256", "--epochs", "1", "--device", "cpu"];
    let train = ["train", "compact", "--method", "pqr", "--data", "proj/games.fsd", "--out"];
    check(&workspace, "train", &[&train[..], &["one"], &small].concat());
    let several = check(&workspace, "trains", &[&train[..], &["two", "--seed", "1,2"], &small].concat());
    assert_eq!(several.as_array().unwrap().len(), 2);
    let data = ["--data", "games.pgn"];
    let networks = ["--net", "one/network.safetensors", "--checkpoint", "one/checkpoint.safetensors"];
    check(&workspace, "measure-error", &[&["measure", "error"], &networks[..], &data].concat());
    let plan = check(&workspace, "run-plan", &["run", "proj/small.toml", "--out", "results", "--plan"]);
    assert_eq!(plan["to_do"], plan["steps"]);
    let steps = check(&workspace, "run-steps", &["run", "proj/small.toml", "--out", "results", "--list-steps"]);
    assert_eq!(steps.as_array().unwrap().len() as u64, plan["steps"].as_u64().unwrap());
    let slurm = ["run", "proj/small.toml", "--out", "results", "--on", "slurm", "--status"];
    let status = check(&workspace, "run-slurm", &slurm);
    assert_eq!(status["waiting"], plan["steps"]);
    check(&workspace, "report", &["run", "proj/small.toml", "--out", "results"]);
    check(&workspace, "report", &["report", "results"]);
    let tables = workspace.stdout(&["report", "results", "--tables"]);
    check_document("report-tables", &serde_json::from_str(&tables).expect("one document"), &["report", "--tables"]);
    let joined = check(&workspace, "report", &["report", "results", "results", "--out", "joined"]);
    assert!(workspace.path("joined/report.html").is_file());
    let rows = |document: &Value| document["methods"][0]["rows"].as_array().unwrap().len();
    assert_eq!(rows(&joined), rows(&check(&workspace, "report", &["report", "results"])));
    check(&workspace, "runs", &["runs"]);
    // The records in the results folder are JSON too.
    for name in ["runs", "updates", "activity", "error", "speed", "study", "environment"] {
        let text = std::fs::read_to_string(workspace.path("results").join(format!("{name}.json"))).unwrap();
        serde_json::from_str::<Value>(&text).unwrap();
    }
}

/// Every schema is used by a test in this file, and describes its document to someone who does not know the source.
#[test]
fn every_schema_is_checked() {
    let source = include_str!("documents.rs");
    let list = Workspace::new().stdout(&["schema"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 30, "{list}");
    for name in names {
        assert!(source.contains(&format!("\"{name}\"")), "{name} is not checked in this file");
        let schema = schema(name);
        assert!(schema.root()["title"].as_str().is_some_and(|title| title.contains("fsbench")), "{name}: no title");
        check_words(name, schema.root());
    }
}

/// Descriptions name nothing that only the source knows: no item of it, no `None`.
fn check_words(at: &str, schema: &Value) {
    match schema {
        Value::Object(rules) => {
            if let Some(text) = rules.get("description").and_then(Value::as_str) {
                let of_source = ["[`", "::", "`None`", "`Some"].iter().find(|part| text.contains(**part));
                assert!(of_source.is_none(), "{at}: {text}");
            }
            rules.iter().for_each(|(name, rule)| check_words(&format!("{at}/{name}"), rule));
        }
        Value::Array(rules) => rules.iter().for_each(|rule| check_words(at, rule)),
        _ => {}
    }
}
