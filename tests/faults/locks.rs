//! Locks of steps: every call on a lock's file fails in turn, by a process that takes a dead one's file over. No step
//! is lost or done twice, and nothing that is left in the folder of locks holds up the next process.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::folder::{copy, files};
use super::shim::{Faults, shim};
use super::{EXPERIMENT, command, games, run, stderr};

/// No command takes so long unless it waits.
const PATIENCE: Duration = Duration::from_secs(90);
const FINISHED: &str = "cache/runs/finished";
const LOCKS: &str = "cache/runs/locks";

/// An experiment whose steps are done, but for the measures of updates. The lock of the first is left by a dead
/// process.
struct Begun {
    scratch: TempDir,
    /// The two steps that are left.
    left: [String; 2],
}

impl Begun {
    fn new() -> Begun {
        let begun = Begun { scratch: tempfile::tempdir().unwrap(), left: Default::default() };
        let folder = begun.folder();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("games.pgn"), games(12)).unwrap();
        fs::write(folder.join("small.toml"), EXPERIMENT).unwrap();
        let must = |arguments: &str| {
            let output = run(&folder, arguments, &[]);
            assert!(output.status.success(), "{arguments}: {}", stderr(&output));
            output.stdout
        };
        must("dataset build games.pgn --method eval --min-ply 0 --out samples.fsd");
        must("work small.toml --out made");
        let listed: Vec<Value> = serde_json::from_slice(&must("run small.toml --out made --list-steps")).unwrap();
        let updates = listed.iter().filter(|step| step["kind"] == "updates");
        let keys: Vec<String> = updates.map(|step| step["key"].as_str().unwrap().to_owned()).collect();
        let left: [String; 2] = keys.try_into().unwrap();
        for key in &left {
            fs::remove_file(folder.join(FINISHED).join(format!("updates-{key}.json"))).unwrap();
        }
        let dead = json!({"host": "here", "pid": u32::MAX, "since": "yesterday"});
        fs::write(folder.join(LOCKS).join(&left[0]), dead.to_string()).unwrap();
        copy(&folder, &begun.scratch.path().join("begun"));
        Begun { left, ..begun }
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("folder")
    }

    fn start_again(&self) {
        copy(&self.scratch.path().join("begun"), &self.folder());
    }

    /// Runs a command, which must not wait for a process that has ended.
    fn run(&self, arguments: &str, more: &[(&str, &str)]) -> Output {
        let mut command = command(&self.folder(), arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).envs(more.iter().copied());
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > PATIENCE {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.code().is_some(), "{arguments} waits: {}", stderr(&output));
        output
    }

    /// The finished results, with what tells a file from one that replaced it.
    fn finished(&self) -> BTreeMap<String, (u64, i64)> {
        let stored = files(&self.folder().join(FINISHED)).into_keys().map(|name| {
            let data = self.folder().join(FINISHED).join(&name).metadata().unwrap();
            (name, (data.ino(), data.mtime_nsec()))
        });
        stored.collect()
    }

    /// The results of the steps, without their times.
    fn records(&self, steps: &[String]) -> Vec<Value> {
        let record = |key: &String| {
            let text = fs::read(self.folder().join(FINISHED).join(format!("updates-{key}.json"))).unwrap();
            serde_json::from_slice::<Value>(&text).unwrap()["content"]["record"].clone()
        };
        steps.iter().map(record).collect()
    }

    /// Files among the locks, but for this machine's.
    fn locks(&self) -> Vec<String> {
        let names = files(&self.folder().join(LOCKS)).into_keys();
        names.filter(|name| !name.starts_with("machine ")).collect()
    }

    /// Makes each call on a lock's file fail in turn while the command does these steps.
    fn check(&self, shim: &Path, arguments: &str, steps: &[String], most: usize) {
        let locks = self.folder().join(LOCKS);
        let counts = self.scratch.path().join("counts");
        let with = |more: (&str, &str)| {
            let preloaded = [("LD_PRELOAD", shim.to_str().unwrap()), ("FAULT_FOLDER", locks.to_str().unwrap()), more];
            self.run(arguments, &preloaded)
        };
        self.start_again();
        let before = self.finished();
        let output = with(("FAULT_COUNTS", counts.to_str().unwrap()));
        assert!(output.status.success() && self.locks().is_empty(), "{}: {:?}", stderr(&output), self.locks());
        assert_eq!(self.finished().len(), before.len() + steps.len());
        let expected = self.records(steps);

        let faults = Faults::new(&counts, most);
        for kind in ["write", "create", "unlink"] {
            assert!(faults.number_of(kind) > 0, "{arguments}: no {kind} of a lock");
        }
        for fault in faults.drawn() {
            self.start_again();
            let output = with(("FAULT", &fault.text()));
            let about = format!("{arguments} with {}: {:?} {}", fault.text(), output.status, stderr(&output));
            let done = self.finished();
            if !output.status.success() {
                assert!(!fault.is_harmless() && output.status.code() == Some(1), "{about}");
                assert!(stderr(&output).contains(LOCKS), "{about} does not name the file");
                let again = self.run(arguments, &[]);
                assert!(again.status.success(), "{about}, then {}", stderr(&again));
            }
            assert_eq!(self.records(steps), expected, "{about}");
            let end = self.finished();
            assert!(done.iter().all(|(name, file)| end.get(name) == Some(file)), "{about}: a step is done twice");
            assert_eq!(end.len(), before.len() + steps.len(), "{about}");
            assert!(self.locks().is_empty() || fault.kind == "unlink", "{about}: {:?} are left", self.locks());
        }
    }

    /// The folder of locks is missing, and each call that makes a folder fails in turn.
    fn check_folder(&self, shim: &Path) {
        let arguments = "work small.toml --out made";
        let steps = &self.left;
        let runs = self.folder().join("cache/runs");
        let counts = self.scratch.path().join("counts");
        let with = |more: (&str, &str)| {
            self.start_again();
            fs::remove_dir_all(self.folder().join(LOCKS)).unwrap();
            let preloaded = [("LD_PRELOAD", shim.to_str().unwrap()), ("FAULT_FOLDER", runs.to_str().unwrap()), more];
            self.run(arguments, &preloaded)
        };
        let output = with(("FAULT_COUNTS", counts.to_str().unwrap()));
        assert!(output.status.success(), "{}", stderr(&output));
        let expected = self.records(steps);
        let mut refused = 0;
        for fault in Faults::new(&counts, usize::MAX).drawn().filter(|fault| fault.kind == "mkdir") {
            let output = with(("FAULT", &fault.text()));
            let about = format!("{}: {:?} {}", fault.text(), output.status, stderr(&output));
            if !output.status.success() {
                assert!(output.status.code() == Some(1) && stderr(&output).contains("cache/runs"), "{about}");
                refused += usize::from(stderr(&output).contains(LOCKS));
                let again = self.run(arguments, &[]);
                assert!(again.status.success(), "{about}, then {}", stderr(&again));
            }
            assert_eq!(self.records(steps), expected, "{about}");
        }
        assert!(refused > 0, "no failure to make the folder of locks");
    }
}

#[test]
fn locks_of_steps() {
    let begun = Begun::new();
    let Some(shim) = shim(begun.scratch.path()) else { return };
    begun.check_folder(&shim);
    let [first, second] = begun.left.clone();
    let one = format!("run small.toml --out made --step {first}");
    begun.check(&shim, &one, std::slice::from_ref(&first), 0);
    begun.check(&shim, "work small.toml --out made", &[first, second], 1);
}
