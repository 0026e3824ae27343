//! Tests that cannot run here say so in one place. What they lack is named: `FSBENCH_REQUIRE` lists what is known to be
//! there, and a test that wants to be skipped for the lack of it fails. `FSBENCH_SKIPS` names a file that gets a line a
//! skip, which `scripts/test.sh` shows at its end.
#![allow(dead_code, clippy::print_stderr, reason = "shared by tests that use a part each")]

use std::io::Write;
use std::path::{Path, PathBuf};

/// The test of this thread is skipped: `need` is not there, `why` says it in words.
pub fn skip(need: &str, why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let required = std::env::var("FSBENCH_REQUIRE").unwrap_or_default();
    let is_there = required.split_whitespace().any(|known| known == need);
    assert!(!is_there, "{name} would be skipped ({why}), and FSBENCH_REQUIRE says that {need} is there");
    eprintln!("skipped: {why}");
    if let Some(path) = std::env::var_os("FSBENCH_SKIPS") {
        // One write a line: tests run at the same time.
        let mut file =
            std::fs::File::options().append(true).create(true).open(path).expect("FSBENCH_SKIPS can be written");
        file.write_all(format!("{name} ({why})\n").as_bytes()).expect("FSBENCH_SKIPS can be written");
    }
}

/// A file of the shared data; skips where there is none.
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("FSBENCH_DATA").map(|folder| Path::new(&folder).join(name));
    let found = path.filter(|path| path.is_file());
    if found.is_none() {
        skip("data", &format!("FSBENCH_DATA names no folder with {name}"));
    }
    found
}
