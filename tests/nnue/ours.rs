//! Stockfish loads networks of fsbench and prints the same evaluation.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use fsbench::features::FeatureSet;
use fsbench::net::nnue::{Architecture, Nnue};
use fsbench::net::{NetFile, Origin, QuantDense, QuantNet, Scheme, quantise};
use fsbench::units::Seed;
use rand::RngExt;

use super::common::random_net;
use super::engines::{self, Engine};
use super::equal::{compare, compare_12, evaluate_with};
use super::positions::positions;

/// Saves the network as `fsbench train`, loads it and converts it as `fsbench net convert`.
fn convert(file: &NetFile, folder: &Path, architecture: Architecture) -> PathBuf {
    let own = folder.join("net.safetensors");
    let nnue = folder.join("net.nnue");
    file.save(&own).unwrap();
    let converted = Nnue::from_file(NetFile::load(&own).unwrap(), "A network of fsbench's.").unwrap();
    assert_eq!(converted.architecture, architecture);
    converted.save(&nnue).unwrap();
    nnue
}

/// The npm build has no option for the network, so its file is replaced.
#[test]
fn half_kp_plays_in_stockfish_12() {
    let Some(engine) = engines::npm("12.0.0", "nn-82215d0fd0df.nnue") else { return };
    let folder = tempfile::tempdir().unwrap();
    let set = FeatureSet::resolve("half-kp").unwrap();
    let float = random_net(set.num_features(), 256, &[32, 32], 12);
    let net = quantise(&float, &Scheme::stockfish()).unwrap();
    plays_in_12(engine, &NetFile { origin: Origin::of(&set), net }, folder.path());
}

fn plays_in_12(mut engine: Engine, file: &NetFile, folder: &Path) {
    let nnue = convert(file, folder, Architecture::Sf12);
    for name in ["stockfish.js", "stockfish.wasm"] {
        std::fs::copy(engine.folder.join(name), folder.join(name)).unwrap();
    }
    std::fs::rename(nnue, folder.join(engine.net.file_name().unwrap())).unwrap();
    engine.folder = folder.into();
    let positions = positions();
    compare_12(&engine, &positions, &evaluate_with(file, &positions));
}

#[test]
fn every_bucket_plays_in_stockfish_15_1() {
    let folder = tempfile::tempdir().unwrap();
    let Some(engine) = engines::debian(folder.path()) else { return };
    let set = FeatureSet::resolve("half-ka-v2-hm").unwrap();
    let file = NetFile { origin: Origin::of(&set), net: random_integers(Architecture::Sf15_1) };
    plays_in_15_1(engine, &file, folder.path());
}

fn plays_in_15_1(mut engine: Engine, file: &NetFile, folder: &Path) {
    let nnue = convert(file, folder, Architecture::Sf15_1);
    engine.options = format!("setoption name EvalFile value {}\n", nnue.display());
    let positions = positions();
    let ours = evaluate_with(file, &positions);
    compare(&engine, &positions, &ours, |score| format!("{:.2}", f64::from(score.abs()) / 361.0));
}

/// A network in the shape of `architecture`, trained briefly on the sample games.
fn trained(architecture: Architecture, folder: &Path) -> NetFile {
    use fsbench::train::{TrainOutcome, run_dir::NETWORK};
    let run = folder.join("run");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_fsbench"))
        .args(["train", "--arch", architecture.name(), "--epochs", "1", "--epoch-samples", "20000"])
        .args(["--batch-size", "2048", "--format", "json", "--data", "experiments/quickstart/games.pgn.zst", "--out"])
        .arg(&run)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: TrainOutcome = serde_json::from_slice(&output.stdout).unwrap();
    assert!(outcome.validation_loss < outcome.baseline_loss, "{outcome:?}");
    NetFile::load(&run.join(NETWORK)).unwrap()
}

#[test]
fn a_trained_network_plays_in_stockfish_12() {
    let Some(engine) = engines::npm("12.0.0", "nn-82215d0fd0df.nnue") else { return };
    let folder = tempfile::tempdir().unwrap();
    plays_in_12(engine, &trained(Architecture::Sf12, folder.path()), folder.path());
}

#[test]
fn a_trained_network_plays_in_stockfish_15_1() {
    let folder = tempfile::tempdir().unwrap();
    let Some(engine) = engines::debian(folder.path()) else { return };
    plays_in_15_1(engine, &trained(Architecture::Sf15_1, folder.path()), folder.path());
}

/// A random network with activations and scores in their usual range.
pub fn random_integers(architecture: Architecture) -> QuantNet {
    let mut rng = Seed(15).stream("integers", 0);
    let shape = architecture.shape();
    let rows = shape.features as usize;
    let ft_weights = (0..rows * shape.l1).map(|_| rng.random_range(-30..31)).collect();
    let ft_biases = (0..shape.l1).map(|_| rng.random_range(-50..90)).collect();
    let psqt_weights = (0..rows * shape.buckets.count).map(|_| rng.random_range(-9_600..9_601)).collect();
    let stacks = (0..shape.buckets.count).map(|_| {
        let layer = |(inputs, outputs): (usize, usize)| QuantDense {
            inputs,
            outputs,
            weights: (0..inputs * outputs).map(|_| rng.random_range(-20..21)).collect(),
            biases: (0..outputs).map(|_| rng.random_range(-5_000..5_000)).collect(),
        };
        shape.layer_sizes().into_iter().map(layer).collect()
    });
    let stacks = stacks.collect();
    QuantNet { scheme: architecture.scheme(), shape, ft_weights, ft_biases, psqt_weights, stacks }
}
