//! A file of fsbench's own in which one bit is flipped is refused, or reads as before: never as something else. Tested
//! beside their code are journals (`pipeline/journal.rs`), the losses that a run keeps (`train/kept_losses.rs`) and the
//! cached segments of binpacks (`data/formats/binpack/segment_cache.rs`); shards in `tests/build/shards.rs`. Files
//! without a checksum may read as something else: files of other programs' formats (PGN, binpack, bulletformat, text,
//! `.nnue`, bullet's raw files), and what users read and edit or other programs load (`.idx`, `.epd`, definitions,
//! exported weights, results). A run's list of its data has none either: one that differs from the data refuses to go
//! on.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use common::{random_game, random_net};
use fsbench::data::formats::{Format, SampleWriter};
use fsbench::data::{Fsd, Method, Provenance, Purpose, Record, Sample, ScoreUnit};
use fsbench::features::FeatureSet;
use fsbench::net::{Checkpoint, NetFile, Origin, Scheme, load_float, quantise, save_float};
use fsbench::pipeline::convert::{ConvertJob, ConvertOptions, convert};
use fsbench::pipeline::{Manifest, manifest_path};
#[cfg(feature = "report")]
use fsbench::record::{
    ClassLosses, CostRatio, LossFunction, LossSums, ValidationLosses, ValidationRecord, read_checked_json,
    write_checked_json,
};
#[cfg(feature = "report")]
use fsbench::train::PqrLoss;
use fsbench::train::run_dir::{BEST, CHECKPOINT, CONFIG, LAST, METRICS, NETWORK, OUTCOME, RunDir};
use fsbench::train::{EpochMetrics, TrainConfig, TrainOutcome, TrainSettings};
use fsbench::units::{Ply, Seed};
use rand::RngExt;
use serde_json::json;
use shakmaty::{Chess, Position};

/// Bits drawn from each file.
const FLIPS: usize = 1500;

/// Flips drawn bits of the file, one at a time, and compares what `read` makes of it; `None` means refused.
fn check<T: PartialEq + Debug>(path: &Path, read: impl Fn() -> Option<T>) {
    let whole = std::fs::read(path).unwrap();
    let expected = read().unwrap();
    let mut rng = Seed(29).stream(&path.file_name().unwrap().to_string_lossy(), 0);
    let mut refused = 0;
    for _ in 0..FLIPS {
        let bit = rng.random_range(0..8 * whole.len());
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, bytes).unwrap();
        match read() {
            Some(found) => assert!(found == expected, "{}: bit {bit} makes another content", path.display()),
            None => refused += 1,
        }
    }
    std::fs::write(path, whole).unwrap();
    assert!(refused > FLIPS / 2, "{}: only {refused} of {FLIPS} refused", path.display());
}

fn records() -> Vec<Record> {
    let of_game = |game: u32| {
        let mut position = Chess::default();
        let mut records = Vec::new();
        for (ply, mv) in random_game(u64::from(game), 30).into_iter().enumerate() {
            let ply = Ply(ply as u16);
            let sample = Sample { position: position.clone(), game, ply, mv: Some(mv), score: Some(7), result: None };
            records.push(Record::pack(&sample).unwrap());
            position.play_unchecked(mv);
        }
        records
    };
    (0..4).flat_map(of_game).collect()
}

/// A file of samples with a manifest.
fn samples(folder: &Path) -> PathBuf {
    let source = folder.join("samples.txt");
    let path = folder.join("samples.fsd");
    let mut writer = SampleWriter::create(&source, Format::Text, true).unwrap();
    writer.push(&records()).unwrap();
    let purpose = Purpose::Any;
    let score_unit = ScoreUnit::Centipawns;
    writer.finish(Provenance { purpose, score_unit, seed: Seed(0), games: 4, sources: [0; 32] }).unwrap();
    let command = ["fsbench".to_owned(), "dataset".to_owned(), "convert".to_owned()];
    let job = ConvertJob { output: &path, options: &ConvertOptions::default(), command: &command };
    convert(&source, &job, &mut |_| {}).unwrap();
    path
}

#[test]
fn samples_and_their_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let path = samples(folder.path());
    check(&path, || {
        let fsd = Fsd::open(&path).ok()?;
        Some((*fsd.header(), bytemuck::cast_slice::<Record, u8>(fsd.records()).to_vec()))
    });
    let fsd = Fsd::open(&path).unwrap();
    check(&manifest_path(&path), || Manifest::of(&fsd).ok());
}

#[test]
fn networks_and_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let set = FeatureSet::resolve("color(P) * role(P) for P in pieces").unwrap();
    let net = random_net(set.num_features(), 4, &[3], 1);
    let path = folder.path().join("network.safetensors");
    NetFile { origin: Origin::of(&set), net: quantise(&net, &Scheme::stockfish()).unwrap() }.save(&path).unwrap();
    check(&path, || NetFile::load(&path).ok());
    let path = folder.path().join("checkpoint.safetensors");
    let checkpoint = Checkpoint { origin: Origin::of(&set), training: json!({ "step": 17, "scheme": "stockfish" }) };
    save_float(&path, &checkpoint, &net, &[("adam.m.ft.bias".into(), vec![2], &[0.5, 1.0])]).unwrap();
    check(&path, || {
        let (net, checkpoint) = load_float(&path).ok()?;
        Some((net, checkpoint.origin, checkpoint.training))
    });
}

/// The documents and the metrics of a training run.
#[test]
fn documents_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = RunDir::create(&folder.path().join("run"), false).unwrap();
    let settings = TrainSettings { hidden: vec![8], epoch_samples: Some(700), ..TrainSettings::default() };
    let config = TrainConfig::new("piece", Path::new("samples.fsd"), Method::Eval, settings);
    let epoch = |epoch: u32| {
        let metrics = json!({
            "epoch": epoch, "step": 10 * epoch, "samples": 640 * epoch, "learning_rate": 0.01, "train_loss": 0.0315,
            "validation_loss": 0.03125, "neurons": { "positive": 0.5, "saturated": 0.01, "dead": 0.0 }, "seconds": 0.75,
        });
        serde_json::from_value::<EpochMetrics>(metrics).unwrap()
    };
    let outcome = json!({
        "config": config, "name": "PIECE", "identity": FeatureSet::shipped("piece").unwrap().identity(),
        "num_features": 768, "parameters": 24_000, "trained_parameters": 23_000, "training_samples": 9000, "validation_samples": 1000,
        "epochs": [epoch(1), epoch(2)], "best_epoch": 2, "validation_loss": 0.03125, "baseline_loss": 0.0625,
        "seconds": 1.5, "network": NETWORK, "weights": BEST, "last": LAST, "checkpoint": CHECKPOINT,
    });
    let outcome: TrainOutcome = serde_json::from_value(outcome).unwrap();
    run_dir.write_json(CONFIG, &config).unwrap();
    check(&run_dir.path(CONFIG), || run_dir.read_json::<TrainConfig>(CONFIG).ok()?);
    run_dir.write_json(OUTCOME, &outcome).unwrap();
    check(&run_dir.path(OUTCOME), || run_dir.read_json::<TrainOutcome>(OUTCOME).ok()?);
    (1..=2).for_each(|number| run_dir.append_metrics(&epoch(number)).unwrap());
    check(&run_dir.path(METRICS), || run_dir.truncate_metrics(2).ok());
}

/// The cost of a node that a match measures at its start.
#[cfg(feature = "report")]
#[test]
fn the_cost_file_of_a_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cost-0123456789abcdef.json");
    let cost = json!({
        "nanoseconds_per_node": [812.5, 1020.25], "ratio": 0.796, "low": 0.79, "high": 0.802, "rounds": 31,
        "machine": {
            "cpu": "a processor", "cores": 2, "back_end": "avx2", "commit": "0123", "recorded": "2026-11-23T09:53:31Z",
        },
    });
    let cost: CostRatio = serde_json::from_value(cost).unwrap();
    write_checked_json(&path, &cost).unwrap();
    check(&path, || read_checked_json::<CostRatio>(&path).ok());
}

/// The losses of a validation, whose digest is in their record.
#[cfg(feature = "report")]
#[test]
fn losses_of_a_validation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("losses.parquet");
    let sums = |game: u32| LossSums { game, samples: 10 + game % 7, loss: (game as f32).sqrt(), preferred: game % 5 };
    let class =
        |by: &str, part: &str| ClassLosses { by: by.into(), part: part.into(), groups: (0..20).map(sums).collect() };
    let classes = vec![class("ply", "0-19"), class("ply", "20-39"), class("score", "0-49")];
    let losses = ValidationLosses { has_preferred: true, games: (0..200).map(sums).collect(), classes };
    losses.write(&path).unwrap();
    let record = ValidationRecord::new(LossFunction::Pqr(PqrLoss::default()), losses);
    check(&path, || record.clone().with_losses_of(&path).ok());
}

#[cfg(feature = "report")]
#[test]
fn stored_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("updates-0123.json");
    let record = json!({ "positions": 1000, "moves": 31_000, "active_mean": 22.75, "name": "piece" });
    write_checked_json(&path, &json!({ "seconds": 1.5, "record": record })).unwrap();
    check(&path, || {
        let found: serde_json::Value = read_checked_json(&path).ok()?;
        Some((found["seconds"].clone(), found["record"].clone()))
    });
}
