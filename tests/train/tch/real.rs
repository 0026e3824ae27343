//! Runs by libtorch on the CPU.

use std::process::Command;
use std::time::{Duration, Instant};

use fsbench::data::Method;
use fsbench::net::load_float;
use fsbench::train::{Silent, TrainOutcome, TrainerChoice, run_dir};

use super::super::common;
use super::super::fixture::{PROGRAM, Workspace, error_of, same_results, with};

/// Batches, validation and files are the kernels'; losses are, up to rounding.
#[test]
fn a_run_is_the_kernels_run_up_to_rounding() {
    let workspace = Workspace::new();
    for method in [Method::Eval, Method::Pqr] {
        let config = workspace.config(method);
        let by_tch = with(&config, |settings| settings.trainer = Some(TrainerChoice::Tch));
        let ours = workspace.run(&config, &format!("kernels {}", method.name()), false, &mut Silent).expect("trained");
        let theirs = workspace.run(&by_tch, &format!("tch {}", method.name()), false, &mut Silent).expect("trained");
        assert_eq!(
            (ours.training_samples, ours.validation_samples),
            (theirs.training_samples, theirs.validation_samples)
        );
        assert_eq!((ours.baseline_loss, ours.epochs.len()), (theirs.baseline_loss, theirs.epochs.len()));
        for (ours, theirs) in ours.epochs.iter().zip(&theirs.epochs) {
            let near = |a: f64, b: f64| (a - b).abs() < 1e-2 * a;
            assert!(near(ours.train_loss, theirs.train_loss), "{ours:?} {theirs:?}");
            assert!(near(ours.validation_loss, theirs.validation_loss), "{ours:?} {theirs:?}");
        }
    }
}

/// A signal saves the state, and the run goes on with it; another trainer may not go on.
#[test]
fn an_interrupted_run_goes_on() {
    let workspace = Workspace::new();
    let options = ["--trainer", "tch", "--epochs", "30"];
    let whole = workspace.command("whole", &options).output().expect("runs");
    assert!(whole.status.success(), "{}", error_of(&whole));
    let child = common::with_default_signals(&workspace.command("cut", &options), &[]).spawn().expect("runs");
    let metrics = workspace.path("cut").join(run_dir::METRICS);
    let deadline = Instant::now() + Duration::from_secs(120);
    while std::fs::read_to_string(&metrics).unwrap_or_default().lines().count() < 2 {
        assert!(Instant::now() < deadline, "no epoch ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    let cut = child.wait_with_output().expect("ends");
    assert_eq!(cut.status.code(), Some(130), "{}", error_of(&cut));
    assert!(error_of(&cut).contains("interrupted at step"), "{}", error_of(&cut));
    let other = ["--trainer", "kernels", "--epochs", "30", "--resume"];
    let other = workspace.command("cut", &other).output().expect("runs");
    assert_eq!(other.status.code(), Some(2));
    let text = error_of(&other);
    assert!(text.contains("trainer is \"tch\" there and \"kernels\" was asked for"), "{text}");
    let output = workspace.command("cut", &[&options[..], &["--resume"]].concat()).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    same_results(&workspace, "whole", "cut");
    load_float(&workspace.path("cut").join(run_dir::CHECKPOINT)).expect("the kernels' format");
}

/// The program itself needs no libtorch.
#[cfg(target_os = "linux")]
#[test]
fn fsbench_does_not_load_libtorch() {
    let libraries = |program: &str| {
        let output = Command::new("ldd").arg(program).output().expect("ldd runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let ours = libraries(PROGRAM);
    assert!(ours.contains("libc") && !ours.contains("torch"), "{ours}");
    assert!(libraries(env!("CARGO_BIN_EXE_fsbench-tch")).contains("torch"));
}

/// The GPU's trainer, its kernels emulated, is started, interrupted and resumed as a GPU's is.
#[test]
fn a_run_on_the_emulated_gpu_is_the_kernels_run_up_to_rounding() {
    let workspace = Workspace::new();
    let run = |name: &str, options: &[&str]| {
        let mut command = workspace.command(name, options);
        let output = command.args(["--format", "json"]).env("FSBENCH_EMULATED_GPU", "1").output().expect("runs");
        assert!(output.status.success(), "{}", error_of(&output));
        serde_json::from_slice::<TrainOutcome>(&output.stdout).expect("an outcome")
    };
    let theirs = run("gpu", &["--device", "cuda", "--epochs", "3"]);
    let ours = run("cpu", &["--device", "cpu", "--epochs", "3"]);
    for (ours, theirs) in ours.epochs.iter().zip(&theirs.epochs) {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-2 * a;
        assert_eq!((ours.step, ours.samples), (theirs.step, theirs.samples));
        assert!(near(ours.train_loss, theirs.train_loss), "{ours:?} {theirs:?}");
        assert!(near(ours.validation_loss, theirs.validation_loss), "{ours:?} {theirs:?}");
    }
    assert_eq!(run("gpu", &["--device", "cuda", "--epochs", "4", "--resume"]).epochs.len(), 4);
}

/// `auto` takes the GPU, here the emulated one, and the record names it; where there is none, the run goes on.
#[test]
fn auto_takes_a_gpu_and_goes_on_without_it() {
    let workspace = Workspace::new();
    let data = workspace.data(Method::Eval);
    let run = |gpus: &str, options: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["train", "piece", "--l1", "16", "--batch-size", "8192", "--threads", "1", "--format", "json"]);
        command.arg("--data").arg(&data).arg("--out").arg(workspace.path("run")).args(options);
        let output = command.env("FSBENCH_EMULATED_GPU", "1").env("FSBENCH_GPUS", gpus).output().expect("runs");
        assert!(output.status.success(), "{}", error_of(&output));
        let outcome = serde_json::from_slice::<TrainOutcome>(&output.stdout).expect("an outcome");
        (outcome, error_of(&output))
    };
    let (first, said) = run("0", &["--epochs", "1"]);
    assert_eq!((first.gpu.as_deref(), first.config.settings.trainer), (Some("emulated GPU"), None));
    assert!(said.contains("auto trains on a GPU: a step has 8,192 positions × 16 neurons"), "{said}");
    assert!(said.contains(", on the emulated GPU"), "{said}");
    let (second, said) = run("", &["--epochs", "2", "--resume"]);
    assert_eq!((second.gpu.as_deref(), second.epochs.len()), (None, 2));
    assert_eq!(second.epochs[0], first.epochs[0]);
    assert!(said.contains("auto trains on the CPU: there is no NVIDIA GPU"), "{said}");
    let (third, _) = run("0", &["--epochs", "3", "--resume"]);
    assert_eq!((third.gpu.as_deref(), third.epochs.len()), (Some("emulated GPU"), 3));
}

/// Everything that is checked and measured on a GPU, on the emulated one.
#[test]
fn the_check_of_a_gpu_passes_on_the_emulated_one() {
    let has_python = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_python {
        common::skip::skip("python", "no python3");
        return;
    }
    let workspace = Workspace::new();
    let mut check = Command::new("bash");
    check.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/gpu_check.sh")).arg(PROGRAM);
    check
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/quickstart/games.pgn.zst"))
        .args(["--device", "emulated", "--trial"]);
    let output = check.arg("--out").arg(workspace.path("results")).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", error_of(&output));
    let table = std::fs::read_to_string(workspace.path("results/README.md")).expect("the table");
    assert!(table.contains("| piece 256→32→1, pqr |") && !table.contains("failed"), "{table}");
    let text = std::fs::read(workspace.path("results/emulated-gpu.json")).expect("the numbers");
    let results: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let rates = results["rates"].as_array().expect("rows");
    for row in rates {
        let part = |name: &str| row["step_times_us"][name].as_f64().expect("a time");
        let parts = ["waiting", "forward", "dense", "backward", "update"].map(part);
        assert!(parts.iter().all(|time| *time > 0.0), "{row}");
    }
    assert_eq!(rates.len(), 2);
}
