//! The openings that come with fsbench: their properties, and that their command reproduces them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fsbench::chess::Chess;
use shakmaty::fen::Fen;
use shakmaty::zobrist::Zobrist64;
use shakmaty::{CastlingMode, EnPassantMode, Position};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn openings() -> String {
    fs::read_to_string(file("experiments/openings.epd")).unwrap()
}

#[test]
fn openings_are_legal_distinct_and_without_immediate_mate() {
    let text = openings();
    let mut seen = HashSet::new();
    for line in text.lines() {
        let fen: Fen = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let position: Chess =
            fen.into_position(CastlingMode::Standard).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(!position.is_game_over() && !position.is_check(), "{line}");
        for mv in position.legal_moves() {
            let mut after = position.clone();
            after.play_unchecked(mv);
            assert!(!after.is_checkmate(), "{line}: {mv} mates");
        }
        assert!(seen.insert(position.zobrist_hash::<Zobrist64>(EnPassantMode::Legal)), "{line} occurs twice");
    }
    assert_eq!(seen.len(), 2_000);
    assert!(text.len() < 150_000, "{} bytes", text.len());
}

/// The network of Debian's Stockfish 15.1.
fn reference_network(folder: &Path) -> Option<PathBuf> {
    let net = folder.join("nn-ad9b42354671.nnue");
    let mut command = Command::new("/usr/games/stockfish");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let exported = child.is_ok_and(|mut child| {
        let script = format!("export_net {}\nquit\n", net.display());
        let written = child.stdin.take().is_some_and(|mut stdin| stdin.write_all(script.as_bytes()).is_ok());
        written && child.wait().is_ok_and(|status| status.success()) && net.is_file()
    });
    if !exported {
        common::skip::skip("stockfish-15.1", "there is no Stockfish 15.1 at /usr/games/stockfish");
        return None;
    }
    Some(net)
}

/// The command of `fsbench help results` reproduces the file.
#[test]
fn the_help_says_how_to_reproduce_the_openings() {
    let page = fs::read_to_string(file("src/report/RESULTS.md")).unwrap();
    let command = page.lines().find(|line| line.contains("--out experiments/openings.epd")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let Some(net) = reference_network(folder.path()) else { return };
    let out = folder.path().join("book.epd");
    let arguments = command.split_ascii_whitespace().skip(1).map(|argument| match argument {
        "nn-ad9b42354671.nnue" => net.display().to_string(),
        "experiments/openings.epd" => out.display().to_string(),
        other => other.to_owned(),
    });
    let output = Command::new(env!("CARGO_BIN_EXE_fsbench")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_to_string(out).unwrap() == openings(), "the openings differ");
}
