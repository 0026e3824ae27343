//! Evaluations per second, and the rows that each strategy reads.

use std::path::Path;

use fsbench::chess::{BoardChange, Chess, Perspective};
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::measure::{
    EqualSpeedOptions, OwnSpeeds, ReadSummary, SpeedOptions, equal_speed, ft_permute, relative_speed, speed,
};
use fsbench::net::NetFile;
use fsbench::record::{SpeedEntry, SpeedRecord};
use shakmaty::Position;

use super::{Nets, games, nets, write_pgn};

fn timed(file: &NetFile, path: &Path, options: SpeedOptions) -> (SpeedRecord, ReadSummary) {
    speed(file, path, options, None, &mut |_| {}).unwrap()
}

/// The network is timed as in the file, and with neurons permuted by positions of other games if there are any.
#[test]
fn speed_is_measured_with_and_without_permuted_neurons() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { file, .. } = nets("piece", &[8]);
    let options = SpeedOptions { repetitions: 2, seconds: 0.002, positions: 200, all_back_ends: true };
    let mut reports = Vec::new();
    let (record, _) = speed(&file, &path, options, None, &mut |report| reports.push(report.clone())).unwrap();
    let all: usize = games().iter().map(Vec::len).sum();
    let cut = games()
        .iter()
        .map(Vec::len)
        .scan(0, |sum, len| {
            *sum += len;
            Some(*sum)
        })
        .find(|sum| *sum >= 200)
        .unwrap();
    let arranged = record.ft_permuted.unwrap();
    assert_eq!(arranged.positions as usize, all - cut, "positions of the games that are not timed");
    assert_eq!(arranged.entries.len(), Strategy::ALL.len());
    assert!(arranged.entries.iter().all(|entry| entry.back_end == BackEnd::best().name()));
    let best = record.best.unwrap();
    let fastest = record.entries.iter().max_by(|a, b| a.evaluations_per_second.total_cmp(&b.evaluations_per_second));
    assert_eq!(fastest.map(|entry| (&entry.strategy, &entry.back_end)), Some((&best.strategy, &best.back_end)));
    for entry in record.entries.iter().chain(&arranged.entries) {
        let parts = entry.nanoseconds.unwrap();
        let bookkeeping = parts.bookkeeping.unwrap();
        assert!(bookkeeping > 0.0 && parts.features >= 0.0, "{entry:?}");
        assert!(parts.rows >= 0.0 && parts.forward >= 0.0, "{entry:?}");
        let total = 1e9 / entry.evaluations_per_second;
        assert!((parts.total() - total).abs() < 1e-6 * total, "{entry:?}");
        assert_eq!(entry.noisy, entry.interval > 0.1 * entry.evaluations_per_second);
    }
    let repetitions = reports.iter().filter_map(|report| report.repetitions);
    let timings = (record.entries.len() + record.known_lines.len() + arranged.entries.len()) as u32;
    assert!(repetitions.eq((0..2 * timings).map(|done| (done, 2 * timings))));
    let machine = record.machine.unwrap();
    assert!(!machine.cpu.is_empty() && machine.cores > 0 && machine.back_end == BackEnd::best().name());

    let options = SpeedOptions { all_back_ends: false, ..options };
    let (without_others, _) = timed(&file, &path, SpeedOptions { positions: all as u64, ..options });
    let on_best = |entry: &SpeedEntry| entry.back_end == BackEnd::best().name();
    assert!(without_others.entries.len() == Strategy::ALL.len() && without_others.entries.iter().all(on_best));
    assert!(without_others.ft_permuted.is_none(), "no other games are left");
    // A permuted network has another digest.
    let (other, _) = ft_permute(file.clone(), &path).unwrap();
    assert_ne!(timed(&other, &path, options).0.digest, record.digest);
    assert_eq!(without_others.digest, record.digest);
}

/// A network beside itself is as fast as itself, and its record says beside what it was timed.
#[test]
fn a_network_takes_turns_with_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { file, .. } = nets("piece", &[8]);
    let options = SpeedOptions { repetitions: 2, seconds: 0.006, positions: 200, ..SpeedOptions::default() };
    let (record, _) = speed(&file, &path, options, Some(&file), &mut |_| {}).unwrap();
    let beside = record.beside.clone().unwrap();
    assert_eq!(beside.digest, record.digest);
    assert!((0.5..2.0).contains(&beside.speed.ratio) && beside.speed.low <= beside.speed.high, "{beside:?}");
    assert!(timed(&file, &path, options).0.beside.is_none());
}

/// The user's figures change the ratio of speeds as they should: a time of finding features far above all others
/// decides alone; a cost of a node holds at the network's own width.
#[test]
fn speeds_beside_a_reference_go_by_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { file, .. } = nets("piece", &[8]);
    let options = EqualSpeedOptions { tolerance: 0.5, positions: 200, repetitions: 3, seconds: 0.005 };
    let ratio = |features_ns| {
        let own = OwnSpeeds { features_ns, ..OwnSpeeds::default() };
        relative_speed(&file, &file, &path, options, own).unwrap()
    };
    let [far, further] = [Some(1e6), Some(2e6)];
    let record = ratio([far, None]);
    assert!(record.speed.ratio < 0.1 && record.is_by_figures(), "{record:?}");
    let record = ratio([further, far]);
    assert!((record.speed.ratio - 0.5).abs() < 0.05 && record.own_features_ns == [further, far], "{record:?}");
    assert!(!ratio([None, None]).is_by_figures());
    let own = OwnSpeeds { node_cost: Some(4.0), ..OwnSpeeds::default() };
    let found = equal_speed(&file, &file, &path, options, own).unwrap();
    let scale = found.own_scale.unwrap();
    assert!((0.1..0.6).contains(&scale) && found.l1 == 32, "a quarter as fast at every width: {found:?}");
    let own = OwnSpeeds { scale: Some(2.0 * scale), ..OwnSpeeds::default() };
    let again = relative_speed(&file, &file, &path, options, own).unwrap();
    assert!((0.3..0.8).contains(&again.speed.ratio) && again.own_scale == Some(2.0 * scale), "{again:?}");
}

/// Every strategy finds the features of every move of a line once; a lazy strategy only up to positions that are
/// evaluated.
#[test]
fn followed_moves_are_counted() {
    let games = games();
    let Nets { file, .. } = nets("piece", &[]);
    let set = file.origin.feature_set().unwrap();
    let model = Model::new(&file.net);
    for strategy in Strategy::ALL {
        let mut evaluator = Evaluator::new(&set, &model, strategy, BackEnd::best()).unwrap();
        let mut position = Chess::default();
        evaluator.set(position.board());
        evaluator.score(position.turn());
        for (index, mv) in games[0].iter().enumerate() {
            let change = BoardChange::of(*mv, position.turn());
            position.play_unchecked(*mv);
            evaluator.play(&change);
            // Every second position is evaluated, twice.
            if index % 2 == 1 {
                evaluator.score(position.turn());
                evaluator.score(position.turn());
            }
        }
        let moves = (games[0].len() / 2 * 2 + 1) as f64;
        let last = (games[0].len() % 2) as f64;
        let expected = if strategy.lazy() { moves } else { moves + last };
        assert_eq!(evaluator.moves_followed(), expected, "{}", strategy.name());
    }
}

/// An evaluator with a model without neurons counts the same rows.
#[test]
fn models_without_neurons_count_the_same_rows() {
    let games = games();
    for set in ["piece + half-ka-v2-hm", "mobility-count"] {
        let Nets { file, .. } = nets(set, &[]);
        let set = file.origin.feature_set().unwrap();
        let model = Model::new(&file.net);
        let without_neurons = model.without_neurons();
        for strategy in Strategy::ALL {
            let rows = |model: &Model| {
                let mut evaluator = Evaluator::new(&set, model, strategy, BackEnd::best()).unwrap();
                for moves in &games[..4] {
                    let mut position = Chess::default();
                    evaluator.set(position.board());
                    for mv in moves {
                        let change = BoardChange::of(*mv, position.turn());
                        position.play_unchecked(*mv);
                        evaluator.play(&change);
                        for pov in Perspective::ALL {
                            evaluator.accumulator(pov);
                        }
                    }
                }
                evaluator.rows()
            };
            assert!(rows(&model) > 0 && rows(&model) == rows(&without_neurons), "{}", strategy.name());
        }
    }
}

#[test]
fn speed_covers_every_strategy_and_back_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { mut file, .. } = nets("king-piece", &[]);
    let options = SpeedOptions { repetitions: 2, seconds: 0.005, positions: 200, all_back_ends: true };
    let (record, _) = timed(&file, &path, options);
    assert_eq!(record.positions, 200);
    let ways: Vec<_> = record.entries.iter().map(|entry| (entry.strategy.as_str(), entry.back_end.as_str())).collect();
    let each = |strategy: Strategy| BackEnd::available().into_iter().map(move |end| (strategy.name(), end.name()));
    assert_eq!(ways, Strategy::ALL.into_iter().flat_map(each).collect::<Vec<_>>());
    let known: Vec<_> =
        record.known_lines.iter().map(|entry| (entry.strategy.as_str(), entry.back_end.as_str())).collect();
    let each = BackEnd::available().into_iter().map(|end| ("known line", end.name()));
    assert_eq!(known, each.collect::<Vec<_>>());
    assert!(record.known_lines.iter().all(|entry| entry.evaluations_per_second > 0.0 && entry.rows > 0.0));
    let rows = |way: &str| record.entries.iter().find(|entry| entry.strategy == way).unwrap().rows;
    assert!(rows("lazy + cache") <= rows("lazy") && rows("lazy") < rows("refresh"));
    assert!(record.entries.iter().all(|entry| entry.row_bytes == 64), "numbers that fit a byte");
    assert!(record.entries.iter().all(|entry| entry.evaluations_per_second > 0.0 && entry.interval >= 0.0));
    file.net.ft_weights[5] = 128;
    let (record, _) = timed(&file, &path, options);
    assert!(record.entries.iter().all(|entry| entry.row_bytes == 128), "64 numbers of 16 bits");
}

/// A king move recomputes the king-dependent block only.
#[test]
fn refreshes_are_partial() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let options = SpeedOptions { repetitions: 2, seconds: 0.001, positions: 1_000, ..SpeedOptions::default() };
    let rows = |set: &str, strategy: &str| {
        let (record, _) = timed(&nets(set, &[]).file, &path, options);
        record.entries.iter().find(|entry| entry.strategy == strategy).unwrap().rows
    };
    for strategy in ["eager", "lazy", "eager + cache", "lazy + cache"] {
        let mixed = rows("piece + half-ka-v2-hm", strategy);
        let alone = rows("half-ka-v2-hm", strategy);
        // Besides the rows of the other block: the king-independent changes, twice, and its rows at the start of each
        // game.
        assert!(mixed > alone && mixed - alone < 11.0, "{strategy}: {mixed} {alone}");
    }
}
