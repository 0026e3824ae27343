//! Who reads stdout may go at any moment, and a device may be full.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::program::{Bench, stderr};

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// Commands that print something each; the last two read lines from stdin for as long as they come.
fn commands() -> Vec<Vec<&'static str>> {
    vec![
        vec!["define", "piece", "--witnesses"],
        vec!["define", "piece", "--format", "json"],
        vec!["encode", "piece", "--fen", START],
        vec!["delta", "piece", "--fen", START, "--move", "e2e4"],
        vec!["show", "piece", "--fen", START, "--out", "board.svg"],
        vec!["measure", "updates", "piece", "--data", "one.pgn"],
        vec!["dataset", "info", "one.pgn"],
        vec!["encode", "piece", "--fens", "-"],
        vec!["delta", "piece", "--moves", "-"],
    ]
}

/// What a command reads from stdin.
fn line_for(arguments: &[&str]) -> String {
    if arguments[0] == "encode" { START.to_owned() } else { format!("{START}|e2e4") }
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("one.pgn", "[Event \"one\"]\n[Result \"*\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n");
    bench
}

#[test]
fn a_closed_pipe_ends_commands_quietly() {
    let bench = bench();
    for arguments in commands() {
        let mut command = bench.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Before anything is printed: the first write meets a closed pipe.
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        // The child may be gone already: then it does not matter what it would have read.
        let _ = writeln!(stdin, "{}", line_for(&arguments));
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{arguments:?}");
    }
}

/// The reader takes one line of many and goes, as `head -1` does.
#[test]
fn a_reader_may_stop_after_the_first_line() {
    let bench = bench();
    let mut command = bench.command(&["encode", "piece", "--fens", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{START}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"white\":["), "{line}");
    let _ = writeln!(stdin, "{START}");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_is_named() {
    let bench = bench();
    for arguments in commands() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = bench.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let _ = writeln!(child.stdin.take().unwrap(), "{}", line_for(&arguments));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let expected = "error: cannot write to standard output: No space left on device";
        assert!(stderr(&output).starts_with(expected), "{arguments:?}: {}", stderr(&output));
    }
}

/// What nobody can read on stderr is no reason to fail.
#[test]
#[cfg(target_os = "linux")]
fn stderr_may_be_full() {
    let bench = bench();
    bench.write("odd.toml", "features = \"piece\"\n");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let status = bench.command(&["define", "odd.toml"]).stderr(full()).stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    let status = bench.command(&["define", "no-such-set"]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
