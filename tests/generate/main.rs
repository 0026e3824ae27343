//! `fsbench dataset generate` with good and faulty engines, which are shell scripts.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../engines/mod.rs"]
mod engines;

mod books;
mod networks;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use engines::{Script, stockfish};
use fsbench::data::{Fsd, PgnGame, Record, games};
use fsbench::features::FeatureSet;
use fsbench::net::{NetFile, Origin, Scheme, quantise};
use fsbench::pipeline::Manifest;
use shakmaty::Position;
use tempfile::TempDir;

fn engine(folder: &Path, on_go: &str) {
    Script::new(on_go).write(&folder.join("engine"));
}

/// Moves knights to and fro until the game ends by repetition.
const SHUFFLE: &str = r#"set -- $moves
    case $(($# % 4)) in 0) m=g1f3;; 1) m=g8f6;; 2) m=f3g1;; *) m=f6g8;; esac
    echo "info depth 1 score cp 2$(($# % 10))"; echo "bestmove $m""#;

fn generate(folder: &Path, more: &[&str]) -> Output {
    let arguments = [
        "dataset",
        "generate",
        "--engine",
        "./engine",
        "--nodes",
        "5",
        "--games",
        "6",
        "--out",
        "g.pgn",
        "--patience",
        "2",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(arguments).args(more).current_dir(folder).output().unwrap()
}

/// `dataset generate` with these arguments only.
fn run(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(["dataset", "generate"]).args(arguments.split(' ')).current_dir(folder).output().unwrap()
}

fn read(folder: &Path, name: &str) -> Vec<PgnGame> {
    games(&folder.join(name)).unwrap().map(Result::unwrap).collect()
}

fn check(output: &Output, status: i32, stderr: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(text.contains(stderr), "{text:?} lacks {stderr:?}");
}

#[test]
fn games_have_evals_and_do_not_depend_on_concurrency() {
    let folder = TempDir::new().unwrap();
    engine(folder.path(), SHUFFLE);
    let bytes = |concurrency: &str| {
        let more = ["--random-plies", "0", "--concurrency", concurrency, "--force"];
        check(&generate(folder.path(), &more), 0, "");
        fs::read_to_string(folder.path().join("g.pgn")).unwrap()
    };
    let text = bytes("1");
    assert_eq!(text, bytes("3"));
    let expected = "[Event \"Self-play\"]\n[Round \"1\"]\n[Result \"1/2-1/2\"]\n\n{ [%eval 0.20] } \
        1. Nf3 { [%eval -0.21] } 1... Nf6 { [%eval 0.22] } 2. Ng1 { [%eval -0.23] } 2... Ng8 { [%eval 0.24] } 3. Nf3 ";
    assert!(text.starts_with(expected), "{text}");
    let games = read(folder.path(), "g.pgn");
    assert_eq!(games.len(), 6);
    assert!(games.iter().all(|game| game.moves.len() == 8));
    assert!(!folder.path().join("g.pgn.journal").exists());
}

/// An engine that dies after so many searches, and then cannot be started until it is repaired.
fn dies_after(folder: &Path, searches: u32) {
    let dies = format!("[ ! -e repaired ] && [ -e count ] && [ $(wc -l < count) -gt {searches} ] && exit 3");
    let on_go = format!("echo x >> count; {dies}; {SHUFFLE}");
    Script { on_uci: &dies, ..Script::new(&on_go) }.write(&folder.join("engine"));
}

/// Repairs the engine of [`dies_after`]. Another program would be another engine.
fn repair(folder: &Path) {
    fs::write(folder.join("repaired"), "").unwrap();
}

#[test]
fn an_interrupted_run_resumes() {
    let folder = TempDir::new().unwrap();
    let more = ["--random-plies", "0"];
    engine(folder.path(), SHUFFLE);
    check(&generate(folder.path(), &more), 0, "");
    let uninterrupted = fs::read(folder.path().join("g.pgn")).unwrap();
    fs::remove_file(folder.path().join("g.pgn")).unwrap();

    // The engine dies in the fourth game for good.
    dies_after(folder.path(), 28);
    let output = generate(folder.path(), &more);
    check(&output, 1, "ended while starting (exit status: 3); 3 finished games are kept in g.pgn.journal");
    assert!(!folder.path().join("g.pgn").exists());

    // The game of an incomplete line is played again.
    let journal = folder.path().join("g.pgn.journal");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 20]).unwrap();
    repair(folder.path());
    let other = generate(folder.path(), &["--random-plies", "0", "--seed", "9"]);
    check(&other, 2, "an interrupted run with other settings");
    let repaired = fs::read(folder.path().join("engine")).unwrap();
    engine(folder.path(), SHUFFLE);
    check(&generate(folder.path(), &more), 2, "about.engines.0.program: the program's file has changed");
    fs::write(folder.path().join("engine"), repaired).unwrap();
    let output = generate(folder.path(), &[&more[..], &["--format", "json"]].concat());
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["resumed"], &summary["engine"]), (&2.into(), &"Fake 1".into()));
    assert_eq!(fs::read(folder.path().join("g.pgn")).unwrap(), uninterrupted);
}

/// Fewer games than an interrupted run has played: the others stay in the journal.
#[test]
fn finished_games_beyond_the_number_are_kept() {
    let folder = TempDir::new().unwrap();
    dies_after(folder.path(), 36);
    check(&generate(folder.path(), &["--random-plies", "0"]), 1, "finished games are kept in g.pgn.journal");
    let journal = folder.path().join("g.pgn.journal");
    let kept = fs::read_to_string(&journal).unwrap().lines().count() - 1;
    assert!(kept > 2, "{kept}");
    repair(folder.path());
    let few = "--engine ./engine --nodes 5 --games 2 --out g.pgn --random-plies 0";
    let output = run(folder.path(), few);
    check(&output, 0, "");
    assert!(String::from_utf8_lossy(&output.stdout).contains("stay in g.pgn.journal"), "{output:?}");
    assert_eq!((read(folder.path(), "g.pgn").len(), journal.exists()), (2, true));
    let output = generate(folder.path(), &["--random-plies", "0", "--force", "--format", "json"]);
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["resumed"], &summary["unused"]), (&kept.into(), &serde_json::Value::Null));
    assert_eq!((read(folder.path(), "g.pgn").len(), journal.exists()), (6, false));
}

#[test]
fn engines_that_misbehave_are_named() {
    let check = |on_go: &str, stderr: &str| {
        let folder = TempDir::new().unwrap();
        engine(folder.path(), on_go);
        let begin = Instant::now();
        let output = generate(folder.path(), &["--random-plies", "0", "--concurrency", "6"]);
        check(&output, 1, stderr);
        check(&output, 1, "it failed in 6 games in a row");
        assert!(begin.elapsed() < Duration::from_secs(30), "{on_go}");
        assert!(!folder.path().join("g.pgn").exists());
    };
    check("echo bestmove e2e5", "that move is illegal");
    check("echo 'bestmove (none)'", "that is not a move");
    check("echo bestmove", "that is not a move");
    check("echo bestmove e2e4", "no score came with it");
    check("echo nonsense; echo bestmove banana", "that is not a move");
    check("exit 7", "ended while searching (exit status: 7)");
    check("kill -9 $$", "ended while searching (signal: 9");
    check(":", "gave no answer within 2 s while searching");
    check("while :; do echo info string busy; done", "gave no answer within 2 s while searching");
}

#[test]
fn programs_that_are_not_engines_are_refused() {
    let folder = TempDir::new().unwrap();
    let with = |engine: &str| {
        let arguments = ["dataset", "generate", "--engine", engine, "--nodes", "5", "--games", "1", "--out", "g.pgn"];
        Command::new(env!("CARGO_BIN_EXE_fsbench")).args(arguments).current_dir(&folder).output().unwrap()
    };
    check(&with("./none"), 2, "cannot start the engine ./none");
    check(&with("true"), 1, "the engine true ended while starting");
    assert!(!folder.path().join("g.pgn").exists());
    assert!(!folder.path().join("g.pgn.journal").exists());
}

/// A file-size limit simulates a full disk: writes fail in the same way.
#[test]
fn a_full_disk_keeps_the_finished_games() {
    let folder = TempDir::new().unwrap();
    engine(folder.path(), SHUFFLE);
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" dataset generate --engine ./engine --nodes 5 --games 40 \
        --random-plies 0 --out g.pgn";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_fsbench")]).current_dir(&folder);
    check(&command.output().unwrap(), 1, "cannot add to g.pgn.journal");
    assert!(!folder.path().join("g.pgn").exists());
    let script = script.replace("ulimit -f 2;", "");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_fsbench")]).current_dir(&folder);
    let output = command.output().unwrap();
    check(&output, 0, "");
    assert!(String::from_utf8_lossy(&output.stdout).contains("resumed"));
}

#[test]
fn a_game_in_which_an_engine_fails_is_played_again() {
    let folder = TempDir::new().unwrap();
    engine(folder.path(), SHUFFLE);
    check(&generate(folder.path(), &["--random-plies", "0"]), 0, "");
    let uninterrupted = fs::read(folder.path().join("g.pgn")).unwrap();
    // Each process ends in its 20th search, in the middle of its third game.
    engine(folder.path(), &format!("n=$((n + 1)); [ $n -gt 20 ] && exit 3; {SHUFFLE}"));
    let output = generate(folder.path(), &["--random-plies", "0", "--force", "--format", "json"]);
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["again"], 2);
    assert_eq!(fs::read(folder.path().join("g.pgn")).unwrap(), uninterrupted);
}

/// A game that an engine spoils twice is dropped and counted, in the output, its manifest and the journal.
#[test]
fn games_that_an_engine_spoils_are_dropped() {
    let check_dropped = |trouble: &str, reason: &str, name: &str| {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        // The second game fails in its fourth search, and again in its first.
        let odd = |then: &str| {
            format!(
                "echo x >> count; n=$(wc -l < count); if [ $n -ge 12 ] && [ $n -le 13 ]; then {trouble}; {then}; else \
                 {SHUFFLE}; fi"
            )
        };
        engine(path, &odd(":"));
        let games = "--engine ./engine --nodes 5 --games 6 --patience 1 --random-plies 0";
        let output = run(path, &format!("{games} --out g.pgn"));
        check(&output, 0, "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("g.pgn: 5 games by") && text.contains(&format!("dropped    1 games: {name}")), "{text}");
        let pgn = fs::read_to_string(path.join("g.pgn")).unwrap();
        let rounds: Vec<&str> = pgn.lines().filter_map(|line| line.strip_prefix("[Round ")).collect();
        assert_eq!(rounds, ["\"1\"]", "\"3\"]", "\"4\"]", "\"5\"]", "\"6\"]"]);

        fs::remove_file(path.join("count")).unwrap();
        let output = run(path, &format!("{games} --out g.fsd --format json"));
        check(&output, 0, "");
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&summary["games"], &summary["samples"]), (&5.into(), &40.into()));
        assert_eq!(summary["dropped_games"], serde_json::json!({ reason: 1 }));
        let manifest = Manifest::of(&Fsd::open(&path.join("g.fsd")).unwrap()).unwrap();
        assert_eq!((manifest.games, manifest.spoiled_games.into_values().collect::<Vec<_>>()), (5, vec![1]));
    };
    check_dropped("exit 3", "ended", "the engine ended");
    check_dropped("echo bestmove e2e5", "nonsense", "no usable answer");
    check_dropped("set -- $moves; echo bestmove e2e4", "nonsense", "no usable answer");
    check_dropped(":", "silent", "no answer in time");
}

/// A dropped game stays dropped when an interrupted run goes on.
#[test]
fn dropped_games_stay_in_the_journal() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let dies = "[ ! -e repaired ] && [ -e count ] && n=$(wc -l < count) && [ $n -gt 30 ] && exit 3";
    let on_go = format!("echo x >> count; n=$(wc -l < count); [ $n = 12 ] || [ $n = 13 ] && exit 3; {dies}; {SHUFFLE}");
    Script { on_uci: dies, ..Script::new(&on_go) }.write(&path.join("engine"));
    check(&generate(path, &["--random-plies", "0"]), 1, "; 3 finished games are kept in g.pgn.journal");
    repair(path);
    let output = generate(path, &["--random-plies", "0", "--format", "json"]);
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["resumed"], &summary["games"]), (&4.into(), &5.into()));
    assert_eq!(summary["dropped_games"], serde_json::json!({ "ended": 1 }));
}

/// After ^C the command ends its engines, names the files it leaves, and says how to go on.
#[test]
fn an_interruption_is_explained() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let slow = "[ -e fast ] || [ $(wc -l < count) -le 9 ] || sleep 2";
    engine(path, &format!("echo $$ > process; echo x >> count; {slow}; {SHUFFLE}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    let arguments = "dataset generate --engine ./engine --nodes 5 --games 6 --random-plies 0 --out g.pgn";
    command.args(arguments.split(' ')).current_dir(path);
    let child = common::with_default_signals(&command, &[]).stdout(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(path.join("count")).unwrap_or_default().lines().count() < 10 {
        assert!(Instant::now() < deadline, "the second game did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let told = "interrupted; g.pgn.journal keeps the finished games: give the command again to go on";
    check(&output, 130, told);
    let process = fs::read_to_string(path.join("process")).unwrap();
    let asked = Command::new("kill").args(["-0", process.trim()]).stderr(Stdio::null()).status().unwrap();
    assert!(!asked.success(), "the engine goes on");
    fs::write(path.join("fast"), "").unwrap();
    let output = run(path, &arguments.replace("dataset generate ", ""));
    check(&output, 0, "");
    assert!(String::from_utf8_lossy(&output.stdout).contains("resumed    1 games"), "{output:?}");
}

/// Options that would be without effect, or leave nothing.
#[test]
fn options_without_effect_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    engine(path, SHUFFLE);
    let refused = |more: &str, message: &str| {
        let arguments = format!("--engine ./engine --nodes 5 --games 2 --out g.pgn {more}");
        check(&run(path, &arguments), 2, message);
        assert!(!path.join("g.pgn").exists());
    };
    refused("--random-move-until 9", "--random-move-rate");
    refused("--hash 0", "1..=65536");
    refused("--random-plies 0 --genfens ./engine|Style=x", "leave them out");
    refused("--random-plies 0 --opening-bound 0", "no position is left: 2 games were dropped");
}

/// fsbench's own engine, with its arguments; a few nodes end some of its searches in their first iteration.
#[test]
fn networks_play_games_through_uci() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let set = FeatureSet::shipped("piece").unwrap();
    let net = quantise(&common::random_net(set.num_features(), 16, &[8], 3), &Scheme::stockfish()).unwrap();
    NetFile { origin: Origin::of(&set), net }.save(&path.join("my net.safetensors")).unwrap();
    let program = env!("CARGO_BIN_EXE_fsbench");
    let engine = format!("{program} uci --net 'my net.safetensors'|SoftNodes=false");
    let mut command = Command::new(program);
    command.args(["dataset", "generate", "--engine", &engine]).current_dir(path);
    let output = command.args("--nodes 50 --games 4 --max-plies 60 --out g.fsd".split(' ')).output().unwrap();
    check(&output, 0, "");
    let manifest = Manifest::of(&Fsd::open(&path.join("g.fsd")).unwrap()).unwrap();
    assert_eq!((manifest.games, manifest.spoiled_games.len()), (4, 0));
    let engines = serde_json::to_value(manifest.generated.unwrap().engines).unwrap();
    assert_eq!(engines[0]["arguments"], serde_json::json!(["uci", "--net", "my net.safetensors"]));
}

#[test]
fn two_engines_alternate_colours() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    for (file, name, score) in [("one", "Fake", 10), ("two", "Fake", 20), ("three", "Other", 30)] {
        let script = SHUFFLE.replace("cp 2$(($# % 10))", &format!("cp {score}"));
        let on_uci = r#"echo "option name Style type string"; echo "option name Skill Level type spin min 0 max 20""#;
        Script { name, on_uci, ..Script::new(&script) }.write(&path.join(file));
    }
    let three = "--engine ./one --engine ./two --engine ./three --engine-option 2:style=wild";
    let output =
        run(path, &format!("{three} --nodes 5 --games 7 --out g.pgn --random-plies 0 --format json --concurrency 2"));
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["engine"], "Fake #1, Fake #2, Other");
    let draws: Vec<_> = summary["scores"].as_array().unwrap().iter().map(|score| &score["draws"]).collect();
    assert_eq!(draws, [5, 5, 4]);
    let text = fs::read_to_string(path.join("g.pgn")).unwrap();
    let tags = |tag: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(tag)?.strip_suffix("\"]"));
        lines.map(|name| name.trim_start_matches(" \"").to_owned()).collect::<Vec<_>>()
    };
    let one = "Fake #1";
    let two = "Fake #2";
    let other = "Other";
    assert_eq!(tags("[White"), [one, two, one, other, two, other, one]);
    assert_eq!(tags("[Black"), [two, one, other, one, other, two, two]);
    // White's view: White's first move is followed by the score of Black's search, 0.20, and Black's by White's, 0.10.
    assert!(text.contains("1. Nf3 { [%eval -0.20] } 1... Nf6 { [%eval 0.10] } 2."), "{text}");
    assert!(text.contains("1. Nf3 { [%eval -0.30] } 1... Nf6 { [%eval 0.20] } 2."), "{text}");
    let output = run(path, "--engine ./one --engine-option Stile=x --nodes 5 --games 7 --out h.pgn");
    check(&output, 2, "has no option \"Stile\"; it has: Style");
    let weak = ["--engine-option", "Skill Level=3", "--random-plies", "0", "--force"];
    fs::rename(path.join("one"), path.join("engine")).unwrap();
    check(&generate(path, &weak), 2, "its games cannot be repeated");
}

/// The samples of a file by game and ply.
fn samples(path: &Path) -> BTreeMap<(u32, u16), Record> {
    let fsd = Fsd::open(path).unwrap();
    fsd.records().iter().map(|record| ((record.game(), record.ply().0), *record)).collect()
}

/// Builds `g.fsd` from `g.pgn`, every position.
fn build(folder: &Path) -> BTreeMap<(u32, u16), Record> {
    let arguments = "dataset build g.pgn --method eval --min-ply 0 --force --out g.fsd";
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    check(&command.args(arguments.split(' ')).current_dir(folder).output().unwrap(), 0, "");
    samples(&folder.join("g.fsd"))
}

#[test]
fn samples_equal_those_built_from_the_games() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    engine(path, SHUFFLE);
    let arguments = "--engine ./engine --nodes 5 --games 6 --random-plies 0 --force";
    check(&run(path, &format!("{arguments} --out g.pgn")), 0, "");
    let output = run(path, &format!("{arguments} --out x.fsd --concurrency 3 --format json"));
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["samples"], &summary["plies"]), (&48.into(), &48.into()));
    let built = build(path);
    let direct = samples(&path.join("x.fsd"));
    assert!(built == direct, "{} of {} samples", built.len(), direct.len());

    let fsd = Fsd::open(&path.join("x.fsd")).unwrap();
    let manifest = Manifest::of(&fsd).unwrap();
    assert_eq!((manifest.kept, manifest.positions, manifest.games), (48, 48, 6));
    let manifest = common::content(&fs::read(path.join("x.fsd.json")).unwrap());
    assert_eq!(manifest["generated"]["engines"][0]["name"], "Fake 1");
    assert_eq!(manifest["generated"]["settings"]["limit"]["nodes"], 5);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    check(&command.args(["dataset", "info", "x.fsd"]).current_dir(path).output().unwrap(), 0, "");

    check(&run(path, &format!("{arguments} --max-plies 0 --out y.fsd")), 2, "no position was searched");
    check(&run(path, &format!("{arguments} --out y.epd")), 2, "must end in .pgn, .pgn.zst, .fsd, .binpack");
}

#[test]
fn stockfish_games_do_not_depend_on_concurrency() {
    let Some(stockfish) = stockfish() else { return };
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let same =
        format!("--engine {} --nodes 100 --games 4 --seed 4 --random-plies 2..6 --max-plies 120", stockfish.display());
    let bytes = |name: &str, more: &str| {
        check(&run(path, &format!("{same} --force --out {name} {more}")), 0, "");
        fs::read(path.join(name)).unwrap()
    };
    assert_eq!(bytes("g.pgn", "--concurrency 1"), bytes("g.pgn", "--concurrency 3"));
    assert_eq!(bytes("x.fsd", "--concurrency 1"), bytes("x.fsd", "--concurrency 2"));
    let built = build(path);
    assert!(built.len() > 100);
    assert_eq!(built, samples(&path.join("x.fsd")));

    // A sample's move is the engine's best move, also where a random move was played.
    let random = "--random-move-rate 0.5 --random-move-until 20";
    bytes("x.fsd", random);
    bytes("x.binpack", random);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(["dataset", "convert", "x.binpack", "back.fsd", "--to-unit", "cp"]).current_dir(path);
    check(&command.output().unwrap(), 0, "");
    let fields = |name: &str| {
        let fsd = Fsd::open(&path.join(name)).unwrap();
        let samples = fsd.records().iter().map(|record| record.unpack().unwrap());
        samples.map(|sample| (sample.position, sample.ply, sample.mv, sample.score, sample.result)).collect::<Vec<_>>()
    };
    assert_eq!(fields("x.fsd"), fields("back.fsd"));
    bytes("g.pgn", random);
    let built = build(path);
    let direct = samples(&path.join("x.fsd"));
    let differs = |((game, ply), record): (&(u32, u16), &Record)| {
        let other = direct[&(*game, *ply)];
        assert_eq!((record.score(), record.board()), (other.score(), other.board()));
        (record != &other).then_some(*ply)
    };
    let random: Vec<u16> = built.iter().filter_map(differs).collect();
    assert!(random.len() > 10 && random.iter().all(|ply| *ply < 20), "{random:?}");
}

/// Games from start positions of double Chess960 give the same samples through PGN.
#[test]
fn stockfish_generates_chess960() {
    let Some(stockfish) = stockfish() else { return };
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let same = format!(
        "--engine {} --nodes 100 --games 6 --seed 4 --max-plies 60 --double-chess960 --random-plies 2..4",
        stockfish.display()
    );
    check(&run(path, &format!("{same} --out g.pgn")), 0, "");
    check(&run(path, &format!("{same} --out x.fsd")), 0, "");
    let direct = samples(&path.join("x.fsd"));
    assert_eq!(build(path), direct);
    assert!(direct.values().any(Record::has_chess960_rights));
    assert!(direct.values().any(Record::castles));
    assert_eq!(fs::read_to_string(path.join("g.pgn")).unwrap().matches("[Variant \"Chess960\"]").count(), 6);
    // A binpack takes the games without the rights; it counts the castlings that it lacks.
    let output = run(path, &format!("{same} --out x.binpack --format json"));
    check(&output, 0, "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let lost = direct.values().filter(|record| record.has_chess960_rights());
    let (castling, other): (Vec<&Record>, Vec<&Record>) = lost.partition(|record| record.castles());
    assert_eq!(summary["account"]["left_out"]["chess960-castling"], castling.len());
    assert_eq!(summary["account"]["lost"]["castling-rights"], other.len());
}
