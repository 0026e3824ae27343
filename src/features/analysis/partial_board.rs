//! What is known of a board while variables are being bound: pieces, empty squares, squares a side holds.
//!
//! Every rule here is a necessary condition of legality or of the language's meaning, so a contradiction is a proof.

use shakmaty::attacks;

use crate::chess::{Bitboard, Square, too_close};
use crate::features::spec::Entity;

use super::legal::{self, END_RANKS};

pub const KING: u32 = 5;

/// Bitboards by what is known. Kings count as pieces.
#[derive(Clone, Copy, Default)]
pub struct PartialBoard {
    /// Known pieces by colour, then role.
    pieces: [[u64; 6]; 2],
    /// Held by a side, its role known or not.
    held: [u64; 2],
    /// Not held by a side.
    not_held: [u64; 2],
    empty: u64,
}

impl PartialBoard {
    /// Puts a piece on its square, unless that contradicts what is known.
    #[must_use]
    pub fn place(&mut self, entity: Entity) -> bool {
        let (color, role, bit) = (entity.color as usize, entity.role as usize, 1u64 << entity.square);
        if self.pieces[color][role] & bit != 0 {
            return true;
        }
        let pawn_at_end = entity.role == 0 && END_RANKS & bit != 0;
        if pawn_at_end || self.known() & bit != 0 || !self.hold(entity.color, entity.square) {
            return false;
        }
        if entity.role == KING {
            let other = self.king(1 - entity.color);
            if self.king(entity.color).is_some() || other.is_some_and(|other| too_close(other, entity.square)) {
                return false;
            }
        }
        self.pieces[color][role] |= bit;
        true
    }

    /// Some piece of `color` stands on the square.
    #[must_use]
    pub fn hold(&mut self, color: u32, square: u32) -> bool {
        let bit = 1 << square;
        let [own, other] = [color as usize, 1 - color as usize];
        self.held[own] |= bit;
        (self.empty | self.held[other] | self.not_held[own]) & bit == 0
    }

    /// No piece of `color` stands on the square.
    #[must_use]
    pub fn forbid(&mut self, color: u32, square: u32) -> bool {
        let bit = 1 << square;
        self.not_held[color as usize] |= bit;
        self.empty |= self.not_held[0] & self.not_held[1];
        self.held[color as usize] & bit == 0
    }

    #[must_use]
    pub fn clear(&mut self, squares: u64) -> bool {
        self.empty |= squares;
        self.occupied() & squares == 0
    }

    pub fn king(&self, color: u32) -> Option<u32> {
        let king = self.pieces[color as usize][KING as usize];
        (king != 0).then(|| king.trailing_zeros())
    }

    /// Squares whose piece is known.
    fn known(&self) -> u64 {
        self.pieces.iter().flatten().fold(0, |all, squares| all | squares)
    }

    /// Squares surely held.
    pub fn occupied(&self) -> u64 {
        self.held[0] | self.held[1]
    }

    /// Squares held by a side, its role unknown.
    pub fn unnamed(&self, color: u32) -> u64 {
        self.held[color as usize] & !self.known()
    }

    pub fn empty(&self) -> u64 {
        self.empty
    }

    pub fn surely_held(&self, color: u32, square: u32) -> bool {
        self.held[color as usize] >> square & 1 != 0
    }

    pub fn may_be_empty(&self, square: u32) -> bool {
        self.occupied() >> square & 1 == 0
    }

    pub fn may_be_occupied(&self, square: u32) -> bool {
        self.empty >> square & 1 == 0
    }

    /// Whether the side may have a piece (of whatever role) there.
    pub fn may_be_held(&self, color: u32, square: u32) -> bool {
        let against = self.empty | self.held[1 - color as usize] | self.not_held[color as usize];
        against >> square & 1 == 0
    }

    /// Whether this piece may stand there.
    pub fn may_be(&self, entity: Entity) -> bool {
        let mut after = *self;
        after.place(entity)
    }

    pub fn at(&self, square: u32) -> Option<Entity> {
        let bit = 1 << square;
        let found = |color: u32| (0..6).find(|role| self.pieces[color as usize][*role as usize] & bit != 0);
        (0..2).find_map(|color| found(color).map(|role| Entity { square, role, color }))
    }

    pub fn pieces(&self) -> impl Iterator<Item = Entity> + '_ {
        Bitboard(self.known()).into_iter().filter_map(|square| self.at(square.into()))
    }

    /// Known pieces of a side by role.
    pub fn squares(&self, color: u32) -> &[u64; 6] {
        &self.pieces[color as usize]
    }

    /// Whether no legal position can have all this: too many pieces, or checks that cannot be.
    pub fn impossible(&self) -> bool {
        if !self.pieces.iter().all(legal::standard_material) {
            return true;
        }
        let checks = [0, 1].map(|color| self.king(color).map(|king| (king, self.sure_attackers(king, 1 - color))));
        let checked = |check: &Option<(u32, u64)>| check.is_some_and(|(_, attackers)| attackers != 0);
        checks.iter().all(checked) || checks.iter().flatten().any(|(king, by)| self.never_at_once(*king, *by))
    }

    /// Known pieces of a side that attack the square whatever else stands on the board.
    fn sure_attackers(&self, square: u32, color: u32) -> u64 {
        let at = Square::new(square);
        let [pawns, knights, bishops, rooks, queens, kings] = self.pieces[color as usize];
        let attacked_by = legal::piece(Entity { square, role: 0, color: 1 - color }).color;
        let near = attacks::pawn_attacks(attacked_by, at).0 & pawns
            | attacks::knight_attacks(at).0 & knights
            | attacks::king_attacks(at).0 & kings;
        // What is not surely empty may block.
        let open = Bitboard(!self.empty);
        let far = attacks::rook_attacks(at, open).0 & (rooks | queens)
            | attacks::bishop_attacks(at, open).0 & (bishops | queens);
        near | far
    }

    /// More than two checkers, two steppers, or two in line with the king.
    fn never_at_once(&self, king: u32, attackers: u64) -> bool {
        let steppers = (0..2).fold(0, |all, color: usize| all | self.pieces[color][0] | self.pieces[color][1]);
        let pair = || (Square::new(attackers.trailing_zeros()), Square::new(63 - attackers.leading_zeros()));
        match attackers.count_ones() {
            0 | 1 => false,
            2 => {
                let (a, b) = pair();
                (attackers & steppers).count_ones() > 1 || attacks::aligned(a, Square::new(king), b)
            }
            _ => true,
        }
    }
}
