//! Exported networks: the programs that rustc and gcc make of them give fsbench's scores, to the unit.

mod command;
#[path = "../common/mod.rs"]
mod common;
mod examples;
mod programs;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fsbench::chess::Move;
use fsbench::export::network::ExportedNetwork;
use fsbench::export::{Export, Language};
use fsbench::features::FeatureSet;
use fsbench::net::nnue::Architecture;
use fsbench::net::{Activation, NetFile, Origin, OutputBuckets, Scheme, Shape};
use rayon::prelude::*;

use common::networks::{expression_buckets, random_net, scheme_of, shapes};
use programs::{Build, Lines, compare, compile, run};

/// Writes the sources, weights and driver programs of a network.
fn export(file: &NetFile, set: &FeatureSet, folder: &Path) {
    let write = |name: &str, content: &[u8]| std::fs::write(folder.join(name), content).expect("written");
    let exported = ExportedNetwork::new(file, set).expect("exports");
    for language in Language::ALL {
        write(language.features_file(), Export::new(set, language).features().expect("small tables").as_bytes());
        exported.files(language).iter().for_each(|file| write(&file.name, &file.content));
    }
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
        let set = &sets[index % sets.len()];
        let file = file(set, shape.clone(), scheme_of(index, shape), index as u64);
        let count = check(&file, set, &games);
        assert!(count > 10_000, "{count}");
    });
}

/// Schemes that the shapes above do not use: accumulators of their own scale, scores of parts, scores without a
/// divisor, rows of eight bits.
#[test]
fn every_scheme_gives_the_scores_of_fsbench() {
    let games = games(100);
    let set = FeatureSet::resolve("half-ka-v2-hm").expect("shipped");
    let plain = |l1, hidden: &[usize]| Shape::plain(1, l1, hidden.to_vec());
    let pairwise = Activation::Pairwise;
    let screlu = Activation::Screlu;
    let eight = OutputBuckets { count: 8, ..OutputBuckets::default() };
    let full = Shape { activation: pairwise, psqt: true, buckets: eight.clone(), ..plain(32, &[15, 32]) };
    let own = Scheme { one: 100, hidden: 32, divisor: None, pawn_value: 208, ..Scheme::stockfish() };
    let finer = Scheme { one: 181, hidden: 128, nnue2score: 333, pawn_value: 77, ..Scheme::simple() };
    let cases = [
        (Shape { skip: true, narrow: 22_000, ..full.clone() }, Scheme::stockfish_18()),
        (Shape { activation: screlu, narrow: 22_528, ..plain(32, &[]) }, Scheme::stockfish_18()),
        (Shape { hidden_activation: Activation::Dual, ..full.clone() }, Scheme::stockfish_19()),
        (Shape { skip_difference: true, concatenated: true, ..full.clone() }, own.clone()),
        (Shape { activation: screlu, hidden_activation: screlu, ..plain(32, &[16]) }, own),
        (Shape { activation: screlu, psqt: true, ..plain(48, &[]) }, finer.clone()),
        (Shape { activation: Activation::Relu, buckets: eight, narrow: 22_528, ..plain(48, &[]) }, finer),
    ];
    cases.par_iter().enumerate().for_each(|(index, (shape, scheme))| {
        let mut file = file(&set, shape.clone(), scheme.clone(), index as u64);
        let narrow = file.net.shape.narrow as usize * file.net.shape.l1;
        file.net.ft_weights[..narrow].iter_mut().for_each(|weight| *weight = (*weight).clamp(-128, 127));
        if index + 1 == cases.len() {
            // Direct outputs saturate.
            file.net.stacks.iter_mut().step_by(2).for_each(|stack| stack[0].biases[0] = i32::MAX - 5);
        }
        let count = check(&file, &set, &games);
        assert!(count > 10_000, "{count}");
    });
}

/// Output buckets by an expression, which the exported code evaluates.
#[test]
fn rules_of_output_buckets_give_the_scores_of_fsbench() {
    let games = games(100);
    expression_buckets().par_iter().enumerate().for_each(|(index, (set, buckets))| {
        let shape = Shape { psqt: index == 1, buckets: buckets.clone(), ..Shape::plain(1, 32, vec![8]) };
        let file = file(set, shape, Scheme::stockfish(), index as u64);
        let count = check(&file, set, &games);
        assert!(count > 10_000, "{count}");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("network.safetensors");
        file.save(&path).expect("saved");
        assert_eq!(NetFile::load(&path).expect("loads"), file);
    });
}

/// Stockfish's architectures, with random weights: rows of eight bits, threats, skip outputs and differences.
#[test]
fn architectures_of_stockfish_give_the_scores_of_fsbench() {
    let games = games(8);
    for architecture in [
        Architecture::Sf12,
        Architecture::Sf14,
        Architecture::Sf15,
        Architecture::Sf16_1Small,
        Architecture::Sf18Lite,
        Architecture::Sf19,
        Architecture::Sf19Lite,
    ] {
        let set = architecture.feature_set().expect("shipped");
        let mut file = file(&set, architecture.shape(), architecture.scheme(), 1);
        let narrow = file.net.shape.narrow as usize * file.net.shape.l1;
        file.net.ft_weights[..narrow].iter_mut().for_each(|weight| *weight = (*weight).clamp(-128, 127));
        let count = check(&file, &set, &games);
        assert!(count > 500, "{architecture}: {count}");
    }
}

/// Rust sources are formatted by the rules of this crate.
#[test]
fn rust_sources_are_formatted() {
    let set = FeatureSet::resolve("piece").expect("shipped");
    let folder = tempfile::tempdir().expect("a folder");
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join(".rustfmt.toml");
    for (index, shape) in shapes().into_iter().enumerate() {
        for narrow in [0, 500, 768] {
            let shape = Shape { narrow, ..shape.clone() };
            let scheme = scheme_of(index, &shape);
            let mut file = file(&set, shape, scheme, 1);
            let narrow = narrow as usize * file.net.shape.l1;
            file.net.ft_weights[..narrow].fill(1);
            let path = folder.path().join("network.rs");
            let text = ExportedNetwork::new(&file, &set).expect("exports").rust();
            std::fs::write(&path, text).expect("written");
            let mut command = Command::new("rustfmt");
            command.args(["--edition", "2021", "--check", "--config-path"]).arg(&rules).arg(&path);
            let Ok(output) = command.output() else { return common::skip::skip("rustfmt", "there is no rustfmt") };
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

/// The network of Debian's Stockfish 15.1.
fn reference_network(folder: &Path) -> Option<PathBuf> {
    let net = folder.join("nn-ad9b42354671.nnue");
    let mut command = Command::new("/usr/games/stockfish");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let exported = child.is_ok_and(|mut child| {
        let script = format!("export_net {}\nquit\n", net.display());
        let written = child.stdin.take().is_some_and(|mut stdin| stdin.write_all(script.as_bytes()).is_ok());
        written && child.wait().is_ok_and(|status| status.success()) && net.is_file()
    });
    if !exported {
        common::skip::skip("stockfish-15.1", "there is no Stockfish 15.1 at /usr/games/stockfish");
        return None;
    }
    Some(net)
}

#[test]
fn the_network_of_stockfish_gives_the_scores_of_fsbench() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(net) = reference_network(folder.path()) else { return };
    let file = NetFile::load(&net).expect("loads");
    let set = file.origin.feature_set().expect("shipped");
    let count = check(&file, &set, &games(100));
    assert!(count > 10_000, "{count}");
}
