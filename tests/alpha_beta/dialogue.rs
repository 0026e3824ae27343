//! Dialogues with the UCI engine.

use super::*;

/// A dialogue with a UCI engine.
struct Session {
    input: std::io::PipeWriter,
    output: std::io::Lines<std::io::BufReader<std::io::PipeReader>>,
    engine: std::thread::JoinHandle<std::io::Result<()>>,
}

/// An engine that draws no openings.
fn host<'a>(load: &'a LoadNetwork<'a>) -> UciHost<'a> {
    UciHost { load, openings: &|_| Err("no openings".into()) }
}

impl Session {
    fn new() -> Session {
        Session::with_network(Some("net"))
    }

    fn with_network(network: Option<&'static str>) -> Session {
        let (reader, input) = std::io::pipe().expect("a pipe");
        let (output, writer) = std::io::pipe().expect("a pipe");
        let engine = std::thread::spawn(move || {
            let load = |path: &Path| match path.to_str() {
                Some("net") => {
                    let Player { set, model } = Player::new("piece", 16, &[8]);
                    Ok(PlayingNetwork { set, model })
                }
                _ => Err(format!("{}: no such file", path.display())),
            };
            uci(std::io::BufReader::new(reader), writer, host(&load), network.map(Into::into))
        });
        Session { input, output: std::io::BufReader::new(output).lines(), engine }
    }

    fn send(&mut self, command: &str) {
        writeln!(self.input, "{command}").expect("the engine reads");
    }

    /// Skips lines until one starts with `start` and returns it.
    fn wait(&mut self, start: &str) -> String {
        loop {
            let line = self.output.next().expect("the engine answers").expect("text");
            if line.starts_with(start) {
                return line;
            }
        }
    }

    fn quit(mut self) {
        self.send("quit");
        self.engine.join().expect("no panic").expect("its input was read");
    }
}

#[test]
fn uci_answers() {
    let mut session = Session::new();
    session.send("uci");
    session.wait("option name EvalFile");
    session.wait("uciok");
    session.send("isready");
    session.wait("readyok");
    session.send("position startpos moves e2e4 e7e5");
    session.send("d");
    session.wait("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2");
    session.send("go nodes 2000");
    let info = session.wait("info depth 1 ");
    assert!(
        ["seldepth", "score cp", "nodes", "nps", "hashfull", "time", "pv"].iter().all(|word| info.contains(word)),
        "{info}"
    );
    // The last report counts all nodes, the interrupted iteration's too.
    let mut last = info;
    let best = loop {
        match session.wait("") {
            line if line.starts_with("info") => last = line,
            line => break line,
        }
    };
    assert!(last.contains(" nodes 2000 "), "{last}");
    assert_ne!(best, "bestmove (none)");
    assert!(best.starts_with("bestmove "), "{best}");
    session.send("go wtime 100 btime 100 winc 10 binc 10");
    session.wait("bestmove ");
    session.send("position fen 6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1");
    session.send("go depth 4");
    session.wait("info depth 4 seldepth");
    assert!(session.wait("bestmove").starts_with("bestmove d1d8"));
    session.send("bench 1");
    let line = session.wait("");
    assert!(line.contains(" nodes ") && line.ends_with(" nps"), "{line}");
    session.quit();
}

/// Every `bestmove` comes after a score.
#[test]
fn uci_tells_a_score_before_every_move() {
    let mut session = Session::new();
    let mut check = |position: &str, go: &str, expected: &str| {
        session.send(position);
        session.send(go);
        let mut last = String::new();
        loop {
            let line = session.wait("");
            if line.starts_with("bestmove ") {
                assert!(line.starts_with(expected), "{position} {go}: {line}");
                break;
            }
            last = line;
        }
        assert!(last.starts_with("info depth ") && last.contains(" score "), "{position} {go}: {last:?}");
        last
    };
    for go in ["go nodes 1", "go nodes 50", "go nodes 200", "go depth 1", "go movetime 1", "go wtime 1 btime 1"] {
        for position in ["position startpos", &format!("position fen {MANY_CAPTURES}")] {
            check(position, go, "bestmove ");
        }
    }
    let mated = check("position fen R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "go depth 3", "bestmove (none)");
    assert!(mated.contains("score mate 0") && !mated.contains("pv"), "{mated}");
    let stalemate = check("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go depth 3", "bestmove (none)");
    assert!(stalemate.contains("score cp 0"), "{stalemate}");
    session.send("position startpos");
    session.send("go infinite\nstop");
    session.wait("info depth ");
    session.wait("bestmove ");
    session.quit();
}

/// A position that is refused leaves none: the engine does not answer for an older one.
#[test]
fn uci_forgets_the_position_before_a_refused_one() {
    let mut session = Session::new();
    for refused in [
        "position fen 4k3/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
        "position fen 8/8/8 w - - 0 1",
        "position startpos moves e2e4 e7e5 e4e5",
        "position",
    ] {
        session.send("position startpos moves e2e4");
        session.send(refused);
        session.wait("info string error: position");
        for command in ["eval", "d", "go depth 2"] {
            session.send(command);
            assert!(session.wait("").starts_with("info string error: there is no position"), "{refused}: {command}");
        }
        assert_eq!(session.wait(""), "bestmove (none)");
    }
    session.send("position startpos");
    session.send("go depth 2");
    assert_ne!(session.wait("bestmove "), "bestmove (none)");
    session.send("position nowhere");
    session.send("ucinewgame");
    session.send("d");
    session.wait("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    session.quit();
}

/// Search moves that are not legal are named and left out.
#[test]
fn uci_refuses_illegal_search_moves() {
    let mut session = Session::new();
    session.send("go searchmoves e2e5 h2h4 depth 2");
    assert_eq!(session.wait("info"), "info string error: go searchmoves e2e5: not a legal move here");
    assert!(session.wait("bestmove ").starts_with("bestmove h2h4"));
    // Nor does a word that is no move at all hide the moves after it.
    session.send("go depth 2 searchmoves e9e4 h2h3");
    assert_eq!(session.wait("info"), "info string error: go searchmoves e9e4: not a legal move here");
    assert!(session.wait("bestmove ").starts_with("bestmove h2h3"));
    session.send("go searchmoves e2e5 depth 2");
    session.wait("info string error: go searchmoves e2e5: not a legal move here");
    session.wait("info string error: go searchmoves: no legal move is left; searching all moves");
    assert_ne!(session.wait("bestmove "), "bestmove (none)");
    session.quit();
}

/// A search for a mate that is not there ends by itself; one that is there is found.
#[test]
fn uci_gives_up_searching_for_a_mate() {
    let mut session = Session::new();
    session.send("setoption name Hash value 1");
    session.send("position fen 8/8/8/4k3/8/8/4P3/4K3 w - - 0 1");
    session.send("go mate 2");
    session.wait("info depth 14 ");
    assert_ne!(session.wait("bestmove "), "bestmove (none)");
    for (fen, moves) in MATES {
        session.send("ucinewgame");
        session.send(&format!("position fen {fen}"));
        session.send(&format!("go mate {moves}"));
        session.wait("info depth ");
        let mut last = String::new();
        loop {
            match session.wait("") {
                line if line.starts_with("bestmove ") => break,
                line => last = line,
            }
        }
        assert!(last.contains(&format!("score mate {moves} ")), "{fen}: {last}");
    }
    session.quit();
}

const MATES: [(&str, u32); 3] = [
    ("7k/8/8/8/8/8/R7/1R4K1 w - - 0 1", 2),
    ("5r1k/6pp/7N/8/8/1Q6/6PP/6K1 w - - 0 1", 2),
    ("r5rk/5p1p/5R2/4B3/8/8/7P/7K w - - 0 1", 3),
];

fn network(_: &Path) -> Result<PlayingNetwork, String> {
    let Player { set, model } = Player::new("piece", 16, &[8]);
    Ok(PlayingNetwork { set, model })
}

/// As in a pipe or on a command line: requests are answered before the engine ends.
#[test]
fn a_bench_is_finished_before_the_end() {
    let expected = bench(&mut Player::new("piece", 16, &[8]).searcher(BackEnd::best()), 2).nodes;
    let is_bench = |output: &[u8]| {
        let text = String::from_utf8_lossy(output).into_owned();
        assert!(text.starts_with(&format!("{expected} nodes ")) && text.ends_with(" nps\n"), "{text}");
    };
    for input in ["setoption name Hash value 1\nbench 2\nquit\n", "setoption name Hash value 1\nbench 2\n"] {
        let mut output = Vec::new();
        uci(input.as_bytes(), &mut output, host(&network), Some("net".into())).expect("it is read");
        is_bench(&output);
    }
    let mut output = Vec::new();
    let commands = ["setoption name Hash value 1", "bench 2"].map(str::to_owned);
    assert!(uci_commands(&commands, &mut output, host(&network), Some("net".into())));
    is_bench(&output);
    // A search is finished, too.
    let mut output = Vec::new();
    assert!(uci_commands(&["go depth 4".to_owned()], &mut output, host(&network), Some("net".into())));
    let text = String::from_utf8_lossy(&output);
    assert!(text.contains("info depth 4 ") && text.contains("\nbestmove "), "{text}");
    // A wrong command is told, whoever finds it, and those after it are executed.
    for wrong in ["castle", "position fen bad"] {
        let mut output = Vec::new();
        let commands = [wrong, "bench 2"].map(str::to_owned);
        assert!(!uci_commands(&commands, &mut output, host(&network), Some("net".into())), "{wrong}");
        let text = String::from_utf8_lossy(&output);
        assert!(text.contains("info string error: ") && text.ends_with(" nps\n"), "{text}");
    }
}

/// Two bare kings: hundreds of iterations within milliseconds do not flood the GUI, and the last one is reported.
#[test]
fn uci_reports_few_of_many_short_iterations() {
    let mut session = Session::new();
    session.send("position fen 8/8/8/4k3/8/8/8/4K3 w - - 0 1");
    session.send("go depth 100");
    let mut lines = Vec::new();
    loop {
        match session.wait("") {
            line if line.starts_with("info depth ") => lines.push(line),
            line if line.starts_with("bestmove ") => break,
            _ => {}
        }
    }
    assert!((16..80).contains(&lines.len()), "{} lines", lines.len());
    assert!(
        lines[15].starts_with("info depth 16 ") && lines[lines.len() - 1].starts_with("info depth 100 "),
        "{lines:?}"
    );
    session.quit();
}

#[test]
fn uci_stops_infinite_searches() {
    let mut session = Session::new();
    session.send("go infinite");
    session.wait("info depth 2 ");
    // Answered during the search.
    session.send("isready");
    session.wait("readyok");
    session.send("stop");
    session.wait("bestmove ");
    session.send("go ponder wtime 50 btime 50");
    session.wait("info depth 2 ");
    session.send("ponderhit");
    session.wait("bestmove ");
    session.send("go infinite");
    // `quit` ends the search too.
    session.quit();
}

#[test]
fn uci_without_a_network_answers() {
    let mut session = Session::with_network(None);
    session.send("go depth 2");
    session.wait("info string error: no network is loaded");
    assert_eq!(session.wait("bestmove "), "bestmove (none)");
    session.send("setoption name EvalFile value net");
    session.send("go depth 2");
    assert_ne!(session.wait("bestmove "), "bestmove (none)");
    session.quit();
}

/// A ponder search with a limit of its own goes on after the hit, and is answered when it has ended.
#[test]
fn ponderhit_lets_a_search_without_a_clock_finish() {
    let mut session = Session::new();
    session.send("go ponder depth 6");
    session.send("ponderhit");
    session.wait("info depth 6 ");
    assert_ne!(session.wait("bestmove "), "bestmove (none)");
    session.quit();
}

/// A move is played even if the time is over before the search begins.
#[test]
fn uci_searches_before_it_looks_at_the_clock() {
    let mut session = Session::new();
    for limit in ["movetime 1", "wtime 1 btime 1", "movestogo 0 wtime 100 btime 100"] {
        session.send(&format!("go {limit}"));
        session.wait("info depth 1 ");
        assert_ne!(session.wait("bestmove "), "bestmove (none)");
    }
    session.quit();
}

/// Every `go` is answered by a `bestmove`; unknown words in it are ignored.
#[test]
fn uci_answers_wrong_go_commands() {
    let mut session = Session::new();
    session.send("go depth x");
    assert_eq!(session.wait("info"), "info string error: go depth takes a number, not \"x\"");
    assert_eq!(session.wait("bestmove "), "bestmove (none)");
    session.send("go quickly depth 2");
    assert_eq!(session.wait("info"), "info string error: go does not know \"quickly\" and ignores it");
    session.wait("info depth 2 ");
    assert_ne!(session.wait("bestmove "), "bestmove (none)");
    session.quit();
}

/// Castling is king takes rook in Chess960, and in every position once the option says so. A king's step is a step.
#[test]
fn uci_plays_chess960() {
    let mut session = Session::new();
    let mut check = |position: &str, moves: &str, expected: &str| {
        session.send(&format!("position fen {position} moves {moves}"));
        session.send("d");
        assert_eq!(session.wait(expected.split(' ').next().unwrap()), expected);
        session.send("go depth 3");
        assert_ne!(session.wait("bestmove "), "bestmove (none)");
    };
    let start = "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w";
    check(&format!("{start} GBgb - 0 1"), "f1g1 f8b8", "2kr2r1/pppppppp/8/8/8/8/PPPPPPPP/1R3RK1 w - - 2 2");
    check(&format!("{start} KQkq - 0 1"), "f1e1 f8g8", "1r3rk1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w - - 2 2");
    check(&format!("{start} KQkq - 0 1"), "b2b3 b7b6", "1r3kr1/p1pppppp/1p6/8/8/1P6/P1PPPPPP/1R3KR1 w GBgb - 0 2");
    // The only move that is asked for is castling.
    let castling = "position fen 4k3/8/8/8/8/8/8/4K2R w K - 0 1";
    for (setting, best) in [("false", "bestmove e1g1"), ("true", "bestmove e1h1")] {
        session.send(&format!("setoption name UCI_Chess960 value {setting}"));
        session.send(castling);
        session.send("go depth 2 searchmoves e1g1");
        let pv = session.wait("info depth 2 ");
        assert!(pv.contains(&best.replace("bestmove", " pv")), "{pv}");
        assert!(session.wait("bestmove ").starts_with(best));
    }
    session.quit();
}

#[test]
fn uci_reports_errors_and_continues() {
    let mut session = Session::new();
    let mut check = |command: &str, expected: &str| {
        session.send(command);
        let line = session.wait("info string error");
        assert!(line.contains(expected), "{command}: {line}");
    };
    check("castle", "unknown command \"castle\"");
    check("position fen 8/8/8 w - - 0 1", "position fen: \"8/8/8");
    check("position startpos moves e2e5", "move 1, e2e5: not a legal move");
    check("setoption name Threads value 4", "from 1 to 1");
    check("setoption name Hash value many", "option Hash takes a number");
    check("setoption name UCI_Chess960 value maybe", "option UCI_Chess960 takes true or false");
    check("setoption name Contempt value 1", "no option \"Contempt\"");
    check("setoption name EvalFile value missing.nnue", "missing.nnue: no such file");
    session.send("position startpos");
    // The present network stays, and so it does at the default that GUIs send.
    for value in ["", " <empty>"] {
        session.send(&format!("setoption name EvalFile value{value}"));
        session.send("go depth 2");
        assert_ne!(session.wait("bestmove "), "bestmove (none)");
    }
    session.send("setoption name EvalFile value net");
    session.send("go depth 2");
    assert_ne!(session.wait("bestmove "), "bestmove (none)");
    session.quit();
}
