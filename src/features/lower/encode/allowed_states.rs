//! The states of a variable that some perspective allows.

use crate::features::code::{BoardTime, Builder, Register};
use crate::features::lower::context::Context;
use crate::features::spec::VariableKind;

/// States by code on the board as it stands.
pub struct AllowedStates {
    masks: [u64; 16],
    pub is_exact: bool,
}

impl AllowedStates {
    /// The states that any of the perspectives allows for any orientation. `is_allowed` says so for an oriented state.
    pub fn of(
        context: &Context<'_>,
        slot: usize,
        povs: [bool; 2],
        is_allowed: &dyn Fn(usize) -> bool,
    ) -> AllowedStates {
        let kind = context.spec.variables[slot];
        let states = if kind == VariableKind::Square { 64 } else { 1024 };
        let oriented: Vec<bool> = (0..states).map(is_allowed).collect();
        let mut seen: Vec<[u64; 16]> = Vec::new();
        for pov in (0..2).filter(|pov| povs[*pov]) {
            for turn in context.turns(pov, kind) {
                let mut masks = [0; 16];
                for state in (0..states).filter(|state| oriented[state ^ turn]) {
                    masks[state >> 6] |= 1 << (state & 63);
                }
                seen.push(masks);
            }
        }
        let mut masks = [0; 16];
        for one in &seen {
            masks.iter_mut().zip(one).for_each(|(mask, more)| *mask |= more);
        }
        AllowedStates { masks, is_exact: seen.iter().all(|one| *one == masks) }
    }

    /// Bit by code.
    pub fn codes(&self) -> u16 {
        (0..16).filter(|code| self.masks[*code] != 0).fold(0, |codes, code| codes | 1 << code)
    }

    /// The pieces of a board, or the squares, that are allowed; `None` if all are.
    pub fn candidates(&self, builder: &mut Builder, time: BoardTime, kind: VariableKind) -> Option<Register> {
        if kind == VariableKind::Square {
            return (self.masks[0] != !0).then(|| builder.constant(self.masks[0]));
        }
        if (0..16).all(|code| code & 7 > 5 || self.masks[code] == !0) {
            return None;
        }
        let mut all = builder.constant(0);
        for (code, mask) in self.masks.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            let mut pieces = builder.by_code(time, code as u64);
            if *mask != !0 {
                pieces = builder.and(pieces, *mask);
            }
            all = builder.or(all, pieces);
        }
        Some(all)
    }
}
