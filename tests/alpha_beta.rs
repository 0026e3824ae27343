//! The search: the same signature on all back ends, exact node limits, mates, draws; and the UCI engine.

mod common;

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fsbench::alpha_beta::{
    BENCH_FENS, Clock, Game, Limits, PlayingNetwork, Score, SearchResult, Searcher, bench, uci, uci_commands,
};
use fsbench::engine::{BackEnd, Model};
use fsbench::features::FeatureSet;
use fsbench::net::{FloatNet, Scheme, quantise};
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Chess, Move, Position};

struct Player {
    set: FeatureSet,
    model: Model,
}

impl Player {
    fn new(set: &str, l1: usize, hidden: &[usize]) -> Player {
        let set = FeatureSet::resolve(set).expect("a set");
        let net: FloatNet = common::random_net(set.num_features(), l1, hidden, 14);
        let net = quantise(&net, &Scheme::stockfish()).expect("quantised");
        Player { set, model: Model::new(&net) }
    }

    fn searcher(&self, back_end: BackEnd) -> Searcher<'_> {
        Searcher::new(&self.set, &self.model, back_end, 1).expect("a network of the set")
    }
}

fn game(fen: &str) -> Game {
    let position: Chess = fen.parse::<Fen>().expect(fen).into_position(CastlingMode::Standard).expect(fen);
    Game::new(position)
}

fn search(game: &Game, limits: &Limits) -> SearchResult {
    let player = Player::new("piece", 16, &[8]);
    player.searcher(BackEnd::best()).search(game, limits, |_| ())
}

fn notation(mv: Option<Move>) -> String {
    mv.map_or("none".into(), |mv| mv.to_uci(CastlingMode::Standard).to_string())
}

/// Three networks with different features and shapes have the same node counts with scalar code, AVX2 and AVX-512.
#[test]
fn all_back_ends_have_the_same_signature() {
    for (set, l1, hidden) in [("piece", 32, &[16, 8][..]), ("half-ka-v2-hm", 48, &[8]), ("compact", 64, &[])] {
        let player = Player::new(set, l1, hidden);
        let signatures: Vec<u64> =
            BackEnd::available().into_iter().map(|back_end| bench(&mut player.searcher(back_end), 4).nodes).collect();
        assert!(signatures[0] > 10_000, "{set}: {signatures:?}");
        assert!(signatures.iter().all(|nodes| *nodes == signatures[0]), "{set}: {signatures:?}");
    }
}

/// A cleared searcher has the node count of a new one.
#[test]
fn clearing_resets_the_searcher() {
    let player = Player::new("piece", 16, &[8]);
    let mut searcher = player.searcher(BackEnd::best());
    let first = bench(&mut searcher, 4).nodes;
    searcher.clear();
    assert_eq!(bench(&mut searcher, 4).nodes, first);
}

#[test]
fn node_limits_are_exact() {
    let position = game("r1bqkb1r/pppp1ppp/2n2n2/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4");
    for nodes in [1, 2, 50, 1_000, 7_777] {
        let result = search(&position, &Limits { nodes: Some(nodes), ..Limits::default() });
        assert_eq!(result.nodes, nodes);
        assert!(position.position().legal_moves().contains(&result.best.expect("a move")));
    }
}

/// Captures without end: the first iteration takes more than 200 nodes.
const MANY_CAPTURES: &str = "r2qk2r/pppb1p1p/4p2n/PB1p2p1/1b6/2N1PN1P/2PP1PP1/R1B1K2R w KQkq - 4 10";

/// Whatever ends a search, it has told its result's score.
#[test]
fn every_search_tells_a_score() {
    let player = Player::new("piece", 16, &[8]);
    let mut searcher = player.searcher(BackEnd::best());
    let nodes = |nodes| Limits { nodes: Some(nodes), ..Limits::default() };
    let at_once = Clock::fixed(Instant::now(), Duration::from_millis(1), Duration::ZERO);
    let limits = [
        nodes(1),
        nodes(2),
        nodes(7),
        nodes(50),
        nodes(200),
        Limits { depth: Some(1), ..Limits::default() },
        Limits { clock: Some(at_once), ..Limits::default() },
    ];
    let in_check = ["4k3/8/8/8/8/8/4r3/4K3 w - - 0 1", "rnb1kbnr/pppp1ppp/8/4p3/5P1q/8/PPPPP1PP/RNBQKBNR w KQkq - 1 3"];
    let mut unfinished = 0;
    for fen in BENCH_FENS.iter().step_by(7).chain(&in_check).chain(&[MANY_CAPTURES]) {
        for limits in &limits {
            let mut last = None;
            searcher.clear();
            let result = searcher.search(&game(fen), limits, |iteration| last = Some(iteration.clone()));
            let last = last.expect("an iteration");
            assert_eq!(last.depth, result.depth, "{fen} {limits:?}");
            if result.depth == 0 {
                assert_eq!(last.line.first().copied(), result.best, "{fen} {limits:?}");
                assert_eq!((last.score, last.nodes), (result.score, result.nodes), "{fen} {limits:?}");
                unfinished += 1;
            }
        }
    }
    assert!(unfinished > 10, "{unfinished}");
    // A move that has been searched has its value; before that the network's score stands.
    searcher.clear();
    let position = game(MANY_CAPTURES);
    let static_score = Score::Cp(searcher.evaluate(&position));
    assert_eq!(searcher.search(&position, &nodes(1), |_| ()).score, static_score);
}

/// The counts of [the chess programming wiki](https://www.chessprogramming.org/Perft_Results), from depth 1.
const PERFT: [(&str, [u64; 5]); 6] = [
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", [20, 400, 8_902, 197_281, 4_865_609]),
    (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        [48, 2_039, 97_862, 4_085_603, 193_690_690],
    ),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2_812, 43_238, 674_624]),
    ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", [6, 264, 9_467, 422_333, 15_833_292]),
    ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", [44, 1_486, 62_379, 2_103_487, 89_941_194]),
    (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        [46, 2_079, 89_890, 3_894_594, 164_075_551],
    ),
];

fn check_perft(depth: u32) {
    let player = Player::new("piece", 16, &[8]);
    let mut searcher = player.searcher(BackEnd::best());
    for (fen, counts) in PERFT {
        for depth in 1..=depth {
            assert_eq!(searcher.perft(&game(fen), depth), Some(counts[depth as usize - 1]), "{fen} at depth {depth}");
        }
    }
}

#[test]
fn perft_to_depth_4() {
    check_perft(4);
}

#[test]
#[ignore = "takes minutes"]
fn perft_to_depth_5() {
    check_perft(5);
}

/// Forward pruning may hide a mate at the depth of its last move; a few plies deeper it is found.
#[test]
fn mates_are_found() {
    let check = |fen: &str, depth: u32, moves: i32, first: &[&str]| {
        let mate = u32::try_from(moves).ok();
        let result = search(&game(fen), &Limits { depth: Some(depth), mate, ..Limits::default() });
        assert_eq!(result.score, Score::Mate(moves), "{fen}");
        assert!(first.contains(&notation(result.best).as_str()), "{fen}: {:?}", result.best);
    };
    check("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1", 3, 1, &["d1d8"]);
    // Two rooks on a bare king.
    check("7k/8/8/8/8/8/R7/1R4K1 w - - 0 1", 14, 2, &["a2a7", "b1b7"]);
    // A smothered mate with a queen sacrifice.
    check("5r1k/6pp/7N/8/8/1Q6/6PP/6K1 w - - 0 1", 14, 2, &["b3g8"]);
    check("r5rk/5p1p/5R2/4B3/8/8/7P/7K w - - 0 1", 16, 3, &["f6a6"]);
    check("3r4/pR2N3/2pkb3/5p2/8/2B5/qP3PPP/4R1K1 w - - 1 1", 16, 3, &["c3e5"]);
    check("r1b1kb1r/pppp1ppp/5q2/4n3/3KP3/2N3PN/PPP4P/R1BQ1B1R b kq - 0 1", 16, 3, &["f8c5"]);
    // The side to move is mated in one by every reply.
    check("7k/1R6/8/8/8/8/8/R5K1 b - - 0 1", 6, -1, &["h8g8"]);
}

#[test]
fn finished_games_have_no_best_move() {
    let result = |fen| search(&game(fen), &Limits { depth: Some(3), ..Limits::default() });
    let mated = result("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1");
    assert_eq!((mated.best, mated.score), (None, Score::Mate(0)));
    let stalemate = result("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1");
    assert_eq!((stalemate.best, stalemate.score), (None, Score::Cp(0)));
}

/// A queen down, the side to move draws by perpetual check.
#[test]
fn perpetual_check_is_a_draw() {
    let position = game("6k1/5pp1/8/8/8/7Q/1q4PK/q7 w - - 0 1");
    let result = search(&position, &Limits { depth: Some(10), ..Limits::default() });
    assert_eq!(result.score, Score::Cp(0));
}

/// A position of the game is a draw when it occurs for the third time, not for the second.
#[test]
fn third_repetitions_are_draws() {
    let after = |rounds: usize| {
        let mut game = game("6k1/5ppp/8/8/8/r7/r7/6K1 w - - 0 1");
        for _ in 0..rounds {
            game.play_uci(["g1f1", "g8h8", "f1g1", "h8g8"]).expect("legal");
        }
        search(&game, &Limits { depth: Some(6), ..Limits::default() })
    };
    assert_ne!(after(1).score, Score::Cp(0));
    let drawn = after(2);
    assert_eq!((notation(drawn.best), drawn.score), ("g1f1".into(), Score::Cp(0)));
}

/// At a halfmove clock of 99 every quiet move draws, but mate on the last ply wins.
#[test]
fn fifty_move_rule() {
    let limits = Limits { depth: Some(4), ..Limits::default() };
    let quiet = search(&game("7k/8/8/8/8/8/Q7/6K1 w - - 99 80"), &limits);
    assert_eq!(quiet.score, Score::Cp(0));
    let mate = search(&game("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 99 80"), &limits);
    assert_eq!((mate.score, notation(mate.best)), (Score::Mate(1), "d1d8".into()));
}

#[test]
fn only_search_moves_are_searched() {
    let position = game("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    let wanted = "h2h4".parse::<shakmaty::uci::UciMove>().expect("UCI").to_move(position.position()).expect("legal");
    let limits = Limits { depth: Some(3), search_moves: vec![wanted], ..Limits::default() };
    assert_eq!(search(&position, &limits).best, Some(wanted));
}

#[test]
fn the_stop_flag_ends_the_search() {
    let player = Player::new("piece", 16, &[8]);
    let mut searcher = player.searcher(BackEnd::best());
    let stop = searcher.stop_flag();
    let position = game("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    // There is no limit: only the flag, set after the third iteration, ends the search.
    let result = searcher.search(&position, &Limits::default(), |iteration| {
        if iteration.depth == 3 {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert!(result.best.is_some() && result.depth >= 3, "{result:?}");
}

/// A dialogue with a UCI engine.
struct Session {
    input: std::io::PipeWriter,
    output: std::io::Lines<std::io::BufReader<std::io::PipeReader>>,
    engine: std::thread::JoinHandle<std::io::Result<()>>,
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
            uci(std::io::BufReader::new(reader), writer, &load, network.map(Into::into))
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
        uci(input.as_bytes(), &mut output, &network, Some("net".into())).expect("it is read");
        is_bench(&output);
    }
    let mut output = Vec::new();
    let commands = ["setoption name Hash value 1", "bench 2"].map(str::to_owned);
    uci_commands(&commands, &mut output, &network, Some("net".into()));
    is_bench(&output);
    // A search is finished, too.
    let mut output = Vec::new();
    uci_commands(&["go depth 4".to_owned()], &mut output, &network, Some("net".into()));
    let text = String::from_utf8_lossy(&output);
    assert!(text.contains("info depth 4 ") && text.contains("\nbestmove "), "{text}");
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
    check("setoption name UCI_Chess960 value true", "Chess960 is not played");
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
