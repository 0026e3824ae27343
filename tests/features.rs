//! The encoder against the reference encoder over random games: active features, deltas, refreshes and contexts, for
//! definitions that together use every strategy of `features::compiled`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::HashMap;

use common::castlings::every_castling;
use common::{start_of_each_kind, without};
use fsbench::chess::{Board, BoardChange, ByPerspective, Chess, Move, PackedBoard, Perspective, PieceBoard};
use fsbench::features::{Delta, DeltaState, EncodeScratch, FeatureSet, RowBuffer, available_names};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::Position;

/// Definitions for the parts of the language that shipped sets do not use.
const DEFINITIONS: [&str; 36] = [
    "square(K) * role(P) * color(P) * square(P) for P in pieces",
    "square(K) * (role(P, pawn..queen) * color(P) + role(P, king)) * square(P) for P in pieces",
    "square(K) * (reserved(1) + role(P, pawn..queen) * color(P) * square(P)) for P in pieces",
    "square(K) + file(E) * rank(K)",
    "(file(K) - file(E)) * (rank(K) - rank(E)) * role(P) * color(P) for P in pieces if P_IS_NEAR",
    "rank(P) * role(P) * color(P) * role(Q) * color(Q) for P in pieces, Q in next(P, east)",
    "antidiagonal(P) * role(P) * role(Q) * color(Q) for P in pieces, Q in next(P, northeast)",
    "diagonal(P) * role(P) * role(Q) * color(Q) for P in pieces, Q in next(P, northwest)",
    "file(P) * role(Q) * color(Q) for P in pieces, Q in next(P, north)",
    "square(M) * role(P) * color(P) for P in pieces, M in moves(P)",
    "square(A) * color(P) for P in pieces, A in attacks(P) if role(P) == pawn or role(P) == knight",
    "role(P) * color(P) * role(Q) * color(Q) * square(Q) for P in pieces, Q in targets(P)",
    "count(8 for P in pieces, M in moves(P) if role(P) == pawn and color(P) == own)",
    "square(K) * square(E) * count(8 for P in pieces, A in attacks(P) if role(P) == pawn)",
    "square(P) * count(3 for A in attacks(P) if rank(A) > rank(P)) for P in pieces if role(P) != pawn",
    "square(P) * square(Q) for P in pieces, Q in pieces if square(P) < square(Q) and color(P) == color(Q)",
    "rank(P, 2..7) * file(P, h, a..c) * color(P, their) for P in pieces if role(P) == pawn",
    "square(M) for M in moves(K)",
    "square(A) * file(E) for A in attacks(E) if not (abs(file(A) - file(K)) <= 1)",
    "role(P) * color(P) for P in pieces if file(P) >= file(K) and rank(P) - rank(E) != -1",
    "piece + compact + king-piece",
    "(square(P) + file(P) * role(P)) * color(P) for P in pieces",
    "square(P) for P in pieces if color(P) == own and (role(P) == rook or role(P) == king)",
    "square(P) * role(P) * color(P) * count(3 for A in pieces, M in attacks(A) if square(M) == square(P) and color(A) \
     != color(P)) * count(2 for A in pieces, T in targets(A) if square(T) == square(P) and color(A) == color(P)) \
     for P in pieces",
    "square(P) * count(4 for M in moves(P)) * count(3 for T in targets(P) if color(T) != color(P)) for P in pieces",
    "square(P) * count(7 for Q in pieces if file(Q) == file(P) and role(Q) == pawn) for P in pieces if role(P) == rook",
    "square(P) * count(3 for A in pieces, N in next(A, north) if file(N) == file(P) and role(N) != king) for P in \
     pieces",
    "file(P) * count(3 for A in pieces, M in moves(A) if square(M) - square(P) == 8) for P in pieces",
    "color(T) * role(T) * reach(P, T, queen) for P in pieces, T in targets(P) if color(P) == own",
    "reach(P, T, pawn) for P in pieces, T in attacks(P)",
    "file(K) * (reach(P, Q, rook) + reserved(3) + color(Q) * reach(P, Q, pawn)) for P in pieces, Q in pieces",
    "pair(square(P), square(Q)) for P in pieces, Q in pieces if role(P) == pawn and role(Q) == pawn",
    "square(P) * color(P) * square(Q) * color(Q) for P in pieces, Q in pieces if role(P) == pawn and role(Q) == knight",
    "square(P) * square(Q) for P in pieces, Q in pieces if role(P) == rook and role(Q) == bishop and square(P) < \
     square(Q)",
    "color(P) * pair(role(P) * file(P), role(Q) * file(Q)) for P in pieces, Q in next(P, north)",
    "(pair(file(K), file(P)) * reach(P, K, queen) + pair(rank(K), rank(E))) for P in pieces",
];

fn all_sets() -> Vec<FeatureSet> {
    let shipped = available_names();
    assert!(shipped.len() >= 7, "{shipped:?}");
    let others = DEFINITIONS.iter().map(|text| text.replace("P_IS_NEAR", "abs(file(P) - file(K)) < 3"));
    let oriented = DEFINITIONS.iter().enumerate().flat_map(|(at, text)| {
        let features = text.replace("P_IS_NEAR", "abs(file(P) - file(K)) < 3");
        let black = ["flip", "rotate"][at % 2];
        let mirror = ["king-left", "king-right"][at / 2 % 2];
        ["set", "bag"].map(|multiplicity| {
            format!(
                "features = \"{features}\"\nblack = \"{black}\"\nmirror = \"{mirror}\"\n\
                 multiplicity = \"{multiplicity}\"\n"
            )
        })
    });
    let resolved = shipped.into_iter().chain(others).map(|request| FeatureSet::resolve(&request));
    let parsed = oriented.map(|text| {
        let carried = FeatureSet::from_definition(&text)?;
        FeatureSet::from_definition(carried.definition())
    });
    resolved.chain(parsed).map(|set| set.unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Calls `visit` with every position and move of random games, also of Chess960, which prefer captures, promotions and
/// castling now and then, so that they reach endings.
fn random_games(name: &str, games: u64, mut visit: impl FnMut(u64, &Chess, Move, &Chess)) {
    for game in 0..games {
        let mut rng = Seed(5).stream(name, game);
        let mut position = start_of_each_kind(game);
        for _ in 0..160 {
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            let sharp: Vec<Move> =
                moves.iter().copied().filter(|mv| mv.is_capture() || mv.is_promotion() || mv.is_castle()).collect();
            let pool = if !sharp.is_empty() && rng.random_bool(0.3) { &sharp[..] } else { &moves[..] };
            let mv = pool[rng.random_range(0..pool.len())];
            let after = position.clone().play(mv).unwrap();
            visit(game, &position, mv, &after);
            position = after;
        }
    }
}

#[test]
fn encodings_equal_the_reference() {
    let sets = all_sets();
    let mut out = Vec::new();
    let mut packed = ByPerspective::default();
    random_games("encode", 30, |_, position, _, _| {
        for set in &sets {
            for pov in Perspective::ALL {
                let expected = set.reference(position.board(), pov);
                set.encoder().encode(position.board(), pov, &mut out);
                out.sort_unstable();
                assert_eq!(out, expected, "{} {pov:?} {:?}", set.definition(), position.board());
                assert!(expected.iter().all(|index| *index < set.num_features()));
                assert!(expected.len() <= set.max_active(), "{}", set.name());
                set.encoder().encode_packed(&PackedBoard::pack(position.board()).unwrap(), &mut packed);
                packed[pov].sort_unstable();
                assert_eq!(packed[pov], expected, "packed {}", set.name());
                // A batch puts the side to move first and appends behind earlier rows.
                let mut sides = [RowBuffer::default(), RowBuffer::default()];
                sides[0].extend(&[7, 7]);
                let board = PackedBoard::pack(position.board()).unwrap();
                set.encoder().append_batch([(&board, pov)].into_iter(), &mut sides, &mut EncodeScratch::default());
                let mut appended = sides[0].rows().to_vec();
                appended[2..].sort_unstable();
                assert_eq!(appended, [&[7, 7], &expected[..]].concat(), "appended {}", set.name());
                let mut other = sides[1].rows().to_vec();
                other.sort_unstable();
                assert_eq!(other, set.reference(position.board(), pov.other()), "appended {}", set.name());
            }
        }
    });
}

/// Checks the delta of a move, made in one call and in another, against the reference.
fn check_delta(set: &FeatureSet, position: &Chess, mv: Move, after: &Chess, delta: &mut Delta) {
    let change = BoardChange::of(mv, position.turn());
    for pov in Perspective::ALL {
        set.encoder().diff(position.board(), &change, after.board(), pov, delta);
        let before = set.reference(position.board(), pov);
        let now = set.reference(after.board(), pov);
        assert_eq!(delta.added, without(&now, &before), "{} {pov:?} {mv:?}", set.definition());
        assert_eq!(delta.removed, without(&before, &now), "{} {pov:?} {mv:?}", set.definition());
        let blocks = 0..set.blocks().len();
        let changed = |block| {
            set.encoder().context(block, position.board(), pov) != set.encoder().context(block, after.board(), pov)
        };
        assert_eq!(delta.refresh, blocks.into_iter().any(changed), "{}", set.name());
    }
}

#[test]
fn deltas_are_the_difference_of_the_encodings() {
    let sets = all_sets();
    let mut delta = Delta::default();
    let mut kinds: HashMap<&str, u32> = HashMap::new();
    random_games("delta", 20, |_, position, mv, after| {
        let kind = match mv {
            Move::Castle { .. } => "castling",
            Move::EnPassant { .. } => "en passant",
            _ if mv.is_promotion() => "promotion",
            _ => "other",
        };
        *kinds.entry(kind).or_default() += 1;
        for set in &sets {
            check_delta(set, position, mv, after, &mut delta);
        }
    });
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

/// All castlings of Chess960, also those in which king or rook does not move, or lands on the other's square.
#[test]
fn deltas_of_castling_in_chess960() {
    let sets = all_sets();
    let mut delta = Delta::default();
    for (position, mv) in every_castling() {
        let after = position.clone().play(mv).unwrap();
        for set in &sets {
            check_delta(set, &position, mv, &after, &mut delta);
        }
    }
}

/// As a refresh cache does: this board against the last one of the same contexts, moves or whole games apart.
#[test]
fn differences_between_boards_of_one_context() {
    let sets = all_sets();
    let mut known: HashMap<(usize, usize, Vec<Option<u32>>), Board> = HashMap::new();
    let mut delta = Delta::default();
    let mut compared = vec![0; sets.len()];
    let mut ply = 0;
    random_games("between", 8, |_, position, _, _| {
        ply += 1;
        if ply % 3 != 0 {
            return;
        }
        let now = position.board();
        for (number, set) in sets.iter().enumerate() {
            let blocks: Vec<usize> = (0..set.blocks().len()).collect();
            for pov in Perspective::ALL {
                let contexts = blocks.iter().map(|block| set.encoder().context(*block, now, pov)).collect();
                let Some(before) = known.insert((number, pov.index(), contexts), now.clone()) else { continue };
                compared[number] += 1;
                set.encoder().diff_boards(&PieceBoard::of(&before), &PieceBoard::of(now), pov, &mut delta);
                delta.added.sort_unstable();
                delta.removed.sort_unstable();
                let [before, now] = [&before, now].map(|board| set.reference(board, pov));
                assert_eq!(delta.added, without(&now, &before), "{} {pov:?}", set.definition());
                assert_eq!(delta.removed, without(&before, &now), "{} {pov:?}", set.definition());
            }
        }
    });
    assert!(compared.iter().all(|count| *count > 50), "{compared:?}");
}

/// What an encoder keeps of a board goes from move to move, also past moves whose change is not looked for.
#[test]
fn states_go_from_move_to_move() {
    for set in all_sets() {
        let [mut old, mut new] = <[DeltaState; 2]>::default();
        let mut deltas = ByPerspective::<Delta>::default();
        let mut expected = Delta::default();
        let mut last = None;
        random_games("states", 2, |game, before, mv, after| {
            if last.replace(game) != Some(game) {
                old.clear();
            }
            let change = &BoardChange::of(mv, before.turn());
            let boards = [before.board(), after.board()].map(PieceBoard::of);
            set.encoder().diff_or_refresh([&boards[0], &boards[1]], change, [&mut old, &mut new], &mut deltas);
            for pov in Perspective::ALL {
                set.encoder().diff(before.board(), change, after.board(), pov, &mut expected);
                let found = &mut deltas[pov];
                assert_eq!(found.refresh, expected.refresh);
                if !found.refresh {
                    found.added.sort_unstable();
                    found.removed.sort_unstable();
                    assert_eq!(*found, expected, "{} {pov:?} {change:?}", set.definition());
                }
            }
            std::mem::swap(&mut old, &mut new);
        });
    }
}

/// White sees a position as Black sees it with colours exchanged and the board turned.
#[test]
fn both_perspectives_agree() {
    let sets = all_sets();
    random_games("views", 6, |_, position, _, _| {
        for set in &sets {
            let flipped = mirrored(position.board(), set);
            assert_eq!(
                set.reference(position.board(), Perspective::White),
                set.reference(&flipped, Perspective::Black)
            );
            assert_eq!(
                set.reference(position.board(), Perspective::Black),
                set.reference(&flipped, Perspective::White)
            );
        }
    });
}

fn mirrored(board: &Board, set: &FeatureSet) -> Board {
    let mut turned = board.clone();
    match set.blocks()[0].spec().orientation.black {
        fsbench::chess::BlackOrientation::Flip => turned.flip_vertical(),
        fsbench::chess::BlackOrientation::Rotate => turned.rotate_180(),
    }
    turned.swap_colors();
    turned
}

#[test]
fn sizes() {
    let check = |request: &str, expected: u32| {
        let set = FeatureSet::resolve(request).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(set.num_features(), expected, "{request}");
    };
    check("piece", 768);
    check("piece.toml", 768);
    check("compact", 192);
    check("king-piece", 40_960);
    check("piece-move", 4_864);
    check("relative-king-h", 1_200);
    check("relative-king-v", 1_200);
    check("relative-king-hv", 2_250);
    check("square(K) * (role(P,pawn..queen)*color(P) + role(P,king))*square(P) for P in pieces", 45_056);
    check("square(K) * (reserved(1) + role(P)*color(P)*square(P)) for P in pieces", 49_216);
    check("count(15 for P in pieces, M in moves(P) if role(P) == knight and color(P) == own)", 16);
}

#[test]
fn contexts() {
    let check = |text: &str, expected: usize| {
        let set = FeatureSet::from_definition(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(set.contexts(), expected, "{text}");
    };
    let shipped = |name: &str| FeatureSet::resolve(name).unwrap().contexts();
    assert_eq!(shipped("piece"), 1);
    assert_eq!(shipped("compact"), 1);
    assert_eq!(shipped("piece-move"), 1);
    assert_eq!(shipped("king-piece"), 64);
    assert_eq!(shipped("relative-king-h"), 8);
    assert_eq!(shipped("relative-king-v"), 8);
    assert_eq!(shipped("relative-king-hv"), 64);
    // In a mirrored set, a block that reads files has one context per half, and a block that does not has one in all.
    check("features = \"square(P) * role(P) * color(P) for P in pieces\"\nmirror = \"king-right\"", 2);
    check("features = \"rank(P) * role(P) * color(P) for P in pieces\"\nmirror = \"king-right\"", 1);
    check("features = \"square(K) * square(P) for P in pieces\"\nmirror = \"king-left\"", 64);
    check("features = \"rank(K) * rank(P) for P in pieces\"\nmirror = \"king-left\"", 8);
    // Pairs of kings that are not adjacent: 64 · 63 − 420.
    check("features = \"square(K) * square(E)\"", 3_612);
    check("features = \"file(K) * role(P) for P in pieces if file(K) < 2\"", 3);
}

#[test]
fn identity_depends_on_the_meaning_alone() {
    let identity = |text: &str| FeatureSet::resolve(text).unwrap().identity().to_string();
    let piece = identity("piece");
    assert_eq!(piece, identity("square(P)*role(P)*color(P) for P in pieces"));
    assert_eq!(piece, identity("square(Q) * role(Q) * color(Q) for Q in pieces # the same"));
    assert_ne!(piece, identity("role(P) * square(P) * color(P) for P in pieces"));
    let bag = "features = \"square(P)*role(P)*color(P) for P in pieces\"\nmultiplicity = \"bag\"";
    assert_ne!(piece, FeatureSet::from_definition(bag).unwrap().identity().to_string());
    for set in all_sets() {
        let again = FeatureSet::from_definition(set.definition()).unwrap();
        assert_eq!(again.identity(), set.identity(), "{}", set.definition());
        assert_eq!(again.num_features(), set.num_features());
    }
}

/// A program of more than 65,536 registers.
#[test]
fn sets_of_many_blocks_are_encoded() {
    let block = "(file(P) + rank(P)) * (role(P) + color(P)) * (file(Q) + rank(Q)) * (role(Q) + color(Q)) for P in pieces, Q in \
                 next(P, north)";
    let set = FeatureSet::resolve(&[block; 75].join(" + ")).unwrap();
    let mut delta = Delta::default();
    let mut out = Vec::new();
    let mut positions = 0;
    random_games("many blocks", 1, |_, position, mv, after| {
        positions += 1;
        if positions > 3 {
            return;
        }
        for pov in Perspective::ALL {
            set.encoder().encode(position.board(), pov, &mut out);
            out.sort_unstable();
            assert_eq!(out, set.reference(position.board(), pov));
        }
        check_delta(&set, position, mv, after, &mut delta);
    });
}

/// Names of sets are taken as they are written, and variables beyond the alphabet stay apart.
#[test]
fn names_and_variables_do_not_run_together() {
    let folder = tempfile::tempdir().unwrap();
    for (name, axis) in [("net-007", "rank(P)"), ("net-7", "square(P)"), ("count-files", "file(P)")] {
        std::fs::write(folder.path().join(format!("{name}.toml")), format!("features = \"{axis} for P in pieces\""))
            .unwrap();
    }
    let features = |sum: &str| {
        let path = folder.path().join("sum.toml");
        std::fs::write(&path, format!("features = \"{sum}\"")).unwrap();
        FeatureSet::resolve(path.to_str().unwrap()).unwrap().num_features()
    };
    assert_eq!([features("net-007 + net-7"), features("net-7 + count-files")], [8 + 64, 64 + 8]);
    let counts = ["count(1 for A in pieces if square(A) == a1)"; 24].join(" * ");
    let last = |letter: &str| {
        let count = format!("count(1 for R in pieces if file({letter}) == a and role(R) == rook)");
        let text = format!("{counts} * {count} for P in pieces, Q in next(P, east), X in next(Q, east)");
        FeatureSet::resolve(&text).unwrap().identity().to_string()
    };
    assert_ne!(last("R"), last("X"));
}
