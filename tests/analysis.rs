//! Proofs about feature sets: dead features, witnesses, losslessness, counterexamples.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::time::{Duration, Instant};

use fsbench::chess::{Board, Chess, Color, Perspective, Piece, Role, Square};
use fsbench::features::analysis::{self, Analysis, Lossless, Status, StatusCounts, Witness};
use fsbench::features::{FeatureSet, available_names};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Position, Setup};

/// Most time that a known set may take on one core.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A set of the literature with its known properties.
struct KnownSet {
    name: &'static str,
    set: FeatureSet,
    dead: u32,
    lossless: &'static str,
}

fn expression(text: &str) -> FeatureSet {
    FeatureSet::resolve(text).unwrap_or_else(|error| panic!("{error}"))
}

fn definition(features: &str, rest: &str) -> FeatureSet {
    FeatureSet::from_definition(&format!("features = \"{features}\"\n{rest}")).unwrap_or_else(|error| panic!("{error}"))
}

/// `bucket(K, half)` of half-ka-v2-hm.
fn half() -> String {
    let bucket = |square: i32| if square % 8 < 4 { -1 } else { 4 * (7 - square / 8) + (7 - square % 8) };
    format!("mirror = \"king-right\"\n[buckets]\nhalf = {:?}\n", (0..64).map(bucket).collect::<Vec<_>>())
}

fn mobility_count() -> String {
    let roles = [("pawn", 8), ("knight", 15), ("bishop", 16), ("rook", 25), ("queen", 25), ("king", 8)];
    let count = |(role, max): (&str, u32), color: &str| {
        format!("count({max} for P in pieces, M in moves(P) if role(P) == {role} and color(P) == {color})")
    };
    roles.iter().flat_map(|role| [count(*role, "own"), count(*role, "their")]).collect::<Vec<_>>().join(" + ")
}

fn pairs(line: &str, direction: &str) -> String {
    format!("{line}(P) * role(P) * color(P) * role(Q) * color(Q) for P in pieces, Q in next(P, {direction})")
}

fn axis(name: &str) -> String {
    format!("{name}(P) * role(P) * color(P) for P in pieces")
}

const ALL_PAIRS: &str = "square(P) * role(P) * color(P) * square(Q) * role(Q) * color(Q) \
                         for P in pieces, Q in pieces if square(P) < square(Q)";

/// The sets of the literature, with the number of dead features and whether the set is lossless.
fn known_sets() -> Vec<KnownSet> {
    let known = |name, set, dead, lossless| KnownSet { name, set, dead, lossless };
    let ka = "square(K) * role(P) * color(P) * square(P) for P in pieces";
    let kings_merged =
        |king: &str| format!("{king} * (role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in pieces");
    let kp = "square(K) * (reserved(1) + role(P, pawn..queen) * color(P) * square(P)) for P in pieces";
    let mobility = "square(M) * role(P) * color(P) for P in pieces, M in moves(P)";
    let all_lines = ["file", "rank", "diagonal", "antidiagonal"].map(axis).join(" + ");
    let all_and = |more: &str| format!("square(P) * role(P) * color(P) for P in pieces + {more}");
    vec![
        known("piece", expression("piece"), 32, "yes"),
        known("compact", expression("compact"), 4, "no"),
        known("king-piece", expression("king-piece"), 2_656, "no"),
        known("piece-move", expression("piece-move"), 2_336, "yes"),
        known("relative-king-h", expression("relative-king-h"), 60, "no"),
        known("relative-king-v", expression("relative-king-v"), 32, "no"),
        known("relative-king-hv", expression("relative-king-hv"), 70, "no"),
        known("axis-h", expression(&axis("file")), 0, "no"),
        known("axis-v", expression(&axis("rank")), 4, "no"),
        known("axis-d1", expression(&axis("diagonal")), 4, "no"),
        known("axis-d2", expression(&axis("antidiagonal")), 4, "no"),
        known("h+v+d1+d2", expression(&all_lines), 12, "no"),
        known("pairs-h", expression(&pairs("rank", "east")), 104, "no"),
        known("pairs-v", expression(&pairs("file", "north")), 16, "no"),
        known("pairs-d1", expression(&pairs("diagonal", "northwest")), 366, "no"),
        known("pairs-d2", expression(&pairs("antidiagonal", "northeast")), 366, "no"),
        known("mobility-bitset", expression(mobility), 32, "no"),
        known("mobility-count", expression(&mobility_count()), 0, "no"),
        known("all+h+v+d1+d2", expression(&all_and(&all_lines)), 44, "yes"),
        known("all+ph", expression(&all_and(&pairs("rank", "east"))), 136, "yes"),
        known("all+mc", expression(&all_and(&mobility_count())), 32, "yes"),
        known("half-kp", definition(kp, "black = \"rotate\""), 2_720, "no"),
        known("half-ka", expression(ka), 7_172, "yes"),
        known("half-ka-v2", expression(&kings_merged("square(K)")), 3_076, "yes"),
        known("half-ka-v2-hm", definition(&kings_merged("bucket(K, half)"), &half()), 1_538, "no"),
        known("king-all", expression("square(K) * square(P) * role(P) * color(P) for P in pieces"), 7_172, "yes"),
        known("chess768", expression("color(P) * role(P) * square(P) for P in pieces"), 32, "yes"),
        known("all pairs", expression(ALL_PAIRS), 327_684, "yes"),
    ]
}

/// Definitions for the parts of the language that the known sets do not use.
const UNUSUAL: [&str; 30] = [
    "square(P) for P in pieces, Q in pieces if role(P) == king and role(Q) == king and square(P) != square(Q)",
    "square(K) * square(E)",
    "square(K) + file(E) * rank(K)",
    "(file(K) - file(E)) * (rank(K) - rank(E))",
    "(file(P) - file(Q)) * (rank(P) - rank(Q)) * role(P) for P in pieces, Q in targets(P)",
    "(file(K) - file(P)) * role(P) * color(P) for P in pieces if abs(file(P) - file(K)) < 3",
    "role(P) * color(P) for P in pieces if file(P) >= file(K) and rank(P) - rank(E) != -1",
    "file(K) * role(P) * color(P) for P in pieces if file(K) < 2 and rank(E) == 7",
    "square(P) * role(P) for P in pieces if role(P) == pawn and rank(P) == 0",
    "(square(P) + file(P) * (reserved(2) + role(P, queen, king) * (rank(P, 8) + rank(P, 1)))) * color(P) for P in \
     pieces",
    "rank(P, 2..7) * file(P, h, a..c) * color(P, their) for P in pieces if role(P) == pawn",
    "square(M) for M in moves(K)",
    "square(A) * file(E) for A in attacks(E) if not (abs(file(A) - file(K)) <= 1)",
    "square(M) * square(P) * role(P, pawn) * color(P) for P in pieces, M in moves(P)",
    "role(P) * color(P) * role(Q) * color(Q) * square(Q) for P in pieces, Q in targets(P)",
    "role(P) * color(P) * role(Q) * color(Q) * role(R) for P in pieces, Q in next(P, east), R in next(Q, east)",
    "role(Q) * color(Q) * role(R) * color(R) for Q in next(K, northeast), R in next(E, northwest)",
    "role(Q) * color(Q) * role(R) * color(R) for Q in targets(K), R in targets(E)",
    "count(8 for P in pieces, M in moves(P) if role(P) == pawn and color(P) == own)",
    "count(20 for P in pieces if role(P) == pawn and color(P) == their)",
    "count(5 for P in pieces if role(P) == king)",
    "count(40 for P in pieces)",
    "count(30 for M in moves(K))",
    "color(P) * count(9 for M in moves(P)) for P in pieces if role(P) == knight",
    "square(P) * count(3 for A in attacks(P) if rank(A) > rank(P)) for P in pieces if role(P) != pawn",
    "role(P) * color(P) * count(4 for Q in pieces if role(Q) == role(P) and color(Q) == color(P)) for P in pieces",
    "role(P) * count(3 for T in targets(P) if color(T) != color(P)) * count(2 for T in next(P, north)) for P in pieces",
    "count(3 for A in attacks(K), B in attacks(E) if square(A) == square(B))",
    "square(P) * square(Q) for P in pieces, Q in pieces if square(P) < square(Q) and color(P) == color(Q)",
    "square(P) for P in pieces if 1 == 2",
];

/// The unusual definitions as they are; then rotated, mirrored and as bags.
fn unusual_sets() -> Vec<FeatureSet> {
    let plain = UNUSUAL.iter().map(|text| expression(text));
    let turned = UNUSUAL.iter().enumerate().map(|(at, text)| {
        let mirror = ["king-left", "king-right"][at % 2];
        let multiplicity = ["set", "bag"][at / 2 % 2];
        definition(text, &format!("black = \"rotate\"\nmirror = \"{mirror}\"\nmultiplicity = \"{multiplicity}\""))
    });
    plain.chain(turned).collect()
}

/// Every witness is legal and activates its feature, and every feature has a status.
fn check_witnesses(name: &str, set: &FeatureSet, analysis: &Analysis) {
    let mut previous: Option<(String, Vec<u32>)> = None;
    let mut tally = StatusCounts::default();
    for index in 0..set.num_features() {
        match analysis.status(index) {
            Status::Dead => tally.dead += 1,
            Status::Unresolved => tally.unresolved += 1,
            Status::Live => {
                tally.live += 1;
                let fen = analysis.witness(index).unwrap_or_else(|| panic!("{name} {index} has no witness")).fen();
                if previous.as_ref().is_none_or(|(known, _)| *known != fen) {
                    previous = Some((fen.clone(), set.reference(&board(&fen), Perspective::White)));
                }
                let (_, active) = previous.as_ref().unwrap();
                assert!(active.binary_search(&index).is_ok(), "{name} {index} {fen}");
            }
        }
    }
    assert_eq!(tally, analysis.tally(), "{name}");
}

/// The board of a FEN that passes strict validation.
fn board(fen: &str) -> Board {
    let fen: Fen = fen.parse().unwrap();
    let position: Chess =
        fen.clone().into_position(CastlingMode::Standard).unwrap_or_else(|error| panic!("{fen}: {error}"));
    position.board().clone()
}

#[test]
fn known_sets_have_no_unresolved_features() {
    for KnownSet { name, set, dead, .. } in known_sets() {
        let start = Instant::now();
        let analysis = Analysis::of(&set, |_, _| {});
        let elapsed = start.elapsed();
        let StatusCounts { dead: proved_dead, live, unresolved } = analysis.tally();
        eprintln!("{name}: {proved_dead} dead, {live} live, {unresolved} unresolved; {elapsed:.1?}");
        assert_eq!((proved_dead, unresolved), (dead, 0), "{name}");
        assert!(elapsed < TIME_LIMIT, "{name}");
        check_witnesses(name, &set, &analysis);
    }
}

#[test]
fn shipped_sets_have_no_unresolved_features() {
    for name in available_names() {
        let set = expression(&name);
        let analysis = Analysis::of(&set, |_, _| {});
        assert_eq!(analysis.tally().unresolved, 0, "{name}");
        check_witnesses(&name, &set, &analysis);
    }
}

#[test]
fn unusual_sets_have_valid_witnesses() {
    for set in unusual_sets() {
        let start = Instant::now();
        let analysis = Analysis::of(&set, |_, _| {});
        let tally = analysis.tally();
        eprintln!(
            "{}: {} dead, {} live, {} unresolved; {:.1?}",
            set.name(),
            tally.dead,
            tally.live,
            tally.unresolved,
            start.elapsed()
        );
        check_witnesses(set.name(), &set, &analysis);
    }
}

/// No feature that was proved dead is active in random play or in randomly placed positions.
#[test]
fn dead_features_are_never_active() {
    let known = known_sets().into_iter().map(|known| known.set);
    let sets: Vec<FeatureSet> = known.chain(unusual_sets()).chain((0..40).filter_map(random_definition)).collect();
    let dead: Vec<Vec<u32>> = sets.iter().map(analysis::dead).collect();
    let mut active = Vec::new();
    let mut positions = 0;
    let mut check = |board: &Board| {
        positions += 1;
        for (set, dead) in sets.iter().zip(&dead) {
            for pov in Perspective::ALL {
                set.encoder().encode(board, pov, &mut active);
                let active_dead = active.iter().find(|index| dead.binary_search(index).is_ok());
                assert_eq!(active_dead, None, "{} {board:?}", set.definition());
            }
        }
    };
    for game in 0..12 {
        let mut rng = Seed(77).stream("dead", game);
        let mut position = Chess::default();
        for _ in 0..150 {
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            position.play_unchecked(moves[rng.random_range(0..moves.len())]);
            check(position.board());
        }
    }
    let mut rng = Seed(77).stream("strewn", 0);
    (0..6_000).filter_map(|_| random_placement(&mut rng)).for_each(|board| check(&board));
    assert!(positions > 3_000, "{positions}");
}

/// Kings and up to twelve more pieces on random squares; `None` when the result is illegal for both sides to move.
fn random_placement(rng: &mut impl RngExt) -> Option<Board> {
    let mut board = Board::empty();
    for color in Color::ALL {
        board.set_piece_at(Square::new(rng.random_range(0..64)), Piece { color, role: Role::King });
    }
    for _ in 0..rng.random_range(0..=12) {
        let at = Square::new(rng.random_range(0..64));
        let role = Role::ALL[rng.random_range(0..5)];
        if board.piece_at(at).is_none() {
            board.set_piece_at(at, Piece { color: Color::from_white(rng.random_bool(0.5)), role });
        }
    }
    let legal = |turn: &Color| {
        let setup = Setup { board: board.clone(), turn: *turn, ..Setup::empty() };
        setup.position::<Chess>(CastlingMode::Standard).is_ok()
    };
    Color::ALL.iter().any(legal).then_some(board)
}

/// A random definition; `None` when it is invalid or too large.
fn random_definition(number: u64) -> Option<FeatureSet> {
    let mut rng = Seed(3).stream("definitions", number);
    let rng = &mut rng;
    let mut text = String::new();
    let mut pieces = vec!['K', 'E'];
    let mut squares = Vec::new();
    let binders = rng.random_range(0..=2);
    let list = bound(rng, &['P', 'Q'][..binders], &mut pieces, &mut squares);
    let factors = rng.random_range(1..=3);
    let product: Vec<String> = (0..factors).map(|_| factor(rng, &pieces, &squares, true)).collect();
    text += &product.join(" * ");
    if binders > 0 {
        text += &format!(" for {list}");
    }
    if rng.random_bool(0.5) {
        text += &format!(" if {}", condition(rng, &pieces, &squares));
    }
    let black = ["flip", "rotate"][rng.random_range(0..2)];
    let mirror = ["none", "king-left", "king-right"][rng.random_range(0..3)];
    let set = FeatureSet::from_definition(&format!(
        "features = \"{text}\"\nblack = \"{black}\"\nmirror = \"{mirror}\"\nname = \"{text}\""
    ));
    set.ok().filter(|set| set.num_features() <= 1 << 19)
}

fn bound(rng: &mut impl RngExt, letters: &[char], pieces: &mut Vec<char>, squares: &mut Vec<char>) -> String {
    let mut list = Vec::new();
    for letter in letters {
        let of = pieces[rng.random_range(0..pieces.len())];
        let source = match rng.random_range(0..8) {
            0..=3 => "pieces".to_owned(),
            4 => format!("targets({of})"),
            5 => format!("next({of}, {})", ["east", "north", "northeast", "northwest"][rng.random_range(0..4)]),
            kind => format!("{}({of})", ["moves", "attacks"][kind - 6]),
        };
        let bare = source.starts_with("moves") || source.starts_with("attacks");
        if bare {
            squares.push(*letter);
        } else {
            pieces.push(*letter);
        }
        list.push(format!("{letter} in {source}"));
    }
    list.join(", ")
}

fn axis_name(rng: &mut impl RngExt, piece: bool) -> &'static str {
    let names = ["square", "file", "rank", "diagonal", "antidiagonal", "role", "color"];
    names[rng.random_range(0..if piece { 7 } else { 5 })]
}

fn variable(rng: &mut impl RngExt, pieces: &[char], squares: &[char]) -> (char, bool) {
    let at = rng.random_range(0..pieces.len() + squares.len());
    if at < pieces.len() { (pieces[at], true) } else { (squares[at - pieces.len()], false) }
}

fn factor(rng: &mut impl RngExt, pieces: &[char], squares: &[char], nested: bool) -> String {
    let (of, piece) = variable(rng, pieces, squares);
    match rng.random_range(0..12) {
        0 if nested => {
            let [a, b] = [0, 1].map(|_| factor(rng, pieces, squares, false));
            format!("({a} + reserved(1) + {b})")
        }
        1 if nested => {
            let mut pieces = pieces.to_vec();
            let mut squares = squares.to_vec();
            let letters = rng.random_range(1..=2);
            let list = bound(rng, &['R', 'S'][..letters], &mut pieces, &mut squares);
            format!("count({} for {list} if {})", rng.random_range(1..6), condition(rng, &pieces, &squares))
        }
        2 | 3 => {
            let (other, _) = variable(rng, pieces, squares);
            let name = axis_name(rng, false);
            format!("({name}({of}) - {name}({other}))")
        }
        4 if piece => format!("role({of}, queen, pawn..bishop)"),
        _ => format!("{}({of})", axis_name(rng, piece)),
    }
}

fn condition(rng: &mut impl RngExt, pieces: &[char], squares: &[char]) -> String {
    let mut comparison = || {
        let (a, piece_a) = variable(rng, pieces, squares);
        let (b, piece_b) = variable(rng, pieces, squares);
        let name = axis_name(rng, piece_a && piece_b);
        let symbol = ["==", "!=", "<", ">="][rng.random_range(0..4)];
        match rng.random_range(0..3) {
            0 => format!("{name}({a}) {symbol} {name}({b})"),
            1 => format!("abs({name}({a}) - {name}({b})) {symbol} {}", rng.random_range(0..4)),
            _ => format!("{name}({a}) {symbol} {}", rng.random_range(0..6)),
        }
    };
    let [a, b] = [comparison(), comparison()];
    match rng.random_range(0..4) {
        0 => format!("{a} or {b}"),
        1 => format!("not ({a} and {b})"),
        2 => format!("{a} and {b}"),
        _ => a,
    }
}

/// The witnesses of random definitions are valid.
#[test]
fn random_definitions_have_valid_witnesses() {
    let mut sum = StatusCounts::default();
    for set in (0..100).filter_map(random_definition) {
        let start = Instant::now();
        let analysis = Analysis::of(&set, |_, _| {});
        let tally = analysis.tally();
        let elapsed = start.elapsed();
        if tally.unresolved > 0 || elapsed > Duration::from_secs(1) {
            eprintln!("{} {:?}: {tally:?} {elapsed:.1?}", set.name(), set.blocks()[0].spec().orientation.mirror);
        }
        check_witnesses(set.name(), &set, &analysis);
        sum.dead += tally.dead;
        sum.live += tally.live;
        sum.unresolved += tally.unresolved;
    }
    eprintln!("{sum:?}");
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let set = expression(&pairs("diagonal", "northwest"));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let analysis = pool.install(|| Analysis::of(&set, |_, _| {}));
        (0..set.num_features()).map(|index| analysis.witness(index).map(Witness::fen)).collect::<Vec<_>>()
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn losslessness_of_known_and_unusual_sets() {
    let others = unusual_sets().into_iter().map(|set| (set.definition().to_owned(), set, None));
    let all =
        known_sets().into_iter().map(|known| (known.name.to_owned(), known.set, Some(known.lossless))).chain(others);
    for (name, set, expected) in all {
        let start = Instant::now();
        let lossless = Lossless::of(&set);
        eprintln!("{}: {}; {:.1?}", set.name(), lossless.word(), start.elapsed());
        if let Lossless::No(pair) = &lossless {
            let [a, b] = [0, 1].map(|at| board(&pair[at].fen()));
            assert_ne!(a, b, "{name}");
            for pov in Perspective::ALL {
                assert_eq!(set.reference(&a, pov), set.reference(&b, pov), "{name}");
            }
        }
        if let Some(expected) = expected {
            assert_eq!(lossless.word(), expected, "{name}");
        }
    }
}
