//! Definitions: a compiled set agrees with the reference encoder, also in its deltas, and with its own definition.

use fsbench::chess::{Board, BoardChange, Perspective, legal_move, parse_fen};
use fsbench::features::{Delta, FeatureSet};
use shakmaty::Position;

/// Boards on which encoders are compared: the start, a middlegame, an ending with promoted pieces, bare kings.
const BOARDS: [&str; 4] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR",
    "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R",
    "3QQ3/1k6/8/3q4/6n1/2K5/p6P/8",
    "8/8/4k3/8/8/2K5/8/8",
];

/// Moves on which deltas are compared: castling of Chess960 in which the king stays, the rook stays, and each lands on
/// the other's square, in standard chess, and a promotion that captures.
const MOVES: [(&str, &str); 6] = [
    ("6kr/pppppppp/8/8/8/8/PPPPPPPP/6KR w Hh - 0 1", "g1h1"),
    ("3r2k1/pppppppp/8/8/8/8/PPPPPPPP/3R1K2 w D - 0 1", "f1d1"),
    ("1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 b GBgb - 0 1", "f8g8"),
    ("2rk3r/pppppppp/8/8/8/8/PPPPPPPP/2RK3R w HChc - 0 1", "d1c1"),
    ("r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R b KQkq - 0 1", "e8c8"),
    ("1n2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7b8q"),
];

/// Sets above this size are compiled but not compared: the reference encoder is slow by design.
const MOST_COMPARED: u32 = 1 << 20;

pub fn definition(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(set) = FeatureSet::from_definition(text) else { return };
    let again = FeatureSet::from_definition(set.definition()).expect("a set's own definition is one");
    assert_eq!(again.identity(), set.identity());
    if set.num_features() > MOST_COMPARED {
        return;
    }
    let mut active = Vec::new();
    for fen in BOARDS {
        let board = Board::from_ascii_board_fen(fen.as_bytes()).expect("a board");
        for pov in Perspective::ALL {
            set.encoder().encode(&board, pov, &mut active);
            active.sort_unstable();
            assert_eq!(active, set.reference(&board, pov), "{fen} {pov:?}");
            assert!(active.iter().all(|index| *index < set.num_features()));
            assert!(active.len() <= set.max_active(), "{} active, at most {}", active.len(), set.max_active());
        }
    }
    let mut delta = Delta::default();
    for (fen, mv) in MOVES {
        let before = parse_fen(fen).expect("a legal position");
        let mv = legal_move(mv, &before).expect("a legal move");
        let after = before.clone().play(mv).expect("a legal move");
        let change = BoardChange::of(mv, before.turn());
        for pov in Perspective::ALL {
            set.encoder().diff(before.board(), &change, after.board(), pov, &mut delta);
            let mut rows = set.reference(before.board(), pov);
            for row in delta.removed.iter() {
                rows.swap_remove(rows.iter().position(|active| active == row).expect("an active row is removed"));
            }
            rows.extend(delta.added.iter().copied());
            rows.sort_unstable();
            assert_eq!(rows, set.reference(after.board(), pov), "{fen} {pov:?}");
        }
    }
}
