//! Exported networks: the programs that rustc and gcc make of them give fsbench's scores, to the unit.

#[path = "../common/mod.rs"]
mod common;
mod programs;

use std::path::Path;

use fsbench::chess::Move;
use fsbench::export::network::ExportedNetwork;
use fsbench::features::FeatureSet;
use fsbench::net::nnue::Architecture;
use fsbench::net::{Activation, NetFile, OutputBuckets, Origin, Scheme, Shape, WeightType};
use rayon::prelude::*;

use common::networks::{random_net, scheme_of, shapes};
use programs::{Build, Lines, compare, compile, run};

/// Writes the sources, weights and driver programs of a network.
fn export(file: &NetFile, set: &FeatureSet, folder: &Path) {
    let write = |name: &str, content: &[u8]| std::fs::write(folder.join(name), content).expect("written");
    let exported = ExportedNetwork::new(file, set).expect("exports");
    for name in ["features.rs", "features.h"] { write(name, &std::fs::read(Path::new("/tmp/stub").join(name)).unwrap()); }
    write("network.rs", exported.rust("test").as_bytes());
    write("network.h", exported.c("test").as_bytes());
    write("weights.bin", &exported.weights());
    write("driver.rs", include_bytes!("driver.rs"));
    write("driver.c", include_bytes!("driver.c"));
}

/// Exports the network, builds the programs and compares their scores along `games`; the sanitized program's along the
/// first of them. Returns the number of positions.
fn check(file: &NetFile, set: &FeatureSet, games: &[Vec<Move>]) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    export(file, set, folder.path());
    let all = Lines::of(file, set, games);
    let first = Lines::of(file, set, &games[..games.len().min(4)]);
    let what = format!("{} {} {}", set.name(), file.net.shape, file.net.scheme.name);
    let defines: &[&str] = if file.net.shape.psqt { &["WITH_PSQT"] } else { &[] };
    for (source, build, lines) in [
        ("driver.rs", Build::Rust, &all),
        ("driver.c", Build::C, &all),
        ("driver.c", Build::Sanitized, &first),
        ("driver.c", Build::Cpp, &first),
    ] {
        let defines = if build == Build::Rust { &[] } else { defines };
        if let Some(program) = compile(folder.path(), source, build, defines) {
            compare(&run(&program, &[], &lines.input), &lines.expected, &format!("{what}, {build:?}"));
        }
    }
    all.count
}

fn games(count: usize) -> Vec<Vec<Move>> {
    (0..count as u64).map(|game| common::random_game(game, 120)).collect()
}

fn file(set: &FeatureSet, shape: Shape, scheme: Scheme, seed: u64) -> NetFile {
    let shape = Shape { features: set.num_features(), ..shape };
    assert!(shape.validate().and_then(|()| scheme.validate()).and_then(|()| scheme.admits(&shape)).is_ok());
    NetFile { origin: Origin::of(set), net: random_net(shape, scheme, seed) }
}

/// Every kind of layer, each with another feature set.
#[test]
fn every_shape_gives_the_scores_of_fsbench() {
    let games = games(100);
    let sets = common::sets();
    let shapes = shapes();
    shapes.par_iter().enumerate().for_each(|(index, shape)| {
        let set = &FeatureSet::resolve("piece").unwrap(); let _ = &sets;
        let file = file(set, shape.clone(), scheme_of(index, shape), index as u64);
        let count = check(&file, set, &games);
        assert!(count > 10_000, "{count}");
    });
}

/// Schemes that the shapes above do not use: accumulators of their own scale, scores of parts, scores without a divisor,
/// rows of eight bits.
#[test]
fn every_scheme_gives_the_scores_of_fsbench() {
    let games = games(100);
    let set = FeatureSet::resolve("piece").expect("shipped");
    let plain = |l1, hidden: &[usize]| Shape::plain(1, l1, hidden.to_vec());
    let (pairwise, screlu) = (Activation::Pairwise, Activation::Screlu);
    let eight = OutputBuckets { count: 8, ..OutputBuckets::default() };
    let full = Shape { activation: pairwise, psqt: true, buckets: eight, ..plain(32, &[15, 32]) };
    let own = Scheme { one: 100, hidden: 32, divisor: None, pawn_value: 208, ..Scheme::stockfish() };
    let finer = Scheme { one: 181, hidden: 128, nnue2score: 333, pawn_value: 77, ..Scheme::simple() };
    let cases = [
        (Shape { skip: true, narrow: 400, ..full.clone() }, Scheme::stockfish_18()),
        (Shape { activation: screlu, ..plain(32, &[]) }, Scheme::stockfish_18()),
        (Shape { hidden_activation: Activation::Dual, ..full.clone() }, Scheme::stockfish_19()),
        (Shape { skip_difference: true, concatenated: true, ..full.clone() }, own.clone()),
        (Shape { activation: screlu, hidden_activation: screlu, ..plain(32, &[16]) }, own),
        (Shape { activation: screlu, psqt: true, ..plain(48, &[]) }, finer.clone()),
        (Shape { activation: Activation::Relu, buckets: eight, ..plain(48, &[]) }, finer),
    ];
    cases.par_iter().enumerate().for_each(|(index, (shape, scheme))| {
        // Odd seeds give weights that do not fit a byte; even ones weights of eight bits throughout.
        let mut file = file(&set, shape.clone(), scheme.clone(), 2 * index as u64 + u64::from(index < 3));
        let narrow = file.net.shape.narrow as usize * file.net.shape.l1;
        file.net.ft_weights[..narrow].iter_mut().for_each(|weight| *weight = (*weight).clamp(-128, 127));
        let count = check(&file, &set, &games);
        assert!(count > 10_000, "{count}");
    });
}
