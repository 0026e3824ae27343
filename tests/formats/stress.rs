//! No deadlocks: a thread never waits for a block that its own pool has still to decode, so reading and building end on
//! any number of threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use fsbench::data::Record;
use fsbench::data::formats::Format;
use rayon::prelude::*;
use tempfile::TempDir;

use crate::common::{pgn, random_game};
use crate::fixture::{read_all, samples, write};

/// Longer than any of these tests takes unless it hangs, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(240);

const FORMATS: [Format; 5] = [Format::Fsd, Format::Binpack, Format::Bullet, Format::Text, Format::Viriformat];

/// A file of each format, several blocks long if the format has blocks.
fn files(folder: &Path) -> Vec<PathBuf> {
    let games: Vec<Record> = samples(40, 100).into_iter().filter(|record| record.score().is_some()).collect();
    let records = games.repeat(200_000 / games.len());
    let mut files: Vec<PathBuf> =
        ["x.fsd", "x.binpack", "x.bullet", "x.txt", "x.vf"].map(|name| folder.join(name)).into();
    for (file, format) in files.iter().zip(FORMATS) {
        write(file, format, &records);
    }
    // Entries of 32 bytes can simply be repeated to get more blocks.
    fs::write(&files[2], fs::read(&files[2]).unwrap().repeat(3)).unwrap();
    let texts = pgn(&(0..40).map(|game| random_game(game, 100)).collect::<Vec<_>>());
    fs::write(folder.join("x.pgn"), texts.repeat(50)).unwrap();
    files.push(folder.join("x.pgn"));
    files
}

#[test]
fn every_worker_of_the_pool_may_read() {
    let folder = TempDir::new().unwrap();
    for file in files(folder.path()) {
        let (sender, receiver) = channel();
        let readers = 2 * rayon::current_num_threads();
        let name = file.clone();
        std::thread::spawn(move || {
            let counts: Vec<usize> = (0..readers).into_par_iter().map(|_| read_all(&file).len()).collect();
            sender.send(counts)
        });
        let counts = receiver.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("{} hangs", name.display()));
        assert!(counts[0] > 60_000 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    }
}

/// Builds a `.fsd` file on this many threads and returns its bytes.
fn build(file: &Path, threads: &str) -> Vec<u8> {
    let folder = file.parent().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(["dataset", "build", name, "--out", "out.fsd", "--force", "--threads", threads]);
    // bulletformat holds no moves.
    command.args(if name == "x.bullet" {
        ["--method", "eval", "--min-ply", "0"]
    } else {
        ["--method", "pqr", "--min-ply", "0"]
    });
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("building from {name} on {threads} threads hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{name}: {status}");
    fs::read(folder.join("out.fsd")).unwrap()
}

fn check_builds(times: usize) {
    let folder = TempDir::new().unwrap();
    for file in files(folder.path()) {
        let first = build(&file, "1");
        for _ in 0..times {
            for threads in ["2", "8"] {
                assert!(build(&file, threads) == first, "{} on {threads} threads", file.display());
            }
        }
    }
}

#[test]
fn builds_end_and_agree_on_2_and_8_threads() {
    check_builds(1);
}

#[test]
#[ignore = "takes minutes: cargo test --release --test formats -- --ignored builds_end_50_times"]
fn builds_end_50_times() {
    check_builds(50);
}
