//! Compares `measure loss` with a direct computation from the reference encoder and the reference forward pass.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fsbench::chess::{Chess, Perspective};
use fsbench::data::{FsdWriter, GameResult, Provenance, Purpose, Record, Sample, ScoreUnit};
use fsbench::features::FeatureSet;
use fsbench::measure::{LossOptions, MeasuredNetwork, loss};
use fsbench::net::{
    Checkpoint, FloatNet, NetFile, Origin, Scheme, bullet, forward, forward_integer, quantise, save_float,
};
use fsbench::pipeline::convert::{ConvertJob, ConvertOptions, convert};
use fsbench::record::{Cluster, LossRecord, SubsetLoss};
use fsbench::train::{EvalLoss, LossForm};
use fsbench::units::{Ply, Seed};
use shakmaty::Position;
use shakmaty::fen::Fen;

const GAMES: u64 = 12;
/// The 97.5% quantile of Student's t with 11 degrees of freedom, from a table.
const T11: f64 = 2.200_985;

/// Positions of random games with random scores and results; every seventh has no score, every fifth no result.
fn samples() -> Vec<Sample> {
    let draws = Seed(4).draws("scores");
    let mut samples = Vec::new();
    for game in 0..GAMES {
        let mut position = Chess::default();
        for (ply, mv) in common::random_game(game, 40 + 10 * game as usize).into_iter().enumerate() {
            let number = samples.len() as u64;
            let score = (!number.is_multiple_of(7)).then(|| draws.below(number, 1_600) as i16 - 800);
            let results = [GameResult::Loss, GameResult::Draw, GameResult::Win];
            let result = (!number.is_multiple_of(5)).then(|| results[draws.below(1_000_000 + number, 3) as usize]);
            let game = game as u32;
            let ply = Ply(ply as u16);
            samples.push(Sample { position: position.clone(), game, ply, mv: Some(mv), score, result });
            position.play_unchecked(mv);
        }
    }
    samples
}

fn write(folder: &Path, samples: &[Sample], score_unit: ScoreUnit) -> PathBuf {
    let path = folder.join("data.fsd");
    let mut writer = FsdWriter::create(&path).unwrap();
    let records: Vec<Record> = samples.iter().map(|sample| Record::pack(sample).unwrap()).collect();
    writer.push_all(&records).unwrap();
    let purpose = Purpose::Any;
    let seed = Seed(0);
    let games = GAMES as u32;
    let provenance = Provenance { purpose, score_unit, seed, games, sources: [0; 32] };
    writer.seal(provenance).unwrap().persist().unwrap();
    path
}

fn float(set: &str, seed: u64) -> (FloatNet, Origin) {
    let set = FeatureSet::resolve(set).unwrap();
    (common::random_net(set.num_features(), 32, &[8], seed), Origin::of(&set))
}

fn integer(set: &str, seed: u64, pawn_value: i32) -> NetFile {
    let (float, origin) = float(set, seed);
    let scheme = Scheme { pawn_value, ..Scheme::stockfish() };
    NetFile { origin, net: quantise(&float, &scheme).unwrap() }
}

/// The score in centipawns from the side to move's view, by definition.
fn centipawns(network: &MeasuredNetwork, position: &Chess) -> f64 {
    let stm = Perspective::of(position.turn());
    let seen = |set: &FeatureSet| [stm, stm.other()].map(|pov| set.reference(position.board(), pov));
    match network {
        MeasuredNetwork::Integer(file) => {
            let [own, other] = seen(&file.origin.feature_set().unwrap());
            let internal = forward_integer(&file.net, 0, &own, &other).sum() / 16;
            f64::from(internal) * 100.0 / f64::from(file.net.scheme.pawn_value)
        }
        MeasuredNetwork::Float { net, origin, scheme } => {
            let [own, other] = seen(&origin.feature_set().unwrap());
            f64::from(forward(&net.on_grid(scheme), scheme, 0, &own, &other)) * 600.0
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The loss by its formula; `None` without a target.
fn one_loss(options: &EvalLoss, out: f64, score: Option<f64>, sample: &Sample) -> Option<f64> {
    let result = sample.result.map(|result| [0.0, 0.5, 1.0][result as usize]);
    if options.form == LossForm::Epsilon {
        return score.map(|score| ((score - out).abs() - options.epsilon).max(0.0));
    }
    let wdl = score.map(|score| sigmoid(score / options.score_scale));
    let target = match (wdl, result) {
        (Some(wdl), Some(result)) => options.lambda * wdl + (1.0 - options.lambda) * result,
        (Some(wdl), None) if options.lambda > 0.0 => wdl,
        (None, Some(result)) if options.lambda < 1.0 => result,
        _ => return None,
    };
    Some((sigmoid(out / options.output_scale) - target).abs().powf(options.power))
}

/// The classes of a position, from the letters of its FEN: pieces left, ply, material, score, king, kings.
fn classes(sample: &Sample, score: Option<f64>) -> [Option<String>; 6] {
    let board = Fen::from_position(&sample.position, shakmaty::EnPassantMode::Legal).to_string();
    let board = board.split(' ').next().unwrap().to_owned();
    let pieces = board.chars().filter(char::is_ascii_alphabetic).count();
    let low = |n: usize| 4 * n.div_ceil(4) - 3;
    let pieces = format!("{}-{}", low(pieces).max(2), low(pieces) + 3);
    let ply = match sample.ply.0 {
        n @ 0..=79 => format!("{}-{}", n / 20 * 20, n / 20 * 20 + 19),
        80..=119 => "80-119".into(),
        _ => "120-".into(),
    };
    let white = sample.position.turn().is_white();
    let worth = |letter: char| match letter.to_ascii_lowercase() {
        'p' => 1,
        'n' | 'b' => 3,
        'r' => 5,
        'q' => 9,
        _ => 0,
    };
    let signed = |letter: char| if letter.is_ascii_uppercase() == white { worth(letter) } else { -worth(letter) };
    let material = match board.chars().map(signed).sum::<i32>() {
        ..=-6 => "-6 and less",
        -5..=-3 => "-5 to -3",
        -2 | -1 => "-2, -1",
        0 => "0",
        1 | 2 => "1, 2",
        3..=5 => "3 to 5",
        _ => "6 and more",
    };
    // (file, rank), from 0.
    let king = |letter: char| {
        let (row, text) = board.split('/').enumerate().find(|(_, row)| row.contains(letter)).unwrap();
        let before = text.chars().take_while(|found| *found != letter);
        let file: u32 = before.map(|found| found.to_digit(10).unwrap_or(1)).sum();
        (file, 7 - row)
    };
    let (own, other) = if white { (king('K'), king('k')) } else { (king('k'), king('K')) };
    let rank = if white { own.1 } else { 7 - own.1 };
    let place = match own.0 {
        _ if rank > 1 => "rank 3-8",
        0..=2 => "a-c, rank 1-2",
        3 | 4 => "d-e, rank 1-2",
        _ => "f-h, rank 1-2",
    };
    let kings = if (own.0 < 4) == (other.0 < 4) { "same half" } else { "opposite halves" };
    let score = score.map(|score| match score.abs() {
        ..50.0 => "0-49",
        50.0..100.0 => "50-99",
        100.0..200.0 => "100-199",
        200.0..400.0 => "200-399",
        400.0..800.0 => "400-799",
        _ => "800 and more",
    });
    let known = [Some(pieces), Some(ply), Some(material.into()), score.map(Into::into)];
    let [pieces, ply, material, score] = known;
    [pieces, ply, material, score, Some(place.into()), Some(kings.into())]
}

/// The mean, and its variance with games as clusters.
fn by_game(values: &[(u32, f64)]) -> (f64, f64) {
    let mean = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
    let mut games: BTreeMap<u32, f64> = BTreeMap::new();
    values.iter().for_each(|(game, value)| *games.entry(*game).or_default() += value - mean);
    let count = games.len() as f64;
    let squares: f64 = games.values().map(|sum| sum * sum).sum();
    (mean, count / (count - 1.0) * squares / (values.len() as f64).powi(2))
}

/// `unit` is a large value of the loss. Sums in f32 depend slightly on their order.
fn close(found: f64, expected: f64, unit: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-6 * expected.abs().max(unit), "{what}: {found} against {expected}");
}

fn check_classes(found: [(&str, &[SubsetLoss]); 6], samples: &[(&Sample, Option<f64>)], values: &[f64], unit: f64) {
    for (division, (heading, list)) in found.into_iter().enumerate() {
        let mut expected: BTreeMap<String, (u64, f64)> = BTreeMap::new();
        for ((sample, score), value) in samples.iter().zip(values) {
            let Some(class) = classes(sample, *score)[division].clone() else { continue };
            let (count, sum) = expected.entry(class).or_default();
            *count += 1;
            *sum += value;
        }
        assert_eq!(list.len(), expected.len(), "{heading}: {list:?}");
        for part in list {
            let (count, sum) = expected[&part.subset];
            assert_eq!(part.samples, count, "{heading} {}", part.subset);
            close(part.loss, sum / count as f64, unit, heading);
        }
    }
}

#[test]
fn losses_equal_a_direct_computation() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples();
    let (net, origin) = float("compact", 3);
    let networks = [
        ("a".to_owned(), MeasuredNetwork::Integer(integer("piece", 1, 100))),
        ("b".to_owned(), MeasuredNetwork::Integer(integer("king-piece", 2, 208))),
        ("c".to_owned(), MeasuredNetwork::Float { net, origin, scheme: Scheme::stockfish() }),
    ];
    let outs: Vec<Vec<f64>> = networks
        .iter()
        .map(|(_, network)| samples.iter().map(|sample| centipawns(network, &sample.position)).collect())
        .collect();
    let default = EvalLoss::default();
    let cases = [
        (default, ScoreUnit::Centipawns),
        (
            EvalLoss { lambda: 0.7, power: 2.0, score_scale: 300.0, output_scale: 400.0, ..default },
            ScoreUnit::Centipawns,
        ),
        (EvalLoss { lambda: 0.0, ..default }, ScoreUnit::Centipawns),
        (EvalLoss { form: LossForm::Epsilon, epsilon: 25.0, ..default }, ScoreUnit::Internal { pawn: 200 }),
    ];
    for (options, unit) in cases {
        let path = write(folder.path(), &samples, unit);
        let score = |sample: &Sample| {
            // Half centipawns are rounded away from zero.
            let halved = |score: i16| {
                if unit == ScoreUnit::Centipawns { score.into() } else { (f64::from(score) / 2.0).round() }
            };
            sample.score.map(halved)
        };
        let losses = |network: usize| -> Vec<Option<f64>> {
            let pairs = samples.iter().zip(&outs[network]);
            pairs.map(|(sample, out)| one_loss(&options, *out, score(sample), sample)).collect()
        };
        let expected: Vec<Vec<Option<f64>>> = (0..networks.len()).map(losses).collect();
        let judged: Vec<&Sample> =
            samples.iter().zip(&expected[0]).filter(|(_, loss)| loss.is_some()).map(|(sample, _)| sample).collect();
        let scored: Vec<(&Sample, Option<f64>)> = judged.iter().map(|sample| (*sample, score(sample))).collect();
        let values = |network: usize| expected[network].iter().flatten().copied().collect::<Vec<f64>>();
        let with_games = |values: &[f64]| judged.iter().map(|s| s.game).zip(values.iter().copied()).collect::<Vec<_>>();

        let large = if options.form == LossForm::Epsilon { 20.0 } else { 0.1 };
        let all = LossOptions { loss: options, ..LossOptions::default() };
        let (record, skipped) = loss(&networks, &path, &all, &mut |_| {}).unwrap();
        assert_eq!(skipped.total(), 0);
        assert_eq!(record.data.samples as usize, judged.len());
        assert_eq!(record.data.without_target as usize, samples.len() - judged.len());
        assert_eq!((record.clusters, record.data.games), (Cluster::Game, Some(GAMES)));
        assert_eq!((record.data.score_unit, record.loss, record.networks.len()), (unit, options, 3));
        for (index, network) in record.networks.iter().enumerate() {
            let values = values(index);
            let (mean, variance) = by_game(&with_games(&values));
            close(network.loss, mean, large, "loss");
            close(network.interval.unwrap(), T11 * variance.sqrt(), large, "interval");
            check_classes(network.by.by_criterion(), &scored, &values, large);
        }
        assert_eq!(
            record.pairs.iter().map(|pair| (pair.first, pair.second)).collect::<Vec<_>>(),
            [(0, 1), (0, 2), (1, 2)]
        );
        for pair in &record.pairs {
            let pairs = values(pair.first).into_iter().zip(values(pair.second));
            let differences: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
            let (mean, variance) = by_game(&with_games(&differences));
            close(pair.difference, mean, large, "difference");
            close(pair.interval.unwrap(), T11 * variance.sqrt(), large, "interval of the difference");
            check_classes(pair.by.by_criterion(), &scored, &differences, large);
        }
        // Positions of a game are correlated: with samples as clusters the interval would differ.
        let alone: Vec<(u32, f64)> = (0..).zip(values(0)).collect();
        assert!((by_game(&alone).1.sqrt() * T11 - record.networks[0].interval.unwrap()).abs() > 1e-6);
        assert_eq!(loss(&networks, &path, &all, &mut |_| {}).unwrap().0, record, "the same again");
    }
}

/// In formats without games, samples count as independent and there are no plies.
#[test]
fn formats_without_games_use_samples_as_clusters() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = samples();
    samples.retain(|sample| sample.score.is_some() && sample.result.is_some());
    let path = write(folder.path(), &samples, ScoreUnit::Centipawns);
    let raw = folder.path().join("data.bullet");
    let job = ConvertJob { output: &raw, options: &ConvertOptions::default(), command: &[] };
    convert(&path, &job, &mut |_| {}).unwrap();
    let networks = [("a".to_owned(), MeasuredNetwork::Integer(integer("piece", 1, 100)))];
    let measure = |path: &Path, limit| {
        let options = LossOptions { limit, ..LossOptions::default() };
        loss(&networks, path, &options, &mut |_| {}).unwrap().0
    };
    let games = measure(&path, None);
    let bare = measure(&raw, None);
    assert_eq!((bare.clusters, bare.data.games, bare.data.samples), (Cluster::Sample, None, games.data.samples));
    close(bare.networks[0].loss, games.networks[0].loss, 0.1, "the same samples");
    assert!(bare.networks[0].by.ply.is_empty() && !games.networks[0].by.ply.is_empty());
    for (found, expected) in bare.networks[0].by.king.iter().zip(&games.networks[0].by.king) {
        assert_eq!((&found.subset, found.samples), (&expected.subset, expected.samples));
        close(found.loss, expected.loss, 0.1, "the same positions");
    }
    let values: Vec<(u32, f64)> = (0..)
        .zip(samples.iter().map(|sample| {
            let out = centipawns(&networks[0].1, &sample.position);
            one_loss(&EvalLoss::default(), out, sample.score.map(f64::from), sample).unwrap()
        }))
        .collect();
    let half = fsbench::statistics::student_t_quantile(0.95, values.len() - 1) * by_game(&values).1.sqrt();
    close(bare.networks[0].interval.unwrap(), half, 0.1, "interval by sample");
    let first = measure(&path, Some(100));
    let games: std::collections::BTreeSet<u32> = samples[..100].iter().map(|sample| sample.game).collect();
    assert_eq!((first.data.samples, first.data.games), (100, Some(games.len() as u64)));
    assert!(games.len() < GAMES as usize);
}

fn fsbench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench")).args(["measure", "loss"]).args(arguments).output().unwrap()
}

#[test]
fn the_command_takes_networks_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let data = write(folder.path(), &samples(), ScoreUnit::Centipawns);
    let (net, origin) = float("piece", 1);
    integer("piece", 1, 100).save(&path("net.safetensors")).unwrap();
    let checkpoint = Checkpoint { origin: origin.clone(), training: serde_json::Value::Null };
    save_float(&path("best.safetensors"), &checkpoint, &net, &[]).unwrap();
    let flat = common::random_net(768, 32, &[], 5);
    let simple = NetFile { origin, net: quantise(&flat, &Scheme::simple()).unwrap() };
    bullet::save(&path("raw.bin"), &simple.net).unwrap();
    let nets = [text("net.safetensors"), text("best.safetensors"), text("raw.bin")];
    let arguments =
        [&nets[0], &nets[1], &nets[2], "--bullet", "piece", "--activation", "crelu", "--data", data.to_str().unwrap()];
    let output = fsbench(&[&arguments[..], &["--format", "json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let record: LossRecord = serde_json::from_slice(&output.stdout).unwrap();
    let found: Vec<&str> = record.networks.iter().map(|network| network.network.as_str()).collect();
    assert_eq!(found, nets.each_ref().map(String::as_str));
    // Quantisation changes the loss only slightly.
    let pair = &record.pairs[0];
    assert!(pair.difference != 0.0 && pair.difference.abs() < 0.01 * record.networks[0].loss, "{pair:?}");
    let judged = [("n".to_owned(), MeasuredNetwork::Integer(simple))];
    let (direct, _) = loss(&judged, &data, &LossOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(direct.networks[0].loss, record.networks[2].loss);

    let output = fsbench(&arguments);
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    for expected in
        ["12 games independent", "#1 − #2", "pieces left", "opposite halves", "lower loss", "float", "integer"]
    {
        assert!(table.contains(expected), "{expected}: {table}");
    }
    let refused = |more: &[&str], expected: &str| {
        let output = fsbench(&[&[nets[0].as_str(), "--data", data.to_str().unwrap()], more].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
    };
    refused(&["--epsilon", "3"], "no effect on the loss power");
    refused(&["--loss", "epsilon", "--lambda", "0.5"], "no effect on the loss epsilon");
    refused(&["--lambda", "1.5"], "λ must lie between 0 and 1");
    let mut bare = samples();
    bare.iter_mut().for_each(|sample| sample.result = None);
    write(folder.path(), &bare, ScoreUnit::Centipawns);
    refused(&["--lambda", "0"], "choose another λ");
}
