//! Castling of Chess960, out of the way of the usual moves.

use shakmaty::{CastlingSide, Color, attacks};

use super::{KING, Position, ROOK, castling_rooks, square};

impl Position {
    /// As [`Position::castling_rook`].
    #[cold]
    #[inline(never)]
    pub(super) fn chess960_rook(&self, king: u32, king_side: bool) -> u32 {
        let right = 2 * usize::from(king >= 56) + usize::from(!king_side);
        castling_rooks(self.chess960_rights)[right] as u32
    }

    /// Castles with the rook on `rook`; false if something is in the way or the king would leave, cross or reach an
    /// attacked square.
    #[cold]
    #[inline(never)]
    pub(super) fn castle_chess960(&mut self, king: u32, rook: u32) -> bool {
        let us = usize::from(self.turn.is_black());
        let side = CastlingSide::from_king_side(king < rook);
        let king_to = side.king_to(self.turn);
        let rook_to = side.rook_to(self.turn);
        let king_path = attacks::between(square(king), king_to).with(square(king));
        let path = king_path.with(king_to) | attacks::between(square(rook), rook_to).with(rook_to);
        let movers = 1 << king | 1 << rook;
        let occupied = self.occupied();
        if path.0 & occupied & !movers != 0 || king_path.into_iter().any(|at| self.attacked(at as u32, us, occupied)) {
            return false;
        }
        for (role, from, to) in [(KING, king, king_to), (ROOK, rook, rook_to)] {
            self.roles[role] = self.roles[role] & !(1 << from) | 1 << to as u32;
            self.squares[to as usize] = (us << 3 | role) as u8;
        }
        self.colors[us] = self.colors[us] & !movers | 1 << king_to as u32 | 1 << rook_to as u32;
        self.keep_chess960_rights(!(3 << (2 * us)));
        self.ep = 0;
        self.rule50 = self.rule50.saturating_add(1);
        self.end_turn();
        !self.in_check(us)
    }

    /// Takes away the rights that are lost when a piece has moved between two squares.
    #[cold]
    #[inline(never)]
    pub(super) fn lose_chess960_rights(&mut self, from: u32, to: u32) {
        let mut kept = !0;
        for (right, rook) in castling_rooks(self.chess960_rights).into_iter().enumerate() {
            if [from, to].contains(&(rook as u32)) {
                kept &= !(1 << right);
            }
        }
        if self.roles[KING] >> to & 1 != 0 {
            kept &= !(3 << (2 * u8::from(self.turn.is_black())));
        }
        self.keep_chess960_rights(kept);
    }

    /// Keeps only rights among `kept`, which has the bits of `castling`.
    fn keep_chess960_rights(&mut self, kept: u8) {
        self.castling &= kept;
        let mut rights = 0;
        let mut is_standard = true;
        for (right, rook) in castling_rooks(self.chess960_rights).into_iter().enumerate() {
            if self.castling >> right & 1 != 0 {
                let color = Color::from_black(right >= 2);
                let king = (self.roles[KING] & self.colors[usize::from(color.is_black())]).trailing_zeros();
                let corner = if right % 2 == 0 { 7 } else { 0 };
                let file = rook.file() as u16;
                is_standard &= king & 7 == 4 && file == corner;
                rights |= (8 | file) << (4 * right);
            }
        }
        self.chess960_rights = if is_standard { 0 } else { rights };
    }
}
