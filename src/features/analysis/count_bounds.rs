//! Memoised feasible values of a count, given only the outer variables that it reads. They exclude most indices before
//! the board is examined.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::features::spec::{BlockSpec, CountSpec, ENEMY_KING, Entity, VariableKind};

use super::budget::AnalysisSteps;
use super::count_values::CountValues;
use super::counts;
use super::domain::Domain;
use super::partial_board::PartialBoard;

/// The feasible values of a count by the values of its outer variables.
pub struct CountBounds<'a> {
    pub count: &'a CountSpec,
    /// Slots of the outer variables.
    pub slots: Vec<usize>,
    /// Whether the limit suffices for all values of the outer variables.
    affordable: bool,
    values: Mutex<HashMap<Vec<Entity>, Arc<CountValues>>>,
}

impl<'a> CountBounds<'a> {
    /// `limit`: steps for all values of the outer variables together.
    pub fn new(block: &BlockSpec, count: &'a CountSpec, domains: &[Domain], limit: AnalysisSteps) -> CountBounds<'a> {
        let slots = count.outer_slots();
        debug_assert!(slots.iter().all(|slot| *slot < block.variables.len()));
        let keys =
            slots.iter().map(|slot| AnalysisSteps::from(domains[*slot].len())).fold(1, AnalysisSteps::saturating_mul);
        let affordable = keys.saturating_mul(counts::steps(count)) <= limit;
        CountBounds { count, slots, affordable, values: Mutex::default() }
    }

    /// Steps taken so far.
    pub fn spent(&self) -> AnalysisSteps {
        let memoised = self.values.lock().unwrap_or_else(PoisonError::into_inner).len();
        memoised as AnalysisSteps * counts::steps(self.count)
    }

    /// Whether the count can have this value for the outer variables in `entities`.
    pub fn admits(&self, block: &BlockSpec, pieces: &Domain, entities: &[Entity], value: u32) -> bool {
        if !self.affordable {
            return true;
        }
        let key: Vec<Entity> = self.slots.iter().map(|slot| entities[*slot]).collect();
        let memo = || self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let memoised = memo().get(&key).cloned();
        let values = memoised.unwrap_or_else(|| {
            let values = Arc::new(self.feasible_values(block, pieces, entities));
            memo().insert(key, Arc::clone(&values));
            values
        });
        counts::admits(&values, value)
    }

    fn feasible_values(&self, block: &BlockSpec, pieces: &Domain, entities: &[Entity]) -> CountValues {
        let mut partial = PartialBoard::default();
        let is_piece = |slot: &usize| *slot <= ENEMY_KING || block.variables[*slot] == VariableKind::Piece;
        let consistent = self.slots.iter().filter(|slot| is_piece(slot)).all(|slot| partial.place(entities[*slot]));
        if consistent {
            counts::possible_values(self.count, pieces, &partial, entities, &mut counts::steps(self.count))
        } else {
            CountValues::none(self.count.max.min(1))
        }
    }
}
