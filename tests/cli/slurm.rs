//! `fsbench run --on slurm` on a cluster of one node, which `scripts/slurm.sh` sets up.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::common::skip::skip;
use super::workspace::{Workspace, stderr};
use super::{experiment, work};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/slurm.sh");

/// Measures of every kind, and matches in shards.
const MORE: &str = r#"
[measure.activity]
games = 5
[measure.speed]
positions   = 200
repetitions = 2
seconds     = 0.01
[match]
nodes       = 20
equal_cost  = 20
pairs       = 4
shard_pairs = 2
hash        = 1
"#;

/// A row whose training fails.
const DIVERGING: &str = r#"
[[runs]]
method = "pqr"
label  = "own, diverging"
sets   = ["own"]
train  = { learning_rate = 1e30 }
"#;

/// A cluster that lives as long as this value, or as this process.
struct Cluster {
    folder: TempDir,
}

impl Cluster {
    /// `None`, and the test is skipped, where it cannot be set up.
    fn start() -> Option<Cluster> {
        let check = Command::new(SCRIPT).arg("check").output().unwrap();
        if !check.status.success() {
            skip("slurm", stderr(&check).trim());
            return None;
        }
        // Sockets have short names.
        let folder = tempfile::Builder::new().prefix("slurm").tempdir_in("/tmp").unwrap();
        let cluster = Cluster { folder };
        let started = cluster.script("start").arg(std::process::id().to_string()).output().unwrap();
        assert!(started.status.success(), "{}", stderr(&started));
        Some(cluster)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cluster")
    }

    fn script(&self, verb: &str) -> Command {
        let mut command = Command::new(SCRIPT);
        command.arg(verb).arg(self.path());
        command
    }

    fn configuration(&self) -> PathBuf {
        self.path().join("slurm.conf")
    }

    /// Waits until the queue is empty.
    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(400);
        loop {
            let mut squeue = Command::new("squeue");
            let queue =
                squeue.args(["--noheader", "--array"]).env("SLURM_CONF", self.configuration()).output().unwrap();
            assert!(queue.status.success(), "{}", stderr(&queue));
            if queue.stdout.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "jobs wait: {}", String::from_utf8_lossy(&queue.stdout));
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.script("stop").stdout(Stdio::null()).status();
    }
}

/// Runs the experiment on the cluster with more options, and returns its output as JSON.
fn on_slurm(workspace: &Workspace, cluster: &Cluster, more: &[&str]) -> Value {
    let arguments =
        ["run", "proj/small.toml", "--out", "results", "--timed-on", "bench", "--jobs", "2", "--format", "json"];
    let options = ["--on", "slurm:main", "--sbatch", "--nice=0 --comment='of two words'"];
    let arguments = [&arguments[..], &options, more].concat();
    let output = workspace.command(&arguments).env("SLURM_CONF", cluster.configuration()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn read(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

/// Trainings on a GPU ask for one, other steps do not. The commands of Slurm are scripts that note what they are given.
#[test]
fn trainings_ask_for_gpus() {
    let workspace = experiment::workspace();
    let rows = "[[runs]]\nmethod = \"pqr\"\nlabel = \"own on a GPU\"\nsets = [\"own\"]\ntrain = { device = \"cuda\" }\n\
        [[runs]]\nmethod = \"pqr\"\nlabel = \"own by auto\"\nsets = [\"own\"]\ntrain = { device = \"auto\" }\n";
    let text = std::fs::read_to_string(workspace.path("proj/small.toml")).unwrap() + rows;
    workspace.write("proj/small.toml", &text);
    let scripts = [
        ("sbatch", "echo \"$@\" >> submitted\ncat >> scripts\necho $(wc -l < submitted)"),
        ("squeue", ""),
        ("scontrol", "echo 'MaxArraySize = 1001'"),
        ("fsbench-tch", ""),
    ];
    for (name, script) in scripts {
        workspace.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(workspace.path(&format!("bin/{name}")), Permissions::from_mode(0o755)).unwrap();
    }
    let run = |gpus: &str, more: &[&str]| {
        let mut command = workspace.command(&["run", "proj/small.toml", "--out", "results"]);
        let path = format!("{}:/usr/bin:/bin", workspace.path("bin").display());
        let output = command.args(more).env("PATH", path).env("FSBENCH_GPUS", gpus).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    // Stage, number of tasks, and the options on GPUs of each array.
    let submitted = |more: &[&str]| {
        run("", &[&["--on", "slurm", "--format", "json"], more].concat());
        let lines = std::fs::read_to_string(workspace.path("submitted")).unwrap();
        std::fs::remove_file(workspace.path("submitted")).unwrap();
        let of_interest =
            |word: &&str| ["--job-name", "--array", "--gres", "--gpus"].iter().any(|o| word.starts_with(o));
        lines.lines().map(|line| line.split(' ').filter(of_interest).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let collect = "--job-name=fsbench-small-collect";
    let trainings = "--job-name=fsbench-small-train --array=0-1,3";
    let on_gpus = "--job-name=fsbench-small-train --array=2";
    let measures = "--job-name=fsbench-small-measure --array=0";
    let found = submitted(&[]);
    assert_eq!(found[..3], [trainings, &on_gpus.replace(" --array", " --gres=gpu:1 --array"), measures]);
    assert!(found[3..].iter().all(|line| !line.contains("--gres")), "{found:?}");
    assert_eq!(found.last().unwrap(), collect);
    // The user's own choice is every job's.
    for own in ["--gres=gpu:h100:2", "--gpus=1"] {
        let found = submitted(&["--sbatch", own]);
        assert_eq!(found[..3], [trainings, on_gpus, measures].map(|array| format!("{array} {own}")));
    }
    let scripts = std::fs::read_to_string(workspace.path("scripts")).unwrap();
    assert!(scripts.contains("\nexport FSBENCH_GPUS=\"$CUDA_VISIBLE_DEVICES\"\n"), "{scripts}");
    // Where `auto` would train changes no key, and is none of the device that it would take.
    let steps: Value = serde_json::from_str(&run("", &["--list-steps"])).unwrap();
    assert_eq!(steps, serde_json::from_str::<Value>(&run("a,b", &["--list-steps"])).unwrap());
    let trained: Vec<&Value> = steps.as_array().unwrap().iter().filter(|step| step["kind"] == "train").collect();
    let gpus: Vec<bool> = trained.iter().map(|step| step["gpu"].as_bool().unwrap()).collect();
    assert_eq!(gpus, [false, false, true, false]);
    let keys: std::collections::BTreeSet<&str> = trained.iter().map(|step| step["key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), 4);
}

#[test]
fn an_experiment_runs_on_slurm() {
    let Some(cluster) = Cluster::start() else { return };
    let workspace = experiment::workspace();
    let text = std::fs::read_to_string(workspace.path("proj/small.toml")).unwrap() + MORE;
    workspace.write("proj/small.toml", &text);
    let arguments = ["run", "proj/small.toml", "--out", "results", "--on", "slurm"];
    let complaint = workspace.command(&arguments).env("SLURM_CONF", cluster.configuration()).output().unwrap();
    assert!(complaint.status.code() == Some(2) && stderr(&complaint).contains("--timed-on"), "{}", stderr(&complaint));
    let unclosed = workspace.command(&[&arguments[..], &["--sbatch", "--comment='of two"]].concat()).output().unwrap();
    assert!(unclosed.status.code() == Some(2) && stderr(&unclosed).contains("a quote is not closed"));

    let first = on_slurm(&workspace, &cluster, &[]);
    let stages: Vec<(&str, u64)> = first["submitted"]
        .as_array()
        .unwrap()
        .iter()
        .map(|jobs| (jobs["stage"].as_str().unwrap(), jobs["tasks"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("train", 2),
        // The updates of one set; validation and activity of each network.
        ("measure", 1),
        ("measure", 2),
        // Of the first row, and of the other beside the first, which waits for both networks.
        ("speed", 1),
        ("speed", 1),
        ("match-cost", 1),
        // At equal nodes, and at equal cost, which waits for the cost.
        ("match-shards", 2),
        ("match-shards", 2),
        ("match", 2),
        ("collect", 1),
    ];
    assert_eq!(stages, expected, "{first}");
    let waits = |stage: usize| first["submitted"][stage]["dependency"].as_str().unwrap_or_default().to_owned();
    assert!(waits(2).starts_with("aftercorr:") && waits(5).contains("afterok:"), "{first}");
    assert!(waits(4).starts_with("aftercorr:") && waits(4).contains("afterok:"), "{first}");
    // Steps in the queue are not submitted again.
    let second = on_slurm(&workspace, &cluster, &["--status"]);
    assert!(second["failed"] == 0 && second["submitted"].as_array().unwrap().is_empty(), "{second}");
    let third = on_slurm(&workspace, &cluster, &[]);
    assert!(third["submitted"].as_array().is_none_or(Vec::is_empty), "{third}");
    cluster.wait();

    let status = on_slurm(&workspace, &cluster, &["--status"]);
    assert!(status["done"] == status["steps"] && status["failed"] == 0, "{status}");
    let results = workspace.path("results");
    assert!(results.join("report.html").is_file(), "the last job reports");
    for speed in read(&results, "speed.json").as_array().unwrap() {
        assert_eq!(speed["record"]["machine"]["node_type"], "bench", "{speed}");
    }
    let timed_on = read(&results, "environment.json")["timed_on"].clone();
    assert!(timed_on.as_str().is_some_and(|name| name.starts_with("bench (")), "{timed_on}");
    let costs: Vec<Value> = read(&results, "match.json").as_array().unwrap().to_vec();
    assert_eq!(
        costs
            .iter()
            .map(|result| &result["record"]["cost"]["machine"]["node_type"])
            .filter(|name| *name == "bench")
            .count(),
        1
    );
    // A run again submits nothing, and reports.
    let again = on_slurm(&workspace, &cluster, &[]);
    assert!(again["networks"].as_array().is_some_and(|networks| networks.len() == 2), "{again}");
    // The records equal a run's alone, without shards.
    let alone = experiment::workspace();
    alone.write("proj/small.toml", &text.replace("shard_pairs = 2\n", ""));
    alone.stdout(&["run", "proj/small.toml", "--out", "results"]);
    assert_eq!(work::results(&workspace), work::results(&alone));

    // A step that fails is shown with the end of its log; others go on.
    workspace.write("proj/small.toml", &(text + DIVERGING).replace("seeds = [1]", "seeds = [1, 2]"));
    on_slurm(&workspace, &cluster, &[]);
    cluster.wait();
    let status = on_slurm(&workspace, &cluster, &["--status"]);
    let failures = status["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 2, "{status}");
    for failure in failures {
        assert!(failure["name"].as_str().unwrap().starts_with("training"), "{failure}");
        assert!(failure["end"].as_str().unwrap().contains("error: training"), "{failure}");
    }
    // The second seed of the other rows: two trainings and their measures, and two matches.
    let runs = read(&results, "runs.json");
    assert_eq!(runs.as_array().unwrap().len(), 4, "{status}");
    assert_eq!(read(&results, "match.json").as_array().unwrap().len(), 4, "{status}");
    let text = workspace.command(&[
        "run",
        "proj/small.toml",
        "--out",
        "results",
        "--timed-on",
        "bench",
        "--on",
        "slurm",
        "--status",
    ]);
    let output = { text }.env("SLURM_CONF", cluster.configuration()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("2 failed") && said.contains("failed: training"), "{said}");
}
