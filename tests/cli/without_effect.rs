//! Options that would have no effect are refused, and nothing replaces its own input.

use super::experiment::workspace;
use super::workspace::stderr;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// An option that needs another is refused, too, where what is given excludes that one.
#[test]
fn options_of_another_way_are_refused() {
    let workspace = workspace();
    let commands: [(&[&str], &str); 8] = [
        (&["match", "a", "b", "--nodes", "100", "--cost-weight", "0.3"], "--cost-weight"),
        (&["match", "a", "b", "--nodes", "100", "--node-cost", "1.2"], "--node-cost"),
        (&["match", "a", "b", "--movetime", "100", "--own-features-ns", "30,-"], "--own-features-ns"),
        (&["show", "net", "--neuron", "3", "--move", "e2e4"], "--move"),
        (&["eval", "--net", "net", "--fen", START, "--last", "--buckets", "3"], "--buckets"),
        (
            &[
                "dataset",
                "generate",
                "--nodes",
                "9",
                "--games",
                "1",
                "--out",
                "g.fsd",
                "--chess960",
                "--book-plies",
                "3",
            ],
            "--book-plies",
        ),
        (&["run", "proj/small.toml", "--plan", "--jobs", "3"], "--jobs"),
        (&["show", "piece", "--fen", START, "--out", "board.png"], "ends in .svg"),
    ];
    for (command, named) in commands {
        let message = workspace.refused(command, 2);
        assert!(message.contains(named), "{command:?}: {message}");
    }
}

/// Samples that are built have gone through their filters: others are refused, in experiments as in trainings.
#[test]
fn filters_of_built_samples_are_refused() {
    let workspace = workspace();
    let folder = workspace.path("proj");
    let text = std::fs::read_to_string(folder.join("small.toml")).unwrap();
    workspace.write("proj/filtered.toml", &text.replace("[train]", "[dataset.pqr]\nmin_ply = 20\n[train]"));
    for command in [
        &["run", "filtered.toml", "--out", "results"][..],
        &["dataset", "stats", "games.fsd", "--method", "pqr", "--min-ply", "20"],
    ] {
        let output = workspace.command(command).current_dir(&folder).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("games.fsd") && message.contains("its samples are used as they are"), "{message}");
    }
}

#[test]
fn a_build_names_its_format_and_replaces_no_input() {
    let workspace = workspace();
    let build = |out: &str| {
        workspace.refused(&["dataset", "build", "games.pgn", "--method", "pqr", "--force", "--out", out], 2)
    };
    let games = std::fs::read(workspace.path("games.pgn")).unwrap();
    assert!(build("games.pgn").contains("what is built is .fsd, not pgn"));
    assert!(build("out.binpack").contains("what is built is .fsd, not binpack"));
    std::fs::rename(workspace.path("games.pgn"), workspace.path("games")).unwrap();
    let message =
        workspace.refused(&["dataset", "build", "games", "--method", "pqr", "--force", "--out", "./games"], 2);
    assert!(message.contains("is an input, too"), "{message}");
    assert_eq!(std::fs::read(workspace.path("games")).unwrap(), games);
}

#[test]
fn a_conversion_and_a_merge_replace_no_input() {
    let workspace = workspace();
    let games = std::fs::read(workspace.path("proj/games.fsd")).unwrap();
    for out in ["proj/games.fsd", "proj/../proj/games.fsd"] {
        let message = workspace.refused(&["dataset", "convert", "proj/games.fsd", out, "--force"], 2);
        assert!(message.contains("is an input, too"), "{message}");
    }
    assert_eq!(std::fs::read(workspace.path("proj/games.fsd")).unwrap(), games);
    workspace.stdout(&["dataset", "build", "games.pgn", "--method", "pqr", "--shard", "0/1", "--out", "one"]);
    let message = workspace.refused(&["dataset", "merge", "one", "--out", "./one", "--force"], 2);
    assert!(message.contains("is an input, too"), "{message}");
}

/// Nothing is scored without an engine.
#[test]
fn options_of_an_engine_need_one() {
    let workspace = workspace();
    let build = ["dataset", "build", "games.pgn", "--method", "pqr", "--out", "x.fsd"];
    let options: [&[&str]; 7] = [
        &["--hash", "16"],
        &["--concurrency", "2"],
        &["--patience", "3"],
        &["--engine-option", "Style=wild"],
        &["--arch", "stockfish-15"],
        &["--scheme", "simple"],
        &["--last"],
    ];
    for option in options {
        let message = workspace.refused(&[&build[..], option].concat(), 2);
        assert!(message.contains("--engine <ENGINE>"), "{option:?}: {message}");
    }
    assert!(!workspace.path("x.fsd").exists());
}

/// A network plays the same game from the same opening.
#[test]
fn repeated_openings_are_named() {
    let workspace = workspace();
    let train =
        ["train", "proj/own.toml", "--method", "pqr", "--data", "proj/games.fsd", "--l1", "8", "--batch-size", "256"];
    workspace.stdout(&[&train[..], &["--epochs", "1", "--threads", "1", "--device", "cpu", "--out", "net"]].concat());
    let generate = |more: &[&str]| {
        let games =
            ["dataset", "generate", "--engine", "net", "--nodes", "20", "--games", "2", "--out", "g.fsd", "--force"];
        stderr(&workspace.run(&[&games[..], more].concat()))
    };
    let message = generate(&["--random-plies", "0"]);
    assert!(message.contains("2 games from one opening without random moves"), "{message}");
    assert!(!generate(&[]).contains("without random moves"));
}
