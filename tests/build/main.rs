//! `dataset build`: several inputs, weights, standard input, filters, thinning and shuffling; shards and their merge.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
#[cfg(unix)]
#[path = "../engines/mod.rs"]
mod engines;
mod shards;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fsbench::data::{Fsd, Method, Needs, Record, ScoreUnit, Split};
use fsbench::pipeline::build::{Balance, BalanceBy, Dedup, GameSplit, PerGame};
use fsbench::pipeline::{BuildJob, BuildOptions, WeightedInput, build};
use fsbench::units::Seed;
use tempfile::TempDir;

/// Random games with results, ratings, speeds and a score after every move.
fn games(count: u64) -> String {
    let tags = |game: u64| {
        let result = ["1-0", "0-1", "1/2-1/2"][game as usize % 3];
        let elo = 2000 + 10 * game;
        let clock = ["60+0", "180+2", "900+10"][game as usize % 3];
        format!("[Result \"{result}\"]\n[WhiteElo \"{elo}\"]\n[BlackElo \"2500\"]\n[TimeControl \"{clock}\"]\n")
    };
    let plain: Vec<_> = (0..count).map(|game| common::random_game(game, 40 + game as usize % 60)).collect();
    let text = common::pgn(&plain);
    let games = text.split("[Event").filter(|game| !game.trim().is_empty());
    let with_scores = |(game, text): (u64, &str)| {
        let moves = text.split("\n\n").nth(1).unwrap();
        let scored: Vec<String> = moves
            .split_whitespace()
            .filter(|word| *word != "*")
            .enumerate()
            .map(|(ply, san)| format!("{san} {{ [%eval {}] }}", (ply as f64 * 0.37 - 8.0 + game as f64 / 9.0) / 2.0))
            .collect();
        format!("[Event \"test\"]\n{}\n{} *\n\n", tags(game), scored.join(" "))
    };
    (0..count).zip(games).map(with_scores).collect()
}

struct Fixture {
    folder: TempDir,
    games: PathBuf,
}

impl Fixture {
    fn new(count: u64) -> Fixture {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("games.pgn");
        fs::write(&path, games(count)).unwrap();
        Fixture { folder, games: path }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn build(&self, options: &BuildOptions) -> (Vec<Record>, BTreeMap<String, u64>) {
        self.build_from(&[WeightedInput::file(&self.games)], options)
    }

    /// The samples, and the dropped positions and games by reason.
    fn build_from(&self, inputs: &[WeightedInput], options: &BuildOptions) -> (Vec<Record>, BTreeMap<String, u64>) {
        let output = self.path("x.fsd");
        let manifest = build(&BuildJob::new(inputs, &output, options), &mut |_| {}).unwrap();
        let records = Fsd::open(&output).unwrap().records().to_vec();
        assert_eq!(records.len() as u64, manifest.kept);
        let name = |reason: &dyn erased::Name| reason.name();
        let positions = manifest.dropped.iter().map(|(why, count)| (name(why), *count));
        let games = manifest.dropped_games.iter().map(|(why, count)| (name(why), *count));
        let dropped: BTreeMap<String, u64> = positions.clone().chain(games).collect();
        let sum: u64 = positions.map(|(_, count)| count).sum();
        let received = manifest.positions + manifest.repeated;
        assert_eq!(received, manifest.kept + sum, "every position and repeat is kept or dropped for a reason");
        assert_eq!(manifest.summary().contains("repeats by weight"), manifest.repeated > 0);
        (records, dropped)
    }
}

/// The name of a reason in a manifest.
mod erased {
    pub trait Name {
        fn name(&self) -> String;
    }

    impl<T: serde::Serialize> Name for T {
        fn name(&self) -> String {
            serde_json::to_value(self).unwrap().as_str().unwrap().to_owned()
        }
    }
}

fn everything() -> BuildOptions {
    BuildOptions { min_ply: 0, ..BuildOptions::new(Method::Eval) }
}

fn fsbench(arguments: &[&str], folder: &Path, input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn key(record: &Record) -> Vec<u8> {
    // Board, side to move, castling rights, en passant.
    let bytes = bytemuck::bytes_of(record);
    [&bytes[..24], &bytes[36..38]].concat()
}

#[test]
fn every_drop_has_its_reason() {
    let fixture = Fixture::new(40);
    let all = fixture.build(&everything()).0;
    let check = |options: BuildOptions, why: &str, keeps: &dyn Fn(&Record) -> bool| {
        let (records, dropped) = fixture.build(&options);
        let expected: Vec<Record> = all.iter().filter(|record| keeps(record)).copied().collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{why} drops nothing, or everything");
        assert_eq!(records, expected, "{why}");
        assert!(dropped.contains_key(why), "{why}: {dropped:?}");
    };
    check(BuildOptions { min_ply: 30, ..everything() }, "early", &|record| record.ply().0 >= 30);
    check(BuildOptions { max_ply: Some(30), ..everything() }, "late", &|record| record.ply().0 <= 30);
    let near = |record: &Record| record.score().unwrap().abs() <= 200;
    check(BuildOptions { max_score: Some(200), ..everything() }, "decided", &near);
    let moves = |record: &Record| shakmaty::Position::legal_moves(&record.position().unwrap()).len();
    check(BuildOptions { min_moves: Some(22), ..everything() }, "few-moves", &|record| moves(record) >= 22);
    check(BuildOptions { min_rating: Some(2200), ..everything() }, "rating", &|record| record.game() >= 20);
    let blitz = vec![fsbench::data::Speed::Blitz];
    check(BuildOptions { speeds: blitz, ..everything() }, "time-control", &|record| record.game() % 3 == 1);
    let side = |split| Some(GameSplit { split, validation: 0.3, seed: Seed(7) });
    let inside = |record: &Record| fsbench::data::in_split(Seed(7), 0.3, record.game(), Split::Train);
    check(BuildOptions { split: side(Split::Train), ..everything() }, "other-part", &inside);
    check(BuildOptions { split: side(Split::Validation), ..everything() }, "game-left-out", &|record| !inside(record));
}

#[test]
fn a_quantile_of_legal_moves_applies_per_ply() {
    let fixture = Fixture::new(60);
    let all = fixture.build(&everything()).0;
    let (kept, dropped) = fixture.build(&BuildOptions { min_moves_quantile: Some(0.25), ..everything() });
    assert_eq!(dropped["few-moves"] + kept.len() as u64, all.len() as u64);
    let moves = |record: &Record| shakmaty::Position::legal_moves(&record.position().unwrap()).len();
    // The first position of a game has no score.
    for ply in 1..40 {
        let at = |records: &[Record]| -> Vec<usize> {
            records.iter().filter(|record| record.ply().0 == ply).map(moves).collect()
        };
        let all = at(&all);
        let kept = at(&kept);
        let least = *kept.iter().min().unwrap();
        assert_eq!(all.iter().filter(|moves| **moves >= least).count(), kept.len(), "ply {ply}");
        let below = |least: usize| all.iter().filter(|moves| **moves < least).count() as f64;
        assert!(below(least) <= 0.25 * all.len() as f64, "ply {ply}");
        let next = all.iter().filter(|moves| **moves > least).min();
        assert!(next.is_none_or(|next| below(*next) > 0.25 * all.len() as f64), "ply {ply}: more could be dropped");
    }
}

#[test]
fn repeated_positions_are_dropped() {
    let fixture = Fixture::new(30);
    let all = fixture.build(&everything()).0;
    let (kept, dropped) = fixture.build(&BuildOptions { dedup: Some(Dedup::Position), ..everything() });
    let mut seen = HashSet::new();
    let first: Vec<Record> = all.iter().filter(|record| seen.insert(key(record))).copied().collect();
    assert_eq!(kept, first);
    assert_eq!(dropped["duplicate"] + kept.len() as u64, all.len() as u64);
    let by_move = fixture.build(&BuildOptions { dedup: Some(Dedup::Move), ..everything() }).0;
    assert!(by_move.len() > kept.len() && by_move.len() < all.len());
}

#[test]
fn samples_are_thinned_to_a_distribution() {
    let fixture = Fixture::new(60);
    let count = |records: &[Record], of: fn(&Record) -> u16| {
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        records.iter().for_each(|record| *counts.entry(of(record)).or_default() += 1);
        counts
    };
    let balance = |by, weights| BuildOptions { balance: Some(Balance { by, weights }), ..everything() };
    let by_ply = count(&fixture.build(&balance(BalanceBy::Ply, None)).0, |record| record.ply().0);
    assert_eq!(by_ply.values().min(), by_ply.values().max());
    let weights = fsbench::units::SortedMap::from([(28, 1.0), (30, 3.0)]);
    let by_pieces =
        count(&fixture.build(&balance(BalanceBy::Pieces, Some(weights))).0, |record| record.board().count() as u16);
    assert_eq!(by_pieces.keys().copied().collect::<Vec<_>>(), [28, 30]);
    assert!(by_pieces[&30].abs_diff(3 * by_pieces[&28]) <= 2, "{by_pieces:?}");
    let some = BuildOptions { samples: Some(500), seed: Seed(1), ..everything() };
    let (drawn, dropped) = fixture.build(&some);
    assert_eq!(drawn.len(), 500);
    assert!(dropped["thinned"] > 0);
    assert_eq!(drawn, fixture.build(&some).0);
    assert_ne!(drawn, fixture.build(&BuildOptions { seed: Seed(2), ..some }).0);
}

#[test]
fn unlikely_results_are_skipped() {
    let fixture = Fixture::new(60);
    let (kept, dropped) = fixture.build(&BuildOptions { skip_unlikely: true, ..everything() });
    assert!(dropped["unlikely"] > 0);
    // Among the kept samples the side with the better score wins more often.
    let all = fixture.build(&everything()).0;
    let agreement = |records: &[Record]| {
        let decided = records.iter().filter(|record| record.score().unwrap().abs() > 300);
        let points = decided.map(|record| {
            let points = f64::from(record.result().unwrap().points());
            if record.score().unwrap() > 0 { points } else { 1.0 - points }
        });
        let points: Vec<f64> = points.collect();
        points.iter().sum::<f64>() / points.len() as f64
    };
    assert!(agreement(&kept) > agreement(&all) + 0.2, "{} {}", agreement(&kept), agreement(&all));
}

/// Of shuffled samples nothing tells which are neighbours of one game.
#[test]
fn samples_by_game_need_games_in_order() {
    let fixture = Fixture::new(20);
    let by_game = |shuffle| {
        let name = fixture.path(&format!("shuffle-{shuffle}.fsd"));
        let options = BuildOptions { shuffle, ..everything() };
        build(&BuildJob::new(&[WeightedInput::file(&fixture.games)], &name, &options), &mut |_| {}).unwrap();
        let options = BuildOptions { per_game: PerGame::AtMost(2), ..everything() };
        build(&BuildJob::new(&[WeightedInput::file(&name)], &fixture.path("y.fsd"), &options), &mut |_| {})
    };
    assert_eq!(by_game(false).unwrap().kept, 40);
    fs::remove_file(fixture.path("y.fsd")).unwrap();
    let message = by_game(true).unwrap_err().to_string();
    assert!(message.contains("shuffle-true.fsd") && message.contains("--per-game"), "{message}");
    assert!(!fixture.path("y.fsd").exists());
}

#[test]
fn a_shuffle_is_a_permutation_determined_by_the_seed() {
    let fixture = Fixture::new(50);
    let all = fixture.build(&everything()).0;
    let shuffled = |seed| fixture.build(&BuildOptions { shuffle: true, seed: Seed(seed), ..everything() }).0;
    let sorted = |mut records: Vec<Record>| {
        records.sort_by_key(|record| bytemuck::bytes_of(record).to_vec());
        records
    };
    assert_ne!(shuffled(1), all);
    assert_eq!(shuffled(1), shuffled(1));
    assert_ne!(shuffled(1), shuffled(2));
    assert_eq!(sorted(shuffled(1)), sorted(all));
}

#[test]
fn several_inputs_follow_each_other_by_weight() {
    let fixture = Fixture::new(40);
    let whole = WeightedInput::file(&fixture.games);
    let weighted = |weight| WeightedInput { weight, ..whole.clone() };
    let one = fixture.build(&everything()).0;
    let (two, _) = fixture.build_from(&[whole.clone(), whole.clone()], &everything());
    let later: Vec<Record> = one.iter().map(|record| record.with_game(record.game() + 40)).collect();
    assert_eq!(two, [one.clone(), later].concat());
    let games = |records: &[Record]| records.iter().map(Record::game).collect::<HashSet<_>>().len();
    let (some, dropped) = fixture.build_from(&[weighted(0.4)], &everything());
    assert_eq!(games(&some) as u64 + dropped["weight"], 40);
    assert!((4..28).contains(&games(&some)), "{} games of 40", games(&some));
    // Every game has one position before ply 1; positions of games left out are not dropped a second time.
    let (_, dropped) = fixture.build_from(&[weighted(0.4)], &BuildOptions { min_ply: 1, ..everything() });
    assert_eq!(dropped["early"] + dropped["weight"], 40);
    let (twice, _) = fixture.build_from(&[weighted(2.0)], &everything());
    assert_eq!(twice.len(), 2 * one.len());
    let (thinned, dropped) = fixture.build_from(&[weighted(2.0)], &BuildOptions { samples: Some(50), ..everything() });
    assert_eq!((thinned.len(), dropped["thinned"]), (50, twice.len() as u64 - 50));
    let (more, _) = fixture.build_from(&[weighted(1.5)], &everything());
    assert!(one.len() < more.len() && more.len() < twice.len());
}

#[test]
fn games_come_through_globs_and_standard_input() {
    let fixture = Fixture::new(6);
    let text = fs::read(&fixture.games).unwrap();
    let zst = zstd::encode_all(&text[..], 3).unwrap();
    fs::create_dir(fixture.path("more")).unwrap();
    fs::write(fixture.path("more/a.pgn"), &text).unwrap();
    fs::write(fixture.path("more/b.pgn.zst"), &zst).unwrap();
    let hash = |inputs: &[&str], input: &[u8]| {
        let arguments = ["dataset", "build", "--method", "eval", "--out", "y.fsd", "--force", "--format", "json"];
        let output = fsbench(&[&arguments[..], inputs].concat(), fixture.folder.path(), input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        summary["hash"].as_str().unwrap().to_owned()
    };
    let one = hash(&["games.pgn"], b"");
    assert_eq!(hash(&["-"], &text), one);
    assert_eq!(hash(&["-"], &zst), one);
    let two = hash(&["games.pgn", "games.pgn"], b"");
    assert_eq!(hash(&["more/*"], b""), two);
    assert_eq!(hash(&["more/a.pgn", "-"], &text), two);
    let refused =
        fsbench(&["dataset", "build", "none*", "--method", "eval", "--out", "z.fsd"], fixture.folder.path(), b"");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no file matches"));
    let folder =
        fsbench(&["dataset", "build", "more", "--method", "eval", "--out", "z.fsd"], fixture.folder.path(), b"");
    assert_eq!(folder.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&folder.stderr).contains("it is a folder"));
}

fn in_centipawns(path: &Path) -> WeightedInput {
    WeightedInput { unit: Some(ScoreUnit::Centipawns), ..WeightedInput::file(path) }
}

/// Half of the games have no scores, and a third have no results.
#[test]
fn samples_without_the_needed_labels_are_dropped() {
    let fixture = Fixture::new(60);
    let text = fs::read_to_string(&fixture.games).unwrap();
    let games = text.split("[Event").filter(|part| !part.trim().is_empty()).enumerate().map(|(number, game)| {
        let game = if number % 2 == 0 { game.replace("%eval", "%none") } else { game.to_owned() };
        format!("[Event{}", if number % 3 == 0 { game.replace("[Result", "[Ending") } else { game })
    });
    fs::write(&fixture.games, games.collect::<String>()).unwrap();
    let all = fixture.build(&BuildOptions { min_moves: Some(0), ..BuildOptions::new(Method::Pqr) }).0;
    let kinds = [(Needs::Score, "no-score"), (Needs::Result, "no-result"), (Needs::Any, "no-label")];
    for (needs, why) in kinds {
        let (kept, dropped) = fixture.build(&BuildOptions { needs, ..everything() });
        let expected: Vec<_> = all.iter().filter(|record| needs.met_by(record)).copied().collect();
        assert_eq!(kept, expected, "{needs:?}");
        assert_eq!(dropped, BTreeMap::from([(why.to_owned(), (all.len() - kept.len()) as u64)]));
    }
    let (kept, dropped) = fixture.build(&BuildOptions { needs: Needs::Both, ..everything() });
    let expected: Vec<_> = all.iter().filter(|record| Needs::Both.met_by(record)).copied().collect();
    assert_eq!(kept, expected);
    assert!(dropped["no-score"] > 0 && dropped["no-result"] > 0, "{dropped:?}");
    let refused = ["dataset", "build", "games.pgn", "--method", "pqr", "--needs", "result", "--out", "y.fsd"];
    let refused = fsbench(&refused, fixture.folder.path(), b"");
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

/// Comments as cutechess and fastchess write them: the mover's view of the position it searched, none for book moves.
#[test]
fn scores_of_the_players_searches_are_read() {
    let fixture = Fixture::new(1);
    let moves = "1. e4 {book} e5 {+0.31/14 0.25s} 2. Nf3 {-0.07/20 0.25s, n=1000} Nc6 {-M12/9 0.1s} 3. Bb5 \
                 {+M5/18 0.1s} a6 4. Ba4 {[%eval 1.5]} Nf6 {+0.20/12 0s}";
    let game = |moves: &str| format!("[Result \"1-0\"]\n\n{moves} 1-0\n\n");
    // The second game has a variation, which the fast PGN reader leaves to the general one.
    let variation = moves.replace("a6 ", "a6 (3... d6 {+9.00/2 0s}) ");
    fs::write(&fixture.games, game(moves) + &game(&variation)).unwrap();
    let (records, dropped) = fixture.build(&everything());
    let found: Vec<_> = records.iter().map(|record| (record.game(), record.ply().0, record.score().unwrap())).collect();
    // At the last ply the evaluation after the move before takes precedence.
    let of_one = [(1, 31), (2, -7), (3, -31_988), (4, 31_994), (7, -150)];
    let expected: Vec<_> = [0, 1].into_iter().flat_map(|game| of_one.map(|(ply, score)| (game, ply, score))).collect();
    assert_eq!(found, expected);
    assert_eq!(dropped, BTreeMap::from([("no-score".to_owned(), 2 * 3)]));
    let (records, dropped) = fixture.build(&BuildOptions { max_score: Some(20), ..everything() });
    assert_eq!(records.iter().map(|record| record.ply().0).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(dropped, BTreeMap::from([("no-score".to_owned(), 6), ("decided".to_owned(), 8)]));
    // Samples that need no scores have them too.
    let all = fixture.build(&BuildOptions { min_moves: Some(0), ..BuildOptions::new(Method::Pqr) }).0;
    let scored: Vec<_> =
        all.iter().filter_map(|record| Some((record.game(), record.ply().0, record.score()?))).collect();
    assert_eq!((scored, all.len()), (expected, 16));
    let (records, dropped) = fixture.build(&BuildOptions { needs: Needs::Any, max_score: Some(20), ..everything() });
    assert_eq!((records.len(), dropped), (8, BTreeMap::from([("decided".to_owned(), 8)])));
}

/// Building from an unfiltered `.fsd` file, or from its conversion, gives the same samples as building from the games.
#[test]
fn samples_are_filtered_like_games() {
    let fixture = Fixture::new(20);
    let all = fixture.path("all.fsd");
    let text = fixture.path("all.binpack");
    let convert = |from: &Path, to: &Path| {
        let arguments = ["dataset", "convert", from.to_str().unwrap(), to.to_str().unwrap(), "--to-unit", "cp"];
        let output = fsbench(&arguments, fixture.folder.path(), b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    convert(&fixture.games, &all);
    convert(&all, &text);
    let options = [
        BuildOptions { per_game: PerGame::AtMost(3), ..everything() },
        BuildOptions { filter: fsbench::pipeline::build::Filter::Quiet, min_moves: Some(5), ..everything() },
        BuildOptions { min_ply: 10, max_score: Some(250), dedup: Some(Dedup::Move), ..everything() },
        BuildOptions::new(Method::Pqr),
    ];
    for options in options {
        let (expected, dropped) = fixture.build(&options);
        assert_eq!(fixture.build_from(&[WeightedInput::file(&all)], &options), (expected.clone(), dropped));
        let (binpack, _) = fixture.build_from(&[in_centipawns(&text)], &options);
        assert_eq!(binpack, expected);
    }
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    let fixture = Fixture::new(300);
    let bytes = |threads: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
        let arguments = "dataset build games.pgn@1.3 games.pgn --method eval --out x.fsd --force --per-game 20 --seed \
                         3 --dedup move --skip-unlikely --min-moves-quantile 0.05 --balance pieces --samples 2000 \
                         --shuffle";
        command.args(arguments.split_whitespace()).env("RAYON_NUM_THREADS", threads);
        let output = command.current_dir(fixture.folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read(fixture.path("x.fsd")).unwrap()
    };
    let one = bytes("1");
    assert_eq!(one, bytes("2"));
    assert_eq!(one, bytes("5"));
}

/// The engine's move is legal only when White is to move; its score is 7 times the rule-50 counter.
#[cfg(unix)]
#[test]
fn an_engine_scores_the_samples() {
    let fixture = Fixture::new(1);
    let answer = r#"set -- $fen; echo "info depth 1 score cp $(($5 * 7))"; echo "bestmove e2e3""#;
    engines::Script::new(answer).write(&fixture.path("engine"));
    let game = "[FEN \"7k/8/8/8/8/8/4P3/K7 w - - 0 1\"]\n\n1. Kb1 Kg8 2. Ka1 Kh8 3. Kb1 Kg8 4. Ka1 Kg7 1-0\n\n";
    fs::write(&fixture.games, game.repeat(2)).unwrap();
    let arguments =
        "dataset build games.pgn --method eval --min-ply 0 --engine ./engine --nodes 1 --out x.fsd --format json";
    let run = |more: &[&str]| {
        let arguments: Vec<&str> = arguments.split_whitespace().chain(more.iter().copied()).collect();
        let output = fsbench(&arguments, fixture.folder.path(), b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let scores = || -> Vec<(u16, i16)> {
        let fsd = Fsd::open(&fixture.path("x.fsd")).unwrap();
        fsd.records().iter().map(|record| (record.ply().0, record.score().unwrap())).collect()
    };
    let summary = run(&[]);
    assert_eq!(scores(), [(0, 0), (2, 14), (4, 28), (6, 42)].repeat(2));
    assert_eq!(summary["dropped"], serde_json::json!({ "not-labelled": 8 }));
    let labelling = &summary["labelling"];
    assert_eq!(labelling["engine"]["name"], "Fake 1");
    assert_eq!(labelling["limit"], serde_json::json!({ "nodes": 1 }));
    // The rule-50 counter distinguishes the positions of a game, and both games are equal.
    assert_eq!((&labelling["positions"], &labelling["repeated"]), (&8.into(), &8.into()));
    assert_eq!(labelling["failed"], serde_json::json!({ "engine-nonsense": 4 }));
    assert!(!fixture.path("x.fsd.journal").exists());
    let capped = run(&["--max-score", "20", "--force"]);
    assert_eq!(scores(), [(0, 0), (2, 14)].repeat(2));
    assert_eq!(capped["dropped"]["decided"], 4);
    // Of 16 samples three are drawn, and only those are scored, unless a filter needs the scores of all.
    let drawn = run(&["--samples", "3", "--force"]);
    let searched = |summary: &serde_json::Value| {
        ["positions", "repeated"].map(|count| summary["labelling"][count].as_u64().unwrap()).iter().sum::<u64>()
    };
    assert_eq!((searched(&drawn), &drawn["dropped"]["thinned"]), (3, &13.into()));
    let capped = run(&["--samples", "3", "--force", "--max-score", "20"]);
    assert_eq!((searched(&capped), scores().len(), &capped["dropped"]["decided"]), (16, 3, &4.into()));
}
