//! `fsbench loop`: whole loops of few games.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::workspace::Workspace;

/// The gate accepts a network that is not much worse, so that later games are those of a trained one.
const LOOP: &str = r#"
name  = "tiny"
seeds = [1]
[loop]
iterations = 2
nodes      = 20
positions  = 1200
elo0       = -200
elo1       = -100
warm_start = true
[match]
nodes = 20
pairs = 30
[train]
l1            = 8
hidden        = [4]
batch_size    = 128
epochs        = 1
learning_rate = 0.0005
decay         = 1
validation    = 0.2
threads       = 1
device        = "cpu"
[train.design]
psqt = true
[[runs]]
method = "eval"
sets   = ["piece"]
"#;

/// The files of all iterations, and the start; games without the time of their moves.
fn made(results: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut add = |name: String| {
        let content = std::fs::read(results.join(&name)).unwrap();
        let content = if name.ends_with(".pgn") { without_times(&content) } else { content };
        files.insert(name, content);
    };
    add("start.safetensors".into());
    for number in 1..=2 {
        for file in ["games.binpack", "network.safetensors", "games.pgn"] {
            add(format!("iteration-{number:03}/{file}"));
        }
    }
    files
}

fn without_times(pgn: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(pgn.to_vec()).unwrap();
    text.split_whitespace().filter(|word| !word.ends_with("s}")).collect::<Vec<_>>().join(" ").into_bytes()
}

fn loop_of(results: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(results.join("loop.json")).unwrap()).unwrap()
}

/// Killed in its games, in its training and in its gates, a loop makes the files of one that nothing interrupts.
#[test]
fn a_killed_loop_makes_the_same_files() {
    let workspace = Workspace::new();
    workspace.write("loop.toml", LOOP);
    workspace.stdout(&["loop", "loop.toml", "--out", "whole"]);
    let whole = workspace.path("whole");
    let expected = made(&whole);
    let record = loop_of(&whole);
    let iterations = record["iterations"].as_array().unwrap();
    assert_eq!(iterations.len(), 2, "{record}");
    assert!(iterations.iter().all(|one| one["gate"]["verdict"].is_string()), "{record}");
    // The first network is taken: it plays the next games, and the last match.
    assert_eq!(
        (&iterations[0]["gate"]["verdict"], &iterations[1]["player"]),
        (&"accepted".into(), &1.into()),
        "{record}"
    );
    assert!(iterations[0]["games"]["positions"].as_u64().unwrap() >= 1200, "{record}");
    for (file, text) in [("loop.md", "Iterations"), ("report.html", "Elo by iteration"), ("report.txt", "Loop")] {
        let page = std::fs::read_to_string(whole.join(file)).unwrap();
        assert!(page.contains(text), "{file}: {page}");
    }
    assert!(workspace.stdout(&["report", "whole"]).contains("It ended: iteration 2 was the last"));

    let killed = workspace.path("killed");
    for file in [
        "iteration-001/games.binpack.journal",
        "iteration-001/games.binpack",
        "iteration-001/games.journal",
        "iteration-002/games.binpack",
    ] {
        let mut child =
            workspace.command(&["loop", "loop.toml", "--out", "killed"]).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(300);
        while !killed.join(file).exists() && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "no {file}");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    workspace.stdout(&["loop", "loop.toml", "--out", "killed"]);
    assert_eq!(made(&killed).keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, content) in made(&killed) {
        assert!(content == expected[&name], "{name} differs");
    }

    // The same command finds everything done, and other settings are refused.
    let again = workspace.stdout(&["loop", "loop.toml", "--out", "killed", "--format", "json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["learning_loop"]["settings"], record["settings"]);
    workspace.write("other.toml", &LOOP.replace("positions  = 1200", "positions  = 1300"));
    let refused = workspace.refused(&["loop", "other.toml", "--out", "killed"], 2);
    assert!(refused.contains("holds a loop with other settings"), "{refused}");
    // Nor does a damaged record count as none.
    std::fs::write(killed.join("loop.json"), "{").unwrap();
    let output = workspace.run(&["loop", "loop.toml", "--out", "killed"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("loop.json"), "{message}");
}

/// No network is so much better than the start after so few games.
#[test]
fn a_gate_that_rejects_keeps_the_player() {
    let workspace = Workspace::new();
    let hard = LOOP.replace("elo0       = -200\nelo1       = -100", "elo0 = 150\nelo1 = 200");
    workspace.write("loop.toml", &hard.replace("pairs = 30", "pairs = 60"));
    workspace.stdout(&["loop", "loop.toml", "--out", "results"]);
    let record = loop_of(&workspace.path("results"));
    let iterations = record["iterations"].as_array().unwrap();
    assert!(iterations.iter().all(|one| one["gate"]["verdict"] == "rejected" && one["player"] == 0), "{record}");
    assert!(record["last"].is_null());
}

#[test]
fn a_plan_says_what_an_iteration_costs() {
    let workspace = Workspace::new();
    workspace.write("loop.toml", LOOP);
    let plan = workspace.stdout(&["loop", "loop.toml", "--out", "results", "--plan"]);
    assert!(plan.contains("an iteration: 1,200 positions in") && plan.contains("a gate of at most 60 games"), "{plan}");
    assert!(!workspace.path("results").exists(), "a plan leaves nothing");
    let refused = workspace.refused(&["loop", "loop.toml", "--list-steps"], 2);
    assert!(refused.contains("follow each other in one process"), "{refused}");
    let refused = workspace.refused(&["work", "loop.toml", "--out", "results"], 2);
    assert!(refused.contains("one process does them"), "{refused}");
}

/// A disk that is full in the middle of an iteration ends the loop; with room, it goes on.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_a_loop_that_goes_on_later() {
    let workspace = Workspace::new();
    workspace.write("loop.toml", &LOOP.replace("l1            = 8", "l1 = 4"));
    let script = "trap '' XFSZ; ulimit -f 30; exec \"$0\" loop loop.toml --out results";
    let full = workspace.command_of(Path::new("sh"), &["-c", script, env!("CARGO_BIN_EXE_fsbench")]).output().unwrap();
    let message = String::from_utf8_lossy(&full.stderr).into_owned();
    assert_eq!(full.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot write"), "{message}");
    workspace.stdout(&["loop", "loop.toml", "--out", "results"]);
    workspace.stdout(&["loop", "loop.toml", "--out", "whole"]);
    assert!(made(&workspace.path("results")) == made(&workspace.path("whole")));
}

#[test]
fn wrong_starts_are_refused_before_anything_runs() {
    let workspace = Workspace::new();
    let refused = |change: (&str, &str), expected: &str| {
        workspace.write("loop.toml", &LOOP.replace(change.0, change.1));
        let message = workspace.refused(&["loop", "loop.toml", "--out", "results"], 2);
        assert!(message.contains(expected) && message.contains("loop.toml:"), "{message}");
        assert!(!workspace.path("results/start.safetensors").exists());
    };
    workspace.write("first.toml", &LOOP.replace("iterations = 2", "iterations = 1"));
    workspace.stdout(&["loop", "first.toml", "--out", "first"]);
    let start = "sets   = [\"piece\"]\nstart = \"first/iteration-001/network.safetensors\"";
    let other_set = start.replace("piece", "compact");
    refused(("sets   = [\"piece\"]", &other_set), "cannot start with");
    let shape = LOOP.replace("l1            = 8", "l1 = 16").replace("sets   = [\"piece\"]", start);
    workspace.write("loop.toml", &shape);
    let message = workspace.refused(&["loop", "loop.toml", "--out", "results"], 2);
    assert!(message.contains("was asked for"), "{message}");
    workspace.write("rows.toml", &LOOP.replace("[loop]", "[search]"));
    assert!(workspace.refused(&["loop", "rows.toml"], 2).contains("rows.toml"));
    // A network of this set and shape is a start.
    workspace
        .write("next.toml", &LOOP.replace("iterations = 2", "iterations = 1").replace("sets   = [\"piece\"]", start));
    workspace.stdout(&["loop", "next.toml", "--out", "next"]);
}
