//! Random games, random networks and feature sets for integration tests.
#![allow(dead_code, clippy::unwrap_used, reason = "each test uses only some of these")]

pub mod castlings;
pub mod networks;
pub mod planted;
pub mod skip;

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use fsbench::chess::{CHESS960_STARTS, Chess, Move, chess960_start};
use fsbench::features::FeatureSet;
use fsbench::net::{Dense, FloatNet, Shape};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::Position;
use shakmaty::san::SanPlus;

/// Random moves from the initial position. Three in ten times a capture, promotion or castling is preferred, so that
/// games reach endings.
pub fn random_game(seed: u64, plies: usize) -> Vec<Move> {
    let mut rng = Seed(5).stream("random game", seed);
    let mut position = Chess::default();
    let mut game = Vec::with_capacity(plies);
    while game.len() < plies {
        let moves = position.legal_moves();
        let is_sharp = |mv: &&Move| mv.is_capture() || mv.is_promotion() || mv.is_castle();
        let sharp: Vec<Move> = moves.iter().filter(is_sharp).copied().collect();
        let candidates = if !sharp.is_empty() && rng.random_bool(0.3) { &sharp[..] } else { &moves[..] };
        if candidates.is_empty() {
            break;
        }
        let mv = candidates[rng.random_range(0..candidates.len())];
        game.push(mv);
        position.play_unchecked(mv);
    }
    game
}

/// A start position by number: of standard chess, of Chess960, of double Chess960.
pub fn start_of_each_kind(number: u64) -> Chess {
    let mut rng = Seed(5).stream("start position", number);
    let [white, black] = [0; 2].map(|_: u32| rng.random_range(0..CHESS960_STARTS));
    match number % 3 {
        0 => Chess::default(),
        1 => chess960_start(white, white).unwrap(),
        _ => chess960_start(white, black).unwrap(),
    }
}

/// The document in a file with a checksum, or in a line of such a file.
pub fn content(envelope: &[u8]) -> serde_json::Value {
    let mut envelope: serde_json::Value = serde_json::from_slice(envelope).unwrap();
    envelope["content"].take()
}

/// [`content`] as a value of its type.
pub fn content_as<T: serde::de::DeserializeOwned>(envelope: &[u8]) -> T {
    serde_json::from_value(content(envelope)).unwrap()
}

/// The command in a process that ignores only the signals `ignored`, even if this test's own process ignores others.
pub fn with_default_signals(command: &Command, ignored: &[&str]) -> Command {
    let mut env = Command::new("env");
    env.arg("--default-signal=INT,TERM,HUP");
    env.args(ignored.iter().map(|signal| format!("--ignore-signal={signal}")));
    env.arg(command.get_program()).args(command.get_args());
    env.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    env.stderr(Stdio::piped());
    env.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    env
}

/// Games from the initial position as PGN.
pub fn pgn(games: &[Vec<Move>]) -> String {
    let game = |moves: &Vec<Move>| {
        let mut position = Chess::default();
        let sans = moves.iter().map(|mv| SanPlus::from_move_and_play_unchecked(&mut position, *mv).to_string());
        format!("[Event \"test\"]\n[Result \"*\"]\n\n{} *\n\n", sans.collect::<Vec<_>>().join(" "))
    };
    games.iter().map(game).collect()
}

/// A network with weights as after training: small, within the scheme's limits, with activations spread over [0, 1].
pub fn random_net(features: u32, l1: usize, hidden: &[usize], seed: u64) -> FloatNet {
    let shape = Shape::plain(features, l1, hidden.to_vec());
    let mut rng = Seed(seed).stream("random net", 0);
    let mut uniform =
        |count: usize, bound: f32| -> Vec<f32> { (0..count).map(|_| rng.random_range(-bound..bound)).collect() };
    let ft_weights = uniform(features as usize * l1, 0.25);
    let ft_biases = uniform(l1, 0.5);
    let layer = |(inputs, outputs): (usize, usize)| {
        let bound = 2.0 / (inputs as f32).sqrt();
        let weights = uniform(inputs * outputs, bound.min(1.5));
        Dense { inputs, outputs, weights, biases: uniform(outputs, bound) }
    };
    let stacks = vec![shape.layer_sizes().into_iter().map(layer).collect()];
    FloatNet { shape, ft_weights, ft_biases, stacks }
}

/// At least one shipped set of every kind. The encoder's unit tests use all shipped sets.
const SETS: [&str; 12] = [
    "piece",
    "compact",
    "king-piece",
    "piece-move",
    "relative-king-h",
    "relative-king-v",
    "relative-king-hv",
    "half-kp",
    "half-ka-v2-hm",
    "top-pp",
    "pairs-d1",
    "mobility-count",
];

/// Shipped sets, and further ones that use more of the language.
pub fn sets() -> Vec<FeatureSet> {
    let expressions = [
        "square(K) * square(P) * color(P) for P in pieces + file(E) * rank(P) * role(P) for P in pieces",
        "rank(P) * role(P) * color(P) * role(Q) * color(Q) for P in pieces, Q in next(P, east)",
        "features = \"square(M) * role(P) * color(P) for P in pieces, M in moves(P)\"\nmultiplicity = \"bag\"\n\
         mirror = \"king-left\"",
    ];
    let shipped = SETS.into_iter().map(|name| FeatureSet::resolve(name).unwrap());
    let further = expressions.iter().map(|text| {
        if text.contains('"') { FeatureSet::from_definition(text).unwrap() } else { FeatureSet::resolve(text).unwrap() }
    });
    shipped.chain(further).collect()
}

/// The multiset difference `left` − `right`, in the order of `left`.
pub fn without(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut counts: HashMap<u32, i32> = HashMap::new();
    right.iter().for_each(|index| *counts.entry(*index).or_default() += 1);
    let is_unmatched = |index: &&u32| {
        let count = counts.entry(**index).or_default();
        *count -= 1;
        *count < 0
    };
    left.iter().filter(is_unmatched).copied().collect()
}

/// Writes a compressed file of a few megabytes that unpacks to gigabytes of games, so that reading it takes minutes.
pub fn write_many_games(path: &Path) {
    const FRAMES: usize = 4_000;
    let text =
        "[Event \"test\"]\n[Result \"*\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 *\n\n".repeat(10_000);
    let frame = zstd::encode_all(text.as_bytes(), 1).expect("compressed");
    std::fs::write(path, frame.repeat(FRAMES)).expect("written");
}
