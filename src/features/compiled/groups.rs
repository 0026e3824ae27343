//! Which states of a variable share an entry of its table: what tells whether another binding yields the same row.

use std::collections::HashMap;

use super::tables::{Mask, NONE, mask};

/// A table's states by entry.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// By state; 0 where there is no entry.
    group: Vec<u16>,
    masks: Vec<Mask>,
}

impl Groups {
    pub fn of(table: &[u32]) -> Groups {
        let mut known: HashMap<u32, u16> = HashMap::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        let mut group = vec![0; table.len()];
        for (state, entry) in table.iter().enumerate().filter(|(_, entry)| **entry != NONE) {
            let fresh = members.len() as u16;
            let number = *known.entry(*entry).or_insert(fresh);
            if number == fresh {
                members.push(vec![NONE; table.len()]);
            }
            group[state] = number;
            members[usize::from(number)][state] = *entry;
        }
        Groups { group, masks: members.iter().map(|states| mask(states)).collect() }
    }

    /// The states that share `state`'s entry.
    pub fn fellows(&self, state: usize) -> &Mask {
        &self.masks[usize::from(self.group[state])]
    }

    /// Size in table entries.
    pub fn entries(&self) -> usize {
        self.group.len() / 2 + self.masks.iter().map(|mask| 4 * mask.len()).sum::<usize>()
    }
}
