//! The states of a variable that share an entry of its table. A delta asks them whether another binding yields the same
//! row.

use std::collections::HashMap;

use super::tables::{Mask, NONE, mask};

/// A table's states by entry.
#[derive(Clone, Debug, Default)]
pub struct RowClasses {
    /// Class number by state; 0 where there is no entry.
    class: Vec<u16>,
    /// The states of each class.
    masks: Vec<Mask>,
}

impl RowClasses {
    pub fn of(table: &[u32]) -> RowClasses {
        let mut known: HashMap<u32, u16> = HashMap::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        let mut class = vec![0; table.len()];
        for (state, entry) in table.iter().enumerate().filter(|(_, entry)| **entry != NONE) {
            let fresh = members.len() as u16;
            let number = *known.entry(*entry).or_insert(fresh);
            if number == fresh {
                members.push(vec![NONE; table.len()]);
            }
            class[state] = number;
            members[usize::from(number)][state] = *entry;
        }
        RowClasses { class, masks: members.iter().map(|states| mask(states)).collect() }
    }

    /// The states with the same entry as `state`, itself included.
    pub fn equivalents(&self, state: usize) -> &Mask {
        &self.masks[usize::from(self.class[state])]
    }

    /// Size in table entries.
    pub fn entries(&self) -> usize {
        self.class.len() / 2 + self.masks.iter().map(|mask| 4 * mask.len()).sum::<usize>()
    }
}
