//! Every verb that takes positions takes every format, and refuses what is none.

use std::fs;
use std::path::Path;

use fsbench::data::formats::Format;
use fsbench::data::{Fsd, Record};
use rand::RngExt;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{pgn, random_game};
use crate::fixture::{check, fsbench, json as answer, write};
use fsbench::units::Seed;

/// The same games in every format, and compressed.
fn games(folder: &Path) {
    let texts = pgn(&(0..20).map(|game| random_game(game, 60)).collect::<Vec<_>>());
    fs::write(folder.join("x.pgn"), &texts).unwrap();
    check(&fsbench(&["dataset", "convert", "x.pgn", "x.fsd"], folder), 0, "");
    let records: Vec<Record> = Fsd::open(&folder.join("x.fsd")).unwrap().records().to_vec();
    let scored: Vec<Record> = records
        .iter()
        .map(|record| record.with_score(Some(7)).with_result(Some(fsbench::data::GameResult::Draw)))
        .collect();
    for (name, format) in [("x.binpack", Format::Binpack), ("x.txt", Format::Text), ("x.bullet", Format::Bullet)] {
        write(&folder.join(name), format, &scored);
        let bytes = fs::read(folder.join(name)).unwrap();
        fs::write(folder.join(format!("{name}.zst")), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    }
    fs::copy(folder.join("x.binpack"), folder.join("of-unknown-name")).unwrap();
}

const WITH_MOVES: [&str; 7] = ["x.pgn", "x.fsd", "x.binpack", "x.binpack.zst", "x.txt", "x.txt.zst", "of-unknown-name"];

#[test]
fn measures_take_every_format() {
    let folder = TempDir::new().unwrap();
    games(folder.path());
    let counts = |name: &str| -> Value {
        let found = answer(&["measure", "updates", "piece", "--data", name], folder.path());
        json!([found["games"], found["positions"], found["active_mean"], found["mean"]])
    };
    let expected = counts("x.pgn");
    assert_eq!(expected[0], 20);
    for name in WITH_MOVES {
        assert_eq!(counts(name), expected, "{name}");
    }
    for name in WITH_MOVES.into_iter().chain(["x.bullet", "x.bullet.zst"]) {
        let arguments = ["select", "piece", "--top", "5", "--out", "top.idx", "--data", name];
        let found = answer(&arguments, folder.path());
        assert_eq!(found["positions"], expected[1], "{name}");
    }
    // Positions without moves are no updates, and that is what is said.
    let output = fsbench(&["measure", "updates", "piece", "--data", "x.bullet"], folder.path());
    check(&output, 2, "holds positions, but no move");
}

#[test]
fn binary_files_are_no_games() {
    let folder = TempDir::new().unwrap();
    let mut rng = Seed(3).stream("noise", 0);
    let noise: Vec<u8> = (0..3 << 20).map(|_| rng.random()).collect();
    let network = [&0x7af3_2f20_u32.to_le_bytes()[..], &noise].concat();
    let checkpoint = [&90u64.to_le_bytes()[..], b"{\"__metadata__\":{}}", &noise[..1000]].concat();
    let refused = |name: &str, bytes: &[u8], why: &str| {
        fs::write(folder.path().join(name), bytes).unwrap();
        let verbs = [
            &["dataset", "info", name][..],
            &["dataset", "verify", name],
            &["dataset", "stats", name],
            &["dataset", "convert", name, "out.fsd"],
            &["dataset", "build", name, "--method", "pqr", "--out", "out.fsd"],
            &["measure", "updates", "piece", "--data", name],
        ];
        for verb in verbs.iter().filter(|verb| verb[1] != "verify" || !name.ends_with(".bin")) {
            check(&fsbench(verb, folder.path()), 2, why);
        }
    };
    refused("noise", &noise, "binary data");
    refused("noise.pgn", &noise, "binary data");
    refused("noise.txt", &noise, "binary data");
    refused("noise.bin", &noise, "holds no position of bulletformat");
    refused("mine.nnue", &network, "a network (.nnue)");
    refused("best.safetensors", &checkpoint, "a safetensors file");
    refused("packed.pgn.zst", &zstd::encode_all(&noise[..], 1).unwrap(), "binary data");
    // Also where the format is given.
    check(&fsbench(&["dataset", "info", "mine.nnue", "--from", "pgn"], folder.path()), 2, "a network (.nnue)");
}
