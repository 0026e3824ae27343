//! Runs that a signal ends: the exit status, the saved state and the service's process.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fsbench::train::run_dir;

use super::common;
use super::fixture::{PROGRAM, Workspace, error_of, same_results};

/// Sends a child a signal, waits for its end and returns its exit status and its stderr.
fn end_by_signal(mut child: Child, signal: &str) -> (Option<i32>, String) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("killed");
            panic!("{signal} did not end the run");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output");
    (output.status.code(), error_of(&output))
}

const SIGNALS: [(&str, i32); 3] = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)];

/// The service is still reading games when the signal arrives: there are too many to read during the test.
#[test]
fn a_signal_ends_a_run_that_prepares_its_data() {
    let workspace = Workspace::new();
    let games = workspace.path("many.pgn.zst");
    common::write_many_games(&games);
    for (signal, status) in SIGNALS {
        let mut command = Command::new(PROGRAM);
        command
            .args(["train", "piece", "--threads", "1", "--data"])
            .arg(&games)
            .arg("--out")
            .arg(workspace.path("run"));
        command.env("FSBENCH_CACHE", workspace.path("cache"));
        let child = common::with_default_signals(&command, &[]).spawn().expect("runs");
        let service = service_of(child.id());
        let (found, text) = end_by_signal(child, signal);
        assert_eq!(found, Some(status), "{signal}: {text}");
        assert!(text.contains("interrupted while the data were prepared"), "{signal}: {text}");
        assert!(!Path::new(&format!("/proc/{service}/exe")).exists(), "{signal}: the service still runs");
        // The folder is empty, so that the same command starts afresh.
        assert_eq!(fs::read_dir(workspace.path("run")).expect("the run's folder").count(), 0);
        if signal != "-HUP" {
            // Under `nohup`, SIGHUP is ignored and the next signal ends the run.
            let child = common::with_default_signals(&command, &["HUP"]).spawn().expect("runs");
            service_of(child.id());
            assert!(
                Command::new("kill").args(["-HUP", &child.id().to_string()]).status().expect("kill runs").success()
            );
            assert_eq!(end_by_signal(child, signal).0, Some(status), "{signal} after a signal that is ignored");
        }
    }
}

/// Waits for the only child of a process and returns its process number.
fn service_of(process: u32) -> u32 {
    let children = format!("/proc/{process}/task/{process}/children");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = text.split_whitespace().next() {
            return child.parse().expect("a number");
        }
        assert!(Instant::now() < deadline, "no child");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_ends_training_with_its_state_saved() {
    let workspace = Workspace::new();
    let options = ["--epochs", "60"];
    assert!(workspace.command("whole", &options).output().expect("runs").status.success());
    for (number, (signal, status)) in SIGNALS.into_iter().enumerate() {
        let more = [&options[..], if number > 0 { &["--resume"] } else { &[] }].concat();
        let metrics = workspace.path("cut").join(run_dir::METRICS);
        let lines = || fs::read_to_string(&metrics).unwrap_or_default().lines().count();
        let before = lines();
        let child = common::with_default_signals(&workspace.command("cut", &more), &[]).spawn().expect("runs");
        let deadline = Instant::now() + Duration::from_secs(60);
        while lines() < before + 2 {
            assert!(Instant::now() < deadline, "no epoch ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        let (found, text) = end_by_signal(child, signal);
        assert_eq!(found, Some(status), "{signal}: {text}");
        assert!(text.contains("interrupted at step") && text.contains("--resume"), "{signal}: {text}");
    }
    let output = workspace.command("cut", &[&options[..], &["--resume"]].concat()).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    same_results(&workspace, "whole", "cut");
}
