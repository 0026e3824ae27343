//! Partial knowledge of a board: pieces, empty squares, and squares occupied by a side.
//!
//! Every rule here is a necessary condition of legality or of the language, so a contradiction is a proof.

use shakmaty::attacks;

use crate::chess::{Bitboard, Square, too_close};
use crate::features::spec::Entity;

use super::legal::{self, END_RANKS};

pub const KING: u32 = 5;

/// Bitboards of the known facts.
#[derive(Clone, Copy, Default)]
pub struct PartialBoard {
    /// Known pieces by colour and role, kings included.
    pieces: [[u64; 6]; 2],
    /// By colour: squares with a piece of known or unknown role.
    occupied: [u64; 2],
    /// By colour: squares without such a piece.
    unoccupied: [u64; 2],
    empty: u64,
}

impl PartialBoard {
    /// Adds a piece; false on a contradiction.
    #[must_use]
    pub fn place(&mut self, entity: Entity) -> bool {
        let color = entity.color as usize;
        let role = entity.role as usize;
        let bit = 1u64 << entity.square;
        if self.pieces[color][role] & bit != 0 {
            return true;
        }
        let pawn_at_end = entity.role == 0 && END_RANKS & bit != 0;
        if pawn_at_end || self.known() & bit != 0 || !self.occupy(entity.color, entity.square) {
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

    /// Adds that some piece of `color` stands on the square; false on a contradiction.
    #[must_use]
    pub fn occupy(&mut self, color: u32, square: u32) -> bool {
        let bit = 1 << square;
        let [own, other] = [color as usize, 1 - color as usize];
        self.occupied[own] |= bit;
        (self.empty | self.occupied[other] | self.unoccupied[own]) & bit == 0
    }

    /// Adds that no piece of `color` stands on the square; false on a contradiction.
    #[must_use]
    pub fn exclude(&mut self, color: u32, square: u32) -> bool {
        let bit = 1 << square;
        self.unoccupied[color as usize] |= bit;
        self.empty |= self.unoccupied[0] & self.unoccupied[1];
        self.occupied[color as usize] & bit == 0
    }

    /// Adds that the squares are empty; false on a contradiction.
    #[must_use]
    pub fn clear(&mut self, squares: u64) -> bool {
        self.empty |= squares;
        self.occupied() & squares == 0
    }

    pub fn king(&self, color: u32) -> Option<u32> {
        let king = self.pieces[color as usize][KING as usize];
        (king != 0).then(|| king.trailing_zeros())
    }

    /// Squares of known pieces.
    fn known(&self) -> u64 {
        self.pieces.iter().flatten().fold(0, |all, squares| all | squares)
    }

    /// Squares that are surely occupied.
    pub fn occupied(&self) -> u64 {
        self.occupied[0] | self.occupied[1]
    }

    /// Squares occupied by a side with a piece of unknown role.
    pub fn unknown_role(&self, color: u32) -> u64 {
        self.occupied[color as usize] & !self.known()
    }

    /// Squares that are surely empty.
    pub fn empty(&self) -> u64 {
        self.empty
    }

    pub fn surely_occupied_by(&self, color: u32, square: u32) -> bool {
        self.occupied[color as usize] >> square & 1 != 0
    }

    pub fn may_be_empty(&self, square: u32) -> bool {
        self.occupied() >> square & 1 == 0
    }

    pub fn may_be_occupied(&self, square: u32) -> bool {
        self.empty >> square & 1 == 0
    }

    /// Whether a piece of `color` may stand there.
    pub fn may_be_occupied_by(&self, color: u32, square: u32) -> bool {
        let excluded = self.empty | self.occupied[1 - color as usize] | self.unoccupied[color as usize];
        excluded >> square & 1 == 0
    }

    /// Whether this piece may stand on its square.
    pub fn may_have(&self, entity: Entity) -> bool {
        let mut after = *self;
        after.place(entity)
    }

    /// The known piece on a square.
    pub fn piece_at(&self, square: u32) -> Option<Entity> {
        let bit = 1 << square;
        let role = |color: u32| (0..6).find(|role| self.pieces[color as usize][*role as usize] & bit != 0);
        (0..2).find_map(|color| role(color).map(|role| Entity { square, role, color }))
    }

    pub fn pieces(&self) -> impl Iterator<Item = Entity> + '_ {
        Bitboard(self.known()).into_iter().filter_map(|square| self.piece_at(square.into()))
    }

    /// Squares of a side's known pieces by role.
    pub fn squares_by_role(&self, color: u32) -> &[u64; 6] {
        &self.pieces[color as usize]
    }

    /// Whether no legal position has these facts, because of too many pieces or impossible checks.
    pub fn impossible(&self) -> bool {
        if !self.pieces.iter().all(legal::standard_material) {
            return true;
        }
        let checks = [0, 1].map(|color| self.king(color).map(|king| (king, self.sure_attackers(king, 1 - color))));
        let in_check = |check: &Option<(u32, u64)>| check.is_some_and(|(_, attackers)| attackers != 0);
        checks.iter().all(in_check) || checks.iter().flatten().any(|(king, by)| self.impossible_check(*king, *by))
    }

    /// Known pieces of a side that attack the square, wherever unknown pieces stand.
    fn sure_attackers(&self, square: u32, color: u32) -> u64 {
        let at = Square::new(square);
        let [pawns, knights, bishops, rooks, queens, kings] = self.pieces[color as usize];
        let attacked_by = legal::piece(Entity { square, role: 0, color: 1 - color }).color;
        let leapers = attacks::pawn_attacks(attacked_by, at).0 & pawns
            | attacks::knight_attacks(at).0 & knights
            | attacks::king_attacks(at).0 & kings;
        // A square that is not surely empty may block a slider.
        let blockers = Bitboard(!self.empty);
        let sliders = attacks::rook_attacks(at, blockers).0 & (rooks | queens)
            | attacks::bishop_attacks(at, blockers).0 & (bishops | queens);
        leapers | sliders
    }

    /// Whether the checkers are more than two, two pawns or knights, or two in line with the king.
    fn impossible_check(&self, king: u32, attackers: u64) -> bool {
        let pawns_and_knights = (0..2).fold(0, |all, color: usize| all | self.pieces[color][0] | self.pieces[color][1]);
        let pair = || (Square::new(attackers.trailing_zeros()), Square::new(63 - attackers.leading_zeros()));
        match attackers.count_ones() {
            0 | 1 => false,
            2 => {
                let (a, b) = pair();
                (attackers & pawns_and_knights).count_ones() > 1 || attacks::aligned(a, Square::new(king), b)
            }
            _ => true,
        }
    }
}
