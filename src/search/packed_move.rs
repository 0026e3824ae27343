//! Moves packed into 16 bits, for the transposition table, killers and histories.

use shakmaty::{Chess, Move, Position, Role, Square};

/// A move as origin (6 bits), target (6 bits; the rook's square when castling) and promotion (3 bits; 0 = none).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedMove(u16);

impl PackedMove {
    /// No move, packed as a1a1.
    pub(super) const NONE: PackedMove = PackedMove(0);

    pub(super) fn of(mv: Move) -> PackedMove {
        let from = mv.from().map_or(0, |square| square as u16);
        let promotion = mv.promotion().map_or(0, |role| role as u16 - Role::Pawn as u16);
        PackedMove(from | (mv.to() as u16) << 6 | promotion << 12)
    }

    pub(super) const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The move in a position where it is legal, if it is quiet. Castling moves count as not quiet.
    pub(super) fn quiet_move(self, position: &Chess) -> Option<Move> {
        let (from, to) = (Square::new(u32::from(self.0) & 63), Square::new(u32::from(self.0) >> 6 & 63));
        let board = position.board();
        if !self.is_some() || self.0 >> 12 != 0 || board.role_at(to).is_some() {
            return None;
        }
        let role = board.role_at(from)?;
        let is_en_passant = role == Role::Pawn && from.file() != to.file();
        (!is_en_passant).then_some(Move::Normal { role, from, capture: None, to, promotion: None })
    }

    /// Origin and target as one number below 4,096.
    pub(super) const fn squares(self) -> usize {
        (self.0 & 0xfff) as usize
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
