//! Skipping of tests whose requirements are missing. `FSBENCH_REQUIRE` lists requirements that are known to be present:
//! a test that would be skipped for lack of one fails instead. Each skip is written as a line to the file
//! `FSBENCH_SKIPS`, which `scripts/test.sh` shows at its end.
#![allow(dead_code, clippy::print_stderr, reason = "each test uses only some of these")]

use std::io::Write;
use std::path::{Path, PathBuf};

/// Reports that this thread's test is skipped because `requirement` is missing; `reason` describes it in words.
pub fn skip(requirement: &str, reason: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let required = std::env::var("FSBENCH_REQUIRE").unwrap_or_default();
    let is_required = required.split_whitespace().any(|other| other == requirement);
    assert!(!is_required, "{name} would be skipped ({reason}), but FSBENCH_REQUIRE lists {requirement}");
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os("FSBENCH_SKIPS") {
        // A single write per line, because tests run in parallel.
        let mut file =
            std::fs::File::options().append(true).create(true).open(path).expect("FSBENCH_SKIPS can be written");
        file.write_all(format!("{name} ({reason})\n").as_bytes()).expect("FSBENCH_SKIPS can be written");
    }
}

/// A file of the shared data; skips the test if it is missing.
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("FSBENCH_DATA").map(|folder| Path::new(&folder).join(name));
    let path = path.filter(|path| path.is_file());
    if path.is_none() {
        skip("data", &format!("FSBENCH_DATA names no folder with {name}"));
    }
    path
}
