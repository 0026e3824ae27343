//! Sets of values of a variable, as bitboards by colour and role.

use crate::features::spec::{ENEMY_KING, Entity, OWN_KING, VariableKind};

use super::legal::END_RANKS;
use super::partial_board::KING;

/// Squares by colour · 6 + role. Bare squares use code 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain([u64; 12]);

impl Domain {
    /// All values of a slot; `half`: the squares on which the own king may stand.
    pub fn of_slot(slot: usize, kind: VariableKind, half: u64) -> Domain {
        let mut domain = Domain::default();
        match (slot, kind) {
            (OWN_KING, _) => domain.0[5] = half,
            (ENEMY_KING, _) => domain.0[11] = !0,
            (_, VariableKind::Square) => domain.0[0] = !0,
            (_, VariableKind::Piece) => {
                domain = Domain([!0; 12]);
                domain.0[0] = !END_RANKS;
                domain.0[6] = !END_RANKS;
                domain.0[5] = half;
            }
        }
        domain
    }

    pub fn entities(&self) -> impl Iterator<Item = Entity> + '_ {
        let square = |code: u32, squares: u64| Squares(squares).map(move |square| decoded(code, square));
        self.0.iter().zip(0..).flat_map(move |(squares, code)| square(code, *squares))
    }

    /// The values on one square.
    pub fn on_square(&self, square: u32) -> impl Iterator<Item = Entity> + '_ {
        let codes = self.0.iter().zip(0..).filter(move |(squares, _)| **squares >> square & 1 != 0);
        codes.map(move |(_, code)| decoded(code, square))
    }

    pub fn insert(&mut self, entity: Entity) {
        self.0[code(entity)] |= 1 << entity.square;
    }

    pub fn contains(&self, entity: Entity) -> bool {
        self.0[code(entity)] >> entity.square & 1 != 0
    }

    #[must_use]
    pub fn and(&self, other: &Domain) -> Domain {
        Domain(std::array::from_fn(|code| self.0[code] & other.0[code]))
    }

    #[must_use]
    pub fn or(&self, other: &Domain) -> Domain {
        Domain(std::array::from_fn(|code| self.0[code] | other.0[code]))
    }

    #[must_use]
    pub fn filtered(&self, mut keep: impl FnMut(Entity) -> bool) -> Domain {
        let mut filtered = Domain::default();
        self.entities().filter(|entity| keep(*entity)).for_each(|entity| filtered.insert(entity));
        filtered
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|squares| *squares == 0)
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|squares| squares.count_ones()).sum()
    }

    /// The squares of the kings of this colour.
    pub fn king_squares(&self, color: u32) -> u64 {
        self.0[(color * 6 + KING) as usize]
    }
}

const fn decoded(code: u32, square: u32) -> Entity {
    Entity { square, role: code % 6, color: code / 6 }
}

const fn code(entity: Entity) -> usize {
    (entity.color * 6 + entity.role) as usize
}

/// Iterates over the set bits in ascending order.
pub struct Squares(pub u64);

impl Iterator for Squares {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let square = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(square)
    }
}
