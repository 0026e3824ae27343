//! Every call with which fsbench writes fails in turn: a full disk, an I/O error, a refused rename. Nothing half-written
//! looks whole, the message names the file, and the command given again makes what it would have made. Interrupted and
//! short writes change nothing. The faults come from `shim.c`, preloaded into the program as users run it.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[cfg(feature = "train")]
mod claims;
#[path = "../common/mod.rs"]
mod common;
mod disks;
#[path = "../engines/mod.rs"]
mod engines;
mod kills;
mod shim;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use engines::Script;
use fsbench::features::FeatureSet;
use fsbench::net::{NetFile, Origin, Scheme, quantise};
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Position};
use shim::{Faults, shim};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fsbench");

/// Moves knights to and fro until the game ends by repetition.
const SHUFFLE: &str = r#"set -- $moves
    case $(($# % 4)) in 0) m=g1f3;; 1) m=g8f6;; 2) m=f3g1;; *) m=f6g8;; esac
    echo "info depth 1 score cp 2$(($# % 10))"; echo "bestmove $m""#;

/// An experiment that trains for a moment and measures.
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
"#;

/// Games with evaluations, three networks, an engine, an experiment and results.
fn inputs() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("games.pgn"), games(12)).unwrap();
    Script::new(SHUFFLE).write(&path("engine"));
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

/// Contents of files by their paths.
type Files = BTreeMap<String, Vec<u8>>;

/// All files below a folder by their relative paths; a link's content is its target.
fn files(folder: &Path) -> Files {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inner) = folders.pop() {
        for path in fs::read_dir(inner).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_symlink() {
                let target = fs::read_link(&path).unwrap().display().to_string();
                found.insert(name, target.replace(&folder.display().to_string(), "").into_bytes());
            } else if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    fs::create_dir(to).unwrap();
    for path in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, copied).unwrap();
        }
    }
}

/// A command and how it is given again after a failure.
#[derive(Clone)]
struct Case {
    arguments: String,
    again: String,
    /// Files that change while the command runs, and are whole at any time.
    changing: &'static [&'static str],
    /// At most so many calls of a kind fail, drawn at random; the variable FSBENCH_FAULTS gives another number.
    most: usize,
}

impl Case {
    fn new(arguments: &str) -> Case {
        Case { arguments: arguments.into(), again: arguments.into(), changing: &[], most: 40 }
    }
}

/// Links to networks, which an experiment makes where the file system lets it.
const LINKS: &str = "made/networks/";

/// What a command makes when nothing disturbs it.
struct Undisturbed {
    /// The files before it.
    given: Files,
    whole: Files,
    /// Names of the files that are the same whenever the command is run; others have times in them.
    stable: BTreeSet<String>,
}

impl Undisturbed {
    /// `whole` and `other`: the files after two runs.
    fn new(given: Files, whole: Files, other: &Files) -> Undisturbed {
        let stable = whole.iter().filter(|(name, bytes)| other.get(*name) == Some(bytes));
        let stable: BTreeSet<String> = stable.map(|(name, _)| name.clone()).collect();
        Undisturbed { given, whole, stable }
    }

    /// Fails if every file that the command makes has times in it, because then comparing files proves nothing.
    fn with_stable_files(self) -> Undisturbed {
        assert!(self.stable.iter().any(|name| !self.given.contains_key(name)), "every file has times in it");
        self
    }

    /// The files after a command that succeeded.
    fn check_finished(&self, found: &Files, about: &str) {
        for name in &self.stable {
            let is_absent_link = name.starts_with(LINKS) && !found.contains_key(name);
            assert!(is_absent_link || found.get(name) == self.whole.get(name), "{about}: {name} differs");
        }
    }

    /// The files after a command that failed or was killed: none is half-written under its name.
    fn check_unfinished(&self, found: &Files, changing: &[&str], about: &str) {
        for (name, bytes) in found {
            let is_whole = self.given.get(name) == Some(bytes)
                || self.stable.contains(name) && self.whole.get(name) == Some(bytes);
            let may_differ = name.ends_with(".part")
                || name.ends_with(".journal")
                || self.whole.contains_key(name) && !self.stable.contains(name)
                || changing.iter().any(|changing| name.ends_with(changing));
            assert!(is_whole || may_differ, "{about}: {name} is neither as before nor whole");
            let is_json = !name.ends_with(".json") || serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
            assert!(is_json, "{about}: {name} is half a document");
        }
    }

    /// The message names a file that the command makes.
    fn check_message(&self, message: &str, about: &str) {
        let made = self.whole.keys().filter(|name| !self.given.contains_key(*name));
        let named: BTreeSet<&str> = made.flat_map(|name| name.split('/')).chain(["journal", "cache"]).collect();
        assert!(named.iter().any(|name| message.contains(name)), "{about} names no file");
    }
}

/// Makes each call of the command fail in turn.
fn check(case: &Case, inputs: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let Some(shim) = shim(scratch.path()) else { return };
    let folder = scratch.path().join("folder");
    let counts = scratch.path().join("counts");
    let with = |arguments: &str, more: &[(&str, &str)]| {
        let preloaded = [("LD_PRELOAD", shim.to_str().unwrap()), ("FAULT_FOLDER", folder.to_str().unwrap())];
        run(&folder, arguments, &[&preloaded, more].concat())
    };
    let clean = || {
        copy(inputs, &folder);
        let output = with(&case.arguments, &[("FAULT_COUNTS", counts.to_str().unwrap())]);
        assert!(output.status.success(), "{}: {}", case.arguments, stderr(&output));
        files(&folder)
    };
    let undisturbed = Undisturbed::new(files(inputs), clean(), &clean()).with_stable_files();
    let faults = Faults::new(&counts, case.most);
    assert!(faults.number_of("write") > 0 && faults.number_of("rename") > 0, "{}: {faults:?}", case.arguments);
    for fault in faults.drawn() {
        copy(inputs, &folder);
        let output = with(&case.arguments, &[("FAULT", &fault.text())]);
        let found = files(&folder);
        let about = || format!("{} with {}: {:?} {}", case.arguments, fault.text(), output.status, stderr(&output));
        if output.status.success() {
            undisturbed.check_finished(&found, &about());
            continue;
        }
        assert!(!fault.is_harmless() && output.status.code() == Some(1), "{}", about());
        undisturbed.check_message(&stderr(&output), &about());
        let is_part_left = found.keys().any(|name| name.ends_with(".part"));
        assert!(!is_part_left || fault.kind == "unlink", "{}: a part is left", about());
        undisturbed.check_unfinished(&found, case.changing, &about());
        let again = with(&case.again, &[]);
        assert!(again.status.success(), "{}, then {}", about(), stderr(&again));
        undisturbed.check_finished(&files(&folder), &about());
    }
}

#[test]
fn builds_and_conversions() {
    let inputs = inputs();
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
        "net convert simple.safetensors c.bin --to bullet",
        "select piece --top 20 --data games.pgn --out x.idx",
        "openings --net a.safetensors --count 3 --out o.epd",
    ] {
        check(&Case::new(arguments), inputs.path());
    }
}

#[test]
fn reports_and_exports() {
    let inputs = inputs();
    // A report makes many files, and takes a second.
    check(&Case { most: 1, ..Case::new("report results --out made") }, inputs.path());
    for arguments in [
        "dataset stats games.pgn --out stats",
        "export compact --lang rust --out exported",
        "export a.safetensors --lang c --out exported",
    ] {
        check(&Case { most: 4, ..Case::new(arguments) }, inputs.path());
    }
}

#[test]
fn generated_games() {
    let inputs = inputs();
    for out in ["g.pgn", "g.pgn.zst", "g.binpack", "g.fsd"] {
        let arguments = "dataset generate --engine ./engine --nodes 5 --games 3 --random-plies 0 --out";
        check(&Case::new(&format!("{arguments} {out}")), inputs.path());
    }
}

#[test]
fn matches() {
    let arguments = "match a.safetensors b.safetensors --nodes 40 --pairs 2 --out played";
    check(&Case { most: 12, ..Case::new(arguments) }, inputs().path());
}

/// A short training, which is resumed.
#[cfg(feature = "train")]
fn training(epochs: u32) -> Case {
    let arguments = format!(
        "train piece --l1 8 --hidden 4 --batch-size 64 --epochs {epochs} --data samples.fsd --out run --threads 1 --device cpu"
    );
    // The state after each epoch.
    let changing = &["checkpoint.safetensors", "best.safetensors", "last.safetensors", "validation.losses"];
    Case { again: format!("{arguments} --resume"), changing, most: 5, ..Case::new(&arguments) }
}

/// A short experiment, which goes on when it is given again.
#[cfg(feature = "train")]
fn experiment() -> Case {
    let changing = &["checkpoint.safetensors", "best.safetensors", "last.safetensors", "validation.losses", ".json"];
    Case { changing, most: 1, ..Case::new("run small.toml --out made") }
}

#[cfg(feature = "train")]
#[test]
fn experiments() {
    check(&experiment(), inputs().path());
}

#[cfg(feature = "train")]
#[test]
fn trainings() {
    check(&training(2), inputs().path());
}
