//! Matches of Chess960: between networks, and against an engine.

use super::*;
use fsbench::chess::castling_mode;
use fsbench::data::games;

/// A match without a book.
fn play(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("match").args(arguments.split_ascii_whitespace());
    command.current_dir(folder).env("FSBENCH_CACHE", folder.join("cache")).output().unwrap()
}

/// Plays a match into the folder `out` and reads its games: all of them can be read and none is forfeited.
fn check(folder: &Path, arguments: &str, games_expected: usize) {
    let output = play(folder, &format!("{arguments} --out out --hash 1"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pgn = folder.join("out/games.pgn");
    let mut book = games(&pgn).unwrap();
    let played: Vec<_> = book.by_ref().map(Result::unwrap).collect();
    assert_eq!((played.len(), book.skipped().total()), (games_expected, 0));
    let of_chess960 = played.iter().filter(|game| castling_mode(&game.start).is_chess960()).count();
    let text = fs::read_to_string(&pgn).unwrap();
    assert_eq!(text.matches("[Variant \"Chess960\"]").count(), of_chess960);
    assert!(of_chess960 > 0 && !text.contains("forfeit"), "{text}");
    fs::remove_dir_all(folder.join("out")).unwrap();
}

#[test]
fn networks_play_chess960() {
    let folder = bench();
    let networks = "a.safetensors b.safetensors --nodes 30 --pairs 3";
    check(folder.path(), &format!("{networks} --chess960"), 6);
    check(folder.path(), &format!("{networks} --double-chess960"), 6);
    let fens = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w KQkq - 0 1\n6kr/pppppppp/8/8/8/8/PPPPPPPP/RK6 w Ah - 0 1\n";
    fs::write(folder.path().join("960.epd"), fens).unwrap();
    check(folder.path(), "a.safetensors b.safetensors --nodes 40 --pairs 2 --openings 960.epd", 4);
    let refused = |arguments: &str, status: i32, message: &str| {
        let output = play(folder.path(), &format!("a.safetensors b.safetensors --nodes 9 {arguments}"));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), text.contains(message)), (Some(status), true), "{text}");
    };
    refused("--chess960 --double-chess960", 2, "cannot be used with");
    refused("--chess960 --openings 960.epd", 2, "cannot be used with");
    refused("--chess960 --pairs 961", 2, "play at most 960 pairs");
}

/// The engine gets `UCI_Chess960`, and understands its own castlings and the network's.
#[test]
fn an_engine_plays_chess960() {
    let Some(stockfish) = engines::stockfish() else { return };
    let folder = bench();
    let players = format!("a.safetensors uci:{} --nodes 60 --concurrency 2", stockfish.display());
    check(folder.path(), &format!("{players} --chess960 --pairs 3"), 6);
    check(folder.path(), &format!("{players} --double-chess960 --pairs 6"), 12);
}

#[test]
fn an_engine_without_the_option_is_refused() {
    let folder = bench();
    Script::new("echo bestmove e2e4").write(&folder.path().join("plain"));
    let output = play(folder.path(), "a.safetensors uci:./plain --nodes 9 --pairs 1 --double-chess960");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("has no option UCI_Chess960"), "{text}");
    assert_eq!(output.status.code(), Some(2), "{text}");
}
