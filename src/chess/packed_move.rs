//! Moves packed into 16 bits, for records, binpacks, and the search's tables.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use shakmaty::{Chess, Move, Position, Role, Square};

/// Origin (bits 0–5), target (6–11; the rook's square when castling) and promotion (12–14: 0 none, 1 knight … 4 queen).
/// The kind of move depends on the position.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct PackedMove(u16);

impl PackedMove {
    /// No move, packed as a1a1.
    pub const NONE: PackedMove = PackedMove(0);

    #[must_use]
    pub const fn new(from: Square, to: Square, promotion: Option<Role>) -> PackedMove {
        let promotion = match promotion {
            Some(role) => role as u16 - Role::Pawn as u16,
            None => 0,
        };
        PackedMove(from as u16 | (to as u16) << 6 | promotion << 12)
    }

    #[must_use]
    #[inline]
    pub fn of(mv: Move) -> PackedMove {
        let from = mv.from().map_or(0, u16::from);
        let promotion = mv.promotion().map_or(0, |role| role as u16 - Role::Pawn as u16);
        PackedMove(from | u16::from(mv.to()) << 6 | promotion << 12)
    }

    /// The move of the 16 bits of a record, unchecked; [`PackedMove::in_position`] checks.
    #[must_use]
    pub const fn from_bits(bits: u16) -> PackedMove {
        PackedMove(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    #[must_use]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// Origin and target as one number below 4,096.
    #[must_use]
    pub const fn squares(self) -> usize {
        (self.0 & 0xfff) as usize
    }

    #[must_use]
    pub const fn from(self) -> Square {
        Square::new(self.0 as u32 & 63)
    }

    #[must_use]
    pub const fn to(self) -> Square {
        Square::new((self.0 >> 6) as u32 & 63)
    }

    #[must_use]
    pub const fn promotion(self) -> Option<Role> {
        match self.0 >> 12 {
            1 => Some(Role::Knight),
            2 => Some(Role::Bishop),
            3 => Some(Role::Rook),
            4 => Some(Role::Queen),
            _ => None,
        }
    }

    /// The move in `position`; `None` if it is illegal there.
    #[must_use]
    pub fn in_position(self, position: &Chess) -> Option<Move> {
        let from = self.from();
        let to = self.to();
        let promotion = self.promotion();
        let board = position.board();
        let role = board.role_at(from)?;
        let mv = if role == Role::King && position.us().contains(to) {
            Move::Castle { king: from, rook: to }
        } else if role == Role::Pawn && from.file() != to.file() && !board.occupied().contains(to) {
            Move::EnPassant { from, to }
        } else {
            Move::Normal { role, from, capture: board.role_at(to), to, promotion }
        };
        (PackedMove::of(mv) == self && position.us().contains(from) && position.is_legal(mv)).then_some(mv)
    }

    /// The move in a position where it is legal, if it is quiet. Castling moves count as not quiet.
    #[must_use]
    pub fn quiet_move(self, position: &Chess) -> Option<Move> {
        let from = self.from();
        let to = self.to();
        let board = position.board();
        if !self.is_some() || self.promotion().is_some() || board.role_at(to).is_some() {
            return None;
        }
        let role = board.role_at(from)?;
        let is_en_passant = role == Role::Pawn && from.file() != to.file();
        (!is_en_passant).then_some(Move::Normal { role, from, capture: None, to, promotion: None })
    }
}

impl fmt::Display for PackedMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let promotion = ["", "n", "b", "r", "q"].get(usize::from(self.0 >> 12)).unwrap_or(&"?");
        write!(f, "{}{}{promotion}", self.from(), self.to())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;
    use shakmaty::fen::Fen;

    /// The legal moves of positions with promotions, castling and en passant all pack differently.
    #[test]
    fn packed_moves_are_distinct() {
        for fen in
            ["r3k2r/1P4P1/8/2pP4/8/8/8/R3K2R w KQkq c6 0 1", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"]
        {
            let position: Chess =
                fen.parse::<Fen>().expect("a FEN").into_position(CastlingMode::Standard).expect("legal");
            let mut packed: Vec<u16> = position.legal_moves().iter().map(|mv| PackedMove::of(*mv).0).collect();
            let count = packed.len();
            packed.sort_unstable();
            packed.dedup();
            assert_eq!(packed.len(), count);
            assert!(!packed.contains(&PackedMove::NONE.0));
        }
    }
}
