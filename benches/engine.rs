//! Evaluations per second of one thread that plays through games and evaluates every position.
//!
//! Run `cargo bench --bench engine`, optionally with a filter such as `piece/lazy`. `stockfish-15.1` is the network of
//! Debian's Stockfish, if it is installed; the engine's own `bench` is the comparison. `piece` is 512×2 → 32 → 1 with
//! random weights, `simple` is 512×2 screlu → 1 in i16, `yours` is the file in FSBENCH_NET. Times are the thread's CPU
//! time. `known line` evaluates the games some positions at a time. The limit is to read the rows that the strategy
//! adds, as fast as this CPU reads a table of that size.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark stops at the first surprise")]

mod limits;

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fsbench::chess::{Board, BoardChange, Color};
use fsbench::data::games;
use fsbench::engine::{BackEnd, Evaluator, LineEvaluator, Model, PlayedPosition, Strategy, ft_permute};
use fsbench::features::FeatureSet;
use fsbench::net::{Activation, Dense, FloatNet, NetFile, Origin, Scheme, Shape, quantise};
use fsbench::units::Seed;
use limits::Limit;
use rand::RngExt;
use shakmaty::Position;

/// Positions to read from the start of the games.
const POSITIONS: usize = 20_000;

struct TrackPosition {
    board: Board,
    turn: Color,
    played: PlayedPosition,
}

fn track() -> Vec<TrackPosition> {
    let folder = std::env::var_os("FSBENCH_DATA").expect("set FSBENCH_DATA to a folder with lichess-plain.pgn.zst");
    let mut track = Vec::new();
    for game in games(&Path::new(&folder).join("lichess-plain.pgn.zst")).expect("games") {
        let game = game.expect("a game");
        let mut position = game.start.clone();
        let turn = position.turn();
        let played = PlayedPosition::start(position.board(), turn);
        track.push(TrackPosition { board: position.board().clone(), turn, played });
        for played in &game.moves {
            let change = BoardChange::of(played.mv, position.turn());
            position.play_unchecked(played.mv);
            let turn = position.turn();
            let played = PlayedPosition::after(change, turn);
            track.push(TrackPosition { board: position.board().clone(), turn, played });
        }
        if track.len() >= POSITIONS {
            break;
        }
    }
    track.truncate(POSITIONS);
    track
}

fn stockfish() -> Option<NetFile> {
    let folder = tempfile::tempdir().ok()?;
    let net = folder.path().join("net.nnue");
    let engine = Command::new("/usr/games/stockfish").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut engine = engine.ok()?;
    writeln!(engine.stdin.take()?, "export_net {}\nquit", net.display()).ok()?;
    engine.wait().ok()?;
    NetFile::load(&net).ok()
}

/// A network of random weights with 512×2 accumulators.
fn piece(hidden: Vec<usize>, activation: Activation, scheme: &Scheme) -> NetFile {
    let set = FeatureSet::resolve("piece").expect("shipped");
    let shape = Shape { activation, ..Shape::plain(set.num_features(), 512, hidden) };
    let mut rng = Seed(1).stream("bench", 0);
    let mut uniform =
        |count: usize, bound: f32| -> Vec<f32> { (0..count).map(|_| rng.random_range(-bound..bound)).collect() };
    let layers = shape.layer_sizes().into_iter().map(|(inputs, outputs)| {
        let weights = uniform(inputs * outputs, 1.0 / (inputs as f32).sqrt());
        Dense { inputs, outputs, weights, biases: vec![0.0; outputs] }
    });
    let stacks = vec![layers.collect()];
    let ft_weights = uniform(768 * 512, 0.25);
    let ft_biases = uniform(512, 0.5);
    let float = FloatNet { shape, ft_weights, ft_biases, stacks };
    NetFile { origin: Origin::of(&set), net: quantise(&float, scheme).expect("fits") }
}

/// Evaluates every position.
fn follow(evaluator: &mut Evaluator<'_>, track: &[TrackPosition]) {
    for position in track {
        evaluator.advance(&position.played.of_line());
        black_box(evaluator.raw(position.turn));
    }
}

/// [`follow`] for lines known beforehand.
fn follow_lines(evaluator: &mut LineEvaluator<'_>, track: &[TrackPosition]) {
    let positions = track.iter().map(|position| position.played.of_line());
    evaluator.evaluate(positions, |raw| {
        black_box(raw);
    });
}

fn evaluate(c: &mut Criterion) {
    limits::announce();
    let track = track();
    let yours = std::env::var_os("FSBENCH_NET").map(|path| NetFile::load(Path::new(&path)).expect("a network"));
    let nets = [
        ("yours", yours),
        ("stockfish-15.1", stockfish()),
        ("piece", Some(piece(vec![32], Activation::Crelu, &Scheme::stockfish()))),
        ("simple", Some(piece(vec![], Activation::Screlu, &Scheme::simple()))),
    ];
    for (name, file) in nets.into_iter().filter_map(|(name, file)| Some((name, file?))) {
        let set = file.origin.feature_set().expect("its own");
        let sample = track.iter().step_by(10).map(|position| (&position.board, position.turn));
        let model = Model::new(&ft_permute(&set, &file.net, sample).expect("its own"));
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(track.len() as u64)).sample_size(10);
        group.measurement_time(Duration::from_secs(3));
        let limit = |rows: u64| {
            let read = rows as f64 * model.row_bytes() as f64;
            Limit::reading(read, set.num_features() as usize * model.row_bytes(), track.len())
        };
        for back_end in BackEnd::available() {
            let mut evaluator = LineEvaluator::new(&set, &model, back_end).expect("its own");
            follow_lines(&mut evaluator, &track);
            let rows = evaluator.rows();
            follow_lines(&mut evaluator, &track);
            let limit = limit(evaluator.rows() - rows);
            let name = format!("known line/{}", back_end.name());
            limits::bench(&mut group, &name, track.len(), &limit, ThreadTime::now, ThreadTime::elapsed, || {
                follow_lines(&mut evaluator, &track);
            });
        }
        for strategy in Strategy::ALL {
            for back_end in BackEnd::available() {
                let mut evaluator = Evaluator::new(&set, &model, strategy, back_end).expect("its own");
                follow(&mut evaluator, &track);
                let rows = evaluator.rows();
                follow(&mut evaluator, &track);
                let limit = limit(evaluator.rows() - rows);
                let name = format!("{}/{}", strategy.name(), back_end.name());
                limits::bench(&mut group, &name, track.len(), &limit, ThreadTime::now, ThreadTime::elapsed, || {
                    follow(&mut evaluator, &track);
                });
            }
        }
    }
}

criterion_group!(benches, evaluate);
criterion_main!(benches);
