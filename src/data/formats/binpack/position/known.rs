//! Positions whose legality is known: nothing is looked at twice.

use shakmaty::{Color, File, Rank, Role, Setup, Square};

use super::{Position, bit_of};
use crate::chess::{PackedBoard, PackedBoardError};
use crate::units::Ply;

impl Position {
    /// The position of a setup that is known to be legal; of another one a position of no use, but no panic.
    ///
    /// # Errors
    /// When more than 32 pieces stand on the board.
    pub fn known(setup: &Setup, ply: Ply) -> Result<Position, PackedBoardError> {
        let packed = PackedBoard::pack(&setup.board)?;
        let mut squares = [0; 64];
        for (square, code) in packed.pieces() {
            squares[square as usize] = code.index() as u8;
        }
        let right = |bit: u8, rook: Square| u8::from(setup.castling_rights.contains(rook)) << bit;
        let mut position = Position {
            colors: [setup.board.white().0, setup.board.black().0],
            roles: Role::ALL.map(|role| setup.board.by_role(role).0),
            codes: packed.codes(),
            squares,
            turn: setup.turn,
            castling: right(0, Square::H1) | right(1, Square::A1) | right(2, Square::H8) | right(3, Square::A8),
            ep: 0,
            rule50: setup.halfmoves,
            ply: ply.0,
        };
        if let Some(over) = setup.ep_square {
            position.offer_en_passant(over as u32, over as u32 ^ 8);
        }
        Ok(position)
    }

    /// As [`Position::known`], from a record's fields.
    pub fn from_board(
        board: &PackedBoard,
        turn: Color,
        castling: u8,
        ep_file: Option<File>,
        rule50: u8,
        ply: Ply,
    ) -> Position {
        let mut position = Position {
            colors: [0; 2],
            roles: [0; 6],
            codes: board.codes(),
            squares: [0; 64],
            turn,
            castling,
            ep: ep_file.map_or(0, |file| bit_of(Square::from_coords(file, turn.fold_wb(Rank::Sixth, Rank::Third)))),
            rule50: u32::from(rule50),
            ply: ply.0,
        };
        for (at, code) in board.pieces() {
            let code = code.index();
            position.colors[code >> 3 & 1] |= bit_of(at);
            if let Some(role) = position.roles.get_mut(code & 7) {
                *role |= bit_of(at);
            }
            position.squares[at as usize] = code as u8;
        }
        position
    }
}
