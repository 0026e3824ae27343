//! Selections: the output of `fsbench select`, and the meaning of `select` in a definition.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fsbench::chess::{Board, BoardChange, Chess, Perspective, Square};
use fsbench::features::{Delta, FeatureSet};
use fsbench::measure::updates;
use rand::RngExt;
use shakmaty::Position;
use tempfile::TempDir;

fn fsbench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench")).args(arguments).current_dir(folder).output().unwrap()
}

fn definition(folder: &Path, name: &str, features: &str, kept: &[u32], more: &str) -> FeatureSet {
    let lines: String = kept.iter().map(|index| format!("{index}\n")).collect();
    fs::write(folder.join(format!("{name}.idx")), lines).unwrap();
    let path = folder.join(format!("{name}.toml"));
    fs::write(&path, format!("features = \"{features}\"\nselect = \"{name}.idx\"\n{more}")).unwrap();
    FeatureSet::resolve(path.to_str().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// Some 40% of the indices in random order.
fn random_indices(size: u32, seed: u64) -> Vec<u32> {
    let mut rng = fsbench::units::Seed(seed).stream("choice", 0);
    let mut kept: Vec<u32> = (0..size).filter(|_| rng.random_bool(0.4)).collect();
    for at in (1..kept.len()).rev() {
        kept.swap(at, rng.random_range(0..=at));
    }
    kept
}

fn renumbered(active: &[u32], kept: &[u32]) -> Vec<u32> {
    let place = |index: &u32| kept.iter().position(|known| known == index).map(|at| at as u32);
    let mut found: Vec<u32> = active.iter().filter_map(place).collect();
    found.sort_unstable();
    found
}

#[test]
fn a_selection_renumbers_the_block_sum() {
    let folder = TempDir::new().unwrap();
    let cases = [
        ("piece", ""),
        ("compact + relative-king-h", ""),
        ("square(M) * role(P) for P in pieces, M in moves(P)", "multiplicity = \"bag\"\nmirror = \"king-left\"\n"),
        ("count(8 for P in pieces if role(P) == pawn) + axis-h", "black = \"rotate\"\n"),
    ];
    for (number, (features, more)) in cases.into_iter().enumerate() {
        let path = folder.path().join(format!("base{number}.toml"));
        fs::write(&path, format!("features = \"{features}\"\n{more}")).unwrap();
        let base = FeatureSet::resolve(path.to_str().unwrap()).unwrap();
        let kept = random_indices(base.num_features(), number as u64);
        let set = definition(folder.path(), &format!("set{number}"), features, &kept, more);
        assert_eq!(set.num_features() as usize, kept.len());
        assert_ne!(set.identity(), base.identity());
        let carried = FeatureSet::from_definition(set.definition()).unwrap();
        assert_eq!((carried.identity(), carried.num_features()), (set.identity(), set.num_features()));
        for game in 0..4 {
            check_game(&base, &carried, &kept, game);
        }
    }
}

fn check_game(base: &FeatureSet, set: &FeatureSet, kept: &[u32], game: u64) {
    let mut active = Vec::new();
    let mut delta = Delta::default();
    let mut full = Delta::default();
    let mut position = Chess::default();
    for mv in common::random_game(game, 60) {
        let change = BoardChange::of(mv, position.turn());
        let after = change.applied_to(position.board());
        for pov in Perspective::ALL {
            let expected = renumbered(&base.reference(position.board(), pov), kept);
            set.encoder().encode(position.board(), pov, &mut active);
            active.sort_unstable();
            assert_eq!(active, expected, "{}", set.definition());
            assert_eq!(set.reference(position.board(), pov), expected);
            set.encoder().diff(position.board(), &change, &after, pov, &mut delta);
            base.encoder().diff(position.board(), &change, &after, pov, &mut full);
            assert_eq!(delta.added, renumbered(&full.added, kept));
            assert_eq!(delta.removed, renumbered(&full.removed, kept));
            assert_eq!(delta.refresh, full.refresh);
        }
        position.play_unchecked(mv);
    }
}

#[test]
fn selections_nest_and_stand_beside_other_blocks() {
    let folder = TempDir::new().unwrap();
    definition(folder.path(), "inner", "axis-h + axis-v", &[190, 3, 100, 7], "");
    let set = definition(folder.path(), "outer", "piece + inner + compact", &[771, 0, 769, 772], "");
    let position = Chess::default();
    // 769 is `inner`'s second, axis-h 3: the file a (0), knight (1), their (1); 771 its last, axis-h 7: file a, rook,
    // their; 772 is compact's first: file a, pawn, own; 0 the own pawn on a1.
    assert_eq!(set.num_features(), 4);
    assert_eq!(set.reference(position.board(), Perspective::White), [0, 3]);
}

/// The set's features of a board, by hand: the squares of all pieces first, then the own king's file.
fn squares_then_file(board: &Board, pov: Perspective) -> BTreeSet<u32> {
    let turned = |square: Square| u32::from(square) ^ if pov == Perspective::White { 0 } else { 56 };
    let king = board.king_of(pov.own()).unwrap();
    board.occupied().into_iter().map(turned).chain([64 + turned(king) % 8]).collect()
}

/// A selection that moves the second block's features before the first's. Every measure is compared with one computed
/// without the set.
#[test]
fn a_selection_reorders_blocks() {
    let folder = TempDir::new().unwrap();
    let games: Vec<_> = (0..20).map(|game| common::random_game(game, 80)).collect();
    let path = folder.path().join("games.pgn");
    fs::write(&path, common::pgn(&games)).unwrap();
    let kept: Vec<u32> = (8..72).chain(0..8).collect();
    let set = definition(folder.path(), "turned", "file(K) + square(P) for P in pieces", &kept, "");

    let mut moves = 0.0;
    let mut sides = [[0.0; 6]; 2];
    let mut active_sum = 0.0;
    let mut listed = Vec::new();
    for game in &games {
        let mut position = Chess::default();
        let mut files = Perspective::ALL.map(|pov| squares_then_file(position.board(), pov).split_off(&64));
        for mv in game {
            let before = position.clone();
            position.play_unchecked(*mv);
            moves += 1.0;
            for pov in Perspective::ALL {
                let [old, new] = [&before, &position].map(|position| squares_then_file(position.board(), pov));
                set.encoder().encode(before.board(), pov, &mut listed);
                assert!(listed.len() == old.len() && listed.iter().all(|index| old.contains(index)));
                active_sum += old.len() as f64;
                let changed = old.symmetric_difference(&new).count() as f64;
                let refreshes = old.range(64..).ne(new.range(64..));
                // A refresh writes one row instead of two changes. The cache holds that row already if the king has
                // been on that file before.
                let seen = !files[pov.index()].insert(*new.last().unwrap());
                let side = &mut sides[usize::from(pov.own() != before.turn())];
                let counts = [
                    new.difference(&old).count() as f64,
                    old.difference(&new).count() as f64,
                    f64::from(u8::from(refreshes)),
                    changed - f64::from(u8::from(refreshes)),
                    new.len() as f64,
                    changed - if refreshes { if seen { 2.0 } else { 1.0 } } else { 0.0 },
                ];
                side.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
    }
    let (record, _) = updates(&set, &path, None, false).unwrap();
    assert_eq!(record.moves as f64, moves);
    assert!((record.active_mean - active_sum / (2.0 * moves)).abs() < 1e-9 && record.active_max == 33);
    for (found, sums) in [(&record.mover, sides[0]), (&record.other, sides[1])] {
        let found =
            [found.added, found.removed, found.refreshes, found.rows_update, found.rows_refresh, found.rows_cache];
        for (found, sum) in found.iter().zip(sums) {
            assert!((found - sum / moves).abs() < 1e-9, "{found} against {}", sum / moves);
        }
    }
}

fn described(folder: &Path, set: &str) -> serde_json::Value {
    let output = fsbench(folder, &["define", set, "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn define_lists_the_indices_of_a_block() {
    let folder = TempDir::new().unwrap();
    let features = "file(K) + square(P) for P in pieces";
    let turned: Vec<u32> = (8..72).chain(0..8).collect();
    definition(folder.path(), "turned", features, &turned, "");
    let set = described(folder.path(), "turned.toml");
    let ranges = |set: &serde_json::Value| {
        [0, 1].map(|at| (set["blocks"][at]["offset"].clone(), set["blocks"][at]["size"].clone()))
    };
    assert_eq!(ranges(&set), [(64.into(), 8.into()), (0.into(), 64.into())]);
    assert_eq!((&set["contexts"], &set["blocks"][0]["runs"]), (&8.into(), &serde_json::Value::Null));

    definition(folder.path(), "mixed", features, &[3, 20, 5, 21, 22], "");
    let set = described(folder.path(), "mixed.toml");
    assert_eq!(ranges(&set), [(0.into(), 2.into()), (1.into(), 3.into())]);
    assert_eq!(set["blocks"][1]["runs"], serde_json::json!([[1, 1], [3, 4]]));
    let output = fsbench(folder.path(), &["define", "mixed.toml"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("[0 2], 2 features") && text.contains("[1 3..5], 3 features"), "{text}");
}

#[test]
fn the_command_selects_the_most_frequent_features() {
    let folder = TempDir::new().unwrap();
    let games: Vec<_> = (0..20).map(|game| common::random_game(game, 80)).collect();
    fs::write(folder.path().join("games.pgn"), common::pgn(&games)).unwrap();
    let arguments = ["select", "piece", "--top", "12", "--data", "games.pgn", "--out", "top.idx", "--format", "json"];
    let output = fsbench(folder.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let about: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let written: Vec<u32> =
        fs::read_to_string(folder.path().join("top.idx")).unwrap().lines().map(|line| line.parse().unwrap()).collect();

    let set = FeatureSet::resolve("piece").unwrap();
    let mut counts = vec![0u64; 768];
    let mut positions = 0u64;
    for moves in &games {
        let mut position = Chess::default();
        for mv in moves {
            positions += 1;
            for pov in Perspective::ALL {
                set.reference(position.board(), pov).into_iter().for_each(|index| counts[index as usize] += 1);
            }
            position.play_unchecked(*mv);
        }
    }
    let mut order: Vec<u32> = (0..768).collect();
    order.sort_by_key(|index| (std::cmp::Reverse(counts[*index as usize]), *index));
    assert_eq!(written, order[..12]);
    assert_eq!(about["positions"], positions);
    let frequency = counts[order[11] as usize] as f64 / (2 * positions) as f64;
    assert!((about["least_frequent"].as_f64().unwrap() - frequency).abs() < 1e-12);

    let output = fsbench(folder.path(), &["select", "piece", "--top", "760", "--data", "games.pgn", "--out", "x.idx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("are ever active"));
    assert!(!folder.path().join("x.idx").exists());
}

#[test]
fn show_draws_a_board_per_block_and_perspective() {
    let folder = TempDir::new().unwrap();
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let arguments = ["show", "piece-move", "--fen", start, "--move", "g1f3", "--out", "board.svg", "--format", "json"];
    let output = fsbench(folder.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let boards = shown["boards"].as_array().unwrap();
    let counts: Vec<_> = boards.iter().map(|board| (&board["active"], &board["added"], &board["removed"])).collect();
    // The first block has the knight's square. In the second, the knight moves to d4, e5, g5, h4 and g1 instead of f3
    // and h3, the pawn on f2 loses two moves and the rook on h1 gains g1.
    assert_eq!(counts[0], (&32.into(), &1.into(), &1.into()));
    assert_eq!(counts[1], (&42.into(), &6.into(), &4.into()));
    assert_eq!(counts[2..], counts[..2], "both perspectives");
    let svg = fs::read_to_string(folder.path().join("board.svg")).unwrap();
    assert_eq!(svg.matches("(black's view)").count(), 2);
    assert_eq!(svg.matches("<circle cx").count() - 3, 2 * (33 + 46), "a circle per binding, and three in the legend");
}
