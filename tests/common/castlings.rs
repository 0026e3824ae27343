//! Castling moves of Chess960: every place of king and rook from which a side can castle.

use shakmaty::{Bitboard, CastlingMode, Chess, Color, File, FromSetup, Move, Position, Role, Setup, Square};

/// Positions with a castling move in each, for either side: kings on b to g, a rook on each other file. Among them are
/// those in which king or rook does not move, or lands on the square that the other leaves. Pieces that are not in the
/// way stand around them.
pub fn every_castling() -> Vec<(Chess, Move)> {
    let mut castlings = Vec::new();
    for turn in Color::ALL {
        for king in &File::ALL[1..7] {
            for rook in File::ALL.iter().filter(|rook| *rook != king) {
                let setup = castling_setup(turn, *king, *rook);
                let position = Chess::from_setup(setup, CastlingMode::Chess960).expect("a legal position");
                let castle = position.legal_moves().into_iter().find(|mv| mv.is_castle()).expect("castling is legal");
                castlings.push((position, castle));
            }
        }
    }
    castlings
}

fn castling_setup(turn: Color, king: File, rook: File) -> Setup {
    let mut setup = Setup::empty();
    setup.turn = turn;
    let home = |file: File| Square::from_coords(file, turn.backrank());
    let mut put = |square: Square, color: Color, role: Role| setup.board.set_piece_at(square, role.of(color));
    put(home(king), turn, Role::King);
    put(home(rook), turn, Role::Rook);
    for (file, role) in
        File::ALL.into_iter().zip([Role::Pawn, Role::Knight, Role::Pawn, Role::Bishop].into_iter().cycle())
    {
        put(Square::from_coords(file, turn.relative_rank(shakmaty::Rank::Second)), turn, role);
        if file != File::E {
            put(Square::from_coords(file, turn.relative_rank(shakmaty::Rank::Seventh)), turn.other(), Role::Pawn);
        }
    }
    put(Square::from_coords(File::E, turn.relative_rank(shakmaty::Rank::Eighth)), turn.other(), Role::King);
    setup.castling_rights = Bitboard::from(home(rook));
    setup
}
