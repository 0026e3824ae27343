//! What a count may be at all, given only the outer variables it reads: computed once for each, it rules out most
//! indices before the board is looked at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::features::spec::{BlockSpec, CountSpec, ENEMY_KING, Entity, VariableKind};

use super::budget::Steps;
use super::count_values::CountValues;
use super::counts::{self, CountEnumerator};
use super::domain::Domain;
use super::partial_board::PartialBoard;

/// A count with the outer variables it reads.
pub struct CountBounds<'a> {
    pub count: &'a CountSpec,
    /// Outer slots read.
    pub slots: Vec<usize>,
    /// Whether all their values together may be looked at.
    worthwhile: bool,
    known: Mutex<HashMap<Vec<Entity>, Arc<CountValues>>>,
}

impl<'a> CountBounds<'a> {
    /// `limit`: what all values of the outer variables together may take to be looked at.
    pub fn new(block: &BlockSpec, count: &'a CountSpec, domains: &[Domain], limit: Steps) -> CountBounds<'a> {
        let slots = count.outer_slots();
        debug_assert!(slots.iter().all(|slot| *slot < block.variables.len()));
        let keys = slots.iter().map(|slot| Steps::from(domains[*slot].len())).fold(1, Steps::saturating_mul);
        let worthwhile = keys.saturating_mul(counts::steps(count)) <= limit;
        CountBounds { count, slots, worthwhile, known: Mutex::default() }
    }

    /// What has been looked at so far took.
    pub fn spent(&self) -> Steps {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).len();
        known as Steps * counts::steps(self.count)
    }

    /// Whether the count may have this value for the outer variables' values in `entities`.
    pub fn admits(&self, block: &BlockSpec, pieces: &Domain, entities: &[Entity], value: u32) -> bool {
        if !self.worthwhile {
            return true;
        }
        let key: Vec<Entity> = self.slots.iter().map(|slot| entities[*slot]).collect();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&key).cloned();
        let values = found.unwrap_or_else(|| {
            let values = Arc::new(self.values(block, pieces, entities));
            known().insert(key, Arc::clone(&values));
            values
        });
        counts::admits(&values, value)
    }

    fn values(&self, block: &BlockSpec, pieces: &Domain, entities: &[Entity]) -> CountValues {
        let mut partial = PartialBoard::default();
        let piece = |slot: &usize| *slot <= ENEMY_KING || block.variables[*slot] == VariableKind::Piece;
        let placed = self.slots.iter().filter(|slot| piece(slot)).all(|slot| partial.place(entities[*slot]));
        if placed {
            CountEnumerator::possible(self.count, pieces, &partial, entities, &mut counts::steps(self.count))
        } else {
            CountValues::none(self.count.max.min(1))
        }
    }
}
