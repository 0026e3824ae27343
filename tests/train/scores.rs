//! The unit of scores, and samples without scores.

use std::fs;
use std::path::{Path, PathBuf};

use fsbench::data::formats::{Format, SampleWriter};
use fsbench::data::{Fsd, Method, Provenance, Purpose, Record, ScoreUnit};
use fsbench::service::ReadOptions;
use fsbench::train::{Silent, TrainConfig, TrainError, run_dir};
use fsbench::units::Seed;
use serde_json::Value;

use super::common;
use super::fixture::{Workspace, error_of, with};

/// Writes the samples, changed, to another file.
fn write_changed(
    workspace: &Workspace,
    name: &str,
    format: Format,
    change: impl Fn(usize, Record) -> Record,
) -> PathBuf {
    let fsd = Fsd::open(&workspace.data(Method::Eval)).expect("samples");
    let records: Vec<Record> = fsd.records().iter().enumerate().map(|(n, record)| change(n, *record)).collect();
    let path = workspace.path(name);
    let mut writer = SampleWriter::create(&path, format, true).expect("writable");
    writer.push(&records).expect("good");
    let purpose = Purpose::Eval;
    let score_unit = ScoreUnit::Centipawns;
    let games = fsd.header().games;
    writer.finish(Provenance { purpose, score_unit, seed: Seed(0), games, sources: [0; 32] }).expect("written");
    path
}

fn json(path: &Path) -> Value {
    common::content(&fs::read(path).expect("there"))
}

#[test]
fn a_run_records_its_unit_and_is_resumed_with_no_other() {
    let workspace = Workspace::new();
    let data = write_changed(&workspace, "games.binpack", Format::Binpack, |_, record| record);
    let config = TrainConfig { data: data.into(), ..workspace.config(Method::Eval) };
    let config = with(&config, |settings| settings.epochs = 2);
    let outcome = workspace.run(&config, "run", false, &mut Silent).expect("trained");
    assert_eq!(outcome.config.reading.from_unit, Some(ScoreUnit::STOCKFISH));
    let recorded = json(&workspace.path("run").join(run_dir::CONFIG));
    assert_eq!(recorded["from_unit"], serde_json::json!({ "internal": { "pawn": 208 } }));

    let other = |from_unit, epochs| {
        let reading = ReadOptions { from_unit, ..config.reading };
        with(&TrainConfig { reading, ..config.clone() }, |settings| settings.epochs = epochs)
    };
    for epochs in [2, 3] {
        let cp = other(Some(ScoreUnit::Centipawns), epochs);
        let error = workspace.run(&cp, "run", true, &mut Silent).expect_err("another unit");
        assert!(matches!(error, TrainError::Mismatch { .. }) && error.to_string().contains("from_unit"), "{error}");
    }
    let more = workspace.run(&other(Some(ScoreUnit::STOCKFISH), 3), "run", true, &mut Silent).expect("the same unit");
    assert_eq!(more.epochs.len(), 3);

    // Another unit gives other targets.
    let cp = workspace.run(&other(Some(ScoreUnit::Centipawns), 2), "cp", false, &mut Silent).expect("trained");
    assert!((cp.baseline_loss - outcome.baseline_loss).abs() > 1e-4, "{} {}", cp.baseline_loss, outcome.baseline_loss);
    // If the data state the unit, the run does not record one.
    let one_epoch = with(&workspace.config(Method::Eval), |settings| settings.epochs = 1);
    let outcome = workspace.run(&one_epoch, "fsd", false, &mut Silent).expect("trained");
    assert_eq!(outcome.config.reading.from_unit, None);
}

#[test]
fn results_alone_can_be_learned_from() {
    let workspace = Workspace::new();
    let pgn = fs::read_to_string(workspace.path("games.pgn")).expect("games");
    fs::write(workspace.path("plain.pgn"), pgn.replace("%eval", "%none")).expect("written");
    let plain = TrainConfig { data: workspace.path("plain.pgn").into(), ..workspace.config(Method::Eval) };
    let config = |lambda| with(&plain, |settings| (settings.eval_loss.lambda, settings.epochs) = (lambda, 1));
    let outcome = workspace.run(&config(0.0), "results", false, &mut Silent).expect("trained on results");
    // All games are drawn.
    assert!(outcome.baseline_loss < 1e-9, "{}", outcome.baseline_loss);
    let error = workspace.run(&config(1.0), "scores", false, &mut Silent).expect_err("no scores").to_string();
    assert!(error.contains("no score"), "{error}");
}

#[test]
fn samples_without_a_score_are_left_out_and_counted_where_lambda_asks_for_one() {
    let workspace = Workspace::new();
    let third = |n: usize, record: Record| if n.is_multiple_of(3) { record.with_score(None) } else { record };
    let data = write_changed(&workspace, "part.fsd", Format::Fsd, third);
    let all = Fsd::open(&data).expect("samples").records().len() as u64;
    let run = |name: &str, lambda: &str| {
        let arguments = ["--epochs", "1", "--lambda", lambda, "--format", "json", "--data"];
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fsbench"));
        command.args(["train", "piece", "--l1", "16", "--batch-size", "64", "--validation", "0.2", "--threads", "1"]);
        command.args(arguments).arg(&data).arg("--out").arg(workspace.path(name));
        let output = command.output().expect("runs");
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", error_of(&output)));
        let samples = outcome["training_samples"].as_u64().zip(outcome["validation_samples"].as_u64());
        (samples.map(|(training, validation)| training + validation), error_of(&output))
    };
    let (samples, stderr) = run("scores", "0.5");
    assert_eq!(samples, Some(all - all.div_ceil(3)));
    assert!(stderr.contains("samples without a score"), "{stderr}");
    let (samples, stderr) = run("results", "0");
    assert_eq!(samples, Some(all));
    assert!(!stderr.contains("left out"), "{stderr}");
}
