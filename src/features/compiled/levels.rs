//! How bindings are found: a level a variable, with the states that conditions leave it as bitboards.

use std::collections::HashMap;

use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, CountSpec, ENEMY_KING, Entity, GuardSpec, SourceSpec, VariableKind,
};

use super::tables::{Mask, NONE, mask, states};
use super::view::{Man, View, squares};

/// A variable to bind.
#[derive(Debug)]
pub struct Level {
    pub slot: usize,
    pub source: SourceSpec,
    pub kind: VariableKind,
    /// Conditions over this variable and one bound before it.
    pairs: Vec<PairMask>,
    /// Conditions over more variables, this one bound last.
    residual: Vec<ConditionSpec>,
}

/// What a condition leaves of a variable, by the state of an earlier one.
#[derive(Debug)]
struct PairMask {
    with: usize,
    with_kind: VariableKind,
    /// By the earlier variable's state: which of `masks`.
    class: Vec<u16>,
    masks: Vec<Left>,
}

/// Bitboards by code.
pub type Left = [u64; 16];

/// A count and what it is multiplied by.
#[derive(Debug)]
pub struct CountPlan {
    pub spec: CountSpec,
    pub stride: u32,
    max: u32,
    /// Conditions over outer variables alone.
    gate: Vec<ConditionSpec>,
    levels: Vec<Level>,
    /// By level.
    masks: Vec<Mask>,
    guards: Vec<Guard>,
}

/// A condition with counts in it, decided once all variables are bound.
#[derive(Debug)]
pub struct Guard {
    counts: Vec<CountPlan>,
    condition: ConditionSpec,
    /// Outer variables read, by slot.
    slots: Vec<usize>,
}

impl Guard {
    pub fn all(guards: &[GuardSpec], block: &BlockSpec) -> Vec<Guard> {
        let guard = |guard: &GuardSpec| Guard {
            counts: guard.counts.iter().map(|count| CountPlan::of(1, count, block)).collect(),
            condition: guard.condition.clone(),
            slots: guard.slots(),
        };
        guards.iter().map(guard).collect()
    }

    /// Whether the condition holds for bound variables. The counts' variables in `men` are overwritten.
    fn holds(&self, view: &View, men: &mut [Man]) -> bool {
        let counts: Vec<u32> = self.counts.iter().map(|count| count.value(view, men)).collect();
        self.condition.holds_with(&|slot: usize| men[slot].entity(), &counts)
    }

    pub fn counts(&self) -> &[CountPlan] {
        &self.counts
    }

    /// Whether the condition reads this variable, or a count does.
    pub fn reads(&self, slot: usize) -> bool {
        self.slots.contains(&slot)
    }
}

/// Whether all guards hold for bound variables.
pub fn guarded(guards: &[Guard], view: &View, men: &mut [Man]) -> bool {
    guards.iter().all(|guard| guard.holds(view, men))
}

/// On what a count depends for a piece bound outside of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// What that piece reaches.
    Own(SourceSpec),
    /// Which pieces there are.
    Pieces,
    /// What each piece reaches.
    Reached(SourceSpec),
}

/// A block's or count's conditions by where they are decided.
pub struct Conditions {
    /// Over no variable of the binders.
    pub gate: Vec<ConditionSpec>,
    /// Over one variable: (slot, condition).
    pub by_slot: Vec<(usize, ConditionSpec)>,
    /// Over several, the last of the binders.
    several: Vec<ConditionSpec>,
}

impl Conditions {
    /// `single` says which slots' own conditions are folded into tables or masks.
    pub fn sort(condition: Option<&ConditionSpec>, bound: &[BinderSpec], single: impl Fn(usize) -> bool) -> Conditions {
        let mut sorted = Conditions { gate: Vec::new(), by_slot: Vec::new(), several: Vec::new() };
        for condition in condition.into_iter().flat_map(ConditionSpec::conjuncts).cloned() {
            let slots = condition.slots();
            match slots[..] {
                [slot] if single(slot) => sorted.by_slot.push((slot, condition)),
                _ if slots.iter().all(|slot| bound.iter().all(|binder| binder.slot != *slot)) => {
                    sorted.gate.push(condition);
                }
                _ => sorted.several.push(condition),
            }
        }
        sorted
    }

    /// The binders as levels, each with the conditions decided there.
    pub fn levels(&self, binders: &[BinderSpec], kinds: &[VariableKind]) -> Vec<Level> {
        let level = |binder: &BinderSpec| {
            let last = |condition: &&ConditionSpec| condition.slots().last() == Some(&binder.slot);
            let mut level = Level {
                slot: binder.slot,
                source: binder.source,
                kind: kinds[binder.slot],
                pairs: Vec::new(),
                residual: Vec::new(),
            };
            for condition in self.several.iter().filter(last) {
                match condition.slots()[..] {
                    [with, slot] => level.pairs.push(PairMask::of(condition, with, slot, kinds)),
                    _ => level.residual.push(condition.clone()),
                }
            }
            level
        };
        binders.iter().map(level).collect()
    }
}

impl PairMask {
    fn of(condition: &ConditionSpec, with: usize, slot: usize, kinds: &[VariableKind]) -> PairMask {
        let looks = |of: usize| condition.reads_piece(of);
        let (with_pieces, pieces) = (looks(with), looks(slot));
        let mut known: HashMap<Left, u16> = HashMap::new();
        let mut masks = Vec::new();
        let mut class: Vec<u16> = Vec::new();
        for (at, earlier) in states(with, kinds[with]).enumerate() {
            // A condition that reads squares alone is the same for all pieces.
            if at >= 64 && !with_pieces {
                class.push(class[at & 63]);
                continue;
            }
            let earlier = earlier.unwrap_or(Entity::bare(0));
            let mut bits = [0u64; 16];
            for (state, entity) in states(slot, kinds[slot]).enumerate() {
                let code = state / 64;
                if state >= 64 && !pieces {
                    bits[code] = bits[0];
                } else if let Some(entity) = entity {
                    let holds = condition.holds(&|of| if of == with { earlier } else { entity });
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
        PairMask { with, with_kind: kinds[with], class, masks }
    }

    fn mask(&self, man: Man) -> &Left {
        let kings = self.with <= ENEMY_KING;
        let state = if kings { man.square as usize } else { man.state(self.with_kind) };
        &self.masks[usize::from(self.class[state])]
    }
}

impl Level {
    /// Squares the source reaches, whatever stands there.
    #[inline]
    fn reach(&self, view: &View, men: &[Man]) -> u64 {
        view.reach(self.source, self.source.of().map_or(Man::default(), |of| men[of]))
    }

    /// What the variable can be, by code, given the variables bound before it; [`Level::admits`] decides the rest.
    #[inline]
    pub fn candidates<'a>(
        &'a self,
        view: &'a View<'a>,
        men: &[Man],
        mask: &'a Mask,
        left: &'a mut Option<Left>,
    ) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let reach = self.reach(view, men);
        self.reached(view, reach, mask, self.left(men, left))
    }

    /// The same for a reach found before.
    #[inline]
    pub fn reached<'a>(
        &self,
        view: &'a View<'a>,
        reach: u64,
        mask: &'a Mask,
        left: Option<&'a Left>,
    ) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let bare = self.kind == VariableKind::Square;
        mask.iter().filter_map(move |(code, allowed)| {
            let present = if bare { !0 } else { view.by_code(*code) };
            let bits = present & reach & allowed & left.map_or(!0, |left| left[*code]);
            (bits != 0).then_some((*code, bits))
        })
    }

    /// What the pair conditions leave, by code; none when there are no such conditions. `room` is for several's
    /// conjunction.
    pub fn left<'a>(&'a self, men: &[Man], room: &'a mut Option<Left>) -> Option<&'a Left> {
        let (first, others) = self.pairs.split_first()?;
        let first = first.mask(men[first.with]);
        if others.is_empty() {
            return Some(first);
        }
        let left = room.insert(*first);
        for pair in others {
            left.iter_mut().zip(pair.mask(men[pair.with])).for_each(|(left, mask)| *left &= mask);
        }
        Some(left)
    }

    /// Whether the conditions over several variables hold; this one is bound.
    pub fn admits(&self, men: &[Man]) -> bool {
        self.residual.is_empty() || holds(&self.residual, men)
    }

    /// Whether [`Level::admits`] has anything to decide.
    pub fn conditional(&self) -> bool {
        !self.residual.is_empty()
    }

    /// Whether `candidates` alone, without `left` and `admits`, say what the variable can be.
    pub fn plain(&self) -> bool {
        self.pairs.is_empty() && self.residual.is_empty()
    }

    /// The level's source, when it starts from the pieces of another level.
    pub fn beyond(&self, first: &Level) -> Option<SourceSpec> {
        (first.source == SourceSpec::Pieces && self.source.of() == Some(first.slot)).then_some(self.source)
    }

    /// Whether the source looks up what pieces attack.
    pub fn attacks(&self) -> bool {
        matches!(self.source, SourceSpec::Moves(_) | SourceSpec::Attacks(_) | SourceSpec::Targets(_))
    }

    /// Whether the level finds the same from both squares of a king.
    fn same(&self, king: usize, before: u32, after: u32) -> bool {
        let class = |pair: &PairMask| pair.class[before as usize] == pair.class[after as usize];
        self.source.of() != Some(king)
            && self.pairs.iter().filter(|pair| pair.with == king).all(class)
            && !self.residual.iter().any(|condition| condition.slots().contains(&king))
    }

    fn entries(&self) -> usize {
        self.pairs.iter().map(|pair| pair.class.len() / 2 + 32 * pair.masks.len()).sum()
    }
}

/// Whether all levels find the same from both squares of a king.
pub fn same(levels: &[Level], king: usize, before: u32, after: u32) -> bool {
    levels.iter().all(|level| level.same(king, before, after))
}

/// Size of the levels' masks in table entries.
pub fn entries(levels: &[Level]) -> usize {
    levels.iter().map(Level::entries).sum()
}

/// Whether the conditions hold for bound variables.
pub fn holds(conditions: &[ConditionSpec], men: &[Man]) -> bool {
    conditions.iter().all(|condition| condition.holds(&|slot: usize| men[slot].entity()))
}

impl CountPlan {
    pub fn of(stride: u32, count: &CountSpec, block: &BlockSpec) -> CountPlan {
        let bound = |slot: usize| count.binders.iter().any(|binder| binder.slot == slot);
        let conditions = Conditions::sort(count.condition.as_ref(), &count.binders, bound);
        let mask_of = |binder: &BinderSpec| {
            let own: Vec<&ConditionSpec> =
                conditions.by_slot.iter().filter(|(slot, _)| *slot == binder.slot).map(|(_, of)| of).collect();
            let holds = |entity: Entity| own.iter().all(|condition| condition.holds(&|_| entity));
            let state = |entity: Option<Entity>| if entity.is_some_and(holds) { 0 } else { NONE };
            mask(&states(binder.slot, block.variables[binder.slot]).map(state).collect::<Vec<u32>>())
        };
        CountPlan {
            spec: count.clone(),
            stride,
            max: count.max,
            levels: conditions.levels(&count.binders, &block.variables),
            masks: count.binders.iter().map(mask_of).collect(),
            guards: Guard::all(&count.guards, block),
            gate: conditions.gate,
        }
    }

    /// stride · min(bindings, max). The count's variables in `men` are overwritten.
    pub fn value(&self, view: &View, men: &mut [Man]) -> u32 {
        if self.max == 0 || !holds(&self.gate, men) {
            return 0;
        }
        let number = self.tally_from_the_end(view, men).unwrap_or_else(|| self.tally(0, view, men));
        self.stride * number.min(self.max)
    }

    /// Bindings of a piece and what it reaches, where the variables outside leave few squares to be reached: counted from
    /// those squares back. None where they leave more, or the levels are others.
    fn tally_from_the_end(&self, view: &View, men: &[Man]) -> Option<u32> {
        /// From more squares the pieces are not fewer.
        const FEW: u32 = 3;
        let [first, second] = &self.levels[..] else { return None };
        let source = second.beyond(first)?;
        let outside = second.pairs.iter().all(|pair| pair.with != first.slot);
        let whole = first.conditional() || second.conditional() || !self.guards.is_empty();
        if second.pairs.is_empty() || !outside || whole {
            return None;
        }
        let (mut room, mut firsts) = (None, None);
        let firsts = first.left(men, &mut firsts);
        let ends = second.reached(view, !0, &self.masks[1], second.left(men, &mut room)).map(|(_, bits)| bits);
        let (mut few, mut number) = (FEW, 0);
        for bits in ends {
            few = few.checked_sub(bits.count_ones())?;
            number +=
                squares(bits).map(|square| view.count_reaching(source, &self.masks[0], firsts, square)).sum::<u32>();
        }
        Some(number)
    }

    /// Bindings of the levels from `depth`; counting stops early beyond the maximum.
    fn tally(&self, depth: usize, view: &View, men: &mut [Man]) -> u32 {
        let Some(level) = self.levels.get(depth) else { return u32::from(guarded(&self.guards, view, men)) };
        let unguarded = self.guards.is_empty();
        let last = depth + 1 == self.levels.len() && !level.conditional() && unguarded;
        let mut number = 0;
        let mut room = None;
        if let (true, [first, second]) = (depth == 0 && unguarded, &self.levels[..])
            && let (true, Some(source)) = (first.plain() && second.plain(), second.beyond(first))
        {
            view.each_reach(source, &self.masks[0], |_, _, reach| {
                number +=
                    second.reached(view, reach, &self.masks[1], None).map(|(_, bits)| bits.count_ones()).sum::<u32>();
            });
            return number;
        }
        for (code, bits) in level.candidates(view, men, &self.masks[depth], &mut room) {
            if last {
                number += bits.count_ones();
                continue;
            }
            for square in squares(bits) {
                men[level.slot] = Man { code, square };
                if level.admits(men) {
                    number += self.tally(depth + 1, view, men);
                }
            }
            if number >= self.max {
                return number;
            }
        }
        number
    }

    /// Whether the count can differ between two boards with the same kings only where a piece of `touched` is bound
    /// first and its moves, attacks, … have changed; see [`super::delta`].
    pub fn local(&self) -> bool {
        match &self.levels[..] {
            _ if !self.guards.is_empty() => false,
            [first] => first.source == SourceSpec::Pieces,
            [first, second] => first.source == SourceSpec::Pieces && second.source.of() == Some(first.slot),
            _ => false,
        }
    }

    /// On what the count depends for a piece bound outside, in `outer`; none where on more than its reach, the pieces and
    /// what they reach.
    pub fn trace(&self, outer: usize) -> Option<Trace> {
        match &self.levels[..] {
            _ if !self.guards.is_empty() => None,
            [only] if only.source == SourceSpec::Pieces => Some(Trace::Pieces),
            [only] if only.source.of() == Some(outer) => Some(Trace::Own(only.source)),
            [first, second] => second.beyond(first).map(Trace::Reached),
            _ => None,
        }
    }

    /// Whether both counts bind the same pieces first and the same kind of variable last.
    pub fn reaches_as(&self, other: &CountPlan) -> bool {
        let last = |count: &CountPlan| count.levels.last().map(|last| last.kind);
        self.masks.first() == other.masks.first() && last(self) == last(other)
    }

    /// Whether the variables bound outside leave the count's last one any of the squares `ends`, whatever stands there.
    pub fn concerns(&self, men: &[Man], ends: u64) -> bool {
        let Some((last, inner)) = self.levels.split_last() else { return false };
        let outside = |pair: &&PairMask| inner.iter().all(|level| level.slot != pair.with);
        let left = |code: usize, bits: u64| {
            last.pairs.iter().filter(outside).fold(bits, |bits, pair| bits & pair.mask(men[pair.with])[code])
        };
        self.masks[self.levels.len() - 1].iter().any(|(code, allowed)| left(*code, allowed & ends) != 0)
    }

    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Whether what pieces attack is looked up, here or in a guard.
    pub fn attacks(&self) -> bool {
        let inner = || self.guards.iter().flat_map(|guard| &guard.counts).any(CountPlan::attacks);
        self.levels.iter().any(Level::attacks) || inner()
    }

    /// What the first variable can be.
    pub fn first_mask(&self) -> &Mask {
        &self.masks[0]
    }

    /// Whether the count is the same from both squares of a king.
    pub fn same(&self, king: usize, before: u32, after: u32) -> bool {
        !self.gate.iter().any(|condition| condition.slots().contains(&king))
            && !self.guards.iter().any(|guard| guard.reads(king))
            && same(&self.levels, king, before, after)
    }

    pub fn entries(&self) -> usize {
        let inner = self.guards.iter().flat_map(|guard| &guard.counts).map(CountPlan::entries);
        entries(&self.levels) + self.masks.iter().map(|mask| 4 * mask.len()).sum::<usize>() + inner.sum::<usize>()
    }
}
