//! Training speed: samples per second, with the samples service on the same machine, and the share of a limit that this
//! is.
//!
//! `FSBENCH_DATA=… cargo bench --bench train` (a set's name may follow). Each line is the best of three epochs. The
//! limit is measured in the same run: reading a row per active feature forwards, and reading and writing its gradient's
//! row backwards, as fast as the threads read a table of that size.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark stops at the first surprise, and prints")]

mod limits;

use std::path::Path;

use fsbench::chess::Perspective;
use fsbench::data::{Method, games};
use fsbench::features::FeatureSet;
use fsbench::net::Activation;
use fsbench::service::ReadOptions;
use fsbench::train::{DeviceChoice, ShapeOptions, Silent, TrainConfig, TrainSettings, TrainingRun};
use fsbench::units::Seed;
use shakmaty::Position;

const BATCH: usize = 16_384;
const EPOCH: u64 = 2_000_000;

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = std::env::var_os("FSBENCH_DATA").expect("set FSBENCH_DATA to a folder with selfplay.binpack");
    let data = Path::new(&folder).join("selfplay.binpack");
    limits::announce();
    let threads = limits::cores();
    let buckets = ShapeOptions { activation: Activation::Pairwise, psqt: true, buckets: 8, ..ShapeOptions::default() };
    let screlu = ShapeOptions { activation: Activation::Screlu, ..ShapeOptions::default() };
    let stockfish = ShapeOptions { hidden_activation: Activation::Dual, skip: true, ..buckets.clone() };
    for (set, name, l1, hidden, options) in [
        ("piece", "plain", 256, &[32][..], ShapeOptions::default()),
        ("chess768", "screlu", 256, &[][..], screlu),
        ("half-ka-v2-hm", "plain", 256, &[32][..], ShapeOptions::default()),
        ("half-ka-v2-hm", "pairwise, 8 buckets, psqt", 256, &[32][..], buckets),
        ("half-ka-v2-hm", "stockfish-15.1", 1024, &[15, 32][..], stockfish),
    ] {
        if wanted.as_ref().is_none_or(|wanted| set.contains(wanted)) {
            let out = tempfile::tempdir().expect("a folder");
            let config = config(set, &data, l1, hidden, options.clone(), threads);
            let run = TrainingRun {
                service: Some(Path::new(env!("CARGO_BIN_EXE_fsbench"))),
                ..TrainingRun::new(&config, out.path())
            };
            let outcome = run.train(&mut Silent).expect("trained");
            let rate = outcome.epochs.iter().filter_map(|epoch| epoch.samples_per_second).fold(0.0, f64::max);
            let shape = options.shape(outcome.num_features, l1, hidden).expect("a shape");
            let weights: usize = shape.layer_sizes().iter().map(|(inputs, outputs)| inputs * outputs).sum();
            // Three matrix products per step: forward, gradient of the inputs, gradient of the weights; 2
            // operations each.
            let dense = 6.0 * weights as f64 * rate / 1e9;
            let table = shape.features as usize * l1 * size_of::<f32>();
            // One row read forwards, one read and one written backwards.
            let rows = 3.0 * active(set) * (l1 * size_of::<f32>()) as f64 * rate / 1e9;
            let reading = limits::reading(table) * threads as f64 / 1e9;
            println!(
                "{set}, {l1}, {name}: {rate:.0} positions/s; its rows are {rows:.0} GB/s, {:.0}% of reading a table of \
                 {} MB ({reading:.0} GB/s); its dense layers are {dense:.1} GFLOP/s",
                100.0 * rows / reading,
                table >> 20,
            );
        }
    }
}

/// Active features of a position, both perspectives, in the mean over the embedded games.
fn active(set: &str) -> f64 {
    let set = FeatureSet::resolve(set).expect("shipped");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/quickstart/games.pgn.zst");
    let mut indices = Vec::new();
    let mut active = 0;
    let mut positions = 0;
    for game in games(&path).expect("games").take(100) {
        let game = game.expect("a game");
        let mut position = game.start;
        for played in game.moves {
            position.play_unchecked(played.mv);
            for pov in Perspective::ALL {
                set.encoder().encode(position.board(), pov, &mut indices);
                active += indices.len();
            }
            positions += 1;
        }
    }
    active as f64 / f64::from(positions)
}

fn config(set: &str, data: &Path, l1: usize, hidden: &[usize], shape: ShapeOptions, threads: usize) -> TrainConfig {
    let settings = TrainSettings {
        l1,
        hidden: hidden.to_vec(),
        shape_options: shape,
        batch_size: BATCH,
        epochs: 3,
        epoch_samples: Some(EPOCH),
        learning_rate: 1e-3,
        decay: 0.9,
        validation: 0.01,
        threads: Some(threads),
        device: DeviceChoice::Cpu,
        ..TrainSettings::default()
    };
    let config = TrainConfig::new(set, data, Method::Eval, settings);
    TrainConfig { reading: ReadOptions::default(), seed: Seed(1), ..config }
}
