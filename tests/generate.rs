//! `fsbench dataset generate` with engines that behave and engines that do not. The engines are shell scripts.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Greets, then does `on_go` when asked to search; `$moves` is what follows `moves` in the last position.
fn engine(folder: &Path, on_go: &str) {
    let script = format!(
        r#"#!/bin/sh
moves=
while read -r line; do
  case "$line" in
    uci) echo "id name Fake 1"; echo uciok;;
    isready) echo readyok;;
    position*moves*) moves=${{line#* moves }};;
    position*) moves=;;
    go*) {on_go};;
    quit) exit 0;;
  esac
done
"#
    );
    let path = folder.join("engine");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Shuffles knights whatever the opponent does, which ends in a repetition.
const SHUFFLE: &str = r#"set -- $moves
    case $(($# % 4)) in 0) m=g1f3;; 1) m=g8f6;; 2) m=f3g1;; *) m=f6g8;; esac
    echo "info depth 1 score cp 2$(($# % 10))"; echo "bestmove $m""#;

fn generate(folder: &Path, more: &[&str]) -> Output {
    let arguments = [
        "dataset",
        "generate",
        "--engine",
        "./engine",
        "--nodes",
        "5",
        "--games",
        "6",
        "--out",
        "g.pgn",
        "--patience",
        "2",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(arguments).args(more).current_dir(folder).output().unwrap()
}

fn check(output: &Output, status: i32, stderr: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(text.contains(stderr), "{text:?} lacks {stderr:?}");
}

#[test]
fn games_come_with_evals_whatever_the_concurrency() {
    let folder = TempDir::new().unwrap();
    engine(folder.path(), SHUFFLE);
    let bytes = |concurrency: &str| {
        let more = ["--random-plies", "0", "--concurrency", concurrency, "--force"];
        check(&generate(folder.path(), &more), 0, "");
        fs::read_to_string(folder.path().join("g.pgn")).unwrap()
    };
    let text = bytes("1");
    assert_eq!(text, bytes("3"));
    let expected = "[Event \"Self-play\"]\n[Round \"1\"]\n[Result \"1/2-1/2\"]\n\n1. Nf3 { [%eval -0.21] } \
        1... Nf6 { [%eval 0.22] } 2. Ng1 { [%eval -0.23] } 2... Ng8 { [%eval 0.24] } 3. Nf3 ";
    assert!(text.starts_with(expected), "{text}");
    let games: Vec<_> = fsbench::data::games(&folder.path().join("g.pgn")).unwrap().map(Result::unwrap).collect();
    assert_eq!(games.len(), 6);
    assert!(games.iter().all(|game| game.moves.len() == 8));
    assert!(!folder.path().join("g.pgn.journal").exists());
}

#[test]
fn an_interrupted_run_goes_on() {
    let folder = TempDir::new().unwrap();
    let more = ["--random-plies", "0"];
    engine(folder.path(), SHUFFLE);
    check(&generate(folder.path(), &more), 0, "");
    let whole = fs::read(folder.path().join("g.pgn")).unwrap();
    fs::remove_file(folder.path().join("g.pgn")).unwrap();

    // Dies in the fourth game.
    engine(folder.path(), &format!("echo x >> count; [ $(wc -l < count) -gt 28 ] && exit 3; {SHUFFLE}"));
    let output = generate(folder.path(), &more);
    check(&output, 1, "ended while searching (exit status: 3); 3 finished games are kept in g.pgn.journal");
    assert!(!folder.path().join("g.pgn").exists());

    // A line that was cut off is a game to play again.
    let journal = folder.path().join("g.pgn.journal");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 20]).unwrap();
    engine(folder.path(), SHUFFLE);
    let other = generate(folder.path(), &["--random-plies", "0", "--seed", "9"]);
    check(&other, 2, "an interrupted run with other settings");
    let output = generate(folder.path(), &[&more[..], &["--format", "json"]].concat());
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["resumed"], &summary["engine"]), (&2.into(), &"Fake 1".into()));
    assert_eq!(fs::read(folder.path().join("g.pgn")).unwrap(), whole);
}

#[test]
fn engines_that_misbehave_are_named() {
    let check = |on_go: &str, stderr: &str| {
        let folder = TempDir::new().unwrap();
        engine(folder.path(), on_go);
        let begin = Instant::now();
        check(&generate(folder.path(), &["--random-plies", "0"]), 1, stderr);
        assert!(begin.elapsed() < Duration::from_secs(30), "{on_go}");
        assert!(!folder.path().join("g.pgn").exists());
    };
    check("echo bestmove e2e5", "that move is illegal");
    check("echo 'bestmove (none)'", "that is no move");
    check("echo bestmove", "that is no move");
    check("echo bestmove e2e4", "no score came with it");
    check("echo nonsense; echo bestmove banana", "that is no move");
    check("exit 7", "ended while searching (exit status: 7)");
    check("kill -9 $$", "ended while searching (signal: 9");
    check(":", "gave no answer within 2 s while searching");
    check("while :; do echo info string busy; done", "gave no answer within 2 s while searching");
}

#[test]
fn programs_that_are_no_engines_are_refused() {
    let folder = TempDir::new().unwrap();
    let with = |engine: &str| {
        let arguments = ["dataset", "generate", "--engine", engine, "--nodes", "5", "--games", "1", "--out", "g.pgn"];
        Command::new(env!("CARGO_BIN_EXE_fsbench")).args(arguments).current_dir(&folder).output().unwrap()
    };
    check(&with("./none"), 2, "cannot start the engine ./none");
    check(&with("true"), 1, "the engine true ended while starting");
    assert!(!folder.path().join("g.pgn").exists());
    assert!(!folder.path().join("g.pgn.journal").exists());
}

/// A file-size limit stands in for a full disk: the write fails in the same way.
#[test]
fn a_full_disk_keeps_the_finished_games() {
    let folder = TempDir::new().unwrap();
    engine(folder.path(), SHUFFLE);
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" dataset generate --engine ./engine --nodes 5 --games 40 \
        --random-plies 0 --out g.pgn";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_fsbench")]).current_dir(&folder);
    check(&command.output().unwrap(), 1, "cannot add to g.pgn.journal");
    assert!(!folder.path().join("g.pgn").exists());
    let script = script.replace("ulimit -f 1;", "");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_fsbench")]).current_dir(&folder);
    let output = command.output().unwrap();
    check(&output, 0, "");
    assert!(String::from_utf8_lossy(&output.stdout).contains("resumed"));
}
