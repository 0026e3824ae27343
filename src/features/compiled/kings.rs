//! The kings' part of a block's rows.

use crate::chess::{Perspective, Square};
use crate::features::spec::{ENEMY_KING, Multiplicity, OWN_KING};

use super::CompiledBlock;
use super::binding::Binding;
use super::tables::{NONE, TableTerm, plus};

/// The squares of the kings on the oriented board, and the mask that oriented it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Kings {
    pub own: u32,
    pub enemy: u32,
    pub mask: u32,
}

impl CompiledBlock {
    /// The kings of a perspective, given their squares on the board as it stands.
    #[inline(always)]
    pub fn kings(&self, own: u32, enemy: u32, pov: Perspective) -> Kings {
        let mask = self.orientation.mask(Square::new(own), pov);
        Kings { own: own ^ mask, enemy: enemy ^ mask, mask }
    }

    /// The part of a term's rows that the kings determine, its base included. [`NONE`] where conditions over the kings
    /// fail.
    #[inline(always)]
    pub(super) fn base(&self, term: &TableTerm, kings: &Kings) -> u32 {
        match term.king_independent_base {
            Some(base) => base,
            None => self.base_from_kings(term, kings),
        }
    }

    #[inline(always)]
    fn base_from_kings(&self, term: &TableTerm, kings: &Kings) -> u32 {
        if self.king_conditions.is_empty() || self.king_conditions_hold(kings.own, kings.enemy) {
            term.king_sum(kings.own, kings.enemy)
        } else {
            NONE
        }
    }

    fn king_conditions_hold(&self, own: u32, enemy: u32) -> bool {
        let kings = Kings { own, enemy, mask: 0 }.bindings();
        self.king_conditions.iter().all(|condition| condition.holds(&|slot: usize| kings[slot].entity()))
    }

    /// Room for every variable's binding; the kings are bound.
    pub(super) fn bindings(&self, kings: &Kings) -> Vec<Binding> {
        let mut bindings = vec![Binding::default(); self.variables];
        bindings[..2].copy_from_slice(&kings.bindings());
        bindings
    }

    /// Whether several bindings may yield one row that counts once.
    pub fn shares_rows(&self) -> bool {
        self.multiplicity == Multiplicity::Set && !self.injective
    }
}

impl Kings {
    /// The bindings of the first two variables.
    pub fn bindings(&self) -> [Binding; 2] {
        [Binding { code: 5, square: self.own }, Binding { code: 13, square: self.enemy }]
    }
}

impl TableTerm {
    /// Base plus both kings' entries.
    #[inline(always)]
    pub fn king_sum(&self, own: u32, enemy: u32) -> u32 {
        let entries = plus(self.tables[OWN_KING][own as usize], self.tables[ENEMY_KING][enemy as usize]);
        plus(self.base, entries)
    }
}
