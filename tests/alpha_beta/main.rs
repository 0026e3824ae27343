//! The search: the same signature on all back ends, exact node limits, mates, draws; and the UCI engine.

#[path = "../common/mod.rs"]
mod common;

mod chess960;
mod dialogue;

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chess960::{CHESS960_PERFT, DOUBLE_CHESS960_PERFT};
use fsbench::alpha_beta::{
    BENCH_FENS, Clock, Game, Limits, LoadNetwork, PlayingNetwork, Score, SearchResult, Searcher, UciHost, bench, uci,
    uci_commands,
};
use fsbench::chess::parse_fen;
use fsbench::engine::{BackEnd, Model};
use fsbench::features::FeatureSet;
use fsbench::net::{FloatNet, Scheme, quantise};
use shakmaty::{CastlingMode, Move, Position};

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
    Game::new(parse_fen(fen).expect(fen))
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
    for (fen, counts) in PERFT.into_iter().chain(CHESS960_PERFT).chain(DOUBLE_CHESS960_PERFT) {
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
