//! Skipped tests are counted, shown in one line, and refused where what they lack is there.

#[path = "common/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Not a test of its own.
#[test]
#[ignore = "started by a_skip_is_written_down_or_refused"]
fn skips_for_show() {
    skip::skip("nothing", "this one always does");
}

fn run(skips: &Path, require: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "skips_for_show", "--ignored"]);
    command.env("FSBENCH_SKIPS", skips).env("FSBENCH_REQUIRE", require).output().expect("this test starts")
}

fn summary(skips: &Path) -> String {
    let run = Command::new(root().join("scripts/skips.sh")).arg(skips).output().expect("bash is there");
    assert!(run.status.success());
    String::from_utf8(run.stdout).expect("text")
}

#[test]
fn a_skip_is_written_down_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let skips = folder.path().join("skips");
    assert_eq!(summary(&skips), "");
    assert!(!run(&skips, "data nothing").status.success());
    assert_eq!(summary(&skips), "");
    for _ in 0..2 {
        assert!(run(&skips, "data").status.success());
    }
    let one = "skips_for_show (this one always does)";
    assert_eq!(std::fs::read_to_string(&skips).expect("written"), format!("{one}\n{one}\n"));
    assert_eq!(summary(&skips), format!("2 tests skipped: {one}; {one}\n"));
}

/// A test that only prints would not be counted.
#[test]
fn no_test_is_skipped_in_another_way() {
    let mut folders: Vec<PathBuf> = ["tests", "src"].map(|folder| root().join(folder)).into();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("listed").path()) {
            if path.ends_with("src/cli") {
                // It prints what it skips.
            } else if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && !path.ends_with("common/skip.rs")
                && !path.ends_with("tests/skips.rs")
            {
                let text = std::fs::read_to_string(&path).expect("readable");
                assert!(!text.contains("println!(\"skip"), "{} skips by itself", path.display());
            }
        }
    }
}
