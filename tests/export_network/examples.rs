//! The examples `examples/export/follow_game.*` print the scores of `fsbench eval`, move by move.

use std::fs;
use std::path::Path;
use std::process::Command;

use fsbench::chess::{Chess, Move, fen_of};
use fsbench::features::FeatureSet;
use fsbench::net::{NetFile, Scheme};
use shakmaty::{CastlingMode, CastlingSide, Position};

use crate::common::networks::shapes;
use crate::common::random_game;
use crate::programs::{Build, compare, compile, run};

/// Random games that together have all special moves.
fn games() -> Vec<Vec<Move>> {
    let kinds: [fn(&Move) -> bool; 5] = [
        |mv| mv.castling_side() == Some(CastlingSide::KingSide),
        |mv| mv.castling_side() == Some(CastlingSide::QueenSide),
        |mv| mv.is_en_passant(),
        |mv| mv.promotion() == Some(shakmaty::Role::Queen),
        |mv| mv.promotion() == Some(shakmaty::Role::Knight),
    ];
    let with = |kind: &fn(&Move) -> bool| {
        (0..).map(|seed| random_game(seed, 150)).find(|game| game.iter().any(kind)).expect("a game")
    };
    kinds.iter().map(with).collect()
}

/// The moves in UCI notation, and the lines that an example should print: scores as `fsbench eval` gives them.
fn expected(game: &[Move], net: &Path, castling: CastlingMode) -> (Vec<String>, String) {
    let mut position = Chess::default();
    let mut moves = vec!["start".to_owned()];
    let mut fens = vec![fen_of(&position)];
    for mv in game {
        moves.push(mv.to_uci(castling).to_string());
        position.play_unchecked(*mv);
        fens.push(fen_of(&position));
    }
    let folder = net.parent().expect("a folder");
    fs::write(folder.join("fens"), fens.join("\n")).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsbench"));
    let output = command.arg("eval").arg("--net").arg(net).arg("--fens").arg(folder.join("fens")).output();
    let output = output.expect("ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let scores = text.lines().filter_map(|line| line.strip_prefix("  score "));
    let lines = moves.iter().zip(scores).map(|(mv, score)| format!("{mv}: {score}\n"));
    let lines: String = lines.collect();
    assert_eq!(lines.lines().count(), moves.len());
    moves.remove(0);
    (moves, lines)
}

fn check(net: &Path, file: &NetFile, set: &FeatureSet) {
    let folder = net.parent().expect("a folder");
    crate::export(file, set, folder);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/export");
    for name in ["follow_game.rs", "follow_game.c"] {
        fs::copy(examples.join(name), folder.join(name)).expect("copied");
    }
    let programs = [("follow_game.rs", Build::Rust), ("follow_game.c", Build::C), ("follow_game.c", Build::Sanitized)];
    let programs = programs.map(|(source, build)| compile(folder, source, build, &[]));
    for (index, game) in games().iter().enumerate() {
        // Castling as the king's move, and as king takes rook.
        let castling = if index < 3 { CastlingMode::Standard } else { CastlingMode::Chess960 };
        let (moves, lines) = expected(game, net, castling);
        let arguments: Vec<String> = std::iter::once("weights.bin".to_owned()).chain(moves).collect();
        for program in programs.iter().flatten() {
            compare(&run(program, &arguments, ""), &lines, &program.display().to_string());
        }
    }
}

#[test]
fn examples_print_the_scores_of_eval() {
    let folder = tempfile::tempdir().expect("a folder");
    let net = folder.path().join("net.safetensors");
    let set = FeatureSet::resolve("half-ka-v2-hm").expect("shipped");
    let file = crate::file(&set, shapes()[2].clone(), Scheme { pawn_value: 361, ..Scheme::stockfish() }, 1);
    file.save(&net).expect("saved");
    check(&net, &file, &set);
}

/// Stockfish 15.1's own network.
#[test]
fn examples_print_the_scores_of_eval_with_a_network_of_stockfish() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(net) = crate::reference_network(folder.path()) else { return };
    let file = NetFile::load(&net).expect("loads");
    check(&net, &file, &file.origin.feature_set().expect("shipped"));
}

/// Wrong files and moves give messages.
#[test]
fn examples_refuse_wrong_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = FeatureSet::resolve("piece").expect("shipped");
    let file = crate::file(&set, shapes()[0].clone(), Scheme::stockfish(), 1);
    crate::export(&file, &set, folder.path());
    let weights = fs::read(folder.path().join("weights.bin")).expect("read");
    let mut other = weights.clone();
    let mut magic = weights.clone();
    other[9] ^= 1;
    magic[0] ^= 1;
    fs::write(folder.path().join("short"), &weights[..weights.len() - 1]).expect("written");
    fs::write(folder.path().join("long"), [&weights[..], &[0]].concat()).expect("written");
    fs::write(folder.path().join("empty"), b"").expect("written");
    fs::write(folder.path().join("other"), other).expect("written");
    fs::write(folder.path().join("magic"), magic).expect("written");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/export");
    for (name, build) in [("follow_game.rs", Build::Rust), ("follow_game.c", Build::Sanitized)] {
        fs::copy(examples.join(name), folder.path().join(name)).expect("copied");
        let Some(program) = compile(folder.path(), name, build, &[]) else { continue };
        let check = |arguments: &[&str], expected: &[&str]| {
            let output = Command::new(&program).current_dir(folder.path()).args(arguments).output().expect("ran");
            let error = String::from_utf8_lossy(&output.stderr).to_lowercase();
            assert!(output.status.code() == Some(1), "{arguments:?}: {error}");
            assert!(expected.iter().any(|expected| error.contains(expected)), "{arguments:?}: {error}");
        };
        check(&["short"], &["is the file complete?", "size("]);
        check(&["long"], &["is the file complete?", "size("]);
        check(&["empty"], &["no weights that fsbench exported", "magic"]);
        check(&["magic"], &["no weights that fsbench exported", "magic"]);
        check(&["other"], &["another architecture's", "otherarchitecture"]);
        check(&["weights.bin", "e2e"], &["four or five letters"]);
        check(&["weights.bin", "e2i4"], &["no such square", "no square to move to"]);
        check(&["weights.bin", "e2e4", "e4e5"], &["no piece of the side to move there"]);
        check(&["weights.bin", "e2e4k"], &["no such role"]);
    }
}
