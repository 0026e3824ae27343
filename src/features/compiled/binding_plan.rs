//! What the conditions of a block allow: one [`BinderPlan`] per variable, whose conditions are bitboards of states.

use std::collections::HashMap;

use crate::features::spec::{BinderSpec, ConditionSpec, ENEMY_KING, Entity, VariableKind};

use super::binding::Binding;
use super::tables::states;

/// A variable to bind.
#[derive(Debug)]
pub struct BinderPlan {
    pub slot: usize,
    pub kind: VariableKind,
    /// Conditions over this variable and one bound before it.
    pairs: Vec<PairCondition>,
    /// Conditions over more than two variables, of which this one is bound last.
    residual: Vec<ConditionSpec>,
}

/// The states of a variable that a condition allows, by the state of an earlier variable.
#[derive(Debug)]
struct PairCondition {
    earlier: usize,
    earlier_kind: VariableKind,
    /// Index into `masks` by the earlier variable's state.
    class: Vec<u16>,
    masks: Vec<StateMasks>,
}

/// Bitboards of states by code.
pub type StateMasks = [u64; 16];

/// The conditions of a block or count, by the variables that decide them.
pub struct SortedConditions {
    /// Over variables other than the binders'.
    pub outer: Vec<ConditionSpec>,
    /// Over one variable: slot and condition.
    pub by_slot: Vec<(usize, ConditionSpec)>,
    /// Over several variables, at least one of them a binder's.
    several: Vec<ConditionSpec>,
}

impl SortedConditions {
    /// `single` selects the slots whose own conditions go to `by_slot`, to be folded into tables or masks.
    pub fn sort(
        condition: Option<&ConditionSpec>,
        binders: &[BinderSpec],
        single: impl Fn(usize) -> bool,
    ) -> SortedConditions {
        let mut sorted = SortedConditions { outer: Vec::new(), by_slot: Vec::new(), several: Vec::new() };
        for condition in condition.into_iter().flat_map(ConditionSpec::conjuncts).cloned() {
            let slots = condition.slots();
            match slots[..] {
                [slot] if single(slot) => sorted.by_slot.push((slot, condition)),
                _ if slots.iter().all(|slot| binders.iter().all(|binder| binder.slot != *slot)) => {
                    sorted.outer.push(condition);
                }
                _ => sorted.several.push(condition),
            }
        }
        sorted
    }

    /// A plan per binder, with the conditions of which its variable is bound last.
    pub fn plan(&self, binders: &[BinderSpec], kinds: &[VariableKind]) -> Vec<BinderPlan> {
        let plan = |binder: &BinderSpec| {
            let is_last = |condition: &&ConditionSpec| condition.slots().last() == Some(&binder.slot);
            let mut plan =
                BinderPlan { slot: binder.slot, kind: kinds[binder.slot], pairs: Vec::new(), residual: Vec::new() };
            for condition in self.several.iter().filter(is_last) {
                match condition.slots()[..] {
                    [earlier, slot] => plan.pairs.push(PairCondition::of(condition, earlier, slot, kinds)),
                    _ => plan.residual.push(condition.clone()),
                }
            }
            plan
        };
        binders.iter().map(plan).collect()
    }
}

impl PairCondition {
    fn of(condition: &ConditionSpec, earlier: usize, slot: usize, kinds: &[VariableKind]) -> PairCondition {
        let [earlier_reads_piece, reads_piece] = [earlier, slot].map(|slot| condition.reads_piece(slot));
        let mut known: HashMap<StateMasks, u16> = HashMap::new();
        let mut masks = Vec::new();
        let mut class: Vec<u16> = Vec::new();
        for (state, entity) in states(earlier, kinds[earlier]).enumerate() {
            // A condition that reads squares alone is the same for all pieces.
            if state >= 64 && !earlier_reads_piece {
                class.push(class[state & 63]);
                continue;
            }
            let earlier_entity = entity.unwrap_or(Entity::bare(0));
            let mut bits = [0u64; 16];
            for (state, entity) in states(slot, kinds[slot]).enumerate() {
                let code = state / 64;
                if state >= 64 && !reads_piece {
                    bits[code] = bits[0];
                } else if let Some(entity) = entity {
                    let holds = condition.holds(&|of| if of == earlier { earlier_entity } else { entity });
                    bits[code] |= u64::from(holds) << (state & 63);
                }
            }
            let fresh = masks.len() as u16;
            let number = *known.entry(bits).or_insert(fresh);
            if number == fresh {
                masks.push(bits);
            }
            class.push(number);
        }
        PairCondition { earlier, earlier_kind: kinds[earlier], class, masks }
    }

    fn allowed(&self, earlier: Binding) -> &StateMasks {
        let is_king = self.earlier <= ENEMY_KING;
        let state = if is_king { earlier.square as usize } else { earlier.state(self.earlier_kind) };
        &self.masks[usize::from(self.class[state])]
    }
}

impl BinderPlan {
    /// The states that all pair conditions allow; `None` without such conditions. `buffer` holds the conjunction of
    /// several.
    pub fn allowed_by_pairs<'a>(
        &'a self,
        bindings: &[Binding],
        buffer: &'a mut Option<StateMasks>,
    ) -> Option<&'a StateMasks> {
        let (first, others) = self.pairs.split_first()?;
        let first = first.allowed(bindings[first.earlier]);
        if others.is_empty() {
            return Some(first);
        }
        let allowed = buffer.insert(*first);
        for pair in others {
            allowed.iter_mut().zip(pair.allowed(bindings[pair.earlier])).for_each(|(allowed, mask)| *allowed &= mask);
        }
        Some(allowed)
    }

    /// Whether a condition over this and one earlier variable has such an earlier slot.
    pub fn reads_earlier(&self, is_such: impl Fn(usize) -> bool) -> bool {
        self.pairs.iter().any(|pair| is_such(pair.earlier))
    }

    pub fn has_residual(&self) -> bool {
        !self.residual.is_empty()
    }

    /// Whether source and mask alone determine the candidates.
    pub fn is_unconditional(&self) -> bool {
        self.pairs.is_empty() && self.residual.is_empty()
    }
}
