//! Compares the engine with the reference forward pass. After every move of random games, with every strategy and back
//! end, updated accumulators equal refreshed ones and scores equal the reference's.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use fsbench::chess::{Board, BoardChange, Chess, Color, Move, PackedBoard, Perspective, PieceBoard};
use fsbench::data::PgnGame;
use fsbench::engine::{
    BackEnd, Evaluator, LineEvaluator, LinePosition, LineStep, Model, PositionList, Strategy, ft_permute,
};
use fsbench::features::FeatureSet;
use fsbench::net::{Activation, BucketRule, OutputBuckets, QuantNet, RawScore, Scheme, Shape, forward_integer};
use fsbench::units::Seed;
use rand::RngExt;
use rayon::prelude::*;
use shakmaty::Position;

use common::networks::{ReferenceBuckets, expression_buckets, random_net, scheme_of, shapes};

struct Case {
    set: FeatureSet,
    net: QuantNet,
    model: Model,
    buckets: ReferenceBuckets,
}

impl Case {
    fn new(set: FeatureSet, net: QuantNet) -> Case {
        Case { model: Model::new(&net), buckets: ReferenceBuckets::new(&net.shape.buckets, &set), set, net }
    }
}

fn cases() -> Vec<Case> {
    let shapes = shapes();
    let case = |(n, set): (usize, FeatureSet)| {
        let shape = Shape { features: set.num_features(), ..shapes[n % shapes.len()].clone() };
        let scheme = scheme_of(n % shapes.len(), &shape);
        assert!(shape.validate().and_then(|()| scheme.admits(&shape)).is_ok());
        let net = random_net(shape, scheme, n as u64);
        Case::new(set, net)
    };
    let mixed = ["piece + half-ka-v2-hm", "axis-h + relative-king-hv + mobility-count + king-piece"];
    let mixed = mixed.map(|text| FeatureSet::resolve(text).expect("a definition"));
    common::sets().into_iter().chain(mixed).enumerate().map(case).chain(cases_by_expression()).collect()
}

/// Networks whose output buckets go by an expression.
fn cases_by_expression() -> impl Iterator<Item = Case> {
    expression_buckets().into_iter().enumerate().map(|(n, (set, buckets))| {
        let plain = Shape::plain(set.num_features(), 32, vec![15, 8]);
        let shape = Shape { activation: Activation::Pairwise, psqt: n > 0, buckets, ..plain };
        let net = random_net(shape, Scheme::stockfish(), n as u64);
        Case::new(set, net)
    })
}

/// 1,000 played games if `FSBENCH_DATA` has them, else random games.
fn games() -> Vec<Vec<Move>> {
    let standard = |game: &PgnGame| game.start == Chess::default() && game.moves.len() > 10;
    let moves = |game: PgnGame| game.moves.iter().take(120).map(|played| played.mv).collect();
    match common::skip::shared_data("lichess-plain.pgn.zst") {
        None => (0..1000).map(|game| common::random_game(game, 120)).collect(),
        // Random games have more promotions and queenside castling.
        Some(path) => {
            let played = fsbench::data::games(&path).expect("games").map(|game| game.expect("a game"));
            let random = (0..100).map(|game| common::random_game(game, 120));
            played.filter(standard).take(1000).map(moves).chain(random).collect()
        }
    }
}

/// Counts moves of each special kind.
#[derive(Default)]
struct MoveKinds {
    moves: AtomicU64,
    castles: AtomicU64,
    en_passant: AtomicU64,
    promotions: AtomicU64,
}

impl MoveKinds {
    fn add(&self, mv: Move) {
        let count = |counter: &AtomicU64, happened: bool| {
            counter.fetch_add(u64::from(happened), Ordering::Relaxed);
        };
        count(&self.moves, true);
        count(&self.castles, mv.is_castle());
        count(&self.en_passant, mv.is_en_passant());
        count(&self.promotions, mv.is_promotion());
    }
}

#[test]
fn every_strategy_and_back_end_gives_the_same_scores_over_1000_games() {
    let cases = cases();
    assert!(cases.len() >= 10);
    let kinds = MoveKinds::default();
    games().into_par_iter().enumerate().for_each(|(game, moves)| {
        moves.iter().for_each(|mv| kinds.add(*mv));
        // Each set plays a fifth of the games; each game is played by at least three sets.
        let cases = cases.iter().enumerate().filter(|(n, _)| (game + n).is_multiple_of(5));
        cases.for_each(|(_, case)| play_game(case, &moves, game / 5));
    });
    let counts =
        [&kinds.moves, &kinds.castles, &kinds.en_passant, &kinds.promotions].map(|n| n.load(Ordering::Relaxed));
    assert!(counts[0] > 60_000 && counts[1..].iter().all(|count| *count > 20), "{counts:?}");
}

/// As above for some games, of networks whose output buckets go by an expression; several buckets occur.
#[test]
fn buckets_by_an_expression_are_the_references() {
    for case in cases_by_expression() {
        let mut used = vec![false; case.net.shape.buckets.count];
        for game in 0..10 {
            let moves = common::random_game(game, 120);
            play_game(&case, &moves, game as usize);
            let mut position = Chess::default();
            for mv in moves {
                position.play_unchecked(mv);
                used[case.buckets.of(position.board(), position.turn())] = true;
            }
        }
        assert!(used.len() == 1 || used.iter().filter(|is_used| **is_used).count() > 3, "{used:?}");
    }
}

/// Lines known beforehand: the scores of two games, and of some positions in no order, equal an evaluator's. Calls with
/// parts of a game continue each other.
#[test]
fn known_lines_score_as_evaluators_do_move_by_move() {
    let mut cases = cases();
    // Both halves of the neurons take several tiles, the last of them a small one.
    let wide = Shape {
        activation: Activation::Pairwise,
        psqt: true,
        buckets: OutputBuckets { count: 8, rule: BucketRule::Stockfish },
        ..Shape::plain(1, 1100, vec![15, 32])
    };
    cases.extend(["piece", "half-ka-v2-hm", "piece + half-ka-v2-hm"].into_iter().enumerate().map(|(n, text)| {
        let set = FeatureSet::resolve(text).expect("a definition");
        let shape = Shape { features: set.num_features(), ..wide.clone() };
        let net = random_net(shape, Scheme::stockfish(), n as u64);
        Case::new(set, net)
    }));
    cases.par_iter().enumerate().for_each(|(n, case)| {
        let Case { set, model, .. } = case;
        let mut boards: Vec<(Board, Color)> = Vec::new();
        for game in 0..2 {
            let mut position = Chess::default();
            for mv in common::random_game((2 * n + game) as u64, 150) {
                boards.push((position.board().clone(), position.turn()));
                position.play_unchecked(mv);
            }
        }
        let jumps: Vec<_> = boards.iter().step_by(7).rev().cloned().collect();
        boards.extend(jumps);
        let mut positions = PositionList::default();
        boards.iter().for_each(|(board, turn)| positions.push(&PackedBoard::of(board), *turn));
        let line: Vec<LinePosition<'_>> = positions.line().collect();
        assert!(line.iter().filter(|position| matches!(position.step, LineStep::Start(_))).count() > 10);
        let mut refreshed = Evaluator::new(set, model, Strategy::Refresh, BackEnd::best()).unwrap();
        let expected: Vec<i32> = boards
            .iter()
            .map(|(board, turn)| {
                refreshed.set(board);
                refreshed.raw(*turn)
            })
            .collect();
        for back_end in BackEnd::available() {
            for constructor in [LineEvaluator::new, LineEvaluator::batched] {
                let mut evaluator = constructor(set, model, back_end).unwrap();
                let mut found = Vec::new();
                for part in line.chunks(37) {
                    evaluator.evaluate(part.iter().copied(), |raw| found.push(raw.sum()));
                }
                assert_eq!(found, expected, "{} on {}", set.name(), back_end.name());
            }
        }
    });
}

/// Plays a game with every strategy. `rotation` assigns back ends to strategies; over several games all pairs occur.
fn play_game(case: &Case, moves: &[Move], rotation: usize) {
    let Case { set, model, .. } = case;
    let evaluator = |strategy, back_end| Evaluator::new(set, model, strategy, back_end).expect("belongs to the set");
    let back_ends = BackEnd::available();
    let rotated = back_ends.iter().copied().cycle().skip(rotation % back_ends.len());
    let pairs = Strategy::ALL.into_iter().zip(rotated);
    let pairs = pairs.chain(back_ends.iter().map(|back_end| (Strategy::EagerCached, *back_end)));
    let mut updated: Vec<_> = pairs.map(|(strategy, back_end)| evaluator(strategy, back_end)).collect();
    let mut refreshed = evaluator(Strategy::Refresh, BackEnd::best());
    let mut position = Chess::default();
    refreshed.set(position.board());
    updated.iter_mut().for_each(|evaluator| evaluator.set(position.board()));
    for (ply, mv) in moves.iter().enumerate() {
        let change = BoardChange::of(*mv, position.turn());
        position.play_unchecked(*mv);
        let turn = position.turn();
        refreshed.play(&change);
        let score = refreshed.raw(turn);
        if ply % 5 == 0 {
            let expected = reference(case, &position).sum();
            assert_eq!(score, expected, "{}: {mv:?} {:?}", set.name(), position.board());
        }
        for evaluator in &mut updated {
            evaluator.play(&change);
            // Skipped plies make lazy strategies roll several moves forward at once.
            if ply % 3 == 1 {
                continue;
            }
            for pov in Perspective::ALL {
                assert_eq!(evaluator.accumulator(pov), refreshed.accumulator(pov), "{}: {mv:?}", set.name());
            }
            assert_eq!(evaluator.raw(turn), score, "{}: {mv:?}", set.name());
        }
    }
}

fn reference(case: &Case, position: &Chess) -> RawScore {
    let stm = Perspective::of(position.turn());
    let active = |pov| case.set.reference(position.board(), pov);
    let bucket = case.buckets.of(position.board(), position.turn());
    forward_integer(&case.net, bucket, &active(stm), &active(stm.other()))
}

/// A search may score the children of a position that it has not scored, because its table knows the score.
#[test]
fn siblings_share_the_refresh_of_their_parent() {
    for set in ["piece", "half-ka-v2-hm"] {
        let set = FeatureSet::resolve(set).expect("shipped");
        let net = random_net(Shape { features: set.num_features(), ..shapes()[0].clone() }, Scheme::stockfish(), 0);
        let model = Model::new(&net);
        for strategy in [Strategy::Lazy, Strategy::LazyCached] {
            let mut evaluator = Evaluator::new(&set, &model, strategy, BackEnd::best()).expect("belongs to the set");
            let root = Chess::default();
            evaluator.set(root.board());
            let moves = root.legal_moves();
            for mv in &moves {
                evaluator.play(&BoardChange::of(*mv, Color::White));
                evaluator.score(Color::Black);
                assert!(evaluator.undo());
            }
            // All 32 pieces for both perspectives, and with every move one row removed and one added for each.
            assert_eq!(evaluator.rows(), 2 * 32 + moves.len() as u64 * 4, "{} {strategy:?}", set.name());
        }
    }
}

/// Seventeen blocks of fifteen contexts each: the number of combinations does not fit 64 bits. The kings' squares
/// change the context of the first block only.
#[test]
fn the_cache_separates_contexts_of_many_blocks() {
    let table = |number: &dyn Fn(usize) -> usize| (0..64).map(number).collect::<Vec<usize>>();
    let first = table(&|square| square % 15);
    let other = table(&|square| if square < 16 { 0 } else { square % 15 });
    let block = |bucket: &str| format!("bucket(K, {bucket}) * role(P) * color(P) for P in pieces");
    let features = std::iter::once("first").chain([("other"); 16]).map(block).collect::<Vec<_>>().join(" + ");
    let text = format!("features = \"{features}\"\n[buckets]\nfirst = {first:?}\nother = {other:?}");
    let set = FeatureSet::from_definition(&text).expect("a definition");
    assert!(set.blocks().len() == 17 && set.blocks().iter().all(|block| block.contexts() == 15));
    let net = random_net(Shape { features: set.num_features(), ..shapes()[0].clone() }, Scheme::stockfish(), 0);
    let model = Model::new(&net);
    let evaluator = |strategy| Evaluator::new(&set, &model, strategy, BackEnd::best()).expect("belongs to the set");
    let mut cached = evaluator(Strategy::EagerCached);
    let mut refreshed = evaluator(Strategy::Refresh);
    for fen in ["4k3/pp6/8/8/8/8/6PP/K7", "4k3/pp6/8/8/8/8/6PP/1K6", "4k3/pp6/8/8/8/8/6PP/K7"] {
        let board = Board::from_ascii_board_fen(fen.as_bytes()).expect("a board");
        cached.set(&board);
        refreshed.set(&board);
        for pov in Perspective::ALL {
            assert_eq!(cached.accumulator(pov), refreshed.accumulator(pov), "{fen}");
        }
    }
}

/// Boards that lack a king, or have two of a side, have no features, however they are reached.
#[test]
fn boards_without_kings_are_followed() {
    let placements = [
        "4k3/pp6/8/8/8/8/6PP/K7",
        "4k3/pp6/8/8/8/8/6PP/8",
        "8/pp6/8/8/8/8/6PP/8",
        "8/1p6/8/8/8/7P/6P1/8",
        "8/1p6/8/8/8/7P/6P1/8",
        "4k3/1p6/8/8/8/7P/6P1/K7",
        "4k3/1p6/8/8/8/7P/6P1/KK6",
        "4k3/1p6/8/8/8/7P/8/KK6",
        "4k3/1p6/8/8/8/7P/8/K7",
        "4k3/1p6/8/8/8/7P/8/1K6",
    ];
    let boards = placements.map(|text| Board::from_ascii_board_fen(text.as_bytes()).expect("a board"));
    for name in ["piece", "half-ka-v2-hm", "sfnnv16", "all-mb", "chess768-kb4-hm + threat-roles"] {
        let set = FeatureSet::resolve(name).expect("a set");
        let net = random_net(Shape { features: set.num_features(), ..shapes()[0].clone() }, Scheme::stockfish(), 0);
        let model = Model::new(&net);
        let mut refreshed = Evaluator::new(&set, &model, Strategy::Refresh, BackEnd::best()).expect("belongs");
        let expected = boards.each_ref().map(|board| {
            refreshed.set(board);
            refreshed.raw(Color::White)
        });
        assert!(expected[1] == expected[2] && expected[2] == expected[6] && expected[0] != expected[1]);
        for strategy in Strategy::ALL {
            let mut evaluator = Evaluator::new(&set, &model, strategy, BackEnd::best()).expect("belongs");
            evaluator.set(&boards[0]);
            for (at, pair) in boards.windows(2).enumerate() {
                let [before, after] = [&pair[0], &pair[1]].map(PieceBoard::of);
                evaluator.play(&BoardChange::between(&before, &after).expect("a small change"));
                assert_eq!(
                    evaluator.raw(Color::White),
                    expected[at + 1],
                    "{name}, {} {}",
                    strategy.name(),
                    placements[at + 1]
                );
            }
        }
        let mut positions = PositionList::default();
        boards.iter().for_each(|board| positions.push(&PackedBoard::of(board), Color::White));
        let mut found = Vec::new();
        LineEvaluator::batched(&set, &model, BackEnd::best())
            .expect("belongs")
            .evaluate(positions.line(), |raw| found.push(raw.sum()));
        assert_eq!(found, expected, "{name}");
    }
}

/// Each bucket's scores are rounded one by one.
#[test]
fn evaluations_list_all_buckets() {
    for case in &cases() {
        let mut evaluator = Evaluator::new(&case.set, &case.model, Strategy::Lazy, BackEnd::best()).expect("belongs");
        let mut position = Chess::default();
        for mv in common::random_game(7, 60) {
            position.play_unchecked(mv);
        }
        evaluator.set(position.board());
        let evaluation = evaluator.evaluate(position.turn());
        let internal = |raw| case.net.scheme.internal_score(raw);
        assert_eq!(evaluation.score_internal, case.net.scheme.score(reference(case, &position)));
        assert_eq!(evaluation.buckets.len(), case.net.shape.buckets.count);
        let stm = Perspective::of(position.turn());
        let active = |pov| case.set.reference(position.board(), pov);
        for (bucket, score) in evaluation.buckets.iter().enumerate() {
            let raw = forward_integer(&case.net, bucket, &active(stm), &active(stm.other()));
            let expected = (internal(raw.psqt), internal(raw.positional));
            assert_eq!((score.psqt, score.positional), expected, "{}", case.set.name());
        }
    }
}

/// Like a search, plays and undoes random moves and asks for a score now and then.
#[test]
fn moves_are_undone() {
    let cases = cases();
    for case in cases.iter().take(9).chain(&cases[cases.len() - 2..]) {
        for strategy in [Strategy::Lazy, Strategy::LazyCached] {
            let mut evaluator =
                Evaluator::new(&case.set, &case.model, strategy, BackEnd::best()).expect("belongs to the set");
            let mut rng = Seed(9).stream("search", 0);
            let mut line = vec![Chess::default()];
            evaluator.set(line[0].board());
            assert!(!evaluator.undo());
            for _ in 0..400 {
                let position = line.last().expect("never empty").clone();
                let moves = position.legal_moves();
                if line.len() > 1 && (moves.is_empty() || rng.random_bool(0.45)) {
                    line.pop();
                    assert!(evaluator.undo());
                } else {
                    let mv = moves[rng.random_range(0..moves.len())];
                    let after = position.clone().play(mv).expect("legal");
                    evaluator.play(&BoardChange::of(mv, position.turn()));
                    line.push(after);
                }
                if rng.random_bool(0.4) {
                    let position = line.last().expect("never empty");
                    assert_eq!(evaluator.raw(position.turn()), reference(case, position).sum(), "{}", case.set.name());
                }
            }
        }
    }
}

/// Permuted networks give the same scores and have no more non-zero groups of four inputs.
#[test]
fn permuted_networks_score_the_same() {
    let cases = cases();
    let mut positions = Vec::new();
    for game in 0..20 {
        let mut position = Chess::default();
        for mv in common::random_game(game, 60) {
            position.play_unchecked(mv);
            positions.push((position.board().clone(), position.turn()));
        }
    }
    let boards = || positions.iter().map(|(board, turn)| (board, *turn));
    let mut changed = 0;
    for Case { set, net, model, .. } in cases.iter().take(shapes().len()) {
        let permuted = ft_permute(set, net, boards()).expect("belongs to the set");
        assert_eq!(permuted, ft_permute(set, net, boards()).expect("belongs to the set"));
        changed += usize::from(permuted != *net);
        let permuted = Model::new(&permuted);
        let [(scores, groups), (expected, before)] = [&permuted, model].map(|model| scores(set, model, boards()));
        assert_eq!(scores, expected, "{}", set.name());
        assert!(groups <= before, "{}: {groups} groups, {before} before", set.name());
    }
    assert!(changed > 5, "{changed}");
}

/// Raw scores, and the number of non-zero groups of four inputs of the first dense layer.
fn scores<'a>(
    set: &FeatureSet,
    model: &Model,
    positions: impl Iterator<Item = (&'a Board, Color)>,
) -> (Vec<i32>, usize) {
    let mut evaluator = Evaluator::new(set, model, Strategy::Refresh, BackEnd::best()).expect("belongs to the set");
    let mut groups = 0;
    let score = |(board, turn): (&Board, Color)| {
        evaluator.set(board);
        evaluator.observe(turn, |layer, values| {
            let zero = |group: &[u8]| group.iter().all(|value| *value == 0);
            groups += if layer == 0 { values.chunks(4).filter(|group| !zero(group)).count() } else { 0 };
        })
    };
    (positions.map(score).collect(), groups)
}

#[test]
#[should_panic(expected = "not a permutation of the units")]
fn an_order_is_a_permutation() {
    let _ = cases()[0].net.permute_ft(&[0; 32]);
}

#[test]
fn another_set_is_refused() {
    let case = &cases()[0];
    let other = FeatureSet::resolve("file(K)").expect("a definition");
    let error = Evaluator::new(&other, &case.model, Strategy::Refresh, BackEnd::best()).err().expect("refused");
    assert!(error.to_string().contains("has 8 features"), "{error}");
}
