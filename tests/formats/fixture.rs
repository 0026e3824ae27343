//! Random games as records and as files, and the program under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fsbench::data::formats::{Format, SampleReader, SampleWriter};
use fsbench::data::{GameResult, Provenance, Purpose, Record, Sample, ScoreUnit};
use fsbench::units::{Ply, Seed};
use rand::RngExt;
use shakmaty::{Chess, Color, Position};

use crate::common::{random_game, skip};

/// The samples of random games. Some scores are mates and some are missing, results alternate, and a few plies are left
/// out.
pub fn samples(games: u32, plies: usize) -> Vec<Record> {
    (0..games).flat_map(|game| of_game(game, plies)).collect()
}

fn of_game(game: u32, plies: usize) -> Vec<Record> {
    let mut rng = Seed(9).stream("samples", u64::from(game));
    let white = [GameResult::Win, GameResult::Draw, GameResult::Loss][game as usize % 3];
    let mut position = Chess::default();
    let mut records = Vec::new();
    for (ply, mv) in random_game(u64::from(game), plies).into_iter().enumerate() {
        let score = match rng.random_range(0..20) {
            0 => None,
            1 => Some(32_000 - 2 * rng.random_range(1..200)),
            2 => Some(-32_000 + 2 * rng.random_range(1..200)),
            _ => Some(rng.random_range(-900..900)),
        };
        let result = if position.turn() == Color::White { white } else { white.reversed() };
        let sample = Sample {
            position: position.clone(),
            game,
            ply: Ply(ply as u16),
            mv: Some(mv),
            score,
            result: Some(result),
        };
        // A gap breaks a chain; the game's first sample stays.
        if ply == 0 || !rng.random_bool(0.02) {
            records.push(Record::pack(&sample).unwrap());
        }
        position.play_unchecked(mv);
    }
    records
}

pub fn provenance(records: &[Record]) -> Provenance {
    let games = records.iter().map(|record| record.game() + 1).max().unwrap_or(0);
    Provenance { purpose: Purpose::Any, score_unit: ScoreUnit::Centipawns, seed: Seed(0), games, sources: [0; 32] }
}

pub fn write(path: &Path, format: Format, records: &[Record]) {
    let mut writer = SampleWriter::create(path, format, false).unwrap();
    // The file must not depend on the size of the blocks.
    for block in records.chunks(777) {
        writer.push(block).unwrap();
    }
    writer.finish(provenance(records)).unwrap();
}

/// All samples up to the end or the first error.
pub fn read(path: &Path, format: Option<Format>) -> (Vec<Record>, Result<SampleReader, fsbench::data::DataError>) {
    let mut records = Vec::new();
    let mut reader = match SampleReader::open(path, format, None) {
        Ok(reader) => reader,
        Err(error) => return (records, Err(error)),
    };
    loop {
        match reader.next_block() {
            Ok(Some(block)) => records.extend(block),
            Ok(None) => return (records, Ok(reader)),
            Err(error) => return (records, Err(error)),
        }
    }
}

/// All samples of a file that must be readable to its end.
pub fn read_all(path: &Path) -> Vec<Record> {
    let (records, reader) = read(path, None);
    reader.unwrap();
    records
}

/// A file of the shared data, if it is there.
pub fn shared(name: &str) -> Option<PathBuf> {
    skip::shared_data(name)
}

pub fn fsbench(arguments: &[&str], folder: &Path) -> Output {
    fsbench_with(arguments, folder, "2")
}

pub fn fsbench_with(arguments: &[&str], folder: &Path, threads: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    command.args(arguments).current_dir(folder).env("RAYON_NUM_THREADS", threads).output().unwrap()
}

pub fn check(output: &Output, status: i32, stderr: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert!(text.contains(stderr), "{text:?} lacks {stderr:?}");
}

/// Runs a command that must succeed and returns the JSON document that it prints.
pub fn json(arguments: &[&str], folder: &Path) -> serde_json::Value {
    let output = fsbench(&[arguments, &["--format", "json"]].concat(), folder);
    check(&output, 0, "");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
