//! Calls with which fsbench writes fail, one in a run: a full disk, an I/O error, a refused rename. Nothing
//! half-written looks whole, the message names the file, and the command given again makes the files that it would have
//! made. Interrupted and short writes change nothing. The faults come from `shim.c`, preloaded into the program as
//! users run it.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../common/mod.rs"]
mod common;
mod disks;
#[path = "../engines/mod.rs"]
mod engines;
mod folder;
mod kills;
mod locks;
mod shim;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use engines::Script;
use folder::{FOLDER, TEMPORARY, Undisturbed, copy, files, is_journal, is_temporary};
use fsbench::features::FeatureSet;
use fsbench::net::nnue::Architecture;
use fsbench::net::{NetFile, Origin, Scheme, quantise};
use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, Chess, Position};
use shim::{Faults, shim};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fsbench");

/// Moves knights to and fro until the game ends by repetition.
const SHUFFLE: &str = r#"set -- $moves
    case $(($# % 4)) in 0) m=g1f3;; 1) m=g8f6;; 2) m=f3g1;; *) m=f6g8;; esac
    echo "info depth 1 score cp 2$(($# % 10))"; echo "bestmove $m""#;

/// Plays and scores the positions of the random games, each of which has a line in the file `answers`.
const SCORE: &str = r#"set -- $fen; line=$(grep -m 1 -F "$1 $2 " answers)
    echo "info depth 1 score cp $((${#1} * 3))"; echo "bestmove ${line##* }""#;

/// Two openings.
const BOOK: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n\
                    rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -\n";

/// An experiment that trains for a moment, measures, and plays a match in two shards.
const EXPERIMENT: &str = r#"
name  = "small"
data  = "samples.fsd"
seeds = [1]
[train]
l1            = 8
hidden        = [4]
batch_size    = 64
epochs        = 2
learning_rate = 0.01
decay         = 0.5
validation    = 0.2
threads       = 1
device        = "cpu"
[[runs]]
method = "eval"
sets   = ["piece", "compact"]
[measure.updates]
games = 5
[measure.activity]
[match]
nodes       = 20
pairs       = 2
shard_pairs = 1
hash        = 1
concurrency = 1
"#;

/// Games with evaluations, networks, an engine, an experiment, results, and a folder for temporary files.
fn inputs() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path(TEMPORARY)).unwrap();
    fs::write(path("games.pgn"), games(12)).unwrap();
    Script::new(SHUFFLE).write(&path("engine"));
    fs::write(path("answers"), answers(12)).unwrap();
    Script::new(SCORE).write(&path("scorer"));
    for (name, seed) in [("a", 1), ("b", 2)] {
        let set = FeatureSet::shipped("piece").unwrap();
        let float = common::random_net(set.num_features(), 16, &[8], seed);
        let file = NetFile { origin: Origin::of(&set), net: quantise(&float, &Scheme::stockfish()).unwrap() };
        file.save(&path(&format!("{name}.safetensors"))).unwrap();
    }
    let set = FeatureSet::shipped("chess768").unwrap();
    let float = common::random_net(set.num_features(), 16, &[], 3);
    let file = NetFile { origin: Origin::of(&set), net: quantise(&float, &Scheme::simple()).unwrap() };
    file.save(&path("simple.safetensors")).unwrap();
    fs::write(path("book.epd"), BOOK).unwrap();
    fs::write(path("small.toml"), EXPERIMENT).unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/quickstart"), &path("results"));
    for made in ["plots", "tables"] {
        fs::remove_dir_all(path("results").join(made)).unwrap();
    }
    for output in ["--out samples.fsd", "--shard 0/1 --out whole.shard"] {
        let built = run(folder.path(), &format!("dataset build games.pgn --method eval --min-ply 0 {output}"), &[]);
        assert!(built.status.success(), "{}", stderr(&built));
    }
    folder
}

/// Random games, each move with an evaluation.
fn games(count: u64) -> String {
    let game = |number| {
        let mut position = Chess::default();
        let moves = common::random_game(number, 60).into_iter().map(|mv| {
            let san = SanPlus::from_move_and_play_unchecked(&mut position, mv);
            format!("{san} {{ [%eval 0.{:02}] }}", 10 + position.legal_moves().len() % 80)
        });
        let moves = moves.collect::<Vec<_>>().join(" ");
        format!("[Event \"test\"]\n[Result \"1/2-1/2\"]\n\n{moves} 1/2-1/2\n\n")
    };
    (0..count).map(game).collect()
}

/// A line `BOARD TURN MOVE` for each position of [`games`].
fn answers(count: u64) -> String {
    let mut lines = String::new();
    for number in 0..count {
        let mut position = Chess::default();
        for mv in common::random_game(number, 60) {
            let turn = position.turn().char();
            let mv_text = mv.to_uci(CastlingMode::Standard);
            lines += &format!("{} {turn} {mv_text}\n", position.board());
            position.play_unchecked(mv);
        }
    }
    lines
}

/// Runs a command in a folder, with the caches below it.
fn run(folder: &Path, arguments: &str, more: &[(&str, &str)]) -> Output {
    command(folder, arguments).envs(more.iter().copied()).output().unwrap()
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split(' ')).current_dir(folder).stdin(Stdio::null());
    command.env("FSBENCH_CACHE", folder.join("cache")).env("RAYON_NUM_THREADS", "2");
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A command and how it is given again after a failure.
#[derive(Clone)]
struct Case {
    arguments: String,
    again: String,
    /// Files that change while the command runs, and are whole at any time.
    changing: &'static [&'static str],
    /// The folder of the caches.
    cache: &'static str,
    /// Whether the command's files depend on how fast the machine is.
    is_timed: bool,
    /// At most so many calls of a kind fail, drawn at random; the variable FSBENCH_FAULTS gives another number.
    most: usize,
}

impl Case {
    fn new(arguments: &str) -> Case {
        let again = arguments.to_owned();
        Case { arguments: arguments.into(), again, changing: &[], cache: "cache", is_timed: false, most: 24 }
    }
}

/// Makes calls of the command fail, one at a time.
fn check(case: &Case, inputs: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let Some(shim) = shim(scratch.path()) else { return };
    let folder = scratch.path().join(FOLDER);
    let counts = scratch.path().join("counts");
    let temporary = folder.join(TEMPORARY);
    let with = |arguments: &str, more: &[(&str, &str)]| {
        let preloaded = [
            ("LD_PRELOAD", shim.to_str().unwrap()),
            ("FAULT_FOLDER", folder.to_str().unwrap()),
            ("TMPDIR", temporary.to_str().unwrap()),
        ];
        run(&folder, arguments, &[&preloaded, more].concat())
    };
    let clean = || {
        copy(inputs, &folder);
        let output = with(&case.arguments, &[("FAULT_COUNTS", counts.to_str().unwrap())]);
        assert!(output.status.success(), "{}: {}", case.arguments, stderr(&output));
        files(&folder)
    };
    let undisturbed = Undisturbed::new(files(inputs), clean(), &clean());
    let undisturbed = if case.is_timed { undisturbed.with_times() } else { undisturbed.with_stable_files() };
    let faults = Faults::new(&counts, case.most);
    // All files but journals get their names when they are whole.
    let renames = undisturbed.made().any(|name| !is_journal(name));
    let is_made = faults.number_of("write") > 0 && (faults.number_of("rename") > 0) == renames;
    assert!(is_made, "{}: {faults:?}", case.arguments);
    let mut failures = 0;
    for fault in faults.drawn() {
        copy(inputs, &folder);
        let output = with(&case.arguments, &[("FAULT", &fault.text())]);
        let found = files(&folder);
        let about = || format!("{} with {}: {:?} {}", case.arguments, fault.text(), output.status, stderr(&output));
        let is_left = found.keys().any(|name| is_temporary(name));
        assert!(!is_left || fault.kind == "unlink", "{}: a temporary file is left", about());
        if output.status.success() {
            undisturbed.check_finished(&found, &about());
            continue;
        }
        failures += 1;
        assert!(!fault.is_harmless() && output.status.code() == Some(1), "{}", about());
        undisturbed.check_message(&stderr(&output), &about());
        undisturbed.check_unfinished(&found, case.changing, &about());
        let again = with(&case.again, &[]);
        assert!(again.status.success(), "{}, then {}", about(), stderr(&again));
        undisturbed.check_finished(&files(&folder), &about());
    }
    assert!(failures > 0, "{}: no fault had an effect", case.arguments);
}

#[test]
fn builds_and_conversions() {
    let inputs = inputs();
    save_lite(&inputs.path().join("lite.safetensors"));
    for arguments in [
        "dataset build games.pgn --method eval --min-ply 0 --out x.fsd",
        "dataset build samples.fsd --method pqr --min-ply 0 --out x.fsd",
        "dataset build games.pgn samples.fsd --method eval --min-ply 0 --shard 1/2 --out x.shard",
        "dataset merge whole.shard --out x.fsd",
        "dataset convert samples.fsd x.binpack",
        "dataset convert samples.fsd x.bullet",
        "dataset convert samples.fsd x.txt",
        "dataset convert samples.fsd x.fsd",
        "net convert a.safetensors c.safetensors",
        "net convert lite.safetensors c.nnue",
        "net convert simple.safetensors c.bin --to bullet",
        "select piece --top 20 --data games.pgn --out x.idx",
        "openings --net a.safetensors --count 3 --out o.epd",
    ] {
        check(&Case::new(arguments), inputs.path());
    }
}

/// A network for the smallest architecture that a `.nnue` file may have.
fn save_lite(path: &Path) {
    let shape = Architecture::Sf19Lite.shape();
    let scheme = Architecture::Sf19Lite.scheme();
    let net = common::networks::random_net(shape, scheme, 4);
    let origin = Origin::of(&Architecture::Sf19Lite.feature_set().unwrap());
    NetFile { origin, net }.save(path).unwrap();
}

/// Samples in files without names, and a journal of scores.
#[test]
fn builds_in_passes() {
    let inputs = inputs();
    let build = "dataset build samples.fsd --method eval --min-ply 0 --out x.fsd";
    for options in [
        "--dedup move --shuffle --samples 100",
        "--balance pieces --samples 100",
        "--balance ply --max-score 60 --shuffle",
        "--engine ./scorer --nodes 5 --samples 12 --concurrency 1",
    ] {
        check(&Case { most: 3, ..Case::new(&format!("{build} {options}")) }, inputs.path());
    }
}

#[test]
fn reports_and_exports() {
    let inputs = inputs();
    // These make many files, and take a second.
    for arguments in ["report results --out made.out", "dataset stats games.pgn --out stats.out"] {
        check(&Case { most: 1, ..Case::new(arguments) }, inputs.path());
    }
    for arguments in [
        "export compact --lang rust --out exported.out",
        "export a.safetensors --lang c --out exported.out",
        "measure importance a.safetensors --data samples.fsd --positions 50 --keep kept.rows",
        "show piece --fen rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR --out x.svg",
        "show a.safetensors --best 1 --out x.png",
    ] {
        check(&Case { most: 3, ..Case::new(arguments) }, inputs.path());
    }
    // Pages that were written before a failure exist.
    let man = Case::new("man --out man.out");
    check(&Case { again: format!("{} --force", man.arguments), most: 2, ..man }, inputs.path());
}

#[test]
fn generated_games() {
    let inputs = inputs();
    let arguments = "dataset generate --engine ./engine --nodes 5 --games 3 --random-plies 0 --out";
    for out in ["g.pgn", "g.pgn.zst", "g.binpack", "g.fsd"] {
        check(&Case::new(&format!("{arguments} {out}")), inputs.path());
    }
    let arguments = format!("{arguments} g.pgn --book book.epd");
    check(&Case { most: 3, ..Case::new(&arguments) }, inputs.path());
}

#[test]
fn matches() {
    let inputs = inputs();
    let arguments = "match a.safetensors b.safetensors --nodes 40 --pairs 2 --out played.out";
    check(&Case { most: 6, ..Case::new(arguments) }, inputs.path());
    check(&Case { most: 2, ..Case::new(&format!("{arguments} --openings book.epd")) }, inputs.path());
    let shard = format!("{arguments} --shard 0/2 --concurrency 1");
    check(&Case { most: 4, ..Case::new(&shard) }, inputs.path());
    let arguments = "match a.safetensors b.safetensors --equal-cost 20 --hash 1 --pairs 1 --out played.out";
    check(&Case { is_timed: true, most: 1, ..Case::new(arguments) }, inputs.path());
}

/// A short training, which is resumed.
fn training(epochs: u32) -> Case {
    let arguments = format!(
        "train piece --l1 8 --hidden 4 --batch-size 64 --epochs {epochs} --data samples.fsd --out run.out --threads 1 \
         --device cpu"
    );
    // The state after each epoch.
    let changing = &["checkpoint.safetensors", "best.safetensors", "last.safetensors", "validation.losses"];
    Case { again: format!("{arguments} --resume"), changing, most: 5, ..Case::new(&arguments) }
}

/// A short experiment, which goes on when it is given again.
fn experiment() -> Case {
    let changing = &["checkpoint.safetensors", "best.safetensors", "last.safetensors", "validation.losses", ".json"];
    Case { changing, most: 1, ..Case::new("run small.toml --out made.out") }
}

#[test]
fn experiments() {
    check(&experiment(), inputs().path());
}

#[test]
fn trainings() {
    check(&training(2), inputs().path());
}
