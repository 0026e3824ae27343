//! The faults that `shim.c` makes, and how often each kind of call is made to fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fsbench::units::Seed;

use super::common::skip::skip;
use super::stderr;

/// The shim, compiled; `None` where there is no C compiler.
pub fn shim(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("shim.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/shim.c");
    let arguments = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", source, "-ldl", "-o"];
    match Command::new("cc").args(arguments).arg(&path).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", stderr(&output));
            Some(path)
        }
        Err(_) => {
            skip("cc", "there is no C compiler here");
            None
        }
    }
}

/// A fault: kind of call, its number, errno (0 = a short write), whether later calls fail, too.
#[derive(Copy, Clone, Debug)]
pub struct Fault {
    pub kind: &'static str,
    number: usize,
    errno: i32,
    stays: bool,
}

impl Fault {
    /// Whether the program must go on as if nothing had happened.
    pub fn is_harmless(self) -> bool {
        [0, libc::EINTR].contains(&self.errno)
    }

    pub fn text(self) -> String {
        let Fault { kind, number, errno, stays } = self;
        format!("{kind}:{number}:{errno}{}", if stays { ":on" } else { "" })
    }
}

/// The faults that a call of a kind may have.
fn faults_of(kind: &str) -> &'static [(i32, bool)] {
    match kind {
        "write" => &[(libc::ENOSPC, true), (libc::EIO, false), (libc::EINTR, false), (0, false)],
        "sync" => &[(libc::EIO, false), (libc::ENOSPC, false), (libc::EINTR, false)],
        "rename" => &[(libc::EIO, false), (libc::EACCES, true)],
        "unlink" => &[(libc::EACCES, true)],
        "create" | "truncate" => &[(libc::ENOSPC, false), (libc::EROFS, true), (libc::EINTR, false)],
        // The system does not interrupt calls on a folder's entries.
        _ => &[(libc::ENOSPC, false), (libc::EROFS, true)],
    }
}

const KINDS: [&str; 8] = ["write", "sync", "rename", "truncate", "create", "mkdir", "link", "unlink"];

/// The calls that a command makes, and how many of each kind are to fail.
#[derive(Debug)]
pub struct Faults {
    number_of: BTreeMap<String, usize>,
    most: usize,
}

impl Faults {
    /// Reads the counts of one run or several. At most `most` calls of a kind fail, or as many as FSBENCH_FAULTS says.
    pub fn new(counts: &Path, most: usize) -> Faults {
        let mut number_of: BTreeMap<String, usize> = BTreeMap::new();
        let text = fs::read_to_string(counts).unwrap();
        for (kind, count) in text.lines().map(|line| line.split_once(' ').unwrap()) {
            let most = number_of.entry(kind.to_owned()).or_default();
            *most = (*most).max(count.parse().unwrap());
        }
        fs::remove_file(counts).unwrap();
        Faults { number_of, most: std::env::var("FSBENCH_FAULTS").map_or(most, |most| most.parse().expect("a number")) }
    }

    /// How many calls of this kind the command makes.
    pub fn number_of(&self, kind: &str) -> usize {
        self.number_of[kind]
    }

    /// Every fault of the calls that are drawn.
    pub fn drawn(&self) -> impl Iterator<Item = Fault> {
        KINDS.into_iter().flat_map(|kind| {
            let count = self.number_of(kind);
            let mut rng = Seed(3).stream(kind, count as u64);
            let drawn = rand::seq::index::sample(&mut rng, count, count.min(self.most)).into_vec();
            let faults = move |index| {
                faults_of(kind).iter().map(move |&(errno, stays)| Fault { kind, number: index + 1, errno, stays })
            };
            drawn.into_iter().flat_map(faults)
        })
    }
}
