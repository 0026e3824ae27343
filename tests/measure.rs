//! Compares the measures with independent counts over random games.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsbench::chess::{Board, BoardChange, Chess, Move, Perspective};
use fsbench::data::Method;
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::features::FeatureSet;
use fsbench::measure::{ErrorOptions, ReadSummary, SpeedOptions, activity, error, ft_permute, speed, updates};
use fsbench::net::{
    Activation, BucketRule, Checkpoint, FloatNet, NetFile, Origin, OutputBuckets, Scheme, forward_integer, quantise,
};
use fsbench::pipeline::{BuildJob, BuildOptions, WeightedInput, build};
use fsbench::record::{BucketActivity, MoveCounts, SpeedRecord};
use shakmaty::Position;

const GAMES: u64 = 25;

fn games() -> Vec<Vec<Move>> {
    (0..GAMES).map(|game| common::random_game(game, 90)).collect()
}

fn write_pgn(folder: &Path, games: &[Vec<Move>]) -> PathBuf {
    let path = folder.join("games.pgn");
    std::fs::write(&path, common::pgn(games)).unwrap();
    path
}

/// The measures computed by definition, from the reference encoder: sets of (feature, occurrence).
#[derive(Default)]
struct Direct {
    moves: f64,
    active: f64,
    active_max: usize,
    sides: [[f64; 6]; 2],
    legal_moves: f64,
    legal: [[f64; 6]; 2],
}

type Active = BTreeSet<(u32, usize)>;
/// Keyed by perspective, block and context.
type Cache = HashMap<(usize, usize, Option<u32>), Active>;

/// The active features of a block; repeated features of a bag are numbered.
fn block_set(set: &FeatureSet, block: usize, board: &Board, pov: Perspective) -> Active {
    let block = &set.blocks()[block];
    let inside: BTreeSet<u32> = block.indices().collect();
    let mut occurrences: HashMap<u32, usize> = HashMap::new();
    let features = set.reference(board, pov).into_iter().filter(|feature| inside.contains(feature));
    features
        .map(|feature| {
            let count = occurrences.entry(feature).or_default();
            *count += 1;
            (feature, *count)
        })
        .collect()
}

impl Direct {
    fn game(&mut self, set: &FeatureSet, moves: &[Move], legal: bool) {
        let mut position = Chess::default();
        let mut cache = Cache::new();
        let blocks = 0..set.blocks().len();
        for pov in Perspective::ALL {
            for block in blocks.clone() {
                let key = (pov.index(), block, set.encoder().context(block, position.board(), pov));
                cache.insert(key, block_set(set, block, position.board(), pov));
            }
        }
        for mv in moves {
            for pov in Perspective::ALL {
                let active = set.reference(position.board(), pov).len();
                self.active += active as f64;
                self.active_max = self.active_max.max(active);
            }
            if legal {
                for mv in position.legal_moves() {
                    self.legal_moves += 1.0;
                    let after = position.clone().play(mv).unwrap();
                    for pov in Perspective::ALL {
                        let counts = compare(set, &position, &after, pov, &mut cache.clone());
                        let side = &mut self.legal[usize::from(pov.own() != position.turn())];
                        side.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                    }
                }
            }
            let after = position.clone().play(*mv).unwrap();
            self.moves += 1.0;
            for pov in Perspective::ALL {
                let counts = compare(set, &position, &after, pov, &mut cache);
                let side = &mut self.sides[usize::from(pov.own() != position.turn())];
                side.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            position = after;
        }
    }
}

/// Returns added, removed, refreshes, rows_update, rows_refresh, rows_cache.
fn compare(set: &FeatureSet, before: &Chess, after: &Chess, pov: Perspective, cache: &mut Cache) -> [f64; 6] {
    let mut counts = [0.0; 6];
    for block in 0..set.blocks().len() {
        let (a, b) = (block_set(set, block, before.board(), pov), block_set(set, block, after.board(), pov));
        let delta = a.symmetric_difference(&b).count() as f64;
        let context = set.encoder().context(block, after.board(), pov);
        let changed = set.encoder().context(block, before.board(), pov) != context;
        counts[0] += b.difference(&a).count() as f64;
        counts[1] += a.difference(&b).count() as f64;
        counts[2] = if changed { 1.0 } else { counts[2] };
        counts[3] += if changed { b.len() as f64 } else { delta };
        counts[4] += b.len() as f64;
        counts[5] += if changed {
            let cached = cache.insert((pov.index(), block, context), b.clone());
            let all = b.len();
            cached.map_or(all, |cached| cached.symmetric_difference(&b).count().min(all)) as f64
        } else {
            delta
        };
    }
    counts
}

fn assert_counts(found: &MoveCounts, sums: &[f64], moves: f64, what: &str) {
    let found = [found.added, found.removed, found.refreshes, found.rows_update, found.rows_refresh, found.rows_cache];
    for (n, sum) in sums.iter().enumerate() {
        assert!((found[n] - sum / moves).abs() < 1e-9, "{what}, column {n}: {} against {}", found[n], sum / moves);
    }
}

#[test]
fn updates_equal_a_direct_count() {
    let folder = tempfile::tempdir().unwrap();
    let games = games();
    let path = write_pgn(folder.path(), &games);
    let fsd = folder.path().join("games.fsd");
    let options = BuildOptions { min_moves: 0, ..BuildOptions::new(Method::Pqr) };
    let inputs = [WeightedInput::file(&path)];
    build(&BuildJob::new(&inputs, &fsd, &options), &mut |_| {}).unwrap();
    for (n, set) in common::sets().iter().enumerate() {
        // All legal moves are slow with the reference encoder: only for some sets and games.
        let legal = n % 3 == 0;
        let count = if legal { 3 } else { GAMES as usize };
        let (record, reading) = updates(set, &path, Some(count as u64), legal).unwrap();
        let mut direct = Direct::default();
        games[..count].iter().for_each(|moves| direct.game(set, moves, legal));
        let name = set.name();
        assert_eq!((record.games, reading.skipped.total()), (count as u64, 0));
        assert_eq!((record.positions as f64, record.moves as f64), (direct.moves, direct.moves));
        assert!((record.active_mean - direct.active / 2.0 / direct.moves).abs() < 1e-9, "{name}");
        assert_eq!(record.active_max, direct.active_max as u64, "{name}");
        assert!((record.density - record.active_mean / f64::from(set.num_features())).abs() < 1e-15);
        assert_counts(&record.mover, &direct.sides[0], direct.moves, name);
        assert_counts(&record.other, &direct.sides[1], direct.moves, name);
        let both: Vec<f64> = direct.sides[0].iter().zip(direct.sides[1]).map(|(a, b)| (a + b) / 2.0).collect();
        assert_counts(&record.mean, &both, direct.moves, name);
        assert_eq!(record.legal.is_some(), legal);
        if let Some(found) = &record.legal {
            assert_eq!(found.moves as f64, direct.legal_moves);
            assert_counts(&found.mover, &direct.legal[0], direct.legal_moves, name);
            assert_counts(&found.other, &direct.legal[1], direct.legal_moves, name);
        }
        let (from_records, _) = updates(set, &fsd, Some(count as u64), legal).unwrap();
        assert_eq!(from_records, record, "{name}");
    }
}

#[test]
fn only_sets_that_read_the_king_refresh() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let check = |set: &str, looks: bool| {
        let set = FeatureSet::resolve(set).unwrap();
        let (record, _) = updates(&set, &path, None, false).unwrap();
        assert_eq!(record.mover.refreshes > 0.0, looks, "{}", set.name());
        assert_eq!(record.other.refreshes, 0.0, "{}", set.name());
        assert!(
            record.mean.rows_cache <= record.mean.rows_update && record.mean.rows_update < record.mean.rows_refresh
        );
    };
    check("piece", false);
    check("compact", false);
    check("king-piece", true);
    check("relative-king-hv", true);
}

struct Nets {
    file: NetFile,
    float: FloatNet,
    checkpoint: Checkpoint,
}

fn nets(set: &str, hidden: &[usize]) -> Nets {
    let set = FeatureSet::resolve(set).unwrap();
    let float = common::random_net(set.num_features(), 32, hidden, 9);
    let net = quantise(&float, &Scheme::stockfish()).unwrap();
    let origin = Origin::of(&set);
    let checkpoint = Checkpoint { origin: origin.clone(), training: serde_json::Value::Null };
    Nets { file: NetFile { origin, net }, float, checkpoint }
}

#[test]
fn activity_equals_a_direct_count() {
    let folder = tempfile::tempdir().unwrap();
    let games = games();
    let path = write_pgn(folder.path(), &games);
    let Nets { mut file, .. } = nets("piece", &[8]);
    // One neuron is never positive, one always saturated.
    file.net.ft_biases[..2].copy_from_slice(&[-20_000, 20_000]);
    let set = file.origin.feature_set().unwrap();
    let (record, _) = activity(&file, &path, None).unwrap();

    let (mut positions, mut positive, mut full) = (0u64, 0u64, 0u64);
    let mut ever = [false; 32];
    for moves in &games {
        let mut position = Chess::default();
        for mv in moves {
            positions += 1;
            for pov in Perspective::ALL {
                for (n, sum) in file.net.accumulate(&set.reference(position.board(), pov)).into_iter().enumerate() {
                    positive += u64::from(sum > 0);
                    full += u64::from(sum >= 127);
                    ever[n] |= sum > 0;
                }
            }
            position.play_unchecked(*mv);
        }
    }
    let outputs = (positions * 64) as f64;
    assert_eq!(record.positions, positions);
    let l1 = &record.layers[0];
    assert_eq!((l1.layer.as_str(), l1.neurons, record.layers.len()), ("l1", 32, 2));
    assert!((l1.active - positive as f64 / outputs).abs() < 1e-12);
    assert!((l1.saturated - full as f64 / outputs).abs() < 1e-12);
    assert_eq!(l1.never_active, ever.iter().filter(|seen| !**seen).count());
    assert!(l1.never_active >= 1 && l1.saturated > 1.0 / 32.0);
    assert_eq!((record.layers[1].layer.as_str(), record.layers[1].neurons), ("l2", 8));
    assert!(record.buckets.is_empty());
}

/// The counts of the buckets add up to the total, and a neuron that is dead in one bucket is reported only there.
#[test]
fn activity_is_counted_by_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { mut file, .. } = nets("piece", &[8]);
    file.net.shape.buckets = OutputBuckets { count: 8, rule: BucketRule::Stockfish };
    file.net.stacks = vec![file.net.stacks.remove(0); 8];
    file.net.stacks[7][0].biases[3] = -1_000_000;
    let (record, _) = activity(&file, &path, None).unwrap();
    assert_eq!(record.buckets.len(), 8);
    assert_eq!(record.buckets.iter().map(|bucket| bucket.positions).sum::<u64>(), record.positions);
    for layer in 0..2 {
        let active = |bucket: &BucketActivity| bucket.layers[layer].active * bucket.positions as f64;
        let sum: f64 = record.buckets.iter().map(active).sum();
        assert!((sum / record.positions as f64 - record.layers[layer].active).abs() < 1e-9);
    }
    let never = |bucket: usize| record.buckets[bucket].layers[1].never_active;
    assert!(record.buckets[7].positions > 100 && never(7) > record.layers[1].never_active);
}

/// Values of relu have no upper bound and are never saturated.
#[test]
fn relu_is_never_saturated() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games()[..3]);
    let Nets { mut float, checkpoint, .. } = nets("piece", &[]);
    let measure = |float: &FloatNet| {
        let net = quantise(float, &Scheme::simple()).unwrap();
        activity(&NetFile { origin: checkpoint.origin.clone(), net }, &path, None).unwrap().0.layers.remove(0)
    };
    let crelu = measure(&float);
    float.shape.activation = Activation::Relu;
    let relu = measure(&float);
    assert!(crelu.saturated > 0.0 && relu.saturated == 0.0);
    assert_eq!((crelu.active, crelu.never_active), (relu.active, relu.never_active));
}

#[test]
fn errors_are_small_and_networks_must_match() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { file, float, checkpoint } = nets("piece", &[8]);
    let (record, _) = error(&file, &float, &checkpoint, &path, ErrorOptions::default()).unwrap();
    assert!(record.mean > 0.0 && record.mean <= record.p99 && record.p99 <= record.max, "{record:?}");
    assert!(record.within_tolerance > 0.99 && record.accumulator_overflows == 0, "{record:?}");

    let mut wrong = float.clone();
    wrong.stacks[0][1].biases[0] += 0.3;
    let (shifted, _) = error(&file, &wrong, &checkpoint, &path, ErrorOptions::default()).unwrap();
    assert!(shifted.mean > 0.05 && shifted.within_tolerance < 0.5, "{shifted:?}");

    let mut overflowing = file.clone();
    overflowing.net.ft_biases[0] = i16::MAX;
    let (record, _) = error(&overflowing, &float, &checkpoint, &path, ErrorOptions::default()).unwrap();
    assert!(record.accumulator_overflows > 0);

    let other = nets("compact", &[8]);
    let refused = error(&file, &other.float, &other.checkpoint, &path, ErrorOptions::default()).unwrap_err();
    let text = refused.to_string();
    let identities = [&file.origin.identity, &other.file.origin.identity].map(ToString::to_string);
    assert!(identities.iter().all(|identity| text.contains(identity)), "{text}");
    let narrow = nets("piece", &[4]);
    let refused = error(&file, &narrow.float, &narrow.checkpoint, &path, ErrorOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("(768 → 32) × 2 → 8 → 1"), "{refused}");
}

fn timed(file: &NetFile, path: &Path, options: SpeedOptions) -> (SpeedRecord, ReadSummary) {
    speed(file, path, options, &mut |_| {}).unwrap()
}

/// The network is timed as in the file, and with neurons permuted by positions of other games if there are any.
#[test]
fn speed_is_measured_with_and_without_permuted_neurons() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &games());
    let Nets { file, .. } = nets("piece", &[8]);
    let options = SpeedOptions { repetitions: 2, duration: Duration::from_millis(2), positions: 200 };
    let mut reports = Vec::new();
    let (record, _) = speed(&file, &path, options, &mut |report| reports.push(report.clone())).unwrap();
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
        assert!(parts.features > 0.0 && parts.rows >= 0.0 && parts.forward >= 0.0, "{entry:?}");
        let total = 1e9 / entry.evaluations_per_second;
        assert!((parts.features + parts.rows + parts.forward - total).abs() < 1e-6 * total, "{entry:?}");
        assert_eq!(entry.noisy, entry.interval > 0.1 * entry.evaluations_per_second);
    }
    let repetitions = reports.iter().filter_map(|report| report.repetitions);
    let timings = (record.entries.len() + arranged.entries.len()) as u32;
    assert!(repetitions.eq((0..2 * timings).map(|done| (done, 2 * timings))));
    let machine = record.machine.unwrap();
    assert!(!machine.cpu.is_empty() && machine.cores > 0 && machine.back_end == BackEnd::best().name());

    let (without_others, _) = timed(&file, &path, SpeedOptions { positions: all as u64, ..options });
    assert!(without_others.ft_permuted.is_none(), "no other games are left");
    // A permuted network has another digest.
    let (other, _) = ft_permute(file.clone(), &path).unwrap();
    assert_ne!(timed(&other, &path, options).0.digest, record.digest);
    assert_eq!(without_others.digest, record.digest);
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
                        let before = position.board().clone();
                        let change = BoardChange::of(*mv, position.turn());
                        position.play_unchecked(*mv);
                        evaluator.play(&before, &change, position.board());
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
    let options = SpeedOptions { repetitions: 2, duration: Duration::from_millis(5), positions: 200 };
    let (record, _) = timed(&file, &path, options);
    assert_eq!(record.positions, 200);
    let ways: Vec<_> = record.entries.iter().map(|entry| (entry.strategy.as_str(), entry.back_end.as_str())).collect();
    let each = |strategy: Strategy| BackEnd::available().into_iter().map(move |end| (strategy.name(), end.name()));
    assert_eq!(ways, Strategy::ALL.into_iter().flat_map(each).collect::<Vec<_>>());
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
    let options = SpeedOptions { repetitions: 2, duration: Duration::from_millis(1), positions: 1_000 };
    let rows = |set: &str, strategy: &str| {
        let (record, _) = timed(&nets(set, &[]).file, &path, options);
        record.entries.iter().find(|entry| entry.strategy == strategy).unwrap().rows
    };
    for strategy in ["eager", "lazy", "eager + cache", "lazy + cache"] {
        let (mixed, alone) = (rows("piece + half-ka-v2-hm", strategy), rows("half-ka-v2-hm", strategy));
        // Besides the rows of the other block: the king-independent changes, twice, and its rows at the start of each
        // game.
        assert!(mixed > alone && mixed - alone < 11.0, "{strategy}: {mixed} {alone}");
    }
}

#[test]
fn data_without_moves_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_pgn(folder.path(), &[vec![]]);
    let set = FeatureSet::resolve("piece").unwrap();
    let refused = updates(&set, &path, None, false).unwrap_err();
    assert!(refused.to_string().contains("holds no position to measure"), "{refused}");
    assert!(updates(&set, &folder.path().join("missing"), None, false).is_err());
}

/// `net convert --arrange` writes another file with the same scores.
#[test]
fn the_command_arranges_networks() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let data = write_pgn(folder.path(), &games());
    nets("piece", &[8]).file.save(&path("net")).unwrap();
    let fsbench = || std::process::Command::new(env!("CARGO_BIN_EXE_fsbench"));
    let convert = |data: &std::path::Path| {
        let mut command = fsbench();
        command.args(["net", "convert"]).args([path("net"), path("arranged")]).arg("--arrange").arg(data);
        command.output().unwrap()
    };
    assert_eq!(convert(&path("nowhere")).status.code(), Some(2));
    assert!(!path("arranged").exists());
    let output = convert(&data);
    assert!(output.status.success(), "{output:?}");
    assert_ne!(std::fs::read(path("net")).unwrap(), std::fs::read(path("arranged")).unwrap());
    let score = |net: &str| {
        let fen = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3";
        let output = fsbench().arg("eval").arg("--net").arg(path(net)).args(["--fen", fen]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    assert_eq!(score("net"), score("arranged"));
}

/// `fsbench eval` prints the reference's score, one document per line.
#[test]
fn the_command_scores_positions() {
    let folder = tempfile::tempdir().unwrap();
    let net = folder.path().join("net");
    let Nets { file, .. } = nets("piece", &[8]);
    file.save(&net).unwrap();
    let set = file.origin.feature_set().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fsbench"));
        command.arg("eval").arg("--net").arg(&net).args(arguments).output().unwrap()
    };
    let fens = ["rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "4k3/8/8/8/8/8/4P3/4K3 b - - 0 1"];
    let list = folder.path().join("fens");
    std::fs::write(&list, fens.join("\n")).unwrap();
    let output = run(&["--fens", list.to_str().unwrap(), "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 2);
    for (line, fen) in text.lines().zip(fens) {
        let position: Chess =
            fen.parse::<shakmaty::fen::Fen>().unwrap().into_position(shakmaty::CastlingMode::Standard).unwrap();
        let stm = Perspective::of(position.turn());
        let active = |pov| set.reference(position.board(), pov);
        let internal = forward_integer(&file.net, 0, &active(stm), &active(stm.other())).sum() / 16;
        let expected = serde_json::json!({
            "fen": fen, "score_internal": internal, "score_cp": internal, "bucket": 0,
            "buckets": [{ "psqt": 0, "positional": internal }],
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap(), expected);
    }
    assert!(run(&["--fen", fens[0]]).status.success());
    assert_eq!(run(&["--fen", "nonsense"]).status.code(), Some(2));
    assert_eq!(run(&["--fens", "/nonexistent"]).status.code(), Some(2));
    assert_eq!(run(&[]).status.code(), Some(2));
    std::fs::write(&net, b"no network").unwrap();
    assert_eq!(run(&["--fen", fens[0]]).status.code(), Some(2));
}
