//! The memory of a verb does not grow with its input: the peak over a large file is that over a small one, give or take
//! buffers that the small one does not fill, and below the bound of `src/data/SIZES.md`, which has the peaks over 2 GB.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fsbench::chess::Chess;
use fsbench::data::formats::{Format, SampleWriter};
use fsbench::data::{GameResult, Provenance, Purpose, Record, ScoreUnit};
use fsbench::features::FeatureSet;
use fsbench::net::{Checkpoint, NetFile, Origin, Scheme, quantise, save_float};
use fsbench::units::{Ply, Seed};
use shakmaty::Position;
use tempfile::TempDir;

/// Samples of the small files.
const SMALL: usize = 500_000;
/// Samples of the large files: 80 MB as `.fsd`.
const LARGE: usize = 4 * SMALL;
/// The peak may grow by this, since blocks wait for a busy machine; a verb that held the large file would need 60 MB
/// more.
const GROWTH: u64 = 48 << 20;
/// As [`GROWTH`] for binpacks, whose segments are decoded ahead of the reader, the more so the busier the machine is; a
/// verb that held the large one's samples would need 160 MB more.
const BINPACK_GROWTH: u64 = 2 * GROWTH;
/// What every verb may take at most; `train` keeps its validation split in less here.
const BOUND: u64 = 600 << 20;

/// Measures of `net` over FILE.
const MEASURES: [&str; 5] = [
    "measure activity --net net --data FILE",
    "measure error --net net --checkpoint checkpoint --data FILE",
    "measure speed --net net --data FILE --repetitions 2 --seconds 0.01",
    "measure loss net --data FILE",
    "measure importance net --data FILE --positions 2000",
];

/// Samples of random games, with scores and results.
fn games() -> Vec<Vec<Record>> {
    let game = |number| {
        let mut position = Chess::default();
        let mut records = Vec::new();
        for (ply, mv) in (0..).zip(common::random_game(number, 100)) {
            let score = Some((number as i16 * 37 + ply * 11) % 400);
            let result = Some(if ply % 2 == 0 { GameResult::Win } else { GameResult::Loss });
            records.push(Record::of(&position, 0, Ply(ply as u16), Some(mv), score, result).unwrap());
            position.play_unchecked(mv);
        }
        records
    };
    (0..40).map(game).collect()
}

/// Writes the games over and over, to at least this many samples.
fn write(path: &Path, format: Format, games: &[Vec<Record>], samples: usize) {
    let mut writer = SampleWriter::create(path, format, true).unwrap();
    let mut written = 0;
    let mut numbers = 0u32..;
    while written < samples {
        for game in games {
            let number = numbers.next().unwrap();
            writer.push(&game.iter().map(|record| record.with_game(number)).collect::<Vec<_>>()).unwrap();
            written += game.len();
        }
    }
    let purpose = Purpose::Eval;
    let score_unit = ScoreUnit::Centipawns;
    let games = numbers.start;
    writer.finish(Provenance { purpose, score_unit, seed: Seed(0), games, sources: [0; 32] }).unwrap();
}

/// The program, which the system gives at most [`BOUND`] of memory of its own (RLIMIT_DATA): more is an error, however
/// short.
fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -d {} && exec \"$0\" \"$@\"", BOUND >> 10), env!("CARGO_BIN_EXE_fsbench")]);
    command.args(arguments.split(' ')).current_dir(folder).env("RAYON_NUM_THREADS", "2");
    command.env("FSBENCH_CACHE", folder.join("cache")).env("MALLOC_ARENA_MAX", "2");
    command
}

/// The largest resident memory of a process so far, in bytes; `None` once it has ended.
fn peak(process: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Runs a command to its end and returns its peak of memory, as of a millisecond before.
fn peak_of(folder: &Path, arguments: &str) -> u64 {
    let mut process = command(folder, arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let mut highest = 0;
    loop {
        highest = peak(&process).unwrap_or(0).max(highest);
        if let Some(status) = process.try_wait().unwrap() {
            assert!(status.success(), "{arguments}");
            return highest;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A small network, and the checkpoint it was quantised from, for [`MEASURES`].
fn write_network(folder: &Path) {
    let set = FeatureSet::shipped("compact").unwrap();
    let float = common::random_net(set.num_features(), 16, &[8], 1);
    let checkpoint = Checkpoint { origin: Origin::of(&set), training: serde_json::json!({ "step": 1 }) };
    save_float(&folder.join("checkpoint"), &checkpoint, &float, &[]).unwrap();
    let net = quantise(&float, &Scheme::stockfish()).unwrap();
    NetFile { origin: Origin::of(&set), net }.save(&folder.join("net")).unwrap();
}

/// Compares the peaks of commands over `small.EXT` and `large.EXT`; FILE in a command stands for the input.
fn check(folder: &Path, extension: &str, commands: &[&str]) {
    let growth = if extension == "binpack" { BINPACK_GROWTH } else { GROWTH };
    let mut wrong = Vec::new();
    for arguments in commands {
        let start = Instant::now();
        let of = |size: &str| peak_of(folder, &arguments.replace("FILE", &format!("{size}.{extension}")));
        let small = of("small");
        let large = of("large");
        let numbers = format!("{arguments} over {extension}: {} MB, {} MB", small >> 20, large >> 20);
        println!("{numbers}, {:.1} s", start.elapsed().as_secs_f64());
        if large > small + growth || large > BOUND {
            wrong.push(numbers);
        }
    }
    assert!(wrong.is_empty(), "memory grows with the input, or is more than documented:\n{}", wrong.join("\n"));
}

fn files(format: Format, extension: &str, [small, large]: [usize; 2]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let games = games();
    for (name, samples) in [("small", small), ("large", large)] {
        write(&folder.path().join(format!("{name}.{extension}")), format, &games, samples);
    }
    folder
}

#[test]
fn memory_does_not_grow_with_fsd_files() {
    let folder = files(Format::Fsd, "fsd", [SMALL, LARGE]);
    check(
        folder.path(),
        "fsd",
        &[
            "dataset info FILE",
            "dataset verify FILE",
            "dataset stats FILE --out stats --force",
            "dataset convert FILE x.binpack --force",
            "dataset build FILE --method eval --per-game 1 --out x.fsd --force",
            "dataset build FILE --method eval --dedup move --shuffle --out x.fsd --force",
            "dataset build FILE --method eval --shard 0/1 --out x.shard --force",
            "dataset merge x.shard --out x.fsd --force",
            "select compact --top 8 --data FILE --out x.idx --force",
            "measure updates compact --data FILE",
            TRAIN,
        ],
    );
    write_network(folder.path());
    check(folder.path(), "fsd", &MEASURES);
}

const TRAIN: &str = "train compact --data FILE --l1 8 --hidden 8 --batch-size 16384 --epochs 1 --validation 0.01 \
                     --threads 2 --out run --force";

#[test]
fn memory_does_not_grow_with_binpacks() {
    // A binpack is decoded in segments, of which half a million samples have too few to fill all buffers.
    let folder = files(Format::Binpack, "binpack", [LARGE, 3 * LARGE]);
    check(
        folder.path(),
        "binpack",
        &[
            "dataset info FILE",
            "dataset verify FILE",
            "dataset stats FILE --out stats --force",
            "dataset convert FILE x.fsd --force",
            "dataset build FILE --method eval --per-game 1 --out x.fsd --force",
            "dataset build FILE --method eval --dedup move --shuffle --out x.fsd --force",
            "dataset build FILE --method eval --shard 0/1 --out x.shard --force",
            "select compact --top 8 --data FILE --out x.idx --force",
            "measure updates compact --data FILE",
            TRAIN,
        ],
    );
    write_network(folder.path());
    check(folder.path(), "binpack", &MEASURES);
}

/// Formats without games.
#[test]
fn memory_does_not_grow_with_positions() {
    for (format, extension) in [(Format::Bullet, "bullet"), (Format::Text, "txt")] {
        let folder = files(format, extension, [SMALL, LARGE]);
        let commands = ["dataset convert FILE x.fsd --force", "dataset build FILE --method eval --out x.fsd --force"];
        check(folder.path(), extension, &commands);
    }
}

#[test]
fn memory_does_not_grow_with_games() {
    let folder = tempfile::tempdir().unwrap();
    let games = common::pgn(&(0..40).map(|game| common::random_game(game, 100)).collect::<Vec<_>>());
    for (name, bytes) in [("small", 12 << 20), ("large", 60 << 20)] {
        let mut file = fs::File::create(folder.path().join(format!("{name}.pgn"))).unwrap();
        (0..bytes / games.len()).for_each(|_| file.write_all(games.as_bytes()).unwrap());
    }
    let commands = [
        "dataset build FILE --method pqr --per-game 1 --out x.fsd --force",
        "dataset stats FILE --out stats --force",
        "measure updates compact --data FILE",
    ];
    check(folder.path(), "pgn", &commands);
}

/// Serves every sample of files that are mapped, and returns the service's peak of memory.
fn peak_of_service(folder: &Path, files: &[PathBuf]) -> u64 {
    let mut serve = command(folder, "samples-service file(K) --batch-size 16384 --threads 2");
    for file in files {
        serve.arg("--data").arg(file);
    }
    let mut process = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut output = process.stdout.take().unwrap();
    let mut byte = [0];
    while byte != *b"\n" {
        output.read_exact(&mut byte).unwrap();
    }
    let mut highest = 0;
    loop {
        output.read_exact(&mut byte).unwrap();
        match byte[0] {
            255 => break,
            254 => panic!("the service failed"),
            _ => {}
        }
        highest = peak(&process).unwrap_or(0).max(highest);
        input.write_all(&byte).unwrap();
    }
    drop(input);
    assert!(process.wait().unwrap().success());
    highest
}

/// Mapped files count as resident memory page by page, so that several names of one file do as well as several files.
#[test]
fn files_are_served_in_bounded_memory() {
    const FILES: usize = 8;
    /// Three windows of 2^20 samples, with the pages that the kernel maps around each block.
    const BOUND: u64 = 230 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = |number| folder.path().join(format!("{number}.fsd"));
    write(&path(0), Format::Fsd, &games(), LARGE);
    (1..FILES).for_each(|number| fs::hard_link(path(0), path(number)).unwrap());
    let files: Vec<PathBuf> = (0..FILES).map(path).collect();
    let bytes = FILES as u64 * path(0).metadata().unwrap().len();
    assert!(bytes > BOUND * 2, "the files are too small to show anything");
    write(&folder.path().join("small.fsd"), Format::Fsd, &games(), 1 << 15);
    let program = peak_of_service(folder.path(), &[folder.path().join("small.fsd")]);
    let peak = peak_of_service(folder.path(), &files);
    let numbers =
        format!("{} MB of memory for {} MB of samples, {} MB for few", peak >> 20, bytes >> 20, program >> 20);
    println!("{numbers}");
    assert!(peak < program + BOUND, "{numbers}");
}
