//! `fsbench dataset verify` finds no problem in intact files and locates damage.

use std::fs;
use std::path::Path;

use fsbench::data::formats::Format;
use fsbench::output::checked::in_envelope;
use fsbench::pipeline::manifest_path;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::content;
use crate::fixture::{check, fsbench, samples, shared, write};

/// The JSON verdict on a file. The exit status must agree with it.
fn verdict(folder: &Path, file: &str) -> Value {
    let output = fsbench(&["dataset", "verify", file, "--format", "json"], folder);
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    let status = if verdict["ok"] == true { 0 } else { 1 };
    check(&output, status, "");
    verdict
}

/// Checks that some problem has these texts in its fields `place` and `what`.
fn check_broken(folder: &Path, file: &str, place: &str, what: &str) {
    let verdict = verdict(folder, file);
    assert_eq!(verdict["ok"], false);
    let first = verdict["first"].as_array().unwrap();
    let text = |problem: &Value, field: &str| problem[field].as_str().unwrap().to_owned();
    let found =
        first.iter().any(|problem| text(problem, "place").contains(place) && text(problem, "what").contains(what));
    assert!(found, "{first:?} lacks {place:?}: {what:?}");
}

#[test]
fn intact_files_have_no_problems() {
    let folder = TempDir::new().unwrap();
    let records = samples(60, 120);
    let formats =
        [("x.fsd", Format::Fsd), ("x.binpack", Format::Binpack), ("x.bullet", Format::Bullet), ("x.txt", Format::Text)];
    for (name, format) in formats {
        write(&folder.path().join(name), format, &records);
        let verdict = verdict(folder.path(), name);
        assert_eq!((&verdict["ok"], &verdict["problems"]), (&true.into(), &0.into()), "{name}");
    }
    check(&fsbench(&["dataset", "verify", "missing"], folder.path()), 2, "cannot read missing");
}

#[test]
fn a_flipped_bit_in_an_fsd_file_is_located() {
    let folder = TempDir::new().unwrap();
    let records = samples(100, 150);
    let path = folder.path().join("x.fsd");
    write(&path, Format::Fsd, &records);
    let good = fs::read(&path).unwrap();
    let flip = |at: usize, bit: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= bit;
        fs::write(&path, bytes).unwrap();
    };
    // The side to move of sample 5,000, in the second block.
    let record = 256 + 40 * 5_000;
    flip(record + 36, 1);
    let block = format!("checksum of bytes {} to {} (block 1 of the records)", 256 + 40 * 4_096, 256 + 40 * 8_192 - 1);
    check_broken(folder.path(), "x.fsd", "checksum", &block);
    check_broken(folder.path(), "x.fsd", &format!("record 5000 (byte {record})"), "");
    check_broken(folder.path(), "x.fsd", "the header (byte 48)", "the samples' hash");
    flip(record + 39, 0x10);
    check_broken(folder.path(), "x.fsd", "record 5000", "byte 39 of the record is 16");
    flip(100, 1);
    check_broken(folder.path(), "x.fsd", "the file", "the header");
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    check_broken(folder.path(), "x.fsd", "the file", "cut off");
}

#[test]
fn a_manifest_that_contradicts_its_file_is_reported() {
    let folder = TempDir::new().unwrap();
    write(&folder.path().join("x.binpack"), Format::Binpack, &samples(10, 100));
    check(&fsbench(&["dataset", "convert", "x.binpack", "x.fsd"], folder.path()), 0, "");
    assert_eq!(verdict(folder.path(), "x.fsd")["manifest"], true);
    let path = manifest_path(&folder.path().join("x.fsd"));
    let good = content(&fs::read(&path).unwrap());
    for (field, value, what) in [
        ("kept", Value::from(3), "samples: it says 3"),
        ("games", 3.into(), "games: it says 3"),
        ("method", "eval".into(), "method: it says eval, the file any"),
        ("samples_hash", "00".into(), "it describes samples with the hash 00"),
        ("sources", 3.into(), "invalid type"),
    ] {
        let mut manifest = good.clone();
        manifest[field] = value;
        fs::write(&path, in_envelope(&manifest.to_string())).unwrap();
        check_broken(folder.path(), "x.fsd", "the manifest", what);
    }
    fs::write(&path, good.to_string()).unwrap();
    check_broken(folder.path(), "x.fsd", "the manifest", "its checksum does not match");
}

#[test]
fn bad_entries_are_located() {
    let folder = TempDir::new().unwrap();
    let records = samples(3, 60);
    write(&folder.path().join("x.txt"), Format::Text, &records);
    let text = fs::read_to_string(folder.path().join("x.txt")).unwrap();
    fs::write(folder.path().join("x.txt"), format!("{text}nonsense\n")).unwrap();
    let line = format!("line {}, column 1", records.len() + 1);
    check_broken(folder.path(), "x.txt", &line, "three fields");

    let path = folder.path().join("x.bullet");
    write(&path, Format::Bullet, &records);
    let mut bytes = fs::read(&path).unwrap();
    bytes[32 * 7 + 26] = 3;
    fs::write(&path, &bytes).unwrap();
    check_broken(folder.path(), "x.bullet", "position 7 (byte 224)", "result 3");
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    check_broken(folder.path(), "x.bullet", "after sample", "not a multiple of the 32");

    fs::write(folder.path().join("x.pgn"), "[Event \"x\"]\n\n1. e4 e5 1-0\n\n[Event \"y\"]\n\n1. Ke3 *\n").unwrap();
    check_broken(folder.path(), "x.pgn", "game at byte", "illegal move");
    fs::write(folder.path().join("x.binpack"), b"BINP\xff\xff\xff\xff").unwrap();
    check_broken(folder.path(), "x.binpack", "chunk at byte 0", "its header claims 4294967295 bytes");
}

#[test]
fn a_file_without_content_has_a_problem() {
    let folder = TempDir::new().unwrap();
    for name in ["x.pgn", "x.txt", "x.plain", "x.bullet"] {
        fs::write(folder.path().join(name), "").unwrap();
        check_broken(folder.path(), name, "the file", "no game and no sample");
    }
}

#[test]
fn a_file_of_stockfish_has_no_problems() {
    let Some(path) = shared("stockfish-small.binpack") else { return };
    let folder = TempDir::new().unwrap();
    let verdict = verdict(folder.path(), path.to_str().unwrap());
    assert_eq!((&verdict["ok"], &verdict["samples"]), (&true.into(), &434_921.into()));
}
