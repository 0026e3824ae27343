//! `fsbench work`: processes that share an experiment's steps, some of them killed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use fsbench::units::Seed;
use rand::RngExt;
use serde_json::Value;

use super::common::skip::skip;
use super::experiment;
use super::workspace::Workspace;

/// The experiment of `experiment.rs` with more seeds and measures.
fn workspace() -> Workspace {
    let workspace = experiment::workspace();
    let text = std::fs::read_to_string(workspace.path("proj/small.toml")).unwrap();
    let text = text.replace("seeds = [1]", "seeds = [1, 2, 3]")
        + "[measure.activity]\ngames = 5\n[measure.error]\ngames = 5\n[measure.wrong_sign]\n"
        + "[match]\nnodes = 30\npairs = 6\nshard_pairs = 2\nhash = 1\nseeds = [1, 2]\n";
    workspace.write("proj/small.toml", &text);
    workspace
}

fn worker(workspace: &Workspace) -> Child {
    let mut command = workspace.command(&["work", "proj/small.toml", "--out", "results"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The results without times: losses, updates, activity, errors, signs, matches at equal nodes.
pub fn results(workspace: &Workspace) -> Vec<Value> {
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(workspace.path(&format!("results/{name}"))).unwrap()).unwrap()
    };
    let losses = |run: &Value| {
        let losses: Vec<Value> =
            run["epochs"].as_array().unwrap().iter().map(|epoch| epoch["validation_loss"].clone()).collect();
        Value::from(losses)
    };
    let runs = read("runs.json");
    let losses = runs.as_array().unwrap().iter().map(losses).collect::<Vec<_>>();
    let matches: Vec<Value> = read("match.json")
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["record"]["kind"] == "equal_nodes")
        .map(|result| {
            let record = &result["record"];
            let player = |name: &str| {
                [&record[name]["network"], &record[name]["moves"], &record[name]["nodes"]].map(Value::clone)
            };
            let counts = [&result["set"], &result["seed"], &record["conditions"], &record["pairs"], &record["games"]];
            Value::from([&counts.map(Value::clone)[..], &player("player"), &player("reference_player")].concat())
        })
        .collect();
    let records = ["updates.json", "activity.json", "error.json", "wrong_sign.json", "validation.json"].map(read);
    [vec![losses.into(), matches.into()], records.to_vec()].concat()
}

/// The files of finished results: their names, times and inodes.
fn stored(workspace: &Workspace) -> BTreeMap<OsString, (i64, i64, u64)> {
    let folder = workspace.cache().join("runs/finished");
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    let whole = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    let file = |entry: std::fs::DirEntry| {
        let data = entry.metadata().unwrap();
        (entry.file_name(), (data.mtime(), data.mtime_nsec(), data.ino()))
    };
    whole.map(file).collect()
}

#[test]
fn killed_workers_lose_no_step() {
    let alone = workspace();
    alone.stdout(&["run", "proj/small.toml", "--out", "results"]);
    let expected = results(&alone);

    let workspace = workspace();
    let listed = workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--list-steps"]);
    let steps: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert!(steps.len() > 20 && steps.iter().all(|step| step["done"] == false), "{listed}");
    let mut rng = Seed(1).stream("killed workers", 0);
    let mut seen = BTreeMap::new();
    for _ in 0..8 {
        let mut workers = [(); 3].map(|()| worker(&workspace));
        // The third goes on for a while, and takes over the first two's steps.
        for (killed, milliseconds) in [(0..2, 1_500), (2..3, 600)] {
            std::thread::sleep(Duration::from_millis(rng.random_range(100..milliseconds)));
            for worker in &mut workers[killed] {
                worker.kill().unwrap();
                worker.wait().unwrap();
            }
            seen.extend(stored(&workspace));
        }
    }
    let step = steps.iter().find(|step| step["kind"] == "train").unwrap()["key"].as_str().unwrap();
    workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--step", step]);
    workspace.stdout(&["work", "proj/small.toml", "--out", "results", "--jobs", "2"]);
    assert_eq!(results(&workspace), expected);
    // No result was made twice: every file that was there after a kill is the one that was there first.
    let end = stored(&workspace);
    assert!(seen.iter().all(|(name, file)| end.get(name) == Some(file)), "{seen:?}\n{end:?}");
    let listed = workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--list-steps"]);
    let done: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert!(done.iter().all(|step| step["done"] == true), "{listed}");
    let skipped = workspace.run(&["run", "proj/small.toml", "--out", "results"]);
    let said = super::workspace::stderr(&skipped);
    assert!(said.contains(&format!("skipped steps (finished or not requested): {}", steps.len())), "{said}");
}

/// The program's worker of two processes, on a machine of that name.
fn workers_on(workspace: &Workspace, host: &str) -> Child {
    let script = "hostname \"$0\" || exit 99; exec \"$@\"";
    let unshared = ["--user", "--map-root-user", "--uts", "sh", "-c", script, host, env!("CARGO_BIN_EXE_fsbench")];
    let mut command = workspace.command_of(Path::new("unshare"), &unshared);
    command.args(["work", "proj/small.toml", "--out", "results", "--jobs", "2"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Four processes at once, two on each of two machines that share the folder.
#[test]
fn four_processes_on_two_hosts_find_what_one_finds() {
    let alone = workspace();
    alone.stdout(&["run", "proj/small.toml", "--out", "results"]);
    let shared = workspace();
    let workers = ["here", "there"].map(|host| workers_on(&shared, host));
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        let said = super::workspace::stderr(&output);
        if output.status.code() == Some(99) || said.starts_with("unshare: ") {
            return skip("namespaces", "unshare cannot give a process a machine's name here");
        }
        assert!(output.status.success(), "{said}");
    }
    assert_eq!(results(&shared), results(&alone));
    let machines = ["here", "there"].map(|host| shared.cache().join(format!("runs/locks/machine {host}")).exists());
    assert_eq!(machines, [true, true], "both took part");
    // The last process has written the results; a run alone finds every step done, and changes none.
    let done = stored(&shared);
    shared.stdout(&["run", "proj/small.toml", "--out", "results"]);
    assert_eq!(stored(&shared), done);
}

/// A worker of a folder does all experiments in it, also where another worker does the last steps of one.
#[test]
fn a_folder_of_experiments_is_worked_off() {
    let workspace = experiment::workspace();
    let text = std::fs::read_to_string(workspace.path("proj/small.toml")).unwrap();
    workspace.write("all/first.toml", &text.replace("games.fsd", "../proj/games.fsd"));
    let second = text
        .replace("games.fsd", "../proj/games.fsd")
        .replace("\"small\"", "\"second\"")
        .replace("l1            = 8", "l1            = 16");
    workspace.write("all/second.toml", &second);
    workspace.write("all/own.toml.txt", "not an experiment");
    let complaint = workspace.refused(&["work", "all"], 2);
    assert!(complaint.contains("own"), "{complaint}");
    for name in ["first", "second"] {
        let path = format!("all/{name}.toml");
        let text = std::fs::read_to_string(workspace.path(&path)).unwrap();
        workspace.write(&path, &text.replace("\"own\"", "\"../proj/own.toml\""));
    }
    workspace.stdout(&["work", "all", "--out", "out", "--jobs", "2"]);
    for (name, experiment) in [("small", "first"), ("second", "second")] {
        let path = format!("all/{experiment}.toml");
        let listed = workspace.stdout(&["run", &path, "--out", &format!("out/{name}"), "--list-steps"]);
        let steps: Vec<Value> = serde_json::from_str(&listed).unwrap();
        assert!(steps.len() == 6 && steps.iter().all(|step| step["done"] == true), "{listed}");
        assert!(workspace.path(&format!("out/{name}/runs.json")).is_file());
    }
    std::fs::create_dir(workspace.path("empty")).unwrap();
    assert!(workspace.refused(&["work", "empty"], 2).contains("no experiment"));
}

#[test]
fn an_unknown_step_is_refused() {
    let workspace = experiment::workspace();
    let complaint = workspace.refused(&["run", "proj/small.toml", "--out", "results", "--step", "00"], 2);
    assert!(complaint.contains("no step 00") && complaint.contains("--list-steps"), "{complaint}");
}
