//! The command: its files, and the requests that it refuses.

use std::path::Path;
use std::process::{Command, Output};

fn export(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench"))
        .arg("export")
        .args(arguments)
        .env("FSBENCH_CACHE", folder.join("cache"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .current_dir(folder)
        .output()
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "cache")
        .collect();
    names.sort();
    names
}

#[test]
fn the_folder_has_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let output = export(&["half-kp", "--lang", "rust", "--bullet", "--out", "a/b", "--format", "json"], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["files"], serde_json::json!(["feature_set.rs", "bullet.rs", "golden.jsonl", "README.md"]));
    assert_eq!(names(&folder.path().join("a/b")), ["README.md", "bullet.rs", "feature_set.rs", "golden.jsonl"]);
    // Again, the same bytes.
    assert!(export(&["half-kp", "--lang", "rust", "--bullet", "--out", "c"], folder.path()).status.success());
    for name in names(&folder.path().join("c")) {
        let bytes = |of: &str| std::fs::read(folder.path().join(of).join(&name)).unwrap();
        assert!(bytes("a/b") == bytes("c"), "{name}");
    }
    // A folder that exists and is empty will do.
    std::fs::create_dir(folder.path().join("d")).unwrap();
    assert!(export(&["piece", "--lang", "c", "--out", "d"], folder.path()).status.success());
    assert_eq!(names(&folder.path().join("d")), ["README.md", "feature_set.h", "golden.jsonl"]);
    assert_eq!(names(folder.path()), ["a", "c", "d"]);
}

#[test]
fn wrong_requests_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("full")).unwrap();
    std::fs::write(folder.path().join("full/feature_set.h"), "mine").unwrap();
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    let check = |arguments: &[&str], expected: &str| {
        let output = export(arguments, folder.path());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert_eq!(names(folder.path()), ["file", "full"], "{arguments:?}");
        assert_eq!(std::fs::read_to_string(folder.path().join("full/feature_set.h")).unwrap(), "mine");
        assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "mine");
    };
    check(&["piece", "--lang", "c", "--out", "full"], "full is not empty; an export goes into a new or empty folder");
    check(&["piece", "--lang", "c", "--out", "file"], "file is a file; --out takes a folder");
    check(&["piece", "--lang", "python", "--out", "new"], "possible values: rust, c");
    check(&["peace", "--lang", "c", "--out", "new"], "there is no feature set `peace`");
    check(&["piece", "--lang", "c", "--bullet", "--out", "new"], "add --lang rust");
    check(
        &["square(P) for P in pieces if color(P) == own", "--lang", "rust", "--bullet", "--out", "new"],
        "bullet takes features in pairs",
    );
}
