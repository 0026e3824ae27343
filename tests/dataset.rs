//! `fsbench dataset` as a user runs it: building, inspecting, broken input and full disks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "common/skip.rs"]
mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fsbench::data::{DataError, Fsd, GameResult, Method, games};
use fsbench::output::checked::{content_of, in_envelope};
use fsbench::pipeline::{BuildError, Manifest, manifest_path, open_or_build};
use tempfile::TempDir;

const GAME: &str = "[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 { [%eval 0.3] } 1... e5 { [%eval 0.35] } \
    2. Qh5 { [%eval -0.5] } 2... Nc6 { [%eval -0.4] } 3. Bc4 { [%eval -0.45] } 3... Nf6 { [%eval #1] } \
    4. Qxf7# 1-0\n\n";

fn fsbench(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(arguments).current_dir(folder).env("FSBENCH_CACHE", folder.join("cache")).output().unwrap()
}

fn check(output: &Output, status: i32, stderr: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(text.contains(stderr), "{text:?} lacks {stderr:?}");
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with a `games.pgn` that contains these texts.
fn folder(texts: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("games.pgn"), texts.concat()).unwrap();
    folder
}

fn build(folder: &Path, more: &[&str]) -> Output {
    let arguments = ["dataset", "build", "games.pgn", "--out", "x.fsd", "--format", "json", "--min-ply", "0"];
    fsbench(&[&arguments[..], more].concat(), folder)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn samples_carry_the_score_of_their_own_position() {
    let folder = folder(&[GAME]);
    let output = build(folder.path(), &["--method", "eval"]);
    check(&output, 0, "");
    let summary = json(&output);
    assert_eq!((&summary["samples"], &summary["positions"]), (&6.into(), &7.into()));
    assert_eq!(summary["dropped"], serde_json::json!({ "no-score": 1 }));

    let fsd = Fsd::open(&folder.path().join("x.fsd")).unwrap();
    let samples: Vec<_> = fsd.records().iter().map(|record| record.unpack().unwrap()).collect();
    let scores: Vec<_> = samples.iter().map(|sample| sample.score.unwrap()).collect();
    assert_eq!(scores, [-30, 35, 50, -40, 45, 31_998]);
    assert_eq!(samples.iter().map(|sample| sample.ply.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(samples[0].result, Some(GameResult::Loss));
    assert_eq!(samples[1].result, Some(GameResult::Win));
    assert_eq!(samples[5].mv.map(fsbench::chess::uci_move).as_deref(), Some("h5f7"));

    let manifest = Manifest::of(&fsd).unwrap();
    assert_eq!((manifest.kept, manifest.games, manifest.samples_hash.as_str()), (6, 1, fsd.hash().as_str()));
    assert_eq!(manifest.sources[0].path, "games.pgn");
    assert!(manifest.command.contains(&"build".to_owned()));

    let info = json(&fsbench(&["dataset", "info", "x.fsd", "--format", "json"], folder.path()));
    let expected = serde_json::json!(["fsd", 6, 1, 6, 6, fsd.hash()]);
    let fields = ["format", "samples", "games", "with_score", "with_result", "hash"];
    assert_eq!(serde_json::json!(fields.map(|field| &info[field])), expected);

    let info = json(&fsbench(&["dataset", "info", "games.pgn", "--format", "json"], folder.path()));
    assert_eq!(
        serde_json::json!(["format", "samples", "with_score"].map(|f| &info[f])),
        serde_json::json!(["pgn", 7, 6])
    );
}

#[test]
fn filters_drop_and_count() {
    let folder = folder(&[GAME]);
    let check = |more: &[&str], samples: u64, dropped: serde_json::Value| {
        let summary = json(&build(folder.path(), &[more, &["--force"]].concat()));
        assert_eq!((&summary["samples"], &summary["dropped"]), (&samples.into(), &dropped), "{more:?}");
    };
    check(&["--method", "pqr"], 7, serde_json::json!({}));
    // The positions have 20, 20, 29, 26, 39, 28 and 43 legal moves.
    check(&["--method", "pqr", "--min-moves", "29"], 3, serde_json::json!({ "few-moves": 4 }));
    check(&["--method", "pqr", "--min-moves", "30"], 2, serde_json::json!({ "few-moves": 5 }));
    let dropped = serde_json::json!({ "no-score": 1, "not-quiet": 1 });
    check(&["--method", "eval", "--filter", "quiet"], 5, dropped);
    let dropped = serde_json::json!({ "no-score": 1, "not-drawn": 4 });
    check(&["--method", "eval", "--per-game", "2"], 2, dropped);
}

/// Of six plies with 20 scored samples each; one position of each game has no score.
#[test]
fn balanced_samples_are_as_many_as_asked_for() {
    let folder = folder(&[&GAME.repeat(20)]);
    let balanced = |samples: &str| {
        build(folder.path(), &["--method", "eval", "--balance", "ply", "--samples", samples, "--force"])
    };
    for (samples, found) in [("1", 1), ("4", 4), ("50", 50), ("119", 119), ("500", 120)] {
        let output = balanced(samples);
        check(&output, 0, "");
        assert_eq!(json(&output)["samples"], found, "--samples {samples}");
    }
    let output = balanced("0");
    check(&output, 2, "120 thinned out");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("--needs result"), "{output:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = folder(&[&GAME.repeat(700)]);
    let bytes = |seed: &str, threads: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
        let arguments = ["dataset", "build", "games.pgn", "--out", "x.fsd", "--method", "pqr", "--per-game", "2"];
        command.args(arguments).args(["--force", "--seed", seed]).env("RAYON_NUM_THREADS", threads);
        check(&command.current_dir(folder.path()).output().unwrap(), 0, "");
        fs::read(folder.path().join("x.fsd")).unwrap()
    };
    assert_eq!(bytes("1", "1"), bytes("1", "4"));
    assert_ne!(bytes("1", "1"), bytes("2", "1"));
}

#[test]
fn broken_games_are_skipped_counted_and_named() {
    let variant = "[Variant \"Chess960\"]\n\n1. e4 *\n\n";
    let folder = folder(&[
        GAME,
        "[Event \"b\"]\n\n1. e4 \u{fffd}\u{1}garbage { [\n\n",
        GAME,
        variant,
        "[A \"\"]\n1. Ke5 *\n\n",
        "[Result \"1-0\"]\n\n1. e4 e5 0-1\n\n",
        GAME,
    ]);
    let output = build(folder.path(), &["--method", "pqr"]);
    check(&output, 0, "4 games of games.pgn were skipped");
    check(&output, 0, "result contradicts the Result tag at byte");
    check(&output, 0, &format!("game at byte {}: garbage at byte {}", GAME.len(), GAME.len() + 19));
    let summary = json(&output);
    assert_eq!((&summary["games"], &summary["skipped_games"]), (&3.into(), &4.into()));
    let expected = serde_json::json!({ "variant": 1, "garbage": 1, "illegal-move": 1, "contradictory-result": 1 });
    assert_eq!(summary["skipped"][0]["by_reason"], expected);
}

/// Every verb that reads scores names the unit that it took whole numbers for, and takes the options.
#[test]
fn scores_without_a_point_are_named() {
    let chess_base =
        "[Event \"x\"]\n[Result \"1-0\"]\n\n1. d4 {[%eval 23,14]} d5 {[%eval -17,27]} 2. c4 {[%eval ?]} 1-0\n\n";
    let folder = folder(&[chess_base]);
    let said = "2 scores without a point (`[%eval 23,14]`) were read as centipawns, White's view";
    let lost = "1 comments look like scores and were not read: `[%eval ?]`";
    let convert = ["dataset", "convert", "games.pgn", "out.txt", "--force", "--format", "json"];
    let read = |more: &[&str], scores: [&str; 3]| {
        let output = fsbench(&[&convert[..], more].concat(), folder.path());
        let text = fs::read_to_string(folder.path().join("out.txt")).unwrap();
        let found: Vec<_> = text.lines().map(|line| line.split(',').nth(1).unwrap()).collect();
        assert_eq!(found, scores, "{more:?}");
        output
    };
    let output = read(&[], ["", "-23", "-17"]);
    check(&output, 0, said);
    check(&output, 0, lost);
    assert_eq!(json(&output)["notes"]["whole_numbers_read_as"], "centipawns");
    read(&["--eval-view", "mover"], ["", "-23", "17"]);
    let output = read(&["--eval-unit", "cp"], ["", "-23", "-17"]);
    assert_eq!(json(&output)["notes"]["unit_was_given"], true);
    for verb in ["info", "stats", "verify"] {
        let notes = &json(&fsbench(&["dataset", verb, "games.pgn", "--format", "json"], folder.path()))["notes"];
        assert_eq!((&notes["whole_numbers"], &notes["unread_scores"]), (&2.into(), &1.into()), "{verb}");
    }
    let text = fsbench(&["dataset", "info", "games.pgn"], folder.path()).stdout;
    assert!(String::from_utf8(text).unwrap().contains(said));
    let output = build(folder.path(), &["--method", "eval"]);
    check(&output, 0, said);
    assert_eq!(json(&output)["notes"][0]["unread_scores"], 1);
}

#[test]
fn compressed_games_read_the_same() {
    use std::io::Write;
    let folder = folder(&[&GAME.repeat(3)]);
    let path = |name: &str| folder.path().join(name);
    let text = GAME.repeat(3);
    let plain: Vec<_> = games(&path("games.pgn")).unwrap().map(Result::unwrap).collect();
    assert_eq!(plain.len(), 3);
    fs::write(path("a.pgn.zst"), zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    fs::write(path("a.pgn.gz"), gzip.finish().unwrap()).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip2.write_all(text.as_bytes()).unwrap();
    fs::write(path("a.pgn.bz2"), bzip2.finish().unwrap()).unwrap();
    for name in ["a.pgn.zst", "a.pgn.gz", "a.pgn.bz2"] {
        let read: Vec<_> = games(&path(name)).unwrap().map(Result::unwrap).collect();
        assert_eq!(read, plain, "{name}");
    }
}

#[test]
fn a_truncated_stream_yields_its_games_then_an_error() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("games.pgn");
    let mut text = String::new();
    for number in 0..3_000u32 {
        text.push_str(&GAME.replace("\"a\"", &format!("\"{}\"", number.wrapping_mul(2_654_435_761))));
    }
    let compressed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    for cut in [compressed.len() / 2, compressed.len() - 1] {
        fs::write(&path, &compressed[..cut]).unwrap();
        let read: Vec<_> = games(&path).unwrap().collect();
        let (last, before) = read.split_last().unwrap();
        assert!(
            matches!(last, Err(DataError::BrokenStream { games, .. }) if *games as usize == before.len()),
            "{last:?}"
        );
        assert!(before.len() > 100 && before.iter().all(Result::is_ok), "{}", before.len());
        let output = build(folder.path(), &["--method", "pqr"]);
        check(&output, 1, "within its zstd stream");
        assert_eq!(names(folder.path()), ["games.pgn"]);
    }
}

#[test]
fn damage_to_a_built_file_is_found() {
    let folder = folder(&[&GAME.repeat(1_000)]);
    check(&build(folder.path(), &["--method", "pqr"]), 0, "");
    let path = folder.path().join("x.fsd");
    let good = fs::read(&path).unwrap();
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Fsd::open(&path).map(drop)
    };
    open(&good).unwrap();
    let flip = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        open(&bytes).expect_err("damaged")
    };
    assert!(matches!(flip(0), DataError::NotFsd { .. }));
    assert!(matches!(flip(8), DataError::Version { found: 5, .. }));
    assert!(matches!(flip(60), DataError::Checksum { first: 0, .. }));
    let block = 4096 * 40;
    let second = 256 + block as u64;
    assert!(matches!(flip(300 + block), DataError::Checksum { first, .. } if first == second));
    assert!(matches!(flip(good.len() - 1), DataError::Checksum { first, .. } if first == second));
    for cut in [0, 100, 256, 300, good.len() - 40, good.len() - 1] {
        let error = open(&good[..cut]).expect_err("cut off");
        assert!(matches!(error, DataError::Length { .. } | DataError::NotFsd { .. }), "{error}");
    }
    assert!(matches!(open(&[&good[..], &[0]].concat()), Err(DataError::Length { .. })));
    let output = fsbench(&["dataset", "info", "x.fsd"], folder.path());
    check(&output, 2, "by its header");
}

#[test]
fn invalid_requests_are_refused() {
    let folder = folder(&["[Event \"x\"]\n\n1. e4 e5 1-0\n"]);
    let check = |arguments: &[&str], status, stderr: &str| check(&fsbench(arguments, folder.path()), status, stderr);
    let build = ["dataset", "build", "games.pgn", "--out"];
    check(&["dataset", "info", "missing.pgn"], 2, "cannot read missing.pgn");
    let late = ["x.fsd", "--method", "eval", "--min-ply", "20"];
    check(&[&build[..], &late].concat(), 2, "yields no sample for --method eval");
    check(&[&build[..], &["x.fsd", "--method", "eval"]].concat(), 2, "takes --needs result");
    check(&[&build[..], &["x.fsd", "--method", "pqr", "--min-moves", "1"]].concat(), 2, "at least 2");
    check(&[&build[..], &["games.pgn", "--method", "pqr"]].concat(), 2, "exists already");
    check(&[&build[..], &["no/x.fsd", "--method", "pqr"]].concat(), 1, "cannot write no/x.fsd");
    check(&[&build[..], &[".", "--method", "pqr", "--force"]].concat(), 2, "names no file");
    fs::write(folder.path().join("b.binpack"), b"BINP\0\0\0\0").unwrap();
    check(&["dataset", "build", "b.binpack", "--out", "x.fsd", "--method", "pqr"], 2, "holds no game");
    fs::write(folder.path().join("x.7z"), b"7z\xbc\xaf\x27\x1c\0\x04").unwrap();
    check(
        &["dataset", "build", "x.7z", "--out", "x.fsd", "--method", "pqr"],
        2,
        "a 7z archive, which is not supported",
    );
    fs::write(folder.path().join("noise"), [0x80u8, 1, 2, 3].repeat(100)).unwrap();
    check(&["dataset", "build", "noise", "--out", "x.fsd", "--method", "pqr"], 2, "is binary data");
    assert_eq!(names(folder.path()), ["b.binpack", "games.pgn", "noise", "x.7z"]);
}

/// A file-size limit simulates a full disk: writes fail in the same way.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let folder = folder(&[&GAME.repeat(2_000)]);
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" dataset build games.pgn --out x.fsd --method pqr";
    let output = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_fsbench")]).current_dir(&folder).output();
    check(&output.unwrap(), 1, "cannot write x.fsd");
    assert_eq!(names(folder.path()), ["games.pgn"]);
}

#[test]
fn a_manifest_of_other_samples_is_refused() {
    let folder = folder(&[GAME]);
    check(&build(folder.path(), &["--method", "pqr"]), 0, "");
    let path = folder.path().join("x.fsd");
    let manifest = manifest_path(&path);
    let hash = Fsd::open(&path).unwrap().hash();
    let text = fs::read_to_string(&manifest).unwrap();
    let content = content_of(text.trim_end()).unwrap();
    fs::write(&manifest, in_envelope(&content.replace(&hash, &"0".repeat(64)))).unwrap();
    assert!(matches!(Manifest::of(&Fsd::open(&path).unwrap()), Err(DataError::Manifest { .. })));
}

#[test]
fn games_are_built_once_into_the_cache() {
    let folder = folder(&[&GAME.repeat(5)]);
    let games = folder.path().join("games.pgn");
    let cache = folder.path().join("cache");
    let open = |path: &Path, method| open_or_build(path, method, Some(&cache)).map(|fsd| fsd.path().to_path_buf());
    let first: PathBuf = open(&games, Method::Pqr).unwrap();
    let written = fs::metadata(&first).unwrap().modified().unwrap();
    assert_eq!(open(&games, Method::Pqr).unwrap(), first);
    assert_eq!(fs::metadata(&first).unwrap().modified().unwrap(), written);
    assert_eq!(open(&first, Method::Pqr).unwrap(), first);
    assert!(matches!(open(&first, Method::Eval), Err(BuildError::Data(DataError::Method { .. }))));
    // A damaged file in the cache is built again; changed games get another file.
    fs::write(&first, b"damaged").unwrap();
    assert_eq!(open(&games, Method::Pqr).unwrap(), first);
    fs::write(&games, GAME).unwrap();
    assert_ne!(open(&games, Method::Pqr).unwrap(), first);
}

#[test]
fn lichess_evals_build_to_the_same_samples_twice() {
    let Some(source) = skip::shared_data("lichess-evals.pgn.zst") else { return };
    let folder = TempDir::new().unwrap();
    let build = || {
        let arguments = ["dataset", "build", source.to_str().unwrap(), "--method", "eval", "--out", "x.fsd", "--force"];
        let output = fsbench(&[&arguments[..], &["--format", "json", "--per-game", "3"]].concat(), folder.path());
        check(&output, 0, "");
        json(&output)
    };
    let first = build();
    assert_eq!((&first["games"], &first["skipped_games"]), (&9_899.into(), &0.into()));
    assert_eq!(first["hash"], build()["hash"]);
}

/// The mean is that of the scores themselves; their distribution is cut at 3,000 centipawns.
#[test]
fn the_mean_score_is_not_cut() {
    let game = "[Event \"a\"]\n\n1. e4 { [%eval 60.0] } e5 { [%eval 0.04] } 2. Nf3 { [%eval #3] } Nc6 1-0\n\n";
    let folder = folder(&[game]);
    let stats = json(&fsbench(&["dataset", "stats", "games.pgn", "--format", "json"], folder.path()));
    assert_eq!(stats["mean_score"], -2998.0);
    assert_eq!(stats["scores"], serde_json::json!({ "-3000": 1, "0": 1 }));
    let text = String::from_utf8(fsbench(&["dataset", "stats", "games.pgn"], folder.path()).stdout).unwrap();
    assert!(text.contains("-2998.00"), "{text}");
}

/// The statistics of what a training reads are those of the file that a build with the same options makes.
#[test]
fn statistics_of_what_a_training_reads() {
    let folder = folder(&[GAME]);
    let options = ["--method", "eval", "--min-ply", "1", "--filter", "quiet"];
    let built = build(folder.path(), &options[..2]);
    check(&built, 0, "");
    let arguments = ["dataset", "build", "games.pgn", "--out", "quiet.fsd", "--format", "json"];
    let built = fsbench(&[&arguments[..], &options].concat(), folder.path());
    check(&built, 0, "");
    let stats = |file: &str, options: &[&str]| {
        let output = fsbench(&[&["dataset", "stats", file, "--format", "json"], options].concat(), folder.path());
        check(&output, 0, "");
        json(&output)
    };
    let mut read = stats("games.pgn", &options);
    assert_eq!(read["left_out"], json(&built)["dropped"]);
    assert_eq!(read["left_out"]["early"], 1);
    let file = stats("quiet.fsd", &[]);
    assert!(read["samples"].as_u64().unwrap() < stats("games.pgn", &[])["samples"].as_u64().unwrap());
    read.as_object_mut().unwrap().remove("left_out");
    read["path"] = "quiet.fsd".into();
    assert_eq!(read, file);
    check(&fsbench(&["dataset", "stats", "games.pgn", "--min-ply", "3"], folder.path()), 2, "--method");
}
