//! Raw bullet files on the command line: round trips, scores, damaged files.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use fsbench::features::FeatureSet;
use fsbench::net::{
    Activation, BucketRule, NetFile, Origin, OutputBuckets, QuantDense, QuantNet, Scheme, Shape, forward_integer,
};
use fsbench::units::Seed;
use rand::RngExt;

const FEN: &str = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3";

fn fsbench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench")).args(arguments).output().unwrap()
}

fn succeed(arguments: &[&str]) -> String {
    let output = fsbench(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A chess768 network, 24 wide, screlu, with four buckets and weights within bullet's limits.
fn network() -> NetFile {
    let set = FeatureSet::resolve("chess768").unwrap();
    let buckets = OutputBuckets { count: 4, rule: BucketRule::Cpw };
    let shape = Shape { activation: Activation::Screlu, buckets, ..Shape::plain(768, 24, vec![]) };
    let mut rng = Seed(3).stream("bullet", 0);
    let mut numbers =
        |count: usize, most: i16| -> Vec<i16> { (0..count).map(|_| rng.random_range(-most..=most)).collect() };
    let ft_weights = numbers(768 * 24, 90);
    let ft_biases = numbers(24, 120);
    let layer = |_| {
        let weights = numbers(48, 126);
        vec![QuantDense { inputs: 48, outputs: 1, weights, biases: vec![i32::from(numbers(1, 9_000)[0])] }]
    };
    let stacks = (0..4).map(layer).collect();
    let net = QuantNet { shape, scheme: Scheme::simple(), ft_weights, ft_biases, psqt_weights: vec![], stacks };
    NetFile { origin: Origin::of(&set), net }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn raw_networks_round_trip_and_score_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [own, raw, back] =
        ["net.safetensors", "quantised.bin", "back.safetensors"].map(|name| folder.path().join(name));
    let file = network();
    file.save(&own).unwrap();
    succeed(&["net", "convert", text(&own), text(&raw), "--to", "bullet"]);
    let bytes = std::fs::read(&raw).unwrap();
    assert_eq!(bytes.len(), (2usize * (769 * 24 + 4 * 49)).next_multiple_of(64));
    let options = ["--bullet", "chess768", "--buckets", "4"];
    succeed(&[&["net", "convert", text(&raw), text(&back)][..], &options].concat());
    assert_eq!(std::fs::read(&own).unwrap(), std::fs::read(&back).unwrap());

    let info = succeed(&[&["net", "info", text(&raw), "--format", "json"][..], &options].concat());
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!((info["format"].as_str(), info["shape"]["l1"].as_u64()), (Some("bullet"), Some(24)));

    let score = |path: &Path, hints: &[&str]| {
        let scored = succeed(&[&["eval", "--net", text(path), "--fen", FEN, "--format", "json"][..], hints].concat());
        serde_json::from_str::<serde_json::Value>(&scored).unwrap()
    };
    let found = score(&raw, &options);
    assert_eq!(found, score(&own, &[]));
    // The formula of bullet's example: (Σ v²·w / QA + bias) · 400 / (QA·QB), bucket (32 − 2) / 8.
    let set = FeatureSet::resolve("chess768").unwrap();
    let position: shakmaty::Chess =
        FEN.parse::<shakmaty::fen::Fen>().unwrap().into_position(shakmaty::CastlingMode::Standard).unwrap();
    let board = shakmaty::Position::board(&position);
    let sides = [fsbench::chess::Perspective::White, fsbench::chess::Perspective::Black];
    let active = sides.map(|side| set.reference(board, side));
    let values = active.iter().flat_map(|active| file.net.accumulate(active)).map(|sum| i64::from(sum.clamp(0, 255)));
    let layer = &file.net.stacks[3][0];
    let sum: i64 = values.zip(&layer.weights).map(|(value, weight)| value * value * i64::from(*weight)).sum();
    let expected = (sum / 255 + i64::from(layer.biases[0])) * 400 / (255 * 64);
    assert_eq!((found["score_internal"].as_i64(), found["bucket"].as_u64()), (Some(expected), Some(3)));
    let raw_score = forward_integer(&file.net, 3, &active[0], &active[1]).sum();
    assert_eq!(i64::from(Scheme::simple().internal_score(raw_score)), expected);
}

/// The same network with the output weights input by input, as bullet saves them without `.transpose()`.
#[test]
fn both_orders_of_the_output_weights_give_the_same_scores() {
    let folder = tempfile::tempdir().unwrap();
    let [own, raw, other] =
        ["net.safetensors", "quantised.bin", "untransposed.bin"].map(|name| folder.path().join(name));
    let mut file = network();
    file.save(&own).unwrap();
    succeed(&["net", "convert", text(&own), text(&raw), "--to", "bullet"]);
    let reorder = || {
        let mut bytes = std::fs::read(&raw).unwrap();
        let at = 2 * 769 * 24;
        let weights = bytes[at..at + 2 * 48 * 4].to_vec();
        for place in 0..48 * 4 {
            let from = 2 * (place % 4 * 48 + place / 4);
            bytes[at + 2 * place..][..2].copy_from_slice(&weights[from..from + 2]);
        }
        std::fs::write(&other, bytes).unwrap();
    };
    reorder();
    let eval = |path: &Path, more: &[&str]| {
        let arguments = ["eval", "--net", text(path), "--fen", FEN, "--bullet", "chess768", "--buckets", "4"];
        let output = fsbench(&[&arguments[..], more].concat());
        assert!(output.status.success());
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (expected, note) = eval(&raw, &[]);
    assert!(note.contains("are read bucket by bucket") && note.contains("--output-order input"), "{note}");
    let by_input = ["--output-order", "input"];
    assert_eq!(eval(&other, &by_input), (expected.clone(), String::new()));
    assert_eq!(eval(&raw, &["--output-order", "bucket"]), (expected, String::new()));
    assert_ne!(eval(&other, &[]).0, eval(&raw, &[]).0);
    // Buckets that are alike, as in a trained network, show the order.
    let first = file.net.stacks[0][0].weights.clone();
    for stack in &mut file.net.stacks {
        for (weight, first) in stack[0].weights.iter_mut().zip(&first) {
            *weight = (*first * 3 + *weight) / 4;
        }
    }
    file.save(&own).unwrap();
    succeed(&["net", "convert", text(&own), text(&raw), "--to", "bullet", "--force"]);
    reorder();
    assert_eq!(eval(&raw, &[]).1, "");
    assert!(eval(&other, &[]).1.contains("seems to hold its output weights input by input"));
    assert!(eval(&raw, &by_input).1.contains("give --output-order bucket"));
    // `net convert` reads either.
    let back = folder.path().join("back.safetensors");
    let options = ["--bullet", "chess768", "--buckets", "4", "--output-order", "input"];
    succeed(&[&["net", "convert", text(&other), text(&back)][..], &options].concat());
    assert_eq!(std::fs::read(&own).unwrap(), std::fs::read(&back).unwrap());
}

#[test]
fn broken_raw_networks_are_bad_requests() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("quantised.bin");
    let own = folder.path().join("net.safetensors");
    network().save(&own).unwrap();
    succeed(&["net", "convert", text(&own), text(&raw), "--to", "bullet"]);
    let whole = std::fs::read(&raw).unwrap();
    let refused = |arguments: &[&str], expected: &str| {
        let output = fsbench(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    refused(&["net", "info", text(&raw), "--bullet", "chess768"], "no accumulator width gives");
    refused(&["net", "info", text(&raw), "--bullet", "no-such-set"], "no-such-set");
    refused(&["net", "info", text(&raw)], "is not a complete safetensors file");
    refused(&["net", "info", text(&raw), "--buckets", "4"], "--bullet");
    let mut stockfish = network();
    stockfish.net.scheme = Scheme::stockfish();
    stockfish.save(&own).unwrap();
    let again = ["net", "convert", text(&own), text(&raw), "--to", "bullet", "--force"];
    refused(&again, "the network is of stockfish, a pawn being");
    std::fs::write(&raw, &whole[..whole.len() - 64]).unwrap();
    refused(&["net", "info", text(&raw), "--bullet", "chess768", "--buckets", "4"], "is the file complete");
}
