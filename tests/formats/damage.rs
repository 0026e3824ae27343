//! Damaged binpacks in every command that reads them: sound parts are used, broken parts are counted and named.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fsbench::data::Record;
use fsbench::data::formats::Format;
use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::{check, fsbench, json, read_all, samples, write};

/// Writes `middle.binpack`, three chunks of which the second has a broken chain, `cut.binpack`, whose third is cut off,
/// and `good.binpack`. Returns the samples of the first, and the place of the broken chunk.
fn write_damaged(folder: &Path) -> (Vec<Record>, usize) {
    let chunk = |games: &[Record]| {
        write(&folder.join("chunk"), Format::Binpack, games);
        fs::read(folder.join("chunk")).unwrap()
    };
    let records = samples(30, 60);
    let parts: Vec<&[Record]> = [0..10, 10..11, 11..30].map(|games| part(&records, games)).into();
    let [first, mut second, third] = [chunk(parts[0]), chunk(parts[1]), chunk(parts[2])];
    fs::remove_file(folder.join("chunk")).unwrap();
    fs::write(folder.join("good.binpack"), [&first[..], &second, &third].concat()).unwrap();
    fs::write(folder.join("cut.binpack"), [&first[..], &second, &third[..third.len() / 2]].concat()).unwrap();
    // The nibbles of the first position: no kings.
    second[16..32].fill(0);
    fs::write(folder.join("middle.binpack"), [&first[..], &second, &third].concat()).unwrap();
    ([parts[0], parts[2]].concat(), first.len())
}

fn part(records: &[Record], games: std::ops::Range<u32>) -> &[Record] {
    let start = records.partition_point(|record| record.game() < games.start);
    let end = records.partition_point(|record| record.game() < games.end);
    &records[start..end]
}

fn skipped(document: &Value) -> &Value {
    &document["by_reason"]
}

#[test]
fn every_command_uses_what_is_sound_and_names_the_rest() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let (expected, broken_at) = write_damaged(path);
    let place = format!("chunk at byte {broken_at}: the first position of the chain at byte 0 is broken");
    let found = read_all(&path.join("middle.binpack"));
    let content = |records: &[Record]| records.iter().map(|record| record.with_game(0)).collect::<Vec<_>>();
    // A game of one chunk may have several chains, of which those after the first are sound.
    let lost = read_all(&path.join("good.binpack")).len() - found.len();
    assert!(lost > 0 && found.len() >= expected.len());
    let first = read_all(&path.join("good.binpack"));
    assert!(content(&first).starts_with(&content(&found)[..10]));

    let info = json(&["dataset", "info", "middle.binpack"], path);
    assert_eq!(info["samples"], found.len());
    assert_eq!(skipped(&info["skipped_samples"]), &serde_json::json!({ "broken chain": 1 }));
    assert_eq!(info["skipped_samples"]["examples"][0]["place"], format!("chunk at byte {broken_at}"));
    let stats = json(&["dataset", "stats", "middle.binpack"], path);
    assert_eq!((&stats["samples"], skipped(&stats["skipped"])), (&info["samples"], skipped(&info["skipped_samples"])));

    let converted = ["dataset", "convert", "middle.binpack", "middle.fsd", "--force"];
    check(&fsbench(&converted, path), 0, &place);
    assert!(content(&read_all(&path.join("middle.fsd"))) == content(&found));
    let build = [
        "dataset",
        "build",
        "middle.binpack",
        "--method",
        "eval",
        "--min-ply",
        "0",
        "--needs",
        "any",
        "--out",
        "b.fsd",
    ];
    check(&fsbench(&build, path), 0, &place);
    assert_eq!(read_all(&path.join("b.fsd")).len(), found.len());
    check(&fsbench(&["measure", "updates", "piece", "--data", "middle.binpack"], path), 0, &place);
    check(&fsbench(&["dataset", "verify", "middle.binpack"], path), 1, "has a problem");
    check(&fsbench(&["dataset", "verify", "good.binpack"], path), 0, "");

    let cut = json(&["dataset", "info", "cut.binpack"], path);
    assert_eq!(skipped(&cut["skipped_samples"]), &serde_json::json!({ "cut-off chunk": 1 }));
    assert!(cut["samples"].as_u64().unwrap() > 300, "{cut}");
    check(&fsbench(&["dataset", "verify", "cut.binpack"], path), 1, "has a problem");

    let service = |data: &str, threads: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
        let arguments = ["samples-service", "piece", "--method", "eval", "--needs", "any", "--batch-size", "64"];
        command.args(arguments).args(["--read", "auto", "--threads", threads, "--data", data]);
        command.current_dir(path).env("FSBENCH_CACHE", path.join("cache")).stdin(Stdio::null());
        let output = command.output().unwrap();
        let line = output.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
        (serde_json::from_slice::<Value>(line).unwrap_or_default()["samples_per_epoch"].clone(), output)
    };
    for threads in ["1", "3"] {
        let (samples, output) = service("middle.binpack", threads);
        check(&output, 0, &place);
        assert_eq!(samples, info["samples"]);
    }
}

/// The output does not depend on the number of threads.
#[test]
fn damage_is_counted_alike_by_any_number_of_threads() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    write_damaged(path);
    let mut bytes = fs::read(path.join("good.binpack")).unwrap();
    for at in (40..bytes.len()).step_by(997) {
        bytes[at] ^= 0x55;
    }
    fs::write(path.join("much.binpack"), bytes).unwrap();
    let document = |threads| {
        let output =
            crate::fixture::fsbench_with(&["dataset", "info", "much.binpack", "--format", "json"], path, threads);
        check(&output, 0, "");
        output.stdout
    };
    let one = document("1");
    assert_eq!(document("4"), one);
    let info: Value = serde_json::from_slice(&one).unwrap();
    assert!(skipped(&info["skipped_samples"])["broken chain"].as_u64().unwrap() > 2, "{info}");
}

#[test]
fn a_binpack_without_a_sound_sample_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let (_, broken_at) = write_damaged(path);
    let bytes = fs::read(path.join("middle.binpack")).unwrap();
    fs::write(path.join("x.binpack"), &bytes[broken_at..broken_at + 40]).unwrap();
    let why = "cut-off chunk: 1";
    check(&fsbench(&["dataset", "info", "x.binpack"], path), 2, why);
    check(&fsbench(&["dataset", "stats", "x.binpack"], path), 2, why);
    check(&fsbench(&["dataset", "convert", "x.binpack", "x.fsd"], path), 2, why);
    check(&fsbench(&["dataset", "build", "x.binpack", "--method", "eval", "--out", "x.fsd"], path), 2, why);
    check(&fsbench(&["dataset", "verify", "x.binpack"], path), 1, "has a problem");
}
