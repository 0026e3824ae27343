//! What a legal position is here: a board and a side to move that pass shakmaty's strict validation as a standard
//! chess position. Castling rights and en passant only ever add conditions, so witnesses have neither.

use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, EnPassantMode, Setup};

use crate::chess::{Board, Chess, Color, Piece, Role, Square};
use crate::features::spec::Entity;

/// A legal position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    board: Board,
    turn: Color,
}

impl Witness {
    /// The board with a side to move that makes it legal, White where both do.
    pub fn of(board: Board) -> Option<Witness> {
        let legal = |turn: &Color| setup(&board, *turn).position::<Chess>(CastlingMode::Standard).is_ok();
        let turn = Color::ALL.into_iter().find(legal)?;
        Some(Witness { board, turn })
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    #[must_use]
    pub fn fen(&self) -> String {
        let position = setup(&self.board, self.turn).position::<Chess>(CastlingMode::Standard);
        Fen::from_position(&position.expect("`of` checked it"), EnPassantMode::Legal).to_string()
    }
}

fn setup(board: &Board, turn: Color) -> Setup {
    Setup { board: board.clone(), turn, ..Setup::empty() }
}

/// Pieces a side may have beyond its king: eight pawns, any of them promoted.
pub const FLEXIBLE: u32 = 8;
/// Pieces that need no promotion, by role; of the two bishops one stands on each colour.
pub const UNPROMOTED: [u32; 5] = [0, 2, 2, 2, 1];

/// Squares no pawn stands on.
pub const END_RANKS: u64 = 0xff00_0000_0000_00ff;
const LIGHT: u64 = 0x55aa_55aa_55aa_55aa;

/// Whether a side may have these pieces (squares by role): pawns and promoted pieces are at most eight.
pub fn standard_material(squares: &[u64; 6]) -> bool {
    let beyond = |squares: u64, free: u32| squares.count_ones().saturating_sub(free);
    let [pawns, knights, bishops, rooks, queens, _] = *squares;
    let promoted = beyond(knights, 2)
        + beyond(bishops & LIGHT, 1)
        + beyond(bishops & !LIGHT, 1)
        + beyond(rooks, 2)
        + beyond(queens, 1);
    pawns.count_ones() + promoted <= FLEXIBLE
}

/// Analysis looks through White's eyes at boards on which the own king stands where the mirror rule wants it: oriented
/// squares are then plain squares and own pieces White's. Nothing is lost: strict validation does not change when
/// the board is turned or mirrored and the colours exchanged with it.
pub fn piece(entity: Entity) -> Piece {
    let color = Color::from_white(entity.color == 0);
    Piece { color, role: Role::ALL[entity.role as usize] }
}

pub fn entity(square: Square, piece: Piece) -> Entity {
    Entity { square: square.into(), role: piece.role as u32 - 1, color: u32::from(piece.color.is_black()) }
}
