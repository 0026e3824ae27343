//! Counts in conditions against counts made directly on the board.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use fsbench::chess::{Board, Chess, Color, Perspective, Role, Square};
use fsbench::features::FeatureSet;
use fsbench::features::analysis::{Analysis, Status};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::Position;

/// Passed pawns of both sides: no enemy pawn ahead of them on their own or an adjacent file.
const PASSED: &str = "square(P) * color(P) for P in pieces if role(P) == pawn and \
    count(1 for Q in pieces if role(Q) == pawn and color(Q) != color(P) and abs(file(Q) - file(P)) <= 1 \
    and (color(P) == own and rank(Q) > rank(P) or color(P) == their and rank(Q) < rank(P))) == 0";

/// Rooks on files without pawns.
const OPEN_FILES: &str = "square(R) * color(R) for R in pieces if role(R) == rook and \
    count(1 for P in pieces if role(P) == pawn and file(P) == file(R)) == 0";

fn set(text: &str) -> FeatureSet {
    FeatureSet::resolve(text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    FeatureSet::resolve(text).expect_err(text).to_string()
}

/// Positions of random games.
fn boards(games: u64) -> Vec<Board> {
    let mut boards = Vec::new();
    for game in 0..games {
        let mut rng = Seed(5).stream("counts", game);
        let mut position = Chess::default();
        for _ in 0..200 {
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            position.play_unchecked(moves[rng.random_range(0..moves.len())]);
            boards.push(position.board().clone());
        }
    }
    boards
}

/// Asserts that White's active features of `text` on many boards equal the features of `directly`; returns their
/// number.
fn compare(text: &str, directly: impl Fn(&Board) -> Vec<u32>) -> usize {
    let set = set(text);
    let mut found = 0;
    for board in boards(20) {
        let mut expected = directly(&board);
        expected.sort_unstable();
        let mut active = Vec::new();
        set.encoder().encode(&board, Perspective::White, &mut active);
        active.sort_unstable();
        assert_eq!(active, expected, "{board:?}");
        assert_eq!(set.reference(&board, Perspective::White), expected, "{board:?}");
        found += expected.len();
    }
    found
}

fn pawns(board: &Board) -> Vec<(Square, Color)> {
    let pawns = board.by_role(Role::Pawn).into_iter();
    pawns.map(|square| (square, board.color_at(square).unwrap())).collect()
}

fn index(square: Square, color: Color) -> u32 {
    2 * u32::from(square) + u32::from(color.is_black())
}

#[test]
fn passed_pawns() {
    let passed = |board: &Board| {
        let free = |(square, color): &(Square, Color)| {
            !pawns(board).into_iter().any(|(other, of)| {
                let ahead = if color.is_white() { other.rank() > square.rank() } else { other.rank() < square.rank() };
                of != *color && ahead && (i32::from(other.file()) - i32::from(square.file())).abs() <= 1
            })
        };
        pawns(board).into_iter().filter(free).map(|(square, color)| index(square, color)).collect()
    };
    assert!(compare(PASSED, passed) > 300);
}

#[test]
fn rooks_on_open_files() {
    let open = |board: &Board| {
        let closed = |rook: Square| pawns(board).into_iter().any(|(pawn, _)| pawn.file() == rook.file());
        let rooks = board.by_role(Role::Rook).into_iter().filter(|rook| !closed(*rook));
        rooks.map(|rook| index(rook, board.color_at(rook).unwrap())).collect()
    };
    assert!(compare(OPEN_FILES, open) > 300);
}

/// A count is clamped to its maximum, and may stand in sums and in other counts.
#[test]
fn clamped_summed_and_nested() {
    let queens = |max: u32, is: u32| format!("reserved(1) + file(K) if count({max} for Q in pieces) == {is}");
    let start = Board::default();
    let king = |text: &str| set(text).reference(&start, Perspective::White);
    assert_eq!(king(&queens(40, 32)), [5]);
    assert_eq!(king(&queens(5, 5)), [5]);
    assert_eq!(king(&queens(5, 32)), [] as [u32; 0]);
    assert_eq!(king("file(K) if (count(9 for P in pieces if role(P) == knight) + 1) == 5"), [4]);
    assert_eq!(king("file(K) if -(count(9 for M in moves(K))) == 0"), [4]);
    // All four knights attack one piece, one fewer than there are kings.
    let nested = "file(K) if count(9 for N in pieces if role(N) == knight and \
        count(9 for T in targets(N)) == (count(2 for A in pieces if role(A) == king) - 1)) == 4";
    assert_eq!(king(nested), [4]);
    assert_eq!(king("file(K) if count(0 for P in pieces) == 0 and not (count(1 for P in pieces) == 0)"), [4]);
}

#[test]
fn outer_variables_are_read_and_never_rebound() {
    let message = refused("square(P) for P in pieces if count(2 for P in pieces) == 1");
    assert!(message.contains("`P` is already bound"), "{message}");
    let message = refused("square(P) for P in pieces if count(2 for Q in pieces if file(R) == 1) == 1");
    assert!(message.contains("`R` is not bound here"), "{message}");
    let message = refused("square(Q) for P in pieces if count(2 for Q in pieces) == 1");
    assert!(message.contains("`Q` is not bound here"), "{message}");
    let message = refused("square(P) for P in pieces if count(2 for Q in pieces)");
    assert!(message.contains("expected a comparison, found a number"), "{message}");
    let message = refused("square(P) for P in pieces if count(2) == 1");
    assert!(message.contains("expected `for`, found `)`"), "{message}");
}

/// Identity depends on the count, not on the letters.
#[test]
fn letters_do_not_matter() {
    let text = |p: char, q: char, max: u32| {
        format!("square({p}) for {p} in pieces if count({max} for {q} in attacks({p}) if rank({q}) == 3) > 1")
    };
    let identity = |text: String| set(&text).identity().clone();
    assert_eq!(identity(text('P', 'Q', 3)), identity(text('A', 'B', 3)));
    assert_ne!(identity(text('P', 'Q', 3)), identity(text('P', 'Q', 2)));
}

/// A value that a count can never have makes features dead; other values do not.
#[test]
fn features_are_dead_where_a_count_is_impossible() {
    let statuses = |text: &str| {
        let set = set(text);
        let analysis = Analysis::of(&set, |_, _| {});
        (0..set.num_features()).map(|index| analysis.status(index)).collect::<Vec<_>>()
    };
    let all = |text: &str, status: Status| assert!(statuses(text).iter().all(|of| *of == status), "{text}");
    all("file(K) if count(3 for P in pieces) > 3", Status::Dead);
    all("file(K) if count(3 for P in pieces) == 1", Status::Dead);
    all("file(K) if count(8 for P in pieces if role(P) == king) != 2", Status::Dead);
    all("file(K) if count(9 for M in moves(K)) == 9", Status::Dead);
    assert!(!statuses("file(K) if count(9 for M in moves(K)) == 3").contains(&Status::Dead));
    all("file(K) if count(30 for P in pieces if role(P) == queen) == 2", Status::Live);
    // A passed pawn can stand on all ranks but the first and the last, a rook on an open file on all squares.
    let passed = statuses(PASSED);
    for (index, status) in passed.iter().enumerate() {
        let end = index / 2 < 8 || index / 2 >= 56;
        assert_eq!(*status, if end { Status::Dead } else { Status::Live }, "{index}");
    }
    all(OPEN_FILES, Status::Live);
}
