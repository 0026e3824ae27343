//! Chess960 in every format: which hold its castling rights, and what is counted where one does not.

use std::fs;
use std::path::Path;

use fsbench::chess::{Move, fen_of, parse_fen};
use fsbench::data::formats::Format;
use fsbench::data::{GameResult, Record};
use fsbench::units::{Ply, Seed};
use rand::RngExt;
use serde_json::{Value, json};
use shakmaty::Position;
use shakmaty::san::SanPlus;
use tempfile::TempDir;

use crate::common::start_of_each_kind;
use crate::fixture::{check, fsbench, json as document, read_all, write};

/// Random games of standard chess, Chess960 and double Chess960, which castle when they can.
fn games(count: u32) -> Vec<Record> {
    let mut records = Vec::new();
    for game in 0..count {
        let mut rng = Seed(60).stream("chess960", u64::from(game));
        let mut position = start_of_each_kind(u64::from(game));
        for ply in 0..80 {
            let moves = position.legal_moves();
            let castling: Vec<Move> = moves.iter().filter(|mv| mv.is_castle()).copied().collect();
            let pool = if castling.is_empty() { &moves[..] } else { &castling[..] };
            if pool.is_empty() {
                break;
            }
            let mv = pool[rng.random_range(0..pool.len())];
            let score = Some(rng.random_range(-900..900));
            let result = Some(position.turn().fold_wb(GameResult::Win, GameResult::Loss));
            records.push(Record::of(&position, game, Ply(ply), Some(mv), score, result).unwrap());
            position.play_unchecked(mv);
        }
    }
    records
}

fn convert(from: &str, to: &str, folder: &Path) -> Value {
    document(&["dataset", "convert", from, to, "--to-unit", "cp"], folder)
}

#[test]
fn viriformat_and_text_keep_the_rights() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let records = games(60);
    assert!(records.iter().any(|record| record.has_chess960_rights() && record.castles()));
    write(&path.join("x.fsd"), Format::Fsd, &records);
    for (there, back) in [("x.vf", "y.vf"), ("x.txt", "y.txt")] {
        let document = convert("x.fsd", there, path);
        assert_eq!(document["left_out"], json!({}));
        let again = format!("{there}.fsd");
        convert(there, &again, path);
        convert(&again, back, path);
        assert!(fs::read(path.join(there)).unwrap() == fs::read(path.join(back)).unwrap(), "{there}");
        let has_results = there == "x.vf";
        let expected = records.iter().map(|record| if has_results { *record } else { record.with_result(None) });
        let numberless = |record: Record| record.with_game(0);
        assert!(read_all(&path.join(again)).into_iter().map(numberless).eq(expected.map(numberless)), "{there}");
    }
}

/// As Stockfish's tools write them: without rights of Chess960, and without the moves that castle by them.
#[test]
fn binpacks_and_bulletformat_lose_the_rights() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let records = games(60);
    write(&path.join("x.fsd"), Format::Fsd, &records);
    let castling = records.iter().filter(|record| record.has_chess960_rights() && record.castles()).count();
    let others = records.iter().filter(|record| record.has_chess960_rights() && !record.castles()).count();
    let document = convert("x.fsd", "x.binpack", path);
    assert_eq!(document["left_out"], json!({ "chess960-castling": castling }));
    assert_eq!(document["lost"]["castling-rights"], others);
    let kept = read_all(&path.join("x.binpack"));
    assert_eq!(kept.len(), records.len() - castling);
    let written = records.iter().filter(|record| !(record.has_chess960_rights() && record.castles()));
    for (found, record) in kept.iter().zip(written) {
        assert_eq!((found.board(), found.packed_move()), (record.board(), record.packed_move()));
        assert_eq!(found.castling(), if record.has_chess960_rights() { 0 } else { record.castling() });
    }
    let output = fsbench(&["dataset", "convert", "x.fsd", "x.binpack", "--force"], path);
    check(&output, 0, "samples that castle in Chess960 were left out");
    let document = convert("x.fsd", "x.bullet", path);
    let with_rights = records.iter().filter(|record| record.castling() != 0).count();
    assert_eq!(document["lost"]["castling-rights"], with_rights);
}

/// Games of Chess960 in PGN, with and without a Variant tag, through a build and `verify`.
#[test]
fn games_of_chess960_are_built() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let records = games(12);
    let mut pgn = String::new();
    for (number, game) in records.chunk_by(|a, b| a.game() == b.game()).enumerate() {
        let mut position = game[0].position().unwrap();
        let variant = if number % 2 == 0 { "[Variant \"fischerandom\"]\n" } else { "" };
        pgn += &format!("[FEN \"{}\"]\n{variant}[Result \"1-0\"]\n\n", fen_of(&position));
        for record in game {
            let mv = record.packed_move().unwrap().in_position(&position).unwrap();
            pgn += &format!("{} ", SanPlus::from_move_and_play_unchecked(&mut position, mv));
        }
        pgn += "1-0\n\n";
    }
    fs::write(path.join("x.pgn"), pgn).unwrap();
    check(&fsbench(&["dataset", "build", "x.pgn", "--method", "pqr", "--out", "x.fsd"], path), 0, "");
    check(&fsbench(&["dataset", "verify", "x.fsd"], path), 0, "");
    let built = read_all(&path.join("x.fsd"));
    let content = |record: &Record| record.with_score(None);
    // A position with a single legal move has no triplet.
    let several = |record: &&Record| record.position().unwrap().legal_moves().len() > 1;
    assert!(built.iter().map(content).eq(records.iter().filter(several).map(content)));
    assert!(built.iter().any(Record::has_chess960_rights));
    let stats = document(&["dataset", "info", "x.pgn"], path);
    assert_eq!((&stats["games"], &stats["samples"]), (&12.into(), &records.len().into()));
}

/// `encode` and `delta` take FENs of Chess960 and castling as king takes rook.
#[test]
fn features_of_chess960() {
    let folder = TempDir::new().unwrap();
    let start = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w KQkq - 0 1";
    let after = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3RK1 b gb - 1 1";
    assert_eq!(fen_of(&parse_fen(start).unwrap()), start.replace("KQkq", "GBgb"));
    let delta = document(&["delta", "piece", "--fen", start, "--move", "f1g1"], folder.path());
    let side = |at: &Value| {
        let list = |name: &str| at[name].as_array().unwrap().len();
        (list("added"), list("removed"))
    };
    assert_eq!((side(&delta["white"]), side(&delta["black"])), ((2, 2), (2, 2)));
    let encoded = |fen: &str| document(&["encode", "piece", "--fen", fen], folder.path())["white"].clone();
    let [before, after] = [start, after].map(|fen| {
        let rows = encoded(fen);
        let rows = rows.as_array().unwrap_or_else(|| panic!("{rows}")).clone();
        rows.into_iter().map(|row| row.as_u64().unwrap()).collect::<Vec<u64>>()
    });
    let added: Vec<u64> = after.iter().filter(|row| !before.contains(row)).copied().collect();
    assert_eq!(delta["white"]["added"], json!(added));
}
