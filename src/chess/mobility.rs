//! The squares that a piece could move to.

use shakmaty::{Bitboard, Board, Piece, Rank, Role, Square, attacks};

/// The squares that a piece could move to if it were its turn, ignoring checks and pins: attacked squares without a
/// piece of its own side; for pawns, pushes and captures of the pieces on the board. No castling, no en passant.
#[must_use]
pub fn mobility(board: &Board, square: Square, piece: Piece) -> Bitboard {
    let color = piece.color;
    let occupied = board.occupied();
    let attacked = attacks::attacks(square, piece, occupied);
    if piece.role != Role::Pawn {
        return attacked & !board.by_color(color);
    }
    let (forward, third) = color.fold_wb((8, Rank::Third), (-8, Rank::Sixth));
    let push = |from: Square| from.offset(forward).filter(|to| !occupied.contains(*to));
    let once = push(square);
    let twice = once.filter(|to| to.rank() == third).and_then(push);
    let pushes = once.into_iter().chain(twice).fold(Bitboard::EMPTY, Bitboard::with);
    attacked & board.by_color(color.other()) | pushes
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::fen::Fen;

    #[test]
    fn moves_on_several_boards() {
        let check = |fen: &str, square: Square, expected: u64| {
            let board = fen.parse::<Fen>().expect("FEN").into_setup().board;
            let piece = board.piece_at(square).expect("a piece");
            assert_eq!(mobility(&board, square, piece).count() as u64, expected, "{fen} {square}");
        };
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1";
        check(start, Square::E2, 2);
        check(start, Square::E7, 2);
        check(start, Square::G1, 2);
        check(start, Square::A1, 0);
        check("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", Square::E4, 2);
        check("4k3/8/8/8/4p3/4P3/8/4K3 w - - 0 1", Square::E3, 0);
        check("4k3/8/8/4p3/8/4P3/4Q3/4K3 b - - 0 1", Square::E2, 16);
    }
}
