//! Compares the measures with independent counts over random games.
#![allow(clippy::unwrap_used, reason = "tests")]

mod commands;
#[path = "../common/mod.rs"]
mod common;
mod neurons;
mod speed;
mod updates;

use std::path::{Path, PathBuf};

use fsbench::chess::Move;
use fsbench::features::FeatureSet;
use fsbench::net::{Checkpoint, FloatNet, NetFile, Origin, Scheme, quantise};

const GAMES: u64 = 25;

fn games() -> Vec<Vec<Move>> {
    (0..GAMES).map(|game| common::random_game(game, 90)).collect()
}

fn write_pgn(folder: &Path, games: &[Vec<Move>]) -> PathBuf {
    let path = folder.join("games.pgn");
    std::fs::write(&path, common::pgn(games)).unwrap();
    path
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
