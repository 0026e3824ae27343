//! How bindings are found: one [`BinderPlan`] per variable, whose conditions are bitboards of the states they allow,
//! and one [`CountPlan`] per count.

use std::collections::HashMap;

use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, SourceSpec, VariableKind,
};

use super::oriented_board::{Binding, OrientedBoard, squares};
use super::tables::{Mask, NONE, mask, states};

/// A variable to bind.
#[derive(Debug)]
pub struct BinderPlan {
    pub slot: usize,
    pub source: SourceSpec,
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

/// A count and its stride.
#[derive(Debug)]
pub struct CountPlan {
    pub spec: CountSpec,
    pub stride: u32,
    max: u32,
    /// Conditions over outer variables alone.
    outer_conditions: Vec<ConditionSpec>,
    binders: Vec<BinderPlan>,
    /// By binder.
    masks: Vec<Mask>,
    guards: Vec<GuardPlan>,
}

/// A condition with counts in it, decided once all variables are bound.
#[derive(Debug)]
pub struct GuardPlan {
    counts: Vec<CountPlan>,
    condition: ConditionSpec,
    /// Slots of the outer variables that it reads.
    slots: Vec<usize>,
}

impl GuardPlan {
    pub fn all(guards: &[GuardSpec], block: &BlockSpec) -> Vec<GuardPlan> {
        let guard = |guard: &GuardSpec| GuardPlan {
            counts: guard.counts.iter().map(|count| CountPlan::of(1, count, block)).collect(),
            condition: guard.condition.clone(),
            slots: guard.slots(),
        };
        guards.iter().map(guard).collect()
    }

    /// Whether the condition holds for bound variables. Overwrites the bindings of the counts' variables.
    fn holds(&self, board: &OrientedBoard, bindings: &mut [Binding]) -> bool {
        let counts: Vec<u32> = self.counts.iter().map(|count| count.value(board, bindings)).collect();
        self.condition.holds_with(&|slot: usize| bindings[slot].entity(), &counts)
    }

    pub fn counts(&self) -> &[CountPlan] {
        &self.counts
    }

    /// Whether the condition or one of its counts reads a variable.
    pub fn reads(&self, slot: usize) -> bool {
        self.slots.contains(&slot)
    }
}

/// Whether all guards hold for bound variables.
pub fn guards_hold(guards: &[GuardPlan], board: &OrientedBoard, bindings: &mut [Binding]) -> bool {
    guards.iter().all(|guard| guard.holds(board, bindings))
}

/// The part of the board on which a count depends, for a given piece bound outside of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CountDependency {
    /// The reach of that piece.
    OwnReach(SourceSpec),
    /// The pieces on the board.
    Pieces,
    /// The reach of each piece on the board.
    AllReaches(SourceSpec),
}

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
            let mut plan = BinderPlan {
                slot: binder.slot,
                source: binder.source,
                kind: kinds[binder.slot],
                pairs: Vec::new(),
                residual: Vec::new(),
            };
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
    /// The squares that the source reaches, occupied or not.
    #[inline]
    fn reach(&self, board: &OrientedBoard, bindings: &[Binding]) -> u64 {
        board.reach(self.source, self.source.of().map_or(Binding::default(), |of| bindings[of]))
    }

    /// Candidates for the variable by code, given the variables bound before it; [`BinderPlan::residual_holds`] decides
    /// the remaining conditions.
    #[inline]
    pub fn candidates<'a>(
        &'a self,
        board: &'a OrientedBoard<'a>,
        bindings: &[Binding],
        mask: &'a Mask,
        buffer: &'a mut Option<StateMasks>,
    ) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let reach = self.reach(board, bindings);
        self.candidates_within(board, reach, mask, self.allowed_by_pairs(bindings, buffer))
    }

    /// The same for a known reach.
    #[inline]
    pub fn candidates_within<'a>(
        &self,
        board: &'a OrientedBoard<'a>,
        reach: u64,
        mask: &'a Mask,
        allowed: Option<&'a StateMasks>,
    ) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let bare = self.kind == VariableKind::Square;
        mask.iter().filter_map(move |(code, in_mask)| {
            let present = if bare { !0 } else { board.by_code(*code) };
            let bits = present & reach & in_mask & allowed.map_or(!0, |allowed| allowed[*code]);
            (bits != 0).then_some((*code, bits))
        })
    }

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

    /// Whether the residual conditions hold; `bindings` include this variable.
    pub fn residual_holds(&self, bindings: &[Binding]) -> bool {
        self.residual.is_empty() || all_hold(&self.residual, bindings)
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

    /// This variable's source, if it starts from `first`'s variable and that one is bound from all pieces.
    pub fn source_from(&self, first: &BinderPlan) -> Option<SourceSpec> {
        (first.source == SourceSpec::Pieces && self.source.of() == Some(first.slot)).then_some(self.source)
    }

    pub fn uses_attacks(&self) -> bool {
        matches!(self.source, SourceSpec::Moves(_) | SourceSpec::Attacks(_) | SourceSpec::Targets(_))
    }

    /// Whether the candidates are the same for both squares of a king.
    fn same_for_king(&self, king: usize, before: u32, after: u32) -> bool {
        let same_class = |pair: &PairCondition| pair.class[before as usize] == pair.class[after as usize];
        self.source.of() != Some(king)
            && self.pairs.iter().filter(|pair| pair.earlier == king).all(same_class)
            && !self.residual.iter().any(|condition| condition.slots().contains(&king))
    }

    fn entries(&self) -> usize {
        self.pairs.iter().map(|pair| pair.class.len() / 2 + 32 * pair.masks.len()).sum()
    }
}

/// Whether all binders have the same candidates for both squares of a king.
pub fn same_for_king(binders: &[BinderPlan], king: usize, before: u32, after: u32) -> bool {
    binders.iter().all(|binder| binder.same_for_king(king, before, after))
}

/// Size of the binders' masks in table entries.
pub fn entries(binders: &[BinderPlan]) -> usize {
    binders.iter().map(BinderPlan::entries).sum()
}

/// Whether the conditions hold for bound variables.
fn all_hold(conditions: &[ConditionSpec], bindings: &[Binding]) -> bool {
    conditions.iter().all(|condition| condition.holds(&|slot: usize| bindings[slot].entity()))
}

impl CountPlan {
    pub fn of(stride: u32, count: &CountSpec, block: &BlockSpec) -> CountPlan {
        let is_bound = |slot: usize| count.binders.iter().any(|binder| binder.slot == slot);
        let conditions = SortedConditions::sort(count.condition.as_ref(), &count.binders, is_bound);
        let mask_of = |binder: &BinderSpec| {
            let own: Vec<&ConditionSpec> =
                conditions.by_slot.iter().filter(|(slot, _)| *slot == binder.slot).map(|(_, of)| of).collect();
            let holds = |entity: Entity| own.iter().all(|condition| condition.holds(&|_| entity));
            let entry = |entity: Option<Entity>| if entity.is_some_and(holds) { 0 } else { NONE };
            mask(&states(binder.slot, block.variables[binder.slot]).map(entry).collect::<Vec<u32>>())
        };
        CountPlan {
            spec: count.clone(),
            stride,
            max: count.max,
            binders: conditions.plan(&count.binders, &block.variables),
            masks: count.binders.iter().map(mask_of).collect(),
            guards: GuardPlan::all(&count.guards, block),
            outer_conditions: conditions.outer,
        }
    }

    /// stride · min(number of bindings, max). Overwrites the bindings of the count's variables.
    pub fn value(&self, board: &OrientedBoard, bindings: &mut [Binding]) -> u32 {
        if self.max == 0 || !all_hold(&self.outer_conditions, bindings) {
            return 0;
        }
        let number = self.count_backwards(board, bindings).unwrap_or_else(|| self.count_from(0, board, bindings));
        self.stride * number.min(self.max)
    }

    /// The number of bindings of a piece and a square it reaches, counted from the square back to the piece. `None` if
    /// the outer variables allow more than a few squares, or if the binders have another form.
    fn count_backwards(&self, board: &OrientedBoard, bindings: &[Binding]) -> Option<u32> {
        /// With more squares, counting backwards would visit as many pieces as counting forwards.
        const MAX_SQUARES: u32 = 3;
        let [first, second] = &self.binders[..] else { return None };
        let source = second.source_from(first)?;
        let outer_pairs_only = second.pairs.iter().all(|pair| pair.earlier != first.slot);
        let unsupported = first.has_residual() || second.has_residual() || !self.guards.is_empty();
        if second.pairs.is_empty() || !outer_pairs_only || unsupported {
            return None;
        }
        let mut first_buffer = None;
        let mut second_buffer = None;
        let first_allowed = first.allowed_by_pairs(bindings, &mut first_buffer);
        let second_allowed = second.allowed_by_pairs(bindings, &mut second_buffer);
        let ends = second.candidates_within(board, !0, &self.masks[1], second_allowed).map(|(_, bits)| bits);
        let mut budget = MAX_SQUARES;
        let mut number = 0;
        for bits in ends {
            budget = budget.checked_sub(bits.count_ones())?;
            let count = |square| board.count_reaching(source, &self.masks[0], first_allowed, square);
            number += squares(bits).map(count).sum::<u32>();
        }
        Some(number)
    }

    /// The number of bindings of the binders from `depth` on; stops early beyond the maximum.
    fn count_from(&self, depth: usize, board: &OrientedBoard, bindings: &mut [Binding]) -> u32 {
        let Some(binder) = self.binders.get(depth) else {
            return u32::from(guards_hold(&self.guards, board, bindings));
        };
        let unguarded = self.guards.is_empty();
        let count_bits = depth + 1 == self.binders.len() && !binder.has_residual() && unguarded;
        let mut number = 0;
        let mut buffer = None;
        if let (true, [first, second]) = (depth == 0 && unguarded, &self.binders[..])
            && let (true, Some(source)) =
                (first.is_unconditional() && second.is_unconditional(), second.source_from(first))
        {
            board.each_reach(source, &self.masks[0], |_, _, reach| {
                let candidates = second.candidates_within(board, reach, &self.masks[1], None);
                number += candidates.map(|(_, bits)| bits.count_ones()).sum::<u32>();
            });
            return number;
        }
        for (code, bits) in binder.candidates(board, bindings, &self.masks[depth], &mut buffer) {
            if count_bits {
                number += bits.count_ones();
                continue;
            }
            for square in squares(bits) {
                bindings[binder.slot] = Binding { code, square };
                if binder.residual_holds(bindings) {
                    number += self.count_from(depth + 1, board, bindings);
                }
            }
            if number >= self.max {
                return number;
            }
        }
        number
    }

    /// Whether a move of neither king can change the count only through a moving piece, or through a piece of the first
    /// binder whose reach changes; see [`super::delta`].
    pub fn is_local(&self) -> bool {
        match &self.binders[..] {
            _ if !self.guards.is_empty() => false,
            [first] => first.source == SourceSpec::Pieces,
            [first, second] => first.source == SourceSpec::Pieces && second.source.of() == Some(first.slot),
            _ => false,
        }
    }

    /// The count's dependency on a piece bound in the slot `outer`; `None` if it is not a [`CountDependency`].
    pub fn dependency(&self, outer: usize) -> Option<CountDependency> {
        match &self.binders[..] {
            _ if !self.guards.is_empty() => None,
            [only] if only.source == SourceSpec::Pieces => Some(CountDependency::Pieces),
            [only] if only.source.of() == Some(outer) => Some(CountDependency::OwnReach(only.source)),
            [first, second] => second.source_from(first).map(CountDependency::AllReaches),
            _ => None,
        }
    }

    /// Whether both counts bind the same pieces first and the same kind of variable last.
    pub fn binds_like(&self, other: &CountPlan) -> bool {
        let last_kind = |count: &CountPlan| count.binders.last().map(|last| last.kind);
        self.masks.first() == other.masks.first() && last_kind(self) == last_kind(other)
    }

    /// Whether the outer variables allow the count's last variable any of the squares `ends`, occupied or not.
    pub fn allows_any(&self, bindings: &[Binding], ends: u64) -> bool {
        let Some((last, inner)) = self.binders.split_last() else { return false };
        let is_outer = |pair: &&PairCondition| inner.iter().all(|binder| binder.slot != pair.earlier);
        let allowed = |code: usize, bits: u64| {
            let pairs = last.pairs.iter().filter(is_outer);
            pairs.fold(bits, |bits, pair| bits & pair.allowed(bindings[pair.earlier])[code])
        };
        self.masks[self.binders.len() - 1].iter().any(|(code, in_mask)| allowed(*code, in_mask & ends) != 0)
    }

    pub fn binders(&self) -> &[BinderPlan] {
        &self.binders
    }

    /// Whether attacks are needed, here or in a guard.
    pub fn uses_attacks(&self) -> bool {
        let in_guards = || self.guards.iter().flat_map(|guard| &guard.counts).any(CountPlan::uses_attacks);
        self.binders.iter().any(BinderPlan::uses_attacks) || in_guards()
    }

    /// The states of the first variable.
    pub fn first_mask(&self) -> &Mask {
        &self.masks[0]
    }

    /// Whether the count is the same for both squares of a king.
    pub fn same_for_king(&self, king: usize, before: u32, after: u32) -> bool {
        !self.outer_conditions.iter().any(|condition| condition.slots().contains(&king))
            && !self.guards.iter().any(|guard| guard.reads(king))
            && same_for_king(&self.binders, king, before, after)
    }

    /// Size in table entries.
    pub fn entries(&self) -> usize {
        let in_guards = self.guards.iter().flat_map(|guard| &guard.counts).map(CountPlan::entries);
        entries(&self.binders) + self.masks.iter().map(|mask| 4 * mask.len()).sum::<usize>() + in_guards.sum::<usize>()
    }
}
