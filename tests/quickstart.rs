//! This commit gives the results in `results/quickstart`: a run of its first sets with one seed gives the same
//! networks, losses by game, updates, activity, errors and games at equal nodes, bit for bit. Timings are not compared.
//!
//! With `FSBENCH_QUICKSTART=results/local/quickstart`, all results that `scripts/quickstart.sh` wrote there are
//! compared. Rows that libtorch trained differ in their last bits: of them, the validation loss is compared, within a
//! percent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use toml::Table;

/// Sets whose networks are trained again.
const SETS: usize = 2;
const FILES: [&str; 7] = ["runs", "updates", "activity", "error", "wrong_sign", "validation", "match"];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether a table `[[runs]]` is trained by libtorch.
fn is_by_libtorch(runs: &toml::Value) -> bool {
    let trainer = runs.get("train").and_then(|train| train.get("trainer")).and_then(toml::Value::as_str);
    trainer == Some("tch")
}

/// The labels of the rows that libtorch trains.
fn labels_by_libtorch(experiment: &Table) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for runs in experiment["runs"].as_array().unwrap().iter().filter(|runs| is_by_libtorch(runs)) {
        for set in runs["sets"].as_array().unwrap() {
            let set = set.as_str().unwrap();
            let label = runs.get("label").and_then(toml::Value::as_str).unwrap_or("{set}");
            labels.insert(label.replace("{set}", set));
        }
    }
    labels
}

/// The experiment with its first sets, its first seed, and nothing that is timed.
fn reduced(mut experiment: Table) -> Table {
    let seed = experiment["seeds"].as_array().unwrap()[0].clone();
    experiment.insert("seeds".into(), vec![seed].into());
    let mut runs = experiment["runs"].as_array().unwrap().clone();
    runs.retain(|runs| !is_by_libtorch(runs));
    runs.truncate(1);
    runs[0]["sets"].as_array_mut().unwrap().truncate(SETS);
    experiment.insert("runs".into(), runs.into());
    experiment["measure"].as_table_mut().unwrap().remove("speed");
    experiment["match"].as_table_mut().unwrap().remove("equal_cost");
    experiment.remove("equal_speed");
    experiment
}

/// Runs the reduced experiment in a folder, and returns the folder of its results.
fn run(experiment: &Table, folder: &Path) -> PathBuf {
    let mut experiment = reduced(experiment.clone());
    let data = file("experiments").join(experiment["data"].as_str().unwrap());
    experiment.insert("data".into(), data.display().to_string().into());
    let path = folder.join("quickstart.toml");
    fs::write(&path, toml::to_string(&experiment).unwrap()).unwrap();
    let results = folder.join("results");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.arg("run").arg(&path).arg("--out").arg(&results).current_dir(folder);
    // On the CPU, also where there is a GPU.
    let output = command.env("FSBENCH_CACHE", folder.join("cache")).env("FSBENCH_GPUS", "").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    results
}

/// What a result is of.
fn key(entry: &Value) -> String {
    format!("{} {} {} {}", entry["set"], entry["method"], entry["seed"], entry["record"]["kind"])
}

/// The result without what differs from run to run or machine to machine.
fn without_times(entry: &Value) -> Value {
    match entry {
        Value::Object(fields) => {
            let is_kept = |name: &str| name != "seconds" && name != "machine";
            fields
                .iter()
                .filter(|(name, _)| is_kept(name))
                .map(|(name, of)| (name.clone(), without_times(of)))
                .collect()
        }
        Value::Array(entries) => entries.iter().map(without_times).collect(),
        other => other.clone(),
    }
}

#[test]
fn committed_results_are_those_of_this_commit() {
    let committed = file("results/quickstart");
    assert_eq!(text(&committed.join("experiment.toml")), text(&file("experiments/quickstart.toml")));
    let experiment: Table = toml::from_str(&text(&committed.join("experiment.toml"))).unwrap();
    let by_libtorch = labels_by_libtorch(&experiment);
    let folder = tempfile::tempdir().unwrap();
    let results = match std::env::var_os("FSBENCH_QUICKSTART") {
        Some(results) => file("").join(results),
        None => run(&experiment, folder.path()),
    };
    for name in FILES {
        let read = |folder: &Path| -> Vec<Value> {
            serde_json::from_str(&text(&folder.join(format!("{name}.json")))).unwrap()
        };
        let expected = read(&committed);
        let mut compared = 0;
        for found in read(&results) {
            if found["record"]["kind"] == "equal_cost" {
                continue;
            }
            let Some(expected) = expected.iter().find(|expected| key(expected) == key(&found)) else {
                panic!("{name}: {} is not in results/quickstart", key(&found));
            };
            if !by_libtorch.contains(found["set"].as_str().unwrap()) {
                assert_eq!(without_times(&found), without_times(expected), "{name}: {}", key(&found));
            } else if name == "runs" {
                let [found, expected] = [&found, expected].map(|run| run["validation_loss"].as_f64().unwrap());
                assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
            }
            compared += 1;
        }
        assert!(compared > 0, "{name} has no result");
    }
}
