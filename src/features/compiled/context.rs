//! Contexts: which placements of the kings a block tells apart.
//!
//! Two placements are one context when every assignment of the block's other variables gives the same rows. A row is
//! the kings' share of a term plus what the assignment adds; the share is compared as a number, what assignments add
//! (and which of them have a row at all) as a table over classes of states that neither tables nor conditions tell
//! apart, worked out once for all placements that conditions cannot tell apart.

use std::collections::{HashMap, HashSet};

use crate::chess::{Mirror, Perspective, Square, too_close};
use crate::features::spec::{
    BinderSpec, BlockSpec, ConditionSpec, CountSpec, DROPPED, ENEMY_KING, Entity, GuardSpec, OWN_KING, Property,
    SourceSpec,
};
use crate::features::syntax::Direction;

use super::CompiledBlock;
use super::encode::Kings;
use super::levels::CountPlan;
use super::tables::{NONE, states};
use super::view::{ray, turn};

/// A number for every placement of the kings; equal numbers mean that every assignment of the block's other variables
/// gives the same rows.
#[derive(Debug, Default)]
pub struct ContextTable {
    /// By own king, then enemy king (when `enemy` is read), as White sees them or as Black's turned board shows them.
    ids: Vec<u32>,
    enemy: bool,
    distinct: u32,
}

/// Conditions are tried on at most this many assignments; beyond, placements that a condition might tell apart are
/// taken for different.
const MAX_TRIALS: usize = 1 << 24;

impl ContextTable {
    pub(super) fn of(spec: &BlockSpec, block: &CompiledBlock) -> ContextTable {
        let reader = Reader::of(spec, block);
        let (own, enemy) = (reader.reads(OWN_KING) || reader.mirrored, reader.reads(ENEMY_KING));
        if !own && !enemy {
            return ContextTable { ids: Vec::new(), enemy: false, distinct: 1 };
        }
        let enemies = if enemy { 64 } else { 1 };
        let places: Vec<Option<Kings>> = (0..64u32)
            .flat_map(|own| (0..enemies as u32).map(move |enemy| (own, enemy)))
            .map(|(own, other)| {
                let mask = spec.orientation.mask(Square::new(own), Perspective::White);
                (!enemy || !too_close(own, other)).then_some(Kings { own: own ^ mask, enemy: other ^ mask, mask })
            })
            .collect();
        let mut views: HashMap<Vec<i32>, usize> = HashMap::new();
        let seen: Vec<Option<usize>> = places
            .iter()
            .map(|kings| {
                let fresh = views.len();
                kings.as_ref().map(|kings| *views.entry(reader.view(kings)).or_insert(fresh))
            })
            .collect();
        let mut additions: Vec<Option<Vec<Option<[u8; 32]>>>> = vec![None; views.len()];
        let exact = reader.trials().saturating_mul(views.len()) <= MAX_TRIALS;
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut ids = Vec::with_capacity(places.len());
        for (kings, view) in places.iter().zip(seen) {
            let (Some(kings), Some(view)) = (kings, view) else {
                ids.push(NONE);
                continue;
            };
            let added = additions[view].get_or_insert_with(|| reader.additions(kings, exact, view));
            let fresh = known.len() as u32;
            ids.push(*known.entry(reader.signature(kings, added)).or_insert(fresh));
        }
        ContextTable { ids, enemy, distinct: known.len() as u32 }
    }

    /// Number of contexts; with the enemy king, over pairs of squares that are not adjacent.
    pub fn count(&self) -> u32 {
        self.distinct
    }

    pub fn reads_enemy(&self) -> bool {
        self.enemy
    }

    pub fn entries(&self) -> usize {
        self.ids.len()
    }

    /// The context of two king squares on the board turned for `pov` (ranks exchanged or rotated, not mirrored).
    pub fn id(&self, own: u32, enemy: u32) -> u32 {
        match (self.ids.is_empty(), self.enemy) {
            (true, _) => 0,
            (false, false) => self.ids[own as usize],
            (false, true) => self.ids[(own << 6 | enemy) as usize],
        }
    }
}

/// What a block reads, for one look after another at placements of its kings.
struct Reader<'a> {
    spec: &'a BlockSpec,
    block: &'a CompiledBlock,
    mirrored: bool,
    /// By element of the product, where only some elements are features: rows are then compared whole.
    kept: Option<&'a [u32]>,
    /// Each bound variable's slot and a state (with its number) of every class of its states.
    bound: Vec<(usize, Vec<(usize, Entity)>)>,
    /// By term: the counts with a condition.
    counted: Vec<Vec<Counted<'a>>>,
}

/// A count's condition and what its variables can be.
struct Counted<'a> {
    condition: &'a ConditionSpec,
    variables: Vec<(usize, Vec<Entity>)>,
}

impl<'a> Reader<'a> {
    fn of(spec: &'a BlockSpec, block: &'a CompiledBlock) -> Reader<'a> {
        let mirrored = spec.orientation.mirror != Mirror::None;
        let counts = block.terms.iter().any(|term| !term.counts.is_empty());
        let kept = spec.kept.as_deref().filter(|_| !counts);
        let mut reader = Reader { spec, block, mirrored, kept, bound: Vec::new(), counted: Vec::new() };
        reader.bound = spec.binders.iter().map(|binder| (binder.slot, reader.classes(binder.slot))).collect();
        let variable = |binder: &BinderSpec| {
            (binder.slot, reader.classes(binder.slot).into_iter().map(|(_, entity)| entity).collect())
        };
        let counted = |count: &'a CountPlan| {
            let condition = count.spec.condition.as_ref()?;
            Some(Counted { condition, variables: count.spec.binders.iter().map(variable).collect() })
        };
        reader.counted = block.terms.iter().map(|term| term.counts.iter().filter_map(counted).collect()).collect();
        reader
    }

    fn counts(&self) -> impl Iterator<Item = &'a CountSpec> + use<'a> {
        self.block.terms.iter().flat_map(|term| &term.counts).map(|count| &count.spec)
    }

    fn conditions(&self) -> impl Iterator<Item = &'a ConditionSpec> + use<'a> {
        self.spec.condition.iter().chain(self.counts().filter_map(|count| count.condition.as_ref()))
    }

    fn sources(&self) -> impl Iterator<Item = SourceSpec> {
        self.spec.binders.iter().chain(self.counts().flat_map(|count| &count.binders)).map(|binder| binder.source)
    }

    fn reads(&self, slot: usize) -> bool {
        let varies = |table: &Vec<u32>| table.windows(2).any(|pair| pair[0] != pair[1]);
        self.block.terms.iter().any(|term| varies(&term.tables[slot]))
            || self.conditions().any(|condition| condition.slots().contains(&slot))
            || self.sources().any(|source| source.of() == Some(slot))
            || self.guards().any(|guard| guard.slots().contains(&slot))
    }

    /// Conditions with counts in them. What they find depends on the whole board: the values of the kings that they read
    /// are told apart, and so are the halves of a mirrored board.
    fn guards(&self) -> impl Iterator<Item = &'a GuardSpec> + use<'a> {
        self.spec.guards.iter().chain(self.counts().flat_map(|count| &count.guards))
    }

    /// What guards read of a placement.
    fn guarded(&self, kings: &Kings) -> Vec<u64> {
        let men = kings.men();
        let of_kings = |slot: &usize| *slot <= ENEMY_KING;
        let mut seen: Vec<u64> = self.guards().next().map(|_| u64::from(kings.mask)).into_iter().collect();
        for guard in self.guards() {
            let axes = guard.axes().into_iter().filter(|(_, slot)| of_kings(slot));
            seen.extend(axes.map(|(property, slot)| i64::from(property.of(men[slot].entity())) as u64));
            let origins = guard.sources().into_iter().filter_map(SourceSpec::of).filter(of_kings);
            seen.extend(origins.map(|slot| u64::from(men[slot].square)));
        }
        seen
    }

    fn masks(&self) -> &'static [u32] {
        if self.mirrored { &[0, 7] } else { &[0] }
    }

    /// One state (and its number) for each class that neither mirrored tables nor conditions tell apart.
    fn classes(&self, slot: usize) -> Vec<(usize, Entity)> {
        let kind = self.spec.variables[slot];
        let properties: Vec<&Property> = self
            .conditions()
            .flat_map(ConditionSpec::axes)
            .filter(|(_, of)| *of == slot)
            .map(|(property, _)| property)
            .collect();
        let mut known: HashSet<Vec<i64>> = HashSet::new();
        let mut classes = Vec::new();
        for (state, entity) in states(slot, kind).enumerate() {
            let Some(entity) = entity else { continue };
            let mut key = Vec::new();
            for mask in self.masks() {
                let seen = Entity { square: entity.square ^ mask, ..entity };
                key.extend(properties.iter().map(|property| i64::from(property.of(seen))));
                let terms = self.block.terms.iter().filter(|term| !term.tables[slot].is_empty());
                key.extend(terms.map(|term| self.added(&term.tables[slot], state, *mask)));
            }
            if known.insert(key) {
                classes.push((state, entity));
            }
        }
        classes
    }

    /// What a state adds on a mirrored board beyond what it adds on the unmirrored one; the least number where it has
    /// no entry. A state with an entry on the mirrored board alone adds it all, out of the way of differences, and so
    /// does every state when rows are compared whole.
    fn added(&self, table: &[u32], state: usize, mask: u32) -> i64 {
        let (plain, seen) = (table[state], table[state ^ mask as usize]);
        match (plain, seen) {
            (_, NONE) => i64::MIN,
            (_, seen) if self.kept.is_some() => i64::from(seen),
            (NONE, seen) => (1 << 40) + i64::from(seen),
            (plain, seen) => i64::from(seen) - i64::from(plain),
        }
    }

    /// How many assignments a look tries.
    fn trials(&self) -> usize {
        let counted = |of: &Counted<'_>| product(of.variables.iter().map(|(_, states)| states.len()));
        let inner = self.counted.iter().map(|of| of.iter().map(counted).fold(1, usize::saturating_add));
        product(self.bound.iter().map(|(_, states)| states.len())).saturating_mul(inner.fold(0, usize::saturating_add))
    }

    /// All that conditions and sources read of a placement.
    fn view(&self, kings: &Kings) -> Vec<i32> {
        let men = kings.men();
        let mut seen = vec![kings.mask as i32];
        if self.kept.is_some() {
            seen.extend(men.map(|man| man.square as i32));
        }
        for (property, slot) in self.conditions().flat_map(ConditionSpec::axes) {
            if slot <= ENEMY_KING {
                seen.push(property.of(men[slot].entity()));
            }
        }
        seen
    }

    /// For each term what assignments add to the kings' share, none when no assignment has a row. Where that takes too
    /// long (not `exact`) every view counts as a value of its own.
    fn additions(&self, kings: &Kings, exact: bool, view: usize) -> Vec<Option<[u8; 32]>> {
        let look = |term: usize| {
            let mut entities = vec![Entity::bare(0); self.spec.variables.len()];
            entities[OWN_KING] = kings.men()[OWN_KING].entity();
            entities[ENEMY_KING] = kings.men()[ENEMY_KING].entity();
            let hash = blake3::Hasher::new();
            let share = self.block.base(&self.block.terms[term], kings);
            let mut look = Look { reader: self, term, mask: kings.mask, share, entities, hash, any: false };
            look.outer(0, 0);
            look.any.then(|| *look.hash.finalize().as_bytes())
        };
        let opaque = || Some(*blake3::hash(&view.to_le_bytes()).as_bytes());
        (0..self.block.terms.len()).map(|term| if exact { look(term) } else { opaque() }).collect()
    }

    /// What the rows depend on: each term's share of the kings and what assignments add; then the sources.
    fn signature(&self, kings: &Kings, additions: &[Option<[u8; 32]>]) -> Vec<u64> {
        let mut signature = self.guarded(kings);
        for (term, added) in self.block.terms.iter().zip(additions) {
            let share = self.block.base(term, kings);
            let (true, Some(hash)) = (share != NONE, added) else {
                signature.push(u64::from(NONE));
                continue;
            };
            signature.push(if self.kept.is_some() { 0 } else { u64::from(share) });
            let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            signature.extend(hash.chunks(8).map(word));
            let counted = term.counts.iter().flat_map(|count| &count.spec.binders);
            signature.extend(self.spec.binders.iter().chain(counted).map(|binder| way(binder.source, kings)));
        }
        signature
    }
}

/// What a source depends on besides the pieces: where a king's begins, and which way `next` runs on the unmirrored board.
fn way(source: SourceSpec, kings: &Kings) -> u64 {
    let king = source.of().filter(|of| *of <= ENEMY_KING).map(|of| kings.men()[of].square);
    match (source, king) {
        (SourceSpec::Next(_, direction), Some(square)) => turn(ray(square, direction), kings.mask),
        (SourceSpec::Next(_, direction), None) if direction != Direction::North => u64::from(kings.mask),
        (_, Some(square)) => u64::from(square ^ kings.mask),
        _ => 0,
    }
}

fn product(sizes: impl Iterator<Item = usize>) -> usize {
    sizes.fold(1, usize::saturating_mul)
}

/// One look at a term: every assignment of its variables under one placement of the kings.
struct Look<'a> {
    reader: &'a Reader<'a>,
    term: usize,
    mask: u32,
    /// What the kings contribute.
    share: u32,
    entities: Vec<Entity>,
    hash: blake3::Hasher,
    any: bool,
}

impl Look<'_> {
    fn outer(&mut self, depth: usize, sum: i64) {
        let reader = self.reader;
        let Some((slot, states)) = reader.bound.get(depth) else { return self.row(sum) };
        let table = &reader.block.terms[self.term].tables[*slot];
        for (state, entity) in states {
            match reader.added(table, *state, self.mask) {
                i64::MIN => {
                    self.hash.update(&[0]);
                }
                more => {
                    self.entities[*slot] = Entity { square: entity.square ^ self.mask, ..*entity };
                    self.outer(depth + 1, sum + more);
                }
            }
        }
    }

    fn row(&mut self, sum: i64) {
        let reader = self.reader;
        let entities = &self.entities;
        if !reader.spec.condition.as_ref().is_none_or(|condition| condition.holds(&|slot: usize| entities[slot])) {
            self.hash.update(&[0]);
            return;
        }
        let sum = match reader.kept {
            None => sum,
            Some(_) if self.share == NONE => return,
            Some(kept) => match kept[self.share as usize + sum as usize] {
                DROPPED => {
                    self.hash.update(&[0]);
                    return;
                }
                index => i64::from(index),
            },
        };
        self.any = true;
        self.hash.update(&[1]).update(&sum.to_le_bytes());
        for counted in &reader.counted[self.term] {
            self.inner(counted.condition, &counted.variables);
        }
    }

    fn inner(&mut self, condition: &ConditionSpec, states: &[(usize, Vec<Entity>)]) {
        let Some(((slot, states), rest)) = states.split_first() else {
            let entities = &self.entities;
            self.hash.update(&[2 + u8::from(condition.holds(&|slot: usize| entities[slot]))]);
            return;
        };
        for entity in states {
            self.entities[*slot] = Entity { square: entity.square ^ self.mask, ..*entity };
            self.inner(condition, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::features::definition;
    use crate::features::reference;
    use crate::units::Seed;

    use super::super::generator::{self, Taste};

    /// An assignment: a state of the unmirrored board for each bound variable.
    type Assignment = Vec<(usize, Entity)>;

    /// The rows of an assignment by the book; with the mask where the way `next` runs belongs to what is told apart.
    fn rows(spec: &BlockSpec, kings: &Kings, assignment: &Assignment) -> Vec<u32> {
        let mut entities = vec![Entity::bare(0); spec.variables.len()];
        let [own, enemy] = kings.men();
        (entities[OWN_KING], entities[ENEMY_KING]) = (own.entity(), enemy.entity());
        for (slot, entity) in assignment {
            entities[*slot] = Entity { square: entity.square ^ kings.mask, ..*entity };
        }
        if !spec.condition.as_ref().is_none_or(|condition| condition.holds(&|slot: usize| entities[slot])) {
            return Vec::new();
        }
        let mut rows = reference::elements(&spec.product, &entities);
        let sideways = |source| matches!(source, SourceSpec::Next(_, direction) if direction != Direction::North);
        if !rows.is_empty() && spec.binders.iter().any(|binder| sideways(binder.source)) {
            rows.push(u32::MAX - kings.mask);
        }
        rows
    }

    fn every_assignment(spec: &BlockSpec) -> Box<dyn Iterator<Item = Assignment> + '_> {
        let all = |slot: usize| states(slot, spec.variables[slot]).flatten().map(move |entity| (slot, entity));
        match spec.binders[..] {
            [] => Box::new(std::iter::once(Vec::new())),
            [ref only] => Box::new(all(only.slot).map(|state| vec![state])),
            [ref first, ref second, ..] => {
                Box::new(all(first.slot).flat_map(move |one| all(second.slot).map(move |other| vec![one, other])))
            }
        }
    }

    /// Placements share a context exactly when no assignment tells them apart.
    #[test]
    fn contexts_are_what_assignments_tell_apart() {
        let taste = Taste { blocks: 1, binders: 2, counts: false, king_sources: false };
        let (mut several, mut pairs) = (0, 0);
        for number in 0..250 {
            let mut rng = Seed(31).stream("contexts", number);
            let text = generator::definition(&mut rng, taste).text();
            let spec = &definition::parse(&text).expect("generated definitions are valid").blocks[0];
            let block = CompiledBlock::new(spec).expect("few terms");
            let sample: Vec<Assignment> = match spec.binders.len() {
                0 | 1 => every_assignment(spec).collect(),
                _ => {
                    let mut pick = |slot: usize| loop {
                        let states: Vec<Option<Entity>> = states(slot, spec.variables[slot]).collect();
                        if let Some(entity) = states[rng.random_range(0..states.len())] {
                            return (slot, entity);
                        }
                    };
                    (0..1000).map(|_| spec.binders.iter().map(|binder| pick(binder.slot)).collect()).collect()
                }
            };
            let mut known: HashMap<u32, (Kings, Vec<Vec<u32>>)> = HashMap::new();
            for own in 0..64u32 {
                // One enemy king each; a table that does not read it must not care.
                let enemy = (0..).map(|_| rng.random_range(0..64)).find(|enemy| !too_close(own, *enemy)).unwrap_or(0);
                let mask = spec.orientation.mask(Square::new(own), Perspective::White);
                let kings = Kings { own: own ^ mask, enemy: enemy ^ mask, mask };
                let seen: Vec<Vec<u32>> = sample.iter().map(|assignment| rows(spec, &kings, assignment)).collect();
                match known.entry(block.contexts().id(own, enemy)) {
                    std::collections::hash_map::Entry::Occupied(same) => assert_eq!(same.get().1, seen, "{text}"),
                    std::collections::hash_map::Entry::Vacant(new) => {
                        new.insert((kings, seen));
                    }
                }
            }
            let found: Vec<&(Kings, Vec<Vec<u32>>)> = known.values().collect();
            several += usize::from(found.len() > 1);
            for (at, (kings, seen)) in found.iter().enumerate() {
                for (other, elsewhere) in &found[..at] {
                    let apart = |assignment| rows(spec, kings, &assignment) != rows(spec, other, &assignment);
                    assert!(seen != elsewhere || every_assignment(spec).any(apart), "{kings:?} {other:?} {text}");
                    pairs += 1;
                }
            }
        }
        assert!(several > 80 && pairs > 10_000, "{several} {pairs}");
    }
}
