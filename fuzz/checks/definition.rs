//! Definitions: a compiled set agrees with the reference encoder and with its own definition.

use fsbench::chess::{Board, Perspective};
use fsbench::features::FeatureSet;

/// Boards on which encoders are compared: the start, a middlegame, an ending with promoted pieces, bare kings.
const BOARDS: [&str; 4] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR",
    "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R",
    "3QQ3/1k6/8/3q4/6n1/2K5/p6P/8",
    "8/8/4k3/8/8/2K5/8/8",
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
}
