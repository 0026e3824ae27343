//! Compares fsbench's evaluation with the engine's, bucket by bucket.
#![allow(clippy::unwrap_used, reason = "tests")]

use fsbench::alpha_beta::Searcher;
use fsbench::chess::{Chess, Color};
use fsbench::engine::{BackEnd, Evaluation, Evaluator, Model, Strategy};
use fsbench::net::NetFile;
use fsbench::net::nnue::{Architecture, Nnue};
use shakmaty::Position;

use super::engines::{self, Engine};
use super::positions::{fen, positions};

/// Evaluates positions with the engine's network. Also checks that the network's file round-trips.
fn evaluate(engine: &Engine, architecture: Architecture, positions: &[Chess]) -> Vec<Evaluation> {
    let bytes = std::fs::read(&engine.net).unwrap();
    let nnue = Nnue::load(&engine.net, None).unwrap();
    assert_eq!(nnue.architecture, architecture);
    assert!(nnue.to_bytes() == bytes, "{architecture}: the written file differs");
    evaluate_with(&nnue.into_file().unwrap(), positions)
}

pub fn evaluate_with(file: &NetFile, positions: &[Chess]) -> Vec<Evaluation> {
    let set = file.origin.feature_set().unwrap();
    let model = Model::new(&file.net);
    let mut evaluators: Vec<_> = BackEnd::available()
        .into_iter()
        .map(|back_end| Evaluator::new(&set, &model, Strategy::LazyCached, back_end).unwrap())
        .collect();
    let one = |position: &Chess| {
        let mut all = evaluators.iter_mut().map(|evaluator| {
            evaluator.set(position.board());
            evaluator.evaluate(position.turn())
        });
        let first = all.next().unwrap();
        assert!(all.all(|other| other == first), "{}", fen(position));
        first
    };
    positions.iter().map(one).collect()
}

/// The rows of the printed table, (PSQT, layers, total) per bucket, and the bucket used.
fn table(answer: &[String]) -> (Vec<[String; 3]>, usize) {
    let start = answer.iter().position(|line| line.contains("NNUE network contributions")).unwrap();
    let rows = answer[start..].iter().filter(|line| line.matches('|').count() == 5 && line.contains('.'));
    let rows: Vec<&String> = rows.collect();
    let used = rows.iter().position(|line| line.contains("<--")).unwrap();
    let cells = |line: &String| {
        let cells: Vec<String> = line.split('|').map(|cell| cell.replace(' ', "")).collect();
        [cells[2].clone(), cells[3].clone(), cells[4].clone()]
    };
    (rows.into_iter().map(cells).collect(), used)
}

/// A score in pawns as in the engine's table: the sign first, no sign for 0.
fn signed(score: i32, digits: &str) -> String {
    let sign = match score.signum() {
        -1 => "-",
        1 => "+",
        _ => "",
    };
    format!("{sign}{digits}")
}

fn check(engine: &Engine, architecture: Architecture, print: fn(i32) -> String) {
    let positions = positions();
    let ours = evaluate(engine, architecture, &positions);
    compare(engine, &positions, &ours, print);
}

/// Compares the rows of all buckets with those that the engine prints.
pub fn compare(engine: &Engine, positions: &[Chess], ours: &[Evaluation], print: fn(i32) -> String) {
    let fens: Vec<String> = positions.iter().map(fen).collect();
    let theirs = engine.evaluate(&fens, "Final evaluation");
    for ((fen, ours), answer) in fens.iter().zip(ours).zip(&theirs) {
        let (rows, used) = table(answer);
        let found = ours.buckets.iter().map(|part| {
            [part.psqt, part.positional, part.psqt + part.positional].map(|score| signed(score, &print(score)))
        });
        assert_eq!((found.collect::<Vec<_>>(), ours.bucket), (rows, used), "{fen}");
    }
}

#[test]
fn stockfish_15_1() {
    let folder = tempfile::tempdir().unwrap();
    let Some(engine) = engines::debian(folder.path()) else { return };
    check(&engine, Architecture::Sf15_1, |score| format!("{:.2}", f64::from(score.abs()) / 361.0));
}

/// The search's centipawns are this network's own: 361 internal units make 100.
#[test]
fn scores_of_the_search_are_scaled_to_stockfish_15_1() {
    let folder = tempfile::tempdir().unwrap();
    let Some(engine) = engines::debian(folder.path()) else { return };
    let file = Nnue::load(&engine.net, None).unwrap().into_file().unwrap();
    let set = file.origin.feature_set().unwrap();
    let model = Model::new(&file.net);
    let searcher = Searcher::new(&set, &model, BackEnd::best(), 1).unwrap();
    let ratio = searcher.scale().factor() * 361.0 / 100.0;
    assert!((0.999..1.001).contains(&ratio), "{ratio}");
}

#[test]
fn stockfish_15() {
    let Some(engine) = engines::npm("15.0.0", "nn-6877cd24400e.nnue") else { return };
    check(&engine, Architecture::Sf15, |score| format!("{:.2}", f64::from(score.abs()) / 208.0));
}

#[test]
fn stockfish_14() {
    let Some(engine) = engines::npm("14.0.0", "nn-26abeed38351.nnue") else { return };
    check(&engine, Architecture::Sf14, |score| format!("{:.2}", f64::from(score.abs()) / 208.0));
}

#[test]
fn stockfish_12() {
    let Some(engine) = engines::npm("12.0.0", "nn-82215d0fd0df.nnue") else { return };
    let positions = positions();
    let ours = evaluate(&engine, Architecture::Sf12, &positions);
    compare_12(&engine, &positions, &ours);
}

/// Stockfish 12 prints one number, from White's view.
pub fn compare_12(engine: &Engine, positions: &[Chess], ours: &[Evaluation]) {
    let fens: Vec<String> = positions.iter().map(fen).collect();
    let theirs = engine.evaluate(&fens, "Final evaluation");
    for ((position, ours), answer) in positions.iter().zip(ours).zip(&theirs) {
        let white = if position.turn() == Color::White { ours.score_internal } else { -ours.score_internal };
        let expected = format!("Final evaluation: {:.2} (white side)", f64::from(white) / 208.0);
        assert_eq!(answer.last(), Some(&expected), "{}: {white}", fen(position));
    }
}
