//! Skipped tests are recorded and summarised, and fail if their requirement is present.

#[path = "common/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Only started by another test.
#[test]
#[ignore = "started by skips_are_recorded_or_refused"]
fn skipped_test() {
    skip::skip("nothing", "it always is");
}

fn run(skips: &Path, require: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "skipped_test", "--ignored"]);
    command.env("FSBENCH_SKIPS", skips).env("FSBENCH_REQUIRE", require).output().expect("this test starts")
}

fn summary(skips: &Path) -> String {
    let run = Command::new(root().join("scripts/skips.sh")).arg(skips).output().expect("bash is there");
    assert!(run.status.success());
    String::from_utf8(run.stdout).expect("text")
}

#[test]
fn skips_are_recorded_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let skips = folder.path().join("skips");
    assert_eq!(summary(&skips), "");
    assert!(!run(&skips, "data nothing").status.success());
    assert_eq!(summary(&skips), "");
    for _ in 0..2 {
        assert!(run(&skips, "data").status.success());
    }
    let one = "skipped_test (it always is)";
    assert_eq!(std::fs::read_to_string(&skips).expect("written"), format!("{one}\n{one}\n"));
    assert_eq!(summary(&skips), format!("2 tests skipped: {one}; {one}\n"));
}

/// Tests skip only by `skip`: a test that just prints a message would not be recorded.
#[test]
fn no_test_prints_a_skip_itself() {
    let mut folders: Vec<PathBuf> = ["tests", "src"].map(|folder| root().join(folder)).into();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("listed").path()) {
            if path.ends_with("src/cli") {
                // The program's own messages.
            } else if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && !path.ends_with("common/skip.rs")
                && !path.ends_with("tests/skips.rs")
            {
                let text = std::fs::read_to_string(&path).expect("readable");
                assert!(!text.contains("println!(\"skip"), "{} prints a skip itself", path.display());
            }
        }
    }
}
