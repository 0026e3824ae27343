//! `fsbench work`: processes that share an experiment's steps, some of them killed.
#![cfg(feature = "train")]

use std::process::{Child, Stdio};
use std::time::Duration;

use fsbench::units::Seed;
use rand::RngExt;
use serde_json::Value;

use super::experiment;
use super::workspace::Workspace;

/// The experiment of `experiment.rs` with more seeds and measures.
fn workspace() -> Workspace {
    let workspace = experiment::workspace();
    let text = std::fs::read_to_string(workspace.path("proj/small.toml")).unwrap();
    let text = text.replace("seeds = [1]", "seeds = [1, 2, 3]")
        + "[measure.activity]\ngames = 5\n[measure.error]\ngames = 5\n";
    workspace.write("proj/small.toml", &text);
    workspace
}

fn worker(workspace: &Workspace) -> Child {
    let mut command = workspace.command(&["work", "proj/small.toml", "--out", "results"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The results without times: losses, updates, activity, errors.
fn results(workspace: &Workspace) -> Vec<Value> {
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
    vec![losses.into(), read("updates.json"), read("activity.json"), read("error.json"), read("validation.json")]
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
    for _ in 0..8 {
        let mut workers = [worker(&workspace), worker(&workspace)];
        std::thread::sleep(Duration::from_millis(rng.random_range(100..1_500)));
        for worker in &mut workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
    }
    let step = steps.iter().find(|step| step["kind"] == "train").unwrap()["key"].as_str().unwrap();
    workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--step", step]);
    workspace.stdout(&["work", "proj/small.toml", "--out", "results", "--jobs", "2"]);
    assert_eq!(results(&workspace), expected);
    let listed = workspace.stdout(&["run", "proj/small.toml", "--out", "results", "--list-steps"]);
    let done: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert!(done.iter().all(|step| step["done"] == true), "{listed}");
    let skipped = workspace.run(&["run", "proj/small.toml", "--out", "results"]);
    let said = super::workspace::stderr(&skipped);
    assert!(said.contains(&format!("skipped steps (finished or not requested): {}", steps.len())), "{said}");
}

#[test]
fn an_unknown_step_is_refused() {
    let workspace = experiment::workspace();
    let complaint = workspace.refused(&["run", "proj/small.toml", "--out", "results", "--step", "00"], 2);
    assert!(complaint.contains("no step 00") && complaint.contains("--list-steps"), "{complaint}");
}
