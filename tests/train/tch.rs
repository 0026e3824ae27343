//! `--trainer tch`: the program `fsbench-tch` as `fsbench` finds, starts and ends it. Where it was built, real runs
//! too.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use super::fixture::{PROGRAM, Workspace, error_of};

#[cfg(feature = "tch")]
mod real;

/// `fsbench` in a folder of its own, and perhaps a shell script as `fsbench-tch` on PATH.
struct Installed {
    workspace: Workspace,
}

impl Installed {
    fn new(script: Option<&str>) -> Installed {
        let workspace = Workspace::new();
        for folder in ["alone", "on-path"] {
            fs::create_dir(workspace.path(folder)).expect("a folder");
        }
        let program = workspace.path("alone/fsbench");
        if fs::hard_link(PROGRAM, &program).is_err() {
            fs::copy(PROGRAM, &program).expect("copied");
        }
        if let Some(script) = script {
            let path = workspace.path("on-path/fsbench-tch");
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
        }
        Installed { workspace }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.path(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("runs")
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(self.path("alone/fsbench"));
        command.args(arguments).current_dir(self.path("")).env("FSBENCH_CACHE", self.path("cache"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("on-path").display()));
        command
    }

    fn train(&self) -> Output {
        self.run(&["train", "piece", "--trainer", "tch", "--data", "games.pgn", "--out", "run"])
    }

    /// The exit status of a training, whose message has all of `words`.
    fn fails(&self, status: i32, words: &[&str]) {
        let output = self.train();
        let text = error_of(&output);
        assert_eq!(output.status.code(), Some(status), "{text}");
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

/// A script that says which version it is and reads its run, then goes on with `rest`.
fn ready(version: &str, rest: &str) -> String {
    format!("echo '{{\"ready\":{{\"version\":\"{version}\"}}}}'\nread -r run\n{rest}")
}

#[test]
fn a_missing_program_is_named() {
    let installed = Installed::new(None);
    installed.fails(2, &["fsbench-tch", "neither in", "alone nor on PATH", "--features tch", "--trainer kernels"]);
    assert!(!installed.path("run").exists());
    // A GPU is used by the same program.
    let output = installed.run(&["train", "piece", "--device", "cuda", "--data", "games.pgn", "--out", "run"]);
    assert!(error_of(&output).contains("neither in"), "{}", error_of(&output));
    let output = installed.run(&["train", "--device", "cuda", "--trainer", "kernels", "--out", "run"]);
    assert!(error_of(&output).contains("the kernels train on the CPU"), "{}", error_of(&output));
}

#[test]
fn a_program_of_another_commit_is_refused() {
    let installed = Installed::new(Some(&ready("0.1.0 (another)", "touch asked")));
    installed.fails(2, &["on-path/fsbench-tch is of version 0.1.0 (another)", fsbench::VERSION, "from one commit"]);
    assert!(!installed.path("run").exists());
    Installed::new(Some("echo hello")).fails(2, &["does not speak as fsbench-tch does", "`hello`"]);
    Installed::new(Some("exit 127")).fails(1, &["ended before it could train", "exit status: 127"]);
}

#[test]
fn a_killed_program_is_named() {
    let installed = Installed::new(Some(&ready(fsbench::VERSION, "kill -9 $$")));
    installed.fails(1, &["on-path/fsbench-tch ended without a result", "SIGKILL", "--resume"]);
}

/// What the program says of its failure is what `fsbench` says and exits with.
#[test]
fn failures_are_passed_on() {
    let check = |cause: &str, status: i32, message: &str| {
        let event = format!("echo '{{\"failed\":{{\"cause\":{cause},\"message\":\"no luck\"}}}}'");
        Installed::new(Some(&ready(fsbench::VERSION, &event))).fails(status, &[message]);
    };
    check("\"request\"", 2, "error: no luck");
    check("\"work\"", 1, "error: no luck");
    check("{\"interrupted\":{\"step\":7}}", 1, "interrupted at step 7");
}

/// Trainings at the same time have a GPU each; one on the CPU has none.
#[test]
fn each_training_sees_one_gpu() {
    // Says which GPU it sees, and stays until the other has said so, too.
    let script = "echo \"$CUDA_VISIBLE_DEVICES\" > seen-$$\nwhile [ $(ls seen-* | wc -l) -lt 2 ]; do sleep 0.05; done\n\
        echo '{\"failed\":{\"cause\":\"work\",\"message\":\"seen\"}}'";
    let installed = Installed::new(Some(&ready(fsbench::VERSION, script)));
    let arguments = ["train", "piece", "--device", "cuda", "--data", "games.pgn", "--out"];
    let start = |out: &str| {
        let mut command = installed.command(&arguments);
        command.arg(out).env("FSBENCH_GPUS", "test-a,test-b").stderr(std::process::Stdio::null());
        command.spawn().expect("runs")
    };
    let mut trainings = ["one", "two"].map(start);
    for training in &mut trainings {
        assert_eq!(training.wait().expect("ends").code(), Some(1));
    }
    let mut seen = Vec::new();
    for file in fs::read_dir(installed.path("")).expect("a folder") {
        let path = file.expect("listed").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seen-")) {
            seen.push(fs::read_to_string(path).expect("written"));
        }
    }
    seen.sort();
    assert_eq!(seen, ["test-a\n", "test-b\n"]);
}

/// `auto` asks the program for large steps where there is a GPU; what the program says decides.
#[test]
fn auto_takes_a_gpu_for_large_steps() {
    let refuses = "echo \"$run\" > asked; echo \"$CUDA_VISIBLE_DEVICES\" > seen\n\
        echo '{\"failed\":{\"cause\":\"no-gpu\",\"message\":\"too old\"}}'";
    let with_program = Installed::new(Some(&ready(fsbench::VERSION, refuses)));
    let mut runs = 0;
    let mut check = |installed: &Installed, gpus: &str, options: &[&str], expected: &str| {
        runs += 1;
        let common =
            ["train", "piece", "--data", "games.pgn", "--epochs", "1", "--hidden", "none", "--scheme", "simple"];
        let mut command = installed.command(&[&common[..], options].concat());
        command.args(["--out", &format!("run-{runs}")]).env("FSBENCH_GPUS", gpus);
        let output = command.output().expect("runs");
        let text = error_of(&output);
        assert!(output.status.success(), "{text}");
        assert!(text.contains(expected), "{expected}: {text}");
        assert_eq!(text.matches("auto trains").count(), expected.matches("auto trains").count(), "{text}");
    };
    let large = ["--l1", "16", "--batch-size", "8192"];
    let cpu = |options: &[&'static str]| [&large[..], options].concat();
    let asked = || fs::remove_file(with_program.path("asked")).is_ok();
    check(&with_program, "", &large, "auto trains on the CPU: there is no NVIDIA GPU");
    check(&with_program, "-1", &large, "auto trains on the CPU: there is no NVIDIA GPU");
    let small = "auto trains on the CPU: a step has 8,191 positions × 16 neurons, and a GPU pays from 131,072 on";
    check(&with_program, "a,b", &["--l1", "16", "--batch-size", "8191"], small);
    check(&with_program, "a,b", &cpu(&["--device", "cpu"]), "");
    check(&with_program, "a,b", &cpu(&["--trainer", "kernels"]), "");
    assert!(!asked());
    let installed = Installed::new(None);
    check(&installed, "a,b", &large, "auto trains on the CPU: fsbench-tch, which trains on GPUs, is neither beside");
    // The program finds that the GPU is of no use: the kernels train.
    let text = "note: auto trains on a GPU: a step has 8,192 positions × 16 neurons, and it pays from 131,072 on\n\
        note: auto trains on the CPU: the GPU cannot be used: too old\n";
    check(&with_program, "auto-a,auto-b", &large, text);
    let request = fs::read_to_string(with_program.path("asked")).expect("asked");
    let request: serde_json::Value = serde_json::from_str(&request).expect("JSON");
    assert_eq!((&request["device"], &request["config"]["device"]), (&"cuda".into(), &"auto".into()));
    assert_eq!(fs::read_to_string(with_program.path("seen")).expect("asked"), "auto-a\n");
    // One that cannot start, as without its libraries, is no hindrance either.
    let broken = Installed::new(Some("exit 127"));
    let text = text.split_once("the GPU cannot be used: ").expect("a reason").0;
    check(&broken, "a,b", &large, &format!("{text}the GPU cannot be used: {}", broken.path("on-path").display()));
}

/// A run that was left to `auto` goes on with a named trainer, and the other way round.
#[test]
fn auto_goes_on_with_any_trainer() {
    let installed = Installed::new(None);
    let run = |options: &[&str]| {
        let common = ["train", "piece", "--data", "games.pgn", "--l1", "8", "--batch-size", "64", "--out", "run"];
        let output = installed.run(&[&common[..], options].concat());
        assert!(output.status.success(), "{}", error_of(&output));
    };
    run(&["--epochs", "1"]);
    run(&["--epochs", "2", "--resume", "--device", "cpu"]);
    run(&["--epochs", "3", "--resume"]);
    let metrics = fs::read_to_string(installed.path("run/metrics.jsonl")).expect("written");
    assert_eq!(metrics.lines().count(), 3);
}

/// A row of an experiment that wants the program where it is missing is refused before anything runs.
#[test]
fn an_experiment_needs_its_trainers() {
    let installed = Installed::new(None);
    let text = "name = \"two\"\ndata = \"games.pgn\"\nseeds = [1]\n[train]\nl1 = 8\nhidden = []\nbatch_size = 64\n\
        epochs = 1\nlearning_rate = 0.001\ndecay = 1.0\nvalidation = 0.2\n\
        [[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n\
        [[runs]]\nmethod = \"eval\"\nlabel = \"compact by tch\"\nsets = [\"compact\"]\ntrain = { trainer = \"tch\" }\n";
    fs::write(installed.path("two.toml"), text).expect("written");
    let output = installed.run(&["run", "two.toml", "--out", "results"]);
    let text = error_of(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("the row compact by tch cannot be trained") && text.contains("neither in"), "{text}");
    assert!(!installed.path("results").exists() && !installed.path("cache").exists());
    // The other row alone can be done.
    let output = installed.run(&["run", "two.toml", "--out", "results", "--only", "piece"]);
    assert!(output.status.success(), "{}", error_of(&output));
}
