//! Compares the shipped definitions with Stockfish's numbering of features, written from its published formulas.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use fsbench::chess::{Board, Chess, Color, Perspective, Role, Square};
use fsbench::features::FeatureSet;
use shakmaty::Position;

/// The square of the perspective's king, and every piece as (role from pawn = 0, whether it is the perspective's own,
/// square).
fn king_and_pieces(board: &Board, pov: Perspective) -> (u32, Vec<(u32, bool, u32)>) {
    let own = if pov == Perspective::White { Color::White } else { Color::Black };
    let pieces = Square::ALL.into_iter().filter_map(|square| Some((square, board.piece_at(square)?)));
    let pieces = pieces.map(|(square, piece)| (piece.role as u32 - 1, piece.color == own, u32::from(square)));
    (u32::from(board.king_of(own).unwrap()), pieces.collect())
}

/// The plane of a piece; the order is own pawn, opponent's pawn, own knight, …
fn plane(role: u32, own: bool) -> u32 {
    2 * role + u32::from(!own)
}

const KING: u32 = Role::King as u32 - 1;

/// Stockfish 12 (half_kp): 641 indices per king square, of which the first is unused; Black's board is rotated.
fn half_kp(board: &Board, pov: Perspective) -> Vec<u32> {
    let orientation = if pov == Perspective::White { 0 } else { 63 };
    let (king, pieces) = king_and_pieces(board, pov);
    let pieces = pieces.into_iter().filter(|(role, ..)| *role != KING);
    pieces
        .map(|(role, own, square)| 641 * (king ^ orientation) + 1 + 64 * plane(role, own) + (square ^ orientation))
        .collect()
}

/// Stockfish 14 (half_ka_v2): 11 planes per king square, both kings in the last plane; Black's board is flipped.
fn half_ka_v2(board: &Board, pov: Perspective) -> Vec<u32> {
    let orientation = if pov == Perspective::White { 0 } else { 56 };
    let (king, pieces) = king_and_pieces(board, pov);
    let plane = |role, own| if role == KING { 10 } else { plane(role, own) };
    pieces
        .into_iter()
        .map(|(role, own, square)| 704 * (king ^ orientation) + 64 * plane(role, own) + (square ^ orientation))
        .collect()
}

/// Stockfish 15 (half_ka_v2_hm): as half_ka_v2, with 32 king buckets, and mirrored when the king is on files a to d.
fn half_ka_v2_hm(board: &Board, pov: Perspective) -> Vec<u32> {
    let flip = if pov == Perspective::White { 0 } else { 56 };
    let (king, pieces) = king_and_pieces(board, pov);
    let orientation = flip ^ if king % 8 < 4 { 7 } else { 0 };
    let oriented = king ^ orientation;
    let bucket = 4 * (7 - oriented / 8) + (7 - oriented % 8);
    let plane = |role, own| if role == KING { 10 } else { plane(role, own) };
    pieces
        .into_iter()
        .map(|(role, own, square)| 704 * bucket + 64 * plane(role, own) + (square ^ orientation))
        .collect()
}

type Formula = fn(&Board, Perspective) -> Vec<u32>;

#[test]
fn features_are_numbered_as_stockfish_does() {
    let formulas: [(&str, Formula); 3] =
        [("half-kp", half_kp), ("half-ka-v2", half_ka_v2), ("half-ka-v2-hm", half_ka_v2_hm)];
    for (name, formula) in formulas {
        let set = FeatureSet::resolve(name).unwrap();
        for game in 0..30 {
            let mut position = Chess::default();
            for mv in common::random_game(game, 120) {
                position.play_unchecked(mv);
                for pov in Perspective::ALL {
                    let mut expected = formula(position.board(), pov);
                    expected.sort_unstable();
                    assert_eq!(set.reference(position.board(), pov), expected, "{name} {pov:?} {:?}", position.board());
                }
            }
        }
    }
}
