//! Messages of a service, and failures to write to stdout and stderr: closed pipes and full devices.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::workspace::{Workspace, stderr};

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// Commands that print results. The last two read lines from stdin.
fn commands() -> Vec<Vec<&'static str>> {
    vec![
        vec!["--help"],
        vec!["define", "--help"],
        vec!["--version"],
        vec!["define", "--list"],
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

/// An input line for a command.
fn input_line(arguments: &[&str]) -> String {
    if arguments[0] == "encode" { START.to_owned() } else { format!("{START}|e2e4") }
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("one.pgn", "[Event \"one\"]\n[Result \"*\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n");
    workspace
}

/// A service that refuses says why once, by the command that started it.
#[test]
fn a_services_refusal_is_told_once() {
    let workspace = Workspace::new();
    let moves = "1. e4 { [%eval 0.2] } e5 { [%eval 0.1] } 2. Nf3 { [%eval 0.3] } Nc6 { [%eval 0.2] }";
    workspace.write("one.pgn", &format!("[Event \"one\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n"));
    let common = ["train", "piece", "--data", "one.pgn", "--out", "run", "--l1", "16"];
    let errors = workspace.refused(&[&common[..], &["--validation", "0.00001"]].concat(), 2);
    let why = "falls into the validation split";
    assert_eq!(errors.matches(why).count(), 1, "{errors}");
    assert!(errors.contains("give a larger --validation"), "{errors}");
}

#[test]
fn a_closed_pipe_ends_commands_quietly() {
    let workspace = workspace();
    for arguments in commands() {
        let mut command = workspace.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Closed before anything is printed, so the first write fails.
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        // Fails if the child has already ended.
        let _ = writeln!(stdin, "{}", input_line(&arguments));
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{arguments:?}");
    }
}

/// The reader closes the pipe after the first line, as `head -1` does.
#[test]
fn a_pipe_may_be_closed_after_the_first_line() {
    let workspace = workspace();
    let mut command = workspace.command(&["encode", "piece", "--fens", "-"]);
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
fn a_full_device_is_reported() {
    let workspace = workspace();
    for arguments in commands() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = workspace.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let _ = writeln!(child.stdin.take().unwrap(), "{}", input_line(&arguments));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let expected = "error: cannot write to standard output: No space left on device";
        assert!(stderr(&output).starts_with(expected), "{arguments:?}: {}", stderr(&output));
    }
}

/// Failures to write to stderr are ignored.
#[test]
#[cfg(target_os = "linux")]
fn stderr_may_be_full() {
    let workspace = workspace();
    workspace.write("odd.toml", "features = \"piece\"\n");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let status = workspace.command(&["define", "odd.toml"]).stderr(full()).stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    let status = workspace.command(&["define", "no-such-set"]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}
