//! Files of other programs' formats are refused by name in every command, whatever they are called.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use tempfile::TempDir;

use crate::fixture::{check, fsbench};

const FEN: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";

/// Every command that reads samples refuses the file, with a message that contains `name`.
fn check_refused(folder: &Path, file: &str, content: &[u8], name: &str) {
    fs::write(folder.join(file), content).unwrap();
    let verbs = [
        &["dataset", "info", file][..],
        &["dataset", "verify", file],
        &["dataset", "stats", file],
        &["dataset", "convert", file, "out.fsd"],
        &["dataset", "build", file, "--method", "eval", "--out", "out.fsd"],
        &["measure", "updates", "piece", "--data", file],
    ];
    for verb in verbs {
        check(&fsbench(verb, folder), 2, name);
    }
    assert!(!folder.join("out.fsd").exists());
}

#[test]
fn texts_of_other_programs_are_named() {
    let folder = TempDir::new().unwrap();
    let refused = |file: &str, line: &str, name: &str| {
        check_refused(folder.path(), file, format!("{line}\n{line}\n").as_bytes(), name);
    };
    refused("g.epd", FEN, "a list of positions without scores");
    refused("h.pgn", "<!DOCTYPE html>\n<html>", "an HTML page");
    let mut chunk = vec![6, 0, 0, 0, 1, 0, 0, 0];
    chunk.resize(8356, 7);
    check_refused(folder.path(), "k.gz", &zstd::encode_all(&chunk.repeat(3)[..], 1).unwrap(), "Leela Chess Zero");
    refused("i.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:00", "a Git LFS pointer");
}

/// A game of montyformat by its description: 1. e4 e5 from the start position, each with a value, White won.
fn monty_game() -> Vec<u8> {
    let [black, heavy, minor, light] = [0xffff_0000_0000_0000u64, 0x99, 0x76, 0xff2c];
    let both = |white: u64| white | white.swap_bytes();
    let mut bytes = [black, both(heavy), both(minor), both(light)].map(u64::to_le_bytes).concat();
    // White to move, no en passant square, all rights, clock 0, move 1, the rooks' files, the result.
    bytes.extend([0, 0, 15, 0, 1, 0, 0, 7, 0, 7, 2]);
    for (from, to, value) in [(12u16, 28u16, 31i16), (52, 36, 24)] {
        // Flag 1: a pawn's double step.
        bytes.extend((from << 10 | to << 4 | 1).to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn games_of_monty_are_named() {
    let folder = TempDir::new().unwrap();
    let game = monty_game();
    for file in ["value.bin", "value.binpack", "value.data", "value"] {
        check_refused(
            folder.path(),
            file,
            &game.repeat(40),
            "games of Monty (montyformat), which fsbench does not read",
        );
    }
    // Without the move number, as some versions write values; with visits behind each move; one game alone.
    let without_number = [&game[..36], &game[38..]].concat();
    check_refused(folder.path(), "old.bin", &without_number.repeat(40), "write them as viriformat");
    let policy = [&game[..43], &[17, 0x71, 0, 0x80, 2, 255, 31], &[0; 2]].concat();
    check_refused(folder.path(), "policy.bin", &policy.repeat(40), "the crate montyformat reads them");
    check_refused(folder.path(), "one.bin", &game, "montyformat");
}

/// With the format given, no line is read as another format's either.
#[test]
fn a_given_format_does_not_change_the_meaning() {
    let folder = TempDir::new().unwrap();
    for (line, name) in [(format!("{FEN},35,1"), "c-chess-cli"), (format!("{FEN} | 35 | 1.0"), "bullet-text")] {
        fs::write(folder.path().join("x"), format!("{line}\n")).unwrap();
        let output = fsbench(&["dataset", "info", "x", "--from", "text"], folder.path());
        check(&output, 2, name);
        let build = ["dataset", "build", "x", "--from", "text", "--method", "eval", "--needs", "any", "--out", "x.fsd"];
        check(&fsbench(&build, folder.path()), 2, name);
        check(&fsbench(&["dataset", "convert", "x", "x.fsd", "--from", "text"], folder.path()), 2, name);
    }
    // Lines of ours among others: those are read, these are counted.
    fs::write(folder.path().join("x"), format!("{FEN},35,e7e5\n{FEN},35,1\n")).unwrap();
    let info = crate::fixture::json(&["dataset", "info", "x"], folder.path());
    assert_eq!((&info["samples"], &info["skipped_samples"]["by_reason"]["move"]), (&1.into(), &1.into()));
}

/// The start position after 1. e4 e5 2. Qh5 in viriformat.
fn viriformat() -> Vec<u8> {
    let mut bytes = 0xffff_0000_0000_ffff_u64.to_le_bytes().to_vec();
    bytes.extend([0x16, 0x42, 0x25, 0x61, 0, 0, 0, 0, 0x88, 0x88, 0x88, 0x88, 0x9e, 0xca, 0xad, 0xe9]);
    bytes.extend([64, 0, 1, 0, 0, 0, 2, 0]);
    for (from, to) in [(12, 28), (52, 36), (3, 39)] {
        bytes.extend((from | (to << 6) as u16).to_le_bytes());
        bytes.extend(20i16.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn viriformat_is_read_whatever_the_file_is_called() {
    let folder = TempDir::new().unwrap();
    let games = viriformat().repeat(40);
    let found = |file: &str, content: &[u8], format: &str, samples: u64| {
        fs::write(folder.path().join(file), content).unwrap();
        let info = crate::fixture::json(&["dataset", "info", file], folder.path());
        assert_eq!((&info["format"], &info["samples"]), (&format.into(), &samples.into()), "{file}");
    };
    for file in ["x.vf", "x.bin", "x.binpack", "x", "x.data", "x.txt"] {
        found(file, &games, "viriformat", 120);
        found(file, &games[..games.len() - 4], "viriformat", 117);
    }
    found("x.vf.zst", &zstd::encode_all(&games[..], 1).unwrap(), "viriformat", 120);
    found("y.bin", &games[..32].repeat(100), "marlinformat", 100);
    let convert = |from: &str, to: &str| check(&fsbench(&["dataset", "convert", from, to], folder.path()), 0, "");
    convert("x.vf", "x.fsd");
    convert("x.fsd", "z.vf");
    assert_eq!(fs::read(folder.path().join("z.vf")).unwrap(), games[..games.len() - 4 - 44].to_vec());
}

/// Formats without a signature are decompressed by their name alone; for other names the message says so.
#[test]
fn compressed_files_are_told_by_their_name() {
    let folder = TempDir::new().unwrap();
    let games = viriformat().repeat(40);
    fs::write(folder.path().join("x.vf"), &games).unwrap();
    check(&fsbench(&["dataset", "convert", "x.vf", "x.bullet"], folder.path()), 0, "");
    let entries = fs::read(folder.path().join("x.bullet")).unwrap();
    let refused = |file: &str, content: &[u8], ending: &str| {
        // gzip codes all bytes; a small zstd file holds one game as it is.
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(content).unwrap();
        fs::write(folder.path().join(file), gzip.finish().unwrap()).unwrap();
        for verb in [&["dataset", "info", file][..], &["dataset", "convert", file, "out.fsd"]] {
            let output = fsbench(verb, folder.path());
            check(&output, 2, &format!("{file} is compressed with gzip, but its name does not say so"));
            check(&output, 2, &format!("rename it to end in {ending}"));
        }
    };
    for file in ["g", "g.vf"] {
        refused(file, &games, ".vf.gz");
    }
    for file in ["b", "b.bin", "c.bullet"] {
        refused(file, &entries, ".bullet.gz");
    }
    for (file, renamed) in [("g", "g.vf.gz"), ("b", "b.bullet.gz"), ("c.bullet", "c.gz")] {
        fs::rename(folder.path().join(file), folder.path().join(renamed)).unwrap();
        let info = crate::fixture::json(&["dataset", "info", renamed], folder.path());
        assert_eq!((&info["samples"], &info["compression"]), (&120.into(), &"gzip".into()), "{renamed}");
    }
}
