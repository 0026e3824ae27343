//! Games from odd positions: promoted armies, bare kings, lone pawns before promotion, pinned en passant captures. The
//! search always answers with a legal move, a legal line and a score within bounds.

mod common;

use fsbench::alpha_beta::{Game, Iteration, Limits, MAX_PLY, Score, Searcher};
use fsbench::engine::{BackEnd, Model};
use fsbench::features::FeatureSet;
use fsbench::net::{Scheme, quantise};
use fsbench::units::Seed;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use shakmaty::{Board, CastlingMode, Chess, Color, EnPassantMode, Move, Piece, Position, Role, Setup, Square};

/// Longest game, in plies.
const LONGEST: usize = 120;

/// The pieces from which a position is drawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Theme {
    /// Pieces as many as promotions allow, nine queens a side at most.
    PromotedArmies,
    NineQueensEach,
    /// One side has the king alone.
    BareKing,
    /// Pawns one step before promotion.
    LonePawns,
    /// A pawn that can capture en passant stands between its king and a rook or queen.
    EnPassantPin,
}

const THEMES: [Theme; 5] =
    [Theme::PromotedArmies, Theme::NineQueensEach, Theme::BareKing, Theme::LonePawns, Theme::EnPassantPin];

fn is_free(board: &Board, square: Square) -> bool {
    board.piece_at(square).is_none()
}

fn any_square(rng: &mut ChaCha8Rng) -> Square {
    Square::new(rng.random_range(0..64))
}

/// Puts a piece on a free square; pawns on ranks 2 to 7.
fn put(board: &mut Board, rng: &mut ChaCha8Rng, color: Color, role: Role) {
    for _ in 0..200 {
        let square = any_square(rng);
        let is_allowed = role != Role::Pawn || (8..56).contains(&(square as u32));
        if is_allowed && is_free(board, square) {
            board.set_piece_at(square, Piece { color, role });
            return;
        }
    }
}

fn put_promoted_army(board: &mut Board, rng: &mut ChaCha8Rng, color: Color) {
    let promoted = rng.random_range(0..=8);
    let pawns = rng.random_range(0..=8 - promoted);
    let pieces = [Role::Queen, Role::Rook, Role::Rook, Role::Bishop, Role::Bishop, Role::Knight, Role::Knight];
    for role in pieces {
        if rng.random_bool(0.8) {
            put(board, rng, color, role);
        }
    }
    for _ in 0..promoted {
        let role = [Role::Queen, Role::Rook, Role::Bishop, Role::Knight][rng.random_range(0..4)];
        put(board, rng, color, role);
    }
    (0..pawns).for_each(|_| put(board, rng, color, Role::Pawn));
}

/// A setup of a theme; it may be illegal.
fn draw_setup(theme: Theme, rng: &mut ChaCha8Rng) -> Setup {
    let mut setup = Setup::empty();
    setup.turn = if rng.random() { Color::White } else { Color::Black };
    let board = &mut setup.board;
    let turn = setup.turn;
    if theme == Theme::EnPassantPin {
        // The king, the pinned pawn, the pawn that just moved and the pinning piece on one rank.
        let rank = turn.fold_wb(4, 3);
        let file = rng.random_range(1..5);
        let at = |file: u32, rank: u32| Square::new(rank * 8 + file);
        let behind = at(file + 1, rank).offset(turn.fold_wb(8, -8)).expect("on the board");
        board.set_piece_at(at(rng.random_range(0..file), rank), Role::King.of(turn));
        board.set_piece_at(at(file, rank), Role::Pawn.of(turn));
        board.set_piece_at(at(file + 1, rank), Role::Pawn.of(turn.other()));
        let pinning = if rng.random() { Role::Rook } else { Role::Queen };
        board.set_piece_at(at(rng.random_range(file + 2..8), rank), pinning.of(turn.other()));
        setup.ep_square = Some(behind);
        (0..rng.random_range(0..4)).for_each(|_| put(board, rng, turn, Role::Rook));
    } else {
        put(board, rng, turn, Role::King);
    }
    put(board, rng, turn.other(), Role::King);
    match theme {
        Theme::PromotedArmies => Color::ALL.into_iter().for_each(|color| put_promoted_army(board, rng, color)),
        Theme::NineQueensEach => {
            for color in Color::ALL {
                (0..9).for_each(|_| put(board, rng, color, Role::Queen));
            }
        }
        Theme::BareKing => {
            let color = if rng.random() { turn } else { turn.other() };
            put_promoted_army(board, rng, color);
        }
        Theme::LonePawns => {
            for color in Color::ALL {
                for _ in 0..rng.random_range(0..4) {
                    let square = Square::new(color.fold_wb(48, 8) + rng.random_range(0..8));
                    if is_free(board, square) {
                        board.set_piece_at(square, Role::Pawn.of(color));
                    }
                }
            }
        }
        Theme::EnPassantPin => {}
    }
    setup
}

/// The first legal position among setups of a theme.
fn draw_position(theme: Theme, rng: &mut ChaCha8Rng) -> Chess {
    let is_en_passant_kept =
        |position: &Chess| theme != Theme::EnPassantPin || position.ep_square(EnPassantMode::Always).is_some();
    (0..10_000)
        .filter_map(|_| draw_setup(theme, rng).position(CastlingMode::Standard).ok())
        .find(is_en_passant_kept)
        .expect("every theme has legal positions")
}

fn check_line(game: &Game, line: &[Move]) {
    let mut position = game.position().clone();
    for mv in line {
        assert!(position.is_legal(*mv), "{mv:?} of {line:?} in {:?}", game.position());
        position.play_unchecked(*mv);
    }
}

fn check_score(score: Score) {
    match score {
        Score::Cp(score) => assert!(score.abs() < 31_000, "{score}"),
        Score::Mate(moves) => assert!(moves.unsigned_abs() as usize <= MAX_PLY, "{moves}"),
    }
}

/// Plays a game from an odd position; returns its length in plies.
fn play(searcher: &mut Searcher<'_>, number: u64) -> usize {
    let mut rng = Seed(26).stream("odd positions", number);
    let mut game = Game::new(draw_position(THEMES[number as usize % THEMES.len()], &mut rng));
    searcher.clear();
    for ply in 0..LONGEST {
        let limits = Limits { nodes: Some(rng.random_range(1..80)), ..Limits::default() };
        let observe = |iteration: &Iteration| {
            check_line(&game, &iteration.line);
            check_score(iteration.score);
        };
        let result = searcher.search(&game, &limits, observe);
        check_score(result.score);
        let Some(best) = result.best else {
            assert!(game.position().legal_moves().is_empty(), "{:?}", game.position());
            return ply;
        };
        assert!(game.position().is_legal(best), "{best:?} in {:?}", game.position());
        game.play(best);
        if game.is_draw() {
            return ply;
        }
    }
    LONGEST
}

fn play_games(numbers: std::ops::Range<u64>) {
    let count = numbers.end - numbers.start;
    for (name, l1) in [("piece", 16), ("half-ka-v2-hm", 16)] {
        let set = FeatureSet::resolve(name).expect("a set");
        let net =
            quantise(&common::random_net(set.num_features(), l1, &[8], 3), &Scheme::stockfish()).expect("quantised");
        let model = Model::new(&net);
        let mut searcher = Searcher::new(&set, &model, BackEnd::best(), 1).expect("a network of the set");
        let half = numbers.clone().filter(|number| number % 2 == u64::from(name == "piece"));
        let plies: usize = half.map(|number| play(&mut searcher, number)).sum();
        assert!(plies as u64 > 5 * count, "{name}: {plies} plies");
    }
}

#[test]
fn odd_positions_are_played() {
    play_games(0..100);
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_odd_positions_are_played() {
    play_games(0..10_000);
}
