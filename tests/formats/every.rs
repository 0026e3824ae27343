//! Every command that reads positions accepts every format, and refuses other files.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fsbench::data::formats::Format;
use fsbench::data::{Fsd, Record};
use fsbench::units::Seed;
use rand::RngExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{pgn, random_game, with_default_signals};
use crate::fixture::{check, fsbench, json as document, names, samples, write};

/// Writes the same games in every format, plain and compressed.
fn write_games(folder: &Path) {
    let texts = pgn(&(0..20).map(|game| random_game(game, 60)).collect::<Vec<_>>());
    fs::write(folder.join("x.pgn"), &texts).unwrap();
    check(&fsbench(&["dataset", "convert", "x.pgn", "x.fsd"], folder), 0, "");
    let records: Vec<Record> = Fsd::open(&folder.join("x.fsd")).unwrap().records().to_vec();
    let scored: Vec<Record> = records
        .iter()
        .map(|record| record.with_score(Some(7)).with_result(Some(fsbench::data::GameResult::Draw)))
        .collect();
    for (name, format) in [
        ("x.binpack", Format::Binpack),
        ("x.vf", Format::Viriformat),
        ("x.txt", Format::Text),
        ("x.plain", Format::Plain),
        ("x.bullet-text", Format::BulletText),
        ("x.bullet", Format::Bullet),
    ] {
        write(&folder.join(name), format, &scored);
        let bytes = fs::read(folder.join(name)).unwrap();
        fs::write(folder.join(format!("{name}.zst")), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    }
    fs::copy(folder.join("x.binpack"), folder.join("no-extension")).unwrap();
}

const WITH_MOVES: [&str; 11] = [
    "x.pgn",
    "x.fsd",
    "x.binpack",
    "x.binpack.zst",
    "x.vf",
    "x.vf.zst",
    "x.txt",
    "x.txt.zst",
    "x.plain",
    "x.plain.zst",
    "no-extension",
];

#[test]
fn measures_take_every_format() {
    let folder = TempDir::new().unwrap();
    write_games(folder.path());
    let counts = |name: &str| -> Value {
        let found = document(&["measure", "updates", "piece", "--data", name], folder.path());
        json!([found["games"], found["positions"], found["active_mean"], found["mean"]])
    };
    let expected = counts("x.pgn");
    assert_eq!(expected[0], 20);
    for name in WITH_MOVES {
        assert_eq!(counts(name), expected, "{name}");
    }
    for name in WITH_MOVES.into_iter().chain(["x.bullet", "x.bullet.zst", "x.bullet-text", "x.bullet-text.zst"]) {
        let arguments = ["select", "piece", "--top", "5", "--out", "top.idx", "--force", "--data", name];
        let found = document(&arguments, folder.path());
        assert_eq!(found["positions"], expected[1], "{name}");
    }
    // Without moves there are no updates to measure; the message says so.
    let output = fsbench(&["measure", "updates", "piece", "--data", "x.bullet"], folder.path());
    check(&output, 2, "holds positions, but no move");
}

#[test]
fn binary_files_are_not_read_as_games() {
    let folder = TempDir::new().unwrap();
    let mut rng = Seed(3).stream("noise", 0);
    let noise: Vec<u8> = (0..3 << 20).map(|_| rng.random()).collect();
    let network = [&0x7af3_2f20_u32.to_le_bytes()[..], &noise].concat();
    let checkpoint = [&90u64.to_le_bytes()[..], b"{\"__metadata__\":{}}", &noise[..1000]].concat();
    let refused = |name: &str, bytes: &[u8], why: &str| {
        fs::write(folder.path().join(name), bytes).unwrap();
        let verbs = [
            &["dataset", "info", name][..],
            &["dataset", "verify", name],
            &["dataset", "stats", name],
            &["dataset", "convert", name, "out.fsd"],
            &["dataset", "build", name, "--method", "pqr", "--out", "out.fsd"],
            &["measure", "updates", "piece", "--data", name],
        ];
        for verb in verbs.iter().filter(|verb| verb[1] != "verify" || !name.ends_with(".bin")) {
            check(&fsbench(verb, folder.path()), 2, why);
        }
    };
    refused("noise", &noise, "binary data");
    refused("noise.pgn", &noise, "binary data");
    refused("noise.txt", &noise, "binary data");
    refused("noise.bin", &noise, "is a position of bullet");
    refused("mine.nnue", &network, "a network (.nnue)");
    refused("best.safetensors", &checkpoint, "a safetensors file");
    refused("packed.pgn.zst", &zstd::encode_all(&noise[..], 1).unwrap(), "binary data");
    // A text file without games.
    let prose = "# Notes\n\nNothing here is a game of chess, though it has lines.\n".repeat(20);
    fs::write(folder.path().join("notes.md"), prose).unwrap();
    check(&fsbench(&["dataset", "info", "notes.md"], folder.path()), 2, "holds no game or sample that can be used");
    // A given format does not change the verdict.
    check(&fsbench(&["dataset", "info", "mine.nnue", "--from", "pgn"], folder.path()), 2, "a network (.nnue)");
}

#[test]
fn filters_by_ply_pass_samples_without_plies() {
    let folder = TempDir::new().unwrap();
    write_games(folder.path());
    let build = ["dataset", "build", "x.bullet", "--method", "eval", "--out", "b.fsd", "--format", "json"];
    let output = fsbench(&[&build[..], &["--min-ply", "20"]].concat(), folder.path());
    check(&output, 0, "x.bullet records no plies: the filters by ply let all its samples pass");
    check(&output, 0, "neighbouring positions of a game can be on both sides");
    let built: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&built["samples"], &built["dropped"]), (&built["positions"], &json!({})));
    // Each sample would count as the first of its game.
    for option in [&["--skip-unlikely"][..], &["--balance", "ply"]] {
        let build = ["dataset", "build", "x.bullet", "--method", "eval", "--out", "s.fsd"];
        let reason = format!("records no plies, which {} needs", option.join(" "));
        check(&fsbench(&[&build, option].concat(), folder.path()), 2, &reason);
        assert!(!folder.path().join("s.fsd").exists());
    }
    // Nor have files that were made from it.
    check(&fsbench(&["dataset", "convert", "x.bullet", "c.fsd"], folder.path()), 0, "");
    let output = fsbench(&["dataset", "build", "c.fsd", "--method", "eval", "--out", "d.fsd"], folder.path());
    check(&output, 0, "c.fsd records no games");
    for file in ["c.fsd", "d.fsd"] {
        let build = ["dataset", "build", file, "--method", "eval", "--format", "json", "--out", "s.fsd"];
        for option in [&["--skip-unlikely"][..], &["--balance", "ply"]] {
            let reason = format!("bullet records no plies, which {} needs", option.join(" "));
            check(&fsbench(&[&build[..], option].concat(), folder.path()), 2, &reason);
            assert!(!folder.path().join("s.fsd").exists());
        }
        let output = fsbench(&[&build[..], &["--min-ply", "20"]].concat(), folder.path());
        check(&output, 0, &format!("{file} records no plies: the filters by ply let all its samples pass"));
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(again["samples"], built["samples"], "{file}");
        fs::remove_file(folder.path().join("s.fsd")).unwrap();
    }
    // Text has plies.
    let output = fsbench(&["dataset", "build", "x.txt", "--method", "eval", "--out", "t.fsd"], folder.path());
    check(&output, 0, "");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));

    // The number of samples in the service's description, and its output.
    let served = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
        command.args(["samples-service", "--batch-size", "64"]).args(more);
        command.current_dir(folder.path()).env("FSBENCH_CACHE", folder.path().join("cache")).stdin(Stdio::null());
        let output = command.output().unwrap();
        let line = output.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
        (serde_json::from_slice::<Value>(line).unwrap_or_default()["samples_per_epoch"].clone(), output)
    };
    let (samples, output) = served(&["--data", "x.bullet", "--read", "built"]);
    check(&output, 0, "records no games");
    assert_eq!(samples, built["samples"]);
    let (samples, output) = served(&["--data", "x.bullet", "--min-ply", "20"]);
    check(&output, 0, "records no plies: the filters by ply let all its samples pass");
    assert_eq!(samples, built["samples"]);
    let plies = |least: &str| served(&["--read", "built", "--data", "x.pgn", "--method", "pqr", "--min-ply", least]).0;
    let records = Fsd::open(&folder.path().join("x.fsd")).unwrap();
    let from_ply = |least: u16| records.records().iter().filter(|record| record.ply().0 >= least).count();
    assert!(plies("30").as_u64().unwrap() <= from_ply(30) as u64);
    assert!(plies("0").as_u64().unwrap() > from_ply(5) as u64);
    for option in [["--min-ply", "3"], ["--filter", "quiet"]] {
        let (_, output) = served(&[&["--data", "b.fsd"], &option[..]].concat());
        check(&output, 2, &format!("{} has no effect: b.fsd is built already", option[0]));
    }
    let quiet = ["x.pgn", "--method", "pqr", "--filter", "quiet"];
    let built = document(&[&["dataset", "build", "--out", "q.fsd"], &quiet[..]].concat(), folder.path());
    let (samples, _) = served(&[&["--read", "built", "--data"], &quiet[..]].concat());
    assert_eq!(samples, built["samples"]);
    assert!(samples.as_u64().unwrap() < plies("0").as_u64().unwrap());
}

#[test]
fn a_build_reports_the_games_it_used() {
    let folder = TempDir::new().unwrap();
    write_games(folder.path());
    let build = ["dataset", "build", "x.pgn@0.5", "--method", "pqr", "--out", "half.fsd"];
    let built = document(&build, folder.path());
    let used = built["games"].as_u64().unwrap();
    assert!(used < 20 && built["games_read"] == 20, "{built}");
    assert_eq!(used + built["dropped_games"]["weight"].as_u64().unwrap(), 20);
    let dropped: u64 = built["dropped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let samples = built["samples"].as_u64().unwrap();
    assert_eq!(samples + dropped, built["positions_read"].as_u64().unwrap());
    assert_eq!(document(&["dataset", "info", "half.fsd"], folder.path())["games"], used);
    let output = fsbench(&[&build[..], &["--force"]].concat(), folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("games      {used} of 20 read")), "{text}");
    // Repeats are counted, too.
    let build = ["dataset", "build", "x.pgn@2", "--method", "pqr", "--out", "twice.fsd"];
    let twice = document(&build, folder.path());
    let repeated = twice["repeated"].as_u64().unwrap();
    assert_eq!(2 * repeated, twice["samples"].as_u64().unwrap());
    let output = fsbench(&[&build[..], &["--force"]].concat(), folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("repeated   {repeated} samples, by weight")), "{text}");
    assert_eq!(document(&["dataset", "info", "twice.fsd"], folder.path())["manifest"]["repeated"], repeated);
}

/// Sends the program a signal as soon as its unfinished file exists; checks the exit status and that no file is left.
fn check_interrupted(arguments: &[&str], signal: &str, status: i32) {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(arguments).current_dir(folder.path());
    let mut child = with_default_signals(&command, &[]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Taken out because `wait` would close it, and the program might reach the end of its input before the signal.
    let input = child.stdin.take();
    while !names(folder.path()).iter().any(|name| name.ends_with(".part")) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(status), "{arguments:?}");
    drop(input);
    assert_eq!(names(folder.path()), [] as [&str; 0]);
}

#[test]
fn an_interrupted_command_leaves_no_unfinished_file() {
    let build = ["dataset", "build", "-", "--method", "pqr", "--out", "x.fsd"];
    check_interrupted(&build, "-INT", 130);
    check_interrupted(&build, "-TERM", 143);
    check_interrupted(&["dataset", "convert", "-", "x.binpack", "--from", "text"], "-INT", 130);
}

#[cfg(unix)]
#[test]
fn file_names_that_are_not_utf8_are_refused_by_every_command() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = TempDir::new().unwrap();
    let odd = OsStr::from_bytes(b"g\xff.pgn");
    fs::write(folder.path().join(odd), pgn(&[random_game(1, 20)])).unwrap();
    let verbs: [&[&str]; 5] = [
        &["dataset", "info"],
        &["dataset", "build", "--method", "pqr", "--out", "x.fsd"],
        &["measure", "updates", "piece", "--data"],
        &["train", "piece", "--out"],
        &["show"],
    ];
    for verb in verbs {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
        check(&command.args(verb).arg(odd).current_dir(folder.path()).output().unwrap(), 2, "is not UTF-8");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The program reports the truncation, whichever thread reads a missing page first.
#[test]
fn a_file_cut_off_while_it_is_served_is_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.fsd");
    write(&path, Format::Fsd, &samples(40, 100).repeat(50));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(["samples-service", "--data", "x.fsd", "--batch-size", "1000", "--slots", "4", "--threads", "1"]);
    command.current_dir(folder.path()).env("FSBENCH_CACHE", folder.path().join("cache"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut back = child.stdin.take().unwrap();
    let mut filled = BufReader::new(child.stdout.take().unwrap()).bytes();
    while filled.next().unwrap().unwrap() != b'\n' {}
    fs::File::options().write(true).open(&path).unwrap().set_len(256).unwrap();
    // Give every filled slot back, so that the service makes further batches.
    for slot in filled.map_while(Result::ok) {
        let _ = back.write_all(&[slot]);
    }
    check(&child.wait_with_output().unwrap(), 1, "was cut off while it was read");
}
