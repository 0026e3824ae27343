//! Two processes never write to one run's folder: the second is told who has it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fsbench::output::file_lock::FileLock;
use fsbench::train::run_dir::METRICS;

use super::fixture::{PROGRAM, Workspace, error_of};

/// A run that goes on until it is killed.
const ENDLESS: [&str; 2] = ["--epochs", "1000000"];

/// A process that is killed when the test ends.
struct Running(Child);

impl Running {
    /// Starts a command and waits until its run has this many epochs.
    fn with_epochs(mut command: Command, run: &Path, epochs: usize) -> Running {
        let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runs"));
        let deadline = Instant::now() + Duration::from_secs(120);
        while count_epochs(run) < epochs {
            assert!(Instant::now() < deadline, "no epoch {epochs}");
            std::thread::sleep(Duration::from_millis(5));
        }
        running
    }

    fn kill(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("killed");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn count_epochs(run: &Path) -> usize {
    fs::read_to_string(run.join(METRICS)).unwrap_or_default().lines().count()
}

fn check_refused(output: &Output, holder: u32) {
    let text = error_of(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("is in use by process {holder} on ")) && text.contains(" since 2"), "{text}");
}

#[test]
fn a_second_process_is_told_who_has_the_run() {
    let workspace = Workspace::new();
    let run = workspace.path("run");
    let command = |more: &[&str]| workspace.command("run", &[&ENDLESS[..], more].concat());
    let mut first = Running::with_epochs(command(&[]), &run, 1);
    for more in [&[][..], &["--resume"], &["--force"]] {
        check_refused(&command(more).output().expect("runs"), first.0.id());
    }
    // The run goes on, and its files are there.
    let epochs = count_epochs(&run);
    let deadline = Instant::now() + Duration::from_secs(60);
    while count_epochs(&run) == epochs {
        assert!(Instant::now() < deadline && first.0.try_wait().expect("a child").is_none(), "the first run has ended");
        std::thread::sleep(Duration::from_millis(5));
    }

    // A killed process holds nothing, whatever its lock's file says.
    first.kill();
    assert!(run.join(FileLock::IN_FOLDER).exists());
    let mut second = Running::with_epochs(command(&["--resume"]), &run, count_epochs(&run) + 1);
    check_refused(&command(&["--resume"]).output().expect("runs"), second.0.id());
    second.kill();
    let output = workspace.command("run", &["--epochs", "1", "--force"]).output().expect("runs");
    assert!(output.status.success(), "{}", error_of(&output));
    assert!(!run.join(FileLock::IN_FOLDER).exists());
}

#[test]
fn a_run_of_an_experiment_is_locked() {
    let workspace = Workspace::new();
    let text = format!(
        "name = \"locked\"\ndata = \"games.pgn\"\nseeds = [1]\n[train]\nl1 = 8\nhidden = [4]\nbatch_size = 64\n\
         epochs = {}\n\
         learning_rate = 0.001\ndecay = 1.0\nvalidation = 0.2\ndevice = \"cpu\"\nthreads = 1\n[[runs]]\n\
         method = \"eval\"\nsets = [\"piece\"]\n",
        ENDLESS[1]
    );
    fs::write(workspace.path("locked.toml"), text).expect("written");
    let mut experiment = Command::new(PROGRAM);
    experiment.args(["run", "locked.toml", "--out", "results"]).current_dir(workspace.path(""));
    experiment.env("FSBENCH_CACHE", workspace.path("cache"));
    experiment.stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(experiment.spawn().expect("runs"));
    let deadline = Instant::now() + Duration::from_secs(120);
    let run = loop {
        let entries = fs::read_dir(workspace.path("cache/runs")).into_iter().flatten();
        let mut folders = entries.map(|entry| entry.expect("an entry").path());
        match folders.find(|folder| count_epochs(folder) > 0) {
            Some(folder) => break folder,
            None => assert!(Instant::now() < deadline, "no epoch"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut command = Command::new(PROGRAM);
    command.args(["train", "piece", "--resume", "--data"]).arg(workspace.path("games.pgn")).arg("--out").arg(run);
    check_refused(&command.env("FSBENCH_CACHE", workspace.path("cache")).output().expect("runs"), running.0.id());
}

/// The kernel's own files cannot be added to, not even by root.
#[test]
fn a_folder_that_cannot_be_written_to_is_named() {
    let workspace = Workspace::new();
    // A path that is absolute replaces the workspace's.
    let output = workspace.command("/proc/sys", &[]).output().expect("runs");
    let text = error_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot lock /proc/sys/lock: "), "{text}");
}
